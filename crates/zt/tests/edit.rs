//! Editing in place: what readers see, before, during and after.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use zt::formats::FormatViolation;
use zt::{
    Attributes, Dense, File, ObjectFormat, Registry, Signature, Value, VerifyOptions, WriteOptions,
    Writer,
};
use zt_manifest::ManifestDigest;

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn dense<T: zt::formats::Element>(values: &[T]) -> Dense<'_> {
    Dense::from_slice(&[values.len() as u64], values).unwrap()
}

fn values(file: &File) -> BTreeMap<String, Vec<i32>> {
    let read = |name: &str| file.tensor(name).unwrap().to_vec::<i32>().unwrap();
    file.names().map(|name| (name.to_owned(), read(name))).collect()
}

struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Result<Self> {
        let fixture = Fixture { folder: tempfile::tempdir()? };
        let mut writer = Writer::create(fixture.path())?;
        writer.add("a", &dense(&[1, 2, 3]))?;
        writer.add("b", &dense(&[4]))?;
        writer
            .set_attributes(Attributes::from_iter([("kind".to_owned(), Value::from("test"))]))
            .unwrap();
        writer.finish()?;
        Ok(fixture)
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("x.zt")
    }
}

#[test]
fn adds_removes_and_renames() -> Result {
    let fixture = Fixture::new()?;
    let path = fixture.path();
    let mut edit = File::edit(&path)?;
    assert_eq!(edit.path(), Some(&*path));
    edit.writer().add("c", &dense(&[5, 6]))?;
    edit.remove("a")?;
    edit.writer().add("a", &dense(&[7]))?;
    edit.rename("b", "z")?;
    let mut attributes = edit.attributes().cloned().unwrap_or_default();
    attributes.insert("more", Value::from(true));
    edit.set_attributes(attributes)?;
    edit.commit()?;

    let file = File::open(&path)?;
    let expected = [("a", vec![7]), ("c", vec![5, 6]), ("z", vec![4])];
    let expected = expected.map(|(name, values)| (name.to_owned(), values));
    assert_eq!(values(&file), BTreeMap::from(expected));
    let attributes = file.attributes()?.unwrap();
    assert_eq!(attributes.get("kind"), Some(&Value::from("test")));
    assert_eq!(attributes.get("more"), Some(&Value::from(true)));
    assert!(file.verify(&VerifyOptions::default())?.is_ok());
    Ok(())
}

#[test]
fn adding_objects_leaves_a_strictly_sound_file() -> Result {
    let fixture = Fixture::new()?;
    for (name, compression) in [("c", 0), ("d", 3)] {
        let options = WriteOptions::new();
        let options = if compression > 0 { options.zstd(compression) } else { options };
        let mut edit = options.edit(fixture.path())?;
        let many: Vec<i32> = (0..3_000_000).map(|at| at / 100).collect();
        edit.writer().add(name, &dense(&many))?;
        edit.commit()?;
    }
    let file = File::open(fixture.path())?;
    assert_eq!(file.len(), 4);
    let options = VerifyOptions::new().strict(true);
    let report = file.verify(&options)?;
    assert!(report.is_ok(), "{report:?}");
    Ok(())
}

#[test]
fn dropped_it_leaves_the_file_byte_for_byte() -> Result {
    let fixture = Fixture::new()?;
    let before = std::fs::read(fixture.path())?;
    let mut edit = File::edit(fixture.path())?;
    edit.writer().add("c", &dense(&vec![0; 3_000_000]))?;
    assert_eq!(values(&File::open(fixture.path())?).len(), 2, "the old file, all the while");
    assert!(std::fs::metadata(fixture.path())?.len() > 12_000_000);
    drop(edit);
    assert!(std::fs::read(fixture.path())? == before);
    Ok(())
}

#[test]
fn open_readers_keep_the_old_file() -> Result {
    let fixture = Fixture::new()?;
    let open = File::open(fixture.path())?;
    let mut edit = File::edit(fixture.path())?;
    edit.remove("a")?;
    edit.commit()?;
    assert_eq!(values(&open)["a"], [1, 2, 3]);
    Ok(())
}

#[test]
fn a_second_editor_is_refused_until_the_first_is_gone() -> Result {
    let fixture = Fixture::new()?;
    let edit = File::edit(fixture.path())?;
    let error = File::edit(fixture.path()).unwrap_err();
    assert_eq!((error.code(), error.kind()), ("locked", zt::ErrorKind::Io));
    drop(edit);
    File::edit(fixture.path())?.commit()?;
    Ok(())
}

/// An editor may be about to finish what cannot be opened yet: it is waited for, but not for ever.
#[test]
fn a_locked_file_of_another_kind_is_reported_as_locked() -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("x.zt");
    std::fs::write(&path, b"GGUF and nothing that is ours")?;
    let _locked = zt::foreign::open_locked(&path)?;
    let error = File::open(&path).unwrap_err();
    assert_eq!((error.code(), error.path()), ("not-zt", Some(&*path)));
    let edited = File::edit(&path).unwrap_err();
    assert_eq!(edited.code(), "locked");
    Ok(())
}

