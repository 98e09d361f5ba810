//! Benchmarks beside baselines and peers.
//!
//! ```text
//! zt-container <- zt-manifest <- zt-formats <- zt <- zt-convert <- zt-benches
//!                                                                  ^ here
//! ```
//!
//! One library of operations serves two programs. An operation is a [`Contest`]: we, the peers and
//! the limits of the machine do the same work on the same tensors, in turn, round by round, in one
//! process, so that ratios hold on a noisy machine. The work of each contestant is checked first: written
//! files are read back, and values that were read are compared.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`workload`] | the tensors: seeded, the same on every machine |
//! | [`contestants`] | us and each peer, and the limits: memcpy, pread, pwrite, bare kernels |
//! | [`operations`] | what is measured, as contests over a workload |
//! | [`contest`] | rounds, medians, ranges, targets |
//! | [`growth`] | how time and memory grow with the number of objects and of bytes |
//! | [`report`] | all of it as `docs/benchmarks.md` and a plot |
//!
//! `compare` prints contests and writes the report; `alone` does one operation in a process of its
//! own for [`growth`]; `cargo bench` runs small contests under criterion.
//!
//! Absent: tests. The crates and `conformance/` have them.
#![allow(
    clippy::cast_possible_truncation,
    reason = "the workloads are ours: their lengths fit every type they are given"
)]

pub mod contest;
pub mod contestants;
pub mod growth;
pub mod operations;
pub mod random;
pub mod report;
pub mod workload;

pub use contest::{Contest, Contestant, Role, Standing, Target};
pub use workload::{Size, Tensor, Workload};

/// What stops a benchmark: any error of any contestant.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The result of a benchmark's parts.
pub type Result<T, E = Error> = std::result::Result<T, E>;
