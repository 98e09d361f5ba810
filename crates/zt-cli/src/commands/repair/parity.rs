//! `zt repair --seal --parity`: wrong leaves are computed from right ones and a parity file.

use std::path::{Path, PathBuf};

use zt::{Error, FileSource, Source, codes};
use zt_model::seal::{Files, ParityMended, Seal, SealOptions, mend_with_parity};

use super::Arguments;
use super::sealed::{expect_itself, flaw, print};
use crate::failure::{Exit, Failure};
use crate::files::remote::{self, expect_local};
use crate::files::seals;
use crate::output::Output;
use crate::output::json::{object, path_text};
use crate::output::progress::Progress;
use crate::output::text::{self, count};

/// What is repaired.
struct Target {
    /// The folder of all files.
    folder: PathBuf,
    /// The name of each file of the seal in it.
    names: Vec<String>,
    /// The numbers of the files that may be replaced.
    wanted: Vec<usize>,
}

pub(super) fn run(
    arguments: &Arguments,
    path: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    expect_itself(arguments)?;
    let parity = match &arguments.parity {
        Some(parity) => parity.clone(),
        None => Some(seals::parity_of(path)).filter(|it| it.is_file()).ok_or_else(|| {
            let seal = text::path(path);
            Failure::misuse(format!(
                "--seal needs --from PLACE or --parity PARITY: there is no {seal}.parity"
            ))
        })?,
    };
    expect_local(&parity, "the parity must be a file of this machine")?;
    let seal = seals::read(path, &remote::options(&arguments.remote))?;
    let file = &arguments.file;
    let target = target(file, &seal)?;
    let sealed = seal.files.iter().map(|file| file.byte_len).fold(0, u64::saturating_add);
    let progress = Progress::new(Some(sealed));
    let report = |bytes| progress.report(bytes);
    let options =
        SealOptions::new().threads(arguments.jobs.threads()).progress(zt::Progress::new(&report));
    let files = Files::local(&target.folder);
    let open = || match FileSource::open(&parity) {
        Ok(source) => Ok(Box::new(source) as Box<dyn Source>),
        Err(error) => Err(Error::from(error).with_path(&parity)),
    };
    let Target { names, wanted, .. } = &target;
    let mended = arguments.wait.retry(|| {
        mend_with_parity(&files, &seal, names, wanted, open, arguments.dry_run, &options)
    });
    let mended = mended.map_err(|error| {
        if error.code() == codes::SEAL {
            return Failure::Refused(error.with_path(&parity));
        }
        Failure::Error(error.with_path(file))
    })?;
    drop(progress);
    /// Leaves that are told; `--json` has all.
    const TOLD: usize = 20;
    for (at, flaw) in mended.left.iter().take(TOLD) {
        let path = files.path_of(names.get(*at).map_or("", String::as_str));
        let path = text::path(&path).to_string();
        output.problem(codes::SEAL_MISMATCH, &format!("{}; not mended", flaw.of(&path)));
    }
    let exit = if mended.left.is_empty() { Exit::Ok } else { Exit::Failed };
    if output.json {
        document(arguments, path, &parity, &files, &target, &seal, &mended, output)?;
        return Ok(exit);
    }
    if exit == Exit::Ok {
        for (at, mended) in wanted.iter().zip(&mended.files) {
            let path = files.path_of(names.get(*at).map_or("", String::as_str));
            print(&path, &parity, mended, arguments.dry_run, output)?;
        }
    } else {
        let left = mended.left.iter().map(|(_, it)| it.leaves.end.saturating_sub(it.leaves.start));
        let left = count(left.fold(0, u64::saturating_add), "leaf", "leaves");
        let others = match mended.others {
            0 => String::new(),
            others => {
                let leaves = count(others, "leaf is", "leaves are");
                format!("; {leaves} wrong in other files")
            }
        };
        let path = text::path(file);
        output
            .line(&format!("{path}: the parity cannot mend {left}{others}; nothing was changed"))?;
    }
    Ok(exit)
}

fn target(file: &Path, seal: &Seal) -> Result<Target, Failure> {
    let mut names: Vec<String> = seal.files.iter().map(|file| file.path.clone()).collect();
    if file.is_dir() {
        let wanted = (0..names.len()).collect();
        return Ok(Target { folder: file.to_owned(), names, wanted });
    }
    let at = seal.find(file).map_err(|error| error.with_path(file))?;
    let sealed = seal.files.get(at).map_or("", |file| &file.path);
    // The folder of all files, if this one lies in it as it was sealed.
    let depth = if file.ends_with(sealed) { sealed.split('/').count() } else { 1 };
    let folder = file.ancestors().nth(depth).unwrap_or(Path::new("")).to_owned();
    if depth == 1
        && let Some(name) = names.get_mut(at)
    {
        let given = file.file_name().and_then(|name| name.to_str());
        *name = given.ok_or_else(|| Failure::misuse("the name of FILE is not Unicode"))?.to_owned();
    }
    Ok(Target { folder, names, wanted: vec![at] })
}

#[allow(clippy::too_many_arguments)]
fn document(
    arguments: &Arguments,
    seal_path: &Path,
    parity: &Path,
    files: &Files,
    target: &Target,
    seal: &Seal,
    mended: &ParityMended,
    output: &mut Output,
) -> Result<(), Failure> {
    let is_whole = mended.left.is_empty();
    let documents = target.wanted.iter().zip(&mended.files).map(|(at, it)| {
        let path = files.path_of(target.names.get(*at).map_or("", String::as_str));
        let left = mended.left.iter().filter(|(file, _)| file == at).map(|(_, it)| flaw(it));
        let verdict = match (it.changed, is_whole) {
            (false, _) => "sound",
            (true, true) => "mendable",
            (true, false) => "damaged",
        };
        object! {
            file: path_text(&path),
            seal: path_text(seal_path),
            parity: path_text(parity),
            dry_run: arguments.dry_run,
            verdict: verdict,
            changed: it.changed && is_whole && !arguments.dry_run,
            old_file_size: it.old_len,
            file_size: seal.files.get(*at).map(|file| file.byte_len),
            mended: if is_whole { it.fetched } else { 0 },
            flaws: it.flaws.iter().map(flaw).collect::<Vec<_>>(),
            left: left.collect::<Vec<_>>(),
        }
    });
    let documents: Vec<_> = documents.collect();
    match &documents[..] {
        [document] if !arguments.file.is_dir() => output.document(document),
        documents => output.document(&documents),
    }
}
