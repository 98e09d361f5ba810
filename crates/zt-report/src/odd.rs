//! What is unusual in the values of objects.

use std::collections::HashMap;
use std::fmt;

use zt::stats::ObjectStats;

/// A problem of the values of an object.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Odd {
    /// This many values are NaN.
    Nan(u64),
    /// This many values are infinite.
    Infinities(u64),
    /// This many rows of a matrix are zeros only.
    ZeroRows(u64),
    /// This many columns of a matrix are zeros only.
    ZeroColumns(u64),
    /// All values are 0.
    AllZero,
    /// All values are one number.
    Constant,
    /// The deviation is this many times the median of objects of one shape whose names differ only in numbers.
    Deviation(f64),
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, one, many) = match self {
            Odd::Nan(number) => (number, "NaN", "NaN"),
            Odd::Infinities(number) => (number, "infinity", "infinities"),
            Odd::ZeroRows(number) => (number, "row of zeros", "rows of zeros"),
            Odd::ZeroColumns(number) => (number, "column of zeros", "columns of zeros"),
            Odd::AllZero => return f.write_str("all zero"),
            Odd::Constant => return f.write_str("constant"),
            Odd::Deviation(ratio) => {
                return write!(f, "deviation {} times that of similar tensors", digits(*ratio));
            }
        };
        write!(f, "{number} {}", if *number == 1 { one } else { many })
    }
}

/// What is unusual in each of these objects: outliers among similar tensors, NaN, infinities, zeros.
#[must_use]
pub fn odd(objects: &[&ObjectStats]) -> Vec<Vec<Odd>> {
    let mut all: Vec<Vec<Odd>> = objects.iter().map(|stats| of_one(stats)).collect();
    for (at, ratio) in unlike(objects) {
        all[at].push(Odd::Deviation(ratio));
    }
    all
}

fn of_one(found: &ObjectStats) -> Vec<Odd> {
    let stats = &found.values;
    let numbers = [
        (stats.nan, Odd::Nan(stats.nan)),
        (stats.inf, Odd::Infinities(stats.inf)),
        (found.dead_rows, Odd::ZeroRows(found.dead_rows)),
        (found.dead_columns, Odd::ZeroColumns(found.dead_columns)),
    ];
    let numbers = numbers.into_iter().filter(|(number, _)| *number > 0);
    let mut odd: Vec<Odd> = numbers.map(|(_, odd)| odd).collect();
    if stats.count > 1 && stats.is_constant() {
        let is_zero = stats.zeros == stats.count;
        odd.push(if is_zero { Odd::AllZero } else { Odd::Constant });
    }
    odd
}

/// Deviations that are far from the median of the same tensor in other layers, with their ratios to it.
fn unlike(objects: &[&ObjectStats]) -> Vec<(usize, f64)> {
    /// Objects that have a median.
    const FEWEST: usize = 4;
    const FACTOR: f64 = 10.0;
    let mut like = HashMap::<_, Vec<(usize, f64)>>::new();
    for (at, stats) in objects.iter().enumerate() {
        if let Some(finite) = stats.values.finite {
            let group = like.entry((pattern(&stats.name), &stats.shape));
            let group = group.or_default();
            group.push((at, finite.std));
        }
    }
    let mut unlike = Vec::new();
    for group in like.into_values().filter(|group| group.len() >= FEWEST) {
        let mut deviations: Vec<f64> = group.iter().map(|(_, std)| *std).collect();
        deviations.sort_by(f64::total_cmp);
        let median = deviations[deviations.len() / 2];
        let ratios = group.into_iter().map(|(at, std)| (at, std / median));
        unlike.extend(ratios.filter(|(_, ratio)| {
            median > 0.0 && *ratio > 0.0 && !(1.0 / FACTOR..=FACTOR).contains(ratio)
        }));
    }
    unlike
}

/// The name with `*` for each number.
fn pattern(name: &str) -> String {
    let mut pattern = String::new();
    for character in name.chars() {
        if !character.is_ascii_digit() {
            pattern.push(character);
        } else if !pattern.ends_with('*') {
            pattern.push('*');
        }
    }
    pattern
}

/// Four significant digits.
#[must_use]
pub fn digits(value: f64) -> String {
    let text = format!("{value:.3e}");
    let exponent = text.rsplit('e').next().and_then(|it| it.parse::<i32>().ok());
    match exponent {
        _ if value == 0.0 => "0".to_owned(),
        Some(exponent @ -4..=5) => {
            let decimals = usize::try_from((3 - exponent).max(0)).unwrap_or(0);
            format!("{value:.decimals$}")
        }
        _ => text,
    }
}
