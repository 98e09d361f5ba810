//! `zt fetch`: whole files of stores.

use std::path::PathBuf;

use clap::Args;

use crate::args::glob;
use crate::args::size::Size;
#[cfg(not(feature = "remote"))]
use crate::failure::{Exit, Failure};
use crate::files::remote::RemoteArgs;
#[cfg(not(feature = "remote"))]
use crate::output::Output;

/// Fetch files, and give them their names only when they are whole
///
/// URL is a file, or a whole model: `hf:OWNER/NAME[@REVISION]`, the index of a set (`model.safetensors.index.json`, with its
/// shards), or a folder of a store with a slash at the end (of a web server, if it has SHA256SUMS). Bytes come by several
/// requests at once into a hidden file beside the output. A fetch that was stopped goes on where it was.
///
/// The SHA-256 is compared with --sha256, or with what the Hub, the server's headers (Repr-Digest) or SHA256SUMS in the same folder
/// say. Without any of them, only the length is checked, and a note says so.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The address of a file, of an index, of a folder or of a repository
    pub(crate) url: PathBuf,

    /// The file, or the folder, to write [default: the last part of URL]
    #[arg(value_name = "OUT", conflicts_with = "output")]
    pub(crate) out: Option<PathBuf>,

    /// The file, or the folder, to write
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// Replace files that exist
    #[arg(short, long)]
    pub(crate) force: bool,

    /// Fetch only files of these names, such as '*.safetensors'. Can be repeated
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern)]
    pub(crate) include: Vec<String>,

    /// Do not fetch files of these names. Can be repeated
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern)]
    pub(crate) exclude: Vec<String>,

    /// Refuse a file with another SHA-256
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    pub(crate) sha256: Option<[u8; 32]>,

    /// Fetch the files of this seal, and refuse other bytes than those that were sealed
    #[arg(long, value_name = "SEAL", conflicts_with = "sha256")]
    pub(crate) seal: Option<PathBuf>,

    /// Write into the Hub's cache, where transformers looks for the files of hf: addresses [default of DIR: HF_HUB_CACHE]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, conflicts_with_all = ["out", "output"])]
    pub(crate) hub_cache: Option<Option<PathBuf>>,

    /// Requests at a time [default: 16]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), hide_short_help = true)]
    pub(crate) jobs: Option<u16>,

    /// The most bytes a second, such as 20MB
    #[arg(long, value_name = "SIZE", value_parser = Size::parse, hide_short_help = true)]
    pub(crate) limit_rate: Option<Size>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt fetch hf:openai-community/gpt2 --include '*.safetensors' --include '*.json'
  zt fetch https://host/model.gguf -o models/
  zt fetch s3://bucket/llama/model.safetensors.index.json    the index and all its shards
  zt fetch hf:openai-community/gpt2 --hub-cache              for transformers, offline

Keys of --json: `files`, each with `url`, `path`, `byte_len`, `kept` (bytes that an earlier run had
fetched), `sha256` (null with --seal), `checked` (`given`, `leaves`, `hub`, `header`, `sums`, `none`), and `again` (leaves that came
wrong, and right the second time); `present` (files that were there already, with --hub-cache).";

/// A SHA-256, with or without `sha256:` before it.
fn sha256(text: &str) -> Result<[u8; 32], String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    match format!("sha256:{digits}").parse() {
        Ok(zt::Digest::Sha256(sum)) => Ok(sum),
        _ => Err("expected 64 hexadecimal digits".to_owned()),
    }
}

#[cfg(not(feature = "remote"))]
pub(crate) fn run(arguments: &Arguments, _: &mut Output) -> Result<Exit, Failure> {
    let why = "this build does not read URLs: build with the feature `remote`";
    let error = zt::Error::new(zt::ErrorKind::Unsupported, zt::codes::UNSUPPORTED, why);
    Err(Failure::Error(error.with_path(&arguments.url)))
}

#[cfg(feature = "remote")]
pub(crate) use with_stores::run;

#[cfg(feature = "remote")]
mod with_stores {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::{fs, io};

