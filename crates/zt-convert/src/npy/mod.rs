//! The member `npy`: one array, as `numpy.save` writes it. Also the ground of `npz`.
//!
//! ```text
//! 0          6       8                            64 * k
//! +----------+-------+--------------+--------------+------------------------------------------+
//! | \x93     | major | length of    | header: a    | elements, row-major or, with             |
//! | "NUMPY"  | minor | header: u16  | dict of      | fortran_order, column-major; in the byte |
//! |          |       | or (2.0) u32 | Python, text | order that descr says                    |
//! +----------+-------+--------------+--------------+------------------------------------------+
//! ```
//!
//! The header looks like Python and is read as data: a dict of a text or a list, a bool and a
//! tuple of integers, and nothing else. Elements that lie row-major stay a range of the file, of
//! either byte order; those of `fortran_order` are put in order as they are read. Reference:
//! NumPy's `numpy.lib.format`, versions 1.0 to 3.0.
//!
//! The array has no name in the file: it is named after the file.

mod array;
mod descr;
mod header;
mod literal;
mod violation;
mod write;

use std::sync::Arc;

use zt::{ErrorKind, FileBuilder, Result, Source, Span};

use crate::detect::Probe;
use crate::input::{Input, Origin};
use crate::member::{Member, NPY};
use crate::strided::Bands;

#[cfg(feature = "npz")]
pub(crate) use array::Data;
pub(crate) use header::MAGIC;
#[cfg(feature = "npz")]
pub(crate) use write::{Array, refuse_attributes};

pub(crate) const MEMBER: Member = Member {
    kind: NPY,
    extensions: &["npy"],
    recognises: |probe: &Probe<'_>| Ok(probe.head().starts_with(MAGIC)),
    open,
    write: Some(write::write),
};

/// The name of an array in a file that has no name.
const NAMELESS: &str = "tensor";

fn open(source: Box<dyn Source>, origin: Origin<'_>) -> Result<Input> {
    let source: Arc<dyn Source> = source.into();
    let mut builder = FileBuilder::new(NPY, origin.options.clone());
    let id = builder.source(Arc::clone(&source));
    let data = array::Data {
        span: Span::new(0, source.byte_len()).unwrap_or_default(),
        source,
        id,
        archive: (id, 0),
        digest_behind: &|_| None,
        void2_is_bf16: origin.void2_as_bf16,
    };
    let stem = origin.path.and_then(|path| path.file_stem());
    let name = stem.map_or(NAMELESS.into(), |stem| stem.to_string_lossy().into_owned());
    // Broken, there is nothing else in the file; without a meaning it is listed as what it is.
    let refuses = |kind| kind != ErrorKind::Unsupported;
    data.add_to(&mut builder, &name, &Bands::default(), refuses)?;
    let paths = origin.path.map(ToOwned::to_owned).into_iter().collect();
    Ok(Input::new(builder.build()?, paths))
}
