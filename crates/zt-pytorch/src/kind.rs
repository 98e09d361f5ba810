//! The kind `pytorch`.

use std::sync::Arc;

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, Input, Opening, Probe, archive as zip};

use crate::archive::{self, is_ours};
use crate::legacy;
use crate::tar;

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
    if zt_zip::is_archive(head) || !legacy::is_pickle(head) && is_behind()? {
        return archive::open(source, builder, opening);
    }
    legacy::open(source, builder, opening)
}

/// Whether this is an archive of torch. One without a valid directory is known by its first member.
fn is_archive(probe: &Probe<'_>) -> Result<bool> {
    zip::recognises(probe, is_ours, archive::begins_ours)
}
