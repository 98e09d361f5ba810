//! Arrays of NumPy: reading with options, and writing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use zt::foreign::Kind;
use zt::{
    ByteOrder, Coo, Csr, DType, Dense, DigestAlgorithm, Entry, ErrorKind, File, Memory,
    OpenOptions, Value, Writer,
};
use zt_foreign::{
    ConvertOptions, FileKind, InputOptions, Job, Merged, MlDtype, Probe, Sink, Summary,
};
use zt_npy::{NPY, NPZ, Npy, Npz};

fn corpus(name: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign");
    corpus.join(name)
}

/// Opens a file as the kind that recognises it.
fn open(bytes: Vec<u8>, options: impl Into<InputOptions>) -> zt::Result<File> {
    let source = Memory::new(bytes);
    let is_npy = Npy.recognise(&Probe::new(&source)?)?;
    let kind: &dyn FileKind = if is_npy { &Npy } else { &Npz };
    Ok(kind.open_source(Box::new(source), &options.into())?.into_file())
}

fn opened(bytes: Vec<u8>) -> File {
    open(bytes, InputOptions::new()).unwrap()
}

/// The file as one of the kind `options.target`.
fn to(options: &ConvertOptions<'_>, file: &File) -> zt::Result<(Vec<u8>, Summary)> {
    let kind: &dyn FileKind = if options.target == NPY { &Npy } else { &Npz };
    let mut bytes = Vec::new();
    let mut sink = Sink::new(&mut bytes);
    let mut job = Job::new(options.target, options);
    kind.writer().unwrap().write(Merged::of(file, job.options)?, &mut sink, &mut job)?;
    job.check()?;
    job.end_attributes();
    sink.flush()?;
    drop(sink);
    Ok((bytes, job.summary))
}

/// A `.zt` file that `fill` writes.
fn ours(fill: impl FnOnce(&mut Writer<'_>) -> zt::Result<()>) -> File {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    fill(&mut writer).unwrap();
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

fn floats(writer: &mut Writer<'_>, name: &str) -> zt::Result<()> {
    writer.add(name, &Dense::from_slice(&[3], &[1.0f32, 2.0, 3.0])?)
}

/// The conversion is refused because of the object, and succeeds with losses allowed.
fn lossy(kind: Kind, input: &File) -> (String, File, Summary) {
    let mut options = ConvertOptions::new(kind);
    let error = to(&options, input).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "lossy"), "{error}");
    options = options.lossy(true);
    let (file, summary) = warned(&options, input);
    (error.object().unwrap_or_default().to_owned(), file, summary)
}

/// The conversion succeeds with warnings about losses.
fn warned(options: &ConvertOptions<'_>, input: &File) -> (File, Summary) {
    let (bytes, summary) = to(options, input).unwrap();
    let mut codes = summary.warnings.iter().map(|warning| warning.code);
    assert!(!summary.warnings.is_empty() && codes.all(|code| code == "lossy"));
    (opened(bytes), summary)
}