#[test]
fn names_are_held_to_the_rules() -> Result {
    let fixture = Fixture::new()?;
    let mut edit = File::edit(fixture.path())?;
    assert_eq!(edit.remove("x").unwrap_err().code(), "not-found");
    assert_eq!(edit.rename("x", "y").unwrap_err().code(), "not-found");
    assert_eq!(edit.rename("x", "x").unwrap_err().code(), "not-found");
    assert_eq!(edit.rename("a", "b").unwrap_err().code(), "duplicate-name");
    let error = edit.writer().add("a", &dense::<i32>(&[])).unwrap_err();
    assert_eq!(error.code(), "duplicate-name");
    edit.rename("a", "a")?;
    edit.commit()?;
    assert_eq!(values(&File::open(fixture.path())?).len(), 2);
    Ok(())
}

/// The same file, where the object `b` has an unknown dtype.
fn with_a_faulty_object(fixture: &Fixture) -> Result<Vec<u8>> {
    let mut bytes = std::fs::read(fixture.path())?;
    let dtype = b"dtypeci32";
    let at = bytes.windows(dtype.len()).rposition(|text| text == dtype);
    bytes[at.unwrap() + dtype.len() - 1] = b'3';
    ManifestDigest::renew(&mut bytes);
    std::fs::write(fixture.path(), &bytes)?;
    Ok(bytes)
}

#[test]
fn an_object_at_fault_has_its_name_and_can_only_be_removed() -> Result {
    let fixture = Fixture::new()?;
    let bytes = with_a_faulty_object(&fixture)?;
    let told = |result: zt::Result<()>| {
        let error = result.unwrap_err();
        (error.code(), error.object().unwrap_or_default().to_owned())
    };
    let fault = ("dtype", "b".to_owned());
    let mut edit = File::edit(fixture.path())?;
    assert!(edit.contains("b") && edit.contains("a") && !edit.contains("c"));
    assert_eq!(told(edit.check()), fault);
    assert_eq!(told(edit.rename("b", "c")), fault);
    assert_eq!(told(edit.rename("b", "b")), fault);
    let taken = ("duplicate-name", "b".to_owned());
    assert_eq!(told(edit.rename("a", "b")), taken);
    assert_eq!(told(edit.writer().add("b", &dense(&[7]))), taken);
    assert_eq!(told(edit.writer().begin("b", &[1], "dense").map(drop)), taken);
    assert_eq!(told(edit.commit()), fault);
    assert!(std::fs::read(fixture.path())? == bytes, "nothing was lost");

    let mut edit = File::edit(fixture.path())?;
    edit.remove("b")?;
    assert!(!edit.contains("b"));
    assert_eq!(told(edit.remove("b")), ("not-found", "b".to_owned()));
    edit.check()?;
    edit.rename("a", "c")?;
    edit.writer().add("b", &dense(&[7]))?;
    edit.commit()?;
    let file = File::open(fixture.path())?;
    let expected = [("b", vec![7]), ("c", vec![1, 2, 3])];
    let expected = expected.map(|(name, values)| (name.to_owned(), values));
    let expected = BTreeMap::from(expected);
    assert_eq!(values(&file), expected);
    Ok(())
}

/// Their bytes are still being compressed, or written, when they get another name or go.
#[test]
fn added_objects_can_be_renamed_and_removed() -> Result {
    let many: Vec<i32> = (0..3_000_000).map(|at| at / 100).collect();
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1).threads(3)] {
        let fixture = Fixture::new()?;
        let mut edit = options.edit(fixture.path())?;
        for name in ["c", "d", "e"] {
            edit.writer().add(name, &dense(&many))?;
        }
        edit.rename("c", "first")?;
        edit.remove("d")?;
        edit.remove("a")?;
        assert_eq!(edit.remove("d").unwrap_err().code(), "not-found");
        edit.writer().add("d", &dense(&[7]))?;
        edit.commit()?;
        let file = File::open(fixture.path())?;
        let expected =
            [("b", vec![4]), ("d", vec![7]), ("e", many.clone()), ("first", many.clone())];
        let expected = expected.map(|(name, values)| (name.to_owned(), values));
        assert!(values(&file) == BTreeMap::from(expected));
        assert!(file.verify(&VerifyOptions::default())?.is_ok());
    }
    Ok(())
}

/// What its fields mean is not known here, and they would be written as if it were.
#[test]
fn a_later_version_is_read_and_not_edited() -> Result {
    let fixture = Fixture::new()?;
    let mut bytes = std::fs::read(fixture.path())?;
    let version = b"1.2.0";
    let at = bytes.windows(version.len()).position(|it| it == version);
    bytes[at.unwrap() + 2] = b'3';
    ManifestDigest::renew(&mut bytes);
    std::fs::write(fixture.path(), &bytes)?;
    assert_eq!(values(&File::open(fixture.path())?).len(), 2);
    let error = File::edit(fixture.path()).unwrap_err();
    assert_eq!((error.kind(), error.code()), (zt::ErrorKind::Unsupported, "unsupported"));
    assert!(std::fs::read(fixture.path())? == bytes);
    Ok(())
}

