//! The documents of `--json`. Scripts depend on the keys: they are added and never renamed.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::ser::Serializer;
use zt::manifest::Text;

use zt::{Component, DType, Digest, Entry, Error, RawComponent, RawObject, Tensor, Warning};
use zt_convert::Cast;

use super::text::{has_unsafe, is_unsafe};
use super::value::Attributes;
use crate::failure::Failure;

/// A JSON object with these keys, in this order. A key without a value has that of its variable.
macro_rules! object {
    (@value $key:ident) => { $key };
    (@value $key:ident $value:expr) => { $value };
    ($($key:ident $(: $value:expr)?),+ $(,)?) => {{
        #[allow(non_camel_case_types, clippy::too_many_arguments)]
        fn of_fields<$($key: serde::Serialize),+>($($key: $key),+) -> impl serde::Serialize {
            #[derive(serde::Serialize)]
            struct Object<$($key),+> {
                $($key: $key),+
            }
            Object { $($key),+ }
        }
        of_fields($($crate::output::json::object!(@value $key $($value)?)),+)
    }};
}
pub(crate) use object;

/// An error, or a problem of `verify`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ErrorBody {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// The file of the error, if it is known.
    pub(crate) file: Option<String>,
    pub(crate) object: Option<String>,
    pub(crate) component: Option<String>,
    pub(crate) offset: Option<u64>,
}

impl ErrorBody {
    pub(crate) const fn misuse(message: String) -> Self {
        ErrorBody {
            code: "misuse",
            message,
            file: None,
            object: None,
            component: None,
            offset: None,
        }
    }
}

impl ErrorBody {
    /// `None` for a failure without a message.
    pub(crate) fn of(failure: &Failure) -> Option<Self> {
        match failure {
            Failure::Refused(error) | Failure::Error(error) => Some(ErrorBody::from(error)),
            Failure::Usage { code, message } => {
                Some(ErrorBody { code, ..ErrorBody::misuse(message.clone()) })
            }
            Failure::ClosedPipe | Failure::CutOff => None,
        }
    }
}

impl From<&Error> for ErrorBody {
    fn from(error: &Error) -> Self {
        ErrorBody {
            code: error.code(),
            message: error.message(),
            file: error.path().map(path_text),
            object: error.object().map(str::to_owned),
            component: error.component().map(str::to_owned),
            offset: error.offset(),
        }
    }
}

/// The reason why an object cannot be read.
#[derive(Serialize)]
pub(crate) struct FaultBody {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    component: Option<String>,
}

impl From<&Error> for FaultBody {
    fn from(error: &Error) -> Self {
        FaultBody {
            code: error.code(),
            message: error.message(),
            component: error.component().map(str::to_owned),
        }
    }
}

/// A warning.
#[derive(Serialize)]
pub(crate) struct WarningBody<'a> {
    code: &'a str,
    message: &'a str,
    object: Option<&'a str>,
    component: Option<&'a str>,
}

pub(crate) fn warnings(warnings: &[Warning]) -> Vec<WarningBody<'_>> {
    warnings.iter().map(WarningBody::from).collect()
}

/// What casts have lost.
pub(crate) fn casts(casts: &[Cast]) -> Vec<impl Serialize> {
    let body = |cast: &Cast| {
        object! {
            r#type: cast.to.as_str(),
            values: cast.values,
            to_zero: cast.to_zero,
            out_of_range: cast.out_of_range,
            relative_error: cast.relative_error(),
        }
    };
    casts.iter().map(body).collect()
}

/// Paths as text.
pub(crate) fn paths(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path_text(path)).collect()
}

/// A path as text. JSON has no path that is not UTF-8: it becomes a URI with percent-encoded bytes,
/// `file:///tmp/caf%E9.zt`. A path that begins with `file:` becomes one too, so that this beginning
/// always means a URI.
pub(crate) fn path_text(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.starts_with("file:") => text.to_owned(),
        _ => uri(path),
    }
}

fn uri(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

impl<'a> From<&'a Warning> for WarningBody<'a> {
    fn from(warning: &'a Warning) -> Self {
        WarningBody {
            code: warning.code,
            message: &warning.message,
            object: warning.object.as_deref(),
            component: warning.component.as_deref(),
        }
    }
}

/// An object in a list.
#[derive(Serialize)]
pub(crate) struct ObjectBody<'a> {
    pub(crate) name: &'a str,
    pub(crate) shape: Option<&'a [u64]>,
    pub(crate) format: Option<&'a str>,
    /// The type of the values, which may differ from the stored dtype: `f32`, `q4_0`.
    pub(crate) r#type: Option<Text>,
    /// How the codes are stored that its values are computed of, and the bits stored for each value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dialect: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bits_per_weight: Option<f64>,
    attributes: Attributes<'a>,
    pub(crate) fault: Option<FaultBody>,
    pub(crate) components: Vec<ComponentBody<'a>>,
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    extra: Attributes<'a>,
}

#[derive(Serialize)]
pub(crate) struct ComponentBody<'a> {
    pub(crate) role: &'a str,
    pub(crate) dtype: Option<&'a str>,
    pub(crate) r#type: Option<&'a str>,
    pub(crate) encoding: Option<&'a str>,
    pub(crate) offset: Option<u64>,
    pub(crate) length: Option<u64>,
    pub(crate) decoded_length: Option<u64>,
    pub(crate) digest: Option<DigestText<'a>>,
    /// The algorithm of its chunk digests, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_digests: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    byte_order: Option<&'static str>,
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    extra: Attributes<'a>,
}

