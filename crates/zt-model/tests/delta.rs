//! Deltas: the result is the new file by content identity, and whatever does not fit is refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use zt::formats::{Delta, DeltaCodec, Packing, Quantization};
use zt::{
    Attributes, Bytes, Coo, DType, Dense, Elements, File, FloatType, HashOptions, QuantizedGroup,
    Slice, Storage, ToObject, Value, WriteOptions, Writer,
};
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds, ZT};
use zt_model::{Changes, Check, Patch, delta, delta_to_path, patch_in_place};

/// Pseudo-random bytes.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 33
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

fn patch(base: &Input, deltas: &[Input], check: Check) -> zt::Result<Input> {
    Patch::new(base, deltas).check(check).open()
}

fn dense(dtype: DType, bytes: &[u8]) -> Dense<'_> {
    let shape = [(bytes.len() / dtype.byte_len()) as u64];
    Dense::from_elements(shape, Elements::new(dtype, bytes)).unwrap()
}

fn file(options: WriteOptions, write: impl FnOnce(&mut Writer<'_>)) -> Input {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    write(&mut writer);
    writer.finish().unwrap();
    Input::from(File::from_bytes(bytes).unwrap())
}

fn plain(write: impl FnOnce(&mut Writer<'_>)) -> Input {
    file(WriteOptions::new(), write)
}

fn content(input: &Input) -> String {
    input.file().hash(&HashOptions::new()).unwrap().to_string()
}

fn made(base: &Input, new: &Input) -> (Input, Changes, usize) {
    let mut bytes = Vec::new();
    let changes = delta(base, new, &mut bytes, None).unwrap();
    let len = bytes.len();
    let file = File::from_bytes(bytes).unwrap();
    assert!(file.verify(&zt::VerifyOptions::new()).unwrap().is_ok());
    (Input::from(file), changes, len)
}

/// Makes a delta, applies it, and writes the result.
#[track_caller]
fn round_trip(base: &Input, new: &Input) -> (Changes, usize) {
    let (change, changes, len) = made(base, new);
    let deltas = [change];
    let result = patch(base, &deltas, Check::Whole).unwrap();
    assert_eq!(content(&result), content(new));
    for result in [result, patch(base, &deltas, Check::Copy).unwrap()] {
        let written = written(&result).unwrap();
        assert_eq!(content(&written), content(new));
        assert_eq!(written.file().attributes().unwrap(), new.file().attributes().unwrap());
    }
    (changes, len)
}

fn written(result: &Input) -> zt::Result<Input> {
    let mut bytes = Vec::new();
    Kinds::builtin().convert(std::slice::from_ref(result), &mut bytes, &ConvertOptions::new(ZT))?;
    File::from_bytes(bytes).map(Input::from)
}

/// Every dtype, with more than one stretch, and one changed element of 50.
#[test]
fn values_of_every_type_come_back() {
    for dtype in DType::ALL {
        let count = DeltaCodec::STRETCH + 1000;
        let mut noise = Noise(dtype as u64 + 1);
        let mut old = noise.bytes(count * dtype.byte_len());
        if dtype == DType::Bool {
            old.iter_mut().for_each(|byte| *byte &= 1);
        }
        let mut new = old.clone();
        for element in new.chunks_mut(dtype.byte_len()) {
            if noise.next().is_multiple_of(50) {
                element[0] ^= 1;
            }
        }
        let base = plain(|writer| writer.add("w", &dense(dtype, &old)).unwrap());
        let next = plain(|writer| writer.add("w", &dense(dtype, &new)).unwrap());
        let (changes, len) = round_trip(&base, &next);
        assert_eq!(changes.changed, 1, "{dtype}");
        assert!(len < count / 50 * 3, "{dtype}: {len}");
    }
}

/// Objects of other formats: those that differ in values, in attributes, in their name and in their size.
#[test]
fn every_object_comes_back() {
    let sparse = |value: f32, count: u64| {
        let places: Vec<u64> = (0..count).collect();
        Coo::new([100], vec![value; count as usize], places).unwrap()
    };
    let quantized = |first: u8| {
        let packing = Packing { per_word: 8, dtype: DType::U32 };
        QuantizedGroup::quantize([64], &[f32::from(first); 64], Quantization::new(4, 32, packing))
            .unwrap()
    };
    let attributes = |text: &str| {
        let mut attributes = Attributes::new();
        attributes.insert("note", text);
        attributes
    };
    let noise = Noise(1).bytes(4000);
    let base = plain(|writer| {
        writer.set_attributes(attributes("base")).unwrap();
        writer.add("coo", &sparse(1.0, 9)).unwrap();
        writer.add("coo.longer", &sparse(1.0, 9)).unwrap();
        writer.add("moved", &dense(DType::U8, &noise)).unwrap();
        writer.add("other type", &dense(DType::F32, &noise)).unwrap();
        writer.add("quantized", &quantized(1)).unwrap();
        writer.add("removed", &dense(DType::I8, &noise)).unwrap();
        writer.add("same", &dense(DType::I8, &noise)).unwrap();
        writer.add("scalar", &Dense::from_slice(&[], &[1i64]).unwrap()).unwrap();
        let noted = dense(DType::U8, &noise);
        let mut note = noted.to_object().unwrap();
        note.attributes = Some(attributes("old"));
        writer.add("note", &note).unwrap();
    });
    let new = plain(|writer| {
        writer.set_attributes(attributes("new")).unwrap();
        writer.add("coo", &sparse(2.0, 9)).unwrap();
        writer.add("coo.longer", &sparse(1.0, 10)).unwrap();
        writer.add("here", &dense(DType::U8, &noise)).unwrap();
        writer.add("other type", &dense(DType::I32, &noise)).unwrap();
        writer.add("quantized", &quantized(2)).unwrap();
        writer.add("same", &dense(DType::I8, &noise)).unwrap();
        writer.add("scalar", &Dense::from_slice(&[], &[2i64]).unwrap()).unwrap();
        writer.add("empty", &dense(DType::F32, &[])).unwrap();
        let noted = dense(DType::U8, &noise);
        let mut note = noted.to_object().unwrap();
        note.attributes = Some(attributes("new"));
        writer.add("note", &note).unwrap();
    });
    let (changes, _) = round_trip(&base, &new);
    assert_eq!((changes.same, changes.removed), (1, 1));
    // Longer, of another type, new.
    assert_eq!(changes.whole, 3);
    round_trip(&new, &base);
}

#[test]
fn planes_are_changed_by_their_values() {
    let old: Vec<f32> = (0..300_000).map(|at| at as f32 / 7.0).collect();
    let mut new = old.clone();
    new[7] = 1.5;
    new[299_999] = -2.0;
    let split = |values: &[f32]| {
        let options = WriteOptions::new().planes();
        file(options, |writer| {
            writer.add("w", &Dense::from_slice(&[300, 1000], values).unwrap()).unwrap();
        })
    };
    let whole = |values: &[f32]| {
        plain(|writer| {
            writer.add("w", &Dense::from_slice(&[300, 1000], values).unwrap()).unwrap();
        })
    };
    for (base, next) in
        [(split(&old), whole(&new)), (whole(&old), split(&new)), (split(&old), split(&new))]
    {
        let (changes, len) = round_trip(&base, &next);
        assert_eq!(changes.changed, 1);
        assert!(len < 1000, "{len}");
    }
}

#[test]
fn a_delta_of_equal_files_is_short() {
    let base = plain(|writer| {
        for at in 0..20u8 {
            writer.add(&format!("layer.{at}"), &dense(DType::U8, &[at; 100])).unwrap();
        }
    });
    let (changes, len) = round_trip(&base, &base);
    assert_eq!((changes.same, changes.changed, changes.whole), (20, 0, 0));
    assert!(len < 600, "{len}");
}

/// Values that compress better whole than as changes are written whole.
#[test]
fn zeros_are_written_whole() {
    let noise = Noise(5).bytes(1 << 20);
    let base = plain(|writer| writer.add("w", &dense(DType::F32, &noise)).unwrap());
    let zeros = vec![0; 1 << 20];
    let new = plain(|writer| writer.add("w", &dense(DType::F32, &zeros)).unwrap());
    let (changes, len) = round_trip(&base, &new);
    assert_eq!(changes.whole, 1);
    assert!(len < 8000, "{len}");
}

/// An object that only the new file has is compressed as planes.
#[test]
fn new_objects_are_planes() {
    let values: Vec<f32> = (0..100_000u32).map(|at| (at as f32).sin()).collect();
    let new = Dense::from_slice(&[100_000], &values).unwrap();
    let base = plain(|_| {});
    let next = plain(|writer| writer.add("w", &new).unwrap());
    let (change, changes, len) = made(&base, &next);
    assert_eq!(changes.whole, 1);
    assert_eq!(change.file().tensor("w").unwrap().format(), "zt.planes/1");
    assert!(len < 370_000, "{len}");
    round_trip(&base, &next);
}

fn steps(count: usize) -> Vec<Input> {
    let mut noise = Noise(3);
    let mut values = noise.bytes(600_000);
    let mut files = Vec::new();
    for _ in 0..count {
        files.push(plain(|writer| writer.add("w", &dense(DType::BF16, &values)).unwrap()));
        for _ in 0..500 {
            let at = noise.next() as usize % values.len();
            values[at] = values[at].wrapping_add(1);
        }
    }
    files
}

#[test]
fn deltas_follow_each_other() {
    let files = steps(4);
    let deltas: Vec<Input> = files.windows(2).map(|pair| made(&pair[0], &pair[1]).0).collect();
    let result = patch(&files[0], &deltas, Check::Whole).unwrap();
    assert_eq!(content(&result), content(&files[3]));
    // One delta for all.
    let (joined, ..) = made(&files[0], &result);
    assert_eq!(content(&patch(&files[0], &[joined], Check::Whole).unwrap()), content(&files[3]));
    // In the wrong order.
    let wrong = [deltas[1].clone(), deltas[0].clone()];
    assert_eq!(patch(&files[0], &wrong, Check::Read).unwrap_err().code(), "wrong-base");
}

#[test]
fn a_slice_is_read_from_base_and_delta() {
    let files = steps(2);
    let (change, ..) = made(&files[0], &files[1]);
    let result = patch(&files[0], &[change], Check::Read).unwrap();
    let (tensor, expected) =
        (result.file().tensor("w").unwrap(), files[1].file().tensor("w").unwrap());
    for range in [0..10, 131_000..132_000, 131_071..131_073, 299_990..300_000] {
        let slice = [Slice::from(range)];
        assert_eq!(
            tensor.slice(&slice).unwrap().elements().bytes,
            expected.slice(&slice).unwrap().elements().bytes
        );
    }
}

#[test]
fn a_wrong_base_is_named() {
    let files = steps(3);
    let (change, ..) = made(&files[0], &files[1]);
    let error = patch(&files[2], &[change], Check::Whole).unwrap_err();
    assert_eq!(error.code(), "wrong-base");
    let text = error.to_string();
    for file in [&files[0], &files[2]] {
        assert!(text.contains(&content(file)), "{text}");
    }
    assert!(text.ends_with("the first object that differs is \"w\""), "{text}");
    let error = patch(&files[0], &files[1..2], Check::Whole).unwrap_err();
    assert_eq!(error.code(), "misuse");
    // A base without the object that the delta removes.
    let empty = plain(|_| ());
    let (change, ..) = made(&files[0], &empty);
    let other = plain(|writer| writer.add("x", &dense(DType::U8, &[1])).unwrap());
    let error = patch(&other, std::slice::from_ref(&change), Check::Whole).unwrap_err();
    assert_eq!(error.code(), "wrong-base");
    assert!(error.to_string().contains(&content(&files[0])), "{error}");
    // The result is no wrong base.
    let result = patch(&empty, &[change], Check::Whole).unwrap();
    assert_eq!(result.file().warnings()[0].code, "is-result");
}

/// A base of two objects that a delta changes, by steps or whole, and of one that it keeps.
fn three(a: &[u8], b: &[u8], kept: &[u8]) -> Input {
    plain(|writer| {
        for (name, bytes) in [("a", a), ("b", b), ("kept", kept)] {
            writer.add(name, &dense(DType::U8, bytes)).unwrap();
        }
    })
}

/// Whatever value of the base is wrong, nothing is written.
#[test]
fn a_wrong_base_is_found_while_the_result_is_read() {
    let a = Noise(1).bytes(2 * DeltaCodec::STRETCH);
    let set = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] = bytes[at].wrapping_add(1);
        bytes
    };
    let (b, kept) = (set(&a, 9), [7; 64]);
    let base = three(&a, &b, &kept);
    let wrong = [
        three(&set(&a, 5), &b, &kept),
        three(&a, &set(&b, 5), &kept),
        // Then both results are equal, and one of them is written.
        three(&a, &a, &kept),
        three(&a, &b, &set(&kept, 5)),
    ];
    let steps = three(&set(&a, 0), &set(&b, 0), &kept);
    // The first stretch of `a` has new values that do not depend on the old ones.
    let mut values = Noise(2).bytes(DeltaCodec::STRETCH);
    values.extend_from_slice(&a[DeltaCodec::STRETCH..]);
    let replaced = three(&values, &set(&b, 0), &kept);
    let removed = plain(|writer| writer.add("kept", &dense(DType::U8, &kept)).unwrap());
    for new in [&steps, &replaced, &removed] {
        let (change, ..) = made(&base, new);
        let deltas = [change];
        let result = patch(&base, &deltas, Check::Copy).unwrap();
        assert_eq!(content(&written(&result).unwrap()), content(new));
        // Only where every value of the base counts, nothing is hashed before.
        let is_left = patch(&wrong[0], &deltas, Check::Copy).is_ok();
        assert_eq!(is_left, content(new) == content(&steps));
        for wrong in &wrong {
            match patch(wrong, &deltas, Check::Copy) {
                Ok(result) => {
                    let error = written(&result).unwrap_err();
                    assert_eq!(error.code(), "digest-mismatch");
                    let error = patch(wrong, &deltas, Check::Whole).unwrap_err();
                    assert_eq!(error.code(), "wrong-base");
                }
                Err(error) => assert_eq!(error.code(), "wrong-base"),
            }
        }
    }
}