#[test]
fn arrays_have_the_values_of_the_ground_truth_and_broken_files_are_refused() {
    let mut count = 0;
    for entry in fs::read_dir(corpus("npy")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "npy") {
            continue;
        }
        let truth = fs::read(path.with_extension("json")).unwrap();
        let truth: Json = serde_json::from_slice(&truth).unwrap();
        let input = Npy.open_path(&path, &InputOptions::new());
        if truth["expect"] == "reject" {
            assert!(input.is_err(), "{}", path.display());
        }
        let (Ok(input), Some("read")) = (input, truth["expect"].as_str()) else {
            continue;
        };
        let file = input.file();
        for (name, truth) in truth["objects"].as_object().unwrap() {
            let tensor = file.tensor(name).unwrap();
            let shape: Vec<u64> = serde_json::from_value(truth["shape"].clone()).unwrap();
            assert_eq!(tensor.shape(), shape, "{name}");
            let data = tensor.component("data").unwrap();
            let dtype = truth["dtype"].as_str().and_then(DType::from_name);
            assert_eq!(data.dtype, dtype, "{name}");
            let bytes = tensor.bytes("data").unwrap();
            let sum = DigestAlgorithm::Sha256.digest(&bytes).unwrap().to_string();
            assert!(sum.ends_with(truth["sha256"].as_str().unwrap()), "{name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn opaque_pairs_of_bytes_are_bf16_on_request() {
    let path = corpus("npy/bf16_as_v2.npy");
    let plain = Npy.open_path(&path, &InputOptions::new()).unwrap();
    assert_eq!(plain.file().entries()[0].fault().unwrap().code(), "dtype");

    let options = InputOptions::new().ml_dtypes([MlDtype::BFLOAT16]);
    let asked = Npy.open_path(&path, &options).unwrap();
    let tensor = asked.file().entries()[0].tensor().unwrap();
    assert_eq!(tensor.component("data").unwrap().dtype, Some(DType::BF16));
    let array = fs::read(&path).unwrap();
    let stored = &array[array.len() - tensor.bytes("data").unwrap().len()..];
    assert_eq!(*tensor.bytes("data").unwrap(), *stored);
}

#[test]
fn elements_of_an_archive_are_aligned_for_borrowing() {
    let names: Vec<String> = (1..130).map(|len| "n".repeat(len)).collect();
    let input = ours(|writer| names.iter().try_for_each(|name| floats(writer, name)));
    let (bytes, _) = to(&ConvertOptions::new(NPZ), &input).unwrap();
    let file = opened(bytes);
    assert_eq!(file.len(), names.len());
    for entry in file.entries() {
        let data = entry.object().unwrap().component("data").unwrap();
        assert_eq!(data.blob.span.offset() % 64, 0);
        assert!(data.blob.digest.is_some());
    }
}

#[test]
fn what_arrays_cannot_represent_is_an_error_that_names_the_object() {
    let sparse = ours(|writer| {
        floats(writer, "plain")?;
        let csr = Csr::new([2, 3], &[7i32, 8], vec![2, 0], vec![0, 1, 2])?;
        writer.add("graph", &csr)
    });
    let (object, file, _) = lossy(NPZ, &sparse);
    assert_eq!(object, "graph");
    let dense = file.tensor("graph").unwrap().to_vec::<i32>().unwrap();
    assert_eq!(dense, [0, 0, 7, 8, 0, 0]);

    let attributes = ours(|writer| {
        writer
            .set_attributes([("author".to_owned(), Value::from("me"))].into_iter().collect())
            .unwrap();
        floats(writer, "w")
    });
    for kind in [NPZ, NPY] {
        assert_eq!(warned(&ConvertOptions::new(kind), &attributes).0.len(), 1);
    }

    // Readers in C would end the name at the NUL.
    let name = ours(|writer| {
        floats(writer, "a\0b")?;
        floats(writer, "c")
    });
    let (object, file, _) = lossy(NPZ, &name);
    assert_eq!(object, "a\0b");
    assert_eq!(file.names().collect::<Vec<_>>(), ["c"]);
}

#[test]
fn npy_holds_one_object() {
    let one = ours(|writer| floats(writer, "w"));
    let (bytes, summary) = to(&ConvertOptions::new(NPY), &one).unwrap();
    assert_eq!((summary.objects, bytes.len()), (1, 128 + 12));
    let file = opened(bytes);
    let array = file.entries()[0].tensor().unwrap();
    assert_eq!(*array.values::<f32>().unwrap(), [1.0, 2.0, 3.0]);

    let two = ours(|writer| {
        floats(writer, "w")?;
        floats(writer, "v")
    });
    let (object, file, _) = lossy(NPY, &two);
    assert_eq!((object.as_str(), file.len()), ("v", 1));

    let none = ours(|_| Ok(()));
    assert_eq!(to(&ConvertOptions::new(NPY), &none).unwrap_err().code(), "lossy");
    let (bytes, _) = to(&ConvertOptions::new(NPZ), &none).unwrap();
    assert_eq!((bytes.len(), opened(bytes).kind()), (22, NPZ));
}

/// A dtype and a shape.
type Said = (String, Vec<u64>);

/// `data/numpy_headers.py` recorded NumPy's answers.
#[test]
fn headers_are_read_as_numpy_does() {
    /// NumPy reads these and we refuse them: no program writes them, and duplicates are ambiguous.
    const STRICTER: [&str; 5] = ["\\\n", "'''", "' '", "\\x34", "{'shape': (2, 3), 'descr'"];
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/numpy_headers.json");
    let said: Vec<(String, Option<Said>)> =
        serde_json::from_slice(&fs::read(data).unwrap()).unwrap();
    let mut counts = [0; 3];
    for (header, numpy) in said {
        if STRICTER.iter().any(|text| header.contains(text)) {
            counts[2] += 1;
            continue;
        }
        // Version 1.0 is Latin-1, with replacements for other characters.
        let text: Vec<u8> = header.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect();
        let len = u16::try_from(text.len()).unwrap().to_le_bytes();
        let zeros = [0; 1 << 14];
        let bytes = [&b"\x93NUMPY\x01\0"[..], &len, &text, &zeros].concat();
        let file = open(bytes, InputOptions::new());
        let entries = file.as_ref().ok().map(File::entries);
        let found = entries.as_ref().map(|entries| entries.first());
        match (found.map(|found| found.map(Entry::object)), numpy) {
            (Some(Some(Ok(object))), Some((code, shape))) => {
                let data = object.component("data").unwrap();
                let dtype = data.dtype.unwrap();
                let letter = match data.logical_type.as_deref() {
                    Some(_) => 'c',
                    None => dtype.as_str().chars().next().unwrap(),
                };
                let width = dtype.byte_len() * if letter == 'c' { 2 } else { 1 };
                let order = match (width, data.byte_order) {
                    (1, _) => '|',
                    (_, ByteOrder::Big) => '>',
                    _ => '<',
                };
                assert_eq!(
                    (format!("{order}{letter}{width}"), &object.shape),
                    (code, &shape),
                    "{header}"
                );
                counts[0] += 1;
            }
            (Some(Some(Err(_)) | None), Some((code, _))) => {
                let is_number = code[1..].starts_with(['b', 'i', 'u', 'f', 'c']);
                assert!(
                    !is_number || ["<f16", ">f16", "<c32", ">c32"].contains(&&*code),
                    "{header}"
                );
                match found.flatten() {
                    Some(entry) => {
                        let fault = entry.fault().unwrap();
                        let found = (fault.kind(), fault.code());
                        assert_eq!(found, (ErrorKind::Unsupported, "dtype"), "{header}");
                    }
                    None => {
                        let warnings = warnings(file.as_ref().unwrap());
                        assert_eq!(warnings[0].0, "not-tensor", "{header}");
                    }
                }
                counts[1] += 1;
            }
            (Some(Some(Ok(_))), None) => panic!("NumPy refuses {header}"),
            (None, Some(_)) => panic!("NumPy reads {header}: {}", file.unwrap_err()),
            (_, None) => counts[2] += 1,
        }
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

/// An archive with changed member names of the same length.
fn renamed(names: &[(&[u8], &[u8])]) -> zt::Result<File> {
    let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
    let input = ours(|writer| {
        names.iter().try_for_each(|(name, _)| {
            let name = text(name);
            floats(writer, name.strip_suffix(".npy").unwrap())
        })
    });
    let (mut bytes, _) = to(&ConvertOptions::new(NPZ), &input).unwrap();
    for (from, to) in names {
        assert_eq!(from.len(), to.len());
        for at in 0..bytes.len() - from.len() {
            if bytes[at..].starts_with(from) {
                bytes[at..at + to.len()].copy_from_slice(to);
            }
        }
    }
    open(bytes, InputOptions::new())
}

#[test]
fn members_with_equal_names_except_for_the_ending_are_all_listed() {
    let members: [(&[u8], &[u8]); 4] = [
        (b"11.npy", b"abcdef"),
        (b"222222.npy", b"abcdef.npy"),
        (b"3333333333.npy", b"abcdef.npy.npy"),
        (b"4444.npy", b"good.npy"),
    ];
    let mut backwards = members;
    backwards.reverse();
    for members in [members, backwards] {
        let file = renamed(&members).unwrap();
        let mut names: Vec<_> = file.names().collect();
        names.sort_unstable();
        let expected = ["abcdef", "abcdef.npy", "abcdef.npy.npy", "good"];
        assert_eq!(names, expected);
    }
    // Without the first member, each name gives the same array as in NumPy.
    let file = renamed(&members[1..]).unwrap();
    let mut names: Vec<_> = file.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["abcdef", "abcdef.npy", "good"]);
}

#[test]
fn two_members_with_one_name_refuse_the_file() {
    let members: [(&[u8], &[u8]); 2] =
        [("é1.npy".as_bytes(), b"\xff\xff1.npy"), ("é2.npy".as_bytes(), b"\xfe\xfe1.npy")];
    let error = renamed(&members).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Malformed, "header"));
}

/// `numpy.load` prefers a member with the whole name to a member without the ending.
#[test]
fn a_name_that_gives_another_array_in_numpy_is_a_loss() {
    for names in [["x", "x.npy", "y"], ["x.npy", "y", "x"]] {
        let input = ours(|writer| names.iter().try_for_each(|name| floats(writer, name)));
        let (left_out, file, _) = lossy(NPZ, &input);
        let second = names.iter().rfind(|name| name.starts_with('x')).unwrap();
        assert_eq!((&*left_out, file.len()), (*second, 2));
    }
    let alone = ours(|writer| floats(writer, "x.npy"));
    let (bytes, _) = to(&ConvertOptions::new(NPZ), &alone).unwrap();
    assert_eq!(opened(bytes).names().collect::<Vec<_>>(), ["x.npy"]);
}

/// An array of version 1.0.
fn array(header: &str, data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(header.len()).unwrap().to_le_bytes();
    [&b"\x93NUMPY\x01\0"[..], &len, header.as_bytes(), data].concat()
}

#[test]
fn an_array_of_unsupported_type_is_listed_with_its_known_fields() {
    let header = "{'descr': '<f16', 'fortran_order': False, 'shape': (2,)}";
    let bytes = array(header, &[0; 32]);
    let begins = bytes.len() as u64 - 32;
    let file = opened(bytes);
    let entries = file.entries();
    let raw = entries[0].raw().unwrap();
    assert_eq!(raw.shape.as_deref(), Some(&[2][..]));
    let (_, data) = &raw.components[0];
    assert_eq!(data.dtype.as_deref(), Some("<f16"));
    assert_eq!((data.offset, data.length), (Some(begins), Some(32)));
}

#[test]
fn arrays_have_the_length_of_their_shape() {
    let code = |shape: &str, data: &[u8], strict: bool| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        let file = open(array(&header, data), OpenOptions::new().strict(strict));
        file.map(drop).map_err(|error| (error.kind(), error.code()))
    };
    let refused = Err((ErrorKind::Malformed, "shape-size-mismatch"));
    assert_eq!(code("(2,)", &[0; 7], false), refused);
    let huge = "(4611686018427387904, 4)";
    assert_eq!(code(huge, &[0; 8], false), refused);
    // Bytes after the array are ignored, as in NumPy.
    assert_eq!(code("(2,)", &[0; 8], true), Ok(()));
    assert_eq!(code("(2,)", &[0; 9], false), Ok(()));
    assert_eq!(code("(2,)", &[0; 9], true), refused);
}

