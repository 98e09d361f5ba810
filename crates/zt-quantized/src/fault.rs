//! Why a quantized weight has no values.

use zt::{Error, ErrorKind};

/// Why a quantized weight has no values. The object of the error is the weight.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{dialect}: {part} is missing")]
    Missing { dialect: &'static str, part: String },
    #[error("{dialect}: {part} is missing in this shard: open the whole set")]
    InShard { dialect: &'static str, part: String },
    #[error("{name} has the shape {shape:?}, which does not fit {}", matrices(*count, *rows, *columns))]
    Shape { name: String, shape: Vec<u64>, count: u64, rows: u64, columns: u64 },
    #[error("{name} has the shape {shape:?}, whose rows are not whole groups of {group} values")]
    Groups { name: String, shape: Vec<u64>, group: u64 },
    #[error("{found} values for codes of {bits} bits")]
    Values { found: usize, bits: u32 },
    #[error("the shape {shape:?} has more values than {found:?} has codes")]
    TooFew { shape: Vec<u64>, found: Vec<u64> },
    #[error("{name} gives position {position} the group {group}; there are {count}")]
    Group { name: String, position: usize, group: i64, count: u64 },
    #[error("{name} is of the format {format}, not a plain array")]
    Format { name: String, format: String },
    #[error("has too many values")]
    TooLong,
    #[error("{dialect}: {what}")]
    Rule { dialect: &'static str, what: String },
    #[error("{dialect}: {what} is not computed")]
    Unknown { dialect: &'static str, what: String },
    #[error("{dialect} has no place for {what}")]
    NoPlace { dialect: &'static str, what: String },
    #[error("quantized weights are not written in the dialect {name:?}: use one of {}", crate::in_dialect::TARGETS.join(", "))]
    Target { name: String },
    #[error("{file}: {what}")]
    Settings { file: String, what: String },
}

fn matrices(count: u64, rows: u64, columns: u64) -> String {
    match count {
        1 => format!("{rows} x {columns}"),
        _ => format!("{count} x {rows} x {columns}"),
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unknown { .. }
            | Fault::NoPlace { .. }
            | Fault::Target { .. }
            | Fault::Format { .. }
            | Fault::TooLong => Error::new(ErrorKind::Unsupported, "unsupported", fault),
            _ => Error::new(ErrorKind::Malformed, "quantization", fault),
        }
    }
}

impl From<Fault> for std::io::Error {
    fn from(fault: Fault) -> Self {
        Error::from(fault).into()
    }
}
