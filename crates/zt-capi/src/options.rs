//! The structs of zt.h.
//!
//! A struct of options begins with its size, so that a later version can have more fields. Zeros are the defaults.

use std::ffi::{c_char, c_void};

use crate::border::misuse;
use crate::dtype::zt_dtype;
use crate::error::zt_status;
use crate::ffi::{Close, ReadAt};
use crate::tensor::zt_tensor;
use zt::{Compression, DEFAULT_LEVEL, DigestAlgorithm, Result, WriteOptions};

/// `zt_open_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_open_options {
    /// The size of the caller's struct.
    pub struct_size: usize,
    /// The kind of the file; NULL for the kind that its bytes show.
    pub kind: *const c_char,
    /// When digests are compared: 0 on the first full read, 1 on every one, 2 never.
    pub verify: u32,
    /// Whether values are lent from a map of the file.
    pub map: i32,
    /// Whether one faulty tensor refuses the file.
    pub strict: i32,
    /// Whether a file whose end is missing opens with what is there.
    pub truncated: i32,
    /// Whether quantized weights are the values that codes and scales mean.
    pub logical: i32,
    /// Zero.
    pub reserved: i32,
    /// The most bytes of a component, decoded; 0 for the default.
    pub max_decoded_len: u64,
    /// The most bytes of the manifest or header; 0 for the default.
    pub max_manifest_len: u64,
}

/// `zt_write_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_write_options {
    /// The size of the caller's struct.
    pub struct_size: usize,
    /// 0 raw, 1 zstd, 2 byte planes.
    pub compression: u32,
    /// The level of zstd; 0 for the default.
    pub level: i32,
    /// 0 crc32c, 1 sha256, 2 none.
    pub digest: u32,
    /// How many threads compress; 0 for all cores.
    pub threads: u32,
    /// Whether a file of that name is an error, and is not replaced.
    pub create_new: i32,
    /// Zero.
    pub reserved: i32,
}

/// `zt_convert_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_convert_options {
    /// The size of the caller's struct.
    pub struct_size: usize,
    /// The kind of the new file; NULL for that of its extension.
    pub kind: *const c_char,
    /// The type that floating-point values are cast to; NULL for none.
    pub dtype: *const c_char,
    /// How a `.zt` is written; NULL to keep what the input has.
    pub write: *const zt_write_options,
    /// Whether sparse and quantized tensors become dense.
    pub dense: i32,
    /// Whether what the kind cannot represent is left out, with a warning for each.
    pub lossy: i32,
    /// Whether an existing file is replaced.
    pub overwrite: i32,
    /// Zero.
    pub reserved: i32,
}

/// `zt_read_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_read_options {
    /// The size of the caller's struct.
    pub struct_size: usize,
    /// The most bytes that are read ahead; 0 for 256 MiB.
    pub memory: u64,
    /// How many threads read parts and decode; 0 for all cores.
    pub threads: u32,
    /// Whether reads go past the system's cache.
    pub past_cache: i32,
}

/// `zt_source`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_source {
    /// The size of the caller's struct.
    pub struct_size: usize,
    /// The first argument of both functions.
    pub user_data: *mut c_void,
    /// The number of bytes.
    pub byte_len: u64,
    /// Fills the buffer with the bytes from an offset on, and returns 0.
    pub read_at: Option<ReadAt>,
    /// Called once, when nothing reads any more.
    pub close: Option<Close>,
}

/// `zt_object`: what a tensor that is written is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_object {
    /// The size of the caller's struct.
    pub struct_size: usize,
    /// Its name.
    pub name: *const c_char,
    /// How its elements are stored.
    pub dtype: zt_dtype,
    /// The number of its dimensions.
    pub rank: u32,
    /// Its dimensions, outermost first.
    pub shape: *const u64,
    /// What the elements mean, such as `f8_e4m3fn`; NULL if that is their dtype.
    pub logical_type: *const c_char,
    /// A JSON object; NULL for none.
    pub attributes: *const c_char,
}

/// `zt_component`: a stored part of a tensor.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_component {
    /// The size of the caller's struct.
    pub struct_size: usize,
    /// Its role, such as `data` or `indices`.
    pub role: *const c_char,
    /// What the elements mean; NULL if that is their dtype.
    pub logical_type: *const c_char,
    /// `raw` or `zstd`.
    pub encoding: *const c_char,
    /// How its elements are stored; 0 if the file does not record it.
    pub dtype: zt_dtype,
    /// Whether the file has a digest of it.
    pub has_digest: i32,
    /// Bytes after decoding.
    pub byte_len: u64,
    /// Bytes in the file.
    pub stored_len: u64,
}

/// `zt_range`: places of one dimension.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_range {
    /// The first place.
    pub start: u64,
    /// How many places.
    pub count: u64,
    /// The distance of two places; 0 means 1.
    pub step: u64,
}

/// `zt_part`: a tensor or a part of one, and the memory for its values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct zt_part {
    /// The tensor.
    pub tensor: *const zt_tensor,
    /// A range for each of the first dimensions; NULL for all of the tensor.
    pub ranges: *const zt_range,
    /// The number of ranges.
    pub range_count: usize,
    /// Where the values go.
    pub data: *mut c_void,
    /// The bytes of that memory.
    pub byte_len: usize,
    /// The type of the values; 0 for the stored one.
    pub dtype: zt_dtype,
    /// What became of the part.
    pub status: zt_status,
}

/// As the engine has them.
pub(crate) fn writing(options: &zt_write_options) -> Result<WriteOptions> {
    let level = if options.level == 0 { DEFAULT_LEVEL } else { options.level };
    let made = WriteOptions::new();
    let made = match options.compression {
        0 => made.compression(Compression::None),
        1 => made.compression(Compression::Zstd(level)),
        2 if options.level == 0 => made.planes(),
        2 => return Err(misuse("`level` is for zstd: byte planes have none")),
        other => return Err(misuse(format!("{other} is no zt_compression"))),
    };
    let made = match options.digest {
        0 => made.digest(Some(DigestAlgorithm::Crc32c)),
        1 => made.digest(Some(DigestAlgorithm::Sha256)),
        2 => made.digest(None),
        other => return Err(misuse(format!("{other} is no zt_digest"))),
    };
    let threads = usize::try_from(options.threads).unwrap_or(usize::MAX);
    Ok(made.threads((threads > 0).then_some(threads)))
}
