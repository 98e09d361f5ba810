//! Properties of all objects: a written object is read back, a sparse one has the sums of its values,
//! and no bytes or metadata cause a panic.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::fmt::Debug;

use proptest::prelude::*;
use zt_formats::{
    Complex, Coo, Csr, Dense, Element, Elements, F8E4M3Fn, F8E5M2FnUz, Packing, Parts, Planes,
    Quantization, Quantized4Bit, QuantizedGroup, Registry, ToObject, View, ZeroKind, bf16,
    element_count, f16,
};
use zt_manifest::{Attributes, DType, Value};

/// Elements that hash and compare by their bytes, so that a NaN equals itself.
fn bytes_of<'a>(elements: &'a Elements<'_>) -> (DType, Option<&'a str>, &'a [u8]) {
    (elements.dtype, elements.logical_type(), &elements.bytes)
}

// --- sparse objects against sums by hand

/// A type whose values this test adds by itself.
trait ByHand: Element + Debug {
    fn any() -> BoxedStrategy<Self>;
    fn zero() -> Self;
    fn add(self, other: Self) -> Self;
}

macro_rules! by_hand {
    ($($type:ty: $source:ty, |$x:ident| $make:expr, $zero:expr, |$a:ident, $b:ident| $sum:expr;)*) => {$(
        impl ByHand for $type {
            fn any() -> BoxedStrategy<Self> {
                any::<$source>().prop_map(|$x| $make).boxed()
            }

            fn zero() -> Self {
                $zero
            }

            fn add(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $sum
            }
        }
    )*};
}

by_hand! {
    f64: i32, |x| f64::from(x) / 8.0, 0.0, |a, b| a + b;
    f32: f32, |x| x, 0.0, |a, b| a + b;
    f16: u16, |x| f16::from_bits(x), f16::ZERO, |a, b| f16::from_f32(a.to_f32() + b.to_f32());
    bf16: u16, |x| bf16::from_bits(x), bf16::ZERO, |a, b| bf16::from_f32(a.to_f32() + b.to_f32());
    i64: i64, |x| x, 0, |a, b| a.wrapping_add(b);
    i32: i32, |x| x, 0, |a, b| a.wrapping_add(b);
    i16: i16, |x| x, 0, |a, b| a.wrapping_add(b);
    i8: i8, |x| x, 0, |a, b| a.wrapping_add(b);
    u64: u64, |x| x, 0, |a, b| a.wrapping_add(b);
    bool: bool, |x| x, false, |a, b| a || b;
    F8E4M3Fn: u8, |x| F8E4M3Fn::from_bits(x), F8E4M3Fn::from_bits(0),
        |a, b| F8E4M3Fn::from_f32(a.to_f32() + b.to_f32());
    F8E5M2FnUz: u8, |x| F8E5M2FnUz::from_bits(x), F8E5M2FnUz::from_bits(0),
        |a, b| F8E5M2FnUz::from_f32(a.to_f32() + b.to_f32());
    Complex<f32>: (i16, i16), |x| Complex::new(f32::from(x.0), f32::from(x.1)), Complex::ZERO,
        |a, b| a + b;
    Complex<f64>: (i16, i16), |x| Complex::new(f64::from(x.0), f64::from(x.1)), Complex::ZERO,
        |a, b| a + b;
}

/// Values at places of an array, in storage order.
#[derive(Debug, Clone)]
struct Stored<T> {
    shape: Vec<u64>,
    entries: Vec<(Vec<u64>, T)>,
}

impl<T: ByHand> Stored<T> {
    fn any(rank: std::ops::Range<usize>) -> impl Strategy<Value = Self> {
        prop::collection::vec(1u64..5, rank).prop_flat_map(|shape| {
            let place: Vec<_> = shape.iter().map(|dimension| 0..*dimension).collect();
            let entries = prop::collection::vec((place, T::any()), 0..20);
            (Just(shape), entries).prop_map(|(shape, entries)| Stored { shape, entries })
        })
    }

