//! SQUIZD and SLM1 files, which no official library writes or reads, over what is settled of them.
#![allow(clippy::panic, reason = "a test fails by panicking")]

use zt_conformance::policy;

fn check(kind: &str, extension: &str, count: usize) {
    let cases = policy::cases(kind, extension);
    assert_eq!(cases.len(), count, "cases of {kind}");
    let wrong: Vec<String> = cases
        .iter()
        .flat_map(|case| {
            let problems = case.problems().into_iter();
            problems.map(move |problem| format!("{kind}/{}: {problem}", case.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn squizd() {
    check("squizd", "squizd", 123);
}

#[test]
fn slm1() {
    check("slm1", "slm", 101);
}
