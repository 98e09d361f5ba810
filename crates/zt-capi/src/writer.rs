//! A `.zt` file that is written.

use std::io::Write as _;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zt::{
    Attributes, Buffer, Bytes, DType, Dense, Elements, ErrorKind, NewObject, Result,
    SuspendedComponent, SuspendedObject, ToObject, WriteOptions, Writer,
};

use crate::border::misuse;
use crate::dtype;
use crate::tensor::zt_tensor;

/// A file that is not there until it is finished.
pub struct zt_writer {
    state: Mutex<State>,
    path: PathBuf,
}

enum State {
    Ready(Box<Writer<'static>>),
    /// A tensor waits for its bytes.
    Streaming(Box<Streaming>),
    /// It has finished, or an error has ended it.
    Ended,
}

struct Streaming {
    writer: Writer<'static>,
    object: SuspendedObject,
    component: SuspendedComponent,
    name: String,
    dtype: DType,
}

/// What a tensor is.
pub(crate) struct Described<'a> {
    pub(crate) name: &'a str,
    pub(crate) shape: &'a [u64],
    pub(crate) dtype: DType,
    pub(crate) logical_type: Option<&'a str>,
    pub(crate) attributes: Option<Attributes>,
}

/// Dense values with attributes.
struct Object<'a>(Dense<'a>, Option<Attributes>);

impl ToObject for Object<'_> {
    fn to_object(&self) -> zt::formats::Result<NewObject<'_>> {
        Ok(NewObject { attributes: self.1.clone(), ..self.0.to_object()? })
    }
}

impl zt_writer {
    pub(crate) fn create(path: &Path, options: WriteOptions, create_new: bool) -> Result<Self> {
        let begun = if create_new { options.create_new(path) } else { options.create(path) };
        let writer = begun.map_err(|error| error.with_path(path))?;
        Ok(zt_writer { state: Mutex::new(State::Ready(Box::new(writer))), path: path.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work of a writer that waits for no bytes. An error of the system ends it; after another one the engine decides.
    fn ready(&self, work: impl FnOnce(&mut Writer<'static>) -> Result<()>) -> Result<()> {
        let mut state = self.lock();
        let State::Ready(writer) = &mut *state else {
            return Err(out_of_turn(&state));
        };
        let done = work(writer);
        if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::Io) {
            *state = State::Ended;
        }
        done.map_err(|error| error.with_path(&self.path))
    }

    pub(crate) fn set_attributes(&self, attributes: Attributes) -> Result<()> {
        self.ready(|writer| writer.set_attributes(attributes))
    }

    pub(crate) fn add(&self, object: Described<'_>, bytes: &[u8]) -> Result<()> {
        self.ready(|writer| {
            let mut elements = Elements::new(object.dtype, in_file_order(bytes, object.dtype)?);
            if let Some(name) = object.logical_type {
                elements = elements.with_logical_type(name.to_owned());
            }
            let dense = Dense::from_elements(object.shape, elements);
            let dense = dense.map_err(|error| zt::Error::from(error).with_object(object.name))?;
            writer.add(object.name, &Object(dense, object.attributes))
        })
    }

    pub(crate) fn copy(&self, name: &str, tensor: &zt_tensor) -> Result<()> {
        self.ready(|writer| writer.copy(name, &tensor.tensor()?))
    }

    pub(crate) fn begin(&self, object: Described<'_>) -> Result<()> {
        let mut state = self.lock();
        let mut writer = match mem::replace(&mut *state, State::Ended) {
            State::Ready(writer) => *writer,
            other => {
                *state = other;
                return Err(out_of_turn(&state));
            }
        };
        let begun = || {
            let mut begun = writer.begin(object.name, object.shape, "dense")?;
            if let Some(attributes) = object.attributes {
                begun.set_attributes(attributes)?;
            }
            let logical_type = object.logical_type.map(|name| name.to_owned().into());
            let component = begun.component("data", object.dtype, logical_type)?.suspend();
            Ok((begun.suspend(), component))
        };
        let begun: Result<_> = begun();
        *state = match begun {
            Ok((begun, component)) => State::Streaming(Box::new(Streaming {
                writer,
                object: begun,
                component,
                name: object.name.to_owned(),
                dtype: object.dtype,
            })),
            // An object without a component has no bytes, so the writer is as it was.
            Err(error) => {
                *state = State::Ready(Box::new(writer));
                return Err(error.with_path(&self.path));
            }
        };
        Ok(())
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        self.streamed(|streaming| {
            let Streaming { mut writer, object, component, name, dtype } = streaming;
            let mut object = writer.resume_object(object);
            let mut component = object.resume_component(component);
            // Pieces end where elements end on a machine whose order is another.
            if !dtype::is_native(dtype) && !bytes.len().is_multiple_of(dtype.byte_len()) {
                return Err(misuse("the piece ends within an element"));
            }
            component.write_all(&in_file_order(bytes, dtype)?)?;
            let component = component.suspend();
            let object = object.suspend();
            Ok(State::Streaming(Box::new(Streaming { writer, object, component, name, dtype })))
        })
    }

    pub(crate) fn end(&self) -> Result<()> {
        self.streamed(|streaming| {
            let Streaming { mut writer, object, component, .. } = streaming;
            let mut object = writer.resume_object(object);
            object.resume_component(component).finish()?;
            object.finish()?;
            Ok(State::Ready(Box::new(writer)))
        })
    }

    /// Work on the tensor that was begun. An error ends the writer: a part of the tensor may be in the file.
    fn streamed(&self, work: impl FnOnce(Streaming) -> Result<State>) -> Result<()> {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Ended) {
            State::Streaming(streaming) => {
                *state = work(*streaming).map_err(|error| error.with_path(&self.path))?;
                Ok(())
            }
            other => {
                let error = match &other {
                    State::Ready(_) => misuse("no tensor was begun"),
                    _ => out_of_turn(&other),
                };
                *state = other;
                Err(error)
            }
        }
    }

    pub(crate) fn finish(&self) -> Result<()> {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Ended) {
            State::Ready(writer) => writer.finish().map_err(|error| error.with_path(&self.path)),
            other => {
                let error = out_of_turn(&other);
                *state = other;
                Err(error)
            }
        }
    }
}

fn out_of_turn(state: &State) -> zt::Error {
    match state {
        State::Streaming(streaming) => {
            let error = misuse("the tensor was begun: write all of its bytes, and end it");
            error.with_object(&streaming.name)
        }
        _ => misuse("the writer has finished, or an error has ended it"),
    }
}

/// Elements of this machine as files have them.
fn in_file_order(bytes: &[u8], dtype: DType) -> Result<Bytes<'_>> {
    if dtype::is_native(dtype) {
        return Ok(bytes.into());
    }
    let mut copy = Buffer::try_from_slice(bytes)?;
    dtype::swap_if_big(&mut copy, dtype);
    Ok(copy.into())
}
