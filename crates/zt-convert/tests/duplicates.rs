//! Objects of one name in several inputs: which one is written, and which one is reported.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::path::{Path, PathBuf};

use zt::{Dense, File, OpenOptions, WriteOptions};
use zt_convert::{ConvertOptions, Duplicate, Input, Kinds, OnDuplicate, SplitOptions, ZT};

const LEN: usize = 64;

/// A file in which each object has one value throughout.
fn file(path: &Path, objects: &[(&str, f32)]) -> Input {
    write(path, objects, WriteOptions::new())
}

fn write(path: &Path, objects: &[(&str, f32)], options: WriteOptions) -> Input {
    let mut writer = options.create(path).unwrap();
    for (name, value) in objects {
        let values = [*value; LEN];
        let dense = Dense::from_slice(&[LEN as u64], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    Kinds::builtin().open(path, OpenOptions::new()).unwrap()
}

/// The objects in the order of their data, each with its first value.
fn objects(path: &Path) -> Vec<(String, f32)> {
    let file = File::open(path).unwrap();
    let entries = file.entries().into_iter();
    let objects = entries.map(|entry| {
        let tensor = entry.tensor().unwrap();
        let value = tensor.values::<f32>().unwrap()[0];
        (entry.name().to_owned(), value)
    });
    objects.collect()
}

fn named(objects: &[(&str, f32)]) -> Vec<(String, f32)> {
    let owned = |(name, value): &(&str, f32)| ((*name).to_owned(), *value);
    objects.iter().map(owned).collect()
}

struct Inputs {
    _dir: tempfile::TempDir,
    /// Three files, and an output.
    paths: [PathBuf; 4],
    inputs: Vec<Input>,
}

/// `b` is equal in the first two files, and `a` is not.
fn inputs() -> Inputs {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["1.zt", "2.zt", "3.zt", "out.zt"].map(|name| dir.path().join(name));
    let inputs = vec![
        file(&paths[0], &[("a", 1.0), ("b", 5.0), ("c", 3.0)]),
        write(&paths[1], &[("b", 5.0), ("d", 4.0)], WriteOptions::new().planes()),
        file(&paths[2], &[("a", 2.0)]),
    ];
    Inputs { _dir: dir, paths, inputs }
}

fn on_duplicate(policy: OnDuplicate) -> ConvertOptions<'static> {
    ConvertOptions::new(ZT).on_duplicate(policy)
}

fn duplicate(name: &str, path: &Path) -> Duplicate {
    Duplicate::new(name, Some(path.to_owned()))
}

#[test]
fn the_first_object_or_the_last_one_is_written_and_the_other_one_reported() {
    let Inputs { _dir, paths: [one, two, three, out], inputs } = inputs();
    let first = on_duplicate(OnDuplicate::First);
    let summary = Kinds::builtin().convert_to_path(&inputs, &out, &first).unwrap();
    let expected = [("a", 1.0), ("b", 5.0), ("c", 3.0), ("d", 4.0)];
    assert_eq!(objects(&out), named(&expected));
    let left = [duplicate("b", &two), duplicate("a", &three)];
    assert_eq!(summary.duplicates, left);
    assert_eq!((summary.objects, summary.left_out.len()), (4, 0));

    let last = on_duplicate(OnDuplicate::Last).overwrite(true);
    let summary = Kinds::builtin().convert_to_path(&inputs, &out, &last).unwrap();
    let expected = [("a", 2.0), ("b", 5.0), ("c", 3.0), ("d", 4.0)];
    assert_eq!(objects(&out), named(&expected));
    let left = [duplicate("b", &one), duplicate("a", &one)];
    assert_eq!(summary.duplicates, left);
}

#[test]
fn equal_objects_are_one_and_different_ones_an_error_that_names_both_inputs() {
    let Inputs { _dir, paths: [one, two, three, out], inputs } = inputs();
    let same = on_duplicate(OnDuplicate::Same);
    // How values are stored does not matter.
    let summary = Kinds::builtin().convert_to_path(&inputs[..2], &out, &same).unwrap();
    assert_eq!(summary.duplicates, [duplicate("b", &two)]);
    let error = Kinds::builtin().convert_to_path(&inputs, &out, &same.overwrite(true)).unwrap_err();
    assert_eq!((error.code(), error.object()), ("duplicate-name", Some("a")));
    let text = error.to_string();
    for path in [one, three] {
        assert!(text.contains(path.to_str().unwrap()), "{text}");
    }
}

#[test]
fn an_object_that_cannot_be_compared_is_an_error_of_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two, out] = ["1.zt", "2.zt", "out.zt"].map(|name| dir.path().join(name));
    let sound = file(&one, &[("a", 1.0)]);
    file(&two, &[("a", 1.0)]);
    let mut bytes = std::fs::read(&two).unwrap();
    bytes[64] ^= 1;
    std::fs::write(&two, bytes).unwrap();
    let damaged = Kinds::builtin().open(&two, OpenOptions::new()).unwrap();
    let inputs = [sound, damaged];
    let same = on_duplicate(OnDuplicate::Same);
    let error = Kinds::builtin().convert_to_path(&inputs, &out, &same).unwrap_err();
    assert_eq!((error.code(), error.path()), ("digest-mismatch", Some(&*two)));
    // A damaged object that is skipped is no duplicate.
    let summary =
        Kinds::builtin().convert_to_path(&inputs, &out, &same.skip_damaged(true)).unwrap();
    assert_eq!((summary.duplicates.len(), summary.objects), (0, 1));
    assert_eq!(summary.damaged, ["a"]);
}

#[test]
fn an_object_of_the_edited_file_stays_or_is_replaced() {
    let Inputs { _dir, paths: [one, _, three, _], inputs } = inputs();
    let run = |policy| {
        let mut edit = File::edit(&one).unwrap();
        let summary = Kinds::builtin().append(&inputs[2..], &mut edit, &on_duplicate(policy));
        summary.inspect(|_| edit.commit().unwrap())
    };
    for policy in [OnDuplicate::Error, OnDuplicate::Same] {
        assert_eq!(run(policy).unwrap_err().code(), "duplicate-name");
    }
    let before = [("a", 1.0), ("b", 5.0), ("c", 3.0)];
    let summary = run(OnDuplicate::First).unwrap();
    assert_eq!(summary.duplicates, [duplicate("a", &three)]);
    assert_eq!((summary.objects, objects(&one)), (0, named(&before)));
    let summary = run(OnDuplicate::Last).unwrap();
    assert_eq!(summary.duplicates, [duplicate("a", &one)]);
    let after = [("b", 5.0), ("c", 3.0), ("a", 2.0)];
    assert_eq!((summary.objects, objects(&one)), (1, named(&after)));
    assert_eq!(run(OnDuplicate::Same).unwrap().duplicates.len(), 1);
    assert_eq!(objects(&one), named(&after));
}

#[test]
fn a_set_reports_duplicates_too() {
    let Inputs { _dir, paths: [.., three, out], inputs } = inputs();
    let options = SplitOptions::new(on_duplicate(OnDuplicate::First));
    let split = Kinds::builtin().split(&inputs, out.parent().unwrap(), &options.stem("model"));
    let duplicates = split.unwrap().duplicates;
    assert_eq!(duplicates.last(), Some(&duplicate("a", &three)));
}
