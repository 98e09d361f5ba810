//! Which SQUIZD files are taken, and what they hold.

use zt_conformance::squizd::{Layer, Squizd, block, crc32, flag, fnv1a, plain};

use super::Verdict::{Both, PlainOnly, Refused};
use super::{SUB_BLOCK, expect, open, patched, smallest, values};

/// A matrix of eight values from -8 on, and its bytes.
fn int4() -> Vec<u8> {
    block(b"INT4", &[2, 4], &[0x98, 0xBA, 0xDC, 0xFE])
}

#[test]
fn headers() {
    expect(Both, &smallest().to_bytes(), "the smallest file");
    for bit in 7..32 {
        let flags = (1u32 << bit).to_le_bytes();
        expect(Refused, &patched(smallest().to_bytes(), 6, &flags), "an unknown flag");
    }
    for arch in [1u16, 6, 7, u16::MAX] {
        let file = patched(smallest().to_bytes(), 12, &arch.to_le_bytes());
        expect(Both, &file, "any architecture");
    }
    for at in [52, 127, 192, 255] {
        let file = patched(smallest().to_bytes(), at, &[1]);
        expect(PlainOnly, &file, "a reserved byte");
    }
    // Nobody says which blocks have to be there.
    for flags in [flag::INT4, flag::INT2, flag::ASTC, flag::TCA_TBE] {
        let file = patched(smallest().to_bytes(), 6, &flags.to_le_bytes());
        expect(Both, &file, "a flag of no block");
    }
    let sparse = |metadata: [u32; 8]| {
        let metadata = metadata.map(u32::to_le_bytes).concat();
        let mut file = smallest();
        file.flags = flag::SPARSE;
        let mut bytes = patched(file.to_bytes(), 128, &metadata);
        bytes[14..18].copy_from_slice(&crc32(&metadata).to_le_bytes());
        bytes
    };
    let half = 0.5f32.to_bits();
    for (verdict, metadata) in [
        (Both, [1, 16, 0, half, 0, 0, 0, 0]),
        // More masks are declared than found, which is said and no more.
        (Both, [1, 16, 1, half, 0, 0, 0, 0]),
        (Refused, [0, 16, 0, half, 0, 0, 0, 0]),
        (Refused, [2, 16, 0, half, 0, 0, 0, 0]),
        (Refused, [1, 16, 2, half, 0, 0, 0, 0]),
        (PlainOnly, [1, 0, 0, half, 0, 0, 0, 0]),
        (PlainOnly, [1, 16, 0, (-0.1f32).to_bits(), 0, 0, 0, 0]),
        (PlainOnly, [1, 16, 0, f32::NAN.to_bits(), 0, 0, 0, 0]),
        (PlainOnly, [1, 16, 0, half, 0, 0, 0, 1]),
    ] {
        expect(verdict, &sparse(metadata), &format!("{metadata:?}"));
    }
    let mut populated = sparse([1, 16, 0, half, 0, 0, 0, 0]);
    populated[14..18].fill(0);
    expect(Refused, &populated, "metadata without their sum");
}

#[test]
fn indices() {
    let layer = |idx| Layer { idx, blocks: vec![plain(&[1], &[1.0])], ..Layer::default() };
    let file = |layers: &[u32]| Squizd {
        layers: layers.iter().map(|idx| layer(*idx)).collect(),
        ..Squizd::default()
    };
    for (verdict, layers) in [
        (Both, &[0, 1, 2][..]),
        (PlainOnly, &[1, 2]),
        (PlainOnly, &[0, u32::MAX]),
        (Refused, &[1, 0]),
        (Refused, &[0, 0]),
    ] {
        expect(verdict, &file(layers).to_bytes(), &format!("{layers:?}"));
    }
    // The weights of the first layer after those of the second.
    let mut bytes = file(&[0, 1]).to_bytes();
    let (first, second) = (bytes[260..276].to_vec(), bytes[292..308].to_vec());
    bytes[260..276].copy_from_slice(&second);
    bytes[292..308].copy_from_slice(&first);
    expect(Both, &bytes, "layers in any order");
    for (offset, about) in [(0u64, "the header"), (256, "the index"), (287, "both")] {
        let file = patched(smallest().to_bytes(), 260, &offset.to_le_bytes());
        expect(Refused, &file, about);
    }
    let empty = patched(smallest().to_bytes(), 268, &0u64.to_le_bytes());
    expect(Refused, &empty, "a layer of nothing");
    let end = smallest().to_bytes().len() as u64;
    for (verdict, offset) in [(PlainOnly, end), (Refused, end + 1), (PlainOnly, 288)] {
        let file = patched(smallest().to_bytes(), 276, &offset.to_le_bytes());
        expect(verdict, &file, "scales that are nowhere");
    }
}

