//! Zip archives: TorchScript, members that are no records, and archives in a store.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use zt::{ErrorKind, File, Memory, Result, Source, Span, Value};
use zt_foreign::{FileKind, InputOptions};
use zt_pytorch::PyTorch;
use zt_zip::ArchiveWriter;

use crate::draft::opened;

fn archive(records: &[(&str, &[u8])]) -> Result<File> {
    opened(bytes_of(records))
}

fn bytes_of(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArchiveWriter::new(&mut bytes);
    for (name, content) in records {
        let byte_len = content.len() as u64;
        let mut member = writer.begin(format!("archive/{name}"), byte_len).unwrap();
        member.write_all(content).unwrap();
        member.finish().unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// An archive of TorchScript: a dict of a number and of the item `x` of these instructions.
fn script(x: &[u8]) -> File {
    let begin = &b"\x80\x02}(X\x01\0\0\0x"[..];
    let pickle = [begin, x, b"X\x01\0\0\0nK\x01u."].concat();
    let records: [(&str, &[u8]); 3] =
        [("data.pkl", &pickle), ("constants.pkl", b"\x80\x02)."), ("data/s", &[0; 4])];
    archive(&records).unwrap()
}

/// A tensor of one `f32` in a storage of `count`.
fn tensor(count: u8, metadata: &[u8]) -> Vec<u8> {
    let storage = b"((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0sX\x03\0\0\0cpuK";
    let place = b"tQK\0(K\x01t(K\x01t\x89}";
    let function = &b"ctorch._utils\n_rebuild_tensor_v2\n"[..];
    [function, storage, &[count], place, metadata, b"tR"].concat()
}

fn code(file: &File) -> Option<&'static str> {
    file.tensor("x").err().map(|error| error.code())
}

#[test]
fn refuses_a_record_longer_than_the_limit() {
    for (len, kind) in [(16, ErrorKind::Malformed), (17, ErrorKind::Limit)] {
        let order = vec![b'x'; len];
        let error = archive(&[("data.pkl", b"\x80\x02}."), ("byteorder", &order)]);
        assert_eq!(error.unwrap_err().kind(), kind);
    }
}

#[test]
fn the_error_of_a_short_storage_has_its_offset() {
    assert_eq!(code(&script(&tensor(1, b""))), None);
    let error = script(&tensor(2, b"")).tensor("x").unwrap_err();
    assert_eq!(error.code(), "shape-size-mismatch");
    assert!(error.offset().is_some());
}

#[test]
fn values_of_torchscript_become_attributes() {
    let none = script(b"ctorch.jit._pickle\nbuild_intlist\n(]tR");
    let none = none.attributes().unwrap().unwrap();
    assert_eq!(none.get("x"), Some(&Value::array(Vec::new())));
    // An Enum is its value, and has no state.
    let number = script(b"c__torch__.m\nC\n(K\x05tR");
    let number = number.attributes().unwrap().unwrap();
    assert_eq!(number.get("x"), Some(&Value::Unsigned(5)));
    let both = script(b"c__torch__.m\nC\n(K\x05tR}b");
    assert_eq!(code(&both), Some("pickle"));
}

/// Whatever their names are, and behind the object.
#[test]
fn says_what_python_would_run_of_other_pickles() {
    let tensor = tensor(1, b"");
    let object = [&b"\x80\x02}X\x01\0\0\0x"[..], &tensor, b"s."].concat();
    let behind = [&object[..], b"cposix\nsystem\n(Vtrue\ntR."].concat();
    let hidden = &b"\x80\x04\x8c\x02nt\x8c\x06system\x93\x8c\x02ls\x85R."[..];
    let warnings = |object: &[u8], more: &[u8]| {
        let storage = &[0; 4][..];
        let records = [("data.pkl", object), ("data/s", storage), ("notes", more)];
        let file = archive(&records).unwrap();
        let warnings = file.warnings().into_iter();
        let found: Vec<_> = warnings.map(|it| (it.code, it.message)).collect();
        let strict = zt::VerifyOptions::new().strict(true);
        assert!(file.verify(&zt::VerifyOptions::new()).unwrap().is_ok());
        assert_eq!(file.verify(&strict).unwrap().is_ok(), found.is_empty());
        found
    };
    assert_eq!(warnings(&object, b"text"), []);
    let danger = |message: &str| vec![("pickle-danger", message.to_owned())];
    assert_eq!(
        warnings(&behind, b""),
        danger("Python would call posix.system(\"true\"); nothing was run")
    );
    assert_eq!(
        warnings(&object, hidden),
        danger("Python would call nt.system(\"ls\"); nothing was run")
    );
}

/// Counts the bytes that are read.
struct Counted(Memory<Vec<u8>>, Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.0.read_at(offset, buf)
    }
}

