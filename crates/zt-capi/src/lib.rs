#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
#![expect(non_camel_case_types, reason = "the names of zt.h")]

mod border;
mod convert;
mod dlpack;
mod dtype;
mod error;
mod ffi;
mod file;
mod json;
mod maps;
mod options;
mod parts;
mod report;
mod tensor;
mod writer;

pub use dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor};
pub use dtype::zt_dtype;
pub use error::{
    ZT_DIGEST_MISMATCH, ZT_INTERRUPTED, ZT_IO, ZT_LIMIT, ZT_LOCKED, ZT_MALFORMED, ZT_MISUSE,
    ZT_NOT_FOUND, ZT_OK, ZT_PANIC, ZT_UNSUPPORTED, zt_error, zt_status,
};
pub use ffi::*;
pub use file::zt_file;
pub use options::{
    zt_component, zt_convert_options, zt_object, zt_open_options, zt_part, zt_range,
    zt_read_options, zt_source, zt_write_options,
};
pub use report::zt_report;
pub use tensor::zt_tensor;
pub use writer::zt_writer;

/// Threads share handles, which C cannot check.
const fn are_shared<T: Send + Sync>() {}
const _: () = are_shared::<(zt_file, zt_tensor, zt_writer, zt_report, zt_error)>();
