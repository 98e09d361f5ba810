//! Attributes as an object or a file has them, and what there is to say of the others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use zt::foreign::{FileBuilder, WarningKind};
use zt::{Attributes, Value, Warning};

use crate::attribute::{AllFound, TOLD};
use crate::name;

/// The attribute of a dataset whose integers have names: a map from the names to them, or the name of
/// the dataset that has it, where they share a datatype.
pub(super) const ENUM: &str = "hdf5.enum";

/// Warnings of one object.
pub(super) struct Warnings<'o> {
    object: Option<&'o str>,
    /// Bytes of their texts: each has the object's name.
    pub(super) byte_len: u64,
}

impl<'o> Warnings<'o> {
    pub(super) fn of(object: Option<&'o str>) -> Self {
        let byte_len = 0;
        Warnings { object, byte_len }
    }

    fn tell(&mut self, builder: &mut FileBuilder, warning: Warning) {
        let name_len = self.object.map_or(0, str::len);
        let len = warning.message.len().saturating_add(name_len) as u64;
        self.byte_len = self.byte_len.saturating_add(len);
        builder.warning(Warning {
            object: self.object.map(ToOwned::to_owned),
            ..warning
        });
    }

    /// Tells how many of `count` are not told one by one.
    fn tell_rest(&mut self, builder: &mut FileBuilder, warning: Warning, count: usize) {
        if let Some(more) = count.checked_sub(TOLD).filter(|more| *more > 0) {
            let message = format!("{more} more {}", warning.message);
            self.tell(builder, Warning { message, ..warning });
        }
    }
}

/// The attributes that have a value; of the others a warning, which has `prefix` before the name.
pub(super) fn values(
    builder: &mut FileBuilder,
    told: &mut Warnings<'_>,
    prefix: &str,
    all: AllFound,
) -> Vec<(String, Value)> {
    let mut values = Vec::with_capacity(all.found.len());
    let mut renamed = 0usize;
    for attribute in all.found {
        let name = attribute.name;
        if attribute.is_renamed {
            renamed = renamed.saturating_add(1);
            if renamed <= TOLD {
                let message = name::escaped_message(&format!("{prefix}{name}"));
                told.tell(builder, Warning::new(name::CODE, message));
            }
        }
        match attribute.value {
            Ok(value) => values.push((name, value)),
            Err(error) => {
                let (prefix, name) = (prefix.escape_debug(), name.escape_debug());
                let why = error.message();
                let message = format!("attribute \"{prefix}{name}\" is skipped: {why}");
                told.tell(builder, Warning::new("attribute", message));
            }
        }
    }
    // A group is no object of the file.
    let of = match prefix.strip_suffix('@') {
        Some(group) => format!(" of \"{}\"", group.escape_debug()),
        None => String::new(),
    };
    let what = format!("attributes{of} have escaped names");
    told.tell_rest(builder, Warning::new(name::CODE, what), renamed);
    let what = format!("attributes{of} are skipped");
    told.tell_rest(builder, Warning::new("attribute", what), all.faulty);
    values
}

/// Of several values of one name the first; of the others a warning, where they are others.
pub(super) fn distinct(
    builder: &mut FileBuilder,
    told: &mut Warnings<'_>,
    mut pairs: Vec<(String, Value)>,
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
                    others = others.saturating_add(1);
                    if others <= TOLD {
                        let name = name.escape_debug();
                        let message = format!(
                            "duplicate attribute \"{name}\" with another value; the first is kept"
                        );
                        told.tell(builder, conflict(message));
                    }
                }
                false
            }
        });
    }
    let what = "duplicate attributes with other values; the first are kept";
    told.tell_rest(builder, conflict(what), others);
    let mut keep = keep.into_iter();
    pairs.retain(|_| keep.next().unwrap_or(true));
    pairs.into_iter().collect()
}

/// Two values of one name.
fn conflict(message: impl Into<String>) -> Warning {
    Warning::new("attribute-conflict", message).with_kind(WarningKind::PassedOver)
}