/// An archive of these members: names, bytes without a CRC, and declared compression methods.
fn zip(members: &[(&str, &[u8], u16)]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes, method) in members {
        let offset = u32::try_from(archive.len()).unwrap();
        let len = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let version = [&20u16.to_le_bytes()[..], &[0; 2], &method.to_le_bytes(), &[0; 8]].concat();
        let name_len = u16::try_from(name.len()).unwrap().to_le_bytes();
        let about = [&version[..], &len, &len, &name_len, &[0; 2]].concat();
        archive.extend([&b"PK\x03\x04"[..], &about, name.as_bytes(), bytes].concat());
        let more = [&[0; 10][..], &offset.to_le_bytes()].concat();
        directory.extend([&b"PK\x01\x02\x14\0"[..], &about, &more, name.as_bytes()].concat());
    }
    let count = u16::try_from(members.len()).unwrap().to_le_bytes();
    let offset = u32::try_from(archive.len()).unwrap().to_le_bytes();
    let len = u32::try_from(directory.len()).unwrap().to_le_bytes();
    archive.extend(directory);
    archive.extend([&b"PK\x05\x06"[..], &[0; 4], &count, &count, &len, &offset, &[0; 2]].concat());
    archive
}

fn warnings(file: &File) -> Vec<(&'static str, Option<String>)> {
    let warnings = file.warnings().into_iter();
    warnings.map(|it| (it.code, it.object)).collect()
}

