//! Zip archives, which `torch.save` has written since version 1.6.
//!
//! ```text
//! NAME/data.pkl                  the object: dicts, numbers, texts, and tensors by storage and stride
//! NAME/byteorder                 little or big; little by default
//! NAME/data/0, NAME/data/1, ...  the storages
//! NAME/version, NAME/.data/serialization_id, ...
//! NAME/constants.pkl             TorchScript: a tuple of the constants of the code
//! NAME/constants/0, ...          their storages
//! NAME/code/...                  TorchScript: not read
//! ```
//!
//! NAME is the name of the file, or `archive`. A CRC-32 of 0 is no checksum: torch may leave them out.

use std::collections::HashMap;
use std::sync::Arc;

use zt::container::{bytes_of, check_digest};
use zt::foreign::FileBuilder;
use zt::manifest::ByteOrder;
use zt::{Blob, Error, ErrorKind, Result, Source, Span, Warning};
use zt_foreign::archive as zip;
use zt_foreign::{Input, Opening};

use crate::assemble::{Graph, Place, assemble};
use crate::fault::TorchFault;
use crate::global::Global;
use crate::pickle::{Find, PICKLE_LEN, Pickle, load_record};
use zt_pickle::Use;
use zt_zip::{Archive, Content, Member};

const PICKLE: &str = "data.pkl";

const BYTE_ORDER: &str = "byteorder";

/// The limits of a deflated pickle: its ratio, or a length if that is more. torch deflates no
/// pickle. Deflated by others, the pickle of 100,000 tensors has a ratio of six.
const RATIO: u64 = 32;
const INFLATED: u64 = 1 << 20;

/// `torch.jit.save` always writes the constants of the code.
const CONSTANTS: &str = "constants.pkl";

/// The code names them `CONSTANTS.c0` and so on.
const CONSTANTS_PREFIX: &str = "CONSTANTS.c";

/// The most other members that are looked into, and the limit of their contents together. torch writes a
/// few of some kilobytes.
const MEMBERS: usize = 1024;
const LOOKED_INTO: u64 = 16 << 20;

pub(super) fn open(
    source: Arc<dyn Source>,
    mut builder: FileBuilder,
    opening: Opening<'_>,
) -> Result<Input> {
    let archive = zip::open_noted(&source, &mut builder, opening.options)?;
    let mut members = archive.members().iter();
    if let (false, Some(how)) = (members.clone().any(is_pickle), members.find_map(other_layout)) {
        return Err(TorchFault::OtherLayout { how }.into());
    }
    let records = Records::new(&archive)?;
    if archive.is_truncated() && !records.has_byte_order() {
        return Err(TorchFault::Cut { name: BYTE_ORDER }.into());
    }
    let byte_order = records.byte_order(&source)?;
    // The pickle is the manifest of its file.
    let limit = PICKLE_LEN.min(builder.limits().manifest_len);
    let constants = records.pickle(CONSTANTS, &source, limit)?;
    let find = match constants {
        Some(_) => {
            let message = "an archive of TorchScript: its tensors and constants are read, its code \
                           is not";
            builder.warning(Warning::new("torchscript", message));
            Global::find_in_script
        }
        None => Global::find,
    };
    let pickle = records.pickle(PICKLE, &source, limit)?.ok_or(TorchFault::NoPickle)?;
    for problem in constants.iter().chain([&pickle]).filter_map(Record::mismatch) {
        builder.tolerated(problem);
    }
    let locate = |key: &str| records.storage("data", key, &source);
    let object = pickle.load(find)?;
    let mut beside = records.other_uses(&archive, &source, &mut builder);
    beside.extend(pickle.uses_behind(&object));
    let mut graphs =
        vec![Graph { pickle: object, start: pickle.start(), locate: &locate, prefix: "", beside }];
    let locate_constant = |key: &str| records.storage("constants", key, &source);
    if let Some(constants) = &constants {
        let object = constants.load(find)?;
        graphs.push(Graph {
            beside: constants.uses_behind(&object),
            pickle: object,
            start: constants.start(),
            locate: &locate_constant,
            prefix: CONSTANTS_PREFIX,
        });
    }
    assemble(Arc::clone(&source), &graphs, byte_order, builder, opening)
}

/// Whether this is an archive of torch: it has a `data.pkl` in a top folder, or is of `torch.export`
/// or `torch.package`.
pub(crate) fn is_ours(archive: &Archive) -> bool {
    let mut members = archive.members().iter();
    members.any(|member| is_pickle(member) || other_layout(member).is_some())
}

/// Whether an archive whose first member has this name is torch's. `torch.save` writes the pickle
/// first, `torch.jit.save` the first storage.
pub(super) fn begins_ours(name: &[u8]) -> bool {
    name.ends_with(b"/data.pkl") || name.ends_with(b"/data/0")
}

