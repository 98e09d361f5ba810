//! The rules of HDF5, and the numbers in a file that breaks one.

use zt::ErrorKind;

/// Why a file or one of its objects is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Hdf5Fault {
    #[error("not an HDF5 file: it has no superblock")]
    Signature,
    #[error("{what} has the unknown version {found}")]
    Version { what: &'static str, found: u8 },
    #[error("{what} is truncated: it needs {needed} bytes, {available} are left")]
    Ends { what: &'static str, needed: u64, available: u64 },
    #[error("truncated: {found} of {expected} bytes of the file are there")]
    Cut { expected: u64, found: u64 },
    #[error("{what} has {byte_len} bytes at {address}, but the file ends at {end}")]
    Outside { what: &'static str, address: u64, byte_len: u64, end: u64 },
    #[error("{what} begins with \"{}\", which is not its signature", .found.escape_ascii())]
    Magic { what: &'static str, found: [u8; 4] },
    #[error("{what} has the checksum {found:08X}, but {expected:08X} is stored")]
    Checksum { what: &'static str, expected: u32, found: u32 },
    #[error("a chunk has the checksum {found:08X}, but {expected:08X} is stored")]
    ChunkChecksum { expected: u32, found: u32 },
    #[error("{what} has the invalid value {value}")]
    Field { what: &'static str, value: u64 },
    #[error("{what} is missing", what = .0)]
    Missing(&'static str),
    /// Structures that refer to each other would be read again and again.
    #[error("reading the structures takes more bytes than the limit for the file, {limit}")]
    Budget { limit: u64 },
    /// Groups that contain each other have any number of paths.
    #[error("the paths and attributes take more bytes than the limit for the file, {limit}")]
    Paths { limit: u64 },
    #[error("groups are nested deeper than the limit, {limit}")]
    Depth { limit: usize },
    #[error("{levels} dimensions are nested, the limit is {limit}")]
    Dimensions { levels: usize, limit: usize },
    #[error("the values are in {count} lists, more than the limit for a file of this length")]
    Lists { count: u64 },
    #[error("a group has {}", link(name))]
    LinkName { name: String },
    #[error("the shape requires {expected} bytes, there are {found}")]
    Length { expected: u64, found: u64 },
    /// No file has so many bytes.
    #[error("an address or a length exceeds 64 bits")]
    TooFar,
    #[error("the shape or a chunk requires more than 2^63 bytes")]
    Overflow,
    #[error("the values have {byte_len} bytes, the limit is {limit}")]
    Decoded { byte_len: u64, limit: u64 },
    /// The chunks give many times the file's length, or are decoded many times.
    #[error(
        "reading the values takes {byte_len} bytes, but {left} of the {limit} bytes are left that a \
         file of this length may take"
    )]
    Sparse { byte_len: u64, left: u64, limit: u64 },
    #[error("a chunk has {byte_len} bytes, the limit is {limit}")]
    ChunkSize { byte_len: u64, limit: u64 },
    #[error("a chunk is not valid {filter} data")]
    Chunk { filter: &'static str },
    #[error(
        "every chunk would be decoded {passes} times to reorder the values, the limit is {limit}"
    )]
    Scattered { passes: u64, limit: u64 },
    #[error("the elements are unsupported: {what}")]
    Element { what: &'static str },
    /// No writer of weights is known to write it.
    #[error("a metadata cache image is unsupported; h5repack writes the file without it")]
    CacheImage,
    #[error("{what} is unsupported", what = .0)]
    Unsupported(&'static str),
    #[error("the filter {} is unsupported", filter(*id, name))]
    Filter { id: u16, name: &'static str },
    #[error("the filter {} is applied twice, which is unsupported", filter(*id, name))]
    RepeatedFilter { id: u16, name: &'static str },
    #[error("a selection of a virtual dataset does not fit the shape or the other selection")]
    Selection,
    #[error("elements of another type than the virtual dataset has are unsupported")]
    Elements,
    #[error("virtual datasets have more mappings than the limit for a file")]
    Mappings,
    #[error("virtual datasets are nested deeper than the limit, {limit}, or contain themselves")]
    Nested { limit: usize },
    #[error("the name of a source is invalid: \"{}\"", .name.escape_debug())]
    SourceName { name: String },
    #[error("the source \"{}\" is not opened: {why}", .location.escape_debug())]
    Location { location: String, why: &'static str },
    #[error("the source \"{}\" is at fault: {error}", .name.escape_debug())]
    Source { name: String, error: zt::Error },
    #[error("links from file to file are nested deeper than the limit, {limit}, or lead back")]
    Links { limit: usize },
}

impl Hdf5Fault {
    /// A field with an invalid value, at an unknown byte.
    pub(crate) fn field(what: &'static str, value: u64) -> zt::Error {
        Hdf5Fault::Field { what, value }.into()
    }
}

impl From<Hdf5Fault> for zt::Error {
    fn from(fault: Hdf5Fault) -> Self {
        let (kind, code) = match &fault {
            Hdf5Fault::Budget { .. }
            | Hdf5Fault::Paths { .. }
            | Hdf5Fault::Depth { .. }
            | Hdf5Fault::Dimensions { .. }
            | Hdf5Fault::Lists { .. }
            | Hdf5Fault::Mappings
            | Hdf5Fault::Nested { .. }
            | Hdf5Fault::Links { .. } => (ErrorKind::Limit, "structure-limit"),
            Hdf5Fault::Decoded { .. } | Hdf5Fault::Sparse { .. } | Hdf5Fault::ChunkSize { .. } => {
                (ErrorKind::Limit, "decompression-limit")
            }
            Hdf5Fault::Element { .. } => (ErrorKind::Unsupported, "dtype"),
            Hdf5Fault::CacheImage
            | Hdf5Fault::Unsupported(_)
            | Hdf5Fault::Filter { .. }
            | Hdf5Fault::RepeatedFilter { .. }
            | Hdf5Fault::Scattered { .. }
            | Hdf5Fault::Location { .. }
            | Hdf5Fault::Elements => (ErrorKind::Unsupported, "unsupported"),
            Hdf5Fault::ChunkChecksum { .. } => (ErrorKind::DigestMismatch, "digest-mismatch"),
            Hdf5Fault::Source { error, .. } => (error.kind(), error.code()),
            Hdf5Fault::Version { .. } => (ErrorKind::Malformed, "version"),
            Hdf5Fault::Cut { .. } => (ErrorKind::Malformed, "truncated"),
            Hdf5Fault::Outside { .. } | Hdf5Fault::TooFar => (ErrorKind::Malformed, "bounds"),
            Hdf5Fault::Length { .. } | Hdf5Fault::Overflow => {
                (ErrorKind::Malformed, "shape-size-mismatch")
            }
            Hdf5Fault::Chunk { .. } => (ErrorKind::Malformed, "deflate"),
            _ => (ErrorKind::Malformed, "header"),
        };
        zt::Error::new(kind, code, fault)
    }
}

fn link(name: &str) -> String {
    match name {
        "" => "a link without a name".to_owned(),
        _ => format!("a duplicate link \"{}\"", name.escape_debug()),
    }
}

fn filter(id: u16, name: &str) -> String {
    match name {
        "" => id.to_string(),
        _ => format!("{name} ({id})"),
    }
}
