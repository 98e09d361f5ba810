//! PyTorch checkpoints as tensors: the files that `torch.save` writes. Nothing in them is run.
//!
//! A checkpoint has a pickle, which describes the tensors, and storages, which hold the elements.
//! They are members of a zip archive since torch 1.6, a stream before, and members of a tar archive
//! before 0.1.10. The pickle is read as
//! data. Its objects may be of the globals that `torch.load(weights_only=True)` allows, of Python's own
//! collections and values, and of NumPy's arrays. An object of any other global is left out with a
//! warning, and the tensors in it are listed. A class that is only named is a text.
//!
//! Dicts and lists are flattened: keys and positions, joined by dots, name the tensors. Every tensor
//! is an object, even if several share a storage. A contiguous tensor is a range of the file, and
//! any other is put in order as it is read.
//!
//! Other values are attributes of the file. A Python attribute of a tensor, `w.extra = ...`, is an
//! attribute of its object; if it is a tensor, it is an object too. `requires_grad`, hooks, devices
//! and the attributes of dicts, such as `_metadata`, are dropped.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod archive;
mod arguments;
mod assemble;
mod attribute;
mod budget;
mod element;
mod flatten;
mod global;
mod key;
mod legacy;
mod numpy;
mod pickle;
mod quantized;
mod tar;
mod tensor;
mod unknown;
mod view;
mod violation;
mod wrapper;

use std::sync::Arc;

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, Input, Opening, Probe};

use archive::is_ours;
use zt_zip as zip;

/// Files of `torch.save`: `.pt`, `.pth`, `.bin`, `.ckpt`.
pub const PYTORCH: Kind = Kind::new("pytorch");

/// The kind of PyTorch checkpoints, which recognises and opens them.
#[derive(Debug, Clone, Copy, Default)]
pub struct PyTorch;

impl FileKind for PyTorch {
    fn kind(&self) -> Kind {
        PYTORCH
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["pt", "pth", "bin", "ckpt"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        recognise(probe)
    }

    fn recognise_behind(&self, probe: &Probe<'_>) -> Result<bool> {
        let archive = zip::behind_other_data(probe.source())?;
        Ok(archive.is_some_and(|archive| is_ours(&archive)))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        open(source, opening)
    }
}

/// The limit of a pickle's length. The pickle of 100,000 tensors has about 30 MB.
const PICKLE_LEN: u64 = 256 << 20;

fn recognise(probe: &Probe<'_>) -> Result<bool> {
    let head = probe.head();
    Ok(tar::is_tar(head) || legacy::is_pickle(head) || is_archive(probe)?)
}

fn open(source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
    let source: Arc<dyn Source> = Arc::from(source);
    let builder = opening.builder(PYTORCH);
    let probe = Probe::new(&source)?;
    if tar::is_tar(probe.head()) {
        return tar::open(source, builder, opening);
    }
    let head = probe.head();
    let is_behind = || -> Result<bool> {
        let archive = zip::behind_other_data(&source)?;
        Ok(archive.is_some_and(|archive| is_ours(&archive)))
    };
    if zip::is_archive(head) || !legacy::is_pickle(head) && is_behind()? {
        return archive::open(source, builder, opening);
    }
    legacy::open(source, builder, opening)
}

/// Whether this is an archive of torch. One without a valid directory is known by its first member.
fn is_archive(probe: &Probe<'_>) -> Result<bool> {
    if !zip::is_archive(probe.head()) {
        return Ok(false);
    }
    match zip::Archive::open(probe.source(), &zt::Limits::default()) {
        Ok(archive) => Ok(is_ours(&archive)),
        Err(error) if error.kind() == zt::ErrorKind::Io => Err(error),
        Err(_) => Ok(zip::first_name(probe.head()).is_some_and(archive::begins_ours)),
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
