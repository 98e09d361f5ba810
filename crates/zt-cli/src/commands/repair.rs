//! `zt repair`: repair a truncated or damaged `.zt` file.

mod parity;
mod sealed;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::foreign::Kind;
use zt::repair::{
    Fate, Generation, Recovered, Recovery, Remains, RepairOptions, Standing, Verdict, examine,
    repair,
};
use zt::{Error, ErrorKind, FileSource, Span};
use zt_convert::{ConvertOptions, ZT, is_same_file};

use crate::args::convert::exit_without;
use crate::args::edit::WaitArgs;
use crate::args::input::{InputArgs, Truncated};
use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::path::is_stdout;
use crate::files::remote::{RemoteArgs, expect_local};
use crate::files::stdin::refuse_stdin;
use crate::output::Output;
use crate::output::json::{ErrorBody, object, path_text, warnings};
use crate::output::progress::Progress;
use crate::output::size::{Sum, human};
use crate::output::text::{self, count, left_out};

/// Repair a truncated or damaged .zt file, or save what is whole in a file of any kind
///
/// Without -o, FILE is repaired in place if the last saved version is complete: bytes after it are cut
/// off, and a missing header or trailer is written. Objects and manifest are not changed. With -o, FILE is
/// not changed. Every object whose digests match is saved to OUT. Components without a digest are
/// saved too and reported as unproved, and so is everything if the manifest does not have its digest.
///
/// A file of another kind is never changed. With -o, its objects that are whole are written to OUT, as
/// `convert --skip-damaged` does. A .zt file whose end never arrived has no manifest: then names, shapes
/// and types are unknown, and nothing can be saved.
///
/// With --seal, only wrong leaves are taken from PLACE, each is checked, and the whole file is replaced at once. If
/// PLACE is wrong, too, that is an error, and nothing is changed. With --parity, or if SEAL.parity is there, wrong
/// leaves are computed from the right ones and the parity; those that cannot be are named, and nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The .zt file; with -o, a file of any kind
    file: PathBuf,
    /// Save the readable objects to this file, and do not change FILE
    #[arg(value_name = "OUT")]
    to: Option<PathBuf>,
    /// OUT, in the place of the second file
    #[arg(short, long, alias = "out", value_name = "OUT", conflicts_with = "to")]
    output: Option<PathBuf>,
    /// Print what would be done, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Compare FILE, which may be of any kind or a folder, with this seal, and replace its wrong leaves of 1 MiB
    #[arg(long, value_name = "SEAL")]
    seal: Option<PathBuf>,
    /// Where right leaves come from: a file or a folder, or the URL of one
    #[arg(long, value_name = "PLACE", requires = "seal")]
    from: Option<PathBuf>,
    /// The parity file that `zt seal --parity` wrote, in the place of PLACE [default: SEAL.parity]
    #[arg(long, value_name = "PARITY", requires = "seal", conflicts_with = "from")]
    parity: Option<PathBuf>,
    /// Offset of the manifest to use, if there are several; --dry-run lists them
    #[arg(long, value_name = "OFFSET")]
    manifest: Option<u64>,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt repair --dry-run model.zt
  zt repair model.zt
  zt repair model.zt -o saved.zt
  zt repair model.zt -o older.zt --manifest 4160
  zt repair cut.safetensors -o whole.safetensors
  zt repair model.safetensors --seal model.seal --from https://host/model.safetensors
  zt repair model.safetensors --seal model.seal --parity model.seal.parity

Exit: 0  FILE is sound, repaired, or saved completely
      1  something is lost, or FILE must be saved with -o
      3  no manifest to repair from, or several to choose from

