//! The kind `dcp`: a checkpoint by its `.metadata`.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use zt::container::bytes_of;
use zt::foreign::{FileBuilder, Kind, SourceId};
use zt::{Blob, Error, ErrorKind, RawComponent, RawObject, Result, Source, Span};
use zt_foreign::slices::{Assembled, SliceFault, byte_len};
use zt_foreign::strided::Bands;
use zt_foreign::{FileKind, Input, Neighbours, Opening, Probe, Refusal};

use crate::item::Item;
use crate::metadata::{Entry, MODULE, Metadata, Place, Refused, Tensor};
use crate::violation::Violation;

/// Checkpoints of `torch.distributed.checkpoint`.
pub const DCP: Kind = Kind::new("dcp");

/// The longest pickle that is read. A chunk takes some 300 bytes.
const PICKLE_LEN: u64 = 256 << 20;

/// The bytes of a pickle in which the module of its first class is named.
const BEGINNING: usize = 64;

/// Recognises the `.metadata` of a checkpoint, and opens all of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dcp;

impl FileKind for Dcp {
    fn kind(&self) -> Kind {
        DCP
    }

    /// None: `.metadata` has no extension, and a file of items alone is not opened.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        let mut beginning = probe.head().chunks(BEGINNING);
        let beginning = beginning.next().unwrap_or_default();
        let module = MODULE.as_bytes();
        // The instruction PROTO.
        let is_pickle = beginning.first() == Some(&0x80);
        let mut windows = beginning.windows(module.len());
        Ok(is_pickle && windows.any(|window| window == module))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let mut builder = opening.builder(DCP);
        let found = source.byte_len();
        let limit = PICKLE_LEN.min(builder.limits().manifest_len);
        let whole = Span::new(0, found).filter(|_| found <= limit);
        let whole = whole.ok_or(Violation::TooLong { found, limit })?;
        let Metadata { files, entries, uses } = Metadata::read(&bytes_of(&source, whole)?)?;
        for found in uses {
            builder.tolerated(Error::new(ErrorKind::Unsupported, found.code(), found.to_string()));
        }
        builder.source(source);
        let mut neighbours = Neighbours::new(opening);
        let files = files.into_iter();
        let mut checkpoint = Checkpoint {
            files: files
                .map(|name| DataFile::open(name, opening.path, &mut neighbours, &mut builder))
                .collect(),
            bands: Bands::default(),
            builder,
        };
        for (name, entry) in entries {
            match entry {
                Ok(Entry::Tensor(tensor)) => checkpoint.add(name, tensor),
                Ok(Entry::Value) => checkpoint.builder.not_a_tensor(name, "a pickled value"),
                Err(refused) => checkpoint.refuse(name, refused),
            }
        }
        let mut paths = opening.paths();
        paths.extend(neighbours.into_paths());
        Ok(Input::new(checkpoint.builder.build()?, paths))
    }
}

/// A file of items.
struct DataFile {
    name: String,
    opened: Result<(Arc<dyn Source>, Arc<Path>, SourceId)>,
}

impl DataFile {
    fn open(
        name: String,
        from: Option<&Path>,
        neighbours: &mut Neighbours<'_>,
        builder: &mut FileBuilder,
    ) -> Self {
        let opened = match neighbours.open(from, &name) {
            Ok((source, path)) => {
                let source: Arc<dyn Source> = Arc::from(source);
                let id = builder.source(Arc::clone(&source));
                Ok((source, path.into(), id))
            }
            Err(refusal) => {
                let file = name.clone();
                Err(match refusal {
                    Refusal::NeedsPath => Violation::NeedsPath { file }.into(),
                    Refusal::Missing => Violation::NoFile { file }.into(),
                    Refusal::Location(why) => Violation::Location { file, why }.into(),
                    Refusal::Failed(error) => error,
                })
            }
        };
        DataFile { name, opened }
    }
}

/// A checkpoint that is being opened.
struct Checkpoint {
    files: Vec<DataFile>,
    bands: Bands,
    builder: FileBuilder,
}

impl Checkpoint {
    fn add(&mut self, name: String, tensor: Tensor) {
        let meaning = tensor.element.meaning;
        match self.assemble(&tensor) {
            Ok((source, span)) => {
                let data = meaning.component(Blob::raw(span));
                let object = meaning.object(tensor.values_shape(), data);
                self.builder.object(name, object, source);
            }
            Err(error) => {
                let raw = raw(Some(tensor.shape), Some(meaning.dtype().as_str()));
                self.builder.fault(name, raw, error);
            }
        }
    }

    /// A source of all elements. A listing shows the place of its first chunk.
    fn assemble(&mut self, tensor: &Tensor) -> Result<(SourceId, Span)> {
        let mut first = None;
        let mut slices = Vec::with_capacity(tensor.chunks.len());
        for (slice, place) in &tensor.chunks {
            let (item, id) = self.item(tensor, &slice.sizes, *place)?;
            first.get_or_insert((id, place.span.offset()));
            slices.push((slice.clone(), Arc::new(item) as Arc<dyn Source>));
        }
        let element_len = tensor.element.byte_len;
        let assembled = Assembled::new(&tensor.shape, element_len, slices)?;
        let span = Span::new(0, tensor.byte_len).ok_or(SliceFault::Overflow)?;
        let id = match first {
            Some((id, offset)) => self.builder.derived_from(assembled, id, offset),
            None => self.builder.derived(assembled),
        };
        Ok((id, span))
    }

    fn item(&self, tensor: &Tensor, sizes: &[u64], place: Place) -> Result<(Item, SourceId)> {
        let none = || Violation::Missing { name: "file" };
        let file = self.files.get(place.file).ok_or_else(none)?;
        let (source, path, id) = file.opened.as_ref().map_err(Error::clone)?;
        let (needed, available) = (place.span.end(), source.byte_len());
        if needed > available {
            let file = file.name.clone();
            return Err(Violation::Truncated { file, needed, available }.into());
        }
        let element = tensor.element;
        let expected = byte_len(sizes, element.byte_len).ok_or(SliceFault::Overflow)?;
        // The elements are stored as they are: a chunk of any sizes is never longer than its item.
        let found = place.span.byte_len();
        if expected > found {
            return Err(Violation::ItemLength { expected, found }.into());
        }
        let item = Item {
            file: Arc::clone(source),
            path: Arc::clone(path),
            span: place.span,
            element,
            sizes: sizes.to_vec(),
            byte_len: expected,
            limits: *self.builder.limits(),
            bands: self.bands.clone(),
            elements: OnceLock::new(),
        };
        Ok((item, *id))
    }

    fn refuse(&mut self, name: String, refused: Refused) {
        let dtype = refused.element.map(|element| element.meaning.dtype().as_str());
        let raw = raw(refused.shape, dtype);
        self.builder.fault(name, raw, refused.fault.into());
    }
}

/// What a listing shows of a tensor that is refused.
fn raw(shape: Option<Vec<u64>>, dtype: Option<&'static str>) -> RawObject {
    let mut raw = RawObject::default();
    raw.shape = shape;
    raw.format = Some("dense".into());
    if let Some(dtype) = dtype {
        let mut data = RawComponent::default();
        data.dtype = Some(dtype.into());
        raw.components = vec![("data".into(), data)];
    }
    raw
}
