//! `zt show` of large objects.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{damaged, sample};
use tempfile::tempdir;
use zt::{Compression, Dense, Planes, WriteOptions};

/// Runs the program with little memory: megabytes of address space.
#[cfg(target_os = "linux")]
fn limited(megabytes: u32, arguments: &[&std::ffi::OsStr]) -> common::Run {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -v $0 && exec \"$@\""]);
    command.arg((megabytes << 10).to_string());
    command.arg(env!("CARGO_BIN_EXE_zt")).args(arguments);
    common::run(&mut command)
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_object_needs_little_memory() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("w.zt");
    let zeros = vec![zt::formats::Complex::<f64>::default(); 3 << 20];
    let mut writer = WriteOptions::new().create(&path).unwrap();
    writer.add("w", &Dense::from_slice(&[3 << 20], &zeros).unwrap()).unwrap();
    writer.finish().unwrap();
    let path = path.as_os_str();
    // The program itself takes 46 MiB of that, and the values are 48.
    if limited(72, &["--version".as_ref()]).code != Some(0) {
        return; // A sanitizer takes more.
    }
    let limited = |arguments: &[&str]| {
        let [command, options @ ..] = arguments else { panic!() };
        let fixed = [command.as_ref(), path, "w".as_ref()];
        let options = options.iter().map(|option| option.as_ref());
        limited(72, &fixed.into_iter().chain(options).collect::<Vec<_>>())
    };
    let corners = "[0.0+0.0j 0.0+0.0j 0.0+0.0j ... 0.0+0.0j 0.0+0.0j 0.0+0.0j]\n";
    let text = limited(&["show"]).exits(0).text();
    let digests = "data has a crc32c of each 1.0 MiB\n";
    assert_eq!(text, format!("w: dense complex128 3145728\n{digests}{corners}"));
    let text = limited(&["show", "--slice=::-1"]).exits(0).text();
    assert!(text.ends_with(corners), "{text}");
    let text = limited(&["show", "--component=data"]).exits(0).text();
    assert!(
        text.ends_with(&format!("f64 6291456\n{digests}[0.0 0.0 0.0 ... 0.0 0.0 0.0]\n")),
        "{text}"
    );
    let text = limited(&["show", "--stats"]).exits(0).text();
    assert!(text.contains("count 3145728, zeros 3145728"), "{text}");
    // JSON has all values.
    let run = limited(&["show", "--json"]).exits(4);
    assert_eq!(run.error_code(), "allocation");
    assert!(run.err.contains("note: --slice "), "{}", run.err);
    assert!(run.err.contains("w.zt: w: "), "{}", run.err);
}

#[test]
fn the_corners_are_those_of_the_whole() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("corners.zt");
    let values: Vec<f32> = (0..40 * 50).map(|value| value as f32).collect();
    let dense = Dense::from_slice(&[40, 50], &values).unwrap();
    let options = WriteOptions::new().compression(Compression::Zstd(3));
    let mut writer = options.create(&path).unwrap();
    writer.add("dense", &dense).unwrap();
    writer.add("planes", &Planes::from_dense(&dense).unwrap()).unwrap();
    writer.finish().unwrap();
    let words = |text: &str| -> Vec<String> {
        let (_, array) = text.split_once('\n').unwrap();
        let words = array.split(['[', ']', ' ', '\n']);
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let mut expected = Vec::new();
    for row in [0, 1, 2, 37, 38, 39] {
        let value = |column: u32| format!("{}.0", row * 50 + column);
        expected.extend([0, 1, 2].map(value));
        expected.push("...".to_owned());
        expected.extend([47, 48, 49].map(value));
        expected.extend((row == 2).then(|| "...".to_owned()));
    }
    for name in ["dense", "planes"] {
        let text = zt!["show", path, name].exits(0).text();
        assert_eq!(words(&text), expected, "{name}");
        // Rows from the last to the first, and one column.
        let text = zt!["show", path, name, "--slice", "::-1,::2"].exits(0).text();
        let cells = words(&text);
        assert_eq!(cells[..3], ["1950.0", "1952.0", "1954.0"], "{name}");
        assert_eq!(cells[cells.len() - 1], "48.0", "{name}");
    }
}

