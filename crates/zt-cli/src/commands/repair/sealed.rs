//! `zt repair --seal`: wrong leaves are fetched from another place.

use std::path::{Path, PathBuf};

use serde::Serialize;
use zt::{Error, ErrorKind, Result, Source, codes};
use zt_model::Beside;
use zt_model::seal::{Fault, Flaw, Mended, Seal, SealOptions, mend};

use super::Arguments;
use crate::failure::{Exit, Failure};
use crate::files::remote::{self, location};
use crate::files::seals;
use crate::output::Output;
use crate::output::json::{object, path_text};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{self, count};

/// A file that is compared and repaired.
struct Target {
    path: PathBuf,
    /// Its number in the seal.
    at: usize,
}

pub(super) fn run(
    arguments: &Arguments,
    path: &Path,
    from: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    expect_itself(arguments)?;
    let seal = seals::read(path, &remote::options(&arguments.remote))?;
    let file = &arguments.file;
    let is_folder = file.is_dir();
    let targets: Vec<Target> = if is_folder {
        let all = (0..).zip(&seal.files);
        all.map(|(at, sealed)| Target { path: file.join(&sealed.path), at }).collect()
    } else {
        let at = seal.find(file).map_err(|error| error.with_path(file))?;
        vec![Target { path: file.clone(), at }]
    };
    let mut documents = Vec::new();
    for Target { path: target, at } in &targets {
        let sealed = seal.files.get(*at).map_or(0, |file| file.byte_len);
        let progress = Progress::new(Some(sealed));
        let report = |bytes| progress.report(bytes);
        let options = SealOptions::new()
            .threads(arguments.jobs.threads())
            .progress(zt::Progress::new(&report));
        let open = || open(from, &seal, *at, arguments, is_folder);
        let mended = arguments
            .wait
            .retry(|| mend(target, &seal, *at, open, arguments.dry_run, &options))
            .map_err(|failure| failure.with_path(target))?;
        drop(progress);
        if output.json {
            documents.push(document(target, path, from, sealed, &mended, arguments.dry_run));
        } else {
            print(target, from, &mended, arguments.dry_run, output)?;
        }
    }
    if output.json {
        match &documents[..] {
            [document] if !is_folder => output.document(document)?,
            documents => output.document(&documents)?,
        }
    }
    Ok(Exit::Ok)
}

/// Refuses options of other repairs.
pub(super) fn expect_itself(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.output.is_some() || arguments.manifest.is_some() {
        return Err(Failure::misuse("--seal repairs FILE itself: leave out OUT and --manifest"));
    }
    Ok(())
}

/// The file at the other place.
fn open(
    from: &Path,
    seal: &Seal,
    at: usize,
    arguments: &Arguments,
    is_folder: bool,
) -> Result<Box<dyn Source>> {
    let Some(sealed) = seal.files.get(at) else {
        return Err(Fault::NotSealed { path: at.to_string() }.into());
    };
    let place = location(from);
    let options = remote::options(&arguments.remote);
    let Beside { files, name, found, .. } = place.beside(Some(&sealed.path), &options)?;
    let last = || found.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let name = match name {
        Some(_) if is_folder => {
            let message = "FILE is a folder, and --from is not: give the folder that has all files";
            return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message).with_path(from));
        }
        Some(name) => name,
        // The folder of the file was opened.
        None if place.is_url() => last().unwrap_or_default(),
        None => sealed.path.clone(),
    };
    files.open_one(&name)
}

fn document(
    file: &Path,
    seal: &Path,
    from: &Path,
    file_size: u64,
    mended: &Mended,
    dry_run: bool,
) -> impl Serialize + use<> {
    object! {
        file: path_text(file),
        seal: path_text(seal),
        from: path_text(from),
        dry_run: dry_run,
        verdict: if mended.changed { "mendable" } else { "sound" },
        changed: mended.changed && !dry_run,
        old_file_size: mended.old_len,
        file_size: file_size,
        fetched: mended.fetched,
        flaws: mended.flaws.iter().map(flaw).collect::<Vec<_>>(),
    }
}

pub(super) fn flaw(flaw: &Flaw) -> impl Serialize + use<> {
    object! {
        leaf: flaw.leaves.start,
        leaves: flaw.leaves.end.saturating_sub(flaw.leaves.start),
        offset: flaw.span.offset(),
        end: flaw.span.end(),
        damage: flaw.damage.as_str(),
        tensors: flaw.tensors.clone(),
    }
}

pub(super) fn print(
    file: &Path,
    from: &Path,
    mended: &Mended,
    dry_run: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    let path = text::path(file);
    if !mended.changed {
        return output.line(&format!("{path}: sound; nothing was changed"));
    }
    let leaves = mended.flaws.iter().map(|it| it.leaves.end.saturating_sub(it.leaves.start));
    let leaves = count(leaves.fold(0, u64::saturating_add), "leaf", "leaves");
    let would_be = if dry_run { "would be " } else { "" };
    let (bytes, from) = (human(mended.fetched), text::path(from));
    output.line(&format!("{path}: {would_be}repaired; {leaves}, {bytes}, from {from}"))
}
