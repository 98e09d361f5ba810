//! An object in parts.

use zt::{Attributes, DType};

use super::{Generation, Part, edits, le_u64};
use crate::cbor::{self, Cbor, Edits, Fields, attributes, map, text, uint, uints};

/// An object on its way.
#[derive(Debug, Clone)]
pub struct Item {
    /// What a reader has to see.
    pub shape: Vec<u64>,
    /// What a reader has to see.
    pub format: String,
    /// What a reader has to see; also what is written.
    pub attributes: Option<Attributes>,
    /// In the order of the file.
    pub parts: Vec<Part>,
    edits: Edits,
}

impl Item {
    /// An object without components.
    #[must_use]
    pub fn new(shape: &[u64], format: &str) -> Self {
        Item {
            shape: shape.to_vec(),
            format: format.to_owned(),
            attributes: None,
            parts: Vec::new(),
            edits: Edits::default(),
        }
    }

    /// A dense object of these little-endian bytes.
    #[must_use]
    pub fn dense(shape: &[u64], dtype: DType, bytes: &[u8]) -> Self {
        Item::new(shape, "dense").part(Part::new("data", dtype, bytes))
    }

    /// A matrix by rows, of values of one byte.
    #[must_use]
    pub fn csr(shape: &[u64], values: &[u8], indices: &[u64], indptr: &[u64]) -> Self {
        Item::new(shape, "sparse_csr")
            .part(Part::new("values", DType::U8, values))
            .part(Part::new("indices", DType::U64, &le_u64(indices)))
            .part(Part::new("indptr", DType::U64, &le_u64(indptr)))
    }

    /// Values of one byte with their coordinates, dimension by dimension.
    #[must_use]
    pub fn coo(shape: &[u64], values: &[u8], coords: &[u64]) -> Self {
        Item::new(shape, "sparse_coo").part(Part::new("values", DType::U8, values)).part(Part::new(
            "coords",
            DType::U64,
            &le_u64(coords),
        ))
    }

    /// Adds a component.
    #[must_use]
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Replaces the component of the same role.
    #[must_use]
    pub fn replace(mut self, part: Part) -> Self {
        let place = self.parts.iter_mut().find(|known| known.role == part.role);
        *place.expect("a component of that role") = part;
        self
    }

    /// Sets the attributes.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = Some(attributes);
        self
    }

    edits!();

    /// Changes the component of that role.
    #[must_use]
    pub fn change(mut self, role: &str, change: impl FnOnce(Part) -> Part) -> Self {
        let at = self.parts.iter().position(|part| part.role == role);
        let at = at.expect("a component of that role");
        self.parts[at] = change(self.parts[at].clone());
        self
    }

    pub(super) fn get(&self, role: &str) -> &Part {
        self.parts.iter().find(|part| part.role == role).expect("a component of that role")
    }

    pub(super) fn encode(&self, generation: Generation) -> Cbor {
        let mut fields = Fields::default();
        if generation == Generation::V1_0 {
            let elements = self.parts.iter().find(|part| {
                matches!(part.role.as_str(), "data" | "values") && part.dtype.is_some()
            });
            let dtype = elements.and_then(|part| part.dtype).unwrap_or(DType::U8);
            fields.set("dtype", text(long_name(dtype)));
        }
        fields.set("shape", uints(&self.shape));
        fields.set("format", text(&self.format));
        if let Some(content) = &self.attributes {
            fields.set("attributes", attributes(content));
        }
        let component = |part: &Part| (text(&part.role), part.encode(generation));
        fields.set("components", map(&self.parts.iter().map(component).collect::<Vec<_>>()));
        self.edits.apply(&mut fields);
        fields.encode()
    }

    /// A tensor of 0.1: one blob, all in one map of indefinite length.
    pub(super) fn tensor_0_1(&self, name: &Cbor) -> Cbor {
        let part = self.get("data");
        let mut fields = Fields::default();
        fields.set("name", name.clone());
        fields.set("offset", uint(part.offset()));
        fields.set("size", uint(part.stored.len() as u64));
        fields.set("dtype", text(long_name(part.dtype.unwrap_or(DType::U8))));
        fields.set("layout", text(&self.format));
        fields.set("shape", uints(&self.shape));
        fields.set("encoding", text(if part.zstd { "zstd" } else { "raw" }));
        if let Some(digest) = &part.digest {
            fields.set("checksum", text(digest));
        }
        part.edits.apply(&mut fields);
        self.edits.apply(&mut fields);
        cbor::indefinite_map(fields.pairs())
    }
}

/// How 0.1 and 1.0 spell a dtype: written out again, so that cases do not agree with the crate that
/// they test by using its table.
fn long_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "float64",
        DType::F32 => "float32",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::I64 => "int64",
        DType::I32 => "int32",
        DType::I16 => "int16",
        DType::I8 => "int8",
        DType::U64 => "uint64",
        DType::U32 => "uint32",
        DType::U16 => "uint16",
        DType::U8 => "uint8",
        DType::Bool => "bool",
    }
}
