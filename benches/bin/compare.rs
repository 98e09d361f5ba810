//! `compare`: operations, each with all its contestants in turn.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use zt_benches::growth::Growth;
use zt_benches::operations::{OPERATIONS, Operation, Place, Subject};
use zt_benches::report::{Machine, Run};
use zt_benches::{Result, Size, Standing};

/// Measure operations of zt beside peers and limits, interleaved in one process
#[derive(Parser)]
struct Arguments {
    /// Operations; all by default. `--list` names them
    #[arg(value_name = "OPERATION")]
    operations: Vec<String>,
    /// Rounds in which everyone takes a turn, after one to warm up and to compare outcomes
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only on this workload, such as W2a
    #[arg(long, value_name = "ID")]
    workload: Option<String>,
    /// Workloads of about a sixteenth of the size
    #[arg(long)]
    quick: bool,
    /// Where files are written and read; a folder for temporary files by default
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Measure operations on a disk, too, in this folder; without it those with a cold cache are left out
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Also measure how cost grows with size, each operation in a process of its own
    #[arg(long)]
    growth: bool,
    /// Where the files of that are, up to 17 GB; as `--folder` by default
    #[arg(long, value_name = "DIR")]
    growth_folder: Option<PathBuf>,
    /// Write the report, benchmarks.md and benchmarks.svg, into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// The command that the report names
    #[arg(long, value_name = "TEXT", hide = true)]
    command: Option<String>,
    /// Name the operations and stop
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        OPERATIONS.iter().for_each(|operation| println!("{}", operation.id));
        return Ok(());
    }
    let size = if arguments.quick { Size::Quick } else { Size::Full };
    let folder = arguments.folder.clone().unwrap_or_else(std::env::temp_dir);
    let mut run = Run {
        machine: Machine::here(&folder),
        command: arguments.command.clone().unwrap_or_else(command),
        rounds: arguments.rounds,
        workloads: Vec::new(),
        standings: Vec::new(),
        growth: None,
    };
    // One workload at a time: together they would take more memory than some machines have.
    let chosen = chosen(&arguments.operations)?;
    let mut standings = Vec::new();
    for subject in Subject::ALL {
        let of_subject = |operation: &&&Operation| operation.subjects.contains(subject);
        let operations: Vec<_> = chosen.iter().filter(of_subject).collect();
        if operations.is_empty() || arguments.workload.as_ref().is_some_and(|id| id != subject.id())
        {
            continue;
        }
        let workload = subject.workload(size)?;
        let count = workload.tensors.len().max(1);
        let megabytes = workload.byte_len() as f64 / 1e6;
        let title = format!("{}; {count} in all, {megabytes:.0} MB", workload.title);
        run.workloads.push((workload.id, title));
        for operation in operations {
            let disk = arguments.disk.as_ref().filter(|_| operation.place != Place::Memory);
            let memory = Some(&folder).filter(|_| operation.place != Place::Disk);
            for (folder, suffix) in [(memory, ""), (disk, ", on a disk")] {
                let Some(folder) = folder else { continue };
                let folder = tempfile::tempdir_in(folder)?;
                let mut contest = (operation.prepare)(&workload, folder.path())?;
                contest.title.push_str(suffix);
                let standing = contest.hold(arguments.rounds)?;
                print(&standing, size);
                standings.push((operation.id, standing));
            }
        }
    }
    let order = |id: &str| OPERATIONS.iter().position(|operation| operation.id == id);
    standings.sort_by_key(|(id, _)| order(id));
    run.standings = standings.into_iter().map(|(_, standing)| standing).collect();
    if arguments.growth {
        let folder = arguments.growth_folder.as_ref().unwrap_or(&folder);
        run.growth = Some(Growth::measure(size, folder)?);
    }
    if let Some(folder) = &arguments.report {
        run.workloads.sort_unstable();
        run.workloads.dedup();
        run.write(folder)?;
        println!("\nwritten: benchmarks.md and benchmarks.svg in {}", folder.display());
    }
    Ok(())
}

/// As it was typed, except for the path of the program.
fn command() -> String {
    let arguments = std::env::args().skip(1);
    std::iter::once("compare".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn chosen(names: &[String]) -> Result<Vec<&'static Operation>> {
    let known: HashMap<&str, &Operation> =
        OPERATIONS.iter().map(|operation| (operation.id, operation)).collect();
    if names.is_empty() {
        return Ok(OPERATIONS.iter().collect());
    }
    let find = |name: &String| {
        let found = known.get(&**name).copied();
        found.ok_or_else(|| format!("no operation `{name}`; `--list` names them").into())
    };
    names.iter().map(find).collect()
}

/// The targets are for workloads of the full size.
fn print(standing: &Standing, size: Size) {
    println!("\n{} ({})", standing.title, standing.id);
    for timed in &standing.results {
        let [least, most] = timed.range();
        let speed = standing
            .byte_len
            .map_or(String::new(), |len| format!("{:7.2} GB/s", len as f64 / timed.median() / 1e9));
        let [slowest, fastest] = standing.range_against(timed);
        println!(
            "  {:<42} {:9.2} ms  [{:9.2} {:9.2}] {speed}  zt is {:5.2}x as fast ({slowest:.2} to {fastest:.2})",
            timed.name,
            timed.median() * 1e3,
            least * 1e3,
            most * 1e3,
            standing.speed_against(timed),
        );
    }
    if size != Size::Full {
        return;
    }
    if let Some((owed, found)) = standing.reached_size() {
        let verdict = if found <= owed { "met" } else { "NOT met" };
        println!("  target {verdict}: {owed:.3} of the size, is {found:.3}");
    }
    for (target, speed) in standing.reached() {
        let verdict = if speed >= target.speed { "met" } else { "NOT met" };
        println!(
            "  target {verdict}: {}{:.2}x {}, is {speed:.2}x",
            target.ours.map_or(String::new(), |ours| format!("{ours}: ")),
            target.speed,
            target.against
        );
    }
}
