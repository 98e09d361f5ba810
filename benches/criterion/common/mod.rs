//! Contests under criterion: small workloads, one benchmark for each contestant.

use std::time::Duration;

use criterion::{Criterion, Throughput};
use zt_benches::operations::OPERATIONS;
use zt_benches::{Result, Size};

/// Measures the operations whose names begin with `prefix`.
///
/// # Panics
///
/// Where a contestant fails: a benchmark has nobody to tell.
pub(crate) fn measure(c: &mut Criterion, prefix: &str) {
    if let Err(error) = try_measure(c, prefix) {
        panic!("{error}");
    }
}

fn try_measure(c: &mut Criterion, prefix: &str) -> Result<()> {
    for operation in OPERATIONS
        .iter()
        .filter(|operation| operation.id.starts_with(prefix))
    {
        let workload = match operation.subjects {
            [subject, ..] => subject.workload(Size::Quick)?,
            [] => continue,
        };
        let folder = tempfile::tempdir()?;
        let contest = (operation.prepare)(&workload, folder.path())?;
        let mut group = c.benchmark_group(operation.id);
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