/// The values have several pieces of 1 MiB, and a SHA-256 in the delta. It does not stand for the fault of
/// the delta.
#[test]
fn a_damaged_delta_is_named() {
    let old = Noise(5).bytes(3 << 20);
    let mut new = old.clone();
    new.iter_mut().step_by(1000).for_each(|byte| *byte ^= 1);
    let [base, next] = [&old, &new]
        .map(|bytes| plain(|writer| writer.add("w", &dense(DType::U8, bytes)).unwrap()));
    let mut bytes = Vec::new();
    delta(&base, &next, &mut bytes, None).unwrap();
    bytes[100] ^= 1;
    let change = Input::from(File::from_bytes(bytes).unwrap());
    let error = patch(&base, &[change], Check::Whole).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
    assert!(error.to_string().contains("expected crc32c"), "{error}");
}

#[test]
fn a_delta_of_deltas_is_refused() {
    let files = steps(2);
    let (change, ..) = made(&files[0], &files[1]);
    let error = delta(&files[0], &change, Vec::new(), None).unwrap_err();
    assert_eq!(error.code(), "unsupported");
    // One of its objects in a file that is no delta.
    let new = plain(|writer| writer.begin("w", &[4], Delta::FORMAT).unwrap().finish().unwrap());
    let error = delta(&files[0], &new, Vec::new(), None).unwrap_err();
    assert_eq!(error.code(), "unsupported");
}

