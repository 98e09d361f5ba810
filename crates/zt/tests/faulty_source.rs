//! A source that fails at any of its reads: what was asked for is an error that says so, and the
//! same file works again as soon as the source does.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
mod faulty;

use std::io::{self, Read as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use common::sample;
use faulty::{Failure, Faults, Faulty, strike_every_read};
use zt::{
    Csr, Dense, DigestAlgorithm, Error, ErrorKind, File, HashOptions, Memory, OpenOptions, Slice,
    Source, Tensor, Verify, VerifyOptions, WriteOptions, Writer,
};

type Work = (&'static str, fn(&File) -> Result<(), Error>);

fn each(file: &File, work: impl Fn(&Tensor<'_>) -> Result<(), Error>) -> Result<(), Error> {
    file.names().map(|name| file.tensor(name)).try_for_each(|tensor| work(&tensor?))
}

fn each_component(
    file: &File,
    work: impl Fn(&Tensor<'_>, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    each(file, |tensor| {
        let mut components = tensor.components();
        components.try_for_each(|(role, _)| work(tensor, role))
    })
}

/// The same objects, in memory.
fn expected() -> &'static File {
    static FILE: OnceLock<File> = OnceLock::new();
    FILE.get_or_init(|| File::from_bytes(sample(WriteOptions::new())).unwrap())
}

/// All that reads bytes.
const WORKS: [Work; 13] = [
    ("bytes", |file| {
        each_component(file, |tensor, role| {
            let expected = expected().tensor(tensor.name())?;
            assert!(*tensor.bytes(role)? == *expected.bytes(role)?);
            Ok(())
        })
    }),
    ("elements", |file| {
        each_component(file, |tensor, role| {
            let expected = expected().tensor(tensor.name())?;
            assert!(tensor.elements(role)? == expected.elements(role)?);
            Ok(())
        })
    }),
    ("read_into", |file| {
        each_component(file, |tensor, role| {
            let expected = expected().tensor(tensor.name())?.bytes(role)?;
            let mut found = vec![0; expected.len()];
            tensor.read_into(role, &mut found)?;
            assert!(found == *expected);
            Ok(())
        })
    }),
    ("reader", |file| {
        each_component(file, |tensor, role| {
            let (mut reader, mut piece) = (tensor.reader(role)?, [0; 1000]);
            while reader.read(&mut piece)? > 0 {}
            Ok(())
        })
    }),
    ("to_dense", |file| {
        each(file, |tensor| {
            let expected = expected().tensor(tensor.name())?;
            assert!(tensor.to_dense()? == expected.to_dense()?);
            Ok(())
        })
    }),
    ("dense_reader", |file| {
        each(file, |tensor| {
            let (mut reader, mut piece) = (tensor.dense_reader()?, [0; 1000]);
            while reader.read(&mut piece)? > 0 {}
            Ok(())
        })
    }),
    ("slice", |file| {
        let range = Slice::Range { start: Some(0), stop: Some(1), step: 1 };
        each(file, |tensor| {
            let expected = expected().tensor(tensor.name())?;
            assert!(tensor.slice(&[range])? == expected.slice(&[range])?);
            Ok(())
        })
    }),
    ("view", |file| {
        file.tensor("ramp")?.view::<Dense<'_>>()?;
        file.tensor("graph")?.view::<Csr<'_>>().map(drop)
    }),
    ("read_many", |file| {
        let tensors: Vec<Tensor<'_>> =
            file.names().map(|name| file.tensor(name).unwrap()).collect();
        let wanted: Vec<(Tensor<'_>, &str)> = tensors
            .iter()
            .flat_map(|tensor| tensor.components().map(|(role, _)| (*tensor, role)))
            .collect();
        for (found, (tensor, role)) in file.read_many(&wanted).into_iter().zip(&wanted) {
            assert!(found? == expected().tensor(tensor.name())?.elements(role)?);
        }
        Ok(())
    }),
    ("to_dense_many", |file| {
        let tensors: Vec<Tensor<'_>> =
            file.names().map(|name| file.tensor(name).unwrap()).collect();
        for (found, tensor) in file.to_dense_many(&tensors).into_iter().zip(&tensors) {
            assert!(found? == expected().tensor(tensor.name())?.to_dense()?);
        }
        Ok(())
    }),
    ("verify", |file| {
        let report = file.verify(&VerifyOptions::default())?;
        report.problems.into_iter().next().map_or(Ok(()), Err)
    }),
    ("hash", |file| {
        let hash = file.hash(&HashOptions::default())?;
        assert_eq!(
            hash.content.is_none(),
            hash.errors().next().is_some(),
            "of what could not be read there is no identity"
        );
        for (_, hash) in hash.objects {
            hash?;
        }
        let expected = expected().hash(&HashOptions::default())?;
        assert_eq!(hash.content, expected.content);
        Ok(())
    }),
    ("copy", |file| {
        let mut writer = Writer::new(io::sink())?;
        each(file, |_| Ok(()))?;
        for name in file.names() {
            let tensor = file.tensor(name)?;
            match tensor.format() {
                "dense" => writer.add(name, &tensor.view::<Dense<'_>>()?)?,
                _ => writer.add(name, &tensor.view::<Csr<'_>>()?)?,
            }
        }
        writer.finish()
    }),
];

#[test]
fn a_read_that_fails_is_told_and_the_file_works_again() {
    for write in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let bytes: Arc<[u8]> = Arc::from(sample(write));
        for failure in Failure::ALL {
            for verify in [Verify::OnRead, Verify::Always, Verify::Never] {
                let faults = Faults::new(failure);
                let open = || {
                    let source = Faulty::new(&bytes, &faults);
                    let file = OpenOptions::new().verify(verify).open_source(source);
                    file.unwrap()
                };
                for (name, work) in WORKS {
                    let reads = strike_every_read(name, failure, &faults, open, work);
                    assert!(reads > 0, "{name} reads {reads} times");
                }
            }
        }
    }
}

/// Pieces, and the table of frames behind them: read by several threads, and by several readers.
#[test]
fn a_read_that_fails_within_a_large_component_is_told() {
    let values: Vec<u32> = (0..600_000).map(|at| at / 7).collect();
    let dense = Dense::from_slice(&[600_000], &values).unwrap();
    for digest in [None, Some(DigestAlgorithm::Crc32c), Some(DigestAlgorithm::Sha256)] {
        for write in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
            let bytes: Arc<[u8]> = Arc::from(common::written(&dense, write.digest(digest)));
            let sound = File::from_bytes(bytes.to_vec()).unwrap();
            let expected = sound.hash(&HashOptions::default()).unwrap().content;
            for failure in [Failure::Device, Failure::Half] {
                let faults = Faults::new(failure);
                let open = || {
                    let source = Faulty::new(&bytes, &faults);
                    OpenOptions::new().open_source(source).unwrap()
                };
                let verify = |file: &File| {
                    let report = file.verify(&VerifyOptions::default())?;
                    report.problems.into_iter().next().map_or(Ok(()), Err)
                };
                let hash = |file: &File| {
                    let hash = file.hash(&HashOptions::default())?;
                    let error = hash.errors().next().cloned();
                    assert_eq!(hash.content, expected.filter(|_| error.is_none()));
                    error.map_or(Ok(()), Err)
                };
                for reads in [
                    strike_every_read("verify", failure, &faults, open, verify),
                    strike_every_read("hash", failure, &faults, open, hash),
                ] {
                    assert!(reads > 2, "{reads}");
                }
            }
        }
    }
}

#[test]
fn a_read_that_fails_while_opening_is_told() {
    let bytes: Arc<[u8]> = Arc::from(sample(WriteOptions::new()));
    for failure in Failure::ALL {
        let faults = Faults::new(failure);
        let open = |_: &()| {
            let file = OpenOptions::new().open_source(Faulty::new(&bytes, &faults))?;
            file.entries().iter().try_for_each(|entry| entry.tensor().map(drop))
        };
        let reads = strike_every_read("open", failure, &faults, || (), open);
        assert!(reads >= 2, "{reads}");
    }
}

/// A source that becomes shorter, or says so, while it is read.
struct Shrinking {
    bytes: Vec<u8>,
    byte_len: Arc<AtomicU64>,
    says_so: bool,
}

impl Source for Shrinking {
    fn byte_len(&self) -> u64 {
        match self.says_so {
            true => self.byte_len.load(Ordering::SeqCst),
            false => self.bytes.len() as u64,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let len = usize::try_from(self.byte_len.load(Ordering::SeqCst)).unwrap();
        Memory::new(&self.bytes[..len]).read_at(offset, buf)
    }
}

/// What lies before the cut may still be read; nothing else than the file's own bytes comes out.
#[test]
fn a_source_that_becomes_shorter_gives_errors_and_no_other_bytes() {
    for write in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let bytes = sample(write);
        for says_so in [false, true] {
            for cut in (0..bytes.len()).step_by(97) {
                let byte_len = Arc::new(AtomicU64::new(bytes.len() as u64));
                let source =
                    Shrinking { bytes: bytes.clone(), byte_len: Arc::clone(&byte_len), says_so };
                let file = OpenOptions::new().open_source(source).unwrap();
                byte_len.store(cut as u64, Ordering::SeqCst);
                for (name, work) in WORKS {
                    if let Err(error) = work(&file) {
                        assert_eq!(error.kind(), ErrorKind::Io, "{name}, {cut}: {error}");
                    }
                }
                byte_len.store(bytes.len() as u64, Ordering::SeqCst);
                for (name, work) in WORKS {
                    work(&file).unwrap_or_else(|error| panic!("{name}, {cut}: {error}"));
                }
            }
        }
    }
}

/// Its frames are read on all cores, and what fails is no damage.
#[test]
fn a_large_component_that_cannot_be_read_is_not_said_to_be_damaged() {
    let values: Vec<u32> = (0..1_300_000).map(|at| at / 7).collect();
    let dense = Dense::from_slice(&[1_300_000], &values).unwrap();
    let bytes: Arc<[u8]> = common::written(&dense, WriteOptions::new().zstd(1)).into();
    let faults = Faults::new(Failure::Device);
    let fresh = || {
        let source = Faulty::new(&bytes, &faults);
        OpenOptions::new().open_source(source).unwrap()
    };
    let work = |file: &File| {
        let found = file.tensor("x")?.to_vec::<u32>()?;
        assert!(found == values);
        Ok(())
    };
    let reads = strike_every_read("large", Failure::Device, &faults, fresh, work);
    // On one core it is one read, behind those that open the file.
    let fewest = if cfg!(feature = "rayon") { 4 } else { 1 };
    assert!(reads >= fewest, "{reads}");
}
