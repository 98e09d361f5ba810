//! Zip archives, as `torch.save` has written them since version 1.6.
//!
//! ```text
//! NAME/data.pkl                  the object: dicts, numbers, texts, and tensors by storage and stride
//! NAME/byteorder                 little or big; little where there is none
//! NAME/data/0, NAME/data/1, ...  the storages
//! NAME/version, NAME/.data/serialization_id, ...
//! ```
//!
//! NAME is that of the file, or `archive`. Checksums are not compared: torch can leave them out,
//! and does not look at them.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::HashMap;
use std::sync::Arc;

use zt::container::bytes_of;
use zt::manifest::ByteOrder;
use zt::{Error, FileBuilder, Result, Source};

use super::PICKLE_LEN;
use super::assemble::{Contents, Place, assemble};
use super::global::Global;
use super::pickle::{self, PickleError};
use super::violation::Violation;
use crate::input::{Input, Origin};
use crate::zip::{Archive, Content, Member};

const PICKLE: &str = "data.pkl";

/// `torch.jit.save` writes the constants of the code beside the code.
const CONSTANTS: &str = "constants.pkl";

pub(super) fn open(
    source: Arc<dyn Source>,
    builder: FileBuilder,
    origin: Origin<'_>,
) -> Result<Input> {
    let archive = Archive::open(&source, builder.limits())?;
    let records = Records::new(&archive)?;
    let find = if records.get(CONSTANTS).is_some() {
        Global::find_in_script
    } else {
        Global::find
    };
    let byte_order = records.byte_order(&source)?;
    let content = records
        .content(PICKLE, &source)?
        .ok_or(Violation::NoPickle)?;
    let bytes = read(&content, PICKLE_LEN)?;
    let pickle = pickle::load(&bytes, find).map_err(|error| {
        // Where the pickle is stored as it is, its bytes have a place in the file.
        let at = content.span.offset().saturating_add(error.at as u64);
        let error = Error::from(in_record(error));
        match content.is_stored {
            true => error.with_offset(at),
            false => error,
        }
    })?;
    let locate = |key: &str| {
        let Some(record) = records.get(&format!("data/{key}")) else {
            return Ok(None);
        };
        let content = record.content(&source)?;
        Ok(Some(Place {
            source: (!content.is_stored).then_some(content.source),
            span: content.span,
            from: record.header(),
        }))
    };
    let contents = Contents {
        source: Arc::clone(&source),
        pickle,
        locate: &locate,
        byte_order,
    };
    let paths = origin.path.map(ToOwned::to_owned).into_iter().collect();
    Ok(Input::new(assemble(contents, builder, origin.path)?, paths))
}

/// Whether an archive is torch's: it has a `data.pkl` in its outermost folder.
pub(super) fn has_pickle(archive: &Archive) -> bool {
    archive.members().iter().any(is_pickle)
}

fn is_pickle(member: &Member) -> bool {
    matches!(member.name().split_once('/'), Some((_, PICKLE)))
}

fn in_record(error: PickleError) -> Violation {
    let record = PICKLE;
    Violation::Pickle { record, error }
}

/// The records of the archive, without the name of their folder.
struct Records<'a>(HashMap<&'a str, &'a Member>);

impl<'a> Records<'a> {
    /// The records beside the first `data.pkl`.
    fn new(archive: &'a Archive) -> Result<Self, Violation> {
        let mut members = archive.members().iter();
        let pickle = members.find(|member| is_pickle(member));
        let folder = pickle.and_then(|member| member.name().split_once('/'));
        let (folder, _) = folder.ok_or(Violation::NoPickle)?;
        let within = |member: &'a Member| match member.name().split_once('/') {
            Some((outer, name)) if outer == folder => Some((name, member)),
            _ => None,
        };
        Ok(Records(
            archive.members().iter().filter_map(within).collect(),
        ))
    }

    fn get(&self, name: &str) -> Option<&'a Member> {
        self.0.get(name).copied()
    }

    fn content(&self, name: &str, source: &Arc<dyn Source>) -> Result<Option<Content>> {
        let member = self.get(name);
        member.map(|member| member.content(source)).transpose()
    }

    fn byte_order(&self, source: &Arc<dyn Source>) -> Result<ByteOrder> {
        /// `little`, and not much more.
        const LEN: u64 = 16;
        let Some(content) = self.content("byteorder", source)? else {
            return Ok(ByteOrder::Little);
        };
        match read(&content, LEN)?.as_slice() {
            b"little" => Ok(ByteOrder::Little),
            b"big" => Ok(ByteOrder::Big),
            other => {
                let found = String::from_utf8_lossy(other).into_owned();
                Err(Violation::ByteOrder { found }.into())
            }
        }
    }
}

/// All of a record that is no longer than `limit`.
fn read(content: &Content, limit: u64) -> Result<Vec<u8>> {
    let found = content.span.byte_len();
    if found > limit {
        return Err(Violation::RecordTooLong { found, limit }.into());
    }
    Ok(bytes_of(&content.source, content.span)?.into_owned())
}
