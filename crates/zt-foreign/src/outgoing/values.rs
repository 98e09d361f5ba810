//! Streams the values of an object: reads them piece by piece, casts them, and writes them.

use std::io::Write;

use zt::container::Encoding;
use zt::formats::{FloatType, check_bools_from, dense_byte_len};
use zt::manifest::Text;
use zt::{Bytes, DType, Elements, Error, Progress, Result};

use crate::faults::{Cast, Fault};
use crate::outgoing::{DATA, Outgoing, Treatment};

/// Bytes that are read, cast and written at a time.
///
/// Pays: `zt convert --dtype f32` of 75 MB takes 0.75 of the CPU time that it takes with 16 MiB, and 1.04 of that with
/// 64 KiB.
const PIECE: usize = 1 << 20;

/// The same for raw bytes that only pass through: they stay in a core's cache, and no thread reads them ahead.
///
/// Pays: `zt convert` of 75 MB to safetensors takes 0.76 of the CPU time that it takes with 1 MiB, and as much as
/// with 64 KiB.
const SHORT_PIECE: usize = 256 << 10;

/// The same for values that a source computes on all cores, such as `--logical` gives, while another thread writes. Of
/// 256 KiB to 16 MiB, 2 and 4 MiB are fastest.
///
/// Pays: nothing sure: `zt convert --logical` of 80 MB in FP8 takes 0.82 of the CPU time that it takes with 16 MiB, and
/// 1.14 of that with 256 KiB. For 268 MB the latter is 1.04.
const COMPUTED_PIECE: usize = 2 << 20;

/// The same for planes, which all cores join.
///
/// Pays: `zt convert` of 75 MB from planes takes 0.76 of the CPU time that it takes with 1 MiB.
const LONG_PIECE: usize = 16 << 20;

/// The result of writing values.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    /// Bytes of the values, before compression.
    pub byte_len: u64,
    /// What a cast has lost; `None` without a cast.
    pub cast: Option<Cast>,
}