    /// The bytes of the dense array.
    fn by_hand(&self) -> Vec<u8> {
        let count = usize::try_from(self.shape.iter().product::<u64>()).unwrap();
        let mut sums: Vec<Option<T>> = vec![None; count];
        for (place, value) in &self.entries {
            let at = place.iter().zip(&self.shape).fold(0, |at, (x, d)| at * d + x);
            let sum = &mut sums[usize::try_from(at).unwrap()];
            *sum = Some(sum.map_or(*value, |sum| sum.add(*value)));
        }
        let sums: Vec<T> = sums.into_iter().map(|sum| sum.unwrap_or(T::zero())).collect();
        Elements::from(&sums).bytes.to_vec()
    }

    fn values(&self) -> Vec<T> {
        self.entries.iter().map(|(_, value)| *value).collect()
    }

    fn check_coo(&self) -> Result<(), TestCaseError> {
        let values = self.values();
        let coords: Vec<u64> = (0..self.shape.len())
            .flat_map(|axis| self.entries.iter().map(move |(place, _)| place[axis]))
            .collect();
        let coo = Coo::new(self.shape.clone(), &values, &coords).unwrap();
        let dense = coo.to_dense().unwrap();
        prop_assert_eq!(dense.shape(), &self.shape[..]);
        prop_assert_eq!(&*dense.elements().bytes, &self.by_hand()[..]);

        let object = coo.to_object().unwrap();
        Registry::builtin().check_strict("sparse_coo", &object.signature()).unwrap();
        let read = Coo::from_parts(object.into_parts()).unwrap();
        prop_assert_eq!(bytes_of(read.values()), bytes_of(coo.values()));
        for axis in 0..self.shape.len() {
            prop_assert_eq!(read.coords(axis), coo.coords(axis));
        }
        Ok(())
    }

    fn check_csr(&mut self) -> Result<(), TestCaseError> {
        self.entries.sort_by_key(|(place, _)| place[0]);
        let values = self.values();
        let indices: Vec<u64> = self.entries.iter().map(|(place, _)| place[1]).collect();
        let rows = 0..=self.shape[0];
        let before = |row| self.entries.iter().filter(|(place, _)| place[0] < row).count() as u64;
        let indptr: Vec<u64> = rows.map(before).collect();
        let shape = [self.shape[0], self.shape[1]];
        let csr = Csr::new(shape, &values, &indices, &indptr).unwrap();
        let dense = csr.to_dense().unwrap();
        prop_assert_eq!(dense.shape(), &self.shape[..]);
        prop_assert_eq!(&*dense.elements().bytes, &self.by_hand()[..]);

        let object = csr.to_object().unwrap();
        Registry::builtin().check_strict("sparse_csr", &object.signature()).unwrap();
        let read = Csr::from_parts(object.into_parts()).unwrap();
        prop_assert_eq!(bytes_of(read.values()), bytes_of(csr.values()));
        prop_assert_eq!(read.indices(), csr.indices());
        prop_assert_eq!(read.indptr(), csr.indptr());

        let narrow: Vec<i8> = indices.iter().map(|x| i8::try_from(*x).unwrap()).collect();
        let mut parts = csr.to_object().unwrap().into_parts();
        parts.take("indices").unwrap();
        parts.elements.push(("indices".into(), Elements::from(&narrow)));
        let read = Csr::from_parts(parts).unwrap();
        prop_assert_eq!(read.indices(), &indices[..]);
        Ok(())
    }
}

macro_rules! sparse_tests {
    ($($name:ident: $type:ty;)*) => {
        mod sparse_equals_sums_by_hand {
            use super::*;

            proptest! {
                $(
                    #[test]
                    fn $name(
                        coo in Stored::<$type>::any(0..4),
                        mut csr in Stored::<$type>::any(2..3),
                    ) {
                        coo.check_coo()?;
                        csr.check_csr()?;
                    }
                )*
            }
        }
    };
}

