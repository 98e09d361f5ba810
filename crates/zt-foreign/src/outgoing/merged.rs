//! Several inputs as one.

use std::path::Path;

use zt::{Attributes, Entry, File, FloatType, Registry, Result, Tensor};

use crate::outgoing::ConvertOptions;

/// All objects of all inputs, and the attributes of the files.
#[derive(Debug)]
pub struct Merged<'i> {
    /// The objects, input by input, each in the order of its data.
    pub objects: Vec<Incoming<'i>>,
    /// The attributes of all files; `None` if no input has any.
    pub attributes: Option<Attributes>,
    /// Fields of the files' roots that the specification does not know.
    pub extra: Attributes,
}

impl<'i> Merged<'i> {
    /// All of one file, cast as the options say.
    ///
    /// # Errors
    ///
    /// The fault of an object, or of the attributes.
    pub fn of(file: &'i File, options: &ConvertOptions<'_>) -> Result<Self> {
        let incoming = |entry: Entry<'i>| {
            let dtype = options.dtype_of(entry.name());
            Ok(Incoming { dtype, ..Incoming::new(entry.tensor()?, file.registry()) })
        };
        let objects = file.entries().into_iter().map(incoming);
        Ok(Merged {
            objects: objects.collect::<Result<_>>()?,
            attributes: file.attributes()?,
            extra: file.extra()?,
        })
    }
}

/// An object of an input.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'i> {
    /// The object.
    pub tensor: Tensor<'i>,
    /// The formats with which its input was opened.
    pub registry: &'i Registry,
    /// The path of its input.
    pub path: Option<&'i Path>,
    /// The type that its floating-point values are cast to.
    pub dtype: Option<FloatType>,
}

impl<'i> Incoming<'i> {
    /// An object as it is, of an input without a path.
    pub const fn new(tensor: Tensor<'i>, registry: &'i Registry) -> Self {
        Incoming { tensor, registry, path: None, dtype: None }
    }
}