/// A delta that a stranger wrote: `object` is the only one, and it changes `w`.
fn forged(component: Option<&[u8]>, attributes: Attributes, removed: &[&str]) -> Input {
    let mut header = Attributes::new();
    header.insert("base", Value::Bytes(vec![0; 32]));
    header.insert("result", Value::Bytes(vec![0; 32]));
    header.insert("objects", Value::Bytes(vec![0; 8]));
    header.insert("removed", Value::array(removed.iter().copied().map(Value::from).collect()));
    forged_with(header, component, attributes)
}

fn forged_with(header: Attributes, component: Option<&[u8]>, attributes: Attributes) -> Input {
    plain(|writer| {
        let mut file = Attributes::new();
        file.insert("zt.delta", Value::Map(header));
        writer.set_attributes(file).unwrap();
        let mut object = writer.begin("x", &[4], Delta::FORMAT).unwrap();
        object.set_attributes(attributes).unwrap();
        if let Some(bytes) = component {
            let mut out = object.component("data", DType::U8, None).unwrap();
            out.write_all(bytes).unwrap();
            out.finish().unwrap();
        }
        object.finish().unwrap();
    })
}

#[test]
fn forged_deltas_are_refused() {
    let base = plain(|writer| {
        writer.add("w", &dense(DType::U8, &[5; 4])).unwrap();
    });
    let of = |name: &'static str, roles: &[&'static str]| {
        let sha256 = roles.iter().map(|role| (*role, [0; 32])).collect();
        Delta { base: Some(name), attributes: None, sha256 }.to_attributes()
    };
    // Read when the file is opened.
    let code = |component: Option<&[u8]>, attributes, removed: &[&str]| {
        let change = forged(component, attributes, removed);
        let result = patch(&base, &[change], Check::Read);
        result
            .map(|result| result.file().tensor("x").unwrap().bytes("data").map(drop).unwrap_err())
            .unwrap_or_else(|error| error)
            .code()
    };
    assert_eq!(code(None, of("nothing", &[]), &[]), "delta");
    assert_eq!(code(None, of("w", &[]), &["w"]), "delta");
    assert_eq!(code(None, of("w", &[]), &["v"]), "delta");
    // No room for the table; a length that is none; a gap beyond the end; the wrong values.
    assert_eq!(code(Some(&[0; 3]), of("w", &["data"]), &[]), "delta");
    assert_eq!(code(Some(&[0, 0, 0, 9, 0, 0, 0]), of("w", &["data"]), &[]), "delta");
    let gap = [0, 0x19, 0x04, 0x24, 4, 0, 0, 0];
    assert_eq!(code(Some(&gap), of("w", &["data"]), &[]), "delta");
    let long = DeltaCodec::STRETCH as u32 + 2;
    let mut codes = vec![0; long as usize];
    codes.extend(long.to_le_bytes());
    let result =
        patch(&base, &[forged(Some(&codes), of("w", &["data"]), &[])], Check::Read).unwrap();
    let error = result.file().tensor("x").unwrap().bytes("data").map(drop);
    let text = error.unwrap_err().to_string();
    assert!(text.contains("longer than the values"), "{text}");
    let good = [0, 0x11, 0x14, 0x54, 4, 0, 0, 0];
    assert_eq!(code(Some(&good), of("w", &["data"]), &[]), "digest-mismatch");
}

