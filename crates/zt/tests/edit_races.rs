//! Editors and readers of one file at the same time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use zt::{Dense, File, Storage, WriteOptions, Writer};

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const EDITS: usize = 200;

fn dense(values: &[u64]) -> Dense<'_> {
    Dense::from_slice(&[values.len() as u64], values).unwrap()
}

/// A file of one object `0` that is `[0, 0, ...]`.
fn create(path: &std::path::Path) -> Result {
    let mut writer = Writer::create(path)?;
    writer.add("0", &dense(&[0; 64]))?;
    Ok(writer.finish()?)
}

#[test]
fn readers_open_the_file_at_any_moment_of_200_edits() -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("x.zt");
    create(&path)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut opened = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let file = File::open(&path).unwrap_or_else(|error| {
                            panic!("after {opened} times: {error}");
                        });
                        // One object, called and filled as the edit that has made it.
                        let names: Vec<&str> = file.names().collect();
                        let [name] = names[..] else {
                            panic!("{names:?}");
                        };
                        let values = file.tensor(name).unwrap().to_vec::<u64>().unwrap();
                        assert_eq!(values, [name.parse().unwrap(); 64]);
                        opened += 1;
                    }
                    opened
                })
            })
            .collect();
        let edits = (1..=EDITS).try_for_each(|at| {
            let mut edit = File::edit(&path)?;
            edit.remove(&(at - 1).to_string())?;
            edit.writer().add(&at.to_string(), &dense(&[at as u64; 64]))?;
            edit.commit()
        });
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
        edits
    })?;
    assert_eq!(File::open(&path)?.names().collect::<Vec<_>>(), ["200"]);
    Ok(())
}

#[test]
fn one_of_racing_editors_gets_the_file() -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("x.zt");
    create(&path)?;
    let (start, committed) = (Barrier::new(4), AtomicUsize::new(0));
    let refused = AtomicUsize::new(0);
    thread::scope(|scope| {
        for editor in 0..4 {
            let (path, start, committed, refused) = (&path, &start, &committed, &refused);
            scope.spawn(move || {
                start.wait();
                for at in 0..25 {
                    let mut edit = match File::edit(path) {
                        Ok(edit) => edit,
                        Err(error) => {
                            assert_eq!(error.code(), "locked");
                            refused.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                    };
                    let name = format!("{editor}.{at}");
                    edit.writer().add(&name, &dense(&[at; 8])).unwrap();
                    edit.commit().unwrap();
                    committed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let committed = committed.into_inner();
    assert!(committed > 0);
    assert_eq!(committed + refused.into_inner(), 100);
    let file = File::open(&path)?;
    assert_eq!(file.len(), 1 + committed, "none is lost");
    let report = file.verify(&zt::VerifyOptions::default())?;
    assert!(report.is_ok(), "{report:?}");
    Ok(())
}

/// A file that can grow by this many bytes only.
struct SmallDisk {
    file: std::sync::Mutex<Vec<u8>>,
    most: usize,
    changes: AtomicUsize,
}

impl Storage for SmallDisk {
    fn byte_len(&self) -> std::io::Result<u64> {
        Ok(self.file.lock().unwrap().len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let file = self.file.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let bytes = file.get(start..start + buf.len());
        buf.copy_from_slice(bytes.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn set_len(&self, byte_len: u64) -> std::io::Result<()> {
        let len = self.byte_len()?;
        self.changes.fetch_add(usize::from(byte_len != len), Ordering::Relaxed);
        Ok(())
    }

    fn reserve(&self, offset: u64, byte_len: u64) -> std::io::Result<()> {
        match offset + byte_len > self.most as u64 {
            true => Err(std::io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_before_anything_changes() -> Result {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes)?;
    writer.add("0", &dense(&[0; 64]))?;
    writer.finish()?;
    // A page for the trailer once more, behind the page that ends as much as is asked for.
    let disk = Arc::new(SmallDisk {
        most: (bytes.len() + (1 << 19)).next_multiple_of(4096) + 4096,
        file: bytes.into(),
        changes: AtomicUsize::new(0),
    });
    let begin = |options: WriteOptions| options.edit_storage(Arc::clone(&disk) as Arc<dyn Storage>);
    let error = begin(WriteOptions::new())?.reserve(2 << 20).unwrap_err();
    assert_eq!(error.kind(), zt::ErrorKind::Io);
    assert_eq!(disk.changes.load(Ordering::Relaxed), 0);
    assert!(begin(WriteOptions::new())?.reserve((1 << 19) + 4096).is_err());
    assert_eq!(disk.changes.load(Ordering::Relaxed), 0);
    // What fits without the room to spare fits, to the page.
    begin(WriteOptions::new())?.reserve(1 << 19)?;
    // What shrinks may fit.
    begin(WriteOptions::new().zstd(3))?.reserve(2 << 20)?;
    Ok(())
}
