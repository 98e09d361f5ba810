//! `zt repair`: what is left of a `.zt` file that was cut, torn or damaged.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use zt::{
    Error, Fate, FileSource, Generation, Recovered, RecoveredComponent, Recovery, RepairOptions,
    Span, Standing, Verdict, examine, repair,
};
use zt_convert::is_same_file;

use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure};
use crate::files::path::{is_stdout, refuse_stdin};
use crate::output::Output;
use crate::output::json::ErrorBody;
use crate::output::size::human;
use crate::output::text::{count, printable};
use crate::progress::Progress;

/// Repair a .zt file that was cut, torn or damaged
///
/// Without -o, a file whose last generation is whole is made to end with it: what an edit that was cut
/// short or a bad copy left behind it is taken away, a header or trailer that is gone is written.
/// Objects and manifest are not touched. With -o, FILE is not changed, and every object whose stored
/// bytes have their digests is written to OUT; what has no digest is kept and said to be unproved.
/// Digests prove stored bytes: names and shapes have none.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The .zt file
    file: PathBuf,
    /// Save what is left to this file, and do not change FILE
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// The manifest to go by, where there are several: its offset, as --dry-run lists them
    #[arg(long, value_name = "OFFSET")]
    manifest: Option<u64>,
    /// Replace OUT if it is there
    #[arg(short, long, requires = "output")]
    force: bool,
    #[command(flatten)]
    jobs: Jobs,
}

const EXAMPLES: &str = "\
Examples:
  zt repair --dry-run model.zt
  zt repair model.zt
  zt repair model.zt -o saved.zt
  zt repair model.zt -o older.zt --manifest 4160

Exit: 0 repaired, saved, or nothing to do; 1 something is lost; 3 nothing to repair from.

With --json the keys are `file`, `output`, `old_file_size`, `file_size` (FILE's, afterwards),
`saved_size` (OUT's), `layout`, `dry_run`, `verdict` (`sound`; `mendable`, in place; `damaged`, to
be saved with -o, or chosen and not the file's for certain; `doubtful`, choose with --manifest;
`lost`), `changed`, `generation`, `surplus` (`offset`, `length`: what is behind the generation),
`objects` (each with `name`, `fate`, `error`,
`components`; a fate is `proved`, `unproved`, `partial` or `lost`), `others` (generations that were
not chosen), `exhaustive` and `error` (why the file is refused as it is). A generation has
`manifest` (`offset`, `length`), `end`, `has_trailer`, `copies`, `objects`, `standing` (`whole`,
`damaged`, `doubtful`, `nested`), `nested_at`, and its components `proved`, `unproved` and
`refuted`.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    output: Option<String>,
    old_file_size: u64,
    file_size: u64,
    saved_size: Option<u64>,
    layout: Option<&'static str>,
    dry_run: bool,
    verdict: &'static str,
    changed: bool,
    generation: Option<GenerationBody>,
    surplus: Option<SpanBody>,
    objects: Vec<ObjectBody<'a>>,
    others: Vec<GenerationBody>,
    exhaustive: bool,
    error: Option<ErrorBody>,
}

#[derive(Serialize)]
struct SpanBody {
    offset: u64,
    length: u64,
}

#[derive(Serialize)]
struct GenerationBody {
    manifest: SpanBody,
    end: u64,
    has_trailer: bool,
    copies: usize,
    objects: usize,
    standing: &'static str,
    nested_at: Option<u64>,
    proved: u64,
    unproved: u64,
    refuted: u64,
}

#[derive(Serialize)]
struct ObjectBody<'a> {
    name: &'a str,
    fate: &'static str,
    error: Option<ErrorBody>,
    components: Vec<ComponentBody<'a>>,
}

#[derive(Serialize)]
struct ComponentBody<'a> {
    role: &'a str,
    fate: &'static str,
    error: Option<ErrorBody>,
}

