//! Every file of the corpus, from a map, by position and in memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use zt::{File, OpenOptions};
use zt_conformance::corpus::{self, Sample, Verdict};
use zt_conformance::expectation::{differences, missed_refusal};
use zt_conformance::observe::{Seen, observe};

/// From each of the sources, which have to agree.
fn observe_all(sample: &Sample) -> Seen {
    let memory = observe(File::from_bytes(sample.bytes.clone()));
    let by_position = observe(File::open(&sample.path));
    assert_eq!(memory, by_position, "{}: memory and file disagree", sample.name);
    let mapped = observe(open_mapped(&sample.path));
    assert_eq!(memory, mapped, "{}: memory and map disagree", sample.name);
    memory
}

fn open_mapped(path: &Path) -> zt::Result<File> {
    // SAFETY: nothing changes the corpus while the tests run.
    let map = unsafe { zt::Map::open(path)? };
    OpenOptions::new().open_source(map)
}

/// What is wrong with each, as one list: a reader of a failed run wants to see them all.
fn check(wanted: impl Fn(&Sample) -> bool, judge: impl Fn(&Sample, &Seen) -> Vec<String>) {
    let samples: Vec<Sample> = corpus::samples().into_iter().filter(wanted).collect();
    assert!(!samples.is_empty());
    let mut wrong = Vec::new();
    for sample in &samples {
        let seen = observe_all(sample);
        let problems = judge(sample, &seen).into_iter();
        wrong.extend(problems.map(|problem| format!("{}: {problem}", sample.name)));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), samples.len(), wrong.join("\n"));
}

fn is_in(sample: &Sample, folder: &str) -> bool {
    sample.name.starts_with(folder)
}

fn judge(sample: &Sample, seen: &Seen) -> Vec<String> {
    match sample.verdict() {
        Verdict::Refuse => missed_refusal(&sample.truth, seen).into_iter().collect(),
        // Whoever accepts it has to see what is there.
        Verdict::Either if !seen.is_clean() => Vec::new(),
        Verdict::Read | Verdict::Either => differences(&sample.truth, seen),
        Verdict::ReadWithWarning => {
            let mut wrong = differences(&sample.truth, seen);
            if seen.warnings.is_empty() && seen.unverified.is_empty() {
                wrong.push("no warning".to_owned());
            }
            wrong
        }
    }
}

#[test]
fn valid_files_read_as_their_json_says() {
    check(|sample| is_in(sample, "valid/"), judge);
}

#[test]
fn invalid_files_are_refused_with_their_code_at_their_stage() {
    check(|sample| is_in(sample, "invalid/"), judge);
}

#[test]
fn lenient_files_do_as_their_verdict_says() {
    check(|sample| is_in(sample, "lenient/"), judge);
}

#[test]
fn files_of_the_official_writers_read_as_their_json_says() {
    check(|sample| is_in(sample, "writers/"), judge);
}

#[test]
fn our_own_cases_do_as_their_builders_say() {
    check(|sample| is_in(sample, "own/"), judge);
}

/// Strict opening refuses for one object what lenient opening marks.
#[test]
fn strict_opening_refuses_every_file_with_a_faulty_object() {
    for sample in corpus::samples() {
        let seen = observe(File::from_bytes(sample.bytes.clone()));
        let faulty = seen.refused.is_some() || seen.objects.values().any(|o| o.fault.is_some());
        let strict = OpenOptions::new().strict(true).open_bytes(sample.bytes);
        assert_eq!(strict.is_err(), faulty, "{}", sample.name);
    }
}

#[test]
fn every_file_is_the_one_that_its_json_describes() {
    for sample in corpus::samples() {
        let sha256 = zt_conformance::hash(zt::DigestAlgorithm::Sha256, &sample.bytes);
        assert_eq!(sample.truth["file_sha256"].as_str(), Some(&*sha256), "{}", sample.name);
        assert_eq!(sample.truth["file_size"].as_u64(), Some(sample.bytes.len() as u64));
    }
}
