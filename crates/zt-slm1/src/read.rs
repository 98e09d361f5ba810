//! The kind `slm1`: a file as a [`zt::File`].

use std::collections::HashSet;
use std::sync::Arc;

use zt::container::bytes_of;
use zt::foreign::{FileBuilder, Kind, SourceId, ValueRule};
use zt::formats::{Packing, Quantization};
use zt::{
    Blob, Component, DType, Error, Object, RawComponent, RawObject, Result, Source, Span, Warning,
};
use zt_foreign::{FileKind, Input, Opening, Probe, fields::Record};

use crate::entry::{Entry, Raw};
use crate::header::{ENTRY_LEN, FIELDS_LEN, Header, MAGIC};
use crate::names::Resolver;
use crate::violation::Violation;

/// The kind of SLM1 files, of TinyRustLM.
pub const SLM1: Kind = Kind::new("slm1");

/// Recognises and opens SLM1 files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slm1;

impl FileKind for Slm1 {
    fn kind(&self) -> Kind {
        SLM1
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["slm"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        // Other formats have the same magic, so version and header length are checked too.
        let (head, record) = (probe.head(), Record(probe.head()));
        let fits = record.u32(4) == 1 && u64::from(record.u32(8)) >= FIELDS_LEN as u64;
        Ok(head.starts_with(&MAGIC) && fits)
    }

    /// Cost: reads the header, the directory and the first bytes of the tokenizer.
    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let source: Arc<dyn Source> = Arc::from(source);
        let mut tolerated = Vec::new();
        let header = Header::read(&source, &mut tolerated)?;
        header.check_tokenizer(&source, &mut tolerated)?;
        let mut builder = opening.builder(SLM1);
        builder.attributes(header.to_attributes());
        warn(&mut builder, &header);
        for error in tolerated {
            builder.tolerated(error);
        }
        let file = builder.source(Arc::clone(&source));

        // At most as long as the file.
        let directory = bytes_of(&source, header.directory)?;
        let (records, _) = directory.as_chunks::<ENTRY_LEN>();
        let records = records.iter().map(|record| Raw(Record(record)));
        let hashes = records.clone().map(Raw::name_hash);
        expect_unique(hashes.clone())?;
        let resolver = Resolver::new(hashes, header.layer_count, opening.options.names.as_ref());
        let mut tensors = Vec::with_capacity(records.len());
        let places = (header.directory.offset()..).step_by(ENTRY_LEN);
        for (record, at) in records.zip(places) {
            let mut tolerated = Vec::new();
            let entry = record.check(source.byte_len(), &mut tolerated);
            tensors.push(Tensor {
                name: resolver.name(record.name_hash()),
                record,
                entry: entry.map_err(|error| error.with_offset(at)),
                tolerated,
                at,
            });
        }
        blame_overlaps(&mut tensors);
        for tensor in tensors {
            tensor.add(&mut builder, file, &header);
        }
        if !header.tokenizer.is_empty() {
            let span = header.tokenizer;
            let data = Component::new(DType::U8, Blob::raw(span));
            let object = Object::new([span.byte_len()], "slm1.tokenizer/1");
            builder.object("tokenizer", object.with_component("data", data), file);
        }
        opening.build(builder)
    }
}

fn warn(builder: &mut FileBuilder, header: &Header) {
    let checksum = header.checksum;
    let message = format!("the algorithm of the checksum {checksum:#018x} is unpublished");
    builder.warning(Warning::new("unknown-digest", message));
    if let Some(len) = header.lost_extension {
        let message = format!("{len} bytes of unknown header fields are not kept");
        builder.warning(Warning::new("ambiguous", message));
    }
}

/// Refuses two tensors with one hash: they have one name.
fn expect_unique(hashes: impl Iterator<Item = u64>) -> Result<()> {
    let mut seen = HashSet::new();
    for hash in hashes {
        if !seen.insert(hash) {
            return Err(Violation::SameHash { hash }.into());
        }
    }
    Ok(())
}

