//! Why a pickle is refused.

use std::fmt;

use crate::risk::{Among, Use};

/// Why a pickle is refused, and where.
///
/// ```
/// use zt_pickle::{NoGlobal, PickleFault, load};
///
/// let error = load(b"K\x01", |_, _, _| None::<NoGlobal>).unwrap_err();
/// assert_eq!(error.at, 2);
/// assert_eq!(error.fault, PickleFault::Truncated { needed: 1, available: 0 });
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct PickleError {
    /// The byte of the pickle where the instruction begins; for [`PickleFault::Global`], where the
    /// global is named.
    pub at: u64,
    /// What is wrong.
    pub fault: PickleFault,
    /// What Python would call or import before it finds that.
    pub uses: Vec<Use>,
}

/// What is wrong with an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PickleFault {
    /// The pickle ends within an instruction.
    Truncated {
        /// Bytes that the instruction needs.
        needed: u64,
        /// Bytes that are left.
        available: u64,
    },
    /// An unsupported protocol.
    Protocol {
        /// Its number.
        found: u8,
    },
    /// An unknown or unsupported instruction.
    Instruction {
        /// The byte.
        code: u8,
    },
    /// An object of a global that the caller does not accept.
    Global {
        /// The module, cut to 120 characters.
        module: String,
        /// The name, cut to 120 characters.
        name: String,
    },
    /// A call of a value that is not a global.
    Call {
        /// Its type.
        found: &'static str,
    },
    /// `NEWOBJ` of a value that is not a class.
    Class {
        /// Its type.
        found: &'static str,
    },
    /// The stack holds fewer values than the instruction takes.
    StackEmpty,
    /// No mark is on the stack.
    NoMark,
    /// A memo that was not stored.
    NoMemo {
        /// Its index.
        index: u64,
    },
    /// A value of the wrong type.
    Operand {
        /// The type that the instruction needs.
        expected: &'static str,
        /// The type of the value.
        found: &'static str,
    },
    /// An odd number of keys and values.
    OddItems {
        /// How many.
        count: usize,
    },
    /// An unhashable key.
    Unhashable {
        /// Its type.
        found: &'static str,
    },
    /// A text that is not UTF-8.
    NotUtf8,
    /// An invalid number, length or escape.
    Number,
    /// A limit is exceeded.
    Limit {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The system refused memory.
    Allocation {
        /// Bytes that were requested.
        byte_len: u64,
    },
}

impl std::error::Error for PickleError {}

impl fmt::Display for PickleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid pickle at byte {}: {}", self.at, self.fault)?;
        match self.uses.iter().find(|it| it.is_danger) {
            Some(danger) => write!(f, "; before that, {}", Among(danger, &self.uses)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for PickleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use PickleFault as Fault;
        match self {
            Fault::Truncated { needed, available } => {
                write!(f, "truncated: {available} of {needed} bytes are there")
            }
            Fault::Protocol { found } => {
                write!(f, "protocol {found} is unsupported; 0 to 5 are supported")
            }
            Fault::Instruction { code } => {
                write!(f, "unsupported instruction '{}'", [*code].escape_ascii())
            }
            Fault::Global { module, name } => {
                let (module, name) = (module.escape_debug(), name.escape_debug());
                write!(f, "unsupported global {module}.{name}; nothing was run")
            }
            Fault::Call { found } => write!(f, "{found} cannot be called"),
            Fault::Class { found } => write!(f, "{found} is not a class"),
            Fault::StackEmpty => f.write_str("the stack holds too few values"),
            Fault::NoMark => f.write_str("no mark is on the stack"),
            Fault::NoMemo { index } => write!(f, "memo {index} was not stored"),
            Fault::Operand { expected, found } => write!(f, "expected {expected}, found {found}"),
            Fault::OddItems { count } => write!(f, "a dict of {count} keys and values"),
            Fault::Unhashable { found } => write!(f, "{found} cannot be a key"),
            Fault::NotUtf8 => f.write_str("a text is not UTF-8"),
            Fault::Number => f.write_str("invalid number, length or escape"),
            Fault::Limit { what, limit } => write!(f, "more than the limit of {limit} {what}"),
            Fault::Allocation { byte_len } => {
                write!(f, "the system refused {byte_len} bytes of memory")
            }
        }
    }
}
