//! `zt.delta/1`: how an object differs from one of another file. Spec: formats/zt.delta.

use zt_manifest::{Attributes, DType, Text, Value};

use crate::base::attribute::{self, fault, missing};
use crate::base::{AttributeFault, FormatViolation, ObjectFormat, Registry, Result, Signature};

const BASE: &str = "base";
const ATTRIBUTES: &str = "attributes";
const SHA256: &str = "sha256";

/// The rules of `zt.delta/1`. Whether the codes fit the base is known when both are read together.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeltaFormat;

impl ObjectFormat for DeltaFormat {
    fn id(&self) -> &str {
        Delta::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, _: &Registry) -> Result<()> {
        let delta = Delta::from_attributes(signature.attributes)?;
        for component in &signature.components {
            component.expect_plain(DType::U8)?;
            if delta.sha256_of(component.role).is_none() {
                return Err(missing(SHA256).with_role(component.role.to_owned()));
            }
        }
        for (role, _) in &delta.sha256 {
            if signature.get(role).is_none() {
                return Err(FormatViolation::MissingComponent.of((*role).to_owned()));
            }
        }
        Ok(())
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn is_of_value(&self, _: &str, _: &Signature<'_>) -> bool {
        false
    }

    fn value_type(&self, _: &Signature<'_>) -> Option<Text> {
        None
    }
}

/// The attributes of an object of `zt.delta/1`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delta<'a> {
    /// The name of the object of the base; `None` if the delta's object has the same name.
    pub base: Option<&'a str>,
    /// The attributes of the result; `None` if the base's object has the same.
    pub attributes: Option<&'a Attributes>,
    /// The SHA-256 of each changed component of the result, by role.
    pub sha256: Vec<(&'a str, [u8; 32])>,
}

impl<'a> Delta<'a> {
    /// The manifest's `format`.
    pub const FORMAT: &'static str = "zt.delta/1";

    /// Reads the attributes. Others are permitted.
    ///
    /// # Errors
    ///
    /// Malformed: an attribute has another type (`attribute`).
    pub fn from_attributes(attributes: &'a Attributes) -> Result<Self> {
        let sums = attribute::map(attributes, SHA256)?;
        let sum = |(role, value): (&'a Value, &'a Value)| {
            let sum = value.as_bytes().and_then(|bytes| bytes.try_into().ok());
            let expected = "a map of roles to byte strings of 32";
            let sum = role.as_str().zip(sum);
            sum.ok_or_else(|| fault(SHA256, AttributeFault::Type { expected }))
        };
        Ok(Delta {
            base: attribute::text(attributes, BASE)?,
            attributes: attribute::map(attributes, ATTRIBUTES)?,
            sha256: sums.into_iter().flatten().map(sum).collect::<Result<_>>()?,
        })
    }

    /// The attributes of the object.
    pub fn to_attributes(&self) -> Attributes {
        let mut attributes = Attributes::new();
        if let Some(base) = self.base {
            attributes.insert(BASE, base);
        }
        if let Some(new) = self.attributes {
            attributes.insert(ATTRIBUTES, Value::Map(new.clone()));
        }
        if !self.sha256.is_empty() {
            let sums = self.sha256.iter();
            let sums = sums.map(|(role, sum)| (*role, Value::Bytes(sum.to_vec())));
            attributes.insert(SHA256, Value::Map(sums.collect()));
        }
        attributes
    }

    /// The SHA-256 of a changed component of the result; `None` for one that did not change.
    pub fn sha256_of(&self, role: &str) -> Option<[u8; 32]> {
        let mut sums = self.sha256.iter();
        sums.find(|(known, _)| *known == role).map(|(_, sum)| *sum)
    }
}
