//! The kind `gguf`.

use zt::foreign::Kind;
use zt::{Attributes, Result, Source};
use zt_foreign::{FileKind, FileWriter, Input, Job, Merged, Opening, Probe, Sink};

use crate::header::MAGIC;
use crate::pairs;
use crate::read;
use crate::write;

/// The kind of GGUF files, of llama.cpp and other users of ggml.
pub const GGUF: Kind = Kind::new("gguf");

/// Recognises, opens and writes GGUF files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gguf;

impl FileKind for Gguf {
    fn kind(&self) -> Kind {
        GGUF
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["gguf"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&MAGIC))
    }

    fn merge_attributes(&self, files: &mut [Attributes]) -> bool {
        pairs::merge(files)
    }

    fn own_attributes(&self) -> &'static [&'static str] {
        &[pairs::TYPES]
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

impl FileWriter for Gguf {
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        write::write(merged, sink, job)
    }
}
