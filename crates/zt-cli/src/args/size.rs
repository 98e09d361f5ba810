//! A number of bytes, as people write it.

use zt_convert::parse_size;

use crate::output::Output;

/// A size from the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    has_unit: bool,
}

impl Size {
    /// Parses a size.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "expected a size above 0, such as 5GB, 500MB or 2GiB".to_owned();
        let bytes = parse_size(text).ok_or_else(wrong)?;
        let has_unit = text.contains(|c: char| c.is_ascii_alphabetic());
        Ok(Size { bytes, has_unit })
    }

    /// Notes how a small number without a unit was understood: `10` is rarely meant as ten bytes.
    pub(crate) fn note(self, option: &str, output: &Output) {
        let Size { bytes, has_unit } = self;
        if !has_unit && bytes < 1_000_000 {
            output.note(&format!(
                "{option} {bytes} is a number of bytes; {bytes}MB and {bytes}GB have units, and {bytes}B silences this note"
            ));
        }
    }
}
