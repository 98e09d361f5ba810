//! The name of a kind of file.

use std::fmt;

/// The format of an open file, recognised by its bytes.
///
/// Importers name their own with [`Kind::new`]; `zt` itself opens [`Kind::ZT`] alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(&'static str);

impl Kind {
    /// `.zt` of any generation that this crate reads.
    pub const ZT: Kind = Kind("zt");

    /// The kind of that name, in lower case.
    pub const fn new(name: &'static str) -> Self {
        Kind(name)
    }

    /// Its name: `zt`, `safetensors`, ...
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
