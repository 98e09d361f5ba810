//! An object on its way from one file to another.

use std::path::Path;

use zt::formats::{Decode, View};
use zt::manifest::Text;
use zt::{
    Attributes, Component, DType, Error, LogicalType, Object, Planes, Registry, Signature, Tensor,
};

use super::Incoming;

/// The component with the values of a plain array.
pub(super) const DATA: &str = "data";

/// An object and what becomes of it.
pub struct Outgoing<'i> {
    /// The object in its input.
    pub tensor: Tensor<'i>,
    pub(super) registry: &'i Registry,
    path: Option<&'i Path>,
    pub(super) treatment: Treatment,
}

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// Its components as they are.
    Keep,
    /// Its component `data`, cast piece by piece; others as they are.
    Cast(DType),
    /// Its dense value, which is made in memory but for planes, and cast where that is wished.
    Decode(Option<DType>),
}

impl<'i> Outgoing<'i> {
    /// The object as it is; a dense one is cast to `dtype` if its values are floating-point.
    pub fn new(incoming: &Incoming<'i>, dtype: Option<DType>) -> Self {
        let mut this = Outgoing {
            tensor: incoming.tensor,
            registry: incoming.registry,
            path: incoming.path,
            treatment: Treatment::Keep,
        };
        // Planes are values stored in another way: they are cast as dense objects are.
        let stored = match this.is_planes() {
            true => this.decoded_type(),
            false => this.plain_type(),
        };
        if let Some(dtype) = stored.and_then(|stored| this.cast_of(&stored, dtype)) {
            this.treatment = match this.is_planes() {
                true => Treatment::Decode(Some(dtype)),
                false => Treatment::Cast(dtype),
            };
        }
        this
    }

    /// The object's dense value instead of itself; `false` where it has none, and stays as it is.
    pub fn decode(&mut self, dtype: Option<DType>) -> bool {
        match self.decoded_type() {
            Some(value) => {
                self.treatment = Treatment::Decode(self.cast_of(&value, dtype));
                true
            }
            None => false,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'i str {
        self.tensor.name()
    }

    /// What the manifest of its input has about it.
    #[must_use]
    pub fn object(&self) -> &'i Object {
        self.tensor.object()
    }

    /// Whether it is a plain array in its input.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.tensor.format() == "dense" && self.tensor.fault().is_none()
    }

    /// Whether it is a dense object in all but the order of its bytes.
    pub fn is_planes(&self) -> bool {
        self.tensor.format() == Planes::FORMAT && self.tensor.fault().is_none()
    }

    /// Whether it is or has a dense value.
    pub fn has_dense_value(&self) -> bool {
        self.is_dense() || self.decoded_type().is_some()
    }

    /// Whether it is its dense value that is written.
    pub const fn is_decoded(&self) -> bool {
        matches!(self.treatment, Treatment::Decode(_))
    }

    /// Its components, and whether its values are made of them; those of a format that nobody knows
    /// are in `data`, if anywhere.
    pub fn components(&self) -> impl Iterator<Item = (&'i str, &'i Component, bool)> {
        let object = self.object();
        let (format, signature) = (self.registry.format(&object.format), Signature::of(object));
        object.components.iter().map(move |(role, component)| {
            let is_of_value = format.map_or(role == DATA, |it| it.is_of_value(role, &signature));
            (&**role, component, is_of_value)
        })
    }

    /// The format that it is written in.
    pub(super) fn format(&self) -> Text {
        match self.treatment {
            Treatment::Decode(_) => "dense".into(),
            _ => self.object().format.clone(),
        }
    }

    /// The attributes that it is written with. Parameters of a format go with the format.
    pub fn attributes(&self) -> Option<Attributes> {
        let mut attributes = self.object().attributes.clone();
        if let (Treatment::Decode(_), Some(map)) = (self.treatment, &mut attributes) {
            let format = self.registry.format(self.tensor.format());
            for parameter in format.map_or(&[][..], |format| format.parameters()) {
                map.remove(parameter);
            }
            if map.is_empty() {
                return None;
            }
        }
        attributes
    }

    /// The dtype and the logical type of its values, as they are written; `None` for an object
    /// that is written as something else than a plain array.
    pub fn dense_type(&self) -> Option<(DType, Option<Text>)> {
        match self.treatment {
            Treatment::Keep => self.plain_type(),
            Treatment::Cast(dtype) | Treatment::Decode(Some(dtype)) => Some((dtype, None)),
            Treatment::Decode(None) => self.decoded_type(),
        }
    }

    /// What a component is cast to.
    pub(super) fn cast_of_role(&self, role: &str) -> Option<DType> {
        match self.treatment {
            Treatment::Cast(dtype) if role == DATA => Some(dtype),
            _ => None,
        }
    }

    /// The type of a dense object's `data`.
    fn plain_type(&self) -> Option<(DType, Option<Text>)> {
        let data = self.object().component(DATA).filter(|_| self.is_dense())?;
        let dtype = data.dtype?;
        Some((dtype, dtype.logical_type(data.logical_type.clone())))
    }

    /// The type of the dense value that the object's format makes.
    pub(super) fn decoded_type(&self) -> Option<(DType, Option<Text>)> {
        let object = self.object();
        if self.tensor.fault().is_some() {
            return None;
        }
        let format = self.registry.format(&object.format)?;
        format.dense_type(&Signature::of(object), self.registry)
    }

    /// What values of type `stored` are cast to, where `wished` is for them and changes anything.
    fn cast_of(
        &self,
        (dtype, logical_type): &(DType, Option<Text>),
        wished: Option<DType>,
    ) -> Option<DType> {
        let is_floating = match logical_type {
            None => dtype.is_float(),
            Some(name) => {
                let known = self.registry.logical_type(name);
                let decode = known.map(|logical: &LogicalType| logical.decode);
                matches!(decode, Some(Decode::F32(_) | Decode::F64(_)))
            }
        };
        let changes = |wished: &DType| logical_type.is_some() || wished != dtype;
        wished.filter(|wished| is_floating && changes(wished))
    }

    /// An error about the input names it.
    pub(super) fn blame(&self, error: Error) -> Error {
        let error = error.with_object(self.name());
        self.path.into_iter().fold(error, Error::with_path)
    }
}
