//! What a loss of power leaves of an edit, repaired; and repairing that is itself cut short.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod simulated;

use std::sync::Arc;

use proptest::test_runner::{RngAlgorithm, TestRng};
use simulated::{Failure, OPERATIONS, Operation, Recorder, Step, torn, values, whole};
use zt::repair::{RepairOptions, Verdict, repair_storage};
use zt::{ErrorKind, Storage};

fn repair(storage: &Arc<Recorder>) -> zt::Result<Verdict> {
    let options = RepairOptions::new().threads(1);
    let storage = Arc::clone(storage) as Arc<dyn Storage>;
    repair_storage(storage, &options).map(|recovery| recovery.verdict())
}

fn repaired(file: &[u8]) -> (Verdict, Vec<u8>, Vec<Step>) {
    let storage = Recorder::new(file, Failure::Never);
    let verdict = repair(&storage).unwrap();
    storage.with(|state| (verdict, state.file.clone(), state.steps.clone()))
}

/// So many states for each operation, at each of its steps; how many of them needed a repair.
fn campaign(states: usize) -> usize {
    std::thread::scope(|scope| {
        let start = |operation| scope.spawn(move || campaign_of(operation, states));
        let campaigns: Vec<_> = OPERATIONS.iter().map(start).collect();
        let mended = campaigns
            .into_iter()
            .map(|campaign| campaign.join().unwrap());
        mended.sum()
    })
}

fn campaign_of(operation: &Operation, states: usize) -> usize {
    let name = operation.name;
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (old, steps, before, after) = whole(operation);
    let mut mended = 0;
    for at in (0..steps.len()).cycle().take(states) {
        let file = torn(&old, &steps[..=at], &mut rng);
        let seen = values(&file);
        let (verdict, repaired, _) = repaired(&file);
        match seen {
            Ok(seen) => {
                assert!(seen == before || seen == after, "{name}: wrong");
                assert_eq!(verdict, Verdict::Sound, "{name}");
                assert!(repaired == file, "{name}: changed");
            }
            Err(error) => {
                mended += 1;
                assert_eq!(verdict, Verdict::Mendable, "{name}: {error}");
                let seen = values(&repaired).unwrap();
                assert!(seen == before || seen == after, "{name}: wrong");
            }
        }
    }
    println!("{name}: {states} states, {mended} mended");
    mended
}

#[test]
fn whatever_a_loss_of_power_leaves_is_the_old_file_or_the_new_one_once_it_is_repaired() {
    assert!(campaign(100) > 0, "nothing had to be repaired");
}

/// `cargo test --release -p zt --test repair_faults -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes; 10^5 states for each operation"]
fn after_many_losses_of_power_too() {
    assert!(campaign(100_000) > 0, "nothing had to be repaired");
}

/// Files that a repair has to change, each in another way: cut, given its trailer, its header.
fn damaged() -> Vec<Vec<u8>> {
    let old = simulated::old_file();
    let mut headless = [&old[..], &[5; 9000]].concat();
    headless[3] = 0;
    vec![
        [&old[..], &[7; 10_000]].concat(),
        old[..old.len() - 11].to_vec(),
        old[..old.len() - 16].to_vec(),
        headless,
    ]
}

#[test]
fn a_repair_that_is_cut_short_can_be_done_again() {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let old = simulated::old_file();
    for file in damaged() {
        let (_, done, steps) = repaired(&file);
        assert!(done == old);
        assert!(matches!(steps.last(), Some(Step::Sync)));
        let mut killed = file.clone();
        for (at, step) in steps.iter().enumerate() {
            step.apply(&mut killed);
            assert!(repaired(&killed).1 == old, "killed after step {at}");
            for _ in 0..100 {
                let torn = torn(&file, &steps[..=at], &mut rng);
                let (_, again, _) = repaired(&torn);
                assert!(again == old, "a loss of power after step {at}");
            }
        }
    }
}

#[test]
fn an_error_at_any_step_of_a_repair_loses_nothing() {
    let old = simulated::old_file();
    for file in damaged() {
        let (_, _, steps) = repaired(&file);
        for at in 0..steps.len() {
            for failure in [Failure::Once(at), Failure::From(at)] {
                let storage = Recorder::new(&file, failure);
                let error = repair(&storage).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io, "{failure:?}");
                let (left, steps) = storage.with(|state| (state.file.clone(), state.steps.clone()));
                assert_eq!(steps.len(), at, "a failed call is followed by no other");
                assert!(repaired(&left).1 == old, "{failure:?}");
            }
        }
    }
}
