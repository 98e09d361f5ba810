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
    /// All similar tensors have one type, and this tensor has another.
    Type,
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
            Odd::Type => return f.write_str("another type than similar tensors"),
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
    for (at, problem) in unlike(objects) {
        all[at].push(problem);
    }
    all
}

/// Whether it is a state of an optimizer, or a buffer. Zeros, equal values and any deviation are usual there.
fn is_state(name: &str) -> bool {
    const STATES: [&str; 8] = [
        "exp_inf",
        "momentum_buffer",
        "optim",
        "square_avg",
        "grad_avg",
        "acc_delta",
        "max_exp_avg_sq",
        "step",
    ];
    const BEGINNINGS: [&str; 3] = ["exp_avg", "optimizer", "opt_state"];
    let mut parts = name.split(['.', '/']);
    // Not of a module: `momentum_encoder` has weights.
    let last = name.rsplit(['.', '/']).next().unwrap_or_default();
    let is_buffer = last.starts_with("moment") || last.ends_with("buffer");
    is_buffer
        || parts.any(|part| {
            STATES.contains(&part) || BEGINNINGS.iter().any(|beginning| part.starts_with(beginning))
        })
}

/// Whether equal values are usual: the ones of a norm that was not trained, the zeros of its bias, counters.
fn is_usual(found: &ObjectStats, is_zero: bool) -> bool {
    const COUNTERS: [&str; 2] = ["num_batches_tracked", "position_ids"];
    let name = found.name.to_ascii_lowercase();
    let last = name.rsplit(['.', '/']).next().unwrap_or_default();
    let of_norm = |part: &str| {
        let is_short = ["ln", "bn"].iter().any(|short| part.starts_with(short));
        part.contains("norm") || is_short
    };
    // Keras has `NORM/vars/0`.
    let is_norm = last.starts_with("running_") || name.rsplit(['.', '/']).take(3).any(of_norm);
    // In a sequence of PyTorch a layer has a number for its name. Only a norm begins with a vector of ones.
    let is_scale = is_norm || ["weight", "scale", "gamma"].contains(&last);
    let is_one = found.values.finite.is_some_and(|finite| finite.min.as_f64() == 1.0);
    let is_vector = found.shape.len() == 1;
    // Integers are codes of weights in matrices alone.
    let is_integer =
        found.value_type.as_deref().is_some_and(|it| it.starts_with(['i', 'u']) || it == "bool");
    let is_counter = COUNTERS.contains(&last) || is_zero && is_integer && found.shape.len() < 2;
    is_counter || is_vector && (is_one && is_scale || is_zero && is_norm)
}

fn of_one(found: &ObjectStats) -> Vec<Odd> {
    let stats = &found.values;
    let numbers = [
        (stats.nan, Odd::Nan(stats.nan)),
        (stats.inf, Odd::Infinities(stats.inf)),
        (found.dead_rows, Odd::ZeroRows(found.dead_rows)),
        (found.dead_columns, Odd::ZeroColumns(found.dead_columns)),
    ];
    let is_state = is_state(&found.name);
    let numbers = numbers.into_iter().filter(|(number, odd)| {
        *number > 0 && (!is_state || matches!(odd, Odd::Nan(_) | Odd::Infinities(_)))
    });
    let mut odd: Vec<Odd> = numbers.map(|(_, odd)| odd).collect();
    let is_zero = stats.zeros == stats.count;
    if stats.count > 1 && stats.is_constant() && !is_state && !is_usual(found, is_zero) {
        odd.push(if is_zero { Odd::AllZero } else { Odd::Constant });
    }
    odd
}

/// Deviations that are far from the median of the same tensor in other layers, with their ratios to it, and a type that
/// none of them has.
fn unlike(objects: &[&ObjectStats]) -> Vec<(usize, Odd)> {
    /// Objects that have a median.
    const FEWEST: usize = 4;
    const FACTOR: f64 = 10.0;
    let mut like = HashMap::<_, Vec<(usize, f64)>>::new();
    for (at, stats) in objects.iter().enumerate().filter(|(_, it)| !is_state(&it.name)) {
        if let Some(finite) = stats.values.finite {
            let group = like.entry((pattern(&stats.name), &stats.shape));
            let group = group.or_default();
            group.push((at, finite.std));
        }
    }
    let mut unlike = Vec::new();
    for group in like.into_values().filter(|group| group.len() >= FEWEST) {
        unlike.extend(other_type(objects, &group).map(|at| (at, Odd::Type)));
        let mut deviations: Vec<f64> = group.iter().map(|(_, std)| *std).collect();
        deviations.sort_by(f64::total_cmp);
        let median = deviations[deviations.len() / 2];
        let ratios = group.into_iter().map(|(at, std)| (at, std / median));
        unlike.extend(
            ratios
                .filter(|(_, ratio)| {
                    median > 0.0 && *ratio > 0.0 && !(1.0 / FACTOR..=FACTOR).contains(ratio)
                })
                .map(|(at, ratio)| (at, Odd::Deviation(ratio))),
        );
    }
    unlike
}

/// The only one of a group with another floating-point type, where all others have one type. Quantized models mix types.
fn other_type(objects: &[&ObjectStats], group: &[(usize, f64)]) -> Option<usize> {
    let of = |at: &usize| objects[*at].value_type.as_deref();
    let mut by_type = HashMap::<_, Vec<usize>>::new();
    for (at, _) in group {
        by_type.entry(of(at)).or_default().push(*at);
    }
    let is_float =
        |it: &Option<&str>| it.is_some_and(|it| ["f64", "f32", "f16", "bf16"].contains(&it));
    if by_type.len() != 2 || !by_type.keys().all(is_float) {
        return None;
    }
    by_type.into_values().find_map(|all| match all[..] {
        [only] => Some(only),
        _ => None,
    })
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