/// Damaged arrays are listed with their offsets. Other files are left out, and folders without a word.
#[test]
fn members_that_cannot_be_read_are_listed_and_other_files_are_not() {
    let file = opened(zip(&[
        ("folder/", b"", 0),
        ("odd/", b"bytes", 0),
        ("empty.npy", b"", 0),
        ("other.npy", b"packed", 99),
    ]));
    let mut names: Vec<_> = file.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["empty", "other"]);
    assert_eq!(warnings(&file), [("not-tensor", Some("odd/".into()))]);
    let entries = file.entries();
    assert!(entries.iter().all(|entry| entry.fault().is_some()));
    let other = entries.iter().find(|entry| entry.name() == "other").unwrap();
    assert_eq!(other.fault().unwrap().code(), "unsupported");
    let (role, data) = &other.raw().unwrap().components[0];
    let before = 3 * 30 + "folder/odd/empty.npybytes".len() as u64;
    assert_eq!((&**role, data.offset, data.length), ("data", Some(before), Some(6)));
}

#[test]
fn texts_records_and_objects_are_left_out_of_a_sound_file() {
    for (descr, bytes) in [
        ("'|S3'", &b"abc"[..]),
        ("'<U1'", b"a\0\0\0"),
        ("'|O'", b"\x80\x02N."),
        ("[('a', '<f4')]", &[0; 4]),
        ("'<M8[ns]'", &[0; 8]),
        ("'|V3'", &[0; 3]),
    ] {
        let array = |descr: &str, bytes: &[u8]| {
            let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ()}}");
            array(&header, bytes)
        };
        let (other, number) = (array(descr, bytes), array("'<f4'", &[0; 4]));
        let file = opened(zip(&[("x.npy", &other, 0), ("w.npy", &number, 0)]));
        assert_eq!(file.names().collect::<Vec<_>>(), ["w"], "{descr}");
        assert_eq!(warnings(&file), [("not-tensor", Some("x".into()))]);
        assert!(file.tensor("w").is_ok());
        let alone = opened(other);
        assert!(alone.is_empty());
        assert_eq!(warnings(&alone), [("not-tensor", Some("tensor".into()))]);
    }
}

/// An array of 32-bit or 64-bit integers.
fn integers(descr: &str, values: &[i64]) -> Vec<u8> {
    let shape = values.len();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape},)}}");
    let width = if descr == "<i4" { 4 } else { 8 };
    let bytes = values.iter().flat_map(|it| it.to_le_bytes()[..width].to_vec());
    array(&header, &bytes.collect::<Vec<_>>())
}

