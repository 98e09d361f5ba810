//! NumPy's file format `.npy`, version 1.0, as far as writing it.
//!
//! ```text
//! \x93NUMPY  1 0  u16 length of the header  header  elements, row-major, little-endian
//!                                           {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//! ```
//!
//! The header is padded with spaces and a line break so that the elements begin at a multiple of 64.

use zt::DType;

/// How elements are stored in an `.npy` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descr {
    /// NumPy's name of the dtype.
    pub(crate) name: &'static str,
    /// Whether elements are converted to f32, which holds each of them exactly, because NumPy has no
    /// dtype of theirs.
    pub(crate) widened: bool,
}

/// The dtype for elements of that storage and logical type; `None` where NumPy has none.
pub(crate) fn descr(dtype: DType, logical_type: Option<&str>) -> Option<Descr> {
    let (name, widened) = match logical_type {
        Some("complex64") => ("<c8", false),
        Some("complex128") => ("<c16", false),
        Some("f8_e4m3fn" | "f8_e5m2" | "f8_e4m3fnuz" | "f8_e5m2fnuz") => ("<f4", true),
        Some(_) => return None,
        None => match dtype {
            DType::F64 => ("<f8", false),
            DType::F32 => ("<f4", false),
            DType::F16 => ("<f2", false),
            DType::BF16 => ("<f4", true),
            DType::I64 => ("<i8", false),
            DType::I32 => ("<i4", false),
            DType::I16 => ("<i2", false),
            DType::I8 => ("|i1", false),
            DType::U64 => ("<u8", false),
            DType::U32 => ("<u4", false),
            DType::U16 => ("<u2", false),
            DType::U8 => ("|u1", false),
            DType::Bool => ("|b1", false),
        },
    };
    Some(Descr { name, widened })
}

/// Everything before the elements; `None` where the shape has more dimensions than 65535 bytes can
/// name, which no file's limits allow.
pub(crate) fn header(descr: Descr, shape: &[u64]) -> Option<Vec<u8>> {
    const PREFIX: usize = 10;
    let dimensions: Vec<String> = shape.iter().map(u64::to_string).collect();
    // A tuple of one has a comma.
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", dimensions.join(", "));
    let name = descr.name;
    let mut text = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': {shape}, }}");
    let len = (PREFIX + text.len() + 1).next_multiple_of(64) - PREFIX;
    text.extend(std::iter::repeat_n(' ', len - 1 - text.len()));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(len).ok()?.to_le_bytes());
    bytes.extend(text.into_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_numpy() {
        let descr = descr(DType::F32, None).unwrap();
        let bytes = header(descr, &[2, 3]).unwrap();
        assert_eq!(bytes.len(), 128);
        assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
        assert_eq!(&bytes[10..10 + text.len()], text.as_bytes());
        assert!(bytes[10 + text.len()..127].iter().all(|byte| *byte == b' '));
        assert_eq!(bytes[127], b'\n');
    }

    #[test]
    fn tuples_of_none_and_one_are_spelled_as_python_does() {
        let text = |shape: &[u64]| {
            let bytes = header(descr(DType::U8, None).unwrap(), shape).unwrap();
            String::from_utf8_lossy(&bytes[10..]).into_owned()
        };
        assert!(text(&[]).contains("'shape': (), }"));
        assert!(text(&[7]).contains("'shape': (7,), }"));
    }

    #[test]
    fn elements_begin_at_a_multiple_of_64_whatever_the_shape() {
        for rank in 0..64 {
            let bytes = header(descr(DType::I64, None).unwrap(), &vec![u64::MAX; rank]).unwrap();
            assert_eq!(bytes.len() % 64, 0);
        }
    }
}
