//! The page: machine, targets, one table for each operation, tables of how cost grows.

use std::fmt::Write;

use crate::contest::{Role, Standing, Timed};
use crate::growth::{Growth, Measured};
use crate::report::Run;

/// The whole page.
pub(super) fn page(run: &Run) -> String {
    let mut page = String::from(HEAD);
    page.push_str(&machine(run));
    page.push_str(&targets(run));
    page.push_str("\n## Operations\n\n");
    page.push_str("![Each contestant's time as a multiple of zt's](benchmarks.svg)\n");
    for standing in &run.standings {
        page.push_str(&operation(standing));
    }
    if let Some(growth) = &run.growth {
        page.push_str(&growing(growth));
    }
    page
}

const HEAD: &str = "\
# Benchmarks

`cargo xtask bench` writes this page and the plot; do not edit them by hand.

* All contestants do the same work on the same tensors in one process. They take turns, round by round.
* A first round checks each contestant: written files are read back, and values that were read are compared.
* Figures are medians of the rounds, with the shortest and the longest time.
* Compare figures only within one table: another machine, or another day, gives other figures.
* Files are in the page cache, unless the table says that the cache is cold.
* Each contestant starts with a fresh heap: the memory that another one freed is given back first.
* GB/s are 10^9 bytes of decoded values per second.

";

fn machine(run: &Run) -> String {
    let machine = &run.machine;
    let mut text = String::from("| | |\n| --- | --- |\n");
    let mut row = |what: &str, value: &str| {
        let _ = writeln!(text, "| {what} | {value} |");
    };
    row("command", &format!("`{}`", run.command));
    row("zt", &format!("revision {}", machine.revision));
    row("peers", "`ztensor` 1.2.3, `ztensor` 2.1.1, `safetensors` 0.8.0 (Rust, release)");
    row("processor", &format!("{}, {} cores", machine.processor, machine.cores));
    row("memory", &size(machine.memory));
    row("system", &format!("{}, files on {}", machine.kernel, machine.filesystem));
    row("compiler", &machine.compiler);
    row("rounds", &run.rounds.to_string());
    for (id, title) in &run.workloads {
        row(id, title);
    }
    text
}

fn targets(run: &Run) -> String {
    let mut text = String::from(
        "\n## Targets\n\nTargets that we set before we began: the speed of zt as a multiple of another's, in the same run. Where the time goes in those that\n\
         are missed: [missed-targets.md](missed-targets.md).\n\n\
         | operation | against | target | reached | |\n| --- | --- | ---: | ---: | --- |\n",
    );
    for standing in &run.standings {
        for (target, speed) in standing.reached() {
            let verdict = if speed >= target.speed { "met" } else { "**not met**" };
            let _ = writeln!(
                text,
                "| {}{} | {} | {:.2}x | {speed:.2}x | {verdict} |",
                standing.title,
                target.ours.map_or(String::new(), |ours| format!(" ({ours})")),
                target.against,
                target.speed,
            );
        }
        if let Some((owed, found)) = standing.reached_size() {
            let verdict = if found <= owed { "met" } else { "**not met**" };
            let _ = writeln!(
                text,
                "| {} | raw size | at most {owed:.3} | {found:.3} | {verdict} |",
                standing.title,
            );
        }
    }
    if let Some(growth) = &run.growth {
        for target in growth.targets() {
            let verdict = if target.is_met { "met" } else { "**not met**" };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {verdict} |",
                target.what, target.against, target.owed, target.found,
            );
        }
    }
    text
}

