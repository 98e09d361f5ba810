//! `zt man`: the manual pages.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use zt::foreign::AtomicFile;

use crate::failure::{Exit, Failure};
use crate::files::folder::Folder;
use crate::output::Output;
use crate::output::json::{object, path_text};

/// Print the manual page, or write all manual pages
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Write a page per command to this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Replace pages that exist
    #[arg(long, requires = "dir")]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  zt man | man -l -
  zt man --dir ~/.local/share/man/man1";

pub(crate) fn run(
    arguments: &Arguments,
    program: Command,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut main = program.disable_help_subcommand(true);
    main.build();
    let Some(dir) = &arguments.dir else {
        let page = render(main).map_err(zt::Error::from)?;
        if output.json {
            output.document(&object! { page: String::from_utf8_lossy(&page) })?;
        } else {
            output.bytes(&page)?;
        }
        return Ok(Exit::Ok);
    };
    let mut pages = Vec::new();
    for command in with_commands(&main) {
        let path = dir.join(Man::new(command.clone()).get_filename());
        if path.symlink_metadata().is_ok() && !arguments.force {
            return Err(Failure::overwrite(&path, "exists; --force replaces it"));
        }
        pages.push((path, render(command).map_err(zt::Error::from)?));
    }
    let _made = Folder::at(dir)?;
    let mut written = Vec::new();
    for (path, page) in pages {
        let mut file = AtomicFile::create(&path)?;
        file.write_all(&page).map_err(|error| zt::Error::from(error).with_path(&path))?;
        file.publish()?;
        written.push(path_text(&path));
    }
    if output.json {
        output.document(&object! { written })?;
    } else {
        output.line(&written.join("\n"))?;
    }
    Ok(Exit::Ok)
}

/// All commands below a command, and last the command itself.
fn with_commands(command: &Command) -> Vec<Command> {
    let within = command.get_subcommands().flat_map(with_commands);
    within.chain([command.clone()]).collect()
}

fn render(command: Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