Keys of --json:
  file, output, dry_run, layout
  old_file_size, file_size   sizes of FILE before and after
  saved_size                 size of OUT
  verdict                    `sound`, `mendable` (in place), `damaged` (save with -o), `doubtful`
                             (choose with --manifest) or `lost`
  changed                    whether FILE was changed
  generation, others         the chosen generation, and the others; each with `manifest`, `end`,
                             `has_trailer`, `copies`, `objects`, `standing` (`whole`, `damaged`,
                             `doubtful` or `nested`), `nested_at`, and the numbers of components
                             `proved`, `unproved` and `refuted`
  surplus                    `offset` and `length` of the bytes after the generation
  objects                    each with `name`, `error`, `components` and `fate`: `proved`,
                             `unproved`, `partial` or `lost`
  remains                    compressed components of a file without a manifest, each with `offset`,
                             `length` and `decoded_length`
  exhaustive                 false if not all candidates for a manifest were checked
  error                      why FILE does not open
With --seal: `file`, `seal`, `from`, `dry_run`, `verdict` (`sound` or `mendable`), `changed`, `old_file_size`,
`file_size`, `fetched` (bytes), `flaws` (each with `leaf`, `leaves`, `offset`, `end`, `damage`, `tensors`); for a
folder, a list. With parity: `parity` in the place of `from`, `verdict` also `damaged`, `mended` (bytes) in the place of
`fetched`, and `left` (leaves that cannot be mended, as `flaws`).
For a file of another kind: `file`, `output`, `dry_run`, `kind` (of OUT), `old_file_size`,
`saved_size`, `verdict` (`sound` or `damaged`), `changed`, `saved` (a number), `left_out` (names),
`warnings`.";

/// What was found in the file, and what was done.
struct Outcome<'a> {
    arguments: &'a Arguments,
    recovery: &'a Recovery,
    old_len: u64,
    /// The length of the saved file.
    saved: Option<u64>,
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    arguments.output = arguments.output.take().or(arguments.to.take());
    let arguments = &*arguments;
    if arguments.force && arguments.output.is_none() {
        return Err(Failure::misuse("--force replaces OUT, and there is none"));
    }
    let path = &arguments.file;
    let blame = |error: Error| error.with_path(path);
    refuse_stdin(path)?;
    expect_local(path, "a remote file cannot be repaired")?;
    if let Some(seal) = &arguments.seal {
        return match &arguments.from {
            Some(from) => sealed::run(arguments, seal, from, output),
            None => parity::run(arguments, seal, output),
        };
    }
    if let Some(out) = &arguments.output {
        expect_local(out, "a repaired file cannot be written to a store")?;
        if is_stdout(out) {
            return Err(Failure::misuse("OUT cannot be stdout, which takes the report"));
        }
        if is_same_file(out, path) {
            return Err(Failure::overwrite(out, "is the input"));
        }
        if !arguments.force && out.symlink_metadata().is_ok() {
            return Err(Failure::overwrite(out, "exists; --force replaces it"));
        }
    }
    let progress = Progress::new(None);
    let report = |bytes| progress.report(bytes);
    let report = zt::Progress::new(&report);
    let mut options = RepairOptions::new().threads(arguments.jobs.threads()).progress(report);
    if let Some(manifest) = arguments.manifest {
        options = options.manifest(manifest);
    }

    let source = FileSource::open(path).map_err(|error| blame(error.into()))?;
    let old_len = zt::Source::byte_len(&source);
    let kind = kinds::table().detect(&source).map_err(blame)?;
    if let Some(kind) = kind.filter(|kind| *kind != ZT && arguments.manifest.is_none()) {
        drop((source, progress));
        return match &arguments.output {
            Some(out) => save_whole(arguments, kind, out, output),
            None => {
                let message = format!(
                    "a {kind} file cannot be repaired in place; -o OUT saves the objects that are whole, and \
                     --manifest OFFSET reads a .zt file within it"
                );
                let error = Error::new(ErrorKind::Unsupported, "unsupported", message);
                Err(Failure::Error(blame(error)))
            }
        };
    }
    let recovery = match (&arguments.output, arguments.dry_run) {
        (None, false) => arguments.wait.retry(|| repair(path, &options))?,
        _ => examine(source, &options).map_err(blame)?,
    };
    let saved = match (&arguments.output, recovery.generation()) {
        (Some(out), Some(_)) if !arguments.dry_run => {
            let save = || recovery.save(out, arguments.force, Some(report));
            Some(arguments.wait.retry(save)?)
        }
        _ => None,
    };
    drop(progress);
    let outcome = Outcome { arguments, recovery: &recovery, old_len, saved };
    if output.json {
        output.document(&outcome.document())?
    } else {
        outcome.print(output)?
    }
    Ok(outcome.exit())
}

