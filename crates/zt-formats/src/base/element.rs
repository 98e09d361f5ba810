//! The Rust types of elements.

use half::{bf16, f16};
use num_complex::Complex;
use zt_manifest::DType;

use crate::base::e8m0::F8E8M0Fnu;
use crate::base::fp8::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz};

/// A Rust type whose values have the same bytes in a component as in memory, except for their
/// order.
///
/// These are the types of the 13 dtypes, five types of 8 bits and four complex types. The trait is sealed,
/// because all uses rely on the layouts of these types. Spec: §7.1.
pub trait Element: Copy + PartialEq + std::fmt::Debug + Send + Sync + sealed::Layout {
    /// The storage type.
    const DTYPE: DType;
    /// The logical type; `None` for the types of the dtypes.
    const LOGICAL_TYPE: Option<&'static str>;
    /// The type's name in the specification.
    const NAME: &'static str;
}

pub(crate) mod sealed {
    pub trait Layout: Sized + 'static {
        /// The bytes as elements; `None` if they are not aligned or not whole. For bool every byte
        /// is read, and must be 0 or 1.
        fn view(bytes: &[u8]) -> Option<&[Self]>;

        /// The elements' bytes in the host's order.
        fn bytes(elements: &[Self]) -> &[u8];
    }
}

macro_rules! elements {
    ($($type:ty => $dtype:ident, $logical:expr, $name:literal;)*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            const LOGICAL_TYPE: Option<&'static str> = $logical;
            const NAME: &'static str = $name;
        }

        impl sealed::Layout for $type {
            fn view(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::checked::try_cast_slice(bytes).ok()
            }

            fn bytes(elements: &[Self]) -> &[u8] {
                bytemuck::cast_slice(elements)
            }
        }
    )*};
}

elements! {
    f64 => F64, None, "f64";
    f32 => F32, None, "f32";
    f16 => F16, None, "f16";
    bf16 => BF16, None, "bf16";
    i64 => I64, None, "i64";
    i32 => I32, None, "i32";
    i16 => I16, None, "i16";
    i8 => I8, None, "i8";
    u64 => U64, None, "u64";
    u32 => U32, None, "u32";
    u16 => U16, None, "u16";
    u8 => U8, None, "u8";
    bool => Bool, None, "bool";
    F8E4M3Fn => U8, Some("f8_e4m3fn"), "f8_e4m3fn";
    F8E5M2 => U8, Some("f8_e5m2"), "f8_e5m2";
    F8E4M3FnUz => U8, Some("f8_e4m3fnuz"), "f8_e4m3fnuz";
    F8E5M2FnUz => U8, Some("f8_e5m2fnuz"), "f8_e5m2fnuz";
    F8E8M0Fnu => U8, Some("f8_e8m0fnu"), "f8_e8m0fnu";
    Complex<f16> => F16, Some("complex32"), "complex32";
    Complex<bf16> => BF16, Some("bcomplex32"), "bcomplex32";
    Complex<f32> => F32, Some("complex64"), "complex64";
    Complex<f64> => F64, Some("complex128"), "complex128";
}
