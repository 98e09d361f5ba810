//! Validating the map of an object: [`RawObject`] to [`Object`].

use std::borrow::Cow;

use zt_container::{Blob, Chunks, Digest, Encoding, FramingViolation, Layout, Limits, Span};

use crate::dtype::DType;
use crate::error::{Error, Result, abridged};
use crate::object::{Component, Object};
use crate::raw::{Fault, RawComponent, RawObject};
use crate::text::Text;
use crate::value::Value;
use crate::warning::Warning;

/// Where the blobs of a file may lie, and the layout and limits to read its manifest with.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Placement {
    /// The generation of the container.
    pub layout: Layout,
    /// The data region: after the header magic and before the manifest.
    pub data: Span,
    /// Only `decoded_len` is used here.
    pub limits: Limits,
}

impl Placement {
    /// Blobs in the region `data` of a file of this generation.
    pub const fn new(layout: Layout, data: Span, limits: Limits) -> Self {
        Placement { layout, data, limits }
    }
}

impl RawObject {
    /// The object, if its fields are valid. Reads no blob.
    ///
    /// Checks the presence and type of every field, the names of dtypes and encodings, and the spelling of
    /// digests. Every blob must lie within the data region, on the 64-byte grid, with a decoded length that
    /// its stored bytes can hold. `warnings` gets the deviations that are accepted: blobs off the grid in
    /// layouts 0.1 and 1.0, digests of unknown algorithms.
    ///
    /// # Errors
    ///
    /// The first fault, always of the file. Codes: `schema`, `dtype`, `encoding`, `bounds`,
    /// `alignment`, `digest-format`, `decompression-limit`.
    ///
    /// Spec: §3.3, §3.4, §4.
    pub fn validate(
        self,
        placement: &Placement,
        warnings: &mut Vec<Warning>,
    ) -> Result<Object, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let of_object = |error| Fault { role: None, error };
        let missing = |field| of_object(Error::missing(self.at, field));
        let shape = self.shape.ok_or_else(|| missing("shape"))?;
        let format = match placement.layout {
            Layout::V0_1 => "layout",
            _ => "format",
        };
        let format = self.format.ok_or_else(|| missing(format))?;
        let mut components = Vec::new();
        let reserved = components.try_reserve_exact(self.components.len());
        reserved.map_err(|_| {
            let byte_len = size_of::<(Text, Component)>().strict_mul(self.components.len());
            of_object(Error::allocation(byte_len as u64))
        })?;
        for (role, raw) in self.components {
            let judge =
                Judge { placement, role: &role, demands_decoded_len: self.demands_decoded_len };
            match judge.component(raw, warnings) {
                Ok(component) => components.push((role, component)),
                Err(error) => {
                    let role = Some(role.into_owned());
                    return Err(Fault { role, error });
                }
            }
        }
        if placement.layout == Layout::V1_0 {
            // Required and checked even if no component uses it.
            let name = self.dtype.ok_or_else(|| missing("dtype"))?;
            dtype(&name, placement.layout, self.at).map_err(of_object)?;
        }
        Ok(Object { shape, format, attributes: self.attributes, components, extra: self.extra })
    }
}

struct Judge<'a> {
    placement: &'a Placement,
    role: &'a str,
    demands_decoded_len: bool,
}