/// An archive of these members: names and bytes.
fn archive<B: AsRef<[u8]>>(members: &[(String, B)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = zt_zip::ArchiveWriter::new(&mut bytes);
    for (name, content) in members {
        let content = content.as_ref();
        let mut member = archive.begin(name.clone(), content.len() as u64).unwrap();
        member.write_all(content).unwrap();
        member.finish().unwrap();
    }
    archive.finish().unwrap();
    bytes
}

/// A file of SciPy with these parts.
fn matrix(format: &str, parts: &[(&str, &[i64])]) -> File {
    let header = "{'descr': '|S3', 'fortran_order': False, 'shape': ()}";
    let format = array(header, format.as_bytes());
    let mut members = vec![("format.npy".to_owned(), format)];
    for (name, values) in parts {
        let descr = if *name == "shape" { "<i8" } else { "<i4" };
        members.push((format!("{name}.npy"), integers(descr, values)));
    }
    opened(archive(&members))
}

#[test]
fn a_matrix_of_scipy_with_invalid_parts_is_listed_with_its_fault() {
    let shape: (&str, &[i64]) = ("shape", &[2, 3]);
    let data: (&str, &[i64]) = ("data", &[5, 7]);
    let indices: (&str, &[i64]) = ("indices", &[1, 0]);
    for (format, parts) in [
        ("csr", &[shape, data, indices, ("indptr", &[0, 1])][..]),
        ("csr", &[shape, data, ("indices", &[1]), ("indptr", &[0, 1, 2])]),
        ("csc", &[shape, data, indices, ("indptr", &[0, 1, 2])]),
        ("coo", &[shape, data, ("row", &[0, 1]), ("col", &[0])]),
        ("csr", &[("shape", &[2, -3]), data, indices, ("indptr", &[0, 1, 2])]),
        ("csr", &[("shape", &[2]), data, indices, ("indptr", &[0, 1, 2])]),
        ("bsr", &[shape, data, indices, ("indptr", &[0, 1, 2])]),
        ("dia", &[shape, data, ("offsets", &[0])]),
    ] {
        let file = matrix(format, parts);
        let entries = file.entries();
        assert_eq!(entries.len(), 1, "{format}");
        let fault = entries[0].fault().unwrap();
        assert_eq!(fault.code(), "shape-size-mismatch", "{format} {parts:?}: {fault}");
    }
    // Arrays that only look like a matrix are arrays.
    for (format, parts) in [
        ("lil", &[shape, data, indices, ("indptr", &[0, 1, 2])][..]),
        ("csr", &[shape, data, indices]),
        ("csr", &[shape, data, indices, ("indptr", &[0, 1, 2]), ("more", &[0])]),
    ] {
        let file = matrix(format, parts);
        assert_eq!(file.len(), parts.len());
        assert_eq!(warnings(&file), [("not-tensor", Some("format".into()))]);
    }
}

/// A layout that is read from damaged bytes could be another one.
#[test]
fn a_damaged_layout_of_scipy_is_a_fault() {
    let csr = Csr::new([1, 1], &[7i32], vec![0], vec![0, 1]).unwrap();
    let file = ours(|writer| writer.add("m", &csr));
    let (mut bytes, _) = to(&ConvertOptions::new(NPZ), &file).unwrap();
    let at = bytes.windows(3).position(|it| it == b"csr").unwrap();
    bytes[at + 2] = b'c';
    let file = opened(bytes);
    let entries = file.entries();
    assert_eq!(entries[0].fault().unwrap().code(), "digest-mismatch");
}

#[test]
fn a_matrix_of_scipy_has_whole_bytes_as_values_and_integers_as_indices() {
    let head =
        |descr, shape| format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}");
    let format = array(&head("|S3", "()"), b"csc");
    let opaque = array(&head("|V1", "(2,)"), &[0x38, 0]);
    let [shape, plain, indptr] = [&[2, 1][..], &[0, 1], &[0, 2]].map(|it| integers("<i8", it));
    let open = |data: &[u8], indices: &[u8], ml_dtype| {
        let members = [
            ("format", &*format),
            ("shape", &shape),
            ("data", data),
            ("indices", indices),
            ("indptr", &indptr),
        ];
        let members = members.map(|(name, bytes)| (format!("{name}.npy"), bytes));
        let options = InputOptions::new().ml_dtypes(Vec::from_iter(MlDtype::from_name(ml_dtype)));
        open(archive(&members), options).unwrap()
    };
    let file = open(&opaque, &plain, "float8_e4m3fn");
    let values = file.entries()[0].tensor().unwrap().component("values").unwrap();
    assert_eq!(values.logical_type.as_deref(), Some("f8_e4m3fn"));
    for (data, indices, ml_dtype, message) in [
        (&opaque, &plain, "", "--ml-dtype"),
        (&opaque, &plain, "int4", "\"data\" of a sparse matrix has values of less than a byte"),
        (&plain, &opaque, "float8_e4m3fn", "\"indices\" of a sparse matrix has no integers"),
    ] {
        let file = open(data, indices, ml_dtype);
        let fault = file.entries()[0].fault().unwrap();
        assert_eq!(fault.code(), "dtype");
        assert!(fault.to_string().contains(message), "{fault}");
    }
}

