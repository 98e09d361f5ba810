//! Checkpoints of torch.distributed.checkpoint on a store.
#![cfg(feature = "dcp")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use zt::{FileSource, Source};
use zt_convert::foreign::{Folder, Opened};
use zt_convert::{DCP, Input, InputOptions, Kinds};

fn corpus(checkpoint: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/dcp");
    folder.join(checkpoint)
}

/// A folder that counts the reads of each file.
#[derive(Debug)]
struct Counted {
    folder: PathBuf,
    reads: Arc<Mutex<BTreeMap<String, usize>>>,
}

struct CountedFile {
    name: String,
    file: FileSource,
    reads: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Folder for Counted {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let open = |name: &&str| -> Opened {
            Ok(Some(Box::new(CountedFile {
                name: (*name).to_owned(),
                file: FileSource::open(self.folder.join(name))?,
                reads: Arc::clone(&self.reads),
            })))
        };
        locations.iter().map(open).collect()
    }
}

impl Source for CountedFile {
    fn byte_len(&self) -> u64 {
        self.file.byte_len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut reads = self.reads.lock().unwrap();
        *reads.entry(self.name.clone()).or_default() += 1;
        self.file.read_at(offset, out)
    }
}

fn open(checkpoint: &str) -> (Input, Arc<Mutex<BTreeMap<String, usize>>>) {
    let folder = Counted { folder: corpus(checkpoint), reads: Arc::default() };
    let metadata = FileSource::open(corpus(checkpoint).join(".metadata")).unwrap();
    let url = format!("s3://bucket/{checkpoint}/.metadata");
    let kinds = Kinds::builtin();
    let input = kinds.open_in(metadata, url, &folder, InputOptions::new());
    (input.unwrap(), folder.reads)
}

#[test]
fn a_listing_reads_no_item() {
    let (input, reads) = open("rows");
    assert_eq!(input.file().kind(), DCP);
    let names = ["", "__0_0.distcp", "__1_0.distcp"].map(|name| match name {
        "" => "s3://bucket/rows/.metadata".into(),
        name => PathBuf::from(format!("s3://bucket/rows/{name}")),
    });
    assert_eq!(input.paths(), names);
    let tensor = input.file().tensor("w").unwrap();
    assert_eq!(tensor.shape(), [4, 2]);
    assert!(reads.lock().unwrap().is_empty());
    // A slice reads the bytes around it, too, so both files are read here.
    let rows = |range: Range<u64>| tensor.slice(&[range.into()]).unwrap();
    assert_eq!(*rows(2..4).as_slice::<f32>().unwrap(), [4.0, 5.0, 6.0, 7.0]);
    assert_eq!(*rows(1..3).as_slice::<f32>().unwrap(), [2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn tiles_of_a_mesh_are_put_together() {
    let (input, _) = open("mesh");
    let tensor = input.file().tensor("tiles").unwrap();
    let whole = tensor.values::<f32>().unwrap();
    let expected: Vec<f32> = (0..35u8).map(f32::from).collect();
    assert_eq!(*whole, *expected);
}

/// A few bytes of metadata could be any number of elements, which commands would read for ever.
#[test]
fn a_chunk_that_is_longer_than_its_item_is_refused_before_a_read() {
    let mut metadata = std::fs::read(corpus("alone").join(".metadata")).unwrap();
    // The tuple (2, 3), as the pickle has it.
    let found = metadata.windows(5).filter(|five| five == b"K\x02K\x03\x86").count();
    assert!(found > 1, "the size and its chunk");
    for at in 0..metadata.len() - 4 {
        if metadata[at..].starts_with(b"K\x02K\x03\x86") {
            metadata[at + 3] = 255;
        }
    }
    let folder = Counted { folder: corpus("alone"), reads: Arc::default() };
    let (source, url) = (zt::Memory::new(metadata), "s3://bucket/.metadata".to_owned());
    let input = Kinds::builtin().open_in(source, url, &folder, InputOptions::new());
    let input = input.unwrap();
    let error = input.file().tensor("model.0.weight").unwrap_err();
    assert_eq!(error.code(), "shape-size-mismatch", "{error}");
    assert!(folder.reads.lock().unwrap().is_empty());
    let report = input.file().verify(&zt::VerifyOptions::new()).unwrap();
    assert!(report.problems.iter().any(|problem| problem.code() == "shape-size-mismatch"));
}

#[test]
fn bytes_without_a_folder_are_listed_and_say_that_they_need_one() {
    let metadata = FileSource::open(corpus("rows").join(".metadata")).unwrap();
    let input = Kinds::builtin().open_source(metadata, InputOptions::new());
    let file = input.unwrap().into_file();
    assert_eq!(file.names().collect::<Vec<_>>(), ["w"]);
    assert_eq!(file.tensor("w").unwrap_err().code(), "unsupported");
}
