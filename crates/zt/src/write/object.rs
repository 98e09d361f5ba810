//! One object that is being written, component by component.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;

use zt_container::Limits;
use zt_formats::{Dense, PlaneCodec, Signature, View};
use zt_manifest::{Attributes, DType, Fields, Object, Text, check_component_count};

use crate::cores::debug;
use crate::error::{Error, Fault, Result};
use crate::write::component::{ComponentWriter, SuspendedComponent};
use crate::write::encode::{ComponentEncoder, Placed};
use crate::write::options::{ComponentOptions, Keeps, ObjectOptions};
use crate::write::writer::Writer;

/// An object that is being written. See [`Writer::begin`].
///
/// If it is dropped before its first component, the writer is as it was. If it is dropped later and before
/// [`ObjectWriter::finish`], the writer cannot finish: the file would have bytes of no object, and gaps
/// are zero (§4). Contents are checked only where that needs no memory: bools are
/// checked, and the indices of sparse objects are not.
///
/// ```
/// use std::io::Write;
/// use zt::{DType, File, Writer};
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes)?;
/// let mut object = writer.begin("ramp", &[1000], "dense")?;
/// let mut data = object.component("data", DType::U16, None)?;
/// for value in 0..1000u16 {
///     data.write_all(&value.to_le_bytes())?;
/// }
/// data.finish()?;
/// object.finish()?;
/// writer.finish()?;
/// assert_eq!(File::from_bytes(bytes)?.tensor("ramp")?.values::<u16>()?[999], 999);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ObjectWriter<'a, 'w> {
    pub(crate) writer: &'a mut Writer<'w>,
    pub(crate) state: SuspendedObject,
}

/// An object that is being written, without a borrow of its writer: see [`ObjectWriter::suspend`]. If it
/// is dropped, its writer cannot finish.
pub struct SuspendedObject {
    pub(crate) name: String,
    pub(crate) object: Object,
    options: ObjectOptions,
    pub(crate) keeps: Keeps,
    /// The rules of its format are not checked.
    pub(crate) is_unchecked: bool,
    /// A component was begun and not finished.
    is_open: bool,
    roles: HashMap<Text, usize>,
}

impl<'a, 'w> ObjectWriter<'a, 'w> {
    pub(crate) fn new(writer: &'a mut Writer<'w>, name: &str, object: Object) -> Self {
        // This is set until the object is finished, because a forgotten value is not dropped.
        writer.abandoned = Some(name.to_owned());
        let (options, keeps) = (writer.options_for(&object.format), writer.keeps);
        ObjectWriter {
            writer,
            state: SuspendedObject::new(name.to_owned(), object, options, keeps),
        }
    }

    /// Stores the following components with `options`, copied ones too.
    pub fn options(mut self, options: ObjectOptions) -> Self {
        self.state.options = options;
        self.state.keeps = Keeps::default();
        self
    }

    /// Writes the object even if it breaks a rule of its format: for a copy of an object that has
    /// a [fault](crate::Tensor::fault).
    pub fn unchecked(mut self) -> Self {
        self.state.is_unchecked = true;
        self
    }

    pub(crate) fn options_of(&self, role: &str) -> ComponentOptions {
        self.state.options.of(role)
    }

    /// Sets the object's attributes.
    ///
    /// # Errors
    ///
    /// As [`Writer::set_attributes`]; [`crate::ErrorKind::Limit`] for attributes that are longer than
    /// readers accept by default. The object keeps the attributes that it had, and can be finished.
    pub fn set_attributes(&mut self, attributes: Attributes) -> Result<()> {
        self.check_fields(Fields::Object, &attributes)?;
        self.state.object.attributes = Some(attributes);
        Ok(())
    }

    pub(crate) fn check_fields(&self, of: Fields, map: &Attributes) -> Result<()> {
        of.check(map).map_err(|error| Error::from(error).with_object(&self.state.name))
    }

    pub(crate) fn add_attributes(&mut self, attributes: Attributes) {
        let all = self.state.object.attributes.get_or_insert_with(Attributes::new);
        for (key, value) in attributes {
            all.insert(key, value);
        }
    }

    /// Sets fields of the object that the specification does not define.
    ///
    /// # Errors
    ///
    /// As [`Writer::set_extra`].
    pub fn set_extra(&mut self, extra: Attributes) -> Result<()> {
        self.check_fields(Fields::ExtraOfObject, &extra)?;
        self.state.object.extra = extra;
        Ok(())
    }

    /// The length of each plane that `codec` makes of the object's values, if it is known.
    pub(crate) fn plane_len(&self, codec: &PlaneCodec) -> u64 {
        let len = codec.plane_len(&self.state.object.shape, &self.writer.registry);
        len.ok().flatten().unwrap_or(0)
    }

    /// Takes the object apart from its writer, for a caller that keeps it between calls and cannot keep
    /// a borrow, as a binding to another language. [`Writer::resume_object`] goes on with it. Until
    /// then the writer takes no other object, and cannot finish.
    #[must_use]
    pub fn suspend(mut self) -> SuspendedObject {
        let state = self.take();
        mem::forget(self);
        state
    }

    /// Leaves an object without memory, which need not be dropped.
    fn take(&mut self) -> SuspendedObject {
        let (options, object) = (ObjectOptions::default(), Object::new([], ""));
        let empty = SuspendedObject::new(String::new(), object, options, Keeps::default());
        mem::replace(&mut self.state, empty)
    }

