//! Contests under criterion: small workloads, one benchmark for each contestant.
//!
//! `cargo bench -p zt-benches` runs all operations, `cargo bench -p zt-benches -- write` those with `write`
//! in their names.
#![allow(missing_docs, clippy::panic, reason = "criterion's entry points")]

use std::env;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zt_benches::operations::OPERATIONS;
use zt_benches::{Result, Size};

criterion_group!(benches, measure);
criterion_main!(benches);

fn measure(criterion: &mut Criterion) {
    if let Err(error) = try_measure(criterion) {
        panic!("{error}");
    }
}

fn try_measure(criterion: &mut Criterion) -> Result<()> {
    // criterion applies this filter as well, but only after the files of an operation are prepared.
    let filter = env::args().nth(1).filter(|word| !word.starts_with('-'));
    let filter = filter.unwrap_or_default();
    for operation in OPERATIONS {
        if !operation.id.contains(&filter) && !filter.contains(operation.id) {
            continue;
        }
        let workload = match operation.subjects {
            [subject, ..] => subject.workload(Size::Quick)?,
            [] => continue,
        };
        let folder = tempfile::tempdir()?;
        let contest = (operation.prepare)(&workload, folder.path())?;
        let mut group = criterion.benchmark_group(operation.id);
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(2));
        if let Some(byte_len) = contest.byte_len {
            group.throughput(Throughput::Bytes(byte_len));
        }
        for mut contestant in contest.contestants {
            contestant.turn(operation.id, true)?;
            let name = contestant.name.clone();
            let mut outcome = Ok(());
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|rounds| {
                    let turns = (0..rounds).map(|_| {
                        let turn = contestant.turn(operation.id, false);
                        turn.map(|turn| turn.took)
                    });
                    turns.sum::<Result<Duration>>().unwrap_or_else(|error| {
                        outcome = Err(error);
                        Duration::ZERO
                    })
                });
            });
            outcome?;
        }
        group.finish();
    }
    Ok(())
}