/// What was found and what was done about it.
struct Outcome<'a> {
    arguments: &'a Arguments,
    recovery: &'a Recovery,
    old_len: u64,
    /// The length of what was saved.
    saved: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let path = &arguments.file;
    let blame = |error: Error| error.with_path(path);
    refuse_stdin(path)?;
    if let Some(out) = &arguments.output {
        if is_stdout(out) {
            return Err(Failure::misuse(
                "what is saved goes to a file: stdout holds the report",
            ));
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
    let options = RepairOptions {
        threads: arguments.jobs.threads(),
        progress: Some(&report),
        manifest: arguments.manifest,
        ..RepairOptions::default()
    };

    let source = FileSource::open(path).map_err(|error| blame(error.into()))?;
    let old_len = zt::Source::byte_len(&source);
    let recovery = match (&arguments.output, arguments.dry_run) {
        (None, false) => repair(path, &options)?,
        _ => examine(source, &options).map_err(blame)?,
    };
    let saved = match (&arguments.output, recovery.generation()) {
        (Some(out), Some(_)) if !arguments.dry_run => {
            Some(recovery.save(out, arguments.force, Some(&report))?)
        }
        _ => None,
    };
    drop(progress);
    let outcome = Outcome {
        arguments,
        recovery: &recovery,
        old_len,
        saved,
    };
    if output.json {
        output.document(&outcome.document())?
    } else {
        outcome.tell(output)?
    }
    Ok(outcome.exit())
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

    /// The generation that the file is made to end with, or would be.
    fn mended(&self) -> Option<&Generation> {
        let in_place = self.arguments.output.is_none();
        let is_mended = in_place && self.recovery.verdict() == Verdict::Mendable;
        self.recovery.generation().filter(|_| is_mended)
    }

    fn is_changed(&self) -> bool {
        self.mended().is_some() && !self.arguments.dry_run
    }

    fn document(&self) -> Document<'_> {
        let recovery = self.recovery;
        let output = self.arguments.output.as_ref();
        Document {
            file: self.arguments.file.display().to_string(),
            output: output.map(|path| path.display().to_string()),
            old_file_size: self.old_len,
            file_size: self.mended().map_or(self.old_len, |mended| mended.end),
            saved_size: self.saved,
            layout: recovery.file().and_then(zt::File::layout),
            dry_run: self.arguments.dry_run,
            verdict: name_of(recovery.verdict()),
            changed: self.is_changed(),
            generation: recovery.generation().map(GenerationBody::from),
            surplus: recovery.surplus().map(SpanBody::from),
            objects: recovery.objects().iter().map(ObjectBody::from).collect(),
            others: recovery.others().iter().map(GenerationBody::from).collect(),
            exhaustive: recovery.is_exhaustive(),
            error: recovery.refusal().map(ErrorBody::from),
        }
    }

    fn tell(&self, output: &mut Output) -> Result<(), Failure> {
        let recovery = self.recovery;
        let verdict = recovery.verdict();
        let blame = |error: &Error| error.clone().with_path(&self.arguments.file);
        for object in recovery.objects() {
            let components = object.components.iter().filter_map(|c| c.error.as_ref());
            for error in object.error.iter().chain(components) {
                output.error(&blame(error));
            }
        }
        if let (Verdict::Lost | Verdict::Doubtful, Some(error)) = (verdict, recovery.refusal()) {
            output.error(&blame(error));
        }
        self.note_others(output);
        let path = self.arguments.file.display().to_string();
        let path = printable(&path);
        match self.arguments.output {
            Some(_) => self.tell_saved(&path, output),
            None => self.tell_in_place(&path, output),
        }
    }

    fn note_others(&self, output: &Output) {
        for other in self.recovery.others() {
            let at = other.manifest.offset();
            let objects = count(other.objects as u64, "object", "objects");
            let takes = takes(other);
            output.note(&match other.standing {
                Standing::Nested { offset } => format!(
                    "a .zt file of {objects} lies within, from {offset} on: {takes} {at} \
                     saves it"
                ),
                Standing::Doubtful => format!(
                    "the manifest at {at}, of {objects}, may be this file's or the beginning of it, or \
                     that of a file within: {takes} {at} takes it"
                ),
                _ => format!(
                    "there is an older manifest at {at}, of {objects}: {takes} {at} goes back \
                     to it"
                ),
            });
        }
        if !self.recovery.is_exhaustive() {
            output.note(
                "not every place was looked at: there are too many that look like a manifest",
            );
        }
    }

    fn tell_in_place(&self, path: &str, output: &mut Output) -> Result<(), Failure> {
        let left = self.left();
        let surplus = match self.recovery.surplus() {
            Some(surplus) => format!(
                ", {} from {} on {}",
                human(surplus.byte_len()),
                surplus.offset(),
                if self.arguments.dry_run {
                    "would go"
                } else {
                    "are gone"
                },
            ),
            None => ", its header or trailer written".to_owned(),
        };
        let would_be = if self.arguments.dry_run {
            "would be "
        } else {
            ""
        };
        output.line(&match self.recovery.verdict() {
            Verdict::Mendable => format!("{path}: {would_be}repaired; {left}{surplus}"),
            Verdict::Damaged => {
                let why = match self.recovery.generation().map(|chosen| chosen.standing) {
                    Some(Standing::Nested { .. }) => "the manifest is that of a file within",
                    Some(Standing::Doubtful) => "whose the manifest is, is in doubt",
                    _ => "damaged",
                };
                format!("{path}: {why}, and not changed; -o OUT would save {left}")
            }
            Verdict::Doubtful => format!("{path}: not changed; choose with {}", self.choice()),
            Verdict::Lost => format!("{path}: nothing to repair from: {}", self.none()),
            _ => format!("{path}: sound; {left}"),
        })
    }

    fn tell_saved(&self, path: &str, output: &mut Output) -> Result<(), Failure> {
        let left = self.left();
        output.line(&match (self.saved, self.recovery.verdict()) {
            (Some(byte_len), _) => format!("{path}: saved {left}, in {}", human(byte_len)),
            (None, Verdict::Doubtful) => {
                format!("{path}: nothing was saved; choose with --manifest")
            }
            (None, Verdict::Lost) => {
                format!("{path}: nothing to save by: {}", self.none())
            }
            (None, _) => format!("{path}: would save {left}"),
        })
    }

    /// Which manifests a file that is lost does not have.
    fn none(&self) -> &'static str {
        match self.recovery.others() {
            [] => "no manifest was found",
            _ => "no manifest was found that is its own",
        }
    }

    /// How one of the others is chosen.
    fn choice(&self) -> &'static str {
        let mut others = self.recovery.others().iter();
        if others.any(Generation::is_mendable) {
            IN_PLACE
        } else {
            ELSEWHERE
        }
    }

    /// `2 of 3 objects, 1 unproved, 1 in part`.
    fn left(&self) -> String {
        let objects = self.recovery.objects();
        let of = |fate: Fate| objects.iter().filter(|object| object.fate == fate).count();
        let (lost, unproved, partial) = (of(Fate::Lost), of(Fate::Unproved), of(Fate::Partial));
        let all = count(objects.len() as u64, "object", "objects");
        let mut text = match lost {
            0 => all,
            lost => format!("{} of {all}", objects.len().saturating_sub(lost)),
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

const fn takes(generation: &Generation) -> &'static str {
    if generation.is_mendable() {
        IN_PLACE
    } else {
        ELSEWHERE
    }
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

impl From<Span> for SpanBody {
    fn from(span: Span) -> Self {
        SpanBody {
            offset: span.offset(),
            length: span.byte_len(),
        }
    }
}

impl From<&Generation> for GenerationBody {
    fn from(generation: &Generation) -> Self {
        let (standing, nested_at) = match generation.standing {
            Standing::Whole => ("whole", None),
            Standing::Damaged => ("damaged", None),
            Standing::Nested { offset } => ("nested", Some(offset)),
            _ => ("doubtful", None),
        };
        GenerationBody {
            manifest: generation.manifest.into(),
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
}

impl<'a> From<&'a Recovered> for ObjectBody<'a> {
    fn from(object: &'a Recovered) -> Self {
        ObjectBody {
            name: &object.name,
            fate: fate_of(object.fate),
            error: object.error.as_ref().map(ErrorBody::from),
            components: object.components.iter().map(ComponentBody::from).collect(),
        }
    }
}

impl<'a> From<&'a RecoveredComponent> for ComponentBody<'a> {
    fn from(component: &'a RecoveredComponent) -> Self {
        ComponentBody {
            role: &component.role,
            fate: fate_of(component.fate),
            error: component.error.as_ref().map(ErrorBody::from),
        }
    }
}
