//! Attributes as an object or a file has them, and what there is to say of the others.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use zt::{Attributes, Error, ErrorKind, FileBuilder, Result, Value, Warning};

use super::attribute::Found;
use super::name;

/// The attribute of a dataset whose integers have names: a map from the names to them, or the name of
/// the dataset that has it, where they share a datatype.
pub(super) const ENUM: &str = "hdf5.enum";

/// The attributes that have a value; of the others a warning, which has `prefix` before the name.
///
/// # Errors
///
/// [`ErrorKind::Io`]: what could not be read now is not left out as if it could never be.
pub(super) fn values(
    builder: &mut FileBuilder,
    object: Option<&str>,
    prefix: &str,
    found: Vec<Found>,
) -> Result<Vec<(String, Value)>> {
    let mut values = Vec::with_capacity(found.len());
    for attribute in found {
        let name = attribute.name;
        if attribute.is_renamed {
            builder.warning(name::renamed(object, &format!("{prefix}{name}")));
        }
        match attribute.value {
            Ok(value) => values.push((name, value)),
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => builder.warning(left_out(object, &format!("{prefix}{name}"), &error)),
        }
    }
    Ok(values)
}

/// What to say of an attribute without a value.
fn left_out(object: Option<&str>, name: &str, error: &Error) -> Warning {
    let (name, why) = (name.escape_debug(), error.message());
    let message = format!("the attribute \"{name}\" is left out: {why}");
    warning(object, "attribute", message)
}

/// Of several values of one name the first; of the others a warning, where they are others.
pub(super) fn distinct(
    builder: &mut FileBuilder,
    object: Option<&str>,
    mut pairs: Vec<(String, Value)>,
) -> Attributes {
    let mut first: HashMap<&str, &Value> = HashMap::with_capacity(pairs.len());
    let mut keep = Vec::with_capacity(pairs.len());
    for (name, value) in &pairs {
        keep.push(match first.entry(name) {
            Entry::Vacant(place) => {
                place.insert(value);
                true
            }
            Entry::Occupied(known) => {
                if *known.get() != value {
                    let name = name.escape_debug();
                    let message = format!("another value of \"{name}\": the first is kept");
                    builder.warning(warning(object, "attribute-conflict", message));
                }
                false
            }
        });
    }
    let mut keep = keep.into_iter();
    pairs.retain(|_| keep.next().unwrap_or(true));
    pairs.into_iter().collect()
}

fn warning(object: Option<&str>, code: &'static str, message: String) -> Warning {
    Warning {
        object: object.map(ToOwned::to_owned),
        component: None,
        code,
        message,
    }
}