#[test]
fn fields_of_a_delta_are_compared_with_the_base() {
    let file = |value: u8| plain(|writer| writer.add("w", &dense(DType::U8, &[value; 4])).unwrap());
    let (base, new) = (file(1), file(2));
    let (change, ..) = made(&base, &new);
    let all = change.file().attributes().unwrap().unwrap();
    let header = all.get("zt.delta").and_then(Value::as_map).unwrap();
    let with = |key: &str, value: Value, check| {
        let mut header = header.clone();
        header.insert(key, value);
        let change = forged_with(header, None, Attributes::new());
        patch(&base, &[change], check).unwrap_err().code()
    };
    let mut marker = Attributes::new();
    marker.insert("zt.delta", Value::from("x"));
    for check in [Check::Read, Check::Copy, Check::Whole] {
        assert_eq!(with("attributes", Value::Map(marker.clone()), check), "delta");
    }
    for objects in [vec![], vec![0; 16]] {
        assert_eq!(with("objects", Value::Bytes(objects.clone()), Check::Read), "wrong-base");
        assert_eq!(with("objects", Value::Bytes(objects), Check::Whole), "delta");
    }
    assert_eq!(with("objects", Value::Bytes(vec![0; 8]), Check::Whole), "delta");
    // An object of another shape than the base's.
    let long = plain(|writer| writer.add("w", &dense(DType::U8, &[1; 5])).unwrap());
    let error = patch(&long, &[change], Check::Read).unwrap_err();
    assert_eq!((error.code(), error.object()), ("delta", Some("w")));
}

