//! Limits on the memory and time that an untrusted file may take. Every limit is on by default.

/// Limits on the memory and time of a reader. Each has an error of its own, which is returned before the
/// memory or the time is spent. Spec: §12.
///
/// ```
/// let limits = zt_container::Limits::default().with_decoded_len(1 << 30);
/// assert_eq!(limits.nesting, 64);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the manifest. 1 GiB.
    pub manifest_len: u64,
    /// Levels of arrays, maps and tags within the manifest. 64.
    pub nesting: usize,
    /// Bytes of one component after decoding. 64 GiB.
    pub decoded_len: u64,
    /// Dimensions of one object. 64.
    pub rank: usize,
    /// Components of one object. 1,024; the known formats have ten at most.
    pub components: usize,
    /// Bytes of an object's name. 64 KiB.
    pub name_len: usize,
    /// Encoded bytes of the attributes and unknown fields of one object; decoded, they take up to 32 times
    /// as much memory. 1 MiB. (The attributes of the file itself are decoded only on request.)
    pub attributes_len: usize,
    /// A call that reads a whole file may read at most this many times the file's length, plus 16 MiB. 8.
    ///
    /// Blobs may overlap, and a manifest of a few megabytes can name any number of ranges. Equal ranges are
    /// read once and count once. A compressed blob that shares frames with an earlier blob counts with its
    /// decoded bytes.
    pub overlap: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            manifest_len: 1 << 30,
            nesting: 64,
            decoded_len: 64 << 30,
            rank: 64,
            components: 1 << 10,
            name_len: 64 << 10,
            attributes_len: 1 << 20,
            overlap: 8,
        }
    }
}

macro_rules! with {
    ($($method:ident: $field:ident, $type:ty;)+) => {
        impl Limits {$(
            #[doc = concat!("The same with another [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
            pub const fn $method(self, $field: $type) -> Self {
                Limits { $field, ..self }
            }
        )+}
    };
}

with! {
    with_manifest_len: manifest_len, u64;
    with_nesting: nesting, usize;
    with_decoded_len: decoded_len, u64;
    with_rank: rank, usize;
    with_components: components, usize;
    with_name_len: name_len, usize;
    with_attributes_len: attributes_len, usize;
    with_overlap: overlap, u64;
}