fn is_pickle(member: &Member) -> bool {
    matches!(member.name().split_once('/'), Some((_, PICKLE)))
}

/// The other writer of torch that writes this member, if any.
fn other_layout(member: &Member) -> Option<&'static str> {
    let name = member.name();
    let name = name.split_once('/').map_or(name, |(_, name)| name);
    match name {
        "archive_format" => Some("torch.export"),
        ".data/extern_modules" => Some("torch.package"),
        _ => None,
    }
}

struct Record {
    name: &'static str,
    content: Content,
    bytes: Vec<u8>,
}

impl Record {
    /// The error of another CRC-32: the tensors may be others. torch reads such a pickle, so it is looked into.
    fn mismatch(&self) -> Option<Error> {
        let span = self.content.span;
        let blob = Blob { digest: self.content.digest(), ..Blob::raw(span) };
        let fault = check_digest(&blob, &self.bytes).err()?;
        let text = format!("{}: {fault}; the tensors may be others", self.name);
        Some(Error::new(ErrorKind::DigestMismatch, "digest-mismatch", text).with_span(span))
    }

    fn load(&self, find: Find) -> Result<Pickle<'_>> {
        load_record(self.name, &self.bytes, self.start(), find)
    }

    /// What Python would run of the pickles behind the first one.
    fn uses_behind(&self, first: &Pickle<'_>) -> Vec<Use> {
        zt_pickle::uses(first.rest)
    }

    /// Where the pickle begins in the file. The bytes of a deflated one have no place in it.
    fn start(&self) -> Option<u64> {
        let Content { span, is_stored, .. } = &self.content;
        is_stored.then_some(span.offset())
    }
}

/// The members in the folder of the archive, by their names in it.
struct Records<'a> {
    members: HashMap<&'a str, &'a Member>,
    /// Whether further members may be missing.
    is_truncated: bool,
}

impl<'a> Records<'a> {
    /// The records beside the first `data.pkl`.
    fn new(archive: &'a Archive) -> Result<Self, TorchFault> {
        let mut members = archive.members().iter();
        let pickle = members.find(|member| is_pickle(member));
        let folder = pickle.and_then(|member| member.name().split_once('/'));
        let (folder, _) = folder.ok_or(if archive.is_truncated() {
            TorchFault::Cut { name: PICKLE }
        } else {
            TorchFault::NoPickle
        })?;
        let within = |member: &'a Member| match member.name().split_once('/') {
            Some((outer, name)) if outer == folder => Some((name, member)),
            _ => None,
        };
        Ok(Records {
            members: archive.members().iter().filter_map(within).collect(),
            is_truncated: archive.is_truncated(),
        })
    }

    fn get(&self, name: &str) -> Option<&'a Member> {
        self.members.get(name).copied()
    }

    /// Whether the byte order of a truncated archive is known. `torch.save` writes it before the storages,
    /// or not at all in old versions. `torch.jit.save` writes storages, then the pickle, then the byte order.
    fn has_byte_order(&self) -> bool {
        let pickle = self.get(PICKLE).map(Member::header);
        let storages = self.members.iter().filter(|(name, _)| name.starts_with("data/"));
        let first = storages.map(|(_, member)| member.header()).min();
        self.get(BYTE_ORDER).is_some() || first.is_none() || pickle < first
    }

    fn pickle(
        &self,
        name: &'static str,
        source: &Arc<dyn Source>,
        limit: u64,
    ) -> Result<Option<Record>> {
        let Some(member) = self.get(name) else {
            return Ok(None);
        };
        let content = zip::content(member, source)?;
        // A value takes more memory than its byte of the pickle.
        let limit = if content.is_stored {
            limit
        } else {
            limit.min(member.stored_len().saturating_mul(RATIO).max(INFLATED))
        };
        Ok(Some(Record { name, bytes: read(&content, limit)?, content }))
    }

    /// What Python would run of the pickles in other members, whatever their names are. Members that cannot be
    /// read are passed over: torch does not read them. A warning counts those above the limits.
    ///
    /// Cost: the beginning of each such member, and all of those that can be a pickle by their first byte.
    fn other_uses(
        &self,
        archive: &Archive,
        source: &Arc<dyn Source>,
        builder: &mut FileBuilder,
    ) -> Vec<Use> {
        let members = archive.members().iter().filter(|member| !self.is_known(member));
        let (contents, unread) = possible_pickles(&members.collect::<Vec<_>>(), source);
        if source.is_remote() {
            let stored = contents.iter().filter(|content| content.is_stored);
            let spans: Vec<Span> = stored.map(|content| content.span).collect();
            source.will_read_all(&spans);
        }
        if unread > 0 {
            let message = format!(
                "{unread} other members may be pickles and were not looked into: the limits are {MEMBERS} \
                 members and {LOOKED_INTO} bytes"
            );
            builder.warning(Warning::new("pickle-unread", message));
        }
        let bytes = contents.iter().filter_map(|it| read(it, LOOKED_INTO).ok());
        bytes.flat_map(|bytes| zt_pickle::uses(&bytes)).collect()
    }

    /// Whether torch gives the member its name, and it is no pickle or is read as one.
    fn is_known(&self, member: &Member) -> bool {
        /// torch's files, and its folders of other contents than pickles.
        const FILES: [&str; 6] =
            [PICKLE, CONSTANTS, "version", BYTE_ORDER, ".format_version", ".storage_alignment"];
        const FOLDERS: [&str; 4] = ["data/", "constants/", "code/", ".data/"];
        let name = member.name();
        let within = name.split_once('/').map_or(name, |(_, within)| within);
        let is_ours = self.get(within).is_some_and(|it| std::ptr::eq(it, member));
        is_ours
            && (FILES.contains(&within) || FOLDERS.iter().any(|folder| within.starts_with(folder)))
    }

    fn storage(&self, folder: &str, key: &str, source: &Arc<dyn Source>) -> Result<Option<Place>> {
        let Some(record) = self.get(&format!("{folder}/{key}")) else {
            let cut = TorchFault::Cut { name: "its storage" };
            return if self.is_truncated { Err(cut.into()) } else { Ok(None) };
        };
        let content = zip::content(record, source)?;
        Ok(Some(Place {
            digest: content.digest(),
            source: (!content.is_stored).then_some(content.source),
            span: content.span,
            from: record.header(),
        }))
    }

    fn byte_order(&self, source: &Arc<dyn Source>) -> Result<ByteOrder> {
        /// `little` is the longest value.
        const LEN: u64 = 16;
        let Some(record) = self.get(BYTE_ORDER) else {
            return Ok(ByteOrder::Little);
        };
        match read(&zip::content(record, source)?, LEN)?.as_slice() {
            b"little" => Ok(ByteOrder::Little),
            b"big" => Ok(ByteOrder::Big),
            other => {
                let found = String::from_utf8_lossy(other).into_owned();
                Err(TorchFault::ByteOrder { found }.into())
            }
        }
    }
}

