//! HDF5 files as tensors: files of Keras, h5py, PyTables and MATLAB.
//!
//! ```text
//! superblock -> object header of the root group -> links -> object headers -> data
//!                                                           | dataspace: the shape
//!                                                           | datatype:  the elements
//!                                                           | layout:    where the values are
//!                                                           | filters:   how chunks are stored
//! ```
//!
//! Every dataset is an object with the name of its path, without the leading slash. If several links
//! lead to it, it is listed under each. Contiguous and compact values are ranges of the file, in
//! either byte order; chunks are decoded when they are read (`chunked`). The names of an
//! enumeration are the attribute `hdf5.enum`.
//!
//! Virtual datasets take their values from other datasets when they are read (`vds`).
//!
//! Strings, records, references and null dataspaces are not tensors. They are warnings of code
//! `not-tensor`, and the file is sound. These are listed with a fault:
//!
//! * data in another place: external files, links to other files, sources outside the file's folder
//! * chunks with an unsupported filter
//!
//! An archive of Keras is opened as the file of weights in it (`keras`).
//!
//! Structures refer to each other by address, in hostile files again and again. So a length is
//! compared with the file before memory is reserved. The bytes of structures that are read are
//! limited to a few lengths of the file (`store`), and so are the bytes that chunks are decoded to.
//! Values that were never written are made while they are read. They count when a file is listed: all datasets that
//! are no ranges of the file make at most what its bytes can be decoded to, and `decoded_len` (64 GiB) in addition.
//!
//! This reader is our own. `hdf5-reader` 0.12 (30,000 lines) has the same filters and lz4, but no lzf.
//! It lists a group as a whole or not at all, so one damaged link hides the other tensors. It brings
//! ndarray, rayon, parking_lot and lru.
//!
//! The crate has six rooms. Each uses the rooms before it, and its page says what it must not know:
//!
//! ```text
//! bytes  filters  structures  values  vds  tree
//! ```
//!
//! Reference: the HDF5 File Format Specification, version 4.0, here "Spec", and the library HDF5 2.0.
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