/// SciPy 1.17.1 opens these files, and its values are equal.
#[test]
fn a_sparse_matrix_is_written_as_scipy_saves_it() {
    let csr = Csr::new([2, 3], &[7i32, 8], vec![2, 0], vec![0, 1, 2]).unwrap();
    let coo = Coo::new([2, 3], &[7i32, 8], vec![0, 1, 2, 0]).unwrap();
    let options = ConvertOptions::new(NPZ);
    for (file, format) in [
        (ours(|writer| writer.add("m", &csr)), "sparse_csr"),
        (ours(|writer| writer.add("m", &coo)), "sparse_coo"),
    ] {
        let (bytes, summary) = to(&options, &file).unwrap();
        assert!(summary.warnings.is_empty() && summary.objects == 1);
        let again = opened(bytes);
        let tensor = again.tensor("tensor").unwrap();
        assert_eq!(tensor.format(), format);
        let dense = tensor.to_dense().unwrap();
        assert_eq!(*dense.as_slice::<i32>().unwrap(), [0, 0, 7, 8, 0, 0]);
    }
    // No archive of SciPy has two matrices, or one and another array.
    let two = ours(|writer| {
        writer.add("m", &csr)?;
        floats(writer, "w")
    });
    assert_eq!(lossy(NPZ, &two).0, "m");
}

/// SciPy reads beyond its arrays if an index is out of range.
#[test]
fn invalid_indices_are_not_written() {
    let indices: (&str, &[i64]) = ("indices", &[3, 0]);
    let parts: [(&str, &[i64]); 4] =
        [("shape", &[2, 3]), ("data", &[5, 7]), indices, ("indptr", &[0, 1, 2])];
    let error = to(&ConvertOptions::new(NPZ), &matrix("csr", &parts)).unwrap_err();
    assert_eq!(error.code(), "index-value");
}

/// The code of an array's warning, or of the error that refuses it; `None` if it is listed without a fault.
fn code_of(bytes: Vec<u8>, options: impl Into<InputOptions>) -> Option<&'static str> {
    let file = match open(bytes, options) {
        Ok(file) => file,
        Err(error) => return Some(error.code()),
    };
    let entries = file.entries();
    let fault = entries.first().and_then(|entry| entry.fault().map(|fault| fault.code()));
    fault.or(file.warnings().first().map(|warning| warning.code))
}

fn header_of(descr: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}")
}

/// A header of a version, padded to `len` bytes.
fn padded(version: u8, text: &[u8], len: u32) -> Vec<u8> {
    let prefix = match version {
        1 => u16::try_from(len).unwrap().to_le_bytes().to_vec(),
        _ => len.to_le_bytes().to_vec(),
    };
    let mut bytes = [&b"\x93NUMPY"[..], &[version, 0], &*prefix, text].concat();
    bytes.resize(8 + prefix.len() + len as usize, b' ');
    bytes
}

#[test]
fn headers_are_the_same_as_numpys_and_read_back() {
    let of = |shape: &[u64]| {
        let none = ours(|writer| writer.add("w", &Dense::from_slice(shape, &[] as &[f32])?));
        to(&ConvertOptions::new(NPY), &none).map(|(bytes, _)| bytes)
    };
    let shape = &[2, 0, 3][..];
    let bytes = of(shape).unwrap();
    assert_eq!((bytes.len(), &bytes[..10]), (128, &b"\x93NUMPY\x01\x00\x76\x00"[..]));
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0, 3), }";
    assert_eq!(&bytes[10..10 + text.len()], text.as_bytes());
    for shape in [shape, &[0], &[1; 63]] {
        let shape = [shape, &[0]].concat();
        let bytes = of(&shape).unwrap();
        assert_eq!(bytes.len() % 64, 0);
        assert_eq!(opened(bytes).tensor("tensor").unwrap().shape(), shape);
    }
}

#[test]
fn headers_have_a_limit_and_end_within_the_file() {
    const SOUND: &[u8] = b"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}";
    let kind =
        |bytes: &[u8]| open(bytes.to_vec(), InputOptions::new()).map(drop).map_err(|it| it.kind());
    for version in [1, 2, 3] {
        assert_eq!(kind(&padded(version, SOUND, 10_000)), Ok(()));
        assert_eq!(kind(&padded(version, SOUND, 10_001)), Err(ErrorKind::Limit));
    }
    // Too long to be read: the file ends with the header, before it, or after it.
    let mut long = padded(2, SOUND, 50_000);
    assert_eq!(kind(&long), Err(ErrorKind::Limit));
    assert_eq!(kind(&long[..49_000]), Err(ErrorKind::Malformed));
    long.push(0);
    assert_eq!(kind(&long), Err(ErrorKind::Limit));
}

