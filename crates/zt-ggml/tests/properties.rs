//! No metadata and no bytes make the block formats panic, and every object that they accept decodes.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use proptest::prelude::*;
use zt_formats::{Elements, ObjectFormat, Parts, Registry};
use zt_ggml::{BLOCK_TYPES, BlockFormat, BlockType, Blocks};
use zt_manifest::{Map, Text, Value};

fn attributes() -> impl Strategy<Value = Map> {
    prop_oneof![
        3 => Just(Map::new()),
        1 => Just([("byte_order", "big")].into()),
        1 => Just([("byte_order", Value::from(1u64))].into()),
    ]
}

/// Any shape and bytes. Every second one fits: rows are whole blocks, and all bytes are there.
fn anything() -> impl Strategy<Value = (&'static BlockType, Parts<'static>)> {
    let dimension = prop_oneof![4 => 0u64..4, 1 => any::<u64>()];
    let shape = prop::collection::vec(dimension, 0..4);
    let bytes = prop::collection::vec(any::<u8>(), 0..600);
    let rest = (attributes(), bytes, any::<bool>());
    (prop::sample::select(&BLOCK_TYPES[..]), shape, rest).prop_map(
        |(block_type, mut shape, (attributes, mut bytes, is_fitted))| {
            let block_type = BlockType::from_id(block_type.id()).unwrap();
            if let (true, Some(last)) = (is_fitted, shape.last_mut()) {
                *last = last.saturating_mul(block_type.block_len());
                let count = zt_formats::element_count(&shape);
                let len = count.and_then(|count| block_type.byte_len(count));
                if let Some(len) = len.filter(|len| *len < 1 << 16) {
                    bytes.resize(usize::try_from(len).unwrap(), 1);
                }
            }
            let elements = Elements::from(bytes);
            let parts = Parts {
                shape: Cow::Owned(shape),
                attributes: Cow::Owned(attributes),
                elements: vec![(Text::Borrowed("data"), elements)],
            };
            (block_type, parts)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn accepted_blocks_have_values_and_others_an_error((block_type, parts) in anything()) {
        let (format, registry) = (BlockFormat(block_type), Registry::builtin());
        let signature = parts.signature();
        let checked = format.check(&signature, &registry);
        let dense_type = format.dense_type(&signature, &registry);
        let blocks = Blocks::from_parts(block_type, parts.clone());
        prop_assert_eq!(blocks.is_ok(), checked.is_ok());
        match (checked, format.to_dense(parts.clone())) {
            (Ok(()), Ok(dense)) => {
                prop_assert_eq!(dense.shape(), &*parts.shape);
                prop_assert_eq!(dense_type, Some((dense.elements().dtype, None)));
                let expected = format.expected_len("data", &signature, &registry);
                prop_assert_eq!(expected, signature.components[0].byte_len);
            }
            (Ok(()), Err(error)) => prop_assert_eq!(error.code(), "unsupported"),
            (Err(_), dense) => prop_assert!(dense.is_err()),
        }
    }
}
