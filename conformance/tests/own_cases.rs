//! `corpus/own` is what the builders make, to the byte.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;

use zt_conformance::{cases, corpus};

const EXPORT: &str = "cargo run -p zt-conformance --example export_cases";

#[test]
fn the_exported_cases_are_those_of_the_builders() {
    let folder = corpus::folder().join("corpus").join("own");
    let mut expected = BTreeSet::new();
    for case in cases::all() {
        for (ending, bytes) in [("zt", &case.bytes), ("json", &case.json().into_bytes())] {
            let path = folder.join(case.folder.as_str()).join(format!("{}.{ending}", case.name));
            let found =
                fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}: {EXPORT}"));
            assert!(found == *bytes, "{path:?} is not what its builder makes: {EXPORT}");
            expected.insert(path);
        }
    }
    let found: BTreeSet<_> = corpus::files_below(&folder).into_iter().collect();
    assert_eq!(found, expected, "{EXPORT}");
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let cases = cases::all();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len());
}
