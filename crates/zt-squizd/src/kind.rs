//! The kind `squizd`.

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, FileWriter, Input, Opening, Probe};

use crate::header;
use crate::read;

/// The kind of SQUIZD files.
pub const SQUIZD: Kind = Kind::new("squizd");

/// Recognises, opens and writes SQUIZD files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Squizd;

impl FileKind for Squizd {
    fn kind(&self) -> Kind {
        SQUIZD
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["squizd"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&header::MAGIC))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}
