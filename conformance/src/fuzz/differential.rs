//! Our reader against a plain one.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest as _, Sha256};
use zt::{File, Limits, OpenOptions, Tensor, VerifyOptions};

use super::limits;
use crate::naive::{self, Budget, Verdict};

/// A whole file, read by our reader and by the one of [`crate::naive`]: both refuse it, or both find
/// the same objects at fault and the same bytes in the others.
///
/// Nothing else is asked of it, as [`super::open_all`] does: so twenty times as many files are.
pub fn differential(bytes: &[u8]) {
    assert_same(bytes, limits());
}

/// As [`differential`], under any limits.
///
/// # Panics
///
/// Where the two disagree.
pub fn assert_same(bytes: &[u8], limits: Limits) {
    let budget = Budget { manifest_len: limits.manifest_len, decoded_len: limits.decoded_len };
    let opened = OpenOptions::new().limits(limits).open_bytes(bytes.to_vec());
    // An edit that was cut short is no part of the format: the old file within it is.
    let old_len = opened.as_ref().ok().map(File::byte_len);
    let old_len = old_len.and_then(|len| usize::try_from(len).ok());
    let bytes = old_len.and_then(|len| bytes.get(..len)).unwrap_or(bytes);
    let naive = naive::read(bytes, budget);
    let refused = opened.as_ref().err().map(ToString::to_string);
    let ours = opened.ok().map(|file| verdicts(&file));
    assert_eq!(ours, naive, "ours, and the naive reader's: {refused:?}");
}

fn verdicts(file: &File) -> BTreeMap<String, Verdict> {
    let report = file.verify(&VerifyOptions::default());
    let problems = report.expect("nobody interrupts").problems;
    let unsound: HashSet<&str> = problems.iter().filter_map(zt::Error::object).collect();
    let verdict = |entry: zt::Entry<'_>| {
        let verdict = match entry.tensor() {
            Ok(tensor) if tensor.fault().is_some() => Verdict::Fault,
            Ok(tensor) => Verdict::Readable {
                components: components(&tensor),
                is_sound: !unsound.contains(entry.name()),
            },
            Err(_) => Verdict::Fault,
        };
        (entry.name().to_owned(), verdict)
    };
    file.entries().into_iter().map(verdict).collect()
}

fn components(tensor: &Tensor<'_>) -> BTreeMap<String, Option<(u64, [u8; 32])>> {
    let content = |role: &str| {
        let bytes = tensor.bytes(role).ok()?;
        Some((bytes.len() as u64, Sha256::digest(&bytes).into()))
    };
    let roles = tensor.components().map(|(role, _)| role);
    roles.map(|role| (role.to_owned(), content(role))).collect()
}
