//! An object format that this crate does not know, in one file: what `ObjectFormat`, `View` and
//! `ToObject` ask of one. It stores the diagonal of a square matrix.

use std::borrow::Cow;

use zt_formats::{
    ComponentSignature, Dense, Elements, NewObject, ObjectFormat, Parts, Registry, Result,
    Signature, SizeMismatch, ToObject, View, Violation,
};
use zt_manifest::{DType, Map, Text};

const DIAGONAL: &str = "diagonal";

/// The rules: a square shape, and a value for each row.
struct DiagonalFormat;

impl ObjectFormat for DiagonalFormat {
    fn id(&self) -> &str {
        Diagonal::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let &[rows, cols] = signature.shape else {
            let found = signature.shape.len() as u64;
            let mismatch = SizeMismatch::Rank { expected: 2, found };
            return Err(Violation::from(mismatch).of_object());
        };
        if rows != cols {
            let mismatch = SizeMismatch::Elements {
                expected: rows,
                found: cols,
            };
            return Err(Violation::from(mismatch).of_object());
        }
        let diagonal = signature.component(DIAGONAL)?;
        diagonal.expect_values(rows, registry)
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        Some((signature.get(DIAGONAL)?.dtype?, None))
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        let Diagonal { values } = Diagonal::from_parts(parts)?;
        let values = values.as_slice::<f32>()?;
        let mut dense = vec![0f32; values.len() * values.len()];
        for (row, value) in values.iter().enumerate() {
            dense[row * values.len() + row] = *value;
        }
        let rows = values.len() as u64;
        Dense::from_elements([rows, rows], Elements::from(dense))
    }
}

/// The view.
struct Diagonal<'a> {
    values: Elements<'a>,
}

impl<'a> View<'a> for Diagonal<'a> {
    const FORMAT: &'static str = "acme.diagonal/1";

    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        DiagonalFormat.check(&parts.signature(), &Registry::builtin())?;
        let values = parts.take(DIAGONAL)?;
        Ok(Diagonal { values })
    }
}

impl ToObject for Diagonal<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let rows = self.values.element_count();
        Ok(NewObject {
            shape: Cow::Owned(vec![rows, rows]),
            format: Text::Borrowed(Self::FORMAT),
            attributes: None,
            components: vec![(Text::Borrowed(DIAGONAL), self.values.borrow())],
        })
    }
}

#[test]
fn a_format_from_outside_is_checked_viewed_and_written_like_any_other() {
    let registry = Registry::builtin().with_format(DiagonalFormat);
    let values = [1.0f32, 2.0];
    let diagonal = Diagonal {
        values: Elements::from(&values),
    };
    let object = diagonal.to_object().unwrap();
    registry.check(&object.format, &object.signature()).unwrap();

    let format = registry.format("acme.diagonal/1").unwrap();
    let dense = format.to_dense(object.into_parts()).unwrap();
    assert_eq!(dense.shape(), [2, 2]);
    assert_eq!(*dense.as_slice::<f32>().unwrap(), [1.0, 0.0, 0.0, 2.0]);
}

#[test]
fn its_rules_hold_where_it_is_registered_and_only_there() {
    let attributes = Map::new();
    let signature = Signature {
        shape: &[2, 3],
        attributes: &attributes,
        components: vec![ComponentSignature {
            role: DIAGONAL,
            dtype: Some(DType::F32),
            logical_type: None,
            byte_len: Some(8),
        }],
    };
    let id = Diagonal::FORMAT;
    let registry = Registry::builtin().with_format(DiagonalFormat);
    let error = registry.check(id, &signature).unwrap_err();
    assert_eq!(error.code(), "shape-size-mismatch");
    Registry::builtin().check(id, &signature).unwrap();
}
