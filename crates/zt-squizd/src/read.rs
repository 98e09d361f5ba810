//! The kind `squizd`: a file as a [`zt::File`].

use std::sync::Arc;

use zt::foreign::{FileBuilder, Kind, SourceId};
use zt::formats::{Packing, Quantization};
use zt::{
    Attributes, Blob, Component, DType, Error, Object, RawObject, Result, Source, Span, Warning,
};
use zt_foreign::{FileKind, FileWriter, Input, Opening, Probe};

use crate::attributes::{SUB_BLOCK_LEN, TENSOR_ID, TENSOR_SCALE, TENSOR_ZERO};
use crate::block::{Block, Encoding};
use crate::column::{Columns, EntryRun, Field};
use crate::contents::Contents;
use crate::header::MAGIC;
use crate::layer::Layer;
use crate::names::Naming;
use crate::pairs::Pairs;
use crate::scales::Scales;
use crate::violation::Violation;

/// The code of warnings about parts that the format leaves open.
const AMBIGUOUS: &str = "ambiguous";

/// The kind of SQUIZD files.
pub const SQUIZD: Kind = Kind::new("squizd");

/// Recognises, opens and writes SQUIZD files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Squizd;

impl FileKind for Squizd {
    fn kind(&self) -> Kind {
        SQUIZD
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["squizd"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&MAGIC))
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }

    /// Cost: reads the header, the index, the scale tables and the first bytes of every tensor, but no values.
    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let source: Arc<dyn Source> = Arc::from(source);
        let contents = Contents::read(&source)?;
        let mut builder = opening.builder(SQUIZD);
        builder.attributes(contents.header.to_attributes());
        let file = builder.source(Arc::clone(&source));
        let naming = Naming::new(opening.options.names.as_ref(), &contents)?;
        let mut reader = Reader {
            builder,
            file,
            naming,
            pairs: contents.pairs,
            columns: Columns::new(source),
            quantized: Vec::new(),
        };
        let masks = contents.layers.iter().filter(|layer| layer.mask.is_some());
        let masks = masks.count() as u64;
        if let Some(sparsity) = &contents.header.sparsity
            && u64::from(sparsity.layer_count) != masks
        {
            let declared = sparsity.layer_count;
            let message = format!("{declared} sparsity masks are declared, {masks} exist");
            reader.warn(None, message);
        }
        for layer in contents.layers {
            reader.layer(layer);
        }
        if let Some(draft) = contents.draft {
            let count = draft.blocks.len();
            for (place, block) in draft.blocks.into_iter().enumerate() {
                reader.draft(place, block);
            }
            if let Some(error) = draft.fault {
                let name = format!("draft.{count}");
                reader.builder.fault(name, RawObject::default(), error);
            }
        }
        match contents.appendix {
            Ok(None) => {}
            Ok(Some(archive)) => reader.bytes("coreml".to_owned(), "squizd.coreml/1", archive),
            Err(error) => reader.builder.fault("coreml", RawObject::default(), error),
        }
        for error in contents.tolerated {
            reader.builder.tolerated(error);
        }
        Ok(opening.input(reader.finish()?))
    }
}

/// A file that is being turned into objects.
struct Reader {
    builder: FileBuilder,
    file: SourceId,
    naming: Naming,
    pairs: Pairs,
    columns: Columns,
    /// Objects with scales in `columns`, which becomes a source once it is complete.
    quantized: Vec<(String, Object)>,
}

impl Reader {
    fn layer(&mut self, layer: Layer) {
        let idx = layer.entry.layer_idx;
        let count = layer.blocks.len();
        for (place, block) in layer.blocks.into_iter().enumerate() {
            let default = format!("layers.{idx}.{place}");
            let scales = block.is_quantized().then(|| self.pairs.main());
            let scales = scales.map(|scales| scales.map(Some));
            let id = match &scales {
                Some(Ok(Some(scales))) => Some(scales.tensor_id),
                _ => None,
            };
            let name = self.naming.name(default, idx, id);
            self.tensor(name, block, scales);
        }
        if let Some(error) = layer.fault {
            let name = format!("layers.{idx}.{count}");
            self.builder.fault(name, RawObject::default(), error);
        }
        if let Some(mask) = layer.mask {
            let name = format!("layers.{idx}.mask");
            if mask.is_guess {
                let message = "no offset leads to the mask; the bytes after the tensors are used";
                self.warn(Some(&name), message);
            }
            self.bytes(name, "squizd.sparsity_mask/1", mask.span);
        }
    }

    fn draft(&mut self, place: usize, block: Block) {
        let scales = block.is_quantized().then(|| self.pairs.draft());
        let default = format!("draft.{place}");
        let name = self.naming.draft_name(default);
        self.tensor(name, block, scales);
    }

    /// Adds a tensor. `scales` are its entries in the tables, if it is quantized.
    fn tensor(&mut self, name: String, block: Block, scales: Option<Result<Option<Scales>>>) {
        let data = |dtype| Component::new(dtype, Blob::raw(block.payload));
        let object = match (block.encoding, scales) {
            (Encoding::Plain(dtype), _) => {
                Object::new(block.shape, "dense").with_component("data", data(dtype))
            }
            (Encoding::Astc { footprint }, _) => {
                let object = Object::new(block.shape, "squizd.astc/1");
                let mut object = object.with_component("data", data(DType::U8));
                object.attributes = Some([("block_footprint", footprint)].into());
                object
            }
            (Encoding::Tca { bitmap_len }, _) => tca(&block, bitmap_len),
            (_, None | Some(Ok(None))) => {
                self.warn(Some(&name), "the tables have no scales for this tensor");
                let object = Object::new(block.shape, "squizd.int4/1");
                object.with_component("packed_weight", data(DType::U8))
            }
            (_, Some(Err(error))) => {
                let error = error.with_span(block.span);
                return self.unscaled(name, block, error);
            }
            (_, Some(Ok(Some(scales)))) => return self.quantized(name, block, &scales),
        };
        self.builder.object(name, object, self.file);
    }

