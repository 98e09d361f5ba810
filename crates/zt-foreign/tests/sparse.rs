//! Sparse layouts of other programs become the coordinates of `sparse_coo`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use zt::{Blob, ByteOrder, DType, Digest, Error, Memory, Source, Span};
use zt_foreign::sparse::{Compressed, Coords, Diagonals, Indices, SparseFault};

fn source(bytes: Vec<u8>) -> (Arc<dyn Source>, Blob) {
    let all = Span::new(0, bytes.len() as u64).unwrap();
    (Arc::new(Memory::new(bytes)), Blob::raw(all))
}

fn indices(values: &[i32]) -> Indices {
    let bytes = values.iter().flat_map(|it| it.to_le_bytes()).collect();
    let (source, blob) = source(bytes);
    Indices::new(source, blob, DType::I32, ByteOrder::Little).unwrap()
}

fn read(source: &dyn Source) -> Result<Vec<u64>, Error> {
    let mut bytes = vec![0; usize::try_from(source.byte_len()).unwrap()];
    source.read_at(0, &mut bytes)?;
    let (words, _) = bytes.as_chunks();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// The rows of all values, then the columns.
fn coords(coords: Result<Coords, SparseFault>) -> Result<[Vec<u64>; 2], Error> {
    let coords = coords?;
    let mut rows = read(&coords)?;
    let columns = rows.split_off(usize::try_from(coords.count()).unwrap());
    Ok([rows, columns])
}

fn code(found: Result<[Vec<u64>; 2], Error>) -> &'static str {
    found.unwrap_err().code()
}

#[test]
fn compressed_rows_and_columns_have_coordinates() {
    // [[0, 5, 0], [7, 0, 8]]
    let csr = Coords::compressed(
        Compressed::Rows,
        [2, 3],
        [1, 1],
        indices(&[0, 1, 3]),
        indices(&[1, 0, 2]),
    );
    assert_eq!(coords(csr).unwrap(), [[0, 1, 1], [1, 0, 2]]);
    let csc = Coords::compressed(
        Compressed::Columns,
        [2, 3],
        [1, 1],
        indices(&[0, 1, 2, 3]),
        indices(&[1, 0, 1]),
    );
    assert_eq!(coords(csc).unwrap(), [[1, 0, 1], [0, 1, 2]]);
}

/// Blocks of two rows and three columns, at (1, 0) and (0, 1).
#[test]
fn blocks_have_all_of_their_values_row_by_row() {
    let rows = [2, 2, 2, 3, 3, 3, 0, 0, 0, 1, 1, 1];
    let columns = [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5];
    let of = |by, pointers: &[i32], others: &[i32]| {
        let (pointers, others) = (indices(pointers), indices(others));
        coords(Coords::compressed(by, [4, 6], [2, 3], pointers, others)).unwrap()
    };
    // The same blocks, in the order of rows and of columns.
    assert_eq!(of(Compressed::Columns, &[0, 1, 2], &[1, 0]), [rows, columns]);
    let swapped = |all: [u64; 12]| [&all[6..], &all[..6]].concat();
    let found = of(Compressed::Rows, &[0, 1, 2], &[1, 0]);
    assert_eq!(found, [swapped(rows), swapped(columns)]);
}

