//! The kind `zt2`: a file as a [`zt::File`].

use std::collections::HashMap;
use std::sync::Arc;

use twox_hash::XxHash3_64;
use zt::container::bytes_of;
use zt::foreign::{FileBuilder, Kind, SourceId};
use zt::formats::PackedType;
use zt::manifest::Text;
use zt::{Blob, Component, Digest, Error, Object, Result, Source, Span, Warning};
use zt_foreign::{FileKind, Input, Opening, Probe};

use crate::footer::{Footer, MAGIC};
use crate::manifest::{Entry, Manifest, abridged};
use crate::object::{COO, CSR, DENSE, F4, StoredPart, outside};
use crate::overlap::overlapping;
use crate::profiles::{RisingCsr, UniqueCoo};
use crate::seekable::{Kept, Seekable};
use crate::shards::{Home, Homes};
use crate::violation::Violation;

/// The kind of zTensor 2 files. Their extension is `.zt` too.
pub const ZT2: Kind = Kind::new("zt2");

/// Recognises and opens files of zTensor 2.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZTensor2;

impl FileKind for ZTensor2 {
    fn kind(&self) -> Kind {
        ZT2
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["zt"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&MAGIC))
    }

    /// Cost: reads the footer, the manifest, and the last byte of each packed array with an odd number
    /// of elements.
    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let source: Arc<dyn Source> = source.into();
        let mut builder = opening.builder(ZT2);
        builder.format(RisingCsr);
        builder.format(UniqueCoo);
        let footer = Footer::read(&source, builder.limits())?;
        let id = builder.source(Arc::clone(&source));
        let mut manifest = Manifest::default();
        if let Some((span, expected)) = footer.manifest {
            let bytes = bytes_of(&source, span)?;
            let found = XxHash3_64::oneshot(&bytes);
            if found != expected {
                return Err(
                    Error::from(Violation::ManifestHash { expected, found }).with_span(span)
                );
            }
            manifest = Manifest::parse(&bytes, span.offset(), builder.limits())?;
        } else {
            let message = "this is a shard; open the file that describes its bytes";
            builder.warning(Warning::new("shard", message));
        }
        if let Some(attributes) = manifest.attributes.take() {
            builder.attributes(attributes);
        }
        let root = Home { id, source, region: footer.data };
        let manifest_span = footer.manifest.map(|(span, _)| span);
        let homes = Homes::new(root, opening, &manifest.shards);
        let paths = Reader { builder: &mut builder, homes, kept: Kept::default() }
            .add(manifest.objects, manifest_span);
        Ok(Input::new(builder.build()?, paths))
    }
}

struct Reader<'a> {
    builder: &'a mut FileBuilder,
    homes: Homes<'a>,
    kept: Kept,
}

/// An object's map, and its parts if it is valid.
type Checked = (Result<Vec<StoredPart>>, Entry);

/// The components of an object, and the source of each.
type Placed = (Vec<(Text, Component)>, Vec<SourceId>);

/// The partly overlapping ranges of each file, by shard. Each leads to the offset of another range.
type Overlaps = HashMap<Option<String>, HashMap<Span, u64>>;

