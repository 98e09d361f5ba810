//! What follows the scales: a draft head, a CoreML model.

use zt::{Error, Result, Source, Span};
use zt_foreign::fields::Record;

use crate::block::{Block, Encoding, Run};
use crate::header::{self, Flags};
use crate::index::Index;
use crate::violation::{Section, Violation};

/// The draft head, followed as far as it can be.
pub(super) struct Draft {
    /// All of it; `None` where it is not within the file.
    pub(super) span: Option<Span>,
    pub(super) blocks: Vec<Block>,
    /// Why the blocks do not go on, or why there are none.
    pub(super) fault: Option<Error>,
}

impl Draft {
    /// Follows the draft head that the header tells of; at most `limit` tensors.
    pub(super) fn read(
        source: &dyn Source,
        meta: header::Draft,
        index: &Index,
        flags: Flags,
        limit: usize,
    ) -> Self {
        let mut draft = Draft {
            span: None,
            blocks: Vec::new(),
            fault: None,
        };
        if let Err(fault) = draft.follow(source, meta, index, flags, limit) {
            draft.fault = Some(fault);
        }
        draft
    }

    fn follow(
        &mut self,
        source: &dyn Source,
        meta: header::Draft,
        index: &Index,
        flags: Flags,
        limit: usize,
    ) -> Result<()> {
        const HEAD_LEN: usize = 8;
        const META: u64 = 160;
        let section = Section::Draft;
        if meta.is_empty {
            return Err(Violation::NoDraft.at(META));
        }
        let (offset, length) = (meta.offset, meta.byte_len);
        let byte_len = source.byte_len();
        let outside = Violation::Range {
            section,
            offset,
            length,
            byte_len,
        };
        let span = Span::new(offset, length).filter(|span| span.end() <= byte_len);
        let span = span.ok_or_else(|| outside.at(META))?;
        if index.overlaps(span) {
            return Err(Violation::SectionOverlap { section }.at(offset));
        }
        self.span = Some(span);
        if length < HEAD_LEN as u64 {
            return Err(Violation::SectionTooShort { section, length }.at(offset));
        }
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
        let start = offset.saturating_add(HEAD_LEN as u64);
        let range = Span::between(start, span.end()).unwrap_or_default();
        let run = Run::read(source, range, flags, limit);
        let fault = match &run.fault {
            Some(fault) => Some(fault.clone()),
            None => run.no_block(source, range),
        };
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

/// The CoreML model at the end of a file.
pub(super) struct Appendix {
    /// The archive.
    pub(super) archive: Span,
}

impl Appendix {
    /// Looks at what is left of the file from `start` on. What strict readers mind goes to
    /// `tolerated`.
    ///
    /// # Errors
    ///
    /// No appendix although the flag is set, or one that does not fit.
    pub(super) fn read(
        source: &dyn Source,
        start: u64,
        flags: Flags,
        tolerated: &mut Vec<Error>,
    ) -> Result<Option<Self>> {
        let is_flagged = flags.has(Flags::ANE_COREML);
        let section = Section::Appendix;
        let rest = Span::between(start, source.byte_len()).unwrap_or_default();
        if rest.is_empty() {
            let missing = || Violation::NoAppendix.at(start);
            return if is_flagged { Err(missing()) } else { Ok(None) };
        }
        match archive(source, rest, is_flagged) {
            Ok((archive, problem)) => {
                if !is_flagged {
                    tolerated.push(Violation::Unflagged { section }.at(start));
                }
                tolerated.extend(problem);
                Ok(Some(Appendix { archive }))
            }
            Err(error) if is_flagged => Err(error),
            Err(_) => {
                let byte_len = rest.byte_len();
                tolerated.push(Violation::Trailing { byte_len }.at(start));
                Ok(None)
            }
        }
    }
}

/// The archive in the rest of a file, and what strict readers mind about it.
fn archive(source: &dyn Source, rest: Span, is_flagged: bool) -> Result<(Span, Option<Error>)> {
    const HEAD_LEN: usize = 12;
    let section = Section::Appendix;
    let mut head = [0; HEAD_LEN];
    let len = usize::try_from(rest.byte_len().min(HEAD_LEN as u64)).unwrap_or(0);
    source.read_at(rest.offset(), head.get_mut(..len).unwrap_or_default())?;
    let found = Record(&head).bytes(0);
    if found != *b"ANLX" {
        return Err(Violation::SectionMagic { section, found }.at(rest.offset()));
    }
    let Some(available) = rest.byte_len().checked_sub(HEAD_LEN as u64) else {
        let length = rest.byte_len();
        return Err(Violation::SectionTooShort { section, length }.at(rest.offset()));
    };
    let declared = Record(&head).u64(4);
    let start = rest.offset().saturating_add(HEAD_LEN as u64);
    if declared == rest.byte_len() && is_flagged {
        let archive = Span::new(start, available).unwrap_or_default();
        let problem = Violation::AppendixHeaderCounted.at(rest.offset());
        return Ok((archive, Some(problem)));
    }
    let Some(left) = available.checked_sub(declared) else {
        let violation = Violation::AppendixLength {
            declared,
            available,
        };
        return Err(violation.at(rest.offset()));
    };
    let archive = Span::new(start, declared).unwrap_or_default();
    let trailing = Violation::Trailing { byte_len: left }.at(archive.end());
    Ok((archive, (left > 0).then_some(trailing)))
}