/// Some rows are empty, and values and pointers are more than are read at once.
#[test]
fn coordinates_are_found_wherever_reading_begins() {
    let (mut pointers, mut rows) = (vec![0], Vec::new());
    for row in 0u64..30_000 {
        let len = if (9_000..20_000).contains(&row) { 0 } else { row % 4 };
        rows.extend((0..len).map(|_| row));
        pointers.push(i32::try_from(rows.len()).unwrap());
    }
    let columns: Vec<i32> = (0..7).cycle().take(rows.len()).collect();
    let (pointers, columns) = (indices(&pointers), indices(&columns));
    let shape = [30_000, 7];
    let coords = Coords::compressed(Compressed::Rows, shape, [1, 1], pointers, columns).unwrap();
    let bytes: Vec<u8> = rows
        .iter()
        .copied()
        .chain((0..coords.count()).map(|at| at % 7))
        .flat_map(u64::to_le_bytes)
        .collect();
    assert_eq!(coords.byte_len(), bytes.len() as u64);
    let half = bytes.len() / 2;
    for (start, end) in [
        (bytes.len() - 3, bytes.len()),
        (half - 9, half + 9),
        (half - 8, half),
        (0, bytes.len()),
        (100_001, 300_007),
        (5, 6),
        (7, 7),
    ] {
        let mut found = vec![0; end - start];
        coords.read_at(start as u64, &mut found).unwrap();
        assert!(found == bytes[start..end], "{start}..{end}");
    }
    assert!(coords.read_at(coords.byte_len(), &mut [0]).is_err());
}

#[test]
fn pointers_that_contradict_the_values_are_refused() {
    let of = |pointers: &[i32]| {
        let pointers = indices(pointers);
        let columns = indices(&[0, 1, 0]);
        coords(Coords::compressed(Compressed::Rows, [3, 2], [1, 1], pointers, columns))
    };
    assert!(of(&[0, 0, 3, 3]).is_ok());
    for pointers in [[1, 1, 2, 3], [0, 2, 1, 3], [0, 1, 2, 2], [0, 1, 2, 4], [0, -1, 2, 3]] {
        assert_eq!(code(of(&pointers)), "index-value", "{pointers:?}");
    }
    assert_eq!(code(of(&[0, 1, 3])), "shape-size-mismatch");
}

#[test]
fn blocks_fill_the_shape() {
    for (shape, block) in [([3, 2], [2, 2]), ([4, 3], [2, 2]), ([4, 2], [0, 2])] {
        let (pointers, columns) = (indices(&[0, 0, 0]), indices(&[]));
        let found = Coords::compressed(Compressed::Rows, shape, block, pointers, columns);
        assert_eq!(code(coords(found)), "shape-size-mismatch");
    }
    let (pointers, columns) = (indices(&[0, 0]), indices(&[]));
    let huge = [u64::MAX, u64::MAX];
    let found = Coords::compressed(Compressed::Rows, huge, huge, pointers, columns);
    assert_eq!(found.err(), Some(SparseFault::Overflow));
}

#[test]
fn a_block_outside_stays_outside() {
    let (pointers, columns) = (indices(&[0, 1]), indices(&[-1]));
    let found = Coords::compressed(Compressed::Rows, [2, 4], [2, 2], pointers, columns);
    let [_, columns] = coords(found).unwrap();
    assert!(columns.iter().all(|column| *column >= 4), "{columns:?}");
}

#[test]
fn indices_have_any_integer_type_and_either_byte_order() {
    let of = |bytes: &[u8], dtype, byte_order| {
        let (source, blob) = source(bytes.to_vec());
        let indices = Indices::new(source, blob, dtype, byte_order)?;
        read(&Coords::listed([indices])?)
    };
    let minus_two = u64::MAX - 1;
    for (bytes, dtype, byte_order, expected) in [
        (&[3, 0, 0xFE, 0xFF][..], DType::I16, ByteOrder::Little, [3, minus_two]),
        (&[0, 3, 0xFF, 0xFE], DType::I16, ByteOrder::Big, [3, minus_two]),
        (&[3, 0xFE], DType::U8, ByteOrder::Little, [3, 254]),
        (&[0, 0, 1, 2, 0, 0, 0, 0xFE], DType::U32, ByteOrder::Big, [258, 254]),
    ] {
        assert_eq!(of(bytes, dtype, byte_order).unwrap(), expected);
    }
    let refused = |dtype| of(&[0; 3], dtype, ByteOrder::Little).unwrap_err().code();
    assert_eq!(refused(DType::F16), "index-dtype");
    assert_eq!(refused(DType::Bool), "index-dtype");
    assert_eq!(refused(DType::I16), "shape-size-mismatch");
}

