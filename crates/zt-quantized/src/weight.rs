//! A quantized weight that was found.

use zt::manifest::Text;
use zt::{Error, FloatType, Result, Warning};

use crate::fault::Fault;
use crate::values::weight::Formula;

/// A weight, and the tensors that it is made of.
#[derive(Debug)]
pub struct Weight {
    /// Its name in the model that is not quantized.
    pub name: String,
    /// The dialect.
    pub dialect: Text,
    /// The tensors of the file that it is made of and that are no tensors of their own: the codes first.
    pub parts: Vec<String>,
    /// The type in which the dialect's own code gives the values.
    pub float: FloatType,
    /// How the values are made, or why there are none.
    pub formula: Result<Formula>,
    /// The keys of the file's header that describe it, and that a file of the weights does not keep.
    pub header: Vec<String>,
    /// What a reader should know, though there are values.
    pub warnings: Vec<Warning>,
}

impl Weight {
    /// A weight of `parts`, of which the first has the codes.
    pub fn new(
        name: impl Into<String>,
        dialect: impl Into<Text>,
        parts: impl IntoIterator<Item = String>,
        float: FloatType,
        formula: Result<Formula>,
    ) -> Self {
        let (name, dialect) = (name.into(), dialect.into());
        let formula = formula.map_err(|error: Error| error.with_object(&name));
        let parts = parts.into_iter().collect();
        Weight { name, dialect, parts, float, formula, header: Vec::new(), warnings: Vec::new() }
    }

    /// Says of a part that is missing that another shard may have it.
    pub(crate) fn in_shard(&mut self) {
        let fault = self.formula.as_ref().err().and_then(|error| error.inner()?.downcast_ref());
        if let Some(Fault::Missing { dialect, part }) = fault {
            let fault = Fault::InShard { dialect, part: part.clone() };
            self.formula = Err(Error::from(fault).with_object(&self.name));
        }
    }

    /// The same weight, which these keys of the header describe.
    pub fn with_header(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.header.extend(keys);
        self
    }

    /// The same weight with a warning.
    pub fn with_warning(mut self, code: &'static str, message: impl Into<String>) -> Self {
        self.warnings.push(Warning::new(code, message).with_object(&self.name));
        self
    }
}
