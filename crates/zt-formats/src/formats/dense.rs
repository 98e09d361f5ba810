//! `dense`: a plain array in row-major order. Spec: formats/dense.

use zt_manifest::{DType, Text};

use crate::base::dense::{DATA, check_data};
use crate::base::{Dense, ObjectFormat, Parts, Registry, Result, Signature, View, dense_byte_len};

/// The rules of `dense`: the length of `data` fits the shape.
///
/// Other components are permitted, because existing files have them. If the registry does not know
/// the logical type, any whole number of elements is valid. Spec: formats/dense.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenseFormat;

impl ObjectFormat for DenseFormat {
    fn id(&self) -> &str {
        Dense::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        check_data(signature.shape, signature.component(DATA)?, registry)
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn is_of_value(&self, role: &str, _: &Signature<'_>) -> bool {
        role == DATA
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        signature.get(DATA)?.dense_type()
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        Dense::from_parts(parts)?.into_owned()
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
        let data = signature.get(DATA).filter(|_| role == DATA)?;
        let value_len = data.value_len(registry).ok().flatten()?;
        dense_byte_len(signature.shape, value_len)
    }
}
