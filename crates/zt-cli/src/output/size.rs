//! Numbers of bytes for people, and sums.

use serde::Serialize;

/// `512 B`, `1.5 KiB`, `250.0 MiB`: binary units, one decimal.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        // 1023.95 would be printed as 1024.0 of the smaller unit.
        if value < 1023.95 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// `78%`. `0%` and `100%` are exact.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let percent = part as f64 / whole as f64 * 100.0;
    match percent {
        _ if part == whole || part == 0 => format!("{percent:.0}%"),
        _ if percent < 1.0 => "<1%".to_owned(),
        _ if percent > 99.0 && percent < 100.0 => ">99%".to_owned(),
        _ => format!("{percent:.0}%"),
    }
}

/// A sum of numbers of files; `None` if it is 2^64 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Sum(pub(crate) Option<u64>);

impl Default for Sum {
    fn default() -> Self {
        Sum(Some(0))
    }
}

impl Sum {
    pub(crate) fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        Sum(numbers.into_iter().try_fold(0, u64::checked_add))
    }

    pub(crate) fn add(&mut self, value: impl Into<Option<u64>>) {
        self.0 = self.0.zip(value.into()).and_then(|(sum, value)| sum.checked_add(value));
    }

    pub(crate) fn text(self, text: impl Fn(u64) -> String) -> String {
        self.0.map_or_else(|| "2^64 or more".to_owned(), text)
    }

    /// For an order: the sum, or the largest number.
    pub(crate) fn or_most(self) -> u64 {
        self.0.unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_begins_where_the_one_before_ends() {
        assert_eq!(human(0), "0 B");
        assert_eq!(human(1023), "1023 B");
        assert_eq!(human(1024), "1.0 KiB");
        assert_eq!(human((1 << 20) - 1), "1.0 MiB");
        assert_eq!(human(262_144_000), "250.0 MiB");
        assert_eq!(human(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn a_percentage_never_rounds_to_0_or_100() {
        assert_eq!(percent(1, 1000), "<1%");
        assert_eq!(percent(999, 1000), ">99%");
        assert_eq!(percent(78, 100), "78%");
        assert_eq!(percent(150, 100), "150%");
        assert_eq!(percent(0, 0), "-");
    }
}
