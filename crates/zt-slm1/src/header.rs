//! The header: 108 bytes, and an extension by later writers.

use zt::container::bytes_of;
use zt::{Attributes, Error, Result, Source, Span, Value};
use zt_foreign::fields::Record;

use crate::violation::{Violation, What};

/// The first bytes of every file.
pub(super) const MAGIC: [u8; 4] = *b"SLM1";

/// Bytes of the fields of version 1.
pub(super) const FIELDS_LEN: usize = 108;

/// The alignment of all parts that writers write.
pub(super) const GRID: u64 = 64;

/// The longest extension that is kept as an attribute. A longer one gives a warning with its length.
const EXTENSION_MAX: u64 = 64 << 10;

/// Bytes of a directory entry.
pub(super) const ENTRY_LEN: usize = 64;

/// A checked header.
#[derive(Debug)]
pub(super) struct Header {
    /// Header and extension.
    pub(super) span: Span,
    /// Within the file.
    pub(super) tokenizer: Span,
    /// Within the file, a whole number of entries.
    pub(super) directory: Span,
    /// Where tensors begin, as the header declares.
    pub(super) data_offset: u64,
    pub(super) layer_count: u32,
    vocab_size: u32,
    /// Not zero. It cannot be checked, because its algorithm is unpublished.
    pub(super) checksum: u64,
    fields: [u8; FIELDS_LEN],
    extension: Vec<u8>,
    /// The length of an extension that is too long to keep.
    pub(super) lost_extension: Option<u64>,
}

/// The u32 fields about the model: name, offset, and whether zero is invalid.
const MODEL: [(&str, usize, bool); 11] = [
    ("model_type", 12, false),
    ("flags", 16, false),
    ("vocab_size", 20, false),
    ("special_token_count", 24, false),
    ("hidden_size", 28, true),
    ("layer_count", 32, true),
    ("head_count", 36, true),
    ("kv_head_count", 40, true),
    ("head_dim", 44, true),
    ("ffn_size", 48, true),
    ("max_context", 52, true),
];

/// The f32 fields.
const NUMBERS: [(&str, usize); 2] = [("rope_theta", 56), ("rms_norm_epsilon", 60)];

impl Header {
    /// Reads the header. Faults that only strict readers refuse go to `tolerated`. A fault is an
    /// error if it leaves the rest of the file without a meaning.
    pub(super) fn read(source: &dyn Source, tolerated: &mut Vec<Error>) -> Result<Self> {
        let byte_len = source.byte_len();
        if byte_len < FIELDS_LEN as u64 {
            return Err(Violation::TooShort { byte_len }.into());
        }
        let mut fields = [0; FIELDS_LEN];
        source.read_at(0, &mut fields)?;
        let record = Record(&fields);
        let magic = record.bytes(0);
        if magic != MAGIC {
            return Err(Violation::Magic { found: magic }.at(0));
        }
        let version = record.u32(4);
        if version != 1 {
            return Err(Violation::Version { found: version }.at(4));
        }
        let found = record.u32(8);
        let span = Span::new(0, found.into()).filter(|span| span.end() <= byte_len);
        let extension = Span::between(FIELDS_LEN as u64, found.into());
        let (Some(span), Some(extension)) = (span, extension) else {
            return Err(Violation::HeaderLength { found, byte_len }.at(8));
        };
        let flags = record.u32(16);
        if flags & !1 != 0 {
            return Err(Violation::Flags { found: flags }.at(16));
        }
        for (field, at, is_needed) in MODEL {
            if is_needed && record.u32(at) == 0 {
                return Err(Violation::Zero { field }.at(at as u64));
            }
        }
        let checksum = record.u64(100);
        if checksum == 0 {
            let field = "the checksum";
            return Err(Violation::Zero { field }.at(100));
        }
        model(record, tolerated);
        let (extension, lost_extension) = if extension.byte_len() > EXTENSION_MAX {
            (Vec::new(), Some(extension.byte_len()))
        } else {
            (bytes_of(source, extension)?.into_owned(), None)
        };
        let tokenizer = What::Tokenizer.within(record.u64(64), Some(record.u64(72)), byte_len);
        Ok(Header {
            span,
            tokenizer: tokenizer.map_err(|violation| violation.at(64))?,
            directory: directory(record, byte_len, tolerated)?,
            data_offset: data_offset(record, byte_len)?,
            layer_count: record.u32(32),
            vocab_size: record.u32(20),
            checksum,
            fields,
            extension,
            lost_extension,
        })
    }

