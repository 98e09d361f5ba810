//! The kind `gguf`: a file as a [`zt::File`].

use zt::foreign::{FileBuilder, Kind, SourceId};
use zt::{
    Attributes, Blob, ByteOrder, Component, DType, Object, RawObject, Result, Source, Warning,
};
use zt_foreign::{AttributeChange, FileKind, FileWriter, Input, Opening, Probe, STORED_SHAPE};

use crate::header::{MAGIC, Tensor};
use crate::original;
use crate::pairs::{self, TYPES};
use crate::set::{self, Set, SetPart};
use crate::tensor_type::TensorType;

/// The kind of GGUF files, of llama.cpp and other users of ggml.
pub const GGUF: Kind = Kind::new("gguf");

/// Recognises, opens and writes GGUF files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gguf;

impl FileKind for Gguf {
    fn kind(&self) -> Kind {
        GGUF
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["gguf"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&MAGIC))
    }

    fn merge_attributes(&self, files: &mut [Attributes]) -> bool {
        pairs::merge(files)
    }

    fn own_attributes(&self) -> &'static [&'static str] {
        &[TYPES]
    }

    fn set_attribute(&self, attributes: &mut Attributes, change: &AttributeChange) -> Result<()> {
        pairs::set(attributes, change)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }

    /// Cost: reads the header and no data; the metadata become values.
    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let mut builder = opening.builder(GGUF);
        let may_be_cut = opening.options.truncated;
        let set = match Set::open(SetPart::read(source)?, opening)? {
            Ok(set) => set,
            Err(alone) => {
                if let Some(warning) = set::warning(&alone) {
                    builder.warning(warning);
                }
                if let Some(attributes) = add(&mut builder, alone, may_be_cut) {
                    builder.attributes(attributes);
                }
                return opening.build(builder);
            }
        };
        for part in set.parts {
            part.path.iter().for_each(|path| builder.from_file(path));
            add(&mut builder, part, may_be_cut);
        }
        for warning in set.warnings {
            builder.warning(warning);
        }
        builder.attributes(set.attributes);
        Ok(Input::new(builder.build()?, set.paths))
    }
}

/// Adds the tensors of a file. Returns its pairs.
fn add(builder: &mut FileBuilder, part: SetPart, may_be_cut: bool) -> Option<Attributes> {
    let found = part.source.byte_len();
    let ends = part.header.tensors.iter().map(|tensor| tensor.span.end());
    let end = ends.max().filter(|end| may_be_cut && *end > found);
    if end.is_some() {
        builder.truncated(found, end);
    }
    let source = builder.source(part.source);
    for tensor in part.header.tensors {
        add_tensor(builder, tensor, part.header.order, source);
    }
    part.attributes
}

/// Adds a tensor of any type as an object: a plain range of the file.
fn add_tensor(builder: &mut FileBuilder, tensor: Tensor, order: ByteOrder, source: SourceId) {
    let tensor_type = tensor.tensor_type;
    if let Some(remark) = tensor.remark {
        builder.tolerated(remark);
    }
    if let Some(fault) = tensor.fault {
        let mut raw = RawObject::default();
        raw.shape = Some(tensor.shape);
        return builder.fault(tensor.name, raw, fault);
    }
    let dtype = match tensor_type {
        TensorType::Plain(dtype) => dtype,
        TensorType::Blocks(_) | TensorType::Unknown(_) => DType::U8,
    };
    let mut data = Component::new(dtype, Blob::raw(tensor.span));
    // Single bytes are the same in both orders, and can be lent.
    if dtype.byte_len() > 1 {
        data.byte_order = order;
    }
    let mut object = Object::new(tensor.shape, tensor_type.format()).with_component("data", data);
    if order == ByteOrder::Big && tensor_type.has_words() {
        object.attributes = Some([(BYTE_ORDER, "big")].into());
    }
    if let Some(stored) = tensor.stored {
        let attributes = object.attributes.get_or_insert_default();
        attributes.insert(STORED_SHAPE, original::value(&stored));
    }
    if let TensorType::Unknown(id) = tensor_type {
        let message = format!(
            "unknown type {id}: the object holds all bytes up to the next tensor, with padding"
        );
        builder.warning(Warning::new("unknown-type", message).with_object(&tensor.name));
    }
    builder.object(tensor.name, object, source);
}

/// The attribute of an object whose bytes are not little-endian.
pub(super) const BYTE_ORDER: &str = "byte_order";
