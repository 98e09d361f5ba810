//! The part of a file that is here: `.NAME.zt-part` beside the final name, and its list `.NAME.zt-list`.
//!
//! The list has a line for the version of the file, and one for each block that was written, with its CRC-32C. So
//! blocks that a loss of power has left empty are fetched again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use zt::container::Hasher;
use zt::foreign::{keep_access, open_locked, sync_folder, synced, uninterrupted};
use zt::{DigestAlgorithm, Error, ErrorKind, Progress, Result, Source, codes};

use crate::remote::Remote;

/// Requests of a block of the list. What lies behind the last whole block is fetched again.
const PARTS: u64 = 4;

/// The longest block.
const LONGEST: usize = 64 << 20;

const FIRST_LINE: &str = "zt-part 1";

pub(super) struct Partial {
    path: PathBuf,
    file: File,
    list_path: PathBuf,
    list: File,
    version: String,
    byte_len: u64,
    /// Bytes of a block of the list.
    block_len: usize,
    /// The sum of the block that is not whole yet, and its bytes so far.
    sum: Hasher,
    summed: usize,
}

impl Partial {
    /// Opens or creates the neighbours of `target`, and keeps others from them.
    pub(super) fn open(target: &Path, remote: &Remote, part: u64) -> Result<Self> {
        let name = target.file_name().ok_or_else(|| {
            let why = "names no file";
            Error::new(ErrorKind::Misuse, codes::PATH, why).with_path(target)
        })?;
        // Names have at most 255 bytes.
        let stem: String = name.to_string_lossy().chars().take(48).collect();
        let path = target.with_file_name(format!(".{stem}.zt-part"));
        let list_path = target.with_file_name(format!(".{stem}.zt-list"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let open = |path: &Path| options.open(path).map_err(|error| at(error, path));
        drop(open(&path)?);
        let file = open_locked(&path)?;
        let list = open(&list_path)?;
        let version = remote.version().unwrap_or_default();
        let byte_len = remote.byte_len();
        let block_len = usize::try_from(part.saturating_mul(PARTS));
        let block_len = block_len.unwrap_or(LONGEST).min(LONGEST);
        let sum = Hasher::new(DigestAlgorithm::Crc32c)?;
        let summed = 0;
        Ok(Partial { path, file, list_path, list, version, byte_len, block_len, sum, summed })
    }

    /// The bytes that are here of this version. `take` gets each block that is as it was written, with its offset, and
    /// says whether it is right. The rest is dropped.
    pub(super) fn kept(
        &mut self,
        progress: Option<Progress<'_>>,
        mut take: impl FnMut(u64, &[u8]) -> Result<bool>,
    ) -> Result<u64> {
        let (mut len, block_len) = (0u64, self.block_len as u64);
        let mut text = String::new();
        let read = (&self.list).take(16 << 20).read_to_string(&mut text);
        let mut lines = text.lines();
        let is_same = read.is_ok() && lines.next() == Some(&self.first_line());
        let mut bytes = Vec::new();
        let sums = lines.filter(|_| is_same && !self.version.is_empty());
        for sum in sums {
            bytes.resize(self.block_len, 0);
            let is_whole = self.byte_len.checked_sub(len).is_some_and(|left| left >= block_len);
            if !is_whole || self.file.read_exact(&mut bytes).is_err() || sum != sum_of(&bytes)? {
                break;
            }
            if !take(len, &bytes)? {
                break;
            }
            len = len.strict_add(block_len);
            if let Some(progress) = progress {
                progress.report(block_len)?;
            }
        }
        let path = self.path.clone();
        self.restart(len, &text).map_err(|error| at(error, &path))?;
        Ok(len)
    }

    /// Drops all bytes.
    pub(super) fn clear(&mut self) -> Result<()> {
        (self.sum, self.summed) = (Hasher::new(DigestAlgorithm::Crc32c)?, 0);
        let path = self.path.clone();
        self.restart(0, "").map_err(|error| at(error, &path))
    }

    /// Cuts both files behind `len` bytes of the file.
    fn restart(&mut self, len: u64, text: &str) -> io::Result<()> {
        self.file.set_len(len)?;
        self.file.seek(SeekFrom::Start(len))?;
        let mut kept = self.first_line();
        let blocks = usize::try_from(len).unwrap_or(usize::MAX);
        let blocks = blocks.checked_div(self.block_len).unwrap_or_default();
        for sum in text.lines().skip(1).take(blocks) {
            kept.push('\n');
            kept.push_str(sum);
        }
        kept.push('\n');
        self.list.set_len(0)?;
        self.list.seek(SeekFrom::Start(0))?;
        self.list.write_all(kept.as_bytes())
    }

    fn first_line(&self) -> String {
        // A tag is of the server: it could have lines.
        format!("{FIRST_LINE} {} {}", self.byte_len, self.version.escape_default())
    }

    /// Writes the next bytes.
    pub(super) fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| at(error, &self.path))?;
        while !bytes.is_empty() {
            let room = self.block_len.saturating_sub(self.summed).max(1);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.sum.update(now);
            self.summed = self.summed.strict_add(now.len());
            bytes = later;
            if self.summed >= self.block_len {
                let next = Hasher::new(DigestAlgorithm::Crc32c)?;
                let line = format!("{}\n", std::mem::replace(&mut self.sum, next).finish());
                self.summed = 0;
                self.list.write_all(line.as_bytes()).map_err(|error| at(error, &self.list_path))?;
            }
        }
        Ok(())
    }

    /// Gives the file its name.
    pub(super) fn publish(self, target: &Path, replaces: bool) -> Result<()> {
        let publish = || {
            if let Ok(replaced) = fs::metadata(target) {
                keep_access(&self.file, &replaced)?;
            }
            synced(&self.file)?;
            if replaces {
                uninterrupted(|| fs::rename(&self.path, target))?;
            } else {
                give_new_name(&self.path, target)?;
            }
            // The next run removes a list that stays.
            let _ = fs::remove_file(&self.list_path);
            sync_folder(target.parent().unwrap_or(Path::new("")))
        };
        publish().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let why = "exists already";
                Error::new(ErrorKind::Misuse, codes::OVERWRITE, why).with_path(target)
            }
            _ => at(error, target),
        })
    }

    /// Removes both files: their bytes are of no use.
    pub(super) fn remove(&mut self) -> Result<()> {
        fs::remove_file(&self.list_path).map_err(|error| at(error, &self.list_path))?;
        fs::remove_file(&self.path).map_err(|error| at(error, &self.path))
    }
}

/// Renames a file, and replaces none.
fn give_new_name(from: &Path, to: &Path) -> io::Result<()> {
    match uninterrupted(|| fs::hard_link(from, to)) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without links.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => uninterrupted(|| fs::rename(from, to)),
    }
}

fn sum_of(bytes: &[u8]) -> Result<String> {
    Ok(DigestAlgorithm::Crc32c.digest(bytes)?.to_string())
}

fn at(error: io::Error, path: &Path) -> Error {
    Error::from(error).with_path(path)
}