#[test]
fn lists_of_coordinates_are_equally_long() {
    let found = coords(Coords::listed([indices(&[0, 2]), indices(&[1, 3])]));
    assert_eq!(found.unwrap(), [[0, 2], [1, 3]]);
    let found = coords(Coords::listed([indices(&[0, 2]), indices(&[1])]));
    assert_eq!(code(found), "shape-size-mismatch");
}

/// The matrix of SciPy's documentation: `[[1, 0, 3, 0], [1, 2, 0, 4], [0, 2, 3, 0], [0, 0, 3, 4]]`.
#[test]
fn diagonals_leave_out_values_beyond_the_matrix() {
    let offsets = indices(&[0, -1, 2]);
    let diagonals = Diagonals::new([4, 4], [3, 4], &offsets).unwrap();
    let found = coords(diagonals.coords()).unwrap();
    let rows = vec![0, 1, 2, 3, 1, 2, 3, 0, 1];
    let columns = vec![0, 1, 2, 3, 0, 1, 2, 2, 3];
    assert_eq!(found, [rows, columns]);
    let (base, mut blob) = source(vec![1, 2, 3, 4, 1, 2, 3, 9, 9, 9, 3, 4]);
    let values = |blob: &Blob| diagonals.values(Arc::clone(&base), blob.clone(), 1);
    let mut out = [0; 9];
    values(&blob).unwrap().read_at(0, &mut out).unwrap();
    assert_eq!(out, [1, 2, 3, 4, 1, 2, 3, 3, 4]);
    let mut out = [0; 4];
    values(&blob).unwrap().read_at(2, &mut out).unwrap();
    assert_eq!(out, [3, 4, 1, 2]);
    // Bytes that belong to no value count for the digest of the array.
    blob.digest = Some(Digest::Crc32c(1));
    let error = values(&blob).unwrap().read_at(0, &mut [0; 9]).unwrap_err();
    assert_eq!(Error::from(error).code(), "digest-mismatch");
    blob.span = Span::new(0, 8).unwrap();
    assert!(values(&blob).is_err());
}

#[test]
fn diagonals_of_any_shape_lie_in_it() {
    for (shape, pitch, offsets, expected) in [
        ([2, 5], 5, &[1, -1, 4, 5, -2][..], 4u64),
        ([5, 2], 2, &[0, 1, -3, -4], 6),
        ([3, 3], 2, &[0, 2], 2),
        ([3, 3], 0, &[0], 0),
        ([0, 0], 3, &[0, 1], 0),
    ] {
        let array = [offsets.len() as u64, pitch];
        let diagonals = Diagonals::new(shape, array, &indices(offsets)).unwrap();
        let coords = diagonals.coords().unwrap();
        assert_eq!(coords.count(), expected, "{shape:?} {offsets:?}");
        let all = read(&coords).unwrap();
        let (rows, columns) = all.split_at(all.len() / 2);
        for (row, column) in rows.iter().zip(columns) {
            assert!(*row < shape[0] && *column < shape[1]);
            let offset = i64::try_from(*column).unwrap() - i64::try_from(*row).unwrap();
            assert!(offsets.iter().any(|it| i64::from(*it) == offset));
        }
    }
    let code = |array, offsets: &[i32]| {
        let found = Diagonals::new([2, 2], array, &indices(offsets));
        found.unwrap_err().code()
    };
    assert_eq!(code([2, 2], &[1, 1]), "index-value");
    assert_eq!(code([2, 2], &[1]), "shape-size-mismatch");
}

#[test]
fn a_digest_of_indices_is_checked() {
    let (source, mut blob) = source(vec![0; 8]);
    blob.digest = Some(Digest::Crc32c(1));
    let damaged = Indices::new(source, blob, DType::I32, ByteOrder::Little).unwrap();
    let error = read(&Coords::listed([damaged]).unwrap()).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
}