#[test]
fn blocks() {
    let wide = [1u32; 64];
    let none = [0u32, 5];
    let three = [plain(&[], &[2.0]), plain(&wide, &[3.0]), plain(&none, &[])];
    let many = vec![three.concat(); 50];
    let file = Squizd::one(0, many);
    expect(Both, &file.to_bytes(), "150 tensors of every rank");
    let opened = open(&file.to_bytes(), false).unwrap();
    assert_eq!(opened.len(), 150);
    assert_eq!(values(&opened, "layers.0.148"), [3.0]);

    let astc = |width, height, footprint, blocks: usize| {
        let values = vec![7; 16 * blocks];
        Squizd::one(flag::ASTC, vec![block(b"ASTW", &[width, height, footprint], &values)])
    };
    // Five by five, and eight across by five down: which is which shows in the number of blocks.
    for (verdict, width, height, footprint, blocks) in [
        (Both, 16, 5, 8, 2),
        (Refused, 5, 16, 8, 2),
        (Both, 16, 5, 5, 4),
        (Both, 17, 6, 8, 6),
        (Both, 0, 6, 8, 0),
        (Refused, 16, 5, 8, 3),
        (Refused, 16, 5, 6, 2),
        (Refused, u32::MAX, u32::MAX, 5, 2),
    ] {
        let file = astc(width, height, footprint, blocks);
        let about = format!("{width} x {height}, {footprint:#x}");
        expect(verdict, &file.to_bytes(), &about);
    }
    let tca = |rows, bits, len: usize| block(b"TCAW", &[rows, bits], &vec![1; len]);
    for (verdict, rows, bits, len) in [
        (Both, 2, 64, 16),
        (Both, 2, 65, 33),
        (Refused, 2, 65, 31),
        (Both, 0, 65, 3),
        (Refused, u32::MAX, u32::MAX, 64),
    ] {
        let file = Squizd::one(flag::TCA_TBE, vec![tca(rows, bits, len)]);
        expect(verdict, &file.to_bytes(), &format!("{rows} x {bits}"));
    }
    // It ends where its layer does, so that what follows is its own.
    let greedy = Squizd::one(flag::TCA_TBE, vec![tca(1, 8, 8), plain(&[1], &[1.0])]);
    expect(Both, &greedy.to_bytes(), "what follows TCAW");
    assert_eq!(open(&greedy.to_bytes(), false).unwrap().len(), 1);

    for block in [
        block(b"NPCL", &[0, 65], &[0; 260]),
        block(b"NPCL", &[0, 3, u32::MAX, u32::MAX, u32::MAX], &[]),
        block(b"NPCL", &[3, 1, 1], &[0; 4]),
        block(b"INT4", &[u32::MAX, u32::MAX], &[]),
        block(b"INT2", &[1, 4, 0], &[0]),
        b"NPC".to_vec(),
        b"XXXX0000".to_vec(),
    ] {
        let flags = flag::INT4 | flag::INT2;
        let file = Squizd::one(flags, vec![plain(&[1], &[1.0]), block]);
        expect(Refused, &file.to_bytes(), "a block that cannot be");
        // Its neighbour reads.
        let opened = open(&file.to_bytes(), false).unwrap();
        assert_eq!(values(&opened, "layers.0.0"), [1.0]);
        assert!(opened.tensor("layers.0.1").is_err());
    }
}

