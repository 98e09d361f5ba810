//! An edit of a `.zt` file in place, or a dry run of one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use zt::{Editor, Error, ErrorKind, File, FileSource, Source, Storage, WriteOptions, codes};
use zt_convert::{Index, Input, ZT};
use zt_model::{EditedIndex, edited_indexes, indexes_of};

use crate::args::input::{InputArgs, Truncated};
use crate::failure::{Exit, Failure};
use crate::files::remote::expect_file;
use crate::output::Output;
use crate::output::json::path_text;
use crate::output::progress::Progress;
use crate::output::text;

/// The arguments of every command that edits a file in place.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The file to edit; a .zt file has layout 1.1 or 1.2
    pub(crate) file: PathBuf,
    /// Print what would happen, and change nothing; takes no lock on the file
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
}

/// The option of every command that locks a file.
#[derive(Debug, Clone, Args)]
pub(crate) struct WaitArgs {
    /// While another program edits the file, wait and try again, at most this many seconds [default:
    /// without a limit]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    wait: Option<Option<u32>>,
}

impl WaitArgs {
    /// Calls `begin` until no other program has the file locked, or the time is over.
    ///
    /// # Errors
    ///
    /// Code `interrupted` after a signal; otherwise as `begin`.
    pub(crate) fn retry<T>(&self, mut begin: impl FnMut() -> zt::Result<T>) -> zt::Result<T> {
        const PAUSE: Duration = Duration::from_millis(20);
        let progress = Progress::new(Some(0));
        let since = Instant::now();
        loop {
            let begun = begin();
            let is_locked = matches!(&begun, Err(error) if error.code() == codes::LOCKED);
            let may_wait = self.wait.is_some_and(|seconds| {
                seconds.is_none_or(|seconds| since.elapsed().as_secs() < seconds.into())
            });
            if !is_locked || !may_wait {
                return begun;
            }
            thread::sleep(PAUSE);
            progress.advance(0)?;
        }
    }
}

/// An edit of objects of one file, or of a set.
pub(crate) struct Set {
    input: Input,
}

impl EditArgs {
    /// The set that the file stands for, by its index or its folder; `None` for a file.
    pub(crate) fn set(&self) -> Result<Option<Set>, Failure> {
        let is_index = self.file.to_string_lossy().ends_with(".index.json");
        if !is_index && !self.file.is_dir() {
            return Ok(None);
        }
        let input = InputArgs::default().open_input(&self.file, Truncated::Refused)?;
        // A folder with one file is not edited: an edit names its file.
        Ok((input.paths().len() > 1).then_some(Set { input }))
    }

    /// The indexes that name the file as their shard, as they will be: see [`EditedIndex::new`].
    pub(crate) fn indexes(
        &self,
        file: &File,
        new: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<EditedIndex>, Failure> {
        Ok(edited_indexes(&self.file, file, new)?)
    }

    /// Refuses a shard whose index would not have the objects that the edit adds.
    pub(crate) fn expect_no_shard(&self) -> Result<(), Failure> {
        let indexes = indexes_of(&self.file)?;
        let Some(index) = indexes.first() else {
            return Ok(());
        };
        let index = text::path(index);
        let message =
            format!("is a shard of {index}, which would not have the new objects: write a new set");
        let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message);
        Err(Failure::Error(error.with_path(&self.file)))
    }

    /// Replaces the indexes, if the file was, and gives their paths for JSON.
    pub(crate) fn publish(&self, indexes: Vec<EditedIndex>) -> Result<Vec<String>, Failure> {
        let indexes = if self.dry_run { Vec::new() } else { indexes };
        let paths = indexes.into_iter().map(EditedIndex::publish);
        Ok(paths.map(|path| Ok(path_text(&path?))).collect::<zt::Result<_>>()?)
    }
}

impl Set {
    pub(crate) const fn file(&self) -> &File {
        self.input.file()
    }

