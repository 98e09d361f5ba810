//! Typed views and dense values of whatever a file holds.

use half::{bf16, f16};
use num_complex::Complex;
use std::io::Read as _;
use zt::formats::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz, F8E8M0Fnu};
use zt::{
    Coo, Csr, DType, Dense, Element, Elements, ErrorKind, File, Memory, OpenOptions, Planes,
    Quantized4Bit, QuantizedGroup, Tensor, ToObject, View, Writer,
};

use super::limits;
use crate::position::ByPosition;

/// A file of any kind, from memory that is lent and from a source that lends nothing: every object
/// as every type of element and as every view, and its dense value in each way there is.
pub fn views(bytes: &[u8]) {
    let options = OpenOptions::new().limits(limits());
    let lent = zt_convert::Kinds::builtin()
        .open_source(Memory::new(Vec::from(bytes)), &options)
        .map(zt_convert::Input::into_file);
    let copied = zt_convert::Kinds::builtin()
        .open_source(ByPosition(bytes.to_vec()), &options)
        .map(zt_convert::Input::into_file);
    match (lent, copied) {
        (Ok(lent), Ok(copied)) => {
            assert_eq!(look_at_all(&lent), look_at_all(&copied));
        }
        (lent, copied) => {
            assert_eq!(lent.err().map(|error| error.code()), copied.err().map(|error| error.code()))
        }
    }
}

/// A value's bytes, or the code of the error.
type Outcome = Result<Vec<u8>, &'static str>;

fn look_at_all(file: &File) -> Vec<(String, Vec<Outcome>)> {
    let tensors: Vec<Tensor<'_>> =
        file.entries().iter().filter_map(|entry| entry.tensor().ok()).collect();
    let many = file.to_dense_many(&tensors);
    let look = |(tensor, many): (&Tensor<'_>, _)| {
        let outcomes = look_at(file, tensor, outcome(&many));
        (tensor.name().to_owned(), outcomes)
    };
    tensors.iter().zip(many).map(look).collect()
}

fn look_at(file: &File, tensor: &Tensor<'_>, among_many: Outcome) -> Vec<Outcome> {
    let dense = tensor.to_dense();
    let whole = outcome(&dense);
    assert_eq!(among_many, whole, "{}: many and one", tensor.name());
    let streamed = stream(tensor);
    match (&streamed, &whole) {
        (Ok(streamed), Ok(whole)) => assert!(streamed == whole, "{}", tensor.name()),
        (Err(_), Err(_)) => {}
        // Contents are checked where all of them are there.
        (Ok(_), Err(code)) => assert!(matches!(*code, "bool-value" | "decompression-limit")),
        (Err(code), Ok(_)) => panic!("{}: streamed: {code}", tensor.name()),
    }
    let mut outcomes = vec![whole];
    if let Ok(dense) = &dense {
        for dtype in DType::ALL {
            // Which casts there are is not the question here: none may fail otherwise.
            if let Ok(cast) = dense.to_dtype(dtype, file.registry()) {
                assert_eq!(cast.shape(), dense.shape());
                outcomes.push(Ok(cast.elements().bytes.to_vec()));
            }
        }
    }
    outcomes.extend(elements(file, tensor));
    let wanted: Vec<_> = tensor.components().map(|(role, _)| (*tensor, role)).collect();
    for ((tensor, role), many) in wanted.iter().zip(file.read_many(&wanted)) {
        let one = tensor.elements(role);
        assert_eq!(of_elements(&many), of_elements(&one), "{role}");
        outcomes.push(of_elements(&one));
    }
    view::<Dense<'_>>(tensor);
    view::<Csr<'_>>(tensor);
    view::<Coo<'_>>(tensor);
    view::<QuantizedGroup<'_>>(tensor);
    view::<Quantized4Bit<'_>>(tensor);
    view::<Planes<'_>>(tensor);
    outcomes
}

fn outcome(dense: &zt::Result<Dense<'_>>) -> Outcome {
    match dense {
        Ok(dense) => Ok(dense.elements().bytes.to_vec()),
        Err(error) => Err(error.code()),
    }
}

