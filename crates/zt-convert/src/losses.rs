//! What a target cannot say: an error, or a warning where that is allowed.

use zt::formats::dense_byte_len;
use zt::{Attributes, DType, Kind, Result};

use crate::fault::Loss;
use crate::merge::{Incoming, display};
use crate::object::Outgoing;
use crate::{ConvertOptions, Summary};

/// Decides what becomes of everything that a target may not be able to say. What is the same for
/// all targets of plain arrays is here, the rest is each target's own.
pub(crate) struct Losses<'l, 'p> {
    pub(crate) target: Kind,
    options: &'l ConvertOptions<'p>,
    summary: &'l mut Summary,
}

impl<'l, 'p> Losses<'l, 'p> {
    pub(crate) fn new(
        target: Kind,
        options: &'l ConvertOptions<'p>,
        summary: &'l mut Summary,
    ) -> Self {
        Losses {
            target,
            options,
            summary,
        }
    }

    /// The object as a plain array, which it may have to be decoded for; `false` where it has no
    /// dense value and is left out.
    pub(crate) fn make_plain(&mut self, object: &mut Outgoing<'_>) -> Result<bool> {
        let dtype = self.options.dtype;
        let is_decoded = self.options.dense || object.is_planes();
        if object.is_dense() || is_decoded && object.decode(dtype) {
            return Ok(true);
        }
        let loss = Loss::Format {
            target: self.target,
            format: object.object().format.to_string(),
            has_dense_value: object.has_dense_value(),
        };
        self.accept(loss, Some(object.name()))?;
        Ok(object.decode(dtype))
    }

    /// The target's type for the values of a plain array, or for their storage, where that is all
    /// that can be said.
    pub(crate) fn typed<T>(
        &mut self,
        object: &Outgoing<'_>,
        from_types: impl Fn(DType, Option<&str>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some((dtype, logical_type)) = object.dense_type() else {
            return Ok(None);
        };
        let known = from_types(dtype, logical_type.as_deref());
        if known.is_some() {
            return Ok(known);
        }
        let loss = Loss::Type {
            target: self.target,
            dtype,
            logical_type: logical_type.map(|name| name.into_owned()),
        };
        self.accept(loss, Some(object.name()))?;
        // Only where one storage element is one value has the shape any meaning without the type.
        let object = object.object();
        let data = object.component("data");
        let stored = data.and_then(|data| data.blob.decoded_len);
        let plain = dense_byte_len(&object.shape, dtype.byte_len() as u64);
        Ok(from_types(dtype, None).filter(|_| stored.is_some() && stored == plain))
    }

    /// What an object has beside its values and the attributes `said` otherwise.
    pub(crate) fn rest(&mut self, object: &Outgoing<'_>, said: &[&str]) -> Result<()> {
        let (name, target) = (Some(object.name()), self.target);
        self.components(object)?;
        for (key, _) in object.attributes().iter().flatten() {
            if !key.as_str().is_some_and(|key| said.contains(&key)) {
                let key = display(key);
                self.accept(Loss::ObjectAttribute { target, key }, name)?;
            }
        }
        self.fields(&object.object().extra, name)
    }

    /// Components that its values are not made of, and unknown fields of the others.
    pub(crate) fn components(&mut self, object: &Outgoing<'_>) -> Result<()> {
        let (name, target) = (Some(object.name()), self.target);
        for (role, component, is_of_value) in object.components() {
            if is_of_value {
                self.fields(&component.extra, name)?;
            } else {
                let role = role.to_owned();
                self.accept(Loss::Component { target, role }, name)?;
            }
        }
        Ok(())
    }

    /// Fields that not even the specification of `.zt` knows.
    pub(crate) fn fields(&mut self, extra: &Attributes, object: Option<&str>) -> Result<()> {
        for (key, _) in extra {
            let (target, key) = (self.target, display(key));
            self.accept(Loss::Field { target, key }, object)?;
        }
        Ok(())
    }

    /// What is written of an object; where that is nothing, it is left out, and the last warning,
    /// which is the reason, says so.
    pub(crate) fn kept<T>(&mut self, incoming: &Incoming<'_>, written: Option<T>) -> Option<T> {
        if written.is_none() {
            let name = incoming.tensor.name();
            let warning = self.summary.warnings.last_mut();
            if let Some(warning) = warning.filter(|it| it.object.as_deref() == Some(name)) {
                warning.message.push_str("; left out");
            }
            self.summary.left_out.push(name.to_owned());
        }
        written
    }

    pub(crate) fn accept(&mut self, loss: Loss, object: Option<&str>) -> Result<()> {
        self.options.accept(loss, object, self.summary)
    }
}
