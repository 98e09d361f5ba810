//! `zt.planes/1`: floating-point elements split into planes of bytes. Spec: formats/zt.planes.

use zt_manifest::{DType, Text};

use crate::base::{
    Buffer, Dense, Elements, NewObject, ObjectFormat, Parts, Registry, Result, Signature,
    SizeMismatch, ToObject, View,
};
use crate::formats::plane_codec::PlaneCodec;

/// The rules of `zt.planes/1`.
///
/// The attributes `dtype` and `type` are the elements' types; other attributes are permitted. Each
/// byte of an element has a plane, and each plane has a byte for each element. If the registry does
/// not know the logical type, all planes must be as long as the first one.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanesFormat;

impl ObjectFormat for PlanesFormat {
    fn id(&self) -> &str {
        Planes::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let codec = PlaneCodec::from_attributes(signature.attributes)?;
        let mut planes = Vec::with_capacity(codec.plane_count());
        for role in codec.roles() {
            planes.push(signature.component(role)?);
        }
        for plane in &planes {
            plane.expect_plain(DType::U8)?;
        }
        let mut expected = codec.plane_len(signature.shape, registry)?;
        for plane in planes {
            if let Some(expected) = expected {
                plane.expect_bytes(expected)?;
            }
            expected = expected.or(plane.byte_len);
        }
        Ok(())
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn is_of_value(&self, role: &str, signature: &Signature<'_>) -> bool {
        let codec = PlaneCodec::from_attributes(signature.attributes);
        codec.is_ok_and(|codec| codec.roles().contains(&role))
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        let codec = PlaneCodec::from_attributes(signature.attributes).ok()?;
        let logical_type = codec.logical_type().map(str::to_owned);
        Some((codec.dtype(), logical_type.map(Text::Owned)))
    }

    fn value_type(&self, signature: &Signature<'_>) -> Option<Text> {
        let codec = PlaneCodec::from_attributes(signature.attributes).ok()?;
        let name = codec.logical_type().unwrap_or(codec.dtype().as_str());
        Some(Text::Owned(name.to_owned()))
    }

    fn parameters(&self) -> &[&str] {
        &PlaneCodec::ATTRIBUTES
    }

    fn is_for_compression(&self) -> bool {
        true
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        Planes::from_parts(parts)?.to_dense()
    }

    fn decode_into(&self, parts: Parts<'_>, out: &mut [u8]) -> Result<()> {
        let codec = PlaneCodec::from_attributes(&parts.attributes)?;
        let mut planes = Vec::with_capacity(codec.plane_count());
        let expected = out.len().strict_div(codec.plane_count());
        for role in codec.roles() {
            let plane = &*parts.component(role)?.bytes;
            if plane.len() != expected {
                let (expected, found) = (expected as u64, plane.len() as u64);
                return Err(SizeMismatch::Bytes { expected, found }.of(*role));
            }
            planes.push(plane);
        }
        codec.merge(&planes, out);
        Ok(())
    }

    fn is_flat(&self) -> bool {
        true
    }

    fn row_unit(&self, _: &Signature<'_>, _: &Registry) -> Option<u64> {
        Some(1)
    }

    fn expected_len(
        &self,
        role: &str,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<u64> {
        let codec = PlaneCodec::from_attributes(signature.attributes).ok()?;
        codec.roles().iter().find(|known| **known == role)?;
        codec.plane_len(signature.shape, registry).ok().flatten()
    }
}

/// An array of floating-point elements, split into planes of bytes: the same bits in an order that
/// compresses better. [`PlaneCodec`] defines the order.
///
/// Always well-formed: each byte of an element has a plane, and all planes have the same length.
///
/// ```
/// use zt_formats::{Dense, Planes};
///
/// let dense = Dense::from_slice(&[2, 2], &[1.0f32, -1.0, 0.5, f32::NAN])?;
/// let planes = Planes::from_dense(&dense)?;
/// assert_eq!(planes.plane(0), Some(&[127, 127, 126, 255][..])); // the exponents
/// assert_eq!(planes.to_dense()?, dense);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Planes<'a> {
    shape: Vec<u64>,
    codec: PlaneCodec,
    /// One for each byte of an element, all of the same length.
    planes: Vec<Elements<'a>>,
}

impl Planes<'_> {
    /// Splits an array into planes. Copies its bytes.
    ///
    /// # Errors
    ///
    /// Malformed: its elements are not f64, f32, f16 or bf16 (`dtype`). Allocation.
    pub fn from_dense(dense: &Dense<'_>) -> Result<Planes<'static>> {
        let elements = dense.elements();
        let codec = PlaneCodec::new(elements.dtype, elements.logical_type())?;
        let mut planes = Vec::with_capacity(codec.plane_count());
        for at in 0..codec.plane_count() {
            let mut plane = Buffer::try_zeroed(elements.element_count())?;
            codec.split(at, &elements.bytes, &mut plane);
            planes.push(Elements::new(DType::U8, plane));
        }
        Ok(Planes { shape: dense.shape().to_vec(), codec, planes })
    }

    /// The dimensions.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of the elements, which determines how they are split.
    pub const fn codec(&self) -> &PlaneCodec {
        &self.codec
    }

    /// Plane number `at`: byte `at` of every element, counted from the exponent.
    pub fn plane(&self, at: usize) -> Option<&[u8]> {
        self.planes.get(at).map(|plane| &*plane.bytes)
    }

    /// The elements, merged again.
    ///
    /// # Errors
    ///
    /// Allocation.
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let planes: Vec<&[u8]> = self.planes.iter().map(|plane| &*plane.bytes).collect();
        let count = planes.first().map_or(0, |plane| plane.len() as u64);
        let width = self.codec.plane_count() as u64;
        let mut out = Buffer::try_zeroed_values(count, width)?;
        self.codec.merge(&planes, &mut out);
        let mut elements = Elements::new(self.codec.dtype(), out);
        if let Some(name) = self.codec.logical_type() {
            elements = elements.with_logical_type(name.to_owned());
        }
        Ok(Dense::from_checked(self.shape.clone(), elements))
    }
}

impl<'a> View<'a> for Planes<'a> {
    const FORMAT: &'static str = "zt.planes/1";

    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        Registry::builtin().check(Self::FORMAT, &parts.signature())?;
        let codec = PlaneCodec::from_attributes(&parts.attributes)?;
        let mut planes = Vec::with_capacity(codec.plane_count());
        for role in codec.roles() {
            planes.push(parts.take(role)?);
        }
        Ok(Planes { shape: parts.shape.into_owned(), codec, planes })
    }
}

impl ToObject for Planes<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let planes = self.planes.iter().map(Elements::borrow);
        let components = self.codec.roles().iter().copied().zip(planes);
        let attributes = Some(self.codec.to_attributes());
        Ok(NewObject::new(&self.shape, Self::FORMAT, attributes, components))
    }
}