impl Judge<'_> {
    fn component(&self, raw: RawComponent, warnings: &mut Vec<Warning>) -> Result<Component> {
        let layout = self.placement.layout;
        let dtype = match &raw.dtype {
            Some(name) => Some(dtype(name, layout, raw.at)?),
            None if layout == Layout::V1_0 && !matches!(self.role, "data" | "values") => None,
            None => return Err(Error::missing(raw.at, "dtype")),
        };
        let length = match layout {
            Layout::V0_1 => "size",
            _ => "length",
        };
        let offset = raw.offset.ok_or(Error::missing(raw.at, "offset"))?;
        let length = raw.length.ok_or(Error::missing(raw.at, length))?;
        let encoding = match raw.encoding.as_deref() {
            None if layout == Layout::V0_1 => return Err(Error::missing(raw.at, "encoding")),
            None => Encoding::Raw,
            Some(name) => Encoding::from_name(name)
                .ok_or_else(|| Error::Encoding { offset: raw.at, name: abridged(name) })?,
        };
        let span = self.span(offset, length, warnings)?;
        let digest = match raw.digest.as_deref() {
            Some(text) => Some(self.digest(text, warnings)?),
            None => None,
        };
        let decoded_len = match (encoding, raw.decoded_len) {
            (Encoding::Raw, None) => Some(length),
            (Encoding::Raw, Some(decoded)) if decoded != length => {
                return Err(Error::Schema {
                    offset: raw.at,
                    field: Cow::Borrowed("uncompressed_length"),
                    found: Cow::Owned(decoded.to_string()),
                    expected: "the length of a raw component",
                });
            }
            (Encoding::Zstd, None) if self.demands_decoded_len => {
                return Err(Error::missing(raw.at, "uncompressed_length"));
            }
            (_, decoded) => decoded,
        };
        let chunks = raw.chunks;
        let blob = Blob {
            span,
            encoding,
            decoded_len,
            digest,
            chunks: chunks.and_then(|value| self.chunks(&value, encoding, span, warnings)),
        };
        // Raw bytes are in the file, so their number needs no limit. Spec: §12.
        if encoding != Encoding::Raw {
            zt_container::check_declared(&blob, &self.placement.limits)?;
        }
        Ok(Component {
            dtype,
            logical_type: raw.logical_type,
            byte_order: raw.byte_order,
            blob,
            extra: raw.extra,
        })
    }

    /// Checks the region before the grid: for a blob outside the region, the grid does not matter.
    fn span(&self, offset: u64, byte_len: u64, warnings: &mut Vec<Warning>) -> Result<Span> {
        let region = self.placement.data;
        let violation = FramingViolation::Bounds { offset, byte_len, region };
        let span = match Span::new(offset, byte_len) {
            Some(span) if region.contains(span) => span,
            // An empty blob cannot overlap the header, and some writers put it at 0.
            Some(span) if span.is_empty() && offset == 0 => span,
            _ => return Err(zt_container::Error::from(violation).into()),
        };
        if span.is_aligned() {
            return Ok(span);
        }
        if self.placement.layout.requires_alignment() {
            return Err(zt_container::Error::from(FramingViolation::Alignment { offset }).into());
        }
        warnings.push(Warning::Misaligned { role: self.role.to_owned(), offset });
        Ok(span)
    }

    /// The table of chunk digests. If it is unusable, that is a warning: the blob can be read without it.
    fn chunks(
        &self,
        value: &Value,
        encoding: Encoding,
        blob: Span,
        warnings: &mut Vec<Warning>,
    ) -> Option<Box<Chunks>> {
        let found = chunks(value, encoding, blob, self.placement.data);
        let unusable = |reason| {
            warnings.push(Warning::Chunks { role: self.role.to_owned(), reason });
        };
        found.map_err(unusable).ok()
    }

    fn digest(&self, text: &str, warnings: &mut Vec<Warning>) -> Result<Digest> {
        let digest = text.parse()?;
        if let Digest::Unknown { algorithm, .. } = &digest {
            warnings.push(Warning::UnknownDigest {
                role: self.role.to_owned(),
                algorithm: abridged(algorithm),
            });
        }
        Ok(digest)
    }
}

/// The table that `value` describes, or the reason why it is unusable. Spec: §6.1.
fn chunks(
    value: &Value,
    encoding: Encoding,
    blob: Span,
    region: Span,
) -> Result<Box<Chunks>, &'static str> {
    let Value::Map(map) = value else {
        return Err("it is not a map");
    };
    let (Some(Value::Unsigned(offset)), Some(Value::Unsigned(length)), Some(Value::Text(digest))) =
        (map.get("offset"), map.get("length"), map.get("digest"))
    else {
        return Err("it lacks an offset, a length or a digest");
    };
    if encoding != Encoding::Raw {
        return Err("the component is compressed");
    }
    let digest: Digest = digest.parse().map_err(|_| "its digest is malformed")?;
    let algorithm = digest.algorithm().ok_or("its digest is unknown")?;
    if Chunks::table_len(algorithm, blob.byte_len()) != Some(*length) {
        return Err("its length does not fit that of the component");
    }
    let span = Span::new(*offset, *length).filter(|span| region.contains(*span));
    let span = span.ok_or("it leaves the data region")?;
    Ok(Box::new(Chunks { span, digest }))
}

/// Each generation has its own thirteen names, and its readers refuse the other names.
fn dtype(name: &str, layout: Layout, at: Option<u64>) -> Result<DType> {
    let dtype = match layout {
        Layout::V0_1 | Layout::V1_0 => DType::from_long_name(name),
        _ => DType::from_name(name),
    };
    dtype.ok_or_else(|| Error::DType { offset: at, name: abridged(name) })
}