    /// Adds a quantized tensor with a fault in its scales.
    fn unscaled(&mut self, name: String, block: Block, error: Error) {
        let mut raw = RawObject::default();
        raw.shape = Some(block.shape);
        raw.format = Some("quantized_group".into());
        self.builder.fault(name, raw, error);
    }

    fn quantized(&mut self, name: String, block: Block, scales: &Scales) {
        let count = block.element_count();
        let group_size = match group_size(&block, count, scales) {
            Ok(group_size) => group_size,
            Err(violation) => {
                let error = violation.at(block.span.offset());
                return self.unscaled(name, block, error);
            }
        };
        let (bits, per_word, signed) = match block.encoding {
            Encoding::Int2 { .. } => (2, 4, false),
            _ => (4, 2, true),
        };
        let dtype = DType::U8;
        let mut quantization = Quantization::new(bits, group_size, Packing { per_word, dtype });
        quantization.signed = signed;
        quantization.zero_kind = zt::formats::ZeroKind::Additive;
        let mut attributes = quantization.to_attributes();
        attributes.insert(TENSOR_ID, scales.tensor_id);
        self.scale_attributes(&mut attributes, &name, &block, scales);

        let whole = [EntryRun { entry: scales.entry, count: u64::from(count > 0) }];
        let runs = match scales.sub_blocks.as_slice() {
            [] => &whole[..],
            sub_blocks => sub_blocks,
        };
        let column = |columns: &mut Columns, field| {
            Component::new(DType::F32, Blob::raw(columns.add(runs, field)))
        };
        let packed = Component::new(dtype, Blob::raw(block.payload));
        let scales = column(&mut self.columns, Field::Scale);
        let zeros = column(&mut self.columns, Field::Zero);
        let mut object = Object::new(block.shape, "quantized_group")
            .with_component("packed_weight", packed)
            .with_component("scales", scales)
            .with_component("zeros", zeros);
        object.attributes = Some(attributes);
        self.quantized.push((name, object));
    }

    /// Keeps the scales that are not used, with a warning about the choice.
    fn scale_attributes(
        &mut self,
        attributes: &mut Attributes,
        name: &str,
        block: &Block,
        scales: &Scales,
    ) {
        let has_sub_blocks = !scales.sub_blocks.is_empty();
        if has_sub_blocks {
            attributes.insert(TENSOR_SCALE, f64::from(scales.scale));
            attributes.insert(TENSOR_ZERO, f64::from(scales.zero));
            if (scales.scale, scales.zero) != (1.0, 0.0) {
                let message = "sub-blocks and the tensor have scales; the sub-blocks' are used";
                self.warn(Some(name), message);
            }
        }
        if let Encoding::Int2 { sub_block_len } = block.encoding
            && !has_sub_blocks
        {
            attributes.insert(SUB_BLOCK_LEN, sub_block_len);
            let message = "sub-blocks have no scales; the tensor's scale is used for all";
            self.warn(Some(name), message);
        }
    }

    /// Adds bytes that are not interpreted here.
    fn bytes(&mut self, name: String, format: &'static str, span: Span) {
        let data = Component::new(DType::U8, Blob::raw(span));
        let object = Object::new([span.byte_len()], format).with_component("data", data);
        self.builder.object(name, object, self.file);
    }

    fn warn(&mut self, object: Option<&str>, message: impl Into<String>) {
        let mut warning = Warning::new(AMBIGUOUS, message);
        warning.object = object.map(str::to_owned);
        self.builder.warning(warning);
    }

    fn finish(mut self) -> Result<zt::File> {
        for warning in self.naming.take_warnings() {
            self.builder.warning(warning);
        }
        let columns = self.builder.derived(self.columns);
        for (name, object) in self.quantized {
            let sources = [self.file, columns, columns];
            self.builder.object_across(name, object, sources);
        }
        self.builder.build()
    }
}

/// The values that share a scale, over the flat order.
fn group_size(block: &Block, count: u64, scales: &Scales) -> Result<u64, Violation> {
    let entries = scales.sub_block_count();
    if entries == 0 {
        return Ok(count.max(1));
    }
    match block.encoding {
        Encoding::Int2 { sub_block_len } => {
            let expected = count.div_ceil(sub_block_len.into());
            let found = entries;
            if found != expected {
                return Err(Violation::SubBlocks { expected, found });
            }
            // A sub-block may be longer than the tensor.
            Ok(u64::from(sub_block_len).min(count.max(1)))
        }
        // Only the number of entries gives the length of a group.
        _ => {
            let values = count;
            let divided = values.is_multiple_of(entries) && values > 0;
            let group_size = values.checked_div(entries).filter(|_| divided);
            group_size.ok_or(Violation::Undivided { values, entries })
        }
    }
}

#[expect(clippy::expect_used, reason = "the parser checked the bitmap")]
fn tca(block: &Block, bitmap_len: u64) -> Object {
    let payload = block.payload;
    let bitmap = Span::new(payload.offset(), bitmap_len).expect("within the payload");
    let values = Span::between(bitmap.end(), payload.end()).expect("within the payload");
    let part = |span| Component::new(DType::U8, Blob::raw(span));
    Object::new(block.shape.clone(), "squizd.tca_tbe/1")
        .with_component("bitmap", part(bitmap))
        .with_component("values", part(values))
}
