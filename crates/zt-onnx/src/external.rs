//! Files beside a model, with values of its tensors. Only files below the model's own folder are
//! opened: see [`Neighbours`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use zt::foreign::{FileBuilder, SourceId};
use zt::{Blob, Result, Source, Span, Warning};
use zt_foreign::{Neighbours, Opening, Refusal};

use crate::fault::OnnxFault;
use crate::tensor::External;

/// The files beside one model that were opened.
pub(super) struct Folder<'p> {
    model: Option<&'p Path>,
    /// By location.
    files: HashMap<String, Result<Beside>>,
    pub(super) neighbours: Neighbours<'p>,
}

/// A file beside a model.
#[derive(Clone)]
struct Beside {
    id: SourceId,
    source: Arc<dyn Source>,
}

impl<'p> Folder<'p> {
    /// The files beside the model that is opened.
    pub(super) fn of(opening: Opening<'p>) -> Self {
        Folder { model: opening.path, files: HashMap::new(), neighbours: Neighbours::new(opening) }
    }

    /// The values of a tensor, which must have `expected` bytes.
    pub(super) fn find(
        &mut self,
        external: &External,
        expected: u64,
        builder: &mut FileBuilder,
        tensor: &str,
    ) -> Result<(Blob, SourceId, Arc<dyn Source>)> {
        let offset = number("offset", external.offset.as_deref())?.unwrap_or(0);
        let found = number("length", external.length.as_deref())?.unwrap_or(expected);
        if found != expected {
            return Err(OnnxFault::Bytes { expected, found }.into());
        }
        let location = &external.location;
        let beside = self.file(location, builder)?;
        let available = beside.source.byte_len();
        let span = Span::new(offset, expected).filter(|span| span.end() <= available);
        let span = span.ok_or_else(|| OnnxFault::Beyond {
            location: location.clone(),
            offset,
            byte_len: expected,
            available,
        })?;
        if let Some(checksum) = &external.checksum {
            // It is the SHA-1 of the whole file, which would have to be read to list a tensor.
            let message = format!("the checksum {checksum:?} of {location:?} is not checked");
            builder.warning(Warning::new("unknown-digest", message).with_object(tensor));
        }
        Ok((Blob::raw(span), beside.id, beside.source))
    }

    fn file(&mut self, location: &str, builder: &mut FileBuilder) -> Result<Beside> {
        if let Some(known) = self.files.get(location) {
            return known.clone();
        }
        let opened = self.open(location).map(|source| {
            let source: Arc<dyn Source> = source.into();
            let id = builder.source(Arc::clone(&source));
            Beside { id, source }
        });
        self.files.insert(location.to_owned(), opened.clone());
        opened
    }

    fn open(&mut self, location: &str) -> Result<Box<dyn Source>> {
        let opened = self.neighbours.open(self.model, location);
        opened.map(|(source, _)| source).map_err(|refusal| {
            let location = location.to_owned();
            match refusal {
                Refusal::NeedsPath => OnnxFault::NeedsPath { location }.into(),
                Refusal::Missing => OnnxFault::Missing { location }.into(),
                Refusal::Location(why) => OnnxFault::Location { location, why }.into(),
                Refusal::Failed(error) => error,
            }
        })
    }
}

fn number(key: &'static str, value: Option<&str>) -> Result<Option<u64>> {
    let Some(value) = value else {
        return Ok(None);
    };
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|_| digits);
    let value = value.to_owned();
    let number = number.ok_or(OnnxFault::External { key, value })?;
    Ok(Some(number))
}
