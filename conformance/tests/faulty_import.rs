//! Files of every kind over a source that fails at any of its reads: an error that says so, and the
//! same file works again as soon as the source does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../../crates/zt/tests/faulty/mod.rs"]
mod faulty;

use std::sync::Arc;

use faulty::{Failure, Faults, Faulty, strike_every_read};
use zt::{Error, ErrorKind, File, HashOptions, VerifyOptions};
use zt_conformance::corpus;
use zt_convert::{ConvertOptions, Input, Kinds, ZT};

/// Files of each kind, compressed and in another order where the kind can be.
const FILES: [&str; 19] = [
    "foreign/gguf/align_64.gguf",
    "foreign/h5/earliest_layouts.h5",
    "foreign/h5/latest_groups.h5",
    "foreign/npy/fortran_big_3d.npy",
    "foreign/npz/compressed.npz",
    "foreign/onnx/typed_dtypes.onnx",
    "foreign/safetensors/torch_dtypes.safetensors",
    "foreign/slm1/valid/model_q4_0_block8.slm",
    "foreign/squizd/valid/int2_int4_hybrid.squizd",
    "foreign/zt2/canonical.zt2",
    "foreign/zt2/encoded.zt2",
    "foreign/zt2/profiles.zt2",
    "hdf5/implicit.h5",
    "hdf5/keras_archive.keras",
    "hdf5/latest_names.h5",
    "torch/layouts.pt",
    "torch/script.pt",
    "torch/storages.pt",
    "torch/storages_legacy.pt",
];

fn bytes_of(name: &str) -> Arc<[u8]> {
    let path = corpus::folder().join("corpus").join(name);
    Arc::from(std::fs::read(path).expect(name))
}

fn open(bytes: &Arc<[u8]>, faults: &Arc<Faults>) -> Result<File, Error> {
    zt_convert::open_source(Faulty::new(bytes, faults))
}

/// By the file or by the object that could not be looked at; nothing is left out in silence.
#[test]
fn a_read_that_fails_while_a_file_of_any_kind_is_opened_is_told() {
    for name in FILES {
        let bytes = bytes_of(name);
        for failure in Failure::ALL {
            let faults = Faults::new(failure);
            let whole = open(&bytes, &faults).expect(name);
            let said = |file: &File| {
                let names: Vec<String> = file.names().map(str::to_owned).collect();
                let faults: Vec<String> = file
                    .entries()
                    .iter()
                    .filter_map(|entry| entry.fault().map(Error::message))
                    .collect();
                let attributes = file.attributes().expect(name);
                (names, faults, attributes, file.warnings().len())
            };
            let expected = said(&whole);
            let open = |_: &()| {
                let file = open(&bytes, &faults)?;
                let entries = file.entries();
                let mut told = entries.iter().filter_map(|entry| entry.fault());
                if let Some(error) = told.find(|error| error.kind() == ErrorKind::Io) {
                    return Err(Error::from(std::io::Error::other(error.message())));
                }
                assert_eq!(said(&file), expected, "{name}: something is left out");
                Ok(())
            };
            strike_every_read(name, failure, &faults, || (), open);
        }
    }
}

#[test]
fn a_read_that_fails_while_a_file_of_any_kind_is_imported_is_told() {
    let mut imported = 0;
    for name in FILES {
        let bytes = bytes_of(name);
        for failure in [Failure::Device, Failure::Half] {
            let faults = Faults::new(failure);
            let fresh = || open(&bytes, &faults).expect(name);
            let written = |file: &File| {
                let mut out = Vec::new();
                let input = Input::from(file.clone());
                Kinds::builtin().convert(&[input], &mut out, &ConvertOptions::new(ZT)).map(|_| out)
            };
            // What is faulty in itself is refused by a conversion, whatever the source does.
            let Ok(expected) = written(&fresh()) else {
                continue;
            };
            imported += 1;
            let import = |file: &File| {
                assert!(written(file)? == expected, "{name}: another file");
                Ok(())
            };
            strike_every_read(name, failure, &faults, fresh, import);
            let verify = |file: &File| {
                let report = file.verify(&VerifyOptions::default())?;
                report.problems.into_iter().next().map_or(Ok(()), Err)
            };
            strike_every_read(name, failure, &faults, fresh, verify);
            let hash = |file: &File| {
                let hash = file.hash(&HashOptions::default())?;
                let mut hashes = hash.objects.into_iter();
                hashes.try_for_each(|(_, hash)| hash.map(drop))
            };
            strike_every_read(name, failure, &faults, fresh, hash);
        }
    }
    assert!(imported > 2 * 8, "{imported}");
}