    /// Checks the tokenizer, which only the model's runtime needs.
    pub(super) fn check_tokenizer(
        &self,
        source: &dyn Source,
        tolerated: &mut Vec<Error>,
    ) -> Result<()> {
        let (start, length) = (self.tokenizer.offset(), self.tokenizer.byte_len());
        if length == 0 {
            tolerated.push(Violation::NoTokenizer.at(72));
            return Ok(());
        }
        let mut head = [0; 36];
        let len = usize::try_from(length).map_or(36, |length| length.min(36));
        source.read_at(start, head.split_at_mut(len).0)?;
        let record = Record(&head);
        let (found, section) = (record.bytes(0), record.u32(8));
        let is_whole = match &found {
            // A byte tokenizer is a head alone; the other has tokens and merges after it.
            b"BTOK" => length == 28,
            b"BPE1" => length >= 36,
            _ => {
                tolerated.push(Violation::TokenizerMagic { found }.at(start));
                return Ok(());
            }
        };
        let header = self.vocab_size;
        if !is_whole {
            tolerated.push(Violation::TokenizerShort { length }.at(start));
        } else if section != header {
            tolerated.push(Violation::TokenizerVocabulary { header, section }.at(start));
        }
        Ok(())
    }

    /// The header's fields about the model as attributes. The checksum is not kept, because it
    /// belongs to this file alone.
    pub(super) fn to_attributes(&self) -> Attributes {
        let record = Record(&self.fields);
        let mut fields: Attributes =
            MODEL.into_iter().map(|(field, at, _)| (field, Value::from(record.u32(at)))).collect();
        for (field, at) in NUMBERS {
            fields.insert(field, f64::from(record.f32(at)));
        }
        if !self.extension.is_empty() {
            fields.insert("header_extension", self.extension.clone());
        }
        Attributes::from([("slm1", fields)])
    }
}

/// Checks the fields that the model's runtime needs.
fn model(record: Record<'_>, tolerated: &mut Vec<Error>) {
    // A byte tokenizer has 256 tokens and 4 special ones.
    let fields = [
        ("model_type", 12, 1..=1, "1"),
        ("vocab_size", 20, 260..=u32::MAX, "at least 260"),
        ("special_token_count", 24, 4..=u32::MAX, "at least 4"),
    ];
    for (field, at, allowed, expected) in fields {
        let found = record.u32(at);
        if !allowed.contains(&found) {
            let violation = Violation::Field { field, found, expected };
            tolerated.push(violation.at(at as u64));
        }
    }
    let [hidden, heads, kv_heads, head_dim] = [28, 36, 40, 44].map(|at| record.u32(at));
    if u64::from(heads).checked_mul(head_dim.into()) != Some(hidden.into()) {
        let violation = Violation::HeadCount { heads, head_dim, hidden };
        tolerated.push(violation.at(44));
    }
    // The older description requires equal numbers, the newer one allows groups.
    if heads.checked_rem(kv_heads) != Some(0) {
        tolerated.push(Violation::KeyValueHeads { heads, kv_heads }.at(40));
    }
    for (field, at) in NUMBERS {
        let found = record.f32(at);
        if !(found.is_finite() && found > 0.0) {
            tolerated.push(Violation::Number { field, found }.at(at as u64));
        }
    }
}

fn directory(record: Record<'_>, byte_len: u64, tolerated: &mut Vec<Error>) -> Result<Span> {
    let offset = record.u64(80);
    if !offset.is_multiple_of(GRID) {
        let field = "tensor_directory_offset";
        tolerated.push(Violation::Misaligned { field, offset }.at(80));
    }
    let length = u64::from(record.u32(88)).checked_mul(ENTRY_LEN as u64);
    let span = What::Directory.within(offset, length, byte_len);
    span.map_err(|violation| violation.at(80))
}

fn data_offset(record: Record<'_>, byte_len: u64) -> Result<u64> {
    let offset = record.u64(92);
    if !offset.is_multiple_of(GRID) {
        let field = "tensor_data_offset";
        return Err(Violation::Misaligned { field, offset }.at(92));
    }
    let start = What::Data.within(offset, Some(0), byte_len);
    start.map_err(|violation| violation.at(92))?;
    Ok(offset)
}
