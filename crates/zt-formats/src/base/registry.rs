//! The formats and logical types that a reader or writer knows.

use std::fmt;
use std::sync::{Arc, LazyLock};

use zt_manifest::{DType, Text};

use crate::base::elements::Elements;
use crate::base::error::{FormatViolation, Result};
use crate::base::format::ObjectFormat;
use crate::base::logical::{BUILTIN, LogicalType};
use crate::base::signature::Signature;

/// The known object formats and logical types: a value that readers and writers are given, never a
/// global. Clones are cheap.
///
/// ```
/// use zt_formats::{ObjectFormat, Registry, Result, Signature};
///
/// /// A single number.
/// struct Quantity;
///
/// impl ObjectFormat for Quantity {
///     fn id(&self) -> &str {
///         "acme.quantity/1"
///     }
///     fn check(&self, signature: &Signature<'_>, _: &Registry) -> Result<()> {
///         signature.component("amount")?.expect_elements(1)
///     }
/// }
///
/// let registry = Registry::builtin().with_format(Quantity);
/// assert!(registry.format("acme.quantity/1").is_some());
/// assert!(registry.format("dense").is_some());
/// ```
#[derive(Clone)]
pub struct Registry(Arc<Entries>);

#[derive(Clone, Default)]
struct Entries {
    formats: Vec<Arc<dyn ObjectFormat>>,
    logical_types: Vec<LogicalType>,
}

impl Registry {
    /// The logical types of the specification (§7.2), and no format.
    pub(crate) fn specified_types() -> &'static Self {
        static TYPES: LazyLock<Registry> = LazyLock::new(|| {
            let with = Registry::with_logical_type;
            BUILTIN.iter().cloned().fold(Registry::empty(), with)
        });
        &TYPES
    }

    /// A registry without formats and logical types: all are unknown.
    pub fn empty() -> Self {
        Registry(Arc::default())
    }

    /// The same registry with one more format, which replaces one of the same id.
    pub fn with_format(mut self, format: impl ObjectFormat + 'static) -> Self {
        let formats = &mut Arc::make_mut(&mut self.0).formats;
        formats.retain(|known| known.id() != format.id());
        formats.push(Arc::new(format));
        self
    }

    /// The same registry with one more logical type, which replaces one of the same name.
    pub fn with_logical_type(mut self, logical: LogicalType) -> Self {
        let logical_types = &mut Arc::make_mut(&mut self.0).logical_types;
        logical_types.retain(|known| known.name != logical.name);
        logical_types.push(logical);
        self
    }

    /// The format with this id.
    pub fn format(&self, id: &str) -> Option<&dyn ObjectFormat> {
        let mut formats = self.0.formats.iter();
        formats.find(|format| format.id() == id).map(AsRef::as_ref)
    }

    /// The formats in the order of their registration.
    pub fn formats(&self) -> impl Iterator<Item = &dyn ObjectFormat> {
        self.0.formats.iter().map(AsRef::as_ref)
    }

    /// The logical type with this name. The name of a dtype is not one.
    pub fn logical_type(&self, name: &str) -> Option<&LogicalType> {
        let mut logical_types = self.0.logical_types.iter();
        logical_types.find(|logical| logical.name == name)
    }

    /// The logical types in the order of their registration.
    pub fn logical_types(&self) -> impl Iterator<Item = &LogicalType> {
        self.0.logical_types.iter()
    }

    /// Bytes of one value of `dtype` under `logical_type`; `None` if the logical type is unknown.
    /// Spec: §7.2.
    ///
    /// # Errors
    ///
    /// Malformed: a known logical type over a dtype other than its own (`logical-type`).
    pub fn value_len(&self, dtype: DType, logical_type: Option<&str>) -> Result<Option<u64>> {
        let Some(name) = dtype.logical_type(logical_type) else {
            return Ok(Some(dtype.byte_len() as u64));
        };
        let logical = self.known(dtype, name)?;
        Ok(logical.map(LogicalType::value_len))
    }

    /// The name of the type of an object's values: [`ObjectFormat::value_type`], or
    /// [`Signature::value_type`] if the format is unknown.
    pub fn value_type(&self, format: &str, signature: &Signature<'_>) -> Option<Text> {
        match self.format(format) {
            Some(format) => format.value_type(signature),
            None => signature.value_type(),
        }
    }

    /// Checks an object's metadata: known logical types have their own dtype, every component
    /// holds whole values, and [`ObjectFormat::check`] passes if the format is known.
    ///
    /// # Errors
    ///
    /// Malformed, with the rule and the role at fault. Spec: §7, §9.
    pub fn check(&self, format: &str, signature: &Signature<'_>) -> Result<()> {
        for component in &signature.components {
            component.check(self)?;
        }
        match self.format(format) {
            Some(format) => format.check(signature, self),
            None => Ok(()),
        }
    }

    /// [`Registry::check`], and [`ObjectFormat::check_strict`] if the format is known.
    ///
    /// # Errors
    ///
    /// Malformed, with the rule and the role at fault.
    pub fn check_strict(&self, format: &str, signature: &Signature<'_>) -> Result<()> {
        self.check(format, signature)?;
        match self.format(format) {
            Some(format) => format.check_strict(signature, self),
            None => Ok(()),
        }
    }

    /// The logical type of these elements, if it is known.
    pub(crate) fn logical_type_of(&self, elements: &Elements<'_>) -> Result<Option<&LogicalType>> {
        match elements.logical_type() {
            Some(name) => self.known(elements.dtype, name),
            None => Ok(None),
        }
    }

    fn known(&self, dtype: DType, name: &str) -> Result<Option<&LogicalType>> {
        match self.logical_type(name) {
            Some(logical) if logical.dtype != dtype => Err(FormatViolation::LogicalType {
                name: logical.name.clone(),
                expected: Some(logical.dtype),
                found: dtype,
            }
            .of_object()),
            logical => Ok(logical),
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let formats: Vec<_> = self.formats().map(ObjectFormat::id).collect();
        let logical_types: Vec<_> = self.logical_types().map(|logical| &logical.name).collect();
        f.debug_struct("Registry")
            .field("formats", &formats)
            .field("logical_types", &logical_types)
            .finish()
    }
}
