//! The kit for an object format.

use zt_container::{Blob, Limits, Memory, Span};
use zt_formats::{NewObject, ObjectFormat, Parts, Registry, ToObject};
use zt_manifest::{Component, DType, Object, Value};

use super::cases::{case, check, damages, sound};
use super::file::{check_file, check_opened, expect_blame};
use crate::error::Error;
use crate::file::File;
use crate::file::builder::FileBuilder;
use crate::file::kind::Kind;
use crate::file::open::OpenOptions;
use crate::write::options::WriteOptions;

/// Bytes of a dense value beyond which it is not made: a damaged shape may have any size.
const LARGEST: u64 = 1 << 20;

/// Checks the format of `objects`, which `registry` must know, with these objects and with damaged ones.
///
/// Give a few small sound objects that differ in what your format branches on: types, attributes, an empty one. One
/// of some hundred rows shows whether rows are cut where they should be.
///
/// | sort | cases |
/// | --- | --- |
/// | round trip | written raw, compressed and together with others, by one thread and by many; read, streamed and sliced; copied |
/// | the format alone | `check`, `check_data`, `dense_type`, `to_dense` and `decode_into` agree |
/// | each component | truncated, each bit flipped, numbers set to large ones, missing, of every other dtype |
/// | the shape | each dimension 0, 1, one more, one less and up to 2^64-1; one dimension more and less |
/// | the attributes | each missing, of another type, and each number set to large ones |
/// | the file | truncated, each bit flipped |
///
/// A damaged object must give an error that blames the file, or a value that all ways to read agree about.
/// An object that `check` and `check_data` accept must have a value, unless the format has none.
///
/// ```
/// use zt::{Coo, test_kit};
///
/// let coo = Coo::new([2, 3], &[5i32, 6][..], &[0u64, 1, 2, 0][..])?;
/// test_kit::check_format(&zt::registry(), &[&coo]);
/// # Ok::<(), zt::formats::Error>(())
/// ```
///
/// # Panics
///
/// Where a check fails, with a message that names the object, by its number from 0 on, and the case.
pub fn check_format(registry: &Registry, objects: &[&dyn ToObject]) {
    for (number, object) in objects.iter().enumerate() {
        let new = sound(format!("object {number}: `to_object`"), object.to_object());
        let format = registry.format(&new.format);
        let format =
            format.unwrap_or_else(|| panic!("the registry has no format {:?}", new.format));
        let kit = Kit { registry, format, new, name: format!("object {number}") };
        check(format!("object {number} of {}", format.id()), || kit.run());
    }
}

struct Kit<'k> {
    registry: &'k Registry,
    format: &'k dyn ObjectFormat,
    new: NewObject<'k>,
    name: String,
}

