//! A number of bytes, as people write it.

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
        let bytes = parse(text)?;
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

/// Parses `5GB`, `1.5 GiB` or `4096`. Units are decimal as on the Hub, and binary with an `i`.
fn parse(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KIB", 1 << 10),
        ("MIB", 1 << 20),
        ("GIB", 1 << 30),
        ("TIB", 1 << 40),
    ];
    let wrong = || "expected a size above 0, such as 5GB, 500MB or 2GiB".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim_start().to_ascii_uppercase();
    let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let bytes = match number.parse::<u64>() {
        Ok(number) => number.checked_mul(factor),
        Err(_) => number.parse().ok().and_then(|number| scaled(number, factor)),
    };
    bytes.filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

/// Rounded down, as `huggingface_hub` does.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range was checked"
)]
fn scaled(number: f64, factor: u64) -> Option<u64> {
    let bytes = number * factor as f64;
    (0.0..u64::MAX as f64).contains(&bytes).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_sizes_are_parsed() {
        for (text, bytes) in [
            ("5GB", 5_000_000_000),
            ("500MB", 500_000_000),
            ("1.5KB", 1_500),
            ("2TB", 2_000_000_000_000),
            ("0.001 GB", 1_000_000),
            ("7kb", 7_000),
            ("2GiB", 2 << 30),
            ("0.5 MiB", 1 << 19),
            (" 4096 ", 4096),
            ("18446744073709551615", u64::MAX),
            ("1B", 1),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "0GB", "0.1", "GB", "-5GB", "5 G", "5PB", "1e9", "nan", "1.5.0MB"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("20000000TB").is_err());
    }
}
