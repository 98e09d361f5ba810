//! Edits in place, one after the other, held against a model of what they are to leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use zt::container::Footer;
use zt::{
    Attributes, Editor, ErrorKind, File, Limits, Memory, NewObject, OpenOptions, Storage,
    VerifyOptions,
};

use super::in_memory::InMemory;
use crate::decisions::Decisions;
use crate::generate;
use crate::written::assert_object;

/// Decisions about a file and what is done to it: after every commit it is the model, an edit that
/// is dropped changes no byte, and one whose storage fails leaves the old file or the new one.
pub fn edits(bytes: &[u8]) {
    let mut from = Decisions::new(bytes);
    let file = generate::file(&mut from);
    let written = file.write(1).expect("what is generated can be written");
    let mut model = Model {
        attributes: file.attributes.clone(),
        objects: file.objects.into_iter().collect(),
        has_gaps: false,
    };
    let storage = Arc::new(InMemory::new(written));
    for _ in 0..1 + from.below(4) {
        edit(&mut from, &storage, &mut model);
    }
}

/// What a file has to hold.
#[derive(Clone)]
struct Model {
    attributes: Option<Attributes>,
    objects: BTreeMap<String, NewObject<'static>>,
    /// Whether bytes of objects that were removed are still in the file.
    has_gaps: bool,
}

fn edit(from: &mut Decisions<'_>, storage: &Arc<InMemory>, model: &mut Model) {
    let found = storage.bytes();
    let options = generate::options(from).write_options().threads(1);
    let mut editor = options
        .edit_storage(Arc::clone(storage) as Arc<dyn Storage>)
        .expect("a file of ours can be edited");
    // What an edit that failed has left behind the file is taken away at once.
    let before = storage.bytes();
    assert!(found.starts_with(&before));
    storage.set_fuse(from.maybe(3, |from| from.below(24)));
    let mut next = model.clone();
    let done = (0..from.below(6)).try_for_each(|_| step(from, &mut editor, &mut next));
    // Nobody sees anything of it yet.
    model.assert_is(&storage.bytes());
    let is_dropped = from.once_in(5);
    let outcome = match done {
        Ok(()) if is_dropped => {
            drop(editor);
            None
        }
        Ok(()) => Some(editor.commit()),
        Err(error) => {
            drop(editor);
            Some(Err(error))
        }
    };
    let (after, is_blown) = (storage.bytes(), storage.is_blown());
    if let Some(Err(error)) = &outcome {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(is_blown, "{error}");
    }
    match outcome {
        Some(Ok(())) => *model = next,
        None | Some(Err(_)) if !is_blown => {
            assert!(
                without_note(&after) == without_note(&before),
                "nothing was committed, and something changed"
            );
        }
        // What could not be undone lies behind the old file, or before the new one.
        _ => {
            if manifest(&after) != manifest(&before) {
                *model = next;
            }
            model.has_gaps = true;
        }
    }
    storage.set_fuse(None);
    model.assert_is(&after);
    assert_blobs_stay(&before, &after);
}

/// An edit that is dropped takes away the note of one that failed before.
fn without_note(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.get(8..16) == Some(b"ZT-EDIT\0") {
        bytes[8..24].fill(0);
    }
    bytes
}

/// Those who have the old file open keep what they had.
fn assert_blobs_stay(before: &[u8], after: &[u8]) {
    let file = File::from_bytes(before.to_vec()).expect("it was checked");
    for entry in file.entries() {
        let object = entry.object().expect("it was checked");
        for (role, component) in &object.components {
            let span = component.blob.span;
            let range = span.offset() as usize..span.end() as usize;
            assert!(after[range.clone()] == before[range], "{}: {role}", entry.name());
        }
    }
}

fn manifest(bytes: &[u8]) -> &[u8] {
    // Of the old file, where an edit has not finished.
    let opened = File::from_bytes(bytes.to_vec()).expect("the old file or the new one");
    let bytes = &bytes[..opened.byte_len() as usize];
    let footer = Footer::locate(&Memory::new(bytes), &Limits::default());
    let span = footer.expect("the old file or the new one").manifest();
    &bytes[span.offset() as usize..span.end() as usize]
}

/// One change, made to the file and to the model. Only the storage gives errors.
fn step(from: &mut Decisions<'_>, editor: &mut Editor, model: &mut Model) -> zt::Result<()> {
    let known = |from: &mut Decisions<'_>, model: &Model| {
        let at = from.below(model.objects.len() + 1);
        let name = model.objects.keys().nth(at).cloned();
        name.unwrap_or_else(|| generate::name(from))
    };
    match from.below(8) {
        0..=2 => {
            let (name, object) = (known(from, model), generate::object(from));
            let is_taken = model.objects.contains_key(&name);
            match editor.writer().add(&name, &object) {
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => assert_eq!((error.code(), is_taken), ("duplicate-name", true)),
                Ok(()) => {
                    assert!(!is_taken, "{name:?} twice");
                    model.objects.insert(name, object);
                }
            }
        }
        3 | 4 => {
            let name = known(from, model);
            let removed = model.objects.remove(&name);
            let outcome = editor.remove(&name).map_err(|error| error.code());
            assert_eq!(outcome.err(), removed.is_none().then_some("not-found"));
            model.has_gaps |= removed.is_some();
        }
        5 | 6 => {
            let (old, new) = (known(from, model), known(from, model));
            let outcome = editor.rename(&old, &new).map_err(|error| error.code());
            let is_taken = old != new && model.objects.contains_key(&new);
            match model.objects.remove(&old) {
                // Both names are wrong then, and either may be told.
                None if is_taken => assert!(outcome.is_err()),
                None => assert_eq!(outcome, Err("not-found")),
                Some(object) if is_taken => {
                    assert_eq!(outcome, Err("duplicate-name"));
                    model.objects.insert(old, object);
                }
                Some(object) => {
                    assert_eq!(outcome, Ok(()));
                    model.objects.insert(new, object);
                }
            }
        }
        _ => {
            let attributes = from.maybe(2, generate::attributes);
            assert!(editor.set_attributes(attributes.clone()).is_ok(), "generated attributes");
            model.attributes = attributes;
        }
    }
    Ok(())
}

impl Model {
    fn assert_is(&self, bytes: &[u8]) {
        let options = OpenOptions::new().strict(true);
        let file = options.open_bytes(bytes.to_vec());
        let file = file.expect("every object reads");
        assert_eq!(file.attributes().expect("in memory"), self.attributes);
        let mut names: Vec<&str> = file.names().collect();
        names.sort_unstable();
        assert!(names.iter().eq(self.objects.keys()), "{names:?}");
        for (name, object) in &self.objects {
            assert_object(&file, name, object);
        }
        let options = VerifyOptions::new().strict(true);
        let report = file.verify(&options).expect("nobody interrupts");
        for problem in &report.problems {
            assert!(self.has_gaps && problem.code() == "padding", "{problem}");
        }
    }
}