#[test]
fn members_that_are_no_pickle_are_not_read() {
    let object = [&b"\x80\x02}X\x01\0\0\0x"[..], &tensor(1, b""), b"s."].concat();
    let records: [(&str, &[u8]); 3] =
        [("data.pkl", &object), ("data/s", &[0; 4]), ("more/0", &[0; 1 << 20])];
    let count = Arc::new(AtomicU64::new(0));
    let source = Counted(Memory::new(bytes_of(&records)), Arc::clone(&count));
    let options = InputOptions::new();
    PyTorch.open_source(Box::new(source), &options).unwrap();
    assert!(count.load(Ordering::Relaxed) < 1 << 20);
}

/// A store that counts delays: what is announced together comes with one, and so do short gaps.
struct Far(Memory<Vec<u8>>, Arc<Mutex<(usize, Vec<Span>)>>);

impl Source for Far {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn will_read_all(&self, spans: &[Span]) {
        let mut state = self.1.lock().unwrap();
        let (delays, known) = &mut *state;
        let is_known = |span: &Span| known.iter().any(|it| it.contains(*span));
        if !spans.iter().all(is_known) {
            *delays = delays.strict_add(1);
            let is_near = |a: &Span, b: &Span| b.offset().saturating_sub(a.end()) < 64 << 10;
            let runs = spans.chunk_by(is_near);
            known.extend(runs.map(|run| {
                let (first, last) = (run.first().unwrap(), run.last().unwrap());
                Span::between(first.offset(), last.end()).unwrap()
            }));
        }
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.will_read_all(&[Span::new(offset, buf.len() as u64).unwrap()]);
        self.0.read_at(offset, buf)
    }
}

#[test]
fn an_archive_in_a_store_opens_with_its_end_and_then_all_headers() {
    let object = [&b"\x80\x02}X\x01\0\0\0x"[..], &tensor(1, b""), b"s."].concat();
    let records: [(&str, &[u8]); 4] = [
        ("data.pkl", &object),
        ("more/0", &[0; 1 << 20]),
        ("data/s", &[0; 4]),
        ("more/1", &[0; 1 << 20]),
    ];
    let state = Arc::default();
    let source = Far(Memory::new(bytes_of(&records)), Arc::clone(&state));
    assert!(PyTorch.recognise_end(&source).unwrap());
    let options = InputOptions::new();
    PyTorch.open_source(Box::new(source), &options).unwrap();
    assert_eq!(state.lock().unwrap().0, 2);
}

/// Their number and their length together have a limit, and a warning counts the others.
#[test]
fn members_above_the_limits_are_counted() {
    let object = [&b"\x80\x02}X\x01\0\0\0x"[..], &tensor(1, b""), b"s."].concat();
    let danger = &b"cposix\nsystem\n(Vtrue\ntR."[..];
    let found = |others: &[(&str, &[u8])]| {
        let mut records = vec![("data.pkl", &object[..]), ("data/s", &[0; 4])];
        records.extend_from_slice(others);
        let warnings = archive(&records).unwrap().warnings();
        let found = warnings.into_iter();
        found.map(|it| (it.code, it.message)).collect::<Vec<_>>()
    };
    let len = (16u32 << 20) - 40;
    let text = vec![b'a'; len as usize];
    let long = [b"cx\ny\n(B", &len.to_le_bytes()[..], &text, b"tR."].concat();
    let codes: Vec<_> = found(&[("a", &long), ("b", danger), ("c", danger)])
        .into_iter()
        .map(|(code, _)| code)
        .collect();
    assert_eq!(codes, ["pickle-unread", "pickle-danger", "pickle-global"]);

    let names: Vec<String> = (0..1030).map(|at| format!("x{at}")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b"text"[..])).collect();
    let found = found(&many);
    let [(code, message)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(*code, "pickle-unread");
    assert!(message.starts_with("6 other members"), "{message}");
}

/// libtorch wraps the dict of deferred operations in a call that names its type.
#[test]
fn typed_metadata_are_read() {
    for (value, expected) in [(b'\x88', -0.0_f32), (b'\x89', 0.0)] {
        let metadata = [
            &b"ctorch.jit._pickle\nrestore_type_tag\n(}X\x03\0\0\0neg"[..],
            &[value],
            b"sX\x0f\0\0\0Dict[str, bool]tR",
        ];
        let file = script(&tensor(1, &metadata.concat()));
        let values = file.tensor("x").unwrap().to_vec::<f32>().unwrap();
        let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
        assert_eq!(bits, [expected.to_bits()]);
    }
}