/// A source whose bytes change at `at`, once.
struct Changing(Vec<u8>, usize, Arc<AtomicBool>);

impl zt::Source for Changing {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let from = offset as usize;
        out.copy_from_slice(&self.0[from..from + out.len()]);
        if let Some(byte) = self.1.checked_sub(from).and_then(|at| out.get_mut(at)) {
            *byte ^= u8::from(self.2.load(Ordering::Relaxed));
        }
        Ok(())
    }
}

/// A delta of values that change after they are hashed could not be applied.
#[test]
fn values_that_change_meanwhile_are_an_error() {
    let old = Noise(4).bytes(3 * DeltaCodec::STRETCH);
    let mut steps = old.clone();
    steps[7] ^= 1;
    let whole = Noise(9).bytes(old.len());
    for new in [steps, whole] {
        let [base, next] = [&old, &new].map(|bytes| {
            let mut out = Vec::new();
            let mut writer = WriteOptions::new().digest(None).to_writer(&mut out).unwrap();
            writer.add("w", &dense(DType::U8, bytes)).unwrap();
            writer.finish().unwrap();
            out
        });
        let base = Input::from(File::from_bytes(base).unwrap());
        for at in [5000, 300_000] {
            let is_changed = Arc::new(AtomicBool::new(false));
            let source = Changing(next.clone(), at, is_changed.clone());
            let next = Kinds::builtin().open_source(source, InputOptions::new()).unwrap();
            let hashed = Mutex::new(0);
            let progress = |bytes| {
                let mut hashed = hashed.lock().unwrap();
                *hashed += bytes;
                is_changed.store(*hashed >= 2 * old.len() as u64, Ordering::Relaxed);
                ControlFlow::Continue(())
            };
            let progress = Some(zt::Progress::new(&progress));
            let error = delta(&base, &next, Vec::new(), progress).unwrap_err();
            assert_eq!((error.code(), error.object()), ("changed", Some("w")));
        }
    }
}

