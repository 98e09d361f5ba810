//! Objects whose every element is known twice: as stored bytes and as a value.

use std::borrow::Cow;

use serde_json::{Value, json};
use zt::container::Hasher;
use zt::manifest::Text;
use zt::{Attributes, DType, DigestAlgorithm, Elements, NewObject, ToObject};

/// Beyond so many elements the truth has the digest of a component and not its values.
const MOST_VALUES: usize = 1024;

/// The elements of one component.
pub(crate) struct Column {
    pub(crate) dtype: DType,
    pub(crate) bytes: Vec<u8>,
    logical_type: Option<&'static str>,
    values: Vec<Value>,
}

/// A Rust type that is stored as it is.
pub(crate) trait Stored: Copy {
    const DTYPE: DType;
    fn bytes(self) -> Vec<u8>;
    fn value(self) -> Value;
}

macro_rules! stored {
    ($($rust:ty, $dtype:ident, $value:expr;)*) => {$(
        impl Stored for $rust {
            const DTYPE: DType = DType::$dtype;
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn value(self) -> Value {
                $value(self)
            }
        }
    )*};
}

stored! {
    f64, F64, real;
    f32, F32, |value| real(f64::from(value));
    i64, I64, Value::from;
    i32, I32, Value::from;
    i16, I16, Value::from;
    i8, I8, Value::from;
    u64, U64, Value::from;
    u32, U32, Value::from;
    u16, U16, Value::from;
    u8, U8, Value::from;
}

impl Stored for bool {
    const DTYPE: DType = DType::Bool;
    fn bytes(self) -> Vec<u8> {
        vec![u8::from(self)]
    }
    fn value(self) -> Value {
        Value::from(self)
    }
}

/// JSON has no NaN and no infinity: they are strings.
fn real(value: f64) -> Value {
    if value.is_nan() {
        json!("nan")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "inf" } else { "-inf" })
    } else {
        json!(value)
    }
}

/// Elements that Rust has a type for.
pub(crate) fn column<T: Stored>(elements: &[T]) -> Column {
    Column {
        dtype: T::DTYPE,
        bytes: elements.iter().flat_map(|element| element.bytes()).collect(),
        logical_type: None,
        values: elements.iter().take(MOST_VALUES + 1).map(|element| element.value()).collect(),
    }
}

/// Elements of a 16-bit floating type, as pairs of bits and value: the truth does not come from a
/// conversion that the reader might share.
pub(crate) fn halves(dtype: DType, elements: &[(u16, f64)]) -> Column {
    Column {
        dtype,
        bytes: elements.iter().flat_map(|(bits, _)| bits.to_le_bytes()).collect(),
        logical_type: None,
        values: elements.iter().map(|(_, value)| real(*value)).collect(),
    }
}

impl Column {
    /// The same stored elements under a logical type.
    pub(crate) fn of(mut self, logical_type: &'static str) -> Self {
        self.logical_type = Some(logical_type);
        self
    }

    pub(crate) fn logical_type(&self) -> Option<Text> {
        self.logical_type.map(Cow::Borrowed)
    }

    fn elements(&self) -> Elements<'_> {
        let elements = Elements::new(self.dtype, self.bytes.as_slice());
        match self.logical_type {
            Some(name) => elements.with_logical_type(name),
            None => elements,
        }
    }

    fn truth(&self) -> zt::Result<Value> {
        let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
        hasher.update(&self.bytes);
        let digest = hasher.finish().to_string();
        let mut truth = json!({
            "dtype": self.dtype.as_str(),
            "type": self.logical_type,
            "nbytes": self.bytes.len(),
            "sha256": digest.trim_start_matches("sha256:"),
        });
        if self.values.len() <= MOST_VALUES {
            truth["values"] = json!(self.values);
        }
        Ok(truth)
    }
}

/// One object.
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) format: &'static str,
    pub(crate) components: Vec<(&'static str, Column)>,
    attributes: Option<(Attributes, Value)>,
    dense: Option<Value>,
}

impl Object {
    pub(crate) fn new(
        name: impl Into<String>,
        shape: &[u64],
        format: &'static str,
        components: impl Into<Vec<(&'static str, Column)>>,
    ) -> Self {
        Object {
            name: name.into(),
            shape: shape.to_vec(),
            format,
            components: components.into(),
            attributes: None,
            dense: None,
        }
    }

    pub(crate) fn dense(name: impl Into<String>, shape: &[u64], data: Column) -> Self {
        Self::new(name, shape, "dense", [("data", data)])
    }

    /// The attributes, and how Python is to see them: bytes and what is not finite are spelled
    /// `{"$bytes_hex": ..}` and `{"$float": ..}`.
    pub(crate) fn attributes(mut self, attributes: Attributes, truth: Value) -> Self {
        self.attributes = Some((attributes, truth));
        self
    }

    /// The value with every zero in place, in row-major order.
    pub(crate) fn filled_in<T: Into<Value> + Copy>(mut self, dense: &[T]) -> Self {
        self.dense = Some(dense.iter().map(|&value| value.into()).collect());
        self
    }

    pub(crate) fn truth(&self) -> zt::Result<Value> {
        let mut components = serde_json::Map::new();
        for (role, column) in &self.components {
            components.insert((*role).to_owned(), column.truth()?);
        }
        let mut truth = json!({
            "shape": self.shape,
            "format": self.format,
            "attributes": self.attributes.as_ref().map(|(_, truth)| truth),
            "components": components,
        });
        if let Some(dense) = &self.dense {
            truth["dense"] = dense.clone();
        }
        Ok(truth)
    }
}

impl ToObject for Object {
    fn to_object(&self) -> zt::formats::Result<NewObject<'_>> {
        let components = self.components.iter();
        Ok(NewObject {
            shape: Cow::Borrowed(&self.shape),
            format: Cow::Borrowed(self.format),
            attributes: self.attributes.as_ref().map(|(attributes, _)| attributes.clone()),
            components: components
                .map(|(role, column)| (Cow::Borrowed(*role), column.elements()))
                .collect(),
        })
    }
}
