//! Joins safetensors files that hold slices of the same tensors.
//!
//! ```text
//! shard-00001-model-00001-of-00001.safetensors   w: rows 0 and 1   DCP_SHARDING_INFO: offsets [0, 0]
//! shard-00002-model-00001-of-00001.safetensors   w: rows 2 and 3   DCP_SHARDING_INFO: offsets [2, 0]
//! ```
//!
//! `HuggingFaceStorageWriter` of torch writes them: one file for each process, and no index. The files do not
//! state the shape of the whole tensor, which ends where the last slice ends.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use zt::foreign::{FileBuilder, SourceId, WarningKind};
use zt::{Blob, Object, OpenOptions, RawObject, Result, Source, Span, Tensor, Warning};
use zt_foreign::slices::{
    Assembled, SHARDING_INFO, Section, Slice, SliceFault, byte_len, saved_offsets,
};
use zt_foreign::{DATA, Input, display};

use crate::merge::union::Union;

/// The keys that hold for a file of slices only.
const OF_SLICES: [&str; 2] = [SHARDING_INFO, "DCP_VERSION"];

/// The kind of the files.
const SAFETENSORS: &str = "safetensors";

/// The inputs, with one in the place of all safetensors files that note the offsets of slices in
/// `DCP_SHARDING_INFO`. Its tensors are whole. A single such file stays as it is.
///
/// A tensor has a fault if there is a gap between its slices, if several slices have an element, or if the
/// slices have different types.
///
/// # Errors
///
/// Code `header` for invalid offsets; the fault of a slice.
pub fn join_slices(inputs: &[Input]) -> Result<Cow<'_, [Input]>> {
    let mut parts = Vec::new();
    let mut others = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        match Part::of(input).map_err(|error| input.blame(error))? {
            Some(part) => parts.push((at, part)),
            None => others.push(input),
        }
    }
    let [(first, _), _, ..] = parts[..] else {
        return Ok(Cow::Borrowed(inputs));
    };
    let joined = join(parts.into_iter().map(|(_, part)| part).collect())?;
    let mut all: Vec<Input> = others.into_iter().cloned().collect();
    // All inputs before the first of them are others.
    all.insert(first, joined);
    Ok(Cow::Owned(all))
}

/// The files of slices in a folder, as the file that the folder stands for. Inputs without offsets are left out.
///
/// # Errors
///
/// As [`join_slices`]; if there are none.
pub fn join_folder(inputs: &[Input], folder: impl AsRef<Path>) -> Result<Input> {
    let folder = folder.as_ref();
    let parts = inputs.iter().filter_map(|input| Part::of(input).transpose());
    let joined = parts.collect::<Result<_>>().and_then(join);
    let joined = joined.map_err(|error| error.with_path(folder))?;
    let mut paths = vec![folder.to_owned()];
    paths.extend_from_slice(joined.paths());
    Ok(Input::new(joined.into_file(), paths))
}

/// A file of slices.
struct Part<'i> {
    input: &'i Input,
    offsets: HashMap<String, Vec<u64>>,
}

impl<'i> Part<'i> {
    /// `None` for a file that notes no offsets.
    fn of(input: &'i Input) -> Result<Option<Self>> {
        if input.file().kind().as_str() != SAFETENSORS {
            return Ok(None);
        }
        let attributes = input.file().attributes()?.unwrap_or_default();
        let Some(text) = attributes.get(SHARDING_INFO).and_then(|it| it.as_str()) else {
            return Ok(None);
        };
        Ok(Some(Part { input, offsets: saved_offsets(text)?.into_iter().collect() }))
    }
}

/// A slice of a tensor: the position of its file, its place, and its elements.
struct Piece<'i> {
    part: usize,
    slice: Slice,
    tensor: Tensor<'i>,
}