impl Kit<'_> {
    fn run(&self) {
        case("the format alone", || self.check_format());
        let written = case("round trip", || self.check_round_trip());
        case("components", || self.check_components());
        case("shapes", || self.check_shapes());
        case("attributes", || self.check_attributes());
        for damage in damages(written.len()) {
            let open = || self.options().open_bytes(damage.of(&written));
            case(format!("the file, {damage}"), || check_opened(open()));
        }
    }

    fn options(&self) -> OpenOptions {
        let mut limits = Limits::default();
        limits.decoded_len = LARGEST;
        OpenOptions::new().registry(self.registry.clone()).limits(limits)
    }

    fn parts(&self) -> Parts<'_> {
        sound("borrowing", self.new.to_object()).into_parts()
    }

    /// The methods of the trait, called as the reader calls them.
    fn check_format(&self) {
        let (parts, format) = (self.parts(), self.format);
        let signature = parts.signature();
        sound("`check`", self.registry.check(format.id(), &signature));
        sound("`check_data`", format.check_data(&parts));
        for component in &signature.components {
            let expected = format.expected_len(component.role, &signature, self.registry);
            let is_it = expected.is_none() || expected == component.byte_len;
            assert!(is_it, "`expected_len` of {} is {expected:?}", component.role);
        }
        let declared = format.dense_type(&signature, self.registry);
        let dense = match format.to_dense(self.parts()) {
            Ok(dense) => dense,
            Err(error) => {
                assert!(declared.is_none(), "`dense_type` is {declared:?}, `to_dense`: {error}");
                return expect_blame("`to_dense`", &Error::from(error));
            }
        };
        let elements = dense.elements();
        let found = (elements.dtype, elements.logical_type().map(|name| name.to_owned().into()));
        assert_eq!(declared, Some(found), "`dense_type` and the type of `to_dense`");
        assert_eq!(dense.shape(), &*self.new.shape, "the shape of `to_dense`");
        let mut out = vec![0xAA; elements.bytes.len()];
        let decoded = format.decode_into(self.parts(), &mut out);
        assert_eq!((decoded, &*out), (Ok(()), &*elements.bytes), "`decode_into`");
    }

    fn write(&self, options: WriteOptions) -> Vec<u8> {
        let mut bytes = Vec::new();
        let writer = options.registry(self.registry.clone()).to_writer(&mut bytes);
        let written = writer.and_then(|mut writer| {
            writer.add(&self.name, &self.new)?;
            writer.add_all([("a second", &self.new), ("a third", &self.new)])?;
            writer.finish()
        });
        sound("writing", written);
        bytes
    }

    /// Returns a small file with the object.
    fn check_round_trip(&self) -> Vec<u8> {
        let raw = WriteOptions::new();
        let mut all = vec![("raw", raw.clone()), ("shared", raw.clone().deduplicate(true))];
        if cfg!(feature = "zstd") {
            all.push(("zstd", raw.clone().zstd(3)));
        }
        for (how, options) in all {
            case(how, || {
                let bytes = self.write(options.clone().threads(1));
                assert!(bytes == self.write(options), "one thread and many write other bytes");
                let file = sound("opening", self.options().strict(true).open_bytes(bytes.clone()));
                let problems = sound("verify", file.verify(&Default::default())).problems;
                assert!(problems.is_empty(), "verify: {problems:?}");
                self.compare(&file);
                check_file(&file);
            });
        }
        let mut bytes = Vec::new();
        let writer = raw.registry(self.registry.clone()).to_writer(&mut bytes);
        let whole = self.options().open_bytes(self.write(WriteOptions::new()));
        let copied = whole.and_then(|file| {
            let mut writer = writer?;
            writer.copy(&self.name, &file.tensor(&self.name)?)?;
            writer.finish()
        });
        sound("copying", copied);
        self.compare(&sound("opening the copy", self.options().open_bytes(bytes.clone())));
        bytes
    }

    /// Compares the object in a file with the one that was given.
    fn compare(&self, file: &File) {
        let tensor = sound("finding the object", file.tensor(&self.name));
        assert_eq!(tensor.shape(), &*self.new.shape, "the shape");
        let given = self.new.attributes.as_ref();
        assert_eq!(tensor.object().attributes.as_ref(), given, "the attributes");
        let mut found = sound("reading", tensor.parts()).elements;
        let mut given = self.parts().elements;
        // A file keeps no order of roles.
        found.sort_by(|a, b| a.0.cmp(&b.0));
        given.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, given, "the components");
        let alone = self.format.to_dense(self.parts()).ok();
        assert_eq!(tensor.to_dense().ok(), alone, "the value in the file and alone");
    }

    fn check_components(&self) {
        for (at, (role, elements)) in self.new.components.iter().enumerate() {
            for damage in damages(elements.bytes.len()) {
                self.change(format!("{role}, {damage}"), |new| {
                    new.components[at].1.bytes = damage.of(&elements.bytes).into();
                });
            }
            for dtype in DType::ALL {
                self.change(format!("{role} of {dtype}"), |new| new.components[at].1.dtype = dtype);
            }
            self.change(format!("no {role}"), |new| drop(new.components.remove(at)));
        }
    }

    fn check_shapes(&self) {
        let shape = &*self.new.shape;
        let mut all = vec![[shape, &[1]].concat(), Vec::new()];
        for (axis, dimension) in shape.iter().enumerate() {
            let near = [0, 1, dimension.saturating_sub(1), dimension.saturating_add(1)];
            for dimension in near.into_iter().chain(LARGE) {
                let mut shape = shape.to_vec();
                shape[axis] = dimension;
                all.push(shape);
            }
            let mut fewer = shape.to_vec();
            fewer.remove(axis);
            all.push(fewer);
        }
        for shape in all {
            self.change(format!("{shape:?}"), |new| new.shape = shape.into());
        }
    }

    fn check_attributes(&self) {
        for (key, value) in self.new.attributes.iter().flatten() {
            let Some(key) = key.as_str() else { continue };
            self.change(format!("no {key}"), |new| {
                new.attributes.as_mut().and_then(|attributes| attributes.remove(key));
            });
            for value in others(value) {
                self.change(format!("{key}: {value:?}"), |new| {
                    new.attributes.as_mut().and_then(|attributes| attributes.insert(key, value));
                });
            }
        }
    }

    /// Checks the object with a change that may break a rule, without the digests that would find it first.
    fn change(&self, name: String, change: impl FnOnce(&mut NewObject<'_>)) {
        let mut new = sound("borrowing", self.new.to_object());
        change(&mut new);
        let mut builder = FileBuilder::new(Kind::new("test-kit"), self.options());
        let mut bytes = Vec::new();
        let mut object = Object::new(&*new.shape, new.format);
        object.attributes = new.attributes;
        for (role, elements) in new.components {
            let start = bytes.len() as u64;
            bytes.extend_from_slice(&elements.bytes);
            let blob = Blob::raw(Span::exact_between(start, bytes.len() as u64));
            let mut component = Component::new(elements.dtype, blob);
            component.logical_type = elements.logical_type;
            object = object.with_component(role, component);
        }
        let source = builder.source(Memory::new(bytes));
        builder.object(self.name.as_str(), object, source);
        case(name, || check_opened(builder.build()));
    }
}

/// Numbers that a length, a dimension or an index must not be.
const LARGE: [u64; 6] = [1 << 20, 1 << 31, 1 << 32, 1 << 40, i64::MAX as u64, u64::MAX];

/// Other values in the place of one.
fn others(value: &Value) -> Vec<Value> {
    let mut all =
        vec![Value::Null, Value::from(""), Value::from("no such word"), Value::Bool(true)];
    all.extend([Value::from(-1i64), Value::from(f64::NAN), Value::array(Vec::new())]);
    let numbers = || [0, 1, 2, 3, 7, 64, 255].into_iter().chain(LARGE).map(Value::Unsigned);
    all.extend(numbers());
    if let Some(items) = value.as_array() {
        for at in 0..items.len() {
            for number in numbers() {
                let mut items = items.to_vec();
                items[at] = number;
                all.push(Value::array(items));
            }
        }
    }
    all
}