    use zt::{Digest, Error, ErrorKind, codes};
    use zt_model::seal::{LEAF, Seal};
    use zt_remote::{
        DownloadOptions, Downloaded, HubCache, Leaves, List, Listed, Proof, RemoteOptions,
    };

    use super::Arguments;
    use crate::args::glob;
    use crate::failure::{Exit, Failure};
    use crate::files::remote::{self, stores, typed_url};
    use crate::files::seals;
    use crate::output::Output;
    use crate::output::json::{object, path_text, paths};
    use crate::output::progress::Progress;
    use crate::output::size::human;
    use crate::output::text::{self, count};
    use zt_convert::foreign::without_secrets;

    pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
        let shown = &arguments.url;
        let url = typed_url(shown).ok_or_else(|| {
            let shown = text::path(shown);
            Failure::misuse(format!(
                "{shown} is no URL: fetch takes https:, hf:, s3:, gs: and az: addresses"
            ))
        })?;
        let mut options = stores(&arguments.remote);
        if let Some(jobs) = arguments.jobs {
            options = options.in_flight(jobs.into());
        }
        if let Some(rate) = arguments.limit_rate {
            rate.note("--limit-rate", output);
        }
        let seal = arguments.seal.as_ref();
        let seal = seal.map(|seal| seals::read(seal, &remote::options(&arguments.remote)));
        let seal = seal.transpose()?;
        let list = match &seal {
            None => zt_remote::list(&url, &options),
            Some(seal) => sealed(&url, seal, &options),
        };
        let list = list.map_err(|error| error.with_path(shown))?;
        let (done, present) = (Vec::new(), Vec::new());
        let mut run = Run { arguments, options, seal, output, done, present };
        match list {
            None => run.one(&url, None)?,
            Some(list)
                if arguments.seal.is_some() && !url.ends_with('/') && list.files.len() == 1 =>
            {
                run.one(&url, list.files.first())?;
            }
            Some(list) => run.several(&list)?,
        }
        run.report()
    }

    /// The files of a seal. `url` is a folder or a repository, which must have all of them; an index, whose set the
    /// seal must have; or a file, which the seal must have by its name.
    fn sealed(url: &str, seal: &Seal, options: &RemoteOptions) -> zt::Result<Option<List>> {
        let files = || seal.files.iter().map(|it| (it.path.clone(), it.byte_len, it.sha256));
        let place = url.split(['?', '#']).next().unwrap_or_default();
        if place.ends_with('/') && !place.starts_with("hf:") {
            return List::below(url, files()).map(Some);
        }
        let name = place.rsplit('/').next().unwrap_or_default();
        let mut list = match zt_remote::list(url, options)? {
            Some(list) => list,
            None => List::below(url, files().filter(|(path, ..)| path == name))?,
        };
        if list.is_repository() {
            // It has more files than its model.
            list.files.retain(|file| seal.file(&file.name).is_some());
            let has = |path: &str| list.files.iter().any(|file| file.name == path);
            if let Some(lost) = seal.files.iter().find(|file| !has(&file.path)) {
                let path = lost.path.escape_debug();
                let why = format!("the repository has no file {path}, and the seal has it");
                return Err(Error::new(ErrorKind::Malformed, codes::SEAL_MISMATCH, why));
            }
        }
        for file in &mut list.files {
            file.sha256 = seal.file(&file.name).map(|known| known.sha256);
            file.proof = Proof::Given;
        }
        let unknown = list.files.iter().find(|file| file.sha256.is_none());
        if list.files.is_empty() || unknown.is_some() {
            let name = unknown.map_or(name, |file| &file.name);
            let why = format!("the seal has no file {}", name.escape_debug());
            return Err(Error::new(ErrorKind::Misuse, codes::NOT_FOUND, why));
        }
        Ok(Some(list))
    }

    struct Run<'a> {
        arguments: &'a Arguments,
        options: RemoteOptions,
        seal: Option<Arc<Seal>>,
        output: &'a mut Output,
        done: Vec<(String, Downloaded)>,
        present: Vec<PathBuf>,
    }

    /// The leaves of a file of a seal.
    struct Sealed<'s> {
        seal: &'s Seal,
        at: usize,
    }

    impl Leaves for Sealed<'_> {
        fn byte_len(&self) -> u64 {
            self.seal.files.get(self.at).map_or(0, |file| file.byte_len)
        }

        fn leaf_len(&self) -> usize {
            zt::container::memory::in_memory(LEAF)
        }

        fn check(&self, leaf: u64, bytes: &[u8]) -> zt::Result<()> {
            self.seal.check_leaf(self.at, leaf, bytes)
        }
    }

    impl Run<'_> {
        fn one(&mut self, url: &str, listed: Option<&Listed>) -> Result<(), Failure> {
            if self.arguments.hub_cache.is_some() {
                return Err(Failure::misuse(
                    "--hub-cache is for repositories: hf:OWNER/NAME".to_owned(),
                ));
            }
            let name = last_part(url)?;
            let out = self.out().map_or_else(|| PathBuf::from(&name), Path::to_owned);
            let is_folder = out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
            let path = if is_folder { out.join(&name) } else { out };
            self.fetch(url, &path, listed)
        }

        fn several(&mut self, list: &List) -> Result<(), Failure> {
            if self.arguments.sha256.is_some() {
                return Err(Failure::misuse("--sha256 is for one file".to_owned()));
            }
            let wanted = self.wanted(&list.files)?;
            let Some(cache) = self.cache(list)? else {
                let out = match self.out() {
                    Some(out) => out.to_owned(),
                    None => PathBuf::from(last_part(&self.arguments.url.to_string_lossy())?),
                };
                for file in wanted {
                    self.fetch(&file.url, &out.join(&file.name), Some(file))?;
                }
                return Ok(());
            };
            for file in &wanted {
                let blob = cache.blob(file).ok_or_else(|| {
                    let why = format!("{}: the Hub does not name its blob", file.name);
                    Error::new(ErrorKind::Malformed, codes::HEADER, why)
                })?;
                if blob.is_file() {
                    self.present.push(cache.link(file)?);
                    continue;
                }
                self.fetch(&file.url, &blob, Some(file))?;
                let link = cache.link(file)?;
                if let Some((_, last)) = self.done.last_mut() {
                    last.path = link;
                }
            }
            Ok(cache.finish()?)
        }

        fn wanted<'f>(&self, files: &'f [Listed]) -> Result<Vec<&'f Listed>, Failure> {
            let Arguments { include, exclude, .. } = self.arguments;
            glob::expect_few(include.iter().chain(exclude))?;
            let is_wanted = |file: &&Listed| {
                (include.is_empty() || glob::any_matches(include, &file.name))
                    && !glob::any_matches(exclude, &file.name)
            };
            let wanted: Vec<&Listed> = files.iter().filter(is_wanted).collect();
            if wanted.is_empty() {
                let why = format!("none of {} files is wanted", files.len());
                return Err(Error::new(ErrorKind::Misuse, codes::NOT_FOUND, why)
                    .with_path(&self.arguments.url)
                    .into());
            }
            Ok(wanted)
        }

        fn cache(&self, list: &List) -> Result<Option<HubCache>, Failure> {
            let Some(folder) = &self.arguments.hub_cache else {
                return Ok(None);
            };
            let folder = folder.clone().or_else(HubCache::default_folder);
            let folder = folder.ok_or_else(|| {
                Failure::misuse("--hub-cache: there is no folder of the user".to_owned())
            })?;
            let cache = HubCache::new(&folder, list);
            let cache = cache.ok_or_else(|| {
                Failure::misuse("--hub-cache is for repositories: hf:OWNER/NAME".to_owned())
            })?;
            Ok(Some(cache))
        }

        fn out(&self) -> Option<&Path> {
            self.arguments.output.as_deref().or(self.arguments.out.as_deref())
        }

        fn fetch(
            &mut self,
            url: &str,
            path: &Path,
            listed: Option<&Listed>,
        ) -> Result<(), Failure> {
            if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
                fs::create_dir_all(folder)
                    .map_err(|error: io::Error| Error::from(error).with_path(folder))?;
            }
            let bar = Progress::new(listed.and_then(|file| file.byte_len));
            let progress = |bytes| bar.report(bytes);
            let options = DownloadOptions::new(&self.options);
            let options = match listed {
                Some(file) => options.listed(file),
                None => options.sha256(self.arguments.sha256),
            };
            let leaves = self.seal.as_deref().zip(listed);
            let leaves = leaves
                .and_then(|(seal, listed)| Some(Sealed { seal, at: seal.position(&listed.name)? }));
            let options = match &leaves {
                Some(leaves) => options.leaves(leaves),
                None => options,
            };
            let options = options
                .replace(self.arguments.force)
                .rate(self.arguments.limit_rate.map(|rate| rate.bytes))
                .progress(zt::Progress::new(&progress));
            let done = zt_remote::download(url, path, &options);
            drop(bar);
            let done = done.inspect_err(|error| {
                if error.code() == codes::OVERWRITE {
                    self.output.hint("--force replaces it");
                }
            })?;
            self.done.push((without_secrets(url), done));
            Ok(())
        }

        fn report(self) -> Result<Exit, Failure> {
            let Run { output, done, present, .. } = self;
            for (_, file) in done.iter().filter(|(_, file)| file.proof == Proof::Nothing) {
                output.note(&format!(
                    "{}: nothing gives its SHA-256, so only its length was checked",
                    text::path(&file.path)
                ));
            }
            for (_, file) in done.iter().filter(|(_, file)| file.again > 0) {
                let leaves = count(file.again, "leaf", "leaves");
                let path = text::path(&file.path);
                output.note(&format!("{path}: {leaves} came wrong, and right the second time"));
            }
            if output.json {
                let files = done.iter().map(|(url, file)| {
                    object! {
                        url: url,
                        path: path_text(&file.path),
                        byte_len: file.byte_len,
                        kept: file.kept,
                        sha256: digits(file),
                        checked: name(file.proof),
                        again: file.again,
                    }
                });
                let files: Vec<_> = files.collect();
                output.document(&object! { files: files, present: paths(&present) })?;
                return Ok(Exit::Ok);
            }
            for (_, file) in &done {
                let path = text::path(&file.path);
                let kept = if file.kept > 0 {
                    format!(", {} kept", human(file.kept))
                } else {
                    String::new()
                };
                let bytes = human(file.byte_len);
                let sum = match digits(file) {
                    Some(digits) => format!("sha256:{digits}"),
                    None => "all leaves are those of the seal".to_owned(),
                };
                output.line(&format!("{path}: {bytes}{kept}, {sum}"))?;
            }
            for path in &present {
                output.line(&format!("{}: was there", text::path(path)))?;
            }
            Ok(Exit::Ok)
        }
    }

    /// The SHA-256 as `sha256sum` prints it.
    fn digits(file: &Downloaded) -> Option<String> {
        let text = Digest::Sha256(file.sha256?).to_string();
        Some(text.trim_start_matches("sha256:").to_owned())
    }

    fn name(proof: Proof) -> &'static str {
        match proof {
            Proof::Given => "given",
            Proof::Leaves => "leaves",
            Proof::Hub => "hub",
            Proof::Header => "header",
            Proof::Sums => "sums",
            _ => "none",
        }
    }

    /// The name of the output, from an address.
    fn last_part(url: &str) -> Result<String, Failure> {
        let place = url.split(['?', '#']).next().unwrap_or_default();
        let place = place
            .strip_suffix(".index.json")
            .and_then(|place| place.rsplit_once('/'))
            .map_or(place, |(folder, _)| folder);
        let name = place.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        let name = name.split('@').next().unwrap_or_default();
        if matches!(name, "" | "." | "..") {
            return Err(Failure::misuse(format!("{place} has no name: -o gives one")));
        }
        Ok(name.to_owned())
    }
}
