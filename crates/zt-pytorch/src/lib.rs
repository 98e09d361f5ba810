//! PyTorch checkpoints as tensors: the files that `torch.save` writes. Nothing in them is run.
//!
//! A checkpoint is a pickle, which says what there is, and storages, which hold the elements:
//! records of a zip archive since torch 1.6 ([`archive`]), a stream before ([`legacy`]). The pickle
//! is read as data by a machine that calls nothing ([`pickle`]). Objects in it may be made by the
//! globals that `torch.load(weights_only=True)` allows by itself, and by collections and values of
//! Python's own library ([`global`]); one that is made by any other refuses the file. A class that is only
//! named is its name.
//!
//! What was a tree of dicts and lists is flattened: keys ([`key`]) and positions, joined by dots,
//! name the tensors ([`flatten`]). Every tensor is an object, also where several share a storage; one that
//! lies in its storage in row-major order is a range of the file, another is put in order when it
//! is read. What is no tensor is an attribute of the file; what a tensor was given, `w.extra = ...`,
//! is an attribute of the tensor, and tensors among that are objects beside it. Not kept are what belongs to a running
//! program: `requires_grad`, hooks, devices, and the attributes of dicts, such as `_metadata`.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod archive;
mod arguments;
mod assemble;
mod attribute;
mod element;
mod flatten;
mod global;
mod key;
mod legacy;
mod pickle;
mod quantized;
mod scalar;
mod tensor;
mod view;
mod violation;
mod wrapper;

use std::sync::Arc;

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, Input, Opening, Probe};

use archive::is_ours;
use violation::Violation;
use zt_zip as zip;

/// What `torch.save` writes: `.pt`, `.pth`, `.bin`.
pub const PYTORCH: Kind = Kind::new("pytorch");

/// The kind: recognises, opens and, if it has a writer, writes such files.
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

/// The longest pickle. That of 100,000 tensors has some 30 megabytes.
const PICKLE_LEN: u64 = 256 << 20;

fn recognise(probe: &Probe<'_>) -> Result<bool> {
    let head = probe.head();
    Ok(is_tar(head) || legacy::is_pickle(head) || is_archive(probe)?)
}

fn open(source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
    let source: Arc<dyn Source> = Arc::from(source);
    let builder = opening.builder(PYTORCH);
    let probe = Probe::new(&source)?;
    if is_tar(probe.head()) {
        return Err(Violation::Tar.into());
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

/// An archive of torch's, or one without a sound directory that begins with torch's records.
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

/// A tar archive that begins with one of the files of torch before 0.1.10.
fn is_tar(head: &[u8]) -> bool {
    const MAGIC: usize = 257;
    let is_ours = |name: &[u8]| head.starts_with(name);
    head.get(MAGIC..)
        .is_some_and(|head| head.starts_with(b"ustar"))
        && [&b"storages\0"[..], b"tensors\0", b"pickle\0", b"sys_info\0"]
            .into_iter()
            .any(is_ours)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