/// Writes the whole objects of a file of another kind to `out`. The extension of `out` decides its kind. An
/// unknown one gives the kind of the file, or `.zt` if that kind cannot be written.
fn save_whole(
    arguments: &Arguments,
    kind: Kind,
    out: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let path = &arguments.file;
    let kinds = kinds::table();
    let is_written = |kind: &Kind| kinds.get(kind.as_str()).is_some_and(|it| it.writer().is_some());
    let target = kinds.of_extension(out);
    let target = target.unwrap_or(if is_written(&kind) { kind } else { ZT });
    let input = InputArgs::default().open_input(path, Truncated::Opened)?;
    let inputs = std::slice::from_ref(&input);
    let progress = Progress::of(|| Some(input.file().decoded_len()));
    let report = |bytes| progress.report(bytes);
    let mut options = ConvertOptions::new(target).skip_damaged(true).overwrite(arguments.force);
    options.write = options.write.threads(arguments.jobs.threads());
    options.progress = Some(zt::Progress::new(&report));
    let summary = if arguments.dry_run {
        kinds.convert(inputs, io::sink(), &options)?
    } else {
        kinds.convert_to_path(inputs, out, &options)?
    };
    drop(progress);
    let exit = exit_without(&summary.damaged, inputs);
    if output.json {
        output.document(&object! {
            file: path_text(path),
            output: path_text(out),
            dry_run: arguments.dry_run,
            kind: target.as_str(),
            old_file_size: input.file().byte_len(),
            saved_size: summary.byte_len,
            verdict: if exit == Exit::Ok { "sound" } else { "damaged" },
            changed: false,
            saved: summary.objects,
            left_out: &summary.left_out,
            warnings: warnings(&summary.warnings),
        })?;
        return Ok(exit);
    }
    output.warnings(&summary.warnings);
    let path = text::path(path);
    let saved = count(summary.objects, "object", "objects");
    let verb = if arguments.dry_run { "would save" } else { "saved" };
    let (size, left_out) = (human(summary.byte_len), left_out(&summary.left_out));
    output.line(&format!("{path}: {verb} {saved} in {size}{left_out}"))?;
    Ok(exit)
}

