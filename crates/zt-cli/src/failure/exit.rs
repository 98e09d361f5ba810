//! The exit codes.

/// The exit codes. Scripts depend on them, and `zt --help` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Ok = 0,
    /// Verification failed, or one object is damaged.
    Failed = 1,
    Usage = 2,
    /// The file is refused as a whole.
    Refused = 3,
    Io = 4,
    Unsupported = 5,
    /// Another program edits the file.
    Locked = 6,
    HungUp = 129,
    Interrupted = 130,
    /// The reader of a file on stdout has closed the pipe. A shell gives this code to a process that
    /// SIGPIPE ended.
    CutOff = 141,
    Terminated = 143,
}
