//! The sections after the scales: a draft head and a CoreML model.

use zt::{Error, Result, Source, Span};
use zt_foreign::fields::Record;

use crate::block::{Block, BlockRun, Encoding, start_of};
use crate::header::{DraftMetadata, Flags};
use crate::index::Index;
use crate::violation::{Section, Violation};

/// The draft head, as far as it can be read.
#[derive(Default)]
pub(super) struct Draft {
    /// The whole section; `None` if it leaves the file.
    pub(super) span: Option<Span>,
    pub(super) blocks: Vec<Block>,
    /// The error that ended the blocks.
    pub(super) fault: Option<Error>,
}

impl Draft {
    /// Reads the draft head that the header declares, with at most `limit` tensors.
    pub(super) fn read(
        source: &dyn Source,
        meta: DraftMetadata,
        index: &Index,
        flags: Flags,
        limit: usize,
    ) -> Self {
        let mut draft = Draft::default();
        draft.fault = draft.follow(source, meta, index, flags, limit).err();
        draft
    }

    fn follow(
        &mut self,
        source: &dyn Source,
        meta: DraftMetadata,
        index: &Index,
        flags: Flags,
        limit: usize,
    ) -> Result<()> {
        const HEAD_LEN: usize = 8;
        const META: u64 = 160;
        let section = Section::Draft;
        if meta.is_empty {
            let section = Section::DraftMetadata;
            return Err(Violation::Missing { section }.at(META));
        }
        let (offset, length) = (meta.offset, meta.byte_len);
        let span = section.within(offset, length, source.byte_len());
        let span = span.map_err(|violation| violation.at(META))?;
        if index.overlaps(span) {
            return Err(Violation::SectionOverlap { section }.at(offset));
        }
        self.span = Some(span);
        let too_short = Violation::SectionTooShort { section, length };
        let body = Span::new(offset, HEAD_LEN as u64);
        let body = body.and_then(|head| Span::between(head.end(), span.end()));
        let body = body.ok_or_else(|| too_short.at(offset))?;
        let mut head = [0; HEAD_LEN];
        source.read_at(offset, &mut head)?;
        let found = Record(&head).bytes(0);
        if found != *b"EGDH" {
            return Err(Violation::SectionMagic { section, found }.at(offset));
        }
        let (header, section) = (meta.layer_count, Record(&head).u32(4));
        if header != section {
            return Err(Violation::DraftLayers { header, section }.at(offset));
        }
        let run = BlockRun::read(source, body, flags, limit);
        let fault = run.fault.clone().or_else(|| run.no_block(source, body));
        for block in run.blocks {
            let magic = match block.encoding {
                Encoding::Plain(_) | Encoding::Int4 => {
                    self.blocks.push(block);
                    continue;
                }
                Encoding::Int2 { .. } => *b"INT2",
                Encoding::Astc { .. } => *b"ASTW",
                Encoding::Tca { .. } => *b"TCAW",
            };
            return Err(Violation::DraftEncoding { magic }.at(block.span.offset()));
        }
        fault.map_or(Ok(()), Err)
    }
}

/// The archive of the CoreML model at the end of a file, from `start` on. Faults that only strict
/// readers refuse go to `tolerated`. If the flag is set, a missing appendix is an error, and so is
/// one that leaves the file.
pub(super) fn appendix(
    source: &dyn Source,
    start: u64,
    flags: Flags,
    tolerated: &mut Vec<Error>,
) -> Result<Option<Span>> {
    let is_flagged = flags.has(Flags::ANE_COREML);
    let section = Section::Appendix;
    let rest = Span::between(start, source.byte_len()).filter(|rest| !rest.is_empty());
    let Some(rest) = rest else {
        let missing = || Violation::Missing { section }.at(start);
        return if is_flagged { Err(missing()) } else { Ok(None) };
    };
    match archive(source, rest, is_flagged) {
        Ok((archive, problem)) => {
            if !is_flagged {
                tolerated.push(Violation::Unflagged { section }.at(start));
            }
            tolerated.extend(problem);
            Ok(Some(archive))
        }
        Err(error) if is_flagged => Err(error),
        Err(_) => {
            let byte_len = rest.byte_len();
            tolerated.push(Violation::Trailing { byte_len }.at(start));
            Ok(None)
        }
    }
}

/// The archive in the rest of a file, and a fault in it that only strict readers refuse.
fn archive(source: &dyn Source, rest: Span, is_flagged: bool) -> Result<(Span, Option<Error>)> {
    const HEAD_LEN: usize = 12;
    let section = Section::Appendix;
    let head: [u8; HEAD_LEN] = start_of(source, rest)?;
    let found = Record(&head).bytes(0);
    if found != *b"ANLX" {
        return Err(Violation::SectionMagic { section, found }.at(rest.offset()));
    }
    let body = Span::new(rest.offset(), HEAD_LEN as u64);
    let Some(body) = body.and_then(|head| Span::between(head.end(), rest.end())) else {
        let length = rest.byte_len();
        return Err(Violation::SectionTooShort { section, length }.at(rest.offset()));
    };
    let declared = Record(&head).u64(4);
    if declared == rest.byte_len() && is_flagged {
        let problem = Violation::AppendixHeaderCounted.at(rest.offset());
        return Ok((body, Some(problem)));
    }
    let archive = Span::new(body.offset(), declared);
    let left = archive.and_then(|archive| Span::between(archive.end(), body.end()));
    let (Some(archive), Some(left)) = (archive, left) else {
        let available = body.byte_len();
        let violation = Violation::AppendixLength { declared, available };
        return Err(violation.at(rest.offset()));
    };
    let byte_len = left.byte_len();
    let trailing = Violation::Trailing { byte_len }.at(left.offset());
    Ok((archive, (byte_len > 0).then_some(trailing)))
}
