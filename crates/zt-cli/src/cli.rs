//! What the program may be asked to do.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};

use clap::{Args, CommandFactory, Parser};

use crate::args::write::compression;
use crate::commands::Command;
use crate::failure::Exit;
use crate::output::json::{ErrorBody, ErrorDocument};
use crate::output::{Color, Output, of_stdout};

/// Lists, verifies, hashes, shows, compares, converts and edits tensor files.
///
/// Takes .zt files of every generation and the other formats that `zt convert --help` lists, told
/// apart by their bytes and never by their names.
#[derive(Debug, Parser)]
#[command(name = "zt", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

const EXAMPLES: &str = "\
Examples:
  zt convert model.safetensors model.zt --zstd    compress a checkpoint
  zt ls model.zt                                  what is in it
  zt verify model.zt                              is all of it as it was written
  zt show model.zt embed.weight --slice 0:4,:8    look at values
  zt diff model.zt tuned.zt --values              what has changed, and how much
  zt append model.zt adapter.safetensors          add tensors, safe against a crash at any moment
  zt convert model.zt model.safetensors           and back, bit for bit

Exit: 0 ok, 1 verification failed or files differ, 2 usage, 3 not a readable file,
      4 input or output, 5 unsupported, 130 interrupted,
      141 nobody took the rest of the output.
`zt explain CODE` says what an error code means.";

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON document on stdout, errors included
    #[arg(long, global = true, display_order = 90)]
    pub(crate) json: bool,
    /// Whether to colour: `auto` does so on a terminal unless NO_COLOR is set or TERM is dumb
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        display_order = 91
    )]
    pub(crate) color: Color,
}

/// What must be known of the arguments before they are parsed, or although they cannot be.
pub(crate) struct Early {
    arguments: Vec<OsString>,
    json: bool,
    color: Color,
}

impl Early {
    pub(crate) fn of(arguments: impl Iterator<Item = OsString>) -> Self {
        let arguments: Vec<OsString> = arguments.collect();
        let (mut json, mut color) = (false, Color::Auto);
        let mut texts = arguments
            .iter()
            .map(|argument| argument.to_str().unwrap_or_default());
        while let Some(text) = texts.next() {
            let when = match text {
                "--" => break,
                "--json" => {
                    json = true;
                    continue;
                }
                "--color" => texts.next(),
                _ => text.strip_prefix("--color="),
            };
            color = match when {
                Some("always") => Color::Always,
                Some("never") => Color::Never,
                _ => color,
            };
        }
        Early {
            arguments,
            json,
            color,
        }
    }
}

pub(crate) fn parse(early: &Early) -> Result<Cli, clap::Error> {
    use clap::FromArgMatches;
    let choice = match early.color {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    let mut command = Cli::command().color(choice);
    let arguments = with_levels(&early.arguments, &command);
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The arguments with `--zstd 9` as `--zstd=9`. The level may be missing, so that what follows could
/// be a file as well; a file that is called like a number is `./9`.
fn with_levels(arguments: &[OsString], command: &clap::Command) -> Vec<OsString> {
    const FLAG: &str = "--zstd";
    let mut given = arguments
        .iter()
        .skip(1)
        .filter_map(|argument| argument.to_str());
    let command = given.find_map(|name| command.find_subcommand(name));
    let has_flag = |argument: &clap::Arg| argument.get_long() == FLAG.strip_prefix("--");
    if !command.is_some_and(|command| command.get_arguments().any(has_flag)) {
        return arguments.to_vec();
    }
    let mut joined: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut is_option = true;
    for argument in arguments {
        is_option &= argument != "--";
        let level = argument.to_str().filter(|text| may_be_level(text));
        match (level, joined.last_mut()) {
            (Some(level), Some(flag)) if is_option && *flag == FLAG => {
                flag.push(format!("={level}"));
            }
            _ => joined.push(argument.clone()),
        }
    }
    joined
}

/// Whether what follows `--zstd` is meant for it: a level, or a number that is none and to be refused.
fn may_be_level(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number || compression(text).is_ok()
}

/// Prints help, the version, or what is wrong with the arguments.
pub(crate) fn tell(told: &clap::Error, early: &Early) -> Exit {
    let printed = told.print();
    if !told.use_stderr() {
        return match printed {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                let error = of_stdout(&error);
                Output::new(early.json, early.color).problem("io", &error.to_string());
                Exit::Io
            }
            _ => Exit::Ok,
        };
    }
    if early.json {
        let message = told.render().to_string();
        let lines = message
            .lines()
            .map(str::trim)
            .take_while(|line| !line.is_empty());
        let message = lines.collect::<Vec<_>>().join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let error = ErrorBody::misuse(message.to_owned());
        let document = serde_json::to_string(&ErrorDocument { error }).unwrap_or_default();
        let _ = writeln!(std::io::stdout(), "{document}");
    }
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_listed() {
        use Exit::{CutOff, Failed, Interrupted, Io, Ok, Refused, Unsupported, Usage};
        let help = Cli::command().render_help().to_string();
        let (_, listed) = help.split_once("Exit: ").unwrap();
        for exit in [
            Ok,
            Failed,
            Usage,
            Refused,
            Io,
            Unsupported,
            Interrupted,
            CutOff,
        ] {
            let number = format!("{} ", exit as u8);
            let mut items = listed.split([',', '\n']).map(str::trim_start);
            assert!(items.any(|item| item.starts_with(&number)), "{exit:?}");
        }
    }

    /// Lines that are longer are broken again, in the middle of sentences.
    #[test]
    fn no_line_of_help_that_is_broken_by_hand_is_too_long() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string);
            for line in help.unwrap_or_default().lines() {
                assert!(
                    line.chars().count() <= 100,
                    "{}: {line}",
                    command.get_name()
                );
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