impl Outgoing<'_> {
    /// Writes the values of a plain array, little-endian and in row-major order: exactly
    /// `byte_len` bytes. Returns what a cast has lost.
    ///
    /// Dense objects and planes are streamed. Any other dense value is made in memory first.
    ///
    /// # Errors
    ///
    /// The fault of the object; an error of `out`; code `interrupted`.
    pub fn write_values(
        &self,
        byte_len: u64,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Option<Cast>> {
        self.write_role(DATA, byte_len, out, progress)
    }

    /// Writes one component, little-endian: exactly `byte_len` bytes. `data` is cast if the object
    /// is, and is the dense value if the object is decoded. Returns what the cast has
    /// lost.
    ///
    /// # Errors
    ///
    /// As [`Outgoing::write_values`].
    pub fn write_role(
        &self,
        role: &str,
        byte_len: u64,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Option<Cast>> {
        let written = self.stream(role, out, progress)?;
        let (expected, found) = (byte_len, written.byte_len);
        // Lengths were checked when the file was opened, so only a user's format can break this.
        if found != expected {
            return Err(self.blame(Fault::Length { expected, found }.into()));
        }
        Ok(written.cast)
    }

    /// As [`Outgoing::write_role`], of any length.
    ///
    /// # Errors
    ///
    /// As [`Outgoing::write_values`].
    pub fn stream(
        &self,
        role: &str,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Written> {
        match self.treatment() {
            Treatment::Decode(cast) => self.stream_decoded(cast, out, progress),
            _ => self.stream_component(role, out, progress),
        }
    }

    /// Streams one component; `data` is cast if the object is.
    fn stream_component(
        &self,
        role: &str,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Written> {
        let source = self.tensor.component(role)?;
        let reader = self.tensor.reader(role);
        let mut reader = reader.map_err(|error| self.blame(error))?;
        let mut stream = Stream {
            object: self,
            role,
            dtype: source.dtype.unwrap_or(DType::U8),
            logical_type: source.logical_type.clone(),
            cast: self.cast_of_role(role).map(Cast::to),
            read: 0,
            written: 0,
            out,
            progress,
        };
        let passes = source.blob.encoding == Encoding::Raw && stream.cast.is_none();
        let most = match passes {
            true if self.is_computed(role) => COMPUTED_PIECE,
            true => SHORT_PIECE,
            false => PIECE,
        };
        let piece_len = stream.piece_len(source.blob.decoded_len, most);
        let end = reader.for_each_piece(piece_len, |piece| stream.write(piece));
        end.map_err(|end| end.into_error(self))?;
        Ok(stream.finish())
    }

    /// Whether the bytes of a component are made when they are read, as with `--logical`.
    fn is_computed(&self, role: &str) -> bool {
        self.tensor
            .stored_bytes(role)
            .is_ok_and(|(source, span)| source.slice(span).is_none() && source.file().is_none())
    }

    /// Streams the object's dense value.
    fn stream_decoded(
        &self,
        cast: Option<FloatType>,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Written> {
        let (dtype, logical_type) = self.decoded_type().unwrap_or((DType::U8, None));
        let value_len = self.registry.value_len(dtype, logical_type.as_deref());
        let byte_len = value_len.ok().flatten();
        let byte_len = byte_len.and_then(|len| dense_byte_len(&self.object().shape, len));
        let reader = self.tensor.dense_reader();
        let mut reader = reader.map_err(|error| self.blame(error))?;
        let mut stream = Stream {
            object: self,
            role: DATA,
            dtype,
            logical_type,
            cast: cast.map(Cast::to),
            read: 0,
            written: 0,
            out,
            progress,
        };
        let most = if self.is_planes() { LONG_PIECE } else { PIECE };
        let piece_len = stream.piece_len(byte_len, most);
        let end = reader.for_each_piece(piece_len, |piece| stream.write(piece));
        end.map_err(|end| end.into_error(self))?;
        Ok(stream.finish())
    }
}

/// Values of one type on their way from a reader to `out`.
struct Stream<'s, 'i> {
    object: &'s Outgoing<'i>,
    role: &'s str,
    /// The type that is read.
    dtype: DType,
    logical_type: Option<Text>,
    /// The cast, if there is one.
    cast: Option<Cast>,
    /// Bytes read and written so far.
    read: u64,
    written: u64,
    out: &'s mut (dyn Write + Send),
    progress: Option<Progress<'s>>,
}

/// Why a stream ended early.
enum End {
    /// A fault of the object or its file.
    Input(Error),
    /// A fault of the output, or an interruption.
    Output(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        End::Input(error)
    }
}

impl End {
    fn into_error(self, object: &Outgoing<'_>) -> Error {
        match self {
            End::Input(error) => object.blame(error),
            End::Output(error) => error,
        }
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no length of a value is 0")]
impl Stream<'_, '_> {
    /// Bytes to read at a time, of `byte_len` in all. A piece ends where a value ends, so that it
    /// can be cast alone. Small objects get a short buffer.
    fn piece_len(&self, byte_len: Option<u64>, most: usize) -> usize {
        let registry = self.object.registry;
        let known = registry.value_len(self.dtype, self.logical_type.as_deref());
        let value_len = known
            .ok()
            .flatten()
            .and_then(|len| usize::try_from(len).ok())
            .filter(|len| (1..=most).contains(len))
            .unwrap_or(self.dtype.byte_len());
        let most = most - most % value_len;
        let byte_len = byte_len.and_then(|len| usize::try_from(len).ok());
        byte_len.map_or(most, |len| len.clamp(value_len, most))
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), End> {
        let converted = self.convert(piece)?;
        let wrote = self.out.write_all(&converted);
        let name = self.object.name();
        wrote.map_err(|error| End::Output(Error::from(error).with_object(name)))?;
        self.written += converted.len() as u64;
        self.read += piece.len() as u64;
        let Some(progress) = self.progress else {
            return Ok(());
        };
        progress.report(piece.len() as u64).map_err(End::Output)
    }

    /// Checks bools, so that no output has values that its own reader refuses, and casts.
    fn convert<'p>(&mut self, piece: &'p [u8]) -> Result<Bytes<'p>> {
        let blame = |error: zt::formats::Error| Error::from(error.with_role(self.role.to_owned()));
        if self.dtype == DType::Bool {
            check_bools_from(self.read, piece).map_err(blame)?;
        }
        let Some(lost) = &mut self.cast else {
            return Ok(Bytes::Borrowed(piece));
        };
        let registry = self.object.registry;
        let elements = Elements {
            dtype: self.dtype,
            logical_type: self.logical_type.clone(),
            bytes: Bytes::Borrowed(piece),
        };
        let cast = elements.cast(lost.to, registry).map_err(blame)?;
        let counted = lost.add(&elements, &cast.bytes, registry);
        counted.map_err(blame)?;
        Ok(cast.bytes)
    }

    fn finish(self) -> Written {
        Written { byte_len: self.written, cast: self.cast }
    }
}
