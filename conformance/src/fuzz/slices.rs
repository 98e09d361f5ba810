//! Parts of objects, held against parts cut out of the whole by NumPy's rule, written out plainly.

use zt::formats::PlaneCoding;
use zt::{Dense, File, NewObject, OpenOptions, Slice, Tensor, WriteOptions};

use crate::decisions::Decisions;
use crate::draft::{Draft, Item, Part};
use crate::position::ByPosition;
use crate::{frames, generate};

/// Decisions about a small object of any format, how it is stored, and parts of it: each part is
/// what NumPy gives of the whole.
pub fn slices(bytes: &[u8]) {
    let mut from = Decisions::new(bytes);
    let object = generate::object(&mut from);
    let written = stored(&mut from, &object);
    let lent = File::from_bytes(written.clone()).expect("what is generated reads");
    let copied = OpenOptions::new().open_source(ByPosition(written)).expect("as before");
    let whole = lent.tensor("x").expect("it was written").to_dense();
    for _ in 0..3 {
        let slices = from.list(5, slice);
        for file in [&lent, &copied] {
            let tensor = file.tensor("x").expect("it was written");
            check(&tensor, &whole, &slices);
        }
    }
}

/// A file of the object, as `x`: as we write it, or in frames shorter than any writer's, so
/// that a part crosses many.
fn stored(from: &mut Decisions<'_>, object: &NewObject<'_>) -> Vec<u8> {
    let options = match from.below(7) {
        0 => WriteOptions::new(),
        1 => WriteOptions::new().zstd(3),
        2 => WriteOptions::new().planes(),
        3 => WriteOptions::new().planes_in(PlaneCoding::Huffman),
        _ => return framed(from, object),
    };
    let mut bytes = Vec::new();
    let mut writer = options.threads(1).to_writer(&mut bytes).expect("to memory");
    writer.add("x", object).expect("what is generated is sound");
    writer.finish().expect("to memory");
    bytes
}

fn framed(from: &mut Decisions<'_>, object: &NewObject<'_>) -> Vec<u8> {
    let mut item = Item::new(&object.shape, &object.format);
    item.attributes.clone_from(&object.attributes);
    for (role, elements) in &object.components {
        let mut part = Part::new(role, elements.dtype, &elements.bytes);
        if let Some(name) = elements.logical_type() {
            part = part.logical(name);
        }
        if !from.once_in(4) {
            part = part.frames(in_frames(from, &elements.bytes));
        }
        item = item.part(part);
    }
    Draft::v1_2().with("x", item).build()
}

/// Frames of up to 15 bytes of content, and mostly a table of them.
fn in_frames(from: &mut Decisions<'_>, content: &[u8]) -> Vec<u8> {
    let len = 1 + from.below(15);
    let (mut blob, mut table) = (Vec::new(), Vec::new());
    for piece in content.chunks(len) {
        let frame = match from.once_in(5) {
            true => frames::unsized_frame(piece),
            false => frames::frame(piece),
        };
        table.push((frame.len() as u32, piece.len() as u32));
        blob.extend(frame);
    }
    if !from.once_in(4) {
        blob.extend(frames::seek_table(&table));
    }
    blob
}

fn slice(from: &mut Decisions<'_>) -> Slice {
    match from.below(8) {
        0 => Slice::Ellipsis,
        1 | 2 => Slice::Index(bound(from)),
        _ => Slice::Range {
            start: from.maybe(2, bound),
            stop: from.maybe(2, bound),
            step: match from.below(5) {
                0..=2 => 1,
                3 => i64::from(from.byte() as i8),
                _ => bound(from),
            },
        },
    }
}

/// Mostly a place of a small dimension or one next to it, from either end.
fn bound(from: &mut Decisions<'_>) -> i64 {
    match from.maybe(8, Decisions::number) {
        Some(number) => number.cast_signed(),
        None => from.below(15) as i64 - 7,
    }
}

