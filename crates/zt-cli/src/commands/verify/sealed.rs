//! `zt verify --seal`: files are compared with a seal.

use std::path::Path;

use serde::Serialize;
use zt::{Digest, codes};
use zt_model::Beside;
use zt_model::seal::{Checked, Contents, Damage, Seal, SealOptions, State, check};

use super::Arguments;
use crate::failure::{Exit, Failure, of_findings};
use crate::files::remote::{self, location};
use crate::output::Output;
use crate::output::json::path_text;
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{self, count};

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    seal: String,
    ok: bool,
    /// The files of the seal that were looked for.
    files: usize,
    bytes: u64,
    /// The content identities of the models, which hold if `ok` is true.
    content: Vec<String>,
    problems: Vec<Problem<'a>>,
}

/// A problem, with the keys of every problem first.
#[derive(Serialize)]
struct Problem<'a> {
    code: &'a str,
    message: String,
    file: String,
    object: Option<&'a str>,
    component: Option<&'a str>,
    offset: Option<u64>,
    /// `wrong`, `missing`, `extra` or `unread`.
    state: &'a str,
    size: Option<u64>,
    sealed_size: Option<u64>,
    /// The file of the seal that it is in truth.
    is: Option<&'a str>,
    leaf: Option<u64>,
    leaves: Option<u64>,
    end: Option<u64>,
    /// `other`, `zeros` or `cut`.
    damage: Option<&'a str>,
    tensors: &'a [String],
}

/// Compares each of the files with the seal at `path`.
pub(super) fn run(
    arguments: &Arguments,
    path: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    if arguments.headers || !arguments.input.select.is_empty() || arguments.input.logical {
        let message =
            "--seal compares whole files: leave out --headers, --logical and the choice of objects";
        return Err(Failure::misuse(message));
    }
    let options = remote::options(&arguments.input.remote);
    let seal = arguments.input.read_seal(path, &options)?;
    let (mut exit, mut documents) = (Exit::Ok, Vec::new());
    let given = arguments.files.given();
    let mut all = Vec::with_capacity(given.len());
    for file in given {
        let found = compare(file, path, &seal, arguments);
        all.push((file, found.map_err(|failure| failure.with_path(file))?));
    }
    for (file, found) in &all {
        exit = exit.max(found.exit());
        if output.json {
            documents.push(found.document(file, path, &seal));
        }
        Failure::unless_closed(found.print(file, &seal, output))?;
    }
    if output.json {
        let printed = match &documents[..] {
            [document] if !arguments.files.is_list() => output.document(document),
            documents => output.document(&documents),
        };
        Failure::unless_closed(printed)?;
    }
    Ok(exit)
}

/// What was found of a file or of a folder.
struct Found {
    /// The numbers of the files of the seal that were looked for.
    wanted: Vec<usize>,
    checked: Vec<Checked>,
}

fn compare(file: &Path, path: &Path, seal: &Seal, arguments: &Arguments) -> Result<Found, Failure> {
    let options = remote::options(&arguments.input.remote);
    let place = location(file);
    let Beside { files, name, found, .. } = place.beside(seal.top(), &options)?;
    let (mut wanted, mut extra) = (Vec::new(), Vec::new());
    match name {
        None => {
            let all = (0..).zip(&seal.files);
            wanted.extend(all.map(|(at, file)| (at, file.path.clone())));
            if !place.is_url() {
                let names = Contents::names_in(file, Some(path))?;
                extra.extend(names.into_iter().filter(|name| seal.file(name).is_none()));
            }
        }
        Some(name) => {
            let at = seal.find(&found)?;
            let opener = seal.files.get(at).map_or("", |file| &file.path);
            let prefix = opener.rfind('/').map_or(0, |at| at.strict_add(1));
            let model = seal.models.iter().find(|model| model.path == opener);
            for other in model.map_or(vec![at], |model| seal.files_of(model)) {
                let path = seal.files.get(other).and_then(|file| file.path.get(prefix..));
                let path = path.filter(|_| other != at).unwrap_or(&name);
                wanted.push((other, path.to_owned()));
            }
        }
    }
    let total = || {
        let lens = wanted.iter().filter_map(|(at, _)| Some(seal.files.get(*at)?.byte_len));
        lens.fold(0, u64::saturating_add)
    };
    let progress = Progress::of(|| Some(total()));
    let report = |bytes| progress.report(bytes);
    let options =
        SealOptions::new().threads(arguments.jobs.threads()).progress(zt::Progress::new(&report));
    let checked = check(&files, seal, &wanted, &extra, &options)?;
    Ok(Found { wanted: wanted.into_iter().map(|(at, _)| at).collect(), checked })
}