#[test]
fn scales() {
    let file = |tables: &[&[(u64, f32, f32)]]| Squizd {
        tables: tables.iter().map(|table| table.to_vec()).collect(),
        ..Squizd::one(flag::INT4, vec![int4()])
    };
    let whole = (7, 0.5, 1.0);
    let part = |scale| (7 | SUB_BLOCK, scale, 0.0);
    let read = |file: &Squizd| values(&open(&file.to_bytes(), false).unwrap(), "layers.0.0");
    let sum: Vec<f32> = (-8i8..0).map(|q| f32::from(q) * 0.5 + 1.0).collect();
    assert_eq!(read(&file(&[&[whole]])), sum);
    // The sub-blocks' pairs replace the tensor's, in one table or in two.
    let halves = [-8.0, -7.0, -6.0, -5.0, -40.0, -30.0, -20.0, -10.0];
    let parts = [part(1.0), part(10.0)];
    assert_eq!(read(&file(&[&[whole], &parts])), halves);
    assert_eq!(read(&file(&[&[whole, parts[0], parts[1]]])), halves);
    assert_eq!(read(&file(&[&parts, &[whole]])), halves);
    assert_eq!(read(&file(&[&parts[..1], &[whole], &parts[1..]])), halves);

    for (verdict, file) in [
        (Both, file(&[&[whole], &parts])),
        (Both, file(&[&[whole], &[part(1.0)]])),
        // Three do not divide eight.
        (Refused, file(&[&[whole], &[part(1.0), part(1.0), part(1.0)]])),
        (Refused, file(&[])),
        (Refused, file(&[&[]])),
        (Refused, file(&[&[whole, whole]])),
        (Refused, file(&[&[whole], &[(8 | SUB_BLOCK, 1.0, 0.0)]])),
        (PlainOnly, file(&[&[(7, f32::INFINITY, 0.0)]])),
        (PlainOnly, file(&[&[(7, 1.0, f32::NAN)]])),
    ] {
        expect(verdict, &file.to_bytes(), &format!("{:?}", file.tables));
    }
    let stray = Squizd { tables: vec![vec![whole]], ..smallest() };
    expect(Refused, &stray.to_bytes(), "an entry of no tensor");

    let int2 = |len: u32, parts: usize| Squizd {
        tables: vec![vec![whole], vec![part(2.0); parts]],
        ..Squizd::one(flag::INT2, vec![block(b"INT2", &[1, 5, len], &[0b11_10_01_00, 3])])
    };
    for (verdict, len, parts) in [
        (Both, 2, 3),
        (Refused, 2, 2),
        (Both, 5, 1),
        (Both, 9, 1),
        (Both, u32::MAX, 1),
        (Both, 1, 5),
        (Both, 1, 0),
    ] {
        let file = int2(len, parts);
        expect(verdict, &file.to_bytes(), &format!("{parts} of {len}"));
    }
    assert_eq!(read(&int2(2, 3)), [0.0, 2.0, 4.0, 6.0, 6.0]);
    assert_eq!(read(&int2(2, 0)), [1.0, 1.5, 2.0, 2.5, 2.5]);
}

