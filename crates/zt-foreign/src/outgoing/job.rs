//! One file that is being written: its options, its losses, its summary.
use zt::foreign::Kind;
use zt::formats::dense_byte_len;
use zt::{Attributes, DType, Error, Result, Warning};

use crate::faults::{Cast, Fault, Grade, LOSSY, Loss, display};
use crate::outgoing::{ConvertOptions, Incoming, Outgoing, Summary};

/// The attribute of an object with the shape in which a GGUF file stores it. Its values do not depend on it.
pub const STORED_SHAPE: &str = "gguf.shape";

/// One file that is being written.
///
/// A loss of metadata is a warning. A loss of values is a warning if the options allow it, and
/// otherwise refused: [`Job::check`] reports all refused losses at once, so a writer calls it before
/// it writes the first value. The losses that all targets of plain arrays share are here; each target
/// has its own besides.
#[derive(Debug)]
pub struct Job<'j> {
    /// The kind that is written.
    pub target: Kind,
    /// The options of the caller.
    pub options: &'j ConvertOptions<'j>,
    /// What was done so far.
    pub summary: Summary,
    /// Losses that the options do not allow, and their objects.
    refused: Vec<(Fault, Option<String>)>,
    /// Keys of the file's attributes that the target cannot represent.
    lost_attributes: Vec<String>,
}

impl<'j> Job<'j> {
    /// A job that has done nothing yet.
    pub fn new(target: Kind, options: &'j ConvertOptions<'j>) -> Self {
        Job {
            target,
            options,
            summary: Summary::default(),
            refused: Vec::new(),
            lost_attributes: Vec::new(),
        }
    }

    /// Counts an object whose values, of `byte_len` bytes, were written, and what a cast of them has lost.
    ///
    /// # Errors
    ///
    /// Code `lossy` for an overflow, unless it is allowed. The values are written by then, but the
    /// output is only published whole.
    pub fn written(&mut self, object: &str, byte_len: u64, cast: Option<Cast>) -> Result<()> {
        if let Some(cast) = cast.filter(|cast| cast.out_of_range > 0) {
            self.accept(Loss::Overflow(cast), Some(object));
            self.check()?;
        }
        if let Some(cast) = cast {
            cast.add_to(&mut self.summary.casts);
        }
        self.summary.bytes = self.summary.bytes.strict_add(byte_len);
        self.summary.objects = self.summary.objects.strict_add(1);
        Ok(())
    }

    /// A loss is a warning if it is one of metadata, or if the options allow it. Otherwise it is
    /// refused: the writer goes on as if it were allowed, until it calls [`Job::check`].
    pub fn accept(&mut self, loss: Loss, object: Option<&str>) {
        let is_allowed = match loss.grade() {
            Grade::Metadata => true,
            Grade::Value => self.options.drop_unsupported,
            Grade::Infinity => self.options.allow_inf,
        };
        let target = self.target;
        self.admit(is_allowed, Fault::Lossy { target, loss }, object);
    }

    /// As [`Job::accept`], for a fault that loses values.
    pub fn forgive(&mut self, fault: Fault, object: Option<&str>) {
        self.admit(self.options.drop_unsupported, fault, object);
    }

    fn admit(&mut self, is_allowed: bool, fault: Fault, object: Option<&str>) {
        if is_allowed {
            let mut warning = Warning::new(LOSSY, fault.to_string());
            warning.object = object.map(str::to_owned);
            self.summary.warnings.push(warning);
        } else {
            self.refused.push((fault, object.map(str::to_owned)));
        }
    }

    /// Refuses what `other` refused.
    pub fn refuse(&mut self, other: &mut Job<'_>) {
        self.refused.append(&mut other.refused);
    }

    /// Reports the losses that were refused so far.
    ///
    /// # Errors
    ///
    /// The refused loss; [`Fault::Losses`] for several. Code `lossy`.
    pub fn check(&mut self) -> Result<()> {
        let mut refused = std::mem::take(&mut self.refused);
        let option = |fault: &Fault| match fault {
            Fault::Lossy { loss, .. } => loss.option(),
            _ => "drop_unsupported",
        };
        let error = |(fault, object): (Fault, Option<String>)| match object {
            Some(object) => Error::from(fault).with_object(&object),
            None => Error::from(fault),
        };
        if refused.len() > 1 {
            let mut options: Vec<_> = refused.iter().map(|(fault, _)| option(fault)).collect();
            options.sort_unstable();
            options.dedup();
            let losses = refused.into_iter().map(error).collect();
            return Err(Fault::Losses { losses, options }.into());
        }
        refused.pop().map_or(Ok(()), |(fault, object)| {
            let option = option(&fault);
            Err(error((Fault::Refused { fault: Box::new(fault), option }, object)))
        })
    }

