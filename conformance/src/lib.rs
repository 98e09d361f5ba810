//! What every reader and writer of `.zt` is held to: a corpus, the builders of its cases, proptest
//! strategies and the bodies of the fuzz targets. Never published.
//!
//! ```text
//! zt-container <- zt-manifest <- zt-formats <- zt <- zt-convert
//!                                              ^        ^
//!                                              zt-conformance <- fuzz
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`archive`], [`cbor`], [`frames`], [`draft`] | files put together from parts, by code that shares nothing with the crates under test |
//! | [`cases`] | the corpus's own cases; `corpus/own` is exported from them |
//! | [`naive`] | a reader written from the specification alone, for ours to agree with |
//! | [`mod@observe`] | everything that can be seen of a file, read in every way there is |
//! | [`expectation`] | a file's JSON held against what was seen |
//! | [`decisions`], [`generate`], [`strategies`] | arbitrary files out of bytes, for fuzzers and for proptest |
//! | [`position`] | sources in memory that behave as a file does |
//! | [`written`] | whether what was written is what was meant |
//! | [`foreign`] | files of other formats held against the truth beside them |
//! | [`policy`] | files of formats that leave much open, held against what is settled |
//! | [`squizd`], [`slm1`] | builders of such files, for what those files leave out |
//! | [`inputs`] | what fuzzing has kept, in `fuzz-inputs` |
//! | [`mutation`] | files of the corpus, damaged in a way that a seed repeats |
//! | [`fuzz`] | the fuzz targets' bodies, which `tests/replay.rs` runs on stable |
//!
//! `corpus/README.md` says what the files are and how to use them without this crate.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "this crate is a test: where something is not as it has to be, it fails"
)]

pub mod archive;
pub mod cases;
pub mod cbor;
pub mod corpus;
pub mod decisions;
pub mod draft;
pub mod expectation;
pub mod foreign;
pub mod frames;
pub mod fuzz;
pub mod generate;
pub mod hdf5;
pub mod inputs;
pub mod json;
pub mod mutation;
pub mod naive;
pub mod observe;
pub mod policy;
pub mod position;
pub mod slm1;
pub mod squizd;
pub mod strategies;
pub mod written;
pub mod zt2;

use zt::DigestAlgorithm;

/// The digest of some bytes, spelled as we write it.
#[must_use]
pub fn digest(algorithm: DigestAlgorithm, bytes: &[u8]) -> String {
    let mut hasher = zt::container::Hasher::new(algorithm).expect("both algorithms are built in");
    hasher.update(bytes);
    hasher.finish().to_string()
}

/// The digest's digits alone.
#[must_use]
pub fn hash(algorithm: DigestAlgorithm, bytes: &[u8]) -> String {
    let digest = digest(algorithm, bytes);
    let (_, digits) = digest.split_once(':').expect("an algorithm and a value");
    digits.to_owned()
}

/// The quick start of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/pick-your-crates.md")]
struct PickYourCrates;