fn join(parts: Vec<Part<'_>>) -> Result<Input> {
    let kind = parts.first().map(|part| part.input.file().kind());
    let kind = kind.ok_or(SliceFault::Gap { at: Vec::new() })?;
    let mut builder = FileBuilder::new(kind, OpenOptions::new());
    let mut names = Vec::new();
    let mut pieces: HashMap<&str, Vec<Piece<'_>>> = HashMap::new();
    let mut attributes = Union::default();
    let mut paths = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let blame = |error| part.input.blame(error);
        let file = part.input.file();
        for entry in file.entries() {
            let tensor = entry.tensor().map_err(blame)?;
            let sizes = tensor.shape().to_vec();
            let offsets = part.offsets.get(entry.name()).cloned();
            let offsets = offsets.unwrap_or_else(|| vec![0; sizes.len()]);
            let slice = Slice { offsets, sizes };
            let of_name = pieces.entry(entry.name()).or_default();
            if of_name.is_empty() {
                names.push(entry.name());
            }
            of_name.push(Piece { part: at, slice, tensor });
        }
        for (key, value) in file.attributes().map_err(blame)?.unwrap_or_default() {
            let is_own = key.as_str().is_some_and(|key| OF_SLICES.contains(&key));
            if !is_own && let Some(key) = attributes.insert(key, value)? {
                let message = format!("{} has two values; the first is kept", display(&key));
                builder.warning(Warning::new("attribute-conflict", message));
            }
        }
        let warnings = file.warnings().into_iter();
        let kept = warnings.filter(|warning| warning.kind != WarningKind::Part);
        kept.for_each(|warning| builder.warning(warning));
        paths.extend_from_slice(part.input.paths());
    }
    let mut sources = HashMap::new();
    for name in names {
        let pieces = pieces.remove(name).unwrap_or_default();
        if let Err(fault) = add(&mut builder, &mut sources, name, &pieces) {
            builder.fault(name, RawObject::default(), fault);
        }
    }
    let attributes = attributes.into_map();
    if !attributes.is_empty() {
        builder.attributes(attributes);
    }
    Ok(Input::new(builder.build()?, paths))
}

/// Adds a tensor: a range of its file if that has all of it. `sources` has the files that were added.
fn add(
    builder: &mut FileBuilder,
    sources: &mut HashMap<usize, SourceId>,
    name: &str,
    pieces: &[Piece<'_>],
) -> Result<()> {
    let Some(first) = pieces.first() else {
        return Ok(());
    };
    let shape = shape_of(pieces)?;
    let mut component = first.tensor.component(DATA)?.clone();
    let mut element_len = 1;
    let mut place = None;
    let mut slices = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (source, span) = piece.tensor.stored_bytes(DATA)?;
        let id = sources.entry(piece.part);
        let id = *id.or_insert_with(|| builder.source(Arc::clone(&source)));
        if pieces.len() == 1 && piece.slice.sizes == shape {
            let object = Object::new(shape, "dense").with_component(DATA, component);
            builder.object(name, object, id);
            return Ok(());
        }
        let other = piece.tensor.component(DATA)?;
        if (other.dtype, &other.logical_type) != (component.dtype, &component.logical_type) {
            return Err(SliceFault::Types.into());
        }
        place.get_or_insert((id, span.offset()));
        let count = byte_len(&piece.slice.sizes, 1).ok_or(SliceFault::Overflow)?;
        if let Some(len) = span.byte_len().checked_div(count) {
            if len == 0 || len.checked_mul(count) != Some(span.byte_len()) {
                return Err(SliceFault::Packed.into());
            }
            element_len = len;
        }
        let section: Arc<dyn Source> = Arc::new(Section::new(source, span));
        slices.push((piece.slice.clone(), section));
    }
    let assembled = Assembled::new(&shape, element_len, slices)?;
    let span = Span::new(0, assembled.byte_len()).ok_or(SliceFault::Overflow)?;
    component.blob = Blob::raw(span);
    let source = match place {
        Some((id, offset)) => builder.derived_from(assembled, id, offset),
        None => builder.derived(assembled),
    };
    let object = Object::new(shape, "dense").with_component(DATA, component);
    builder.object(name, object, source);
    Ok(())
}

/// The shape in which all slices of a tensor lie.
fn shape_of(pieces: &[Piece<'_>]) -> Result<Vec<u64>, SliceFault> {
    let mut shape: Vec<u64> = Vec::new();
    for Piece { slice, .. } in pieces {
        let rank = slice.sizes.len();
        shape.resize(rank.max(shape.len()), 0);
        if slice.offsets.len() != shape.len() || rank != shape.len() {
            return Err(SliceFault::Rank { expected: shape.len(), found: slice.offsets.len() });
        }
        let ends = slice.offsets.iter().zip(&slice.sizes);
        for (count, (offset, size)) in shape.iter_mut().zip(ends) {
            let end = offset.checked_add(*size).ok_or(SliceFault::Overflow)?;
            *count = end.max(*count);
        }
    }
    Ok(shape)
}
