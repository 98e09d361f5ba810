//! The kind `npy`: one array, as `numpy.save` writes it.
//!
//! ```text
//! 0          6       8                            64 * k
//! +----------+-------+--------------+--------------+------------------------------------------+
//! | \x93     | major | length of    | header: a    | elements, row-major or, with             |
//! | "NUMPY"  | minor | header: u16  | dict of      | fortran_order, column-major; in the byte |
//! |          |       | or (2.0) u32 | Python, text | order of descr                           |
//! +----------+-------+--------------+--------------+------------------------------------------+
//! ```
//!
//! The header is a Python literal and is parsed as data: a dict of a string or a list, a bool and a
//! tuple of integers. Row-major elements are a range of the file, in either byte order. Column-major
//! elements are reordered when they are read. Reference: NumPy's `numpy.lib.format`, versions 1.0 to
//! 3.0.
//!
//! The file has no name for its array, so the array gets the name of the file. If its elements are no
//! numbers, the file has no tensor, and is sound.

use std::sync::Arc;

use zt::foreign::Kind;
use zt::{ErrorKind, Result, Source, Span};
use zt_foreign::{FileKind, FileWriter, Input, Opening, Probe, strided::Bands};

use crate::array::Data;
use crate::fault::NpyFault;
use crate::header::MAGIC;

/// One array of NumPy.
pub const NPY: Kind = Kind::new("npy");

/// The kind `npy`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Npy;

impl FileKind for Npy {
    fn kind(&self) -> Kind {
        NPY
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["npy"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(MAGIC))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let source: Arc<dyn Source> = source.into();
        let mut builder = opening.builder(NPY);
        let id = builder.source(Arc::clone(&source));
        let data = Data {
            span: Span::new(0, source.byte_len()).ok_or(NpyFault::Short)?,
            source,
            id,
            archive: (id, 0),
            digest_between: &|_, _| Ok(None),
            ml_dtypes: &opening.options.ml_dtypes,
        };
        let name = name_of(&opening);
        // A broken array is all of the file. An unsupported one is still listed.
        let refuses = |kind| kind != ErrorKind::Unsupported;
        data.add_to(&mut builder, &name, &Bands::default(), refuses)?;
        opening.build(builder)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

/// The name of the one tensor of a file: the name of the file, without its extension.
pub(crate) fn name_of(opening: &Opening<'_>) -> String {
    let stem = opening.path.and_then(|path| path.file_stem());
    stem.map_or("tensor".into(), |stem| stem.to_string_lossy().into_owned())
}
