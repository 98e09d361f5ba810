//! What is in a file beside its tensors: attributes, and the objects that are left out.

use std::collections::BTreeMap;

use zt::manifest::Value;
use zt::{Error, ErrorKind, Result, Warning};
use zt_pickle::{Among, Use};

use crate::budget::Budget;
use crate::fault::TorchFault;

/// What is in a file beside its tensors.
#[derive(Default)]
pub(super) struct Others {
    pub(super) attributes: Vec<(Value, Value)>,
    /// The objects of unknown classes, by their classes.
    pub(super) left_out: BTreeMap<String, LeftOut>,
    pub(super) has_tensors: bool,
}

pub(super) struct LeftOut {
    /// The path of the first.
    pub(super) first: String,
    pub(super) count: usize,
    /// The byte of the file where the class is named.
    pub(super) offset: Option<u64>,
}

impl Others {
    pub(super) fn attribute(
        &mut self,
        name: String,
        value: Value,
        budget: &mut Budget,
    ) -> Result<(), TorchFault> {
        // The value itself was counted when it was made; a name has an allocation of its own.
        budget.spend(size_of::<Value>())?;
        budget.spend(name.len().next_multiple_of(16).strict_add(16))?;
        if self.attributes.len() == self.attributes.capacity() {
            self.attributes.reserve_exact((self.attributes.len() / 8).max(16));
        }
        self.attributes.push((name.into(), value));
        Ok(())
    }

    /// Refuses a file that has objects of unknown classes only, because of a dangerous one if there is one.
    pub(super) fn refuse(&self, uses: &[Use]) -> Result<()> {
        let Some((class, first)) = self.left_out.first_key_value() else {
            return Ok(());
        };
        let dangers = uses.iter().filter(|found| found.is_danger);
        let danger = dangers.min_by_key(|danger| !self.left_out.contains_key(&danger.global));
        let error = match danger {
            Some(danger) => {
                let message = Among(danger, uses).to_string();
                Error::new(ErrorKind::Unsupported, danger.code(), message)
            }
            None => {
                let class = class.clone();
                TorchFault::Unknown { class, at: None }.into()
            }
        };
        let left_out = danger.and_then(|danger| self.left_out.get(&danger.global));
        let left_out = left_out.unwrap_or(first);
        Err(match left_out.offset {
            Some(offset) => error.with_offset(offset),
            None => error,
        })
    }
}

/// The warning about a global, which is an error to those who want none.
pub(super) fn warned(found: &Use) -> Error {
    Error::new(ErrorKind::Unsupported, found.code(), found.to_string())
}

impl LeftOut {
    pub(super) fn warning(&self, class: &str) -> Warning {
        let class = class.escape_debug();
        let message = match self.count {
            1 => format!("left out: an object of {class}; tensors in it are listed"),
            count => format!("left out: {count} objects of {class}; tensors in them are listed"),
        };
        let warning = Warning::new("unknown-class", message);
        match self.first.as_str() {
            // The root.
            "" => warning,
            first => warning.with_object(first),
        }
    }
}