#[test]
fn the_output_is_neither_an_input_nor_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let files = steps(2);
    let out = folder.path().join("d.zt");
    delta_to_path(&files[0], &files[1], &out, false, None).unwrap();
    let again = |overwrite| delta_to_path(&files[0], &files[1], &out, overwrite, None);
    assert_eq!(again(false).unwrap_err().code(), "overwrite");
    again(true).unwrap();
    let new = Input::new(File::open(&out).unwrap(), vec![out.clone()]);
    let error = delta_to_path(&files[0], &new, &out, true, None).unwrap_err();
    assert_eq!(error.code(), "overwrite");
}

/// A file in memory that keeps its contents after every call.
#[derive(Debug)]
struct Recorded(Mutex<Vec<Vec<u8>>>);

impl Recorded {
    fn now(&self) -> Vec<u8> {
        self.0.lock().unwrap().last().unwrap().clone()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.now();
        change(&mut bytes);
        self.0.lock().unwrap().push(bytes);
    }
}

impl Storage for Recorded {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.now().len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.now();
        let part = bytes.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset as usize + bytes.len();
        self.change(|all| {
            all.resize(all.len().max(end), 0);
            all[offset as usize..end].copy_from_slice(bytes);
        });
        Ok(())
    }

    fn set_len(&self, byte_len: u64) -> io::Result<()> {
        self.change(|all| all.resize(byte_len as usize, 0));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_edit_that_is_killed_at_any_call_leaves_the_old_file_or_the_new_one() {
    let noise = Noise(8).bytes(3000);
    let written = |value: u8| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        let mut changed = noise.clone();
        changed[5] = value;
        for (name, values) in [("a", &changed), ("b", &noise), ("c", &changed)] {
            writer.add(name, &dense(DType::U8, values)).unwrap();
        }
        writer.finish().unwrap();
        bytes
    };
    let (old, new) = (written(1), written(2));
    let [before, after] =
        [&old, &new].map(|bytes| Input::from(File::from_bytes(bytes.clone()).unwrap()));
    let (change, ..) = made(&before, &after);
    let storage = Arc::new(Recorded(Mutex::new(vec![old])));
    let mut edit = WriteOptions::new().edit_storage(Arc::clone(&storage) as _).unwrap();
    assert_eq!(patch_in_place(&mut edit, &[change], None).unwrap(), Some(2));
    edit.commit().unwrap();
    let states = storage.0.lock().unwrap();
    let mut contents: Vec<String> = Vec::new();
    for state in states.iter() {
        contents.push(content(&Input::from(File::from_bytes(state.clone()).unwrap())));
    }
    assert_eq!(contents[0], content(&before));
    assert_eq!(contents.last().unwrap(), &content(&after));
    contents.dedup();
    assert_eq!(contents.len(), 2, "{contents:?}");
}