/// The contents that can be a pickle by their first byte, and how many more there are above the limits.
fn possible_pickles(members: &[&Member], source: &Arc<dyn Source>) -> (Vec<Content>, usize) {
    let within = members.len().min(MEMBERS);
    let (mut contents, mut unread) = (Vec::new(), members.len().strict_sub(within));
    let mut left = LOOKED_INTO;
    for member in members.iter().take(within) {
        let Ok(content) = zip::content(member, source) else {
            continue;
        };
        if !first_byte(&content).is_some_and(zt_pickle::begins) {
            continue;
        }
        match left.checked_sub(content.span.byte_len()) {
            Some(rest) => {
                left = rest;
                contents.push(content);
            }
            None => unread = unread.strict_add(1),
        }
    }
    (contents, unread)
}

/// The first byte of a record; `None` if there is none, or if it cannot be read.
fn first_byte(content: &Content) -> Option<u8> {
    let mut first = [0];
    if content.span.is_empty() {
        return None;
    }
    content.source.read_at(content.span.offset(), &mut first).ok()?;
    Some(first[0])
}

fn read(content: &Content, limit: u64) -> Result<Vec<u8>> {
    let found = content.span.byte_len();
    if found > limit {
        return Err(TorchFault::RecordTooLong { found, limit }.into());
    }
    if content.is_stored {
        return Ok(bytes_of(&content.source, content.span)?.into_owned());
    }
    inflated(content)
}

/// Inflates a record. Its declared length may be wrong, so memory is requested in pieces: as much
/// as was inflated so far, and at least `PIECE`.
fn inflated(content: &Content) -> Result<Vec<u8>> {
    const PIECE: usize = 1 << 20;
    let byte_len = content.span.byte_len();
    let refused = || Error::from(zt::formats::Error::Allocation { byte_len });
    let len = usize::try_from(byte_len).map_err(|_| refused())?;
    let (mut bytes, mut offset) = (Vec::new(), content.span.offset());
    while bytes.len() < len {
        let filled = bytes.len();
        let piece = len.abs_diff(filled).min(filled.max(PIECE));
        bytes.try_reserve_exact(piece).map_err(|_| refused())?;
        bytes.extend(std::iter::repeat_n(0, piece));
        let (_, new) = bytes.split_at_mut(filled);
        content.source.read_at(offset, new)?;
        offset = offset.strict_add(piece as u64);
    }
    Ok(bytes)
}
