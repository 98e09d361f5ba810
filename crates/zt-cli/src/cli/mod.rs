//! The arguments of the program.

use std::ffi::OsString;
use std::io::Write;
use std::sync::LazyLock;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::CompleteEnv;

use crate::args::write::compression;
use crate::commands::*;
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::path::of_uri;
use crate::files::remote::without_secrets;
use crate::output::json::{ErrorBody, escaped, object};
use crate::output::text::{is_unsafe, printable};
use crate::output::{Color, Output, is_closed_pipe, of_stdout};

/// List, verify, compare, convert and edit tensor files
///
/// Reads .zt files of every generation and the kinds that `zt convert --help` lists. The bytes of a
/// file decide its kind, and its name does not.
#[derive(Debug, Parser)]
#[command(name = "zt", bin_name = "zt", version, long_version = long_version(), max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// The commands: for each a variant, and the module that has its arguments and runs it. A failure of one `at` a path
/// is about that file.
macro_rules! commands {
    ($($(#[$about:meta])* $name:ident: $module:ident $(at $path:ident)? $(with $more:expr)?,)*) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$about])* $name($module::Arguments),)*
        }

        impl Command {
            /// Runs the command.
            pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
                match self {
                    $(Command::$name(mut arguments) => {
                        $module::run(&mut arguments, $($more,)? output)
                            $(.map_err(|failure| failure.with_path(&arguments.$path)))?
                    })*
                }
            }
        }
    };
}

commands! {
    Ls: ls,
    Info: info,
    Show: show at file,
    Cat: cat,
    Stats: stats,
    Report: report,
    Verify: verify,
    Hash: hash,
    Seal: seal,
    Sign: sign,
    Prove: prove,
    Convert: convert,
    /// Merge files, or the shards of a set, into one file
    ///
    /// The index of a set stands for all its shards. A duplicate name is an error, and so are two
    /// values of one attribute. All options of `zt convert` apply.
    #[command(
        after_help = convert::EXAMPLES_OF_MERGE,
        override_usage = "zt merge [OPTIONS] <IN>... <OUT>"
    )]
    Merge: convert,
    Average: average,
    Split: split,
    Index: index,
    Quantize: quantize,
    Extract: extract at file,
    Diff: diff,
    Delta: delta,
    Patch: patch,
    Append: append,
    Rm: rm,
    Rename: rename,
    Meta: meta,
    Compact: compact,
    Repair: repair,
    Fetch: fetch,
    Bench: bench at file,
    Explain: explain,
    Completions: completions with Cli::command(),
    Man: man with Cli::command(),
}

fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(version_of_build);
    &TEXT
}

/// The version, the features, the kinds, the target and the revision of this build.
fn version_of_build() -> String {
    let (version, features) = (env!("CARGO_PKG_VERSION"), zt::FEATURES.join(", "));
    let kinds = kinds::table();
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.kind().as_str()).collect();
    let (kinds, build) = (kinds.join(", "), env!("ZT_BUILD"));
    format!("{version} ({features})\nkinds: {kinds}\nbuild: {build}")
}

const EXAMPLES: &str = "\
Examples:
  zt convert model.safetensors model.zt --zstd    compress a checkpoint
  zt ls model.zt                                  list its tensors
  zt verify model.zt                              check it for damage
  zt show model.zt embed.weight --slice 0:4,:8    show values
  zt diff model.zt tuned.zt --values              show what has changed, and how much
  zt append model.zt adapter.safetensors          add tensors; a crash loses nothing
  zt convert model.zt model.safetensors           convert it back, bit for bit

Exit: 0    success
      1    an object is damaged, or the files differ
      2    the arguments are wrong
      3    a file is refused as a whole
      4    reading or writing failed
      5    something is unsupported
      6    another program edits the file; try again, or use --wait
      129, 130, 143
           stopped by SIGHUP, by Ctrl-C (SIGINT), by SIGTERM
      141  stdout was closed while `convert`, `cat` or `extract` wrote a file to it; for any other
           output, a closed stdout is no error
`zt explain CODE` explains the code of an error or a warning.";

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON document on stdout, also for an error
    #[arg(long, global = true, display_order = 90)]
    pub(crate) json: bool,
    /// When to use colours; `auto` uses them on a terminal unless NO_COLOR is set or TERM is dumb
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        display_order = 91,
        hide_short_help = true
    )]
    pub(crate) color: Color,
}

/// The arguments, and the options that the errors of parsing need.
pub(crate) struct Early {
    arguments: Vec<OsString>,
    json: bool,
    color: Color,
}

impl Early {
    pub(crate) fn of(arguments: impl Iterator<Item = OsString>) -> Self {
        let arguments: Vec<OsString> = arguments.map(of_uri).map(without_secrets).collect();
        let (mut json, mut color) = (false, Color::Auto);
        let mut texts = arguments.iter().map(|argument| argument.to_str().unwrap_or_default());
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
        Early { arguments, json, color }
    }
}

pub(crate) fn parse(early: &Early) -> Result<Cli, clap::Error> {
    // Answers a shell that asks for completions, and ends the process. Otherwise it does nothing.
    CompleteEnv::with_factory(Cli::command).complete();
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

/// The arguments with `--zstd 9` as `--zstd=9`. clap would take `9` for a file, because the level is
/// optional. A file that is named `9` is given as `./9`.
fn with_levels(arguments: &[OsString], command: &clap::Command) -> Vec<OsString> {
    const FLAG: &str = "--zstd";
    let mut given = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
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

/// Whether the argument after `--zstd` is its level. A number out of range is one, and is refused.
fn may_be_level(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number || compression(text).is_ok()
}

/// Prints the help, the version, or the error in the arguments.
pub(crate) fn print(mut error: clap::Error, early: &Early) -> Exit {
    if error.kind() == clap::error::ErrorKind::UnknownArgument {
        // "to pass '--x' as a value, use '-- --x'" helps nobody who mistyped an option.
        error.remove(clap::error::ContextKind::Suggested);
    }
    let plain = error.render().to_string();
    // A shell puts the names of files into arguments, and clap prints arguments as they are.
    let printed = if error.use_stderr() && plain.contains(|c| c != '\n' && is_unsafe(c)) {
        let mut lines = plain.lines();
        lines.try_for_each(|line| writeln!(std::io::stderr(), "{}", printable(line)))
    } else {
        error.print()
    };
    if !error.use_stderr() {
        return match printed {
            Err(error) if !is_closed_pipe(&error) => {
                let error = of_stdout(&error);
                Output::new(early.json, early.color).problem("io", &error.to_string());
                Exit::Io
            }
            _ => Exit::Ok,
        };
    }
    if early.json {
        let lines = plain.lines().map(str::trim).take_while(|line| !line.is_empty());
        let message = lines.collect::<Vec<_>>().join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let document = object! { error: ErrorBody::misuse(message.to_owned()) };
        let document = serde_json::to_string(&document).unwrap_or_default();
        let _ = writeln!(std::io::stdout(), "{}", escaped(&document));
    }
    Exit::Usage
}