#[test]
fn version_3_is_utf_8() {
    let text = b"{'descr': [('\xFF', '<f4')], 'fortran_order': False, 'shape': ()}";
    assert_eq!(code_of(padded(2, text, 100), InputOptions::new()), Some("not-tensor"));
    assert_eq!(code_of(padded(3, text, 100), InputOptions::new()), Some("header"));
}

#[test]
fn every_key_is_required_once() {
    let sound = "{'shape': (1,), 'fortran_order': True, 'descr': [('a', '<f4')]}";
    let code = |text: &str| code_of(array(text, &[0; 4]), InputOptions::new());
    assert_eq!(code(sound), Some("not-tensor"));
    for (from, to) in [
        ("'descr'", "'shape'"),
        ("'descr'", "'other'"),
        ("'descr'", "1"),
        ("True", "1"),
        ("(1,)", "[1]"),
        ("(1,)", "(True,)"),
        ("(1,)", "(-1,)"),
        ("[('a', '<f4')]", "None"),
        ("{", "{'shape': (1,), "),
    ] {
        assert_eq!(code(&sound.replacen(from, to, 1)), Some("header"), "{from} {to}");
    }
}

#[test]
fn literals_have_the_values_of_python() {
    for (text, count) in [
        (" \t3L\n", 3),
        ("+ 3", 3),
        ("0x1F", 31),
        ("0b_11", 3),
        ("1_000", 1000),
        ("0_0", 0),
        ("# 1\n2 # 3\n", 2),
        ("(3)", 3),
    ] {
        let file = opened(array(&header_of("'|u1'", &format!("({text},)")), &[0; 1000]));
        assert_eq!(file.tensor("tensor").unwrap().shape(), [count], "{text}");
    }
    for text in ["'<f4'", "\"<f4\"", "u'<f4'"] {
        assert_eq!(code_of(array(&header_of(text, "()"), &[0; 4]), InputOptions::new()), None);
    }
    // The items of a list are not looked at.
    for text in [
        "'a'",
        r"'a\'b'",
        "18446744073709551616",
        "-1",
        "()",
        "(3, 4)",
        "True, None,",
        "{'a': (1,),}",
        "{}",
    ] {
        let code = code_of(array(&header_of(&format!("[{text}]"), "()"), &[]), InputOptions::new());
        assert_eq!(code, Some("not-tensor"), "{text}");
    }
}

#[test]
fn expressions_calls_and_names_are_refused() {
    let code = |text: &str| {
        code_of(array(&header_of(&format!("[{text}]"), "()"), &[]), InputOptions::new())
    };
    let texts = [
        ",",
        "1+1",
        "f(1)",
        "a",
        "Truely",
        "True_",
        "[True1]",
        "1.5",
        "1e3",
        "0x",
        "0b2",
        "03",
        "0_3",
        "1__0",
        "1_",
        "_1",
        "+_1",
        "+-1",
        "+'a'",
        "b'a'",
        "ur'a'",
        "3l",
        "3j",
        "'a",
        "'a\nb'",
        "(1",
        "(1,,2)",
        "(,)",
        "[1 2]",
        "{'a'}",
        "{'a' 1}",
        "{'a':}",
        "1 2",
        "'a' 'b'",
        "# 1",
        "-'a'",
        "--1",
        "\0",
        "__import__('os')",
        "[x for x in (1,)]",
        "{None1: 2}",
    ];
    for text in texts {
        assert_eq!(code(text), Some("header"), "{text:?}");
    }
    for text in ["", " "] {
        assert_eq!(code_of(array(text, &[]), InputOptions::new()), Some("header"));
    }
    let deep = |levels: usize| "(".repeat(levels) + "1," + &")".repeat(levels);
    assert_eq!(code(&deep(6)), Some("not-tensor"));
    assert_eq!(code(&deep(4000)), Some("header"));
}

/// The code of an array of no elements with this dtype.
fn code_of_descr(descr: &str, types: &[&str]) -> Option<&'static str> {
    let mut options = InputOptions::new();
    options.ml_dtypes = types.iter().map(|name| MlDtype::from_name(name).unwrap()).collect();
    code_of(array(&header_of(&format!("'{descr}'"), "(0,)"), &[]), options)
}