    /// Leaves out a damaged object.
    ///
    /// # Errors
    ///
    /// `fault`, unless damaged objects are skipped.
    pub fn leave_out(&mut self, fault: Error, name: &str) -> Result<()> {
        if !self.options.skip_damaged {
            return Err(fault.with_object(name));
        }
        self.summary.left_out.push(name.to_owned());
        self.summary.damaged.push(name.to_owned());
        let message = format!("left out, {}: {}", fault.code(), fault.message());
        let mut warning = Warning::new(LOSSY, message).with_object(name);
        warning.component = fault.component().map(str::to_owned);
        self.summary.warnings.push(warning);
        Ok(())
    }

    /// Makes the object a plain array, decoding it if necessary; `false` if it has no dense value
    /// and is left out.
    pub fn make_plain(&mut self, object: &mut Outgoing<'_>) -> bool {
        let is_decoded = self.options.dense || object.is_planes() || object.is_decoded();
        if object.is_dense() || is_decoded && object.decode() {
            return true;
        }
        let loss = Loss::Format {
            format: object.object().format.to_string(),
            has_dense_value: object.has_dense_value(),
        };
        self.accept(loss, Some(object.name()));
        object.decode()
    }

    /// The target's type for the values of a plain array. If the target has none, a loss and its type
    /// for the storage.
    pub fn typed<T>(
        &mut self,
        object: &Outgoing<'_>,
        from_types: impl Fn(DType, Option<&str>) -> Option<T>,
    ) -> Option<T> {
        let (dtype, logical_type) = object.dense_type()?;
        let known = from_types(dtype, logical_type.as_deref());
        if known.is_some() {
            return known;
        }
        let loss = Loss::Type { dtype, logical_type: logical_type.map(|name| name.into_owned()) };
        self.accept(loss, Some(object.name()));
        // Without the logical type the shape is only right if one storage element is one value.
        let object = object.object();
        let data = object.component("data");
        let stored = data.and_then(|data| data.blob.decoded_len);
        let plain = dense_byte_len(&object.shape, dtype.byte_len() as u64);
        from_types(dtype, None).filter(|_| stored.is_some() && stored == plain)
    }

    /// Accepts as losses everything of an object except [`STORED_SHAPE`], its values and the attributes `known`.
    pub fn rest(&mut self, object: &Outgoing<'_>, known: &[&str]) {
        let name = Some(object.name());
        self.components(object);
        for (key, _) in object.attributes().iter().flatten() {
            let is_known = |key: &str| key == STORED_SHAPE || known.contains(&key);
            if !key.as_str().is_some_and(is_known) {
                let key = display(key);
                self.accept(Loss::ObjectAttribute { key }, name);
            }
        }
        self.fields(&object.object().extra, name);
    }

    /// Accepts as losses the components that an object's values are not made of, and the unknown
    /// fields of the others.
    pub fn components(&mut self, object: &Outgoing<'_>) {
        let name = Some(object.name());
        for (role, component, is_of_value) in object.components() {
            if is_of_value {
                self.fields(&component.extra, name);
            } else {
                let role = role.to_owned();
                self.accept(Loss::Component { role }, name);
            }
        }
    }

    /// Accepts as losses the fields that the specification of `.zt` does not know.
    pub fn fields(&mut self, extra: &Attributes, object: Option<&str>) {
        for (key, _) in extra {
            let key = display(key);
            self.accept(Loss::Field { key }, object);
        }
    }

    /// Accepts as losses all attributes and unknown fields of the file itself.
    pub fn refuse_attributes(&mut self, attributes: Option<&Attributes>, extra: &Attributes) {
        for (key, _) in attributes.into_iter().flatten() {
            self.lose_attribute(display(key));
        }
        self.fields(extra, None);
    }

    /// Accepts the loss of an attribute of the file. [`Job::end_attributes`] warns of all of them.
    pub fn lose_attribute(&mut self, key: String) {
        self.lost_attributes.push(key);
    }

    /// Warns of the file's attributes that were lost, once for all: a file may have hundreds.
    pub fn end_attributes(&mut self) {
        let keys = std::mem::take(&mut self.lost_attributes);
        if !keys.is_empty() {
            self.accept(Loss::FileAttributes { keys }, None);
        }
    }

    /// Returns `written`. If it is `None`, the object is left out, which is added to the last
    /// warning, the reason.
    pub fn kept<T>(&mut self, incoming: &Incoming<'_>, written: Option<T>) -> Option<T> {
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
}
