//! Why a pickle is refused.

use std::fmt;

/// Why a pickle is refused, and where.
#[derive(Debug)]
pub struct PickleError {
    /// The byte of the pickle where the instruction begins; for [`PickleFault::Global`], where the
    /// global is named.
    pub at: usize,
    /// What is wrong.
    pub fault: PickleFault,
}

/// What is wrong with an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PickleFault {
    /// The pickle ends within an instruction.
    Cut {
        /// Bytes that the instruction takes.
        needed: u64,
        /// Bytes that follow.
        available: u64,
    },
    /// An unknown protocol.
    Protocol {
        /// Its number.
        found: u8,
    },
    /// A byte that is no instruction, or an instruction that no data needs.
    Instruction {
        /// The byte.
        code: u8,
    },
    /// An object is made by a global that the caller does not accept.
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
    /// An object of a value that is not a class.
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
    /// The instruction acts on a value of another type.
    Operand {
        /// The type that it acts on.
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
    /// An invalid number, or a negative length.
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
        /// Bytes that were asked for.
        byte_len: u64,
    },
}

impl std::error::Error for PickleError {}

impl fmt::Display for PickleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid pickle at byte {}: {}", self.at, self.fault)
    }
}

impl fmt::Display for PickleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PickleFault::Cut { needed, available } => {
                write!(
                    f,
                    "truncated: {needed} bytes are needed, {available} follow"
                )
            }
            PickleFault::Protocol { found } => {
                write!(f, "protocol {found} is unknown; 0 to 5 are supported")
            }
            PickleFault::Instruction { code } => {
                let code = [*code];
                write!(f, "unsupported instruction '{}'", code.escape_ascii())
            }
            PickleFault::Global { module, name } => write!(
                f,
                "an object of the global {}.{}, which is not a known type of data; nothing was run",
                module.escape_debug(),
                name.escape_debug()
            ),
            PickleFault::Call { found } => write!(f, "a call of {found}"),
            PickleFault::Class { found } => write!(f, "an object of {found}, not of a class"),
            PickleFault::StackEmpty => f.write_str("the stack holds too few values"),
            PickleFault::NoMark => f.write_str("no mark is on the stack"),
            PickleFault::NoMemo { index } => write!(f, "memo {index} was not stored"),
            PickleFault::Operand { expected, found } => {
                write!(f, "expected {expected}, found {found}")
            }
            PickleFault::OddItems { count } => {
                write!(f, "{count} items are not pairs of keys and values")
            }
            PickleFault::Unhashable { found } => write!(f, "{found} cannot be a key"),
            PickleFault::NotUtf8 => f.write_str("a text is not UTF-8"),
            PickleFault::Number => f.write_str("invalid number"),
            PickleFault::Limit { what, limit } => {
                write!(f, "more than the limit of {limit} {what}")
            }
            PickleFault::Allocation { byte_len } => {
                write!(
                    f,
                    "the system refused {byte_len} bytes of memory for its values"
                )
            }
        }
    }
}