impl<'a> ObjectBody<'a> {
    pub(crate) fn new(entry: &Entry<'a>) -> Self {
        match (entry.tensor(), entry.raw()) {
            (Ok(tensor), _) => Self::sound(&tensor),
            (Err(error), raw) => Self::faulty(entry.name(), &error, raw),
        }
    }

    fn sound(tensor: &Tensor<'a>) -> Self {
        let object = tensor.object();
        let components = object.components.iter();
        ObjectBody {
            name: tensor.name(),
            shape: Some(&object.shape),
            format: Some(&object.format),
            r#type: tensor.value_type(),
            dialect: None,
            bits_per_weight: None,
            attributes: Attributes(Some(object.attributes())),
            fault: tensor.fault().map(FaultBody::from),
            components: components.map(|(role, c)| ComponentBody::sound(role, c)).collect(),
            extra: Attributes(Some(&object.extra)),
        }
    }

    fn faulty(name: &'a str, error: &Error, raw: Option<&'a RawObject>) -> Self {
        let components = raw.into_iter().flat_map(|raw| &raw.components);
        ObjectBody {
            name,
            shape: raw.and_then(|raw| raw.shape.as_deref()),
            format: raw.and_then(|raw| raw.format.as_deref()),
            r#type: None,
            dialect: None,
            bits_per_weight: None,
            attributes: Attributes(raw.and_then(|raw| raw.attributes.as_ref())),
            fault: Some(FaultBody::from(error)),
            components: components.map(|(role, c)| ComponentBody::raw(role, c)).collect(),
            extra: Attributes(raw.map(|raw| &raw.extra)),
        }
    }
}

impl<'a> ComponentBody<'a> {
    fn sound(role: &'a str, component: &'a Component) -> Self {
        let Component { dtype, blob, extra, .. } = component;
        let dtype = dtype.map(|dtype| dtype.as_str());
        ComponentBody {
            role,
            dtype,
            r#type: logical_type(component),
            encoding: Some(blob.encoding.as_str()),
            offset: Some(blob.span.offset()),
            length: Some(blob.span.byte_len()),
            decoded_length: blob.decoded_len,
            digest: blob.digest.as_ref().map(DigestText::Sound),
            chunk_digests: blob
                .chunks
                .as_ref()
                .and_then(|chunks| Some(chunks.digest.algorithm()?.as_str())),
            byte_order: byte_order(component.byte_order),
            extra: Attributes(Some(extra)),
        }
    }

    fn raw(role: &'a str, component: &'a RawComponent) -> Self {
        let dtype = component.dtype.as_deref();
        ComponentBody {
            role,
            dtype,
            r#type: component.logical_type.as_deref().filter(|name| Some(*name) != dtype),
            encoding: component.encoding.as_deref(),
            offset: component.offset,
            length: component.length,
            decoded_length: component.decoded_len,
            digest: component.digest.as_deref().map(DigestText::Raw),
            chunk_digests: None,
            byte_order: byte_order(component.byte_order),
            extra: Attributes(Some(&component.extra)),
        }
    }
}

/// A digest, spelled when it is written.
#[derive(Clone, Copy)]
pub(crate) enum DigestText<'a> {
    Sound(&'a Digest),
    /// Of an object that is at fault, as the file spells it.
    Raw(&'a str),
}

impl<'a> DigestText<'a> {
    /// The text before the colon.
    pub(crate) fn algorithm(self) -> &'a str {
        match self {
            DigestText::Sound(Digest::Unknown { algorithm, .. }) => algorithm,
            DigestText::Sound(digest) => digest.algorithm().map_or("", |it| it.as_str()),
            DigestText::Raw(text) => text.split(':').next().unwrap_or(text),
        }
    }
}

impl fmt::Display for DigestText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DigestText::Sound(digest) => digest.fmt(f),
            DigestText::Raw(text) => f.write_str(text),
        }
    }
}

impl Serialize for DigestText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn logical_type(component: &Component) -> Option<&str> {
    let name = component.logical_type.as_deref();
    match component.dtype {
        Some(dtype) => dtype.logical_type(name),
        None => name,
    }
}

/// The type of a component's elements: the logical type, or else the dtype.
pub(crate) fn type_name(component: &Component) -> Option<&str> {
    logical_type(component).or(component.dtype.map(DType::as_str))
}

/// `big`; nothing for the usual order.
fn byte_order(order: zt::ByteOrder) -> Option<&'static str> {
    (order == zt::ByteOrder::Big).then_some("big")
}

/// Compact JSON whose strings cannot control a terminal: a character that [`is_unsafe`] is written as
/// `\uXXXX`, which is the same JSON.
pub(crate) struct Escaped;

impl serde_json::ser::Formatter for Escaped {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if has_unsafe(fragment) {
            return writer.write_all(escaped(fragment).as_bytes());
        }
        writer.write_all(fragment.as_bytes())
    }
}

/// Writes a document to `out`. Keys are text and floats are finite, so that only `out` can fail.
pub(crate) fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    // One type of serializer: each document is compiled for it once.
    document.serialize(&mut serde_json::Serializer::with_formatter(out, Escaped))?;
    Ok(())
}

/// JSON text with `\uXXXX` for each character that [`is_unsafe`], except between lines.
pub(crate) fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character == '\n' || !is_unsafe(character) {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

/// Pairs as a JSON object, in their order.
pub(crate) struct Pairs<'a, V>(pub(crate) &'a [(&'a str, V)]);

impl<V: Serialize> Serialize for Pairs<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