impl Outcome<'_> {
    fn exit(&self) -> Exit {
        let is_saved = self.arguments.output.is_some();
        match self.recovery.verdict() {
            Verdict::Doubtful | Verdict::Lost => Exit::Refused,
            Verdict::Damaged if !is_saved => Exit::Failed,
            _ if self.recovery.is_complete() => Exit::Ok,
            _ => Exit::Failed,
        }
    }

    /// The generation that ends the file after a repair in place.
    fn mended(&self) -> Option<&Generation> {
        let in_place = self.arguments.output.is_none();
        let is_mended = in_place && self.recovery.verdict() == Verdict::Mendable;
        self.recovery.generation().filter(|_| is_mended)
    }

    fn is_changed(&self) -> bool {
        self.mended().is_some() && !self.arguments.dry_run
    }

    fn document(&self) -> impl Serialize {
        let recovery = self.recovery;
        let output = self.arguments.output.as_ref();
        object! {
            file: path_text(&self.arguments.file),
            output: output.map(|path| path_text(path)),
            old_file_size: self.old_len,
            file_size: self.mended().map_or(self.old_len, |mended| mended.end),
            saved_size: self.saved,
            layout: recovery.file().and_then(zt::File::layout),
            dry_run: self.arguments.dry_run,
            verdict: name_of(recovery.verdict()),
            changed: self.is_changed(),
            generation: recovery.generation().map(generation),
            surplus: recovery.surplus().map(span),
            objects: recovery.objects().iter().map(recovered).collect::<Vec<_>>(),
            others: recovery.others().iter().map(generation).collect::<Vec<_>>(),
            remains: recovery.remains().iter().map(remains).collect::<Vec<_>>(),
            exhaustive: recovery.is_exhaustive(),
            error: recovery.refusal().map(ErrorBody::from),
        }
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let recovery = self.recovery;
        let verdict = recovery.verdict();
        let blame = |error: &Error| error.clone().with_path(&self.arguments.file);
        for object in recovery.objects() {
            let components = object.components.iter().filter_map(|c| c.error.as_ref());
            for error in object.error.iter().chain(components) {
                output.error(&blame(error));
            }
        }
        if let (Verdict::Doubtful, Some(error)) = (verdict, recovery.refusal()) {
            output.error(&blame(error));
        }
        self.note_others(output);
        self.note_remains(output);
        let path = text::path(&self.arguments.file);
        match self.arguments.output {
            Some(_) => self.print_saved(&path, output),
            None => self.print_in_place(&path, output),
        }
    }

    fn note_others(&self, output: &Output) {
        for other in self.recovery.others() {
            let at = other.manifest.offset();
            let objects = count(other.objects as u64, "object", "objects");
            let option = option_for(other);
            output.note(&match other.standing {
                Standing::Nested { offset } => format!(
                    "another .zt file with {objects} begins at {offset}: {option} {at} saves it"
                ),
                Standing::Doubtful => format!(
                    "the manifest at {at} with {objects} may belong to this file or to a file inside \
                     it: {option} {at} uses it"
                ),
                _ => format!(
                    "there is an older manifest at {at} with {objects}: {option} {at} restores it"
                ),
            });
        }
        if !self.recovery.is_exhaustive() {
            output
                .note("not all candidates for a manifest were checked, because there are too many");
        }
    }

    /// What is known of a file without a manifest.
    fn note_remains(&self, output: &Output) {
        if self.recovery.verdict() != Verdict::Lost || !self.recovery.others().is_empty() {
            return;
        }
        let remains = self.recovery.remains();
        if !remains.is_empty() {
            let components = count(remains.len() as u64, "component", "components");
            let lens = remains.iter().map(|remains| remains.content_len);
            let content = Sum::of(lens).text(human);
            output.note(&format!(
                "{components} compressed in frames, {content} decoded, can be seen by their tables; --json lists them"
            ));
        }
        output.note(&format!(
            "the manifest is at the end of a .zt file. Without it, names, shapes and types are unknown, and \
             nothing can be saved: fetch the rest from byte {} on",
            self.old_len
        ));
    }

    fn print_in_place(&self, path: &str, output: &mut Output) -> Result<(), Failure> {
        let left = self.left();
        let would_be = if self.arguments.dry_run { "would be " } else { "" };
        let surplus = match self.recovery.surplus() {
            Some(surplus) => {
                let (byte_len, at) = (human(surplus.byte_len()), surplus.offset());
                format!(", {byte_len} {would_be}removed at {at}")
            }
            None => ", header or trailer rewritten".to_owned(),
        };
        output.line(&match self.recovery.verdict() {
            Verdict::Mendable => format!("{path}: {would_be}repaired; {left}{surplus}"),
            Verdict::Damaged => {
                let why = match self.recovery.generation().map(|chosen| chosen.standing) {
                    Some(Standing::Nested { .. }) => "the manifest belongs to a file inside it",
                    Some(Standing::Doubtful) => "the manifest may belong to another file",
                    _ => "damaged",
                };
                format!("{path}: {why}; not changed; -o OUT would save {left}")
            }
            Verdict::Doubtful => {
                format!("{path}: not changed; choose a manifest with {}", self.choice())
            }
            Verdict::Lost => format!("{path}: cannot be repaired: {}", self.reason()),
            _ => format!("{path}: sound; {left}"),
        })
    }

    fn print_saved(&self, path: &str, output: &mut Output) -> Result<(), Failure> {
        let left = self.left();
        output.line(&match (self.saved, self.recovery.verdict()) {
            (Some(byte_len), _) => format!("{path}: saved {left} in {}", human(byte_len)),
            (None, Verdict::Doubtful) => {
                format!("{path}: nothing saved; choose a manifest with --manifest")
            }
            (None, Verdict::Lost) => {
                format!("{path}: nothing saved: {}", self.reason())
            }
            (None, _) => format!("{path}: would save {left}"),
        })
    }

    /// Why a file is lost: what was searched for, and why the file does not open.
    fn reason(&self) -> String {
        let missing = match self.recovery.others() {
            [] => "no manifest was found",
            _ => "no manifest of its own was found",
        };
        match self.recovery.refusal() {
            Some(error) => format!("{missing}; {}", error.message()),
            None => missing.to_owned(),
        }
    }

    /// The option that chooses one of the others.
    fn choice(&self) -> &'static str {
        let mut others = self.recovery.others().iter();
        if others.any(Generation::is_mendable) { IN_PLACE } else { ELSEWHERE }
    }

    /// `2 of 3 objects, 1 unproved, 1 in part`.
    fn left(&self) -> String {
        let objects = self.recovery.objects();
        let of = |fate: Fate| objects.iter().filter(|object| object.fate == fate).count();
        let (lost, unproved, partial) = (of(Fate::Lost), of(Fate::Unproved), of(Fate::Partial));
        let all = count(objects.len() as u64, "object", "objects");
        let mut text = match lost {
            0 => all,
            lost => format!("{} of {all}", objects.len() - lost),
        };
        for (number, word) in [(unproved, "unproved"), (partial, "in part")] {
            if number > 0 {
                text.push_str(&format!(", {number} {word}"));
            }
        }
        text
    }
}