fn check(tensor: &Tensor<'_>, whole: &zt::Result<Dense<'_>>, slices: &[Slice]) {
    let part = tensor.slice(slices);
    let Ok(whole) = whole else {
        assert!(part.is_err(), "a part of a value that there is not");
        return;
    };
    let elements = whole.elements();
    // Of such a type only the values tell how long a zero is, and a part may have none.
    let is_known = elements.logical_type() != Some("example.fixed_point");
    if let Some(expected) = numpy(whole.shape(), &elements.bytes, slices, false) {
        match part {
            Ok(part) => assert_is(&part, &expected, slices),
            Err(error) => assert!(!is_known, "{slices:?}: {error}"),
        }
        if tensor.format() == "sparse_coo" && is_known {
            let coo = tensor.slice_coo(slices).and_then(|coo| Ok(coo.to_dense()?));
            assert_is(&coo.expect("a part of what reads"), &expected, slices);
        }
    } else {
        assert!(part.is_err(), "{slices:?} of {:?}: {part:?}", whole.shape());
        assert!(tensor.slice_coo(slices).is_err());
    }
    if tensor.format() == "sparse_csr" && is_known {
        let expected = numpy(whole.shape(), &elements.bytes, slices, true);
        let csr = tensor.slice_csr(slices).and_then(|csr| Ok(csr.to_dense()?));
        match (csr, expected) {
            (Ok(part), Some(expected)) => assert_is(&part, &expected, slices),
            (csr, expected) => assert_eq!(csr.is_err(), expected.is_none(), "{slices:?}: {csr:?}"),
        }
    }
}

fn assert_is(part: &Dense<'_>, (shape, bytes): &(Vec<u64>, Vec<u8>), slices: &[Slice]) {
    assert_eq!(part.shape(), shape, "{slices:?}");
    assert!(*part.elements().bytes == bytes[..], "{slices:?}: {part:?}");
}

/// The shape and the bytes of a part; `None` where NumPy raises. `keeps` leaves a dimension of 1 for
/// an index, as matrices of SciPy do.
fn numpy(
    shape: &[u64],
    bytes: &[u8],
    slices: &[Slice],
    keeps: bool,
) -> Option<(Vec<u64>, Vec<u8>)> {
    let ellipses = slices.iter().filter(|slice| **slice == Slice::Ellipsis);
    let ellipses = ellipses.count();
    let missing = shape.len().checked_sub(slices.len() - ellipses)?;
    if ellipses > 1 {
        return None;
    }
    let mut full: Vec<Slice> = slices.to_vec();
    let at = full.iter().position(|slice| *slice == Slice::Ellipsis);
    let at = at.unwrap_or(full.len());
    full.splice(at..(at + ellipses), vec![Slice::ALL; missing]);

    let mut kept = Vec::new();
    let mut places = Vec::new();
    for (slice, &extent) in full.iter().zip(shape) {
        let selected = places_of(slice, i128::from(extent))?;
        if keeps || !matches!(slice, Slice::Index(_)) {
            kept.push(selected.len() as u64);
        }
        places.push(selected);
    }
    let count: u64 = shape.iter().product();
    let value_len = bytes.len().checked_div(count as usize).unwrap_or(0);
    let mut positions = vec![0];
    for (selected, &extent) in places.iter().zip(shape) {
        let inner = |outer: &usize| {
            let start = outer * extent as usize;
            selected.iter().map(move |place| start + place).collect()
        };
        positions = positions.iter().flat_map(|outer| -> Vec<usize> { inner(outer) }).collect();
    }
    let value = |at: &usize| bytes[at * value_len..][..value_len].to_vec();
    Some((kept, positions.iter().flat_map(value).collect()))
}

/// Which places of a dimension are meant, one by one.
fn places_of(slice: &Slice, extent: i128) -> Option<Vec<usize>> {
    let from_start = |bound: i64| match i128::from(bound) {
        bound if bound < 0 => bound + extent,
        bound => bound,
    };
    let (start, stop, step) = match *slice {
        Slice::Index(place) => {
            let place = from_start(place);
            return (0..extent).contains(&place).then(|| vec![place as usize]);
        }
        Slice::Range { step: 0, .. } => return None,
        Slice::Range { start, stop, step } => (start, stop, i128::from(step)),
        Slice::Ellipsis => unreachable!("it was replaced"),
    };
    let (lowest, highest) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let (first, last) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let mut place = start.map_or(first, |start| from_start(start).clamp(lowest, highest));
    let stop = stop.map_or(last, |stop| from_start(stop).clamp(lowest, highest));
    let mut places = Vec::new();
    while (step > 0 && place < stop) || (step < 0 && place > stop) {
        places.push(place as usize);
        place += step;
    }
    Some(places)
}
