//! The kind `zt2`.

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, Input, Opening, Probe};

use crate::footer::MAGIC;
use crate::read;

/// The kind of zTensor 2 files. Their extension is `.zt` too.
pub const ZT2: Kind = Kind::new("zt2");

/// Recognises and opens files of zTensor 2.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZTensor2;

impl FileKind for ZTensor2 {
    fn kind(&self) -> Kind {
        ZT2
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["zt"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&MAGIC))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }
}