sparse_tests! {
    of_f64: f64;
    of_f32: f32;
    of_f16: f16;
    of_bf16: bf16;
    of_i64: i64;
    of_i32: i32;
    of_i16: i16;
    of_i8: i8;
    of_u64: u64;
    of_bool: bool;
    of_f8_e4m3fn: F8E4M3Fn;
    of_f8_e5m2fnuz: F8E5M2FnUz;
    of_complex64: Complex<f32>;
    of_complex128: Complex<f64>;
}

// --- quantized objects

fn quantizations() -> impl Strategy<Value = Quantization> {
    let dtypes = prop::sample::select(vec![DType::U8, DType::I16, DType::I32, DType::U64]);
    let kinds = prop::sample::select(vec![
        (false, ZeroKind::Subtractive),
        (false, ZeroKind::Additive),
        (true, ZeroKind::Subtractive),
    ]);
    (2u32..=8, 1u64..9, dtypes, kinds, 1u32..32).prop_map(|(bits, group_size, dtype, kind, per)| {
        let most = u32::try_from(dtype.byte_len()).unwrap() * 8 / bits;
        let per_word = per.min(most);
        let (signed, zero_kind) = kind;
        let packing = Packing { per_word, dtype };
        Quantization { signed, zero_kind, ..Quantization::new(bits, group_size, packing) }
    })
}

proptest! {
    #[test]
    fn quantizing_is_off_by_half_a_step_at_most(
        values in prop::collection::vec(-100f32..100.0, 0..40),
        quantization in quantizations(),
    ) {
        let shape = [values.len() as u64];
        let group = QuantizedGroup::quantize(shape, &values, quantization).unwrap();
        let dense = group.to_dense().unwrap();
        let scales = group.scales().as_slice::<f32>().unwrap();
        let group_size = usize::try_from(quantization.group_size).unwrap();
        for (at, (value, read)) in values.iter().zip(&*dense.as_slice::<f32>().unwrap()).enumerate() {
            // Half a step, even with a rounded zero-point: levels are rounded with it, and the
            // outermost ones are clamped. The rest is f32's rounding of levels, and of a value that
            // is large compared with its step.
            let bound = scales[at / group_size] * 0.501 + value.abs() * f32::EPSILON;
            prop_assert!((value - read).abs() <= bound, "{value} {read} {bound}");
        }
        let object = group.to_object().unwrap();
        let read = QuantizedGroup::from_parts(object.into_parts()).unwrap();
        prop_assert_eq!(&read, &group);
    }

    #[test]
    fn packed_values_are_the_bits_of_their_words(
        words in prop::collection::vec(any::<u16>(), 0..8),
        bits in 1u32..=16,
        signed: bool,
        skipped in 0usize..40,
    ) {
        let packing = Packing { per_word: 16 / bits, dtype: DType::U16 };
        let mut quantization = Quantization::new(bits, 1, packing);
        quantization.signed = signed;
        let count = words.len() as u64 * u64::from(packing.per_word);
        let scales = vec![1f32; usize::try_from(count).unwrap()];
        let group = QuantizedGroup::new([count], quantization, &words, &scales, None).unwrap();
        let by_hand: Vec<i64> = words.iter().flat_map(|word| {
            (0..packing.per_word).map(move |at| {
                let value = i64::from(*word) >> (at * bits) & ((1 << bits) - 1);
                if signed && value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
            })
        }).collect();
        prop_assert_eq!(group.quantized().collect::<Vec<_>>(), &by_hand[..]);
        prop_assert_eq!(group.quantized().size_hint(), (by_hand.len(), Some(by_hand.len())));
        let mut rest = group.quantized();
        prop_assert_eq!(rest.nth(skipped), by_hand.get(skipped).copied());
        prop_assert_eq!(rest.next(), by_hand.get(skipped + 1).copied());
        prop_assert_eq!(rest.nth(2), by_hand.get(skipped + 4).copied());
    }
}

// --- anything at all

fn dtypes() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

