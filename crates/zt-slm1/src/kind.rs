//! The kind `slm1`.

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, Input, Opening, Probe, fields::Record};

use crate::header;
use crate::read;

/// The kind of SLM1 files, of TinyRustLM.
pub const SLM1: Kind = Kind::new("slm1");

/// Recognises and opens SLM1 files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slm1;

impl FileKind for Slm1 {
    fn kind(&self) -> Kind {
        SLM1
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["slm"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        // Other formats have the same magic, so version and header length are checked too.
        let (head, record) = (probe.head(), Record(probe.head()));
        let fits = record.u32(4) == 1 && u64::from(record.u32(8)) >= header::FIELDS_LEN as u64;
        Ok(head.starts_with(&header::MAGIC) && fits)
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }
}
