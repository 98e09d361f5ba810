//! HDF5 files as tensors: those of Keras, h5py, PyTables and MATLAB.
//!
//! ```text
//! superblock -> object header of the root group -> links -> object headers -> data
//!                                                           | dataspace: the shape
//!                                                           | datatype:  the elements
//!                                                           | layout:    where the values are
//!                                                           | filters:   how chunks are stored
//! ```
//!
//! Every dataset is an object, named by its path without the slash before it; one that several
//! links lead to is listed under each. What is contiguous or compact is a range of the file, in
//! either byte order; chunks are decoded as they are read ([`chunked`]). Names that an enumeration has
//! for its values are the attribute `hdf5.enum`. What is no tensor (texts,
//! records, references, null dataspaces), lies elsewhere (external files, virtual datasets, links to
//! other files) or is stored by a filter that is not here is listed with that as its fault.
//!
//! An archive of Keras is opened as the file of weights in it ([`keras`]).
//!
//! Everything is an address in some structure, and structures hold each other: nothing is
//! reserved before it is compared with the file's length, structures together are read for a few
//! lengths of the file and no more ([`store`]), and values that no bytes stand for are limited.
//!
//! The reader is our own. The best one on crates.io lists a group as a whole or not at all, leaves
//! out links that it cannot follow, and allocates what a chunk declares.
//!
//! Reference: the HDF5 File Format Specification, version 4.0, here "Spec", and HDF5 2.0 where that
//! is silent.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod attribute;
mod btree1;
mod btree2;
mod checksum;
mod chunk_index;
mod chunked;
mod common;
mod constant;
mod cursor;
mod dataset;
mod dataspace;
mod datatype;
mod extensible_array;
mod fill_value;
mod fixed_array;
mod fractal_heap;
mod global_heap;
mod grid;
mod group;
mod keras;
mod layout;
mod lzf;
mod name;
mod object_header;
mod pages;
mod pipeline;
mod store;
mod superblock;
mod tree;
mod violation;
mod warnings;
mod weight;

use std::sync::Arc;

use zt::foreign::Kind;
use zt::{Result, Source, Span};
use zt_foreign::{FileKind, Input, Opening, Probe};

use zt_zip as zip;

/// HDF5 files: of Keras, h5py, PyTables.
pub const HDF5: Kind = Kind::new("hdf5");

/// The kind: recognises, opens and, if it has a writer, writes such files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hdf5;

impl FileKind for Hdf5 {
    fn kind(&self) -> Kind {
        HDF5
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["h5", "hdf5", "keras"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        recognise(probe)
    }

    fn recognise_behind(&self, probe: &Probe<'_>) -> Result<bool> {
        let source = probe.source();
        if superblock::locate(source, whole(source))?.is_some() {
            return Ok(true);
        }
        let archive = zip::behind_other_data(source)?;
        Ok(archive.is_some_and(|archive| keras::has_weights(&archive)))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        open(source, opening)
    }
}

/// The signature at the beginning, or an archive with such a file in it.
fn recognise(probe: &Probe<'_>) -> Result<bool> {
    Ok(probe.head().starts_with(superblock::SIGNATURE) || keras::recognises(probe)?)
}

fn open(source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
    let source: Arc<dyn Source> = source.into();
    let mut builder = opening.builder(HDF5);
    let file = builder.source(Arc::clone(&source));
    let all = whole(&*source);
    // Behind a user block, which may be anything; or within an archive.
    let is_hdf5 = superblock::locate(&*source, all)?.is_some();
    let within = match keras::weights(&*source, is_hdf5, &mut builder)? {
        Some(member) => keras::span(&member, &source)?,
        None => all,
    };
    let (store, root) = superblock::open(source, within)?;
    let is_bf16 = opening.options.void2_as_bf16;
    let tree = tree::Tree::new(&store, root, file, builder.limits(), is_bf16);
    tree.add_to(&mut builder)?;
    opening.build(builder)
}

fn whole(source: &dyn Source) -> Span {
    Span::new(0, source.byte_len()).unwrap_or_default()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