/// What an optimizer does: the chance of a change depends on the value.
#[test]
fn exponents_make_deltas_of_training_short() {
    let mut noise = Noise(11);
    let mut uniform = || noise.next() as f64 / f64::from(1u32 << 31) - 0.5;
    let old: Vec<f64> = (0..300_000).map(|_| 0.02 * (uniform() + uniform() + uniform())).collect();
    let step: Vec<f64> = old.iter().map(|_| 2e-6 * uniform()).collect();
    let bf16 = |values: Vec<f64>| {
        let wide = Dense::from_slice(&[values.len() as u64], &values).unwrap();
        let (_, wide) = wide.into_elements();
        let cast = wide.cast(FloatType::BF16, &zt::registry()).unwrap();
        Bytes::from(cast.bytes.to_vec())
    };
    // The weights that are kept in bf16 move by a step of the optimizer.
    let rounded = bf16(old);
    let values: Vec<f64> = rounded
        .as_chunks::<2>()
        .0
        .iter()
        .map(|bytes| f64::from(f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16)))
        .zip(&step)
        .map(|(value, step)| value + step)
        .collect();
    let next = bf16(values);
    let changed = rounded
        .as_chunks::<2>()
        .0
        .iter()
        .zip(next.as_chunks::<2>().0)
        .filter(|(a, b)| a != b)
        .count();
    let base = plain(|writer| writer.add("w", &dense(DType::BF16, &rounded)).unwrap());
    let new = plain(|writer| writer.add("w", &dense(DType::BF16, &next)).unwrap());
    let (_, len) = round_trip(&base, &new);
    let share = changed as f64 / 300_000.0;
    let entropy = -share * share.log2() - (1.0 - share) * (1.0 - share).log2();
    let bound = (300_000.0 * entropy + 2.0 * changed as f64) / 8.0;
    assert!(changed > 500 && (len as f64) < bound, "{changed} changes, {len} bytes, {bound}");
}
