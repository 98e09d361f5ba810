//! Sets of several files, from one input.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zt::{Memory, OpenOptions, Result, Source};
use zt_convert::foreign::{Existing, Folder, Opened, TargetFolder};
use zt_convert::{ConvertOptions, GGUF, Input, Kinds, SplitOptions};

use super::limits;
use crate::observe::observe;

/// The most files of a set.
const FILES_MAX: usize = 4;

/// The files of a GGUF set, each after its length in two bytes. All files open the same set, or none does. A
/// set is the same after it was split again, and both are the same file when they are merged.
pub fn gguf_set(bytes: &[u8]) {
    let folder = Files::parts(bytes);
    let names = folder.names();
    let sets: Vec<Input> = names
        .iter()
        .filter_map(|name| folder.open_file(name).ok())
        .filter(|input| input.paths().len() == names.len())
        .collect();
    let Some((set, others)) = sets.split_first().filter(|_| names.len() > 1) else {
        return;
    };
    assert_eq!(sets.len(), names.len(), "some files open no set");
    let seen = observe(Ok(set.file().clone()));
    for other in others {
        assert_eq!(observe(Ok(other.file().clone())), seen);
    }

    let Some(whole) = merged(set) else {
        return;
    };
    let again = Files::default();
    let options = SplitOptions::new(ConvertOptions::new(GGUF)).max_tensors(1);
    let split = Kinds::builtin().split_to_store(std::slice::from_ref(set), &again, &options);
    split.expect("a set that was merged can be split");
    for name in again.names() {
        let opened = again.open_file(&name).expect("we wrote the set");
        assert_eq!(merged(&opened).as_ref(), Some(&whole));
    }
}

/// The set as one file; `None` if GGUF cannot represent something of it.
fn merged(set: &Input) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    let options = ConvertOptions::new(GGUF);
    let summary = Kinds::builtin().convert(std::slice::from_ref(set), &mut whole, &options).ok()?;
    let is_lossy = summary.warnings.iter().any(|it| it.code == "lossy");
    (!is_lossy).then_some(whole)
}

/// A folder in memory.
#[derive(Debug, Default)]
struct Files(Mutex<BTreeMap<String, Vec<u8>>>);

impl Files {
    fn parts(mut bytes: &[u8]) -> Self {
        let mut parts = Vec::new();
        while let Some((len, rest)) = bytes.split_first_chunk::<2>()
            && parts.len() < FILES_MAX
        {
            let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
            let (part, rest) = rest.split_at(len);
            parts.push(part.to_vec());
            bytes = rest;
        }
        let count = parts.len();
        let name = |number| format!("m-{number:05}-of-{count:05}.gguf");
        Files(Mutex::new((1..=count).map(name).zip(parts).collect()))
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> Vec<String> {
        self.files().keys().cloned().collect()
    }

    fn open_file(&self, name: &str) -> Result<Input> {
        let bytes = self.files().get(name).cloned().unwrap_or_default();
        let options = OpenOptions::new().limits(limits());
        Kinds::builtin().open_in(Memory::new(bytes), self.path_of(name), self, options)
    }
}

impl Folder for Files {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let files = self.files();
        let open = |name: &&str| {
            let bytes = files.get(*name).cloned();
            Ok(bytes.map(|bytes| Box::new(Memory::new(bytes)) as Box<dyn Source>))
        };
        locations.iter().map(open).collect()
    }
}

impl TargetFolder for Files {
    fn path_of(&self, name: &str) -> PathBuf {
        Path::new("memory:").join(name)
    }

    fn contains(&self, name: &str) -> Result<bool> {
        Ok(self.files().contains_key(name))
    }

    fn write(
        &self,
        name: &str,
        _: Existing,
        write: &mut dyn FnMut(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        self.files().insert(name.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.files().remove(name);
        Ok(())
    }
}