#[test]
fn masks() {
    let file = |mask: Option<&[u8]>, scale_offset: Option<u64>| {
        let mut file = Squizd {
            sparsity: Some((1, 16, 1, 0.5)),
            tables: vec![vec![(7, 1.0, 0.0)]],
            ..Squizd::one(flag::INT4, vec![int4()])
        };
        file.layers[0].mask = mask.map(<[u8]>::to_vec);
        file.layers[0].scale_offset = scale_offset;
        file
    };
    let mask = |file: &Squizd| {
        let file = open(&file.to_bytes(), false).unwrap();
        let tensor = file.tensor("layers.0.mask").unwrap();
        tensor.bytes("data").unwrap().to_vec()
    };
    // Pointed at, a mask may look like anything.
    for bytes in [&b"\x01"[..], b"NPCL", b"SCZT\x01\0\0\0"] {
        expect(Both, &file(Some(bytes), None).to_bytes(), "a mask");
        assert_eq!(mask(&file(Some(bytes), None)), bytes);
    }
    let guessed = file(Some(&[1, 2, 3]), Some(0));
    assert_eq!(mask(&guessed), [1, 2, 3]);
    expect(Both, &guessed.to_bytes(), "a mask that nothing points at");
    let mut unflagged = guessed;
    unflagged.sparsity = None;
    expect(Refused, &unflagged.to_bytes(), "a mask without the flag");
}

#[test]
fn draft_heads() {
    let file = |scales: u64, blocks: &[Vec<u8>]| Squizd {
        tables: vec![(0..scales).map(|id| (id, 1.0 + id as f32, 0.0)).collect()],
        draft: Some((1, blocks.to_vec())),
        ..Squizd::one(flag::INT4 | flag::INT2, vec![int4()])
    };
    let blocks = [plain(&[1], &[5.0]), int4()];
    for (verdict, scales) in [(Refused, 0), (Both, 1), (Both, 2), (Refused, 3)] {
        let file = file(scales, &blocks);
        expect(verdict, &file.to_bytes(), &format!("{scales} entries"));
    }
    let opened = open(&file(2, &blocks).to_bytes(), false).unwrap();
    assert_eq!(values(&opened, "draft.0"), [5.0]);
    assert_eq!(values(&opened, "draft.1")[0], -16.0);
    let opened = open(&file(1, &blocks).to_bytes(), false).unwrap();
    assert_eq!(opened.tensor("draft.1").unwrap().format(), "squizd.int4/1");
    assert_eq!(values(&opened, "layers.0.0")[0], -8.0);

    expect(Both, &file(1, &[]).to_bytes(), "a draft head of nothing");
    let int2 = block(b"INT2", &[1, 4, 4], &[0]);
    expect(Refused, &file(1, &[int2]).to_bytes(), "INT2 in a draft head");
    let rest = file(1, &[vec![0]]);
    expect(Refused, &rest.to_bytes(), "bytes that are no block");
    let moved = |offset: u64| {
        let mut bytes = file(1, &blocks).to_bytes();
        bytes[160..168].copy_from_slice(&offset.to_le_bytes());
        let hash = fnv1a(&bytes[160..192]);
        bytes[18..26].copy_from_slice(&hash.to_le_bytes());
        bytes
    };
    for offset in [0, 256, 288, 300, u64::MAX] {
        expect(Refused, &moved(offset), "a draft head over something");
    }
}

#[test]
fn appendices() {
    let file = |archive: &[u8]| Squizd {
        appendix: Some(archive.to_vec()),
        tables: vec![vec![(7, 1.0, 0.0)]],
        draft: Some((1, vec![plain(&[1], &[5.0])])),
        ..Squizd::one(flag::INT4, vec![int4()])
    };
    expect(Both, &file(b"PK").to_bytes(), "all sections");
    expect(Both, &file(b"").to_bytes(), "an empty archive");
    let mut trailing = file(b"PK");
    trailing.trailing = vec![0];
    expect(PlainOnly, &trailing.to_bytes(), "bytes after the appendix");
    let mut absent = smallest();
    absent.flags = flag::ANE_COREML;
    expect(Refused, &absent.to_bytes(), "no appendix");
    absent.trailing = b"ANLX".to_vec();
    expect(Refused, &absent.to_bytes(), "an appendix without a length");
    let mut unflagged = smallest();
    unflagged.trailing = b"ANLX\x01\0\0\0\0\0\0\0Z".to_vec();
    expect(PlainOnly, &unflagged.to_bytes(), "an appendix without its flag");
    unflagged.trailing = b"rest".to_vec();
    expect(PlainOnly, &unflagged.to_bytes(), "bytes without an owner");
}