/// A tensor that becomes an object.
struct Tensor<'r> {
    name: String,
    record: Raw<'r>,
    entry: Result<Entry>,
    /// Faults that only strict readers refuse.
    tolerated: Vec<Violation>,
    /// The offset of its entry.
    at: u64,
}

impl Tensor<'_> {
    fn add(self, builder: &mut FileBuilder, file: SourceId, header: &Header) {
        let Tensor { name, record, entry, mut tolerated, at } = self;
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                builder.fault(name, described(record), error);
                return;
            }
        };
        let offset = entry.payload.offset();
        if entry.payload.overlaps(header.span) || entry.payload.overlaps(header.directory) {
            tolerated.push(Violation::InDirectory);
        }
        for violation in tolerated {
            builder.tolerated(violation.at(at).with_object(&name));
        }
        if offset < header.data_offset {
            let data = header.data_offset;
            let message = Violation::BeforeData { offset, data }.to_string();
            builder.warning(Warning::new("ambiguous", message).with_object(&name));
        }
        let (role, rule) = match entry.groups {
            None => ("data", ValueRule::Finite),
            Some(_) => ("scales", ValueRule::Positive),
        };
        builder.strict_values(name.clone(), role, rule);
        builder.object(name, object(entry, record.name_hash()), file);
    }
}

/// The fields of a broken tensor, for listings.
fn described(record: Raw<'_>) -> RawObject {
    let mut data = RawComponent::default();
    data.offset = Some(record.0.u64(32));
    data.length = Some(record.0.u64(40));
    let mut raw = RawObject::default();
    raw.shape = Some(record.shape());
    raw.components = vec![("data".into(), data)];
    raw
}

/// The tensor as an object: dense, or groups that are rows or parts of rows.
fn object(entry: Entry, name_hash: u64) -> Object {
    let part = |dtype, span| Component::new(dtype, Blob::raw(span));
    let Some(groups) = entry.groups else {
        let data = part(DType::F32, entry.payload);
        let mut object = Object::new(entry.shape, "dense").with_component("data", data);
        object.attributes = Some([("slm1.name_hash", name_hash)].into());
        return object;
    };
    let (per_word, dtype) = if groups.bits == 8 { (1, DType::I8) } else { (2, DType::U8) };
    // A row is a whole number of groups, so groups of the flat order never cross rows.
    let packing = Packing { per_word, dtype };
    let mut quantization = Quantization::new(groups.bits, groups.len, packing);
    quantization.signed = true;
    let mut attributes = quantization.to_attributes();
    attributes.insert("slm1.name_hash", name_hash);
    let mut object = Object::new(entry.shape, "quantized_group")
        .with_component("packed_weight", part(dtype, entry.payload))
        .with_component("scales", part(DType::F32, groups.scales));
    object.attributes = Some(attributes);
    object
}

/// Marks tensors that overlap an earlier one as faulty. Equal ranges are tied weights and no fault.
#[expect(clippy::indexing_slicing, reason = "places in this list")]
fn blame_overlaps(tensors: &mut [Tensor<'_>]) {
    let mut spans: Vec<(Span, usize)> = Vec::new();
    for (tensor, place) in tensors.iter().zip(0..) {
        if let Ok(entry) = &tensor.entry {
            spans.extend([(entry.payload, place)]);
            spans.extend(entry.groups.map(|groups| (groups.scales, place)));
        }
    }
    spans.sort_by_key(|(span, place)| (span.offset(), span.byte_len(), *place));
    spans.dedup_by_key(|(span, _)| *span);
    let mut last: Option<(Span, usize)> = None;
    for (span, place) in spans {
        if let Some((_, owner)) = last.filter(|(other, _)| other.overlaps(span)) {
            let other = tensors[owner].name.clone();
            tensors[place].entry = Err(Error::from(Violation::Overlap { other }).with_span(span));
        }
        // The range that reaches furthest overlaps every later range within it.
        if last.is_none_or(|(other, _)| span.end() > other.end()) {
            last = Some((span, place));
        }
    }
}