const IN_PLACE: &str = "--manifest";
const ELSEWHERE: &str = "-o OUT --manifest";

const fn option_for(generation: &Generation) -> &'static str {
    if generation.is_mendable() { IN_PLACE } else { ELSEWHERE }
}

const fn name_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Sound => "sound",
        Verdict::Mendable => "mendable",
        Verdict::Damaged => "damaged",
        Verdict::Doubtful => "doubtful",
        _ => "lost",
    }
}

const fn fate_of(fate: Fate) -> &'static str {
    match fate {
        Fate::Proved => "proved",
        Fate::Unproved => "unproved",
        Fate::Partial => "partial",
        _ => "lost",
    }
}

fn span(span: Span) -> impl Serialize {
    object! { offset: span.offset(), length: span.byte_len() }
}

fn remains(remains: &Remains) -> impl Serialize {
    object! {
        offset: remains.stored.offset(),
        length: remains.stored.byte_len(),
        decoded_length: remains.content_len,
    }
}

fn generation(generation: &Generation) -> impl Serialize {
    let (standing, nested_at) = match generation.standing {
        Standing::Whole => ("whole", None),
        Standing::Damaged => ("damaged", None),
        Standing::Nested { offset } => ("nested", Some(offset)),
        _ => ("doubtful", None),
    };
    object! {
        manifest: span(generation.manifest),
        end: generation.end,
        has_trailer: generation.has_trailer,
        copies: generation.copies,
        objects: generation.objects,
        standing,
        nested_at,
        proved: generation.proved,
        unproved: generation.unproved,
        refuted: generation.refuted,
    }
}

fn recovered(object: &Recovered) -> impl Serialize {
    let components = object.components.iter().map(|component| {
        object! {
            role: &component.role,
            fate: fate_of(component.fate),
            error: component.error.as_ref().map(ErrorBody::from),
        }
    });
    object! {
        name: &object.name,
        fate: fate_of(object.fate),
        error: object.error.as_ref().map(ErrorBody::from),
        components: components.collect::<Vec<_>>(),
    }
}
