//! What was measured, as a page of Markdown and a plot. Nothing in them is written by hand.

mod machine;
mod markdown;
mod plot;

use std::fs;
use std::path::Path;

use crate::growth::Growth;
use crate::{Result, Standing};

pub use machine::Machine;

/// Everything of one run.
#[derive(Debug)]
pub struct Run {
    /// Where it ran.
    pub machine: Machine,
    /// The command that gives these figures.
    pub command: String,
    /// Rounds of each contest.
    pub rounds: usize,
    /// Each workload's short name and what it is.
    pub workloads: Vec<(&'static str, String)>,
    /// The contests.
    pub standings: Vec<Standing>,
    /// How cost grows with size, where that was measured.
    pub growth: Option<Growth>,
}

impl Run {
    /// Writes `benchmarks.md` and `benchmarks.svg` in `folder`, in place of earlier ones.
    ///
    /// # Errors
    ///
    /// Where they cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("benchmarks.md"), markdown::page(self))?;
        fs::write(folder.join("benchmarks.svg"), plot::svg(&self.standings))?;
        Ok(())
    }
}
