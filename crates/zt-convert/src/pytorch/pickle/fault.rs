//! Why a pickle is refused.

use std::fmt;

/// A fault of a pickle, and where: bytes from the pickle's first.
#[derive(Debug)]
pub(in crate::pytorch) struct PickleError {
    pub(in crate::pytorch) at: usize,
    pub(in crate::pytorch) fault: PickleFault,
}

/// What is wrong with an instruction. `at` of [`PickleError`] is where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pytorch) enum PickleFault {
    /// The bytes end before the instruction does.
    Cut { needed: u64, available: u64 },
    /// A protocol that does not exist.
    Protocol { found: u8 },
    /// A byte that is no instruction, or one that no data needs.
    Instruction { code: u8 },
    /// An object is made by a global that is not on the list. `at` is where that is named.
    Global {
        module: String,
        name: String,
        at: usize,
    },
    /// A call of something that is no global.
    Call { found: &'static str },
    /// An object made of something that is no class.
    Class { found: &'static str },
    /// The stack holds less than the instruction takes.
    StackEmpty,
    /// No mark is on the stack.
    NoMark,
    /// A memo of that index was never made.
    NoMemo { index: u64 },
    /// The instruction acts on something else.
    Operand {
        expected: &'static str,
        found: &'static str,
    },
    /// A key without a value.
    OddItems { count: usize },
    /// A key that Python cannot look up.
    Unhashable { found: &'static str },
    /// A text that is not UTF-8.
    NotUtf8,
    /// A number that is none, or a length below zero.
    Number,
    /// More of something than is ever needed.
    Limit { what: &'static str, limit: u64 },
    /// Memory that is not to be had.
    Allocation { byte_len: u64 },
}

impl fmt::Display for PickleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the pickle is refused at byte {}: {}",
            self.at, self.fault
        )
    }
}

impl fmt::Display for PickleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PickleFault::Cut { needed, available } => {
                write!(f, "{needed} bytes are needed, {available} follow")
            }
            PickleFault::Protocol { found } => {
                write!(f, "protocol {found}; 0 to 5 are known")
            }
            PickleFault::Instruction { code } => {
                let code = [*code];
                write!(
                    f,
                    "'{}' is no instruction that data needs",
                    code.escape_ascii()
                )
            }
            PickleFault::Global { module, name, .. } => write!(
                f,
                "an object is made by the global {}.{}, which is not one of those that hold \
                 data; nothing was run",
                module.escape_debug(),
                name.escape_debug()
            ),
            PickleFault::Call { found } => write!(f, "{found} is called"),
            PickleFault::Class { found } => write!(f, "an object is made of {found}"),
            PickleFault::StackEmpty => f.write_str("the stack holds too little"),
            PickleFault::NoMark => f.write_str("there is no mark on the stack"),
            PickleFault::NoMemo { index } => write!(f, "memo {index} was never made"),
            PickleFault::Operand { expected, found } => {
                write!(f, "{expected} is expected, and there is {found}")
            }
            PickleFault::OddItems { count } => {
                write!(f, "{count} items are not keys and values")
            }
            PickleFault::Unhashable { found } => write!(f, "{found} is a key"),
            PickleFault::NotUtf8 => f.write_str("a text is not UTF-8"),
            PickleFault::Number => f.write_str("a number is none"),
            PickleFault::Limit { what, limit } => {
                write!(f, "more than the limit of {limit} {what}")
            }
            PickleFault::Allocation { byte_len } => {
                write!(f, "its values take {byte_len} bytes, which cannot be had")
            }
        }
    }
}