#[test]
fn unsupported_dtypes_differ_from_unknown_ones() {
    for descr in [
        "|O",
        "|O8",
        "|S5",
        "|a3",
        "<U7",
        "|T16",
        "|V8",
        "<M8[ns]",
        "<m8",
        "3f4",
        "(3)f4",
        "f4,i4",
        "datetime64[ns]",
        "timedelta64[D]",
    ] {
        assert_eq!(code_of_descr(descr, &[]), Some("not-tensor"), "{descr}");
    }
    for descr in ["|V1", "|V2", "<f16", "<c32", "<f1"] {
        let file = opened(array(&header_of(&format!("'{descr}'"), "(0,)"), &[]));
        let entries = file.entries();
        assert_eq!(entries[0].fault().unwrap().kind(), ErrorKind::Unsupported, "{descr}");
    }
    let all: Vec<&str> = MlDtype::all().iter().map(|it| it.name).collect();
    for descr in [
        "", "<", "<f3", "<x4", "<f-4", "<x", "<float", "<U-1", ">>f4", "<f4 ", "l8", "float8",
        "<Mx", "f4]",
    ] {
        assert_eq!(code_of_descr(descr, &all), Some("dtype"), "{descr}");
    }
    for (descr, is_hinted) in [("|V2", true), ("|V1", true), ("<f1", true), ("<f16", false)] {
        let file = opened(array(&header_of(&format!("'{descr}'"), "(0,)"), &[]));
        let hint = file.entries()[0].fault().unwrap().to_string();
        assert_eq!(hint.contains("--ml-dtype"), is_hinted, "{hint}");
    }
}

#[test]
fn types_of_ml_dtypes_are_told_apart_by_their_length() {
    let types = ["int4", "bfloat16"].map(|name| MlDtype::from_name(name).unwrap());
    let meaning = |descr: &str| {
        let mut options = InputOptions::new();
        options.ml_dtypes = types.to_vec();
        let file = open(array(&header_of(&format!("'{descr}'"), "(0,)"), &[]), options).ok()?;
        let tensor = file.tensor("tensor").ok()?;
        tensor.value_type().map(|it| it.to_string())
    };
    for (descr, expected) in [
        ("<V1", Some("i4")),
        ("|V1", Some("i4")),
        ("<f1", Some("i4")),
        ("<V2", Some("bf16")),
        // NumPy's own types stay what they are.
        ("<f2", Some("f16")),
        ("|V3", None),
        ("|i0", None),
    ] {
        assert_eq!(meaning(descr).as_deref(), expected, "{descr}");
    }
}

#[test]
fn types_are_written_as_numpy_names_them_and_read_in_both_orders() {
    for (descr, dtype) in [
        ("b1", "bool"),
        ("i1", "i8"),
        ("u1", "u8"),
        ("i2", "i16"),
        ("u2", "u16"),
        ("i4", "i32"),
        ("u4", "u32"),
        ("i8", "i64"),
        ("u8", "u64"),
        ("f2", "f16"),
        ("f4", "f32"),
        ("f8", "f64"),
        ("c8", "complex64"),
        ("c16", "complex128"),
    ] {
        let len: usize = descr[1..].parse().unwrap();
        let big = opened(array(&header_of(&format!("'>{descr}'"), "(1,)"), &vec![0; len]));
        let tensor = big.tensor("tensor").unwrap();
        assert_eq!(tensor.value_type().map(|it| it.to_string()).as_deref(), Some(dtype));
        let (bytes, _) = to(&ConvertOptions::new(NPY), &big).unwrap();
        let order = if len == 1 { '|' } else { '<' };
        let text = String::from_utf8_lossy(&bytes[..64]).into_owned();
        assert!(text.contains(&format!("'{order}{descr}'")), "{text}");
    }
}

#[test]
fn dimensions_beside_a_zero_are_checked_for_overflow() {
    let huge = "(0, 4611686018427387904, 4611686018427387904)";
    let code = code_of(array(&header_of("'<f4'", huge), &[]), InputOptions::new());
    assert_eq!(code, Some("shape-size-mismatch"));
}

/// Members that Python's `zipfile` compresses with bzip2 and LZMA, as `data/zipfile_methods.py` writes them.
#[test]
fn bzip2_and_lzma_are_read_and_a_flipped_bit_is_never_another_value() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let values = |file: &File| -> zt::Result<Vec<Vec<u8>>> {
        file.tensors().map(|tensor| Ok(tensor?.to_dense()?.elements().bytes.to_vec())).collect()
    };
    for name in ["bzip2.npz", "lzma.npz"] {
        let bytes = fs::read(data.join(name)).unwrap();
        let file = opened(bytes.clone());
        let expected = values(&file).unwrap();
        let a: Vec<u8> = (0..6u8).flat_map(|value| f32::from(value).to_le_bytes()).collect();
        assert_eq!(expected.len(), 4);
        assert_eq!(expected[0], a);
        assert_eq!(file.tensor("b").unwrap().shape(), [3, 4]);
        let mut refused = 0;
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            let read = open(bytes, InputOptions::new()).and_then(|file| values(&file));
            match read {
                Ok(found) if found.len() == expected.len() => assert_eq!(found, expected, "{at}"),
                Ok(_) => {}
                Err(_) => refused += 1,
            }
        }
        assert!(refused > bytes.len() / 3, "{refused} of {}", bytes.len());
    }
}
