//! An object on its way from one file to another.

use std::path::Path;

use zt::formats::{Decode, FloatType, PackedType, PlaneCoding};
use zt::manifest::Text;
use zt::{Attributes, Component, DType, Error, LogicalType, Object, Registry, Signature, Tensor};

use crate::outgoing::Incoming;

/// The role of the component with the values of a plain array.
pub const DATA: &str = "data";

/// An object, and how it is written.
pub struct Outgoing<'i> {
    /// The object in its input.
    pub tensor: Tensor<'i>,
    /// The formats with which its input was opened.
    pub registry: &'i Registry,
    path: Option<&'i Path>,
    dtype: Option<FloatType>,
    treatment: Treatment,
    keeps_planes: bool,
}

/// How an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// Its components are copied.
    Keep,
    /// Its component `data` is cast piece by piece, the others are copied.
    Cast(FloatType),
    /// Its dense value is written, and cast to the type if there is one. Planes are streamed; any
    /// other dense value is made in memory.
    Decode(Option<FloatType>),
}

impl<'i> Outgoing<'i> {
    /// The object without changes; a dense one is cast to the type of `incoming` if its values are floating-point.
    pub fn new(incoming: &Incoming<'i>) -> Self {
        let mut this = Outgoing {
            tensor: incoming.tensor,
            registry: incoming.registry,
            path: incoming.path,
            dtype: incoming.dtype,
            treatment: Treatment::Keep,
            keeps_planes: false,
        };
        // Planes and packed floats are plain values, stored in another way, and are cast as those are.
        let is_decoded = this.is_planes() || this.packed().is_some();
        let (stored, treatment): (_, fn(FloatType) -> Treatment) = if is_decoded {
            (this.decoded_type(), |to| Treatment::Decode(Some(to)))
        } else {
            (this.plain_type(), Treatment::Cast)
        };
        if let Some(to) = stored.and_then(|stored| this.cast_of(&stored)) {
            this.treatment = treatment(to);
            this.keeps_planes = this.is_planes();
        }
        this
    }

    /// Writes the object's dense value in its place. Returns `false` if it has none.
    pub fn decode(&mut self) -> bool {
        let Some(value) = self.decoded_type() else {
            return false;
        };
        self.treatment = Treatment::Decode(self.cast_of(&value));
        self.keeps_planes = false;
        true
    }

    /// Its name.
    pub fn name(&self) -> &'i str {
        self.tensor.name()
    }

    /// Its entry in the manifest of its input.
    pub fn object(&self) -> &'i Object {
        self.tensor.object()
    }

    /// Whether it is a plain array in its input.
    pub fn is_dense(&self) -> bool {
        self.tensor.format() == "dense" && self.tensor.fault().is_none()
    }

    /// Whether it is a dense value whose bytes are stored as planes.
    pub fn is_planes(&self) -> bool {
        PlaneCoding::from_format(self.tensor.format()).is_some() && self.tensor.fault().is_none()
    }

    /// The type of its values, if they have less than a byte each and are written as they are.
    pub fn packed(&self) -> Option<PackedType> {
        let is_kept = self.treatment == Treatment::Keep && self.tensor.fault().is_none();
        PackedType::from_format(self.tensor.format()).filter(|_| is_kept)
    }

    /// Whether it is or has a dense value.
    pub fn has_dense_value(&self) -> bool {
        self.is_dense() || self.decoded_type().is_some()
    }

    /// How it is written.
    pub const fn treatment(&self) -> Treatment {
        self.treatment
    }

    /// Whether it is cast and stored as planes, and stays planes in a `.zt` file.
    pub const fn keeps_planes(&self) -> bool {
        self.keeps_planes
    }

    /// Whether its dense value is written in its place.
    pub const fn is_decoded(&self) -> bool {
        matches!(self.treatment, Treatment::Decode(_))
    }

    /// Its components, each with whether the values are made of it. Only `data` is, if the format is
    /// unknown.
    pub fn components(&self) -> impl Iterator<Item = (&'i str, &'i Component, bool)> {
        let object = self.object();
        let (format, signature) = (self.registry.format(&object.format), Signature::of(object));
        object.components.iter().map(move |(role, component)| {
            let is_of_value = format.map_or(role == DATA, |it| it.is_of_value(role, &signature));
            (&**role, component, is_of_value)
        })
    }

    /// The format that it is written in.
    pub fn format(&self) -> Text {
        match self.treatment {
            Treatment::Decode(_) => "dense".into(),
            _ => self.object().format.clone(),
        }
    }

    /// The attributes that it is written with. A dense value has no parameters of a format.
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

    /// The dtype and the logical type that its values are written with; `None` for an object that is
    /// not written as a plain array.
    pub fn dense_type(&self) -> Option<(DType, Option<Text>)> {
        match self.treatment {
            Treatment::Keep => self.plain_type(),
            Treatment::Cast(to) | Treatment::Decode(Some(to)) => Some(to.value_type()),
            Treatment::Decode(None) => self.decoded_type(),
        }
    }

    /// The type that a component is cast to.
    pub fn cast_of_role(&self, role: &str) -> Option<FloatType> {
        match self.treatment {
            Treatment::Cast(to) if role == DATA => Some(to),
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

    /// The type that values are cast to: the wished one, if the values are floating-point and it differs.
    fn cast_of(&self, (dtype, logical_type): &(DType, Option<Text>)) -> Option<FloatType> {
        let is_floating = match logical_type {
            None => dtype.is_float(),
            Some(name) => {
                let known = self.registry.logical_type(name);
                let decode = known.map(|logical: &LogicalType| logical.decode);
                matches!(decode, Some(Decode::F32(_) | Decode::F64(_)))
            }
        };
        let is_packed = PackedType::from_format(self.tensor.format()).is_some();
        let changes = |wished: &FloatType| {
            is_packed
                || (wished.dtype(), wished.logical_type()) != (*dtype, logical_type.as_deref())
        };
        self.dtype.filter(|wished| is_floating && changes(wished))
    }

    /// `error` with the name of the object and the path of its input.
    pub fn blame(&self, error: Error) -> Error {
        let error = error.with_object(self.name());
        self.path.into_iter().fold(error, Error::with_path)
    }
}