#[test]
fn an_array_without_a_middle_shows_its_beginning() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("deep.zt");
    let values: Vec<f32> = (0..1 << 13).map(|value| value as f32).collect();
    let mut writer = WriteOptions::new().create(&path).unwrap();
    let dense = Dense::from_slice(&[2; 13], &values).unwrap();
    writer.add("w", &dense).unwrap();
    writer.finish().unwrap();
    let text = zt!["show", path, "w", "--stats"].exits(0).text();
    assert!(text.contains("4095.0]]") && !text.contains("4096.0]"), "{text}");
    assert!(text.contains("count 8192, "), "{text}");
}

#[test]
fn a_small_object_is_checked_against_its_digest() {
    let dir = tempdir().unwrap();
    assert_eq!(
        zt!["show", "--json", damaged(dir.path()), "w"].exits(1).error_code(),
        "digest-mismatch"
    );
    zt!["show", sample(dir.path()), "w"].exits(0);
}

/// What `zt show` prints of an array.
fn printed<T: zt::formats::Element>(shape: &[u64], values: &[T]) -> String {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.zt");
    let mut writer = WriteOptions::new().create(&path).unwrap();
    writer.add("x", &Dense::from_slice(shape, values).unwrap()).unwrap();
    writer.finish().unwrap();
    let text = zt!["show", path, "x"].exits(0).text();
    text.trim_end().split_once('\n').unwrap().1.to_owned()
}

#[test]
fn arrays_are_printed_as_numpy_prints_them() {
    let numbers: Vec<i64> = (0..1001).collect();
    for (shape, expected) in [
        (&[2, 3][..], "[[0 1 2]\n [3 4 5]]"),
        (&[2, 1, 2], "[[[0 1]]\n\n [[2 3]]]"),
        (&[1001], "[   0    1    2 ...  998  999 1000]"),
        (&[2, 0], "[]"),
    ] {
        let len = usize::try_from(shape.iter().product::<u64>()).unwrap();
        assert_eq!(printed(shape, &numbers[..len]), expected);
    }
    assert_eq!(printed(&[3], &[0i64, 5, 10]), "[ 0  5 10]");
    assert_eq!(printed(&[], &[1.5f32]), "1.5");
    assert_eq!(printed(&[3], &[1.5f32, -10.25, f32::NAN]), "[  1.5  -10.25    nan]");
    // A large array shows its corners.
    let many: Vec<u32> = (0..250_000).collect();
    let text = printed(&[500, 500], &many);
    assert_eq!(text.lines().count(), 7, "{text}");
    assert!(text.contains("\n ...\n") && text.ends_with("249999]]"), "{text}");
    // Lines break before the right margin.
    let text = printed(&[100], &many[1000..1100]);
    assert!(text.lines().all(|line| line.len() <= 75) && text.lines().count() > 1, "{text}");
}

#[test]
fn minimum_and_maximum_of_integers_are_exact() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.zt");
    let odd = 9_007_199_254_740_993i64;
    let mut writer = WriteOptions::new().create(&path).unwrap();
    writer.add("x", &Dense::from_slice(&[2], &[odd, -odd]).unwrap()).unwrap();
    writer.add("y", &Dense::from_slice(&[1], &[0.5f32]).unwrap()).unwrap();
    writer.finish().unwrap();
    let of =
        |name: &str| zt!["show", "--stats", "--json", path, name].exits(0).json()["stats"].clone();
    assert_eq!((&of("x")["min"], &of("x")["max"]), (&(-odd).into(), &odd.into()));
    assert_eq!((&of("y")["min"], &of("y")["max"]), (&0.5.into(), &0.5.into()));
}

#[test]
fn names_are_escaped_and_shortened() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.safetensors");
    let row = |name: &str| {
        common::of_sizes(&path, &[(name, 1)]);
        let text = zt!["ls", path].exits(0).text();
        text.lines().nth(1).unwrap().split("  dense").next().unwrap().trim_end().to_owned()
    };
    for (name, shown) in [
        ("a.b \"c\" \u{e9}\u{6f22}", "a.b \"c\" \u{e9}\u{6f22}"),
        ("\x1b[31m\nx", "\\u{1b}[31m\\nx"),
        ("w\u{202e}x", "w\\u{202e}x"),
        ("", "\"\""),
        ("a ", "\"a \""),
        ("a b", "a b"),
    ] {
        assert_eq!(row(name), shown);
    }
    let long = row(&format!("a{}z", "é".repeat(5000)));
    assert!(long.starts_with("aé") && long.ends_with("éz") && long.contains('…'), "{long}");
    assert!(long.chars().count() < 1000);
}
