//! The kind `pytorch`.

use std::sync::Arc;

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, Input, Opening, Probe, archive as zip};

use crate::archive::{self, is_ours};
use crate::legacy;
use crate::plain;
use crate::tar;

/// Files of `torch.save`: `.pt`, `.pth`, `.bin`, `.ckpt`.
pub const PYTORCH: Kind = Kind::new("pytorch");

/// Pickles that `torch.save` did not write: `.pkl`, `.pdparams`.
pub const PICKLE: Kind = Kind::new("pickle");

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

    fn read_from_end(&self) -> &'static [&'static str] {
        self.extensions()
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        let head = probe.head();
        // An archive without a valid directory is known by its first member.
        Ok(tar::is_tar(head)
            || legacy::is_stream(head)
            || zip::recognises(probe, is_ours, archive::begins_ours)?)
    }

    fn recognise_end(&self, source: &dyn Source) -> Result<bool> {
        zip::recognises_end(source, is_ours)
    }

    fn recognise_behind(&self, probe: &Probe<'_>) -> Result<bool> {
        let archive = zip::behind_other_data(probe.source())?;
        Ok(archive.is_some_and(|archive| is_ours(&archive)))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let source: Arc<dyn Source> = Arc::from(source);
        let builder = opening.builder(PYTORCH);
        let probe = Probe::new(&source)?;
        let head = probe.head();
        if tar::is_tar(head) {
            return tar::open(source, builder, opening);
        }
        if zt_zip::is_archive(head) || !legacy::is_stream(head) && self.recognise_behind(&probe)? {
            return archive::open(source, builder, opening);
        }
        legacy::open(source, builder, opening)
    }
}

/// The kind of pickles of arrays and tensors that `torch.save` did not write.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainPickle;

impl FileKind for PlainPickle {
    fn kind(&self) -> Kind {
        PICKLE
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["pkl", "pickle", "pdparams", "pdopt"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        plain::recognises(probe)
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        plain::open(Arc::from(source), opening.builder(PICKLE), opening)
    }
}