    /// The shards that have some of these objects, each with the names.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for a set without an index, whose files say how many there are.
    pub(crate) fn shards<'n>(
        &self,
        of: &EditArgs,
        names: impl IntoIterator<Item = &'n String>,
    ) -> Result<Vec<(EditArgs, BTreeSet<String>)>, Failure> {
        let index = self.input.paths().first();
        let is_index = |path: &&PathBuf| path.to_string_lossy().ends_with(".index.json");
        let Some(path) = index.filter(is_index) else {
            return of.expect_zt().map(|()| Vec::new());
        };
        let index = Index::open(path)?;
        let owners: HashMap<&str, &str> = index.tensors().collect();
        let mut shards: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
        for name in names {
            let shard = owners.get(name.as_str()).map(|shard| path.with_file_name(shard));
            shards.entry(shard.unwrap_or_else(|| path.clone())).or_default().insert(name.clone());
        }
        let (dry_run, wait) = (of.dry_run, &of.wait);
        let target = |file| EditArgs { file, dry_run, wait: wait.clone() };
        Ok(shards.into_iter().map(|(file, names)| (target(file), names)).collect())
    }
}

/// An edit that has begun.
pub(crate) struct Edit<'a> {
    pub(crate) editor: Editor,
    path: &'a Path,
    /// The storage of a dry run.
    dry: Option<Arc<DryRun>>,
}

impl EditArgs {
    /// The file in JSON.
    pub(crate) fn shown(&self) -> String {
        path_text(&self.file)
    }

    /// Prints the document, or what was done.
    pub(crate) fn answer(
        &self,
        document: &impl Serialize,
        what: &str,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        if output.json {
            output.document(document)?;
        } else {
            output.line(&self.line(what))?;
        }
        Ok(Exit::Ok)
    }

    /// The line `model.zt: what was done`, with a mark for a dry run.
    pub(crate) fn line(&self, what: &str) -> String {
        let path = text::path(&self.file);
        let mark = if self.dry_run { " (dry run: nothing was changed)" } else { "" };
        format!("{path}: {what}{mark}")
    }

    /// Refuses files that cannot be edited in place.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for another kind and for a sharded set.
    pub(crate) fn expect_zt(&self) -> Result<(), Failure> {
        expect_file(&self.file, "a remote file cannot be edited in place")?;
        let opened = InputArgs::default().open_input(&self.file, Truncated::Refused)?;
        let kind = opened.file().kind();
        if kind == ZT && opened.paths().len() == 1 {
            return Ok(());
        }
        let what = match kind {
            ZT => "a sharded set".to_owned(),
            kind => format!("a {kind} file"),
        };
        let message = format!("{what} cannot be edited in place: convert it first to one .zt file");
        let error = Error::new(ErrorKind::Unsupported, "unsupported", message);
        Err(Failure::Error(error.with_path(&self.file)))
    }

    /// Begins the edit, or its dry run.
    pub(crate) fn begin(&self, options: WriteOptions) -> Result<Edit<'_>, Failure> {
        self.expect_zt()?;
        let path = &self.file;
        let begun = if self.dry_run {
            zt::foreign::open_settled(path, |source| {
                let dry = Arc::new(DryRun::new(source));
                let storage = Arc::clone(&dry) as Arc<dyn Storage>;
                Ok((options.clone().edit_storage(storage)?, Some(dry)))
            })
        } else {
            let edit = || options.clone().edit(path);
            self.wait.retry(edit).map(|editor| (editor, None))
        };
        let begun = begun.map_err(|error| Failure::Refused(error.with_path(path)));
        begun.map(|(editor, dry)| Edit { editor, path, dry })
    }
}

impl Edit<'_> {
    /// Commits the edit; the length of the file after it.
    pub(crate) fn commit(self) -> Result<u64, Failure> {
        let of_path = |error: Error| error.with_path(self.path);
        self.editor.commit().map_err(of_path)?;
        if let Some(dry) = self.dry {
            return Ok(dry.byte_len.load(Ordering::Relaxed));
        }
        let metadata = std::fs::metadata(self.path);
        Ok(metadata.map_err(|error| of_path(error.into()))?.len())
    }
}

/// A file whose changes are dropped. An edit never reads its own writes.
struct DryRun {
    source: Arc<FileSource>,
    byte_len: AtomicU64,
}

impl DryRun {
    fn new(source: Arc<FileSource>) -> Self {
        DryRun { byte_len: source.byte_len().into(), source }
    }
}

impl Storage for DryRun {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.byte_len.load(Ordering::Relaxed))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.source.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        self.byte_len.fetch_max(end, Ordering::Relaxed);
        Ok(())
    }

    fn set_len(&self, byte_len: u64) -> io::Result<()> {
        self.byte_len.store(byte_len, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
