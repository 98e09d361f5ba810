//! No metadata and no bytes make the block formats panic, and every object that they accept decodes.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use proptest::prelude::*;
use zt_formats::{Elements, ObjectFormat, Parts, Registry};
use zt_ggml::{BLOCK_TYPES, BlockFormat, BlockType, Blocks};
use zt_manifest::{Attributes, Text, Value};

fn attributes() -> impl Strategy<Value = Attributes> {
    prop_oneof![
        3 => Just(Attributes::new()),
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

proptest! {
    /// So the levels are the codes, whatever the scales and minima of 16 values are.
    #[test]
    fn values_of_one_group_are_equal_where_their_levels_are(
        block_type in prop::sample::select(&BLOCK_TYPES[..]),
        bytes in prop::collection::vec(any::<u8>(), 300),
        is_big in any::<bool>(),
    ) {
        let block_type = BlockType::from_id(block_type.id()).unwrap();
        let bytes = &bytes[..usize::try_from(block_type.block_byte_len()).unwrap()];
        let parts = Parts {
            shape: Cow::Owned(vec![1, block_type.block_len()]),
            attributes: Cow::Owned([("byte_order", if is_big { "big" } else { "little" })].into()),
            elements: vec![(Text::Borrowed("data"), Elements::from(bytes))],
        };
        let blocks = Blocks::from_parts(block_type, parts).unwrap();
        let mut levels: Vec<f32> = Vec::new();
        let has_levels = blocks.for_each_levels(|of_block, _| {
            levels.extend(of_block.iter().copied().map(f32::from_le_bytes));
        });
        prop_assert_eq!(has_levels, !levels.is_empty());
        if !has_levels {
            let is_grid = block_type.name().starts_with("IQ") && !block_type.name().starts_with("IQ4");
            let is_swapped = is_big && !block_type.is_known_in(zt_manifest::ByteOrder::Big);
            prop_assert!(is_grid || is_swapped || block_type.name() == "NVFP4", "{}", block_type);
            return Ok(());
        }
        prop_assert!(levels.iter().all(|level| level.fract() == 0.0 && (-128.0..256.0).contains(level)));
        let dense = blocks.to_dense().unwrap();
        let (values, _) = dense.elements().bytes.as_chunks::<4>();
        let values: Vec<f32> = values.iter().copied().map(f32::from_le_bytes).collect();
        for (levels, values) in levels.chunks(16).zip(values.chunks(16)) {
            for (a, b) in (0..16).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let is_equal = (values[a] - values[b]).abs() == 0.0 || !values[a].is_finite();
                // A scale of 0 makes all values equal.
                prop_assert!(levels[a] != levels[b] || is_equal, "{}", block_type);
            }
        }
    }

    #[test]
    fn simple_values_are_levels_times_the_scale(levels in prop::collection::vec(0u8..16, 32), scale in 1u16..0x7bff) {
        let nibbles = levels[..16].iter().zip(&levels[16..]).map(|(low, high)| low | high << 4);
        let block: Vec<u8> = scale.to_le_bytes().into_iter().chain(nibbles).collect();
        let q4_0 = BlockType::from_format("gguf.q4_0/1").unwrap();
        let blocks = Blocks::new(q4_0, [32], &block[..]).unwrap();
        let dense = blocks.to_dense().unwrap();
        let values = dense.as_slice::<f32>().unwrap();
        let has_levels = blocks.for_each_levels(|found, factor| {
            for ((found, level), value) in found.iter().zip(&levels).zip(values.iter()) {
                let found = f32::from_le_bytes(*found);
                assert_eq!((found, found * factor), (f32::from(*level) - 8.0, *value));
            }
        });
        prop_assert!(has_levels);
    }
}
