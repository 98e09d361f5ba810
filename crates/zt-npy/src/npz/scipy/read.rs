//! Reads a matrix.

use std::collections::HashMap;

use zt::container::check_digest;
use zt::container::memory::zeroed;
use zt::foreign::{FileBuilder, SourceId};
use zt::{Blob, Component, DType, ErrorKind, Object, RawObject, Result, Source, Span};
use zt_foreign::Meaning;
use zt_foreign::sparse::{Axis, Compressed, Coords, Diagonals, Indices};
use zt_zip::{Archive, Member};

use super::{COL, FORMAT, INDICES, INDPTR, IS_ARRAY, OFFSETS, ROW, SHAPE, VALUES};
use crate::array::{Array, Data, Found};
use crate::fault::NpyFault;
use crate::header::Header;
use crate::npz::{ENDING, Shared, listed};

/// The layouts, each with its members beside `format`, `shape` and `data`.
const LAYOUTS: [(&str, &[&str]); 5] = [
    ("csr", &[INDICES, INDPTR]),
    ("csc", &[INDICES, INDPTR]),
    ("bsr", &[INDICES, INDPTR]),
    ("coo", &[ROW, COL]),
    ("dia", &[OFFSETS]),
];

/// The most bytes of the member `format`. NumPy's header has 128.
const FORMAT_LEN: u64 = 1 << 10;

/// Adds the matrix of the archive under `name`. Returns `false` if the archive has none.
pub(in crate::npz) fn add(
    builder: &mut FileBuilder,
    archive: &Archive,
    shared: &Shared<'_>,
    name: &str,
) -> Result<bool> {
    let members: HashMap<&str, &Member> = archive
        .members()
        .iter()
        .filter_map(|member| Some((member.name().strip_suffix(ENDING)?, member)))
        .collect();
    let is_known = |member: &Member| {
        let all = [FORMAT, SHAPE, VALUES, INDICES, INDPTR, ROW, COL, OFFSETS, IS_ARRAY];
        member.name().strip_suffix(ENDING).is_some_and(|name| all.contains(&name))
    };
    let (Some(values), true) = (members.get(VALUES), archive.members().iter().all(is_known)) else {
        return Ok(false);
    };
    let mut parts = MatrixMembers { builder, members: &members, shared, name };
    let found = match parts.layout() {
        Ok(Some(layout)) => parts.matrix(layout),
        Ok(None) => return Ok(false),
        Err(error) => Err(error),
    };
    match found {
        Ok((object, sources)) => builder.object_across(name, object, sources),
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        Err(error) => builder.fault(name, listed(values), error),
    }
    Ok(true)
}

/// The members of an archive that may be a matrix.
struct MatrixMembers<'p> {
    builder: &'p mut FileBuilder,
    members: &'p HashMap<&'p str, &'p Member>,
    shared: &'p Shared<'p>,
    name: &'p str,
}

/// A component, and the source of its values.
type Placed = (Component, SourceId);

