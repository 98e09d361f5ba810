//! An item of a file: a zip archive of `torch.save` with a chunk of one tensor.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use zt::container::bytes_of;
use zt::{Error, Limits, Result, Source, Span};
use zt_foreign::archive as zip;
use zt_foreign::slices::Section;
use zt_foreign::strided::{Bands, Strided};
use zt_zip::{Archive, Content};

use crate::element::Element;
use crate::tensor::Elements;
use crate::violation::Violation;

/// The limit of the pickle of one tensor, and of other records. Most have some hundred bytes.
const RECORD_LEN: u64 = 64 << 10;

/// The elements of a chunk in row-major order. The archive is opened when they are first read.
pub(crate) struct Item {
    pub(crate) file: Arc<dyn Source>,
    pub(crate) path: Arc<Path>,
    pub(crate) span: Span,
    pub(crate) element: &'static Element,
    pub(crate) sizes: Vec<u64>,
    pub(crate) byte_len: u64,
    pub(crate) limits: Limits,
    pub(crate) bands: Bands,
    pub(crate) elements: OnceLock<Strided>,
}

impl Item {
    fn elements(&self) -> Result<&Strided> {
        if let Some(elements) = self.elements.get() {
            return Ok(elements);
        }
        // An error is not kept: the file may be on a store that answers the next time.
        let opened = self.open().map_err(|error| self.blame(error))?;
        Ok(self.elements.get_or_init(|| opened))
    }

    /// The same error with the file and the place of the item. Offsets in the archive count from there.
    fn blame(&self, error: Error) -> Error {
        let error = match error.offset() {
            Some(_) => Violation::archive(&error),
            None => error,
        };
        error.with_path(&self.path).with_span(self.span)
    }

    fn open(&self) -> Result<Strided> {
        let section = Section::new(Arc::clone(&self.file), self.span);
        let section: Arc<dyn Source> = Arc::new(section);
        let archive = zip::open(&section, &self.limits)?;
        let order = find(&archive, "byteorder", &section)?;
        if order.is_some_and(|order| !matches!(record(&order).as_deref(), Ok(b"little"))) {
            return Err(Violation::ByteOrder.into());
        }
        let pickle = find(&archive, "data.pkl", &section)?.ok_or(Violation::NoPickle)?;
        let elements = Elements::read(&record(&pickle)?, self.element, &self.sizes)?;
        let storage = find(&archive, &format!("data/{}", elements.key), &section)?;
        let storage = storage.filter(|storage| storage.is_stored);
        let storage = storage.ok_or(Violation::NoStorage)?.span;
        let (expected, found) = (elements.storage_len, storage.byte_len());
        if expected != found {
            return Err(Violation::StorageLength { expected, found }.into());
        }
        let view = elements.view(storage.offset(), self.element, &self.sizes)?;
        Strided::new(section, view, &self.bands)
    }
}

impl Source for Item {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_remote(&self) -> bool {
        self.file.is_remote()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.elements()?.read_at(offset, out)
    }
}

/// A member in the top folder of an archive.
fn find(archive: &Archive, name: &str, section: &Arc<dyn Source>) -> Result<Option<Content>> {
    let is_it = |path: &str| path.split_once('/').is_some_and(|(_, within)| within == name);
    let mut members = archive.members().iter();
    let member = members.find(|member| is_it(member.name()));
    member.map(|member| zip::content(member, section)).transpose()
}

fn record(content: &Content) -> Result<Vec<u8>> {
    let (found, limit) = (content.span.byte_len(), RECORD_LEN);
    if found > limit {
        return Err(Violation::RecordTooLong { found, limit }.into());
    }
    Ok(bytes_of(&content.source, content.span)?.into_owned())
}