/// A format of the caller's, whose objects need a component more than ours do.
struct Scaled;

impl ObjectFormat for Scaled {
    fn id(&self) -> &str {
        "dense"
    }
    fn check(&self, _: &Signature<'_>, _: &Registry) -> zt::formats::Result<()> {
        Err(FormatViolation::MissingComponent.of("scales"))
    }
}

#[test]
fn an_object_that_breaks_a_rule_of_its_format_survives_an_edit() -> Result {
    let fixture = Fixture::new()?;
    let before = values(&File::open(fixture.path())?);
    let registry = zt::registry().with_format(Scaled);
    let mut edit = WriteOptions::new().registry(registry).edit(fixture.path())?;
    assert!(edit.before().tensor("a")?.fault().is_some());
    edit.rename("a", "c")?;
    edit.commit()?;
    let after = values(&File::open(fixture.path())?);
    assert_eq!(before["a"], after["c"]);
    assert_eq!(before["b"], after["b"]);
    Ok(())
}

/// What was split is shared by its place: its name may have gone, or be another object's by now.
#[test]
fn planes_are_shared_with_written_objects_and_not_with_names() -> Result {
    let (first, second) = ([1.5f32; 8192], [2.5f32; 8192]);
    let taken_away: fn(&mut zt::Editor) -> zt::Result<()> = |edit| edit.remove("x");
    let replaced: fn(&mut zt::Editor) -> zt::Result<()> = |edit| {
        edit.remove("x")?;
        edit.writer().add("x", &dense(&[2.5f32; 8192]))
    };
    let renamed: fn(&mut zt::Editor) -> zt::Result<()> = |edit| edit.rename("x", "z");
    for change in [taken_away, replaced, renamed] {
        let fixture = Fixture::new()?;
        let options = WriteOptions::new().planes().deduplicate(true);
        let mut edit = options.edit(fixture.path())?;
        edit.writer().add("x", &dense(&first))?;
        change(&mut edit)?;
        edit.writer().add("y", &dense(&first))?;
        edit.commit()?;
        let file = File::open(fixture.path())?;
        let value = |name: &str| -> zt::Result<Vec<f32>> {
            Ok(file.tensor(name)?.to_dense()?.as_slice::<f32>()?.to_vec())
        };
        assert_eq!(value("y")?, first);
        match file.names().find(|name| ["x", "z"].contains(name)) {
            Some("x") => assert_eq!(value("x")?, second),
            Some(name) => assert_eq!(value(name)?, first),
            None => {}
        }
    }
    Ok(())
}

#[test]
fn compacted_it_holds_what_it_says_and_nothing_else() -> Result {
    let fixture = Fixture::new()?;
    let path = fixture.path();
    let many: Vec<i32> = (0..2_000_000).map(|at| at / 1000).collect();
    let mut edit = WriteOptions::new().zstd(1).deduplicate(true).edit(&path)?;
    edit.writer().add("many", &dense(&many))?;
    edit.writer().add("tied", &dense(&many))?;
    edit.writer().add("unwanted", &dense(&[3; 100_000]))?;
    edit.commit()?;
    let mut edit = File::edit(&path)?;
    edit.remove("unwanted")?;
    edit.remove("a")?;
    edit.commit()?;
    let open = File::open(&path)?;
    let (expected, hashes) = (values(&open), open.hash(&zt::HashOptions::default())?);

    let (before, after) = zt::compact(&path, None)?;
    assert_eq!((before, after), (open.byte_len(), std::fs::metadata(&path)?.len()));
    let file = File::open(&path)?;
    assert_eq!(values(&file), expected);
    assert_eq!(file.hash(&zt::HashOptions::default())?.content, hashes.content);
    let span = |name| file.tensor(name).unwrap().component("data").unwrap().blob.span;
    assert_eq!(span("many"), span("tied"));
    let options = VerifyOptions::new().strict(true);
    assert!(file.verify(&options)?.is_ok());
    assert_eq!(values(&open), expected, "who had it open still has it");
    assert_eq!(zt::compact(&path, None)?, (after, after));
    Ok(())
}

#[test]
fn a_file_with_an_unreadable_object_is_not_compacted() -> Result {
    let fixture = Fixture::new()?;
    let mut bytes = std::fs::read(fixture.path())?;
    bytes[64] ^= 1;
    std::fs::write(fixture.path(), &bytes)?;
    let error = zt::compact(fixture.path(), None).unwrap_err();
    assert_eq!((error.code(), error.object()), ("digest-mismatch", Some("a")));
    assert!(std::fs::read(fixture.path())? == bytes);
    assert_eq!(std::fs::read_dir(fixture.folder.path())?.count(), 1);
    Ok(())
}
