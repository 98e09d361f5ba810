#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod bytes;
mod filters;
mod structures;
mod tree;
mod values;
mod vds;

use std::sync::Arc;

pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{Opening, Probe, archive};

use crate::bytes::store::whole;
use crate::structures::superblock;
use crate::tree::keras;
use crate::tree::listing::Tree;

/// HDF5 files.
pub const HDF5: Kind = Kind::new("hdf5");

/// The kind `hdf5`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hdf5;

impl FileKind for Hdf5 {
    fn kind(&self) -> Kind {
        HDF5
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["h5", "hdf5", "keras"]
    }

    fn read_from_end(&self) -> &'static [&'static str] {
        &["keras"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        // A file with the signature, or an archive with such a file.
        Ok(probe.head().starts_with(superblock::SIGNATURE) || keras::recognises(probe)?)
    }

    fn recognise_behind(&self, probe: &Probe<'_>) -> Result<bool> {
        let source = probe.source();
        if superblock::locate(source, whole(source)?)?.is_some() {
            return Ok(true);
        }
        let found = archive::behind_other_data(source)?;
        Ok(found.is_some_and(|archive| keras::has_weights(&archive)))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let source: Arc<dyn Source> = source.into();
        let mut builder = opening.builder(HDF5);
        let file = builder.source(Arc::clone(&source));
        let all = whole(&*source)?;
        // A superblock may follow a user block with any content, even one that looks like an archive.
        let is_hdf5 = superblock::locate(&*source, all)?.is_some();
        let extent = match keras::weights(&*source, is_hdf5, &mut builder)? {
            Some(member) => {
                let weights = keras::content(&member, &source)?;
                let span = weights.span;
                if weights.digest.is_some() {
                    builder.sum(Vec::new(), file, weights);
                }
                span
            }
            None => all,
        };
        let (store, root) = superblock::open(source, extent)?;
        let tree = Tree::new(&store, root, file, opening, builder.limits());
        let sources = tree.add_to(&mut builder)?;
        let mut paths = opening.paths();
        paths.extend(sources);
        Ok(Input::new(builder.build()?, paths))
    }
}