fn logical_types() -> impl Strategy<Value = Option<&'static str>> {
    let names = vec!["f8_e4m3fn", "complex64", "complex128", "f32", "vendor.x", ""];
    prop::option::weighted(0.2, prop::sample::select(names))
}

fn elements() -> impl Strategy<Value = Elements<'static>> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        // Small numbers, like indices.
        prop::collection::vec(0u64..4, 0..6)
            .prop_map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect()),
    ];
    (dtypes(), logical_types(), bytes).prop_map(|(dtype, logical_type, bytes)| Elements {
        dtype,
        logical_type: logical_type.map(Into::into),
        bytes: Elements::from(bytes).bytes,
    })
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..6, 1 => any::<u64>(), 1 => (0u32..64).prop_map(|bit| 1 << bit)]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let value = prop_oneof![
        numbers().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![
            "8_per_i32",
            "2_per_u8",
            "1_per_u64",
            "additive",
            "9_per_u8",
            "f64",
            "f8_e4m3fn",
            "complex64",
            "big",
        ])
        .prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
    ];
    let names =
        vec!["bits", "group_size", "packing", "signed", "zero_kind", "dtype", "type", "byte_order"];
    let usual = prop_oneof![Just(None), Just(Some("2_per_u8")), Just(Some("8_per_i32"))];
    let dtypes = prop::sample::select(vec!["f64", "f32", "f16", "bf16"]);
    let odd = prop::collection::vec((prop::sample::select(names), value), 0..4);
    (usual, numbers(), dtypes, odd).prop_map(|(usual, group_size, dtype, odd)| {
        let mut map = Attributes::new();
        map.insert("dtype", dtype);
        if let Some(packing) = usual {
            map.insert("bits", 4u64);
            map.insert("group_size", group_size);
            map.insert("packing", packing);
        }
        map.extend_with(odd);
        map
    })
}

