//! What a loss of power leaves of an edit, repaired; and repairing that is itself cut short.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod simulated;

use std::sync::Arc;

use proptest::test_runner::{RngAlgorithm, TestRng};
use simulated::{Failure, Lengths, OPERATIONS, Operation, Recorder, Step, torn, values, whole_of};
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

/// States after a loss of power, by what readers make of them.
#[derive(Default, Clone, Copy)]
struct Tally {
    states: usize,
    /// The old file, with a warning.
    warned: usize,
    /// Refused until a repair.
    refused: usize,
}

/// So many states for each operation, at each of its steps, of a file with that many objects.
fn campaign(objects: usize, states: usize, lengths: Lengths) {
    let old = &simulated::old_file_of(objects);
    std::thread::scope(|scope| {
        let start = |operation| {
            scope.spawn(move || {
                let tally = campaign_of(old, operation, states, lengths);
                (operation, tally)
            })
        };
        let campaigns: Vec<_> = OPERATIONS.iter().map(start).collect();
        for campaign in campaigns {
            let (operation, tally) = campaign.join().unwrap();
            let name = operation.name;
            let Tally { states, warned, refused } = tally;
            println!(
                "{objects} objects, {lengths:?}, {name}: {states} states, {warned} warned, {refused} refused"
            );
            assert!(warned > 0 && refused * 1000 <= states, "{name}");
        }
    });
}

fn campaign_of(old: &[u8], operation: &Operation, states: usize, lengths: Lengths) -> Tally {
    let name = operation.name;
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (old, steps, before, after) = whole_of(old.to_vec(), operation);
    let mut tally = Tally::default();
    for at in (0..steps.len()).cycle().take(states) {
        let file = torn(&old, &steps[..=at], lengths, &mut rng);
        let seen = values(&file);
        let is_warned = seen.is_ok() && is_unfinished(&file);
        let (verdict, repaired, _) = repaired(&file);
        tally.states += 1;
        match seen {
            Ok(seen) if is_warned => {
                tally.warned += 1;
                assert!(seen == before, "{name}: wrong");
                assert_eq!(verdict, Verdict::Mendable, "{name}");
                assert!(repaired == old, "{name}: not mended");
            }
            Ok(seen) => {
                assert!(seen == before || seen == after, "{name}: wrong");
                assert_eq!(verdict, Verdict::Sound, "{name}");
                assert!(repaired == file, "{name}: changed");
            }
            Err(error) => {
                tally.refused += 1;
                assert_eq!(verdict, Verdict::Mendable, "{name}: {error}");
                let seen = values(&repaired).unwrap();
                assert!(seen == before || seen == after, "{name}: wrong");
            }
        }
    }
    tally
}

fn is_unfinished(file: &[u8]) -> bool {
    let warnings = zt::File::from_bytes(file.to_vec()).unwrap().warnings();
    let mut codes = warnings.iter().map(|warning| warning.code);
    codes.any(|code| code == "unfinished-edit")
}

#[test]
fn whatever_a_loss_of_power_leaves_opens_as_the_old_file_or_the_new_one() {
    for lengths in [Lengths::Bytes, Lengths::Pages] {
        campaign(3, 60, lengths);
        campaign(120, 20, lengths);
    }
}

/// `cargo test --release -p zt-tensor --test repair_faults -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes; up to 10^5 states for each operation"]
fn after_many_losses_of_power_too() {
    for lengths in [Lengths::Bytes, Lengths::Pages] {
        campaign(3, 100_000, lengths);
        campaign(120, 20_000, lengths);
        campaign(20_000, 200, lengths);
    }
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
                let torn = torn(&file, &steps[..=at], Lengths::Bytes, &mut rng);
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
