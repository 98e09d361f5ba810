//! The attributes of an object or a file, and warnings about those that are skipped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use zt::foreign::FileBuilder;
use zt::{Attributes, Value, Warning};

use crate::bytes::name;
use crate::structures::attribute::{AllFound, REPORTED};
use crate::structures::number::Number;

/// The attribute of a dataset of an enumeration: a map from names to values. If several datasets share
/// the datatype, the first has the map, and the others have the first one's name.
pub(crate) const ENUM: &str = "hdf5.enum";

/// The warnings of one object.
pub(crate) struct Warnings<'o> {
    object: Option<&'o str>,
    /// Bytes of the messages and of the object's names in them.
    pub(crate) byte_len: u64,
}

impl<'o> Warnings<'o> {
    pub(crate) fn of(object: Option<&'o str>) -> Self {
        let byte_len = 0;
        Warnings { object, byte_len }
    }

    fn add(&mut self, builder: &mut FileBuilder, mut warning: Warning) {
        let name_len = self.object.map_or(0, str::len);
        let len = warning.message.len().strict_add(name_len) as u64;
        self.byte_len = self.byte_len.strict_add(len);
        warning.object = self.object.map(ToOwned::to_owned);
        builder.warning(warning);
    }

    /// Adds the number of warnings above [`REPORTED`], of `count` in all.
    fn add_rest(&mut self, builder: &mut FileBuilder, mut warning: Warning, count: usize) {
        if let Some(more) = count.checked_sub(REPORTED).filter(|more| *more > 0) {
            warning.message = format!("{more} more {}", warning.message);
            self.add(builder, warning);
        }
    }
}

/// The attributes with a value. The others get a warning, with `prefix` before the name.
pub(crate) fn values(
    builder: &mut FileBuilder,
    report: &mut Warnings<'_>,
    prefix: &str,
    all: AllFound,
) -> Vec<(String, Value)> {
    let mut values = Vec::with_capacity(all.found.len());
    let mut renamed = 0usize;
    for attribute in all.found {
        let name = attribute.name;
        if attribute.is_renamed {
            renamed = renamed.strict_add(1);
            if renamed <= REPORTED {
                let message = name::escaped_message(&format!("{prefix}{name}"));
                report.add(builder, Warning::new(name::CODE, message));
            }
        }
        match attribute.value {
            Ok(value) => values.push((name, value)),
            Err(error) => {
                let (prefix, name) = (prefix.escape_debug(), name.escape_debug());
                let why = error.message();
                let message = format!("attribute \"{prefix}{name}\" is skipped: {why}");
                report.add(builder, Warning::new("attribute", message));
            }
        }
    }
    // A group is not an object, so the message names it.
    let of = match prefix.strip_suffix('@') {
        Some(group) => format!(" of \"{}\"", group.escape_debug()),
        None => String::new(),
    };
    let what = format!("attributes{of} have escaped names");
    report.add_rest(builder, Warning::new(name::CODE, what), renamed);
    let what = format!("attributes{of} are skipped");
    report.add_rest(builder, Warning::new("attribute", what), all.faulty);
    values
}

/// The first value of every name. Other values of the name get a warning.
pub(crate) fn distinct(
    builder: &mut FileBuilder,
    report: &mut Warnings<'_>,
    pairs: Vec<(String, Value)>,
) -> Attributes {
    let mut first: HashMap<&str, &Value> = HashMap::with_capacity(pairs.len());
    let mut keep = Vec::with_capacity(pairs.len());
    let mut others = 0usize;
    for (name, value) in &pairs {
        keep.push(match first.entry(name) {
            Entry::Vacant(place) => {
                place.insert(value);
                true
            }
            Entry::Occupied(known) => {
                if *known.get() != value {
                    others = others.strict_add(1);
                    if others <= REPORTED {
                        let name = name.escape_debug();
                        let message = format!(
                            "duplicate attribute \"{name}\" with another value; the first is kept"
                        );
                        report.add(builder, conflict(message));
                    }
                }
                false
            }
        });
    }
    let what = "duplicate attributes with other values; the first are kept";
    report.add_rest(builder, conflict(what), others);
    pairs.into_iter().zip(keep).filter_map(|(pair, keep)| keep.then_some(pair)).collect()
}

/// Warns of the missing sources of a virtual dataset.
pub(crate) fn missing(builder: &mut FileBuilder, report: &mut Warnings<'_>, names: &[String]) {
    if let [first, rest @ ..] = names {
        let first = first.escape_debug();
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message =
            format!("missing sources, whose values are the fill value: \"{first}\"{more}");
        report.add(builder, Warning::new("missing-source", message));
    }
}

/// Warns of a link that leads nowhere. Such a link is legal.
pub(crate) fn dangling(builder: &mut FileBuilder, path: &str, file: Option<&[u8]>, target: &[u8]) {
    let (path, target) = (path.escape_debug(), name::text(target));
    let of = file
        .map_or_else(String::new, |file| format!(" of \"{}\"", name::text(file).escape_debug()));
    let target = target.escape_debug();
    let message = format!("the link \"{path}\" leads to \"{target}\"{of}, which does not exist");
    builder.warning(Warning::new("dangling-link", message));
}

/// Warns of floats with more bits than their dtype has.
pub(crate) fn rounded(builder: &mut FileBuilder, report: &mut Warnings<'_>, number: &Number) {
    if let Some(layout) = number.bit_layout
        && layout.widened().is_some_and(|(_, is_rounded)| is_rounded)
    {
        let bits = layout.byte_len.strict_mul(8);
        let message = format!("the values are floats of {bits} bits and rounded to f64");
        report.add(builder, Warning::new("rounded", message));
    }
}

/// A warning about two values of one name.
fn conflict(message: impl Into<String>) -> Warning {
    Warning::new("attribute-conflict", message)
}
