//! SQUIZD files that are read and written again.

use zt::Warning;
use zt_conformance::squizd::{Squizd, block, flag, plain};
use zt_convert::{ConvertOptions, Input, Kinds, SQUIZD};

use super::{SUB_BLOCK, open};

/// The bytes of a file converted to what it is, and the warnings.
fn again(bytes: &[u8]) -> zt::Result<(Vec<u8>, Vec<Warning>)> {
    let input = Input::from(open(bytes, true)?);
    let mut out = Vec::new();
    let summary = Kinds::builtin().convert(&[input], &mut out, &ConvertOptions::new(SQUIZD))?;
    Ok((out, summary.warnings))
}

/// As the builder of `conformance` lays them out: without gaps and without what is empty.
#[test]
fn files_come_back_byte_for_byte() {
    let part = |scale: f32| (7 | SUB_BLOCK, scale, 0.25);
    let int4 = |tables: &[&[(u64, f32, f32)]]| Squizd {
        tables: tables.iter().map(|table| table.to_vec()).collect(),
        ..Squizd::one(
            flag::INT4,
            vec![block(b"INT4", &[2, 4], &[0x98, 0xBA, 0xDC, 0xFE]), plain(&[1], &[1.0])],
        )
    };
    let int2 = |tables: &[&[(u64, f32, f32)]]| Squizd {
        tables: int4(tables).tables,
        ..Squizd::one(flag::INT2, vec![block(b"INT2", &[1, 5, 2], &[0b11_10_01_00, 3])])
    };
    for file in [
        Squizd::one(0, vec![plain(&[2], &[1.0, 2.0]), plain(&[], &[3.0])]),
        int4(&[&[(7, 0.5, 1.0)]]),
        int4(&[&[(7, 1.0, 0.0)], &[part(1.0), part(10.0)]]),
        int4(&[&[(7, 0.5, 1.0)], &[part(1.0), part(10.0)]]),
        int4(&[&[(7, 0.5, 1.0)], &[part(3.0)]]),
        int2(&[&[(7, 0.5, 1.0)]]),
        int2(&[&[(7, 0.5, 1.0)], &[part(1.0), part(2.0), part(3.0)]]),
    ] {
        let bytes = file.to_bytes();
        assert_eq!(again(&bytes).unwrap().0, bytes, "{:?}", file.tables);
    }
}

#[test]
fn an_id_that_another_tensor_has_is_lost_with_a_warning() {
    let block = || block(b"INT4", &[1, 2], &[0x21]);
    let file = Squizd {
        tables: vec![vec![(7, 0.5, 0.0), (7, 2.0, 0.0)]],
        ..Squizd::one(flag::INT4, vec![block(), block()])
    };
    let (_, warnings) = again(&file.to_bytes()).unwrap();
    let lost = warnings.iter().find(|it| it.code == "lossy").unwrap();
    assert_eq!(lost.object.as_deref(), Some("layers.0.1"));
    assert!(lost.message.contains("squizd.tensor_id"), "{lost}");
}
