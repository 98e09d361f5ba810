//! Names and texts that would control a terminal. Windows has no such names of files.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::tempdir;
use zt::{Dense, Writer};

#[test]
fn names_of_files_cannot_control_the_terminal() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("\x1b[2Jgone");
    std::fs::write(&path, "no tensors").unwrap();
    for command in ["ls", "verify", "hash"] {
        let run = zt![command, path].exits(3);
        assert!(run.err.contains("\\u{1b}[2Jgone"), "{}", run.err);
    }
    let run = zt!["convert", path, dir.path().join("\x1b[2J")].exits(2);
    assert!(!run.err.contains('\x1b'), "{}", run.err);
}

/// A terminal obeys U+009B and what follows; the others hide or turn round what is beside them.
const EVIL: &str = "\u{9b}2J\x1b[31m\u{7f}\u{202e}\u{200b}\u{feff}\u{e0001}\r\x08x";

/// Two objects, of a known and of an unknown format, whose names, attributes, roles and types are evil.
fn evil(folder: &Path, number: u32) -> PathBuf {
    let path = folder.join(format!("{number}{EVIL}.zt"));
    let mut writer = Writer::create(&path).unwrap();
    writer.set_attributes([(EVIL, EVIL)].into()).unwrap();
    let name = format!("{EVIL}{number}");
    writer.add(&name, &Dense::from_slice(&[2, 2], &[1f32; 4]).unwrap()).unwrap();
    let mut object = writer.begin(&format!("{name}?"), &[1], EVIL).unwrap();
    object.set_attributes([(EVIL, EVIL)].into()).unwrap();
    let mut component = object.component(EVIL, zt::DType::U8, Some(EVIL.into())).unwrap();
    component.write_all(&[1]).unwrap();
    component.finish().unwrap();
    object.finish().unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn no_command_passes_on_characters_that_control_a_terminal() {
    let dir = tempdir().unwrap();
    let folder = dir.path().join(EVIL);
    std::fs::create_dir(&folder).unwrap();
    let [a, b] = [1, 2].map(|number| evil(&folder, number));
    let [a, b] = [a, b].map(|path| path.to_str().unwrap().to_owned());
    let mut damaged = std::fs::read(&b).unwrap();
    damaged[64] ^= 1;
    let cut = folder.join("cut.zt");
    std::fs::write(&cut, &damaged[..100]).unwrap();
    let cut = cut.to_str().unwrap();
    let broken = folder.join("damaged.zt");
    std::fs::write(&broken, &damaged).unwrap();
    let broken = broken.to_str().unwrap();
    let out = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let name = format!("{EVIL}1");
    let unknown = format!("{name}?");
    let rule = format!("s/{EVIL}1/{EVIL}3/");
    let mut count = 0;
    for arguments in [
        &["ls", &a, &b][..],
        &["ls", &a, "--long"],
        &["ls", &a, "--tree"],
        &["ls", &out("")],
        &["info", &a],
        &["show", &a, &name],
        &["show", &a, &unknown],
        &["show", &a, "none"],
        &["verify", &a, broken, cut],
        &["hash", &a],
        &["hash", &a, &b, "--sums"],
        &["diff", &a, &b],
        &["diff", &a, broken, "--values"],
        &["meta", "get", &a],
        &["meta", "get", &a, EVIL],
        &["meta", "get", &a, "none"],
        &["convert", &a, &out("o.safetensors")],
        &["convert", &a, &out("o.npz"), "--drop-unsupported"],
        &["convert", broken, &out("o.zt"), "--skip-damaged"],
        &["convert", &a, &out("p.zt"), "--include", EVIL],
        &["merge", &a, &b, &out("m.zt")],
        &["split", &a, "-o", &out(""), "--name", EVIL],
        &["quantize", &a, &out("q.zt")],
        &["extract", &a, "-o", &out("e")],
        &["append", &a, &b],
        &["append", &a, &b, "-n"],
        &["rename", &a, "--rule", &rule, "-n"],
        &["rename", &a, &name, &format!("{EVIL}4"), "-n"],
        &["meta", "set", &a, EVIL, EVIL],
        &["meta", "rm", &a, EVIL],
        &["rm", &a, &format!("{EVIL}2")],
        &["rm", &a, "none"],
        &["compact", &a],
        &["repair", cut],
        &["repair", &a],
        &["explain", EVIL],
        &[EVIL],
    ] {
        for json in [&[][..], &["--json"]] {
            let run = common::zt(arguments.iter().chain(json));
            assert!(!run.err.contains("panicked"), "{}", run.err);
            for text in [&run.text(), &run.err] {
                let found = text
                    .chars()
                    .find(|c| *c != '\n' && (c.is_control() || EVIL.contains(*c) && !c.is_ascii()));
                assert_eq!(found, None, "{arguments:?} {json:?}: {text}");
            }
            if !json.is_empty() && !run.out.is_empty() {
                run.json();
            }
            count += 1;
        }
    }
    assert_eq!(count, 74);
}