impl Found {
    fn exit(&self) -> Exit {
        let exits = self.checked.iter().map(|checked| match &checked.state {
            State::Right => Exit::Ok,
            State::Unread(error) => of_findings([error]),
            _ => Exit::Failed,
        });
        exits.max().unwrap_or(Exit::Ok)
    }

    fn byte_len(&self, seal: &Seal) -> u64 {
        let files = self.wanted.iter().filter_map(|at| seal.files.get(*at));
        files.map(|file| file.byte_len).fold(0, u64::saturating_add)
    }

    fn document<'a>(&'a self, file: &Path, path: &Path, seal: &'a Seal) -> Document<'a> {
        let models = seal
            .models
            .iter()
            .filter(|model| seal.files_of(model).iter().all(|file| self.wanted.contains(file)));
        let content = models.filter_map(|model| model.content);
        Document {
            file: path_text(file),
            seal: path_text(path),
            ok: self.exit() == Exit::Ok,
            files: self.wanted.len(),
            bytes: self.byte_len(seal),
            content: content.map(|sum| Digest::Sha256(sum).to_string()).collect(),
            problems: self.checked.iter().flat_map(|it| problems(it, seal)).collect(),
        }
    }

    fn print(&self, file: &Path, seal: &Seal, output: &mut Output) -> Result<(), Failure> {
        /// Ranges of one file that are told; `--json` has all.
        const TOLD: usize = 20;
        for checked in &self.checked {
            let problems = problems(checked, seal);
            for problem in problems.iter().take(TOLD) {
                output.problem(problem.code, &problem.message);
            }
            if let Some(more @ 1..) = problems.len().checked_sub(TOLD) {
                let more = count(more as u64, "range", "ranges");
                let path = text::path(&checked.at);
                output.note(&format!("{path}: {more} more; --json lists all"));
            }
        }
        if output.json {
            return Ok(());
        }
        let wrong = self.checked.iter().filter(|it| !it.is_right()).count() as u64;
        let verdict = match wrong {
            0 => "ok".to_owned(),
            wrong => format!("{} from the seal", count(wrong, "file differs", "files differ")),
        };
        let files = count(self.wanted.len() as u64, "file", "files");
        let bytes = human(self.byte_len(seal));
        output.line(&format!("{}: {verdict}; {files}, {bytes} sealed", text::path(file)))
    }
}

/// What is wrong with one file: its length or its place first, then its leaves.
fn problems<'a>(checked: &'a Checked, seal: &'a Seal) -> Vec<Problem<'a>> {
    let path = text::path(&checked.at);
    let sealed = seal.file(&checked.path).map(|file| file.byte_len);
    let problem = |state, message| Problem {
        code: codes::SEAL_MISMATCH,
        message,
        file: path_text(&checked.at),
        object: None,
        component: None,
        offset: None,
        state,
        size: None,
        sealed_size: sealed,
        is: None,
        leaf: None,
        leaves: None,
        end: None,
        damage: None,
        tensors: &[],
    };
    let known = |is: &Option<String>| match is {
        Some(is) => format!("; it is the file {is:?} of the seal"),
        None => String::new(),
    };
    match &checked.state {
        State::Missing => vec![problem("missing", format!("{path}: is missing"))],
        State::Extra { is } => {
            let message = format!("{path}: is not in the seal{}", known(is));
            vec![Problem { is: is.as_deref(), ..problem("extra", message) }]
        }
        State::Unread(error) => {
            let message = error.clone().with_path(&checked.at).to_string();
            vec![Problem { code: error.code(), ..problem("unread", message) }]
        }
        State::Wrong { byte_len, flaws, is } => {
            let mut found = Vec::new();
            let expected = sealed.unwrap_or_default();
            if let Some(is) = is {
                let message = format!("{path}: is the file {is:?} of the seal");
                let is = Some(is.as_str());
                return vec![Problem { is, size: Some(*byte_len), ..problem("wrong", message) }];
            }
            if *byte_len != expected {
                let how = if *byte_len < expected {
                    "its end is missing"
                } else {
                    "something is behind its end"
                };
                let message =
                    format!("{path}: has {byte_len} bytes, the seal has {expected}: {how}");
                found.push(Problem { size: Some(*byte_len), ..problem("wrong", message) });
            }
            found.extend(flaws.iter().map(|flaw| Problem {
                offset: Some(flaw.span.offset()),
                object: flaw.tensors.first().map(String::as_str),
                size: Some(*byte_len),
                leaf: Some(flaw.leaves.start),
                leaves: Some(flaw.leaves.end.saturating_sub(flaw.leaves.start)),
                end: Some(flaw.span.end()),
                damage: Some(Damage::as_str(flaw.damage)),
                tensors: &flaw.tensors,
                ..problem("wrong", flaw.of(&path))
            }));
            found
        }
        _ => Vec::new(),
    }
}