trait ExtendWith {
    fn extend_with(&mut self, pairs: Vec<(&'static str, Value)>);
}

impl ExtendWith for Attributes {
    fn extend_with(&mut self, pairs: Vec<(&'static str, Value)>) {
        for (name, value) in pairs {
            self.insert(name, value);
        }
    }
}

fn format_ids() -> impl Strategy<Value = String> {
    let registry = Registry::builtin();
    let ids = registry.formats().map(|format| format.id().to_owned());
    prop::sample::select(ids.collect::<Vec<_>>())
}

fn roles_of(id: &str) -> &'static [&'static str] {
    match id {
        "sparse_csr" => &["values", "indices", "indptr"],
        "sparse_coo" => &["values", "coords"],
        "quantized_group" => &["packed_weight", "scales", "zeros"],
        "quantized_4bit" => &["data", "scale", "zero_point"],
        "zt.planes/1" => {
            &["plane0", "plane1", "plane2", "plane3", "plane4", "plane5", "plane6", "plane7"]
        }
        // `dense`. A new format shows up without a role.
        _ => &["data"],
    }
}

/// Any shape, attributes and elements, in the roles of one of the formats. Every second one has the
/// dtypes and lengths that its format expects, as far as the rest determines them.
fn anything() -> impl Strategy<Value = (String, Parts<'static>)> {
    let shape = prop::collection::vec(numbers(), 0..4);
    let components = prop::collection::vec(elements(), 8);
    let rest = (attributes(), components, 0usize..20, any::<bool>());
    (format_ids(), shape, rest).prop_map(
        |(id, shape, (attributes, components, missing, is_fitted))| {
            let roles = roles_of(&id).iter().map(|role| (*role).into());
            let mut elements: Vec<_> = roles.zip(components).collect();
            if missing < elements.len() {
                elements.remove(missing);
            }
            let mut parts =
                Parts { shape: Cow::Owned(shape), attributes: Cow::Owned(attributes), elements };
            if is_fitted {
                fit(&id, &mut parts);
            }
            (id, parts)
        },
    )
}

/// Gives components the dtype and the length that the format expects, if the length is small.
fn fit(id: &str, parts: &mut Parts<'_>) {
    let registry = Registry::builtin();
    let format = registry.format(id).unwrap();
    for at in 0..parts.elements.len() {
        let role = parts.elements[at].0.clone();
        if id == Planes::FORMAT {
            // Elements of u8.
            parts.elements[at].1 = Elements::from(parts.elements[at].1.bytes.to_vec());
        }
        let expected = format.expected_len(&role, &parts.signature(), &registry);
        if let Some(expected) = expected.filter(|len| *len < 1 << 16) {
            let bytes = &mut parts.elements[at].1.bytes;
            let mut fitted = bytes.to_vec();
            fitted.resize(usize::try_from(expected).unwrap(), 1);
            *bytes = Elements::from(fitted).bytes;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn no_object_causes_a_panic((id, parts) in anything()) {
        let registry = Registry::builtin();
        let signature = parts.signature();
        let checked = registry.check(&id, &signature);
        let _ = registry.check_strict(&id, &signature);
        let format = registry.format(&id).unwrap();
        for component in &signature.components {
            let expected = format.expected_len(component.role, &signature, &registry);
            if let (Ok(()), Some(expected)) = (&checked, expected) {
                prop_assert_eq!(Some(expected), component.byte_len);
            }
        }
        let mut silent = signature.clone();
        for component in &mut silent.components {
            component.byte_len = None;
            component.dtype = None;
        }
        let _ = registry.check(&id, &silent);

        for (_, elements) in &parts.elements {
            if let Ok(scalars) = elements.scalars(&registry) {
                let texts = scalars.clone().fold(String::new(), |all, one| format!("{all} {one}"));
                let mut one_by_one = String::new();
                for scalar in scalars {
                    one_by_one = format!("{one_by_one} {scalar}");
                }
                prop_assert_eq!(texts, one_by_one);
            }
            let _ = elements.to_dtype(DType::BF16, &registry);
            let _ = elements.as_slice::<bool>();
            let _ = elements.as_slice::<Complex<f64>>();
        }
        let data_checked = format.check_data(&parts);
        let dense_type = format.dense_type(&signature, &registry);
        let is_small = element_count(&parts.shape).is_none_or(|count| count < 1 << 16);
        if is_small {
            let dense = format.to_dense(parts.clone());
            match (&checked, &data_checked, dense) {
                (Ok(()), Ok(()), Ok(dense)) => {
                    prop_assert_eq!(dense.shape(), &*parts.shape);
                    let (dtype, logical_type) = dense_type.unwrap();
                    let elements = dense.elements();
                    prop_assert_eq!(elements.dtype, dtype);
                    prop_assert_eq!(elements.logical_type(), logical_type.as_deref());
                }
                (Ok(()), Ok(()), Err(error)) => {
                    let known = ["unsupported", "bool-value", "shape-size-mismatch"];
                    prop_assert!(known.contains(&error.code()), "{error}");
                }
                (_, _, dense) => prop_assert!(dense.is_err() || id == "quantized_4bit"),
            }
        }
        let _ = Dense::from_parts(parts.clone());
        let _ = Csr::from_parts(parts.clone());
        let _ = Coo::from_parts(parts.clone());
        let _ = QuantizedGroup::from_parts(parts.clone());
        let _ = Planes::from_parts(parts.clone());
        let _ = Quantized4Bit::from_parts(parts);
    }

    #[test]
    fn dense_objects_read_as_written(mut elements in elements()) {
        if LOGICAL.contains(&elements.logical_type().unwrap_or_default()) {
            elements.logical_type = None;
        }
        let Ok(dense) = Dense::from_elements([elements.element_count()], elements) else {
            return Ok(());
        };
        let object = dense.to_object().unwrap();
        prop_assert_eq!(&Dense::from_parts(object.into_parts()).unwrap(), &dense);
        prop_assert_eq!(&dense.clone().into_owned().unwrap(), &dense);
    }
}

const LOGICAL: [&str; 2] = ["complex64", "complex128"];