    /// Goes on with a component of this object that was suspended.
    pub fn resume_component(
        &mut self,
        suspended: SuspendedComponent,
    ) -> ComponentWriter<'_, 'a, 'w> {
        ComponentWriter { object: self, state: suspended }
    }

    /// Begins a component of elements of `dtype`, with their logical type, if any.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] if the object has a component of that role, or if the component
    /// before was not finished. [`crate::ErrorKind::Limit`] if the object has as many components as
    /// readers accept by default.
    pub fn component(
        &mut self,
        role: impl Into<Text>,
        dtype: DType,
        logical_type: Option<Text>,
    ) -> Result<ComponentWriter<'_, 'a, 'w>> {
        let role = role.into();
        let state = &mut self.state;
        let found = state.object.components.len().strict_add(1);
        check_component_count(found, &Limits::default())
            .map_err(|error| Error::from(error).with_object(&state.name))?;
        let fault = match state.roles.entry(role.clone()) {
            _ if state.is_open => Some(Fault::UnfinishedComponent),
            Entry::Vacant(entry) => {
                entry.insert(state.object.components.len());
                None
            }
            Entry::Occupied(_) => Some(Fault::DuplicateRole),
        };
        if let Some(fault) = fault {
            let error = Error::from(fault).with_object(&state.name);
            return Err(error.with_component(&role));
        }
        state.is_open = true;
        let options = state.options.of(&role);
        let encoder = ComponentEncoder::new(options, state.expected_len(dtype));
        let suspended = SuspendedComponent::new(role, dtype, logical_type, encoder);
        Ok(self.resume_component(suspended))
    }

    /// Adds the component that was begun last.
    pub(crate) fn push(&mut self, role: Text, component: zt_manifest::Component) {
        self.state.object.components.push((role, component));
        self.state.is_open = false;
    }

    /// The place and the type of a finished component of this object.
    pub(crate) fn shared(&self, role: &str) -> Result<(Option<DType>, Placed)> {
        let found = self.state.roles.get(role).and_then(|at| {
            let (_, component) = self.state.object.components.get(*at)?;
            Some((*at, component))
        });
        let (at, component) = found.ok_or_else(|| Fault::NoSuchComponent(role.to_owned()))?;
        let object = self.writer.object_count();
        let placed = self.writer.placed(object, at, &component.blob);
        Ok((component.dtype, placed))
    }

    /// Checks the object by its format and ends it.
    ///
    /// # Errors
    ///
    /// The fault that a reader would find; [`crate::ErrorKind::Misuse`] if a component was not finished.
    /// The file cannot be finished then, unless the object has no component.
    pub fn finish(mut self) -> Result<()> {
        let (writer, state) = (&*self.writer, &self.state);
        if state.is_open {
            return Err(Error::from(Fault::UnfinishedComponent).with_object(&state.name));
        }
        if !state.is_unchecked {
            let signature = Signature::of(&state.object);
            let checked = writer.registry.check(&state.object.format, &signature);
            checked.map_err(|error| Error::from(error).with_object(&state.name))?;
        }
        let state = self.take();
        let pushed = self.writer.push(&state.name, state.object);
        if pushed.is_ok() {
            self.writer.abandoned = None;
        }
        mem::forget(self);
        pushed
    }
}

impl Drop for ObjectWriter<'_, '_> {
    /// An object without components has no bytes in the file.
    fn drop(&mut self) {
        if self.state.roles.is_empty() {
            self.writer.abandoned = None;
        }
    }
}

impl SuspendedObject {
    fn new(name: String, object: Object, options: ObjectOptions, keeps: Keeps) -> Self {
        let (is_unchecked, is_open, roles) = (false, false, HashMap::new());
        SuspendedObject { name, object, options, keeps, is_unchecked, is_open, roles }
    }

    /// A guess, used only for the placement: only the data of a dense object has the length of its
    /// shape.
    fn expected_len(&self, dtype: DType) -> u64 {
        if self.object.format != Dense::FORMAT {
            return 0;
        }
        let shape = self.object.shape.iter();
        shape.fold(dtype.byte_len() as u64, |len, dimension| len.saturating_mul(*dimension))
    }
}

impl<'w> Writer<'w> {
    /// Goes on with an object of this writer that was suspended.
    ///
    /// ```
    /// use std::io::Write;
    /// use zt::{DType, File, Writer};
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes)?;
    /// let mut object = writer.begin("pair", &[2], "dense")?;
    /// let component = object.component("data", DType::U8, None)?.suspend();
    /// let suspended = object.suspend();
    /// // Later, and elsewhere:
    /// let mut object = writer.resume_object(suspended);
    /// let mut data = object.resume_component(component);
    /// data.write_all(&[1, 2])?;
    /// data.finish()?;
    /// object.finish()?;
    /// writer.finish()?;
    /// assert_eq!(*File::from_bytes(bytes)?.tensor("pair")?.values::<u8>()?, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume_object(&mut self, suspended: SuspendedObject) -> ObjectWriter<'_, 'w> {
        ObjectWriter { writer: self, state: suspended }
    }
}

debug::fields!(SuspendedObject, |object| name: object.name);

debug::fields!(
    ObjectWriter<'_, '_>,
    |writer| name: writer.state.name, object: writer.state.object
);