fn operation(standing: &Standing) -> String {
    let has_sizes = standing.results.iter().any(|timed| timed.stored.is_some());
    let byte_len = standing.byte_len.map(|byte_len| byte_len as f64);
    let mut text = format!("\n### {}\n\n", capital(&standing.title));
    for remark in &standing.remarks {
        let _ = write!(text, "{remark} ");
    }
    let _ = writeln!(text, "Alone: `compare {}`.\n", standing.id);
    text.push_str("| | median | range |");
    let mut line = String::from("| --- | ---: | ---: |");
    if byte_len.is_some() {
        text.push_str(" GB/s |");
        line.push_str(" ---: |");
    }
    if byte_len.is_some() && has_sizes {
        text.push_str(" size |");
        line.push_str(" ---: |");
    }
    let _ = writeln!(text, " time / zt's |\n{line} ---: |");
    for timed in &standing.results {
        let mark = if timed.role == Role::Ours { "**" } else { "" };
        let name = match timed.role {
            Role::Limit => format!("*{}*", timed.name),
            _ => format!("{mark}{}{mark}", timed.name),
        };
        let [least, most] = timed.range();
        let _ = write!(
            text,
            "| {name} | {} | {} to {} |",
            time(timed.median()),
            time(least),
            time(most)
        );
        if let Some(byte_len) = byte_len {
            let _ = write!(text, " {} |", rate(byte_len, timed));
            if has_sizes {
                let ratio = |stored: u64| format!("{:.3}", stored as f64 / byte_len);
                let _ = write!(text, " {} |", timed.stored.map_or(String::new(), ratio));
            }
        }
        let _ = writeln!(text, " {:.2} |", standing.speed_against(timed));
    }
    text
}

fn rate(byte_len: f64, timed: &Timed) -> String {
    format!("{:.2}", byte_len / timed.median() / 1e9)
}

fn growing(growth: &Growth) -> String {
    let mut text = String::from(
        "\n## How cost grows\n\nEach figure comes from a process of its own: the time of the operation, and the peak resident memory of the \
         process. Files are read by position, never mapped, so resident memory excludes the page cache.\n",
    );
    for table in &growth.tables {
        let _ = writeln!(text, "\n### {}\n\n{}\n", table.title, table.remark);
        let _ = write!(text, "| {} |", table.variable);
        let mut line = String::from("| ---: |");
        for column in &table.columns {
            let _ = write!(text, " {column} |");
            line.push_str(" ---: |");
        }
        let _ = writeln!(text, "\n{line}");
        for (value, cells) in &table.rows {
            let _ = write!(text, "| {value} |");
            for cell in cells {
                let _ = write!(text, " {} |", cell.as_ref().map_or("-".into(), measured));
            }
            text.push('\n');
        }
    }
    text
}

fn measured(cell: &Measured) -> String {
    let mut text = time(cell.seconds);
    if let Some(byte_len) = cell.byte_len {
        let _ = write!(text, ", {:.2} GB/s", byte_len as f64 / cell.seconds / 1e9);
    }
    match cell.manifest {
        Some(manifest) => {
            let (memory, share) = (cell.memory, cell.memory as f64 / manifest as f64);
            let _ = write!(text, "; memory {} ({share:.1}x the manifest)", size(memory));
        }
        None => {
            let _ = write!(text, "; {}", size(cell.resident));
        }
    }
    text
}

/// `1.23 s`, `45.6 ms`, `78 µs`: three digits.
pub(super) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        seconds if seconds < 1e-3 => (seconds * 1e6, "µs"),
        seconds if seconds < 1.0 => (seconds * 1e3, "ms"),
        seconds => (seconds, "s"),
    };
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Binary units, one decimal.
pub(super) fn size(bytes: u64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes < 1 << 20 => (bytes as f64 / 1024.0, "KiB"),
        bytes if bytes < 1 << 30 => (bytes as f64 / (1 << 20) as f64, "MiB"),
        bytes => (bytes as f64 / (1 << 30) as f64, "GiB"),
    };
    format!("{value:.1} {unit}")
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let texts = [0.000_012_3, 0.001, 0.0456, 0.789, 12.3].map(time);
        assert_eq!(texts, ["12.3 µs", "1.00 ms", "45.6 ms", "789 ms", "12.3 s"]);
    }
}