impl Reader<'_> {
    /// Adds all objects. Returns the paths of all opened files.
    fn add(mut self, entries: Vec<Entry>, manifest: Option<Span>) -> Vec<std::path::PathBuf> {
        let checked = entries.into_iter().map(|entry| (entry.check(), entry));
        let checked: Vec<Checked> = checked.collect();
        let overlaps = self.overlaps(&checked, manifest);
        for (parts, mut entry) in checked {
            let placed = parts.and_then(|parts| self.place(&entry, parts, &overlaps));
            match placed {
                Ok((mut components, sources)) => {
                    let mut format = format_of(entry.raw.format.take().unwrap_or_default());
                    if let [(_, data)] = &mut *components
                        && format == DENSE
                        && data.logical_type.take_if(|name| name == F4).is_some()
                    {
                        format = PackedType::F4E2M1Fn.format().into();
                    }
                    let shape = entry.raw.shape.take().unwrap_or_default();
                    let mut object = Object::new(shape, format);
                    object.attributes = entry.raw.attributes.take();
                    object.components = components;
                    self.builder.object_across(entry.name, object, sources);
                }
                Err(error) => self.builder.fault(entry.name, entry.raw, error),
            }
        }
        self.homes.into_paths()
    }

    /// The overlaps of each file. A blob that leaves its file has another fault, and does not count.
    fn overlaps(&self, checked: &[Checked], manifest: Option<Span>) -> Overlaps {
        let mut by_shard: HashMap<Option<String>, Vec<Span>> = HashMap::new();
        by_shard.insert(None, manifest.into_iter().collect());
        for (parts, entry) in checked {
            for (shard, part) in entry.shards.iter().zip(parts.iter().flatten()) {
                let region = self.homes.region(shard.as_deref());
                if !region.is_some_and(|region| region.contains(part.stored)) {
                    continue;
                }
                let spans = by_shard.entry(shard.clone()).or_default();
                spans.push(part.stored);
            }
        }
        let by_shard = by_shard.into_iter();
        let found = by_shard.map(|(shard, spans)| (shard, overlapping(spans)));
        found.collect()
    }

    /// Opens the file of each part, and makes a component of the part.
    fn place(
        &mut self,
        entry: &Entry,
        parts: Vec<StoredPart>,
        overlaps: &Overlaps,
    ) -> Result<Placed> {
        let mut components = Vec::with_capacity(parts.len());
        let mut sources = Vec::with_capacity(parts.len());
        let described = entry.raw.components.iter().zip(&entry.shards);
        for (((role, _), shard), part) in described.zip(parts) {
            let blame = |error: Error| error.with_component(role);
            let others = overlaps.get(shard);
            if let Some(other) = others.and_then(|others| others.get(&part.stored)) {
                let overlap = Violation::Overlap { other: *other };
                return Err(blame(overlap.into()).with_span(part.stored));
            }
            let home = self.homes.get(shard.as_deref(), self.builder);
            let home = home.map_err(blame)?;
            if let Some(Digest::Unknown { algorithm, .. }) = &part.digest {
                let algorithm = abridged(algorithm);
                let message = format!("the digest is not checked: \"{algorithm}\" is unknown");
                let warning = Warning::new("unknown-digest", message);
                let warning = warning.with_object(&entry.name);
                self.builder.warning(warning.with_component(&**role));
            }
            let (component, source) = self.component(entry, part, &home).map_err(blame)?;
            components.push((role.clone(), component));
            sources.push(source);
        }
        Ok((components, sources))
    }

    fn component(
        &mut self,
        entry: &Entry,
        part: StoredPart,
        home: &Home,
    ) -> Result<(Component, SourceId)> {
        let (stored, is_packed) = (part.stored, part.logical_type.as_deref() == Some(F4));
        if !home.region.contains(stored) {
            return Err(outside(stored.offset(), stored.byte_len(), home.region));
        }
        let (span, source, id) = match part.decoded_len {
            None => (stored, Arc::clone(&home.source), home.id),
            Some(decoded_len) => {
                let limits = self.builder.limits();
                let base = Arc::clone(&home.source);
                let decoded = Seekable::new(base, stored, decoded_len, limits, &self.kept)?;
                let decoded: Arc<dyn Source> = Arc::new(decoded);
                let builder = &mut self.builder;
                let id = builder.derived_from(Arc::clone(&decoded), home.id, stored.offset());
                let span = Span::new(0, decoded_len).ok_or(Violation::Overflow)?;
                (span, decoded, id)
            }
        };
        if is_packed && entry.raw.format.as_deref() == Some(DENSE) && entry.is_odd() {
            check_nibble(&source, span)?;
        }
        let mut component = Component::new(part.dtype, Blob::raw(span));
        component.logical_type = part.logical_type;
        component.blob.digest = part.digest;
        Ok((component, id))
    }
}

impl Entry {
    fn is_odd(&self) -> bool {
        let shape = self.raw.shape.as_deref().unwrap_or_default();
        shape.iter().all(|dimension| dimension % 2 == 1)
    }
}

/// Checks the unused half of the last byte, for an odd number of packed elements. Spec: Appendix A.
fn check_nibble(source: &dyn Source, span: Span) -> Result<()> {
    let Some(at) = span.end().checked_sub(1).filter(|_| !span.is_empty()) else {
        return Ok(());
    };
    let mut last = [0];
    source.read_at(at, &mut last)?;
    match last {
        [byte] if byte > 0x0F => Err(Error::from(Violation::Nibble { byte }).with_offset(at)),
        _ => Ok(()),
    }
}

fn format_of(layout: Text) -> Text {
    match &*layout {
        CSR => "sparse_csr".into(),
        COO => "sparse_coo".into(),
        _ => layout,
    }
}