fn of_elements(elements: &zt::Result<Elements<'_>>) -> Outcome {
    match elements {
        Ok(elements) => Ok(elements.bytes.to_vec()),
        Err(error) => Err(error.code()),
    }
}

fn stream(tensor: &Tensor<'_>) -> Outcome {
    let read = || -> zt::Result<Vec<u8>> {
        let mut reader = tensor.dense_reader()?;
        // A length that no element has.
        let (mut out, mut piece) = (Vec::new(), [0; 1021]);
        loop {
            match reader.read(&mut piece)? {
                0 => return Ok(out),
                len => out.extend_from_slice(&piece[..len]),
            }
        }
    };
    read().map_err(|error| error.code())
}

macro_rules! every_element {
    ($file:expr, $tensor:expr; $($type:ty)*) => { vec![$(typed::<$type>($file, $tensor)),*] };
}

fn elements(file: &File, tensor: &Tensor<'_>) -> Vec<Outcome> {
    every_element!(file, tensor;
        f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 bool
        F8E4M3Fn F8E5M2 F8E4M3FnUz F8E5M2FnUz F8E8M0Fnu
        Complex<f16> Complex<bf16> Complex<f32> Complex<f64>)
}

/// A dense object as a slice: of its own type alone, and of the bytes of its component.
fn typed<T: Element>(file: &File, tensor: &Tensor<'_>) -> Outcome {
    let is_of = tensor.format() == "dense"
        && tensor.component("data").is_ok_and(|data| {
            let dtype = data.dtype.map(|dtype| dtype.as_str());
            let name = data.logical_type.as_deref();
            // Elements of an unknown type are what their dtype says (§7.2).
            let is_known = |name: &str| file.registry().logical_type(name).is_some();
            let logical_type = name.filter(|&name| Some(name) != dtype && is_known(name));
            data.dtype == Some(T::DTYPE) && logical_type == T::LOGICAL_TYPE
        });
    let slice = tensor.values::<T>();
    let bytes_of = |elements: &[T]| Elements::from(elements).bytes.to_vec();
    let copied = tensor.to_vec::<T>().map(|elements| bytes_of(&elements));
    match (slice, copied) {
        (Ok(slice), Ok(copied)) => {
            assert!(is_of, "{}: read as {}", tensor.name(), T::NAME);
            assert!(bytes_of(&slice) == copied);
            let bytes = tensor.bytes("data").expect("it was read");
            assert!(*bytes == copied[..]);
            Ok(copied)
        }
        (Err(error), Err(again)) => {
            assert_eq!(error.code(), again.code());
            assert!(!is_of || error.kind() != ErrorKind::Misuse, "{error}");
            Err(error.code())
        }
        _ => panic!("{}: slice and copy disagree", tensor.name()),
    }
}

/// A view is there for objects of its format alone, and says what the object says: written again,
/// it has the same dense value.
fn view<'f, V: View<'f> + ToObject>(tensor: &Tensor<'f>) {
    let view = match tensor.view::<V>() {
        Ok(view) => view,
        Err(error) => {
            let is_of = tensor.format() == V::FORMAT;
            assert!(!is_of || error.kind() != ErrorKind::Misuse, "{error}");
            return;
        }
    };
    assert_eq!(tensor.format(), V::FORMAT);
    let Ok(dense) = tensor.to_dense() else {
        return;
    };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("to memory");
    match writer.add("x", &view) {
        Ok(()) => {}
        // A bool is looked at where it is read as one, and where it is written.
        Err(error) => return assert_eq!(error.code(), "bool-value"),
    }
    writer.finish().expect("to memory");
    let file = File::from_bytes(bytes).expect("what was written reads");
    let again = file.tensor("x").expect("it was written").to_dense();
    let again = again.expect("as before");
    assert_eq!(again.shape(), dense.shape());
    assert!(*again.elements().bytes == *dense.elements().bytes);
}