impl MatrixMembers<'_> {
    /// The layout that `format` names, if its other members are there.
    fn layout(&mut self) -> Result<Option<&'static str>> {
        let has = |part: &&str| self.members.contains_key(*part);
        if ![FORMAT, SHAPE].iter().all(has) {
            return Ok(None);
        }
        let layouts = LAYOUTS.iter().filter(|(_, parts)| parts.iter().all(has));
        let layouts: Vec<&str> = layouts.map(|(layout, _)| *layout).collect();
        if layouts.is_empty() {
            return Ok(None);
        }
        let found = self.with(FORMAT, |data, _| text(data))?;
        Ok(layouts.into_iter().find(|layout| Some(*layout) == found.as_deref()))
    }

    fn with<T>(
        &mut self,
        part: &'static str,
        take: impl FnOnce(&Data<'_>, &mut FileBuilder) -> Result<T>,
    ) -> Result<T> {
        let member = self.members.get(part).ok_or(NpyFault::Missing { part })?;
        let content = self.shared.content(member)?;
        self.shared.with_data(self.builder, member, &content, take)
    }

    fn array(&mut self, part: &'static str) -> Result<Array> {
        let (name, bands) = (self.name, self.shared.bands.clone());
        let found = self.with(part, |data, builder| {
            data.find(&mut RawObject::default(), builder, &bands, name)
        });
        let what = match found.map_err(|error| error.with_component(part))? {
            Found::Array(array) if matches!(array.element.meaning, Meaning::Values(..)) => {
                return Ok(array);
            }
            Found::Array(_) => "values of less than a byte",
            Found::Other(what) => what,
        };
        Err(NpyFault::PartDtype { part, what }.into())
    }

    fn indices(&mut self, part: &'static str) -> Result<Indices> {
        let array = self.array(part)?;
        rank(part, 1, &array)?;
        let Meaning::Values(dtype, None) = array.element.meaning else {
            let what = "no integers";
            return Err(NpyFault::PartDtype { part, what }.into());
        };
        let byte_order = array.element.byte_order;
        Ok(Indices::new(array.source, array.blob, dtype, byte_order)?)
    }

    /// The object, with the sources of its components.
    fn matrix(&mut self, layout: &str) -> Result<(Object, Vec<SourceId>)> {
        let shape = self.shape()?;
        let values = self.array(VALUES)?;
        rank(
            VALUES,
            match layout {
                "bsr" => 3,
                "dia" => 2,
                _ => 1,
            },
            &values,
        )?;
        if layout == "csr" {
            let parts = [
                ("values", (values.component(), values.id)),
                (INDICES, self.as_u64(INDICES)?),
                (INDPTR, self.as_u64(INDPTR)?),
            ];
            return Ok(object(shape, "sparse_csr", parts));
        }
        if layout == "dia" {
            let offsets = self.indices(OFFSETS)?;
            let [diagonals, pitch] = *values.shape else {
                return Err(NpyFault::Overflow.into());
            };
            let diagonals = Diagonals::new(shape, [diagonals, pitch], &offsets)?;
            let mut component = values.component();
            let width = values.element.byte_len;
            let gathered = diagonals.values(values.source, values.blob, width)?;
            let (blob, id) = self.derived(VALUES, gathered)?;
            component.blob = blob;
            let parts =
                [("values", (component, id)), ("coords", self.coords(diagonals.coords()?)?)];
            return Ok(object(shape, "sparse_coo", parts));
        }
        let coords = match (layout, &*values.shape) {
            ("coo", _) => Coords::listed([self.indices(ROW)?, self.indices(COL)?])?,
            ("bsr", &[_, height, width]) => {
                self.compressed(Compressed::Rows, shape, [height, width])?
            }
            _ => self.compressed(Compressed::Columns, shape, [1, 1])?,
        };
        let parts = [("values", (values.component(), values.id)), ("coords", self.coords(coords)?)];
        Ok(object(shape, "sparse_coo", parts))
    }

    fn compressed(&mut self, by: Compressed, shape: [u64; 2], block: [u64; 2]) -> Result<Coords> {
        let (pointers, indices) = (self.indices(INDPTR)?, self.indices(INDICES)?);
        Ok(Coords::compressed(by, shape, block, pointers, indices)?)
    }

    /// Rows and columns.
    fn shape(&mut self) -> Result<[u64; 2]> {
        let indices = self.indices(SHAPE)?;
        let mut shape = [0; 2];
        if indices.count() != 2 {
            return Err(NpyFault::Shape.into());
        }
        indices.fill(0, &mut shape)?;
        // The sign of a negative dimension.
        if shape.iter().any(|dimension| dimension.cast_signed() < 0) {
            return Err(NpyFault::Shape.into());
        }
        Ok(shape)
    }

    /// Indices as u64 (decision D10). Those of 64 bits are read where they are: a negative one is out of
    /// range of every shape.
    fn as_u64(&mut self, part: &'static str) -> Result<Placed> {
        let array = self.array(part)?;
        rank(part, 1, &array)?;
        if matches!(array.element.meaning.dtype(), DType::I64 | DType::U64) {
            let mut component = array.component();
            component.dtype = Some(DType::U64);
            return Ok((component, array.id));
        }
        let indices = self.indices(part)?;
        let (blob, id) = self.derived(part, Coords::listed([indices])?)?;
        Ok((Component::new(DType::U64, blob), id))
    }

    fn coords(&mut self, coords: Coords) -> Result<Placed> {
        let (blob, id) = self.derived(VALUES, coords)?;
        Ok((Component::new(DType::U64, blob), id))
    }

    /// Adds values that are made of a member.
    fn derived(
        &mut self,
        part: &'static str,
        source: impl Source + 'static,
    ) -> Result<(Blob, SourceId)> {
        let all = Span::new(0, source.byte_len()).ok_or(NpyFault::Overflow)?;
        let member = self.members.get(part).ok_or(NpyFault::Missing { part })?;
        let id = self.builder.derived_from(source, self.shared.id, member.header());
        Ok((Blob::raw(all), id))
    }
}

fn object<const N: usize>(
    shape: [u64; 2],
    format: &'static str,
    parts: [(&'static str, Placed); N],
) -> (Object, Vec<SourceId>) {
    let mut object = Object::new(shape, format);
    let mut sources = Vec::with_capacity(N);
    for (role, (component, source)) in parts {
        object = object.with_component(role, component);
        sources.push(source);
    }
    (object, sources)
}

fn rank(part: &'static str, expected: usize, array: &Array) -> Result<(), NpyFault> {
    let found = array.shape.len();
    if found == expected {
        return Ok(());
    }
    Err(NpyFault::PartRank { part, expected, found })
}

/// The text of an array without dimensions; `None` if it is something else. Python 2 wrote `<U3`.
fn text(data: &Data<'_>) -> Result<Option<String>> {
    if data.span.byte_len() > FORMAT_LEN {
        return Ok(None);
    }
    let header = Header::read(&data.source, data.span)?;
    let is_text = |descr: &str| descr.starts_with("|S") || descr.starts_with("<U");
    if !header.shape.is_empty() || !header.descr.as_deref().is_some_and(is_text) {
        return Ok(None);
    }
    let end = Span::new(data.span.end(), 0).ok_or(NpyFault::Short)?;
    let mut blob = Blob::raw(data.span);
    blob.digest = (data.digest_between)(&[], end)?;
    let mut bytes = zeroed(data.span.byte_len())?;
    data.source.read_at(data.span.offset(), &mut bytes)?;
    check_digest(&blob, &bytes)?;
    let text = bytes.get(header.bytes.len()..).ok_or(NpyFault::Short)?;
    // The other bytes of a character are 0, and so is what fills an array up.
    let text = text.iter().filter(|byte| **byte != 0);
    Ok(Some(text.map(|byte| char::from(*byte)).collect()))
}
