//! `--jobs`: how many threads a command uses.

use clap::Args;

/// The group of every command that works on several threads.
#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Number of threads [default: one per core]
    // Each thread costs time and memory before any work is done; a thousand of them cost seconds.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), hide_short_help = true)]
    pub(crate) jobs: Option<u16>,
}

impl Jobs {
    /// `None` for as many as there are cores.
    pub(crate) fn threads(&self) -> Option<usize> {
        self.jobs.map(usize::from)
    }
}
