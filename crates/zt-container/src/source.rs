//! Where bytes come from: a file by position, bytes in memory, a reader that seeks, or (feature
//! `mmap`) a map.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result, Unsupported};
use crate::span::Span;

/// Random access to the bytes of one file. Nothing seeks, so one source serves any number of
/// threads.
///
/// The length is fixed when the source is made. Memory and maps lend their bytes through
/// [`Source::slice`]; files fill the caller's buffer through [`Source::read_at`].
pub trait Source: Send + Sync {
    /// The number of bytes.
    fn byte_len(&self) -> u64;

    /// Lends the bytes of `span` without copying. `None` if they are not in memory, or if `span` exceeds the
    /// source. The answer for one span never changes.
    fn slice(&self, span: Span) -> Option<&[u8]> {
        let _ = span;
        None
    }

    /// Whether bytes are computed in order, as in a compressed stream. To read such bytes out of order, or
    /// in several places at once, computes many of them again. Default: false.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Announces that the bytes of `span` will be read soon, so that a disk can begin to fetch them. It never
    /// fails, and no result depends on it. Default: does nothing.
    fn will_read(&self, span: Span) {
        let _ = span;
    }

    /// Announces that all of `spans` will be read soon, in about this order. A source over a network begins
    /// to fetch as much of them as it can hold. Default: does nothing.
    fn will_read_all(&self, spans: &[Span]) {
        let _ = spans;
    }

    /// The bytes of other sources that a read of all of `span` reads, for a source that computes its bytes. A reader of many
    /// such sources announces these together. Default: `None`, for a source whose bytes are its own.
    fn made_of(&self, span: Span) -> Option<Vec<(Arc<dyn Source>, Span)>> {
        let _ = span;
        None
    }

    /// Whether every read is a request over a network, which takes as long as transferring megabytes.
    /// Readers then read in as few places as they can. Default: false.
    fn is_remote(&self) -> bool {
        false
    }

    /// The offset of the next stored byte at or behind `offset`. The bytes between are a hole of a sparse
    /// file, and read as zeros. If a hole ends the file, this is the length of the source. Default: `offset`,
    /// for a source without holes.
    fn data_from(&self, offset: u64) -> u64 {
        offset
    }

    /// The file behind this source, for a caller that maps it: a span of the source is the same span of the
    /// file. Default: `None`, for a source without a file.
    fn file(&self) -> Option<&std::fs::File> {
        None
    }

    /// Fills `buf` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] if the source ends first, also if the file was truncated after it
    /// was opened; otherwise the system's error.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: Source + ?Sized> Source for $pointer {
            fn byte_len(&self) -> u64 {
                (**self).byte_len()
            }
            fn slice(&self, span: Span) -> Option<&[u8]> {
                (**self).slice(span)
            }
            fn is_sequential(&self) -> bool {
                (**self).is_sequential()
            }
            fn will_read(&self, span: Span) {
                (**self).will_read(span);
            }
            fn will_read_all(&self, spans: &[Span]) {
                (**self).will_read_all(spans);
            }
            fn made_of(&self, span: Span) -> Option<Vec<(Arc<dyn Source>, Span)>> {
                (**self).made_of(span)
            }
            fn is_remote(&self) -> bool {
                (**self).is_remote()
            }
            fn data_from(&self, offset: u64) -> u64 {
                (**self).data_from(offset)
            }
            fn file(&self) -> Option<&std::fs::File> {
                (**self).file()
            }
            fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
                (**self).read_at(offset, buf)
            }
        }
    )*};
}
forward!(&S, Box<S>, Arc<S>);

/// Bytes in memory, owned (`Vec<u8>`), borrowed (`&[u8]`) or shared (`Arc<[u8]>`).
///
/// ```
/// use zt_container::{Memory, Source, Span};
/// let source = Memory::new(b"ZTEN1000");
/// assert_eq!(source.slice(Span::new(4, 4).unwrap()), Some(&b"1000"[..]));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Memory<B>(B);

impl<B: AsRef<[u8]>> Memory<B> {
    /// A source of these bytes; nothing is copied.
    pub const fn new(bytes: B) -> Self {
        Memory(bytes)
    }
}

impl<B: AsRef<[u8]> + Send + Sync> Source for Memory<B> {
    fn byte_len(&self) -> u64 {
        self.0.as_ref().len() as u64
    }

    fn slice(&self, span: Span) -> Option<&[u8]> {
        slice_of(self.0.as_ref(), span)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        copy_of(self.0.as_ref(), offset, buf)
    }
}

/// Fills `buf` with the bytes from `offset` on.
pub(crate) fn copy_of(bytes: &[u8], offset: u64, buf: &mut [u8]) -> io::Result<()> {
    let span = Span::new(offset, buf.len() as u64);
    let bytes = span.and_then(|span| slice_of(bytes, span));
    buf.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}

/// The bytes of `span` within `bytes`; `None` if it exceeds them.
pub(crate) fn slice_of(bytes: &[u8], span: Span) -> Option<&[u8]> {
    let start = usize::try_from(span.offset()).ok()?;
    let end = usize::try_from(span.end()).ok()?;
    bytes.get(start..end)
}

/// A regular file, read by position (`pread`): the safe default. If the file is truncated while it is
/// open, reading it is an error; with a map, the process would die.
#[derive(Debug)]
pub struct FileSource {
    file: std::fs::File,
    byte_len: u64,
    #[cfg(all(target_os = "linux", feature = "readahead"))]
    system_reads_ahead: std::sync::OnceLock<bool>,
}

impl FileSource {
    /// Opens the file at `path` for reading. Symbolic links are followed.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be opened or is a folder; [`Error::Unsupported`] if it is a pipe or a
    /// device, which have no length, so that no footer can be located.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_file(open_regular(path)?)
    }

    /// Reads from a file that is already open; its cursor is not used.
    ///
    /// # Errors
    ///
    /// As [`FileSource::open`].
    pub fn from_file(file: std::fs::File) -> Result<Self> {
        let metadata = file.metadata()?;
        expect_regular(&metadata)?;
        Ok(FileSource {
            file,
            byte_len: metadata.len(),
            #[cfg(all(target_os = "linux", feature = "readahead"))]
            system_reads_ahead: std::sync::OnceLock::new(),
        })
    }

    /// Whether the file still has the length that it had when it was opened. A file that was edited in
    /// place has not.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn has_its_length(&self) -> Result<bool> {
        Ok(self.file.metadata()?.len() == self.byte_len)
    }
}

/// Opens a regular file for reading. Symbolic links are followed. A path that the user did not choose,
/// such as a shard in an index, must be opened by this function.
///
/// The path is checked before it is opened, because opening a device may have effects. If a pipe replaces
/// the file in between, it is opened without waiting for its writer, and then refused.
///
/// # Errors
///
/// As [`FileSource::open`].
pub fn open_regular(path: impl AsRef<Path>) -> Result<std::fs::File> {
    let path = path.as_ref();
    if is_device(path) {
        return Err(Error::Unsupported(Unsupported::NotARegularFile));
    }
    expect_regular(&std::fs::metadata(path)?)?;
    let file = match open_at_once(path) {
        // Another program, such as a file server, has a lease on the file: wait until it gives it back.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::fs::File::open(path)?,
        opened => opened?,
    };
    expect_regular(&file.metadata()?)?;
    Ok(file)
}

/// Whether Windows takes `path` for one of its devices, such as `CON`, `NUL` and, before Windows 11, `COM1.zt`.
/// `false` on other systems, where the metadata of a device shows it.
pub fn is_device(path: &Path) -> bool {
    use std::path::{Component, Prefix};
    let is_device = |path: std::path::PathBuf| {
        let mut parts = path.components();
        let prefix = match parts.next() {
            Some(Component::Prefix(prefix)) => prefix.kind(),
            _ => return false,
        };
        // `\\.\C:\model.zt` is a file.
        matches!(prefix, Prefix::DeviceNS(_)) && parts.all(|part| part == Component::RootDir)
    };
    cfg!(windows) && std::path::absolute(path).is_ok_and(is_device)
}

#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    /// `O_NONBLOCK`. It has no effect on a regular file once it is open. Other systems open without it.
    const AT_ONCE: i32 = match () {
        () if cfg!(any(target_arch = "mips", target_arch = "mips64")) => 0x80,
        () if cfg!(target_arch = "sparc64") => 0x4000,
        () if cfg!(any(target_os = "linux", target_os = "android")) => 0o4000,
        () if cfg!(any(target_vendor = "apple", target_os = "freebsd")) => 4,
        () => 0,
    };
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags(AT_ONCE).open(path)
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<std::fs::File> {
    std::fs::File::open(path)
}

fn expect_regular(metadata: &std::fs::Metadata) -> Result<()> {
    if metadata.is_dir() {
        return Err(Error::Io(io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Err(Error::Unsupported(Unsupported::NotARegularFile));
    }
    Ok(())
}

impl Source for FileSource {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    #[cfg(all(target_os = "linux", feature = "readahead"))]
    fn will_read(&self, span: Span) {
        let reads_ahead = || system_reads_ahead(&self.file);
        if !self.system_reads_ahead.get_or_init(reads_ahead) {
            will_read(&self.file, span);
        }
    }

    #[cfg(all(target_os = "linux", feature = "readahead"))]
    fn data_from(&self, offset: u64) -> u64 {
        data_from(&self.file, offset, self.byte_len)
    }

    fn file(&self) -> Option<&std::fs::File> {
        Some(&self.file)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        read_exact_at(&self.file, offset, buf)
    }
}

/// Fills `buf` with the bytes of the file from `offset` on. Any number of threads may read one file.
///
/// # Errors
///
/// [`io::ErrorKind::UnexpectedEof`] if the file ends first; the system's errors.
#[cfg(unix)]
pub fn read_exact_at(file: &std::fs::File, offset: u64, buf: &mut [u8]) -> io::Result<()> {
    // Retries interrupted and short reads.
    std::os::unix::fs::FileExt::read_exact_at(file, buf, offset)
}

/// Fills `buf` with the bytes of the file from `offset` on. Any number of threads may read one file.
/// Moves the cursor of the file.
///
/// # Errors
///
/// [`io::ErrorKind::UnexpectedEof`] if the file ends first; the system's errors.
#[cfg(windows)]
pub fn read_exact_at(file: &std::fs::File, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buf.is_empty() {
        // The system refuses larger offsets. No file is so long.
        if i64::try_from(offset).is_err() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match file.seek_read(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                offset = offset.strict_add(read as u64);
                buf = buf.get_mut(read..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills `buf` with the bytes of the file from `offset` on. Moves the cursor of the file: only one thread
/// may read it, and WebAssembly has one.
///
/// # Errors
///
/// [`io::ErrorKind::UnexpectedEof`] if the file ends first; the system's errors.
#[cfg(not(any(unix, windows)))]
pub fn read_exact_at(mut file: &std::fs::File, offset: u64, buf: &mut [u8]) -> io::Result<()> {
    use std::io::{Read, Seek};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read_exact(buf)
}

/// Asks the system to fetch the bytes of `span` that are not in memory.
///
/// Measured with two threads that read 1 MiB in turn, 8 MiB announced at a time, while the system read 128 KiB
/// ahead: a cold file was read 1.6 times as fast (nine rounds, medians). To announce the whole file at once
/// was slower than no announcement.
///
/// If the bytes are in memory, the system still checks each page, which takes time. So the last byte is
/// read first, without waiting. A map cannot be read that way, so maps announce nothing.
#[cfg(all(target_os = "linux", feature = "readahead"))]
fn will_read(file: &std::fs::File, span: Span) {
    use rustix::fs::{Advice, fadvise};

    if !is_cached(file, span) {
        let len = std::num::NonZeroU64::new(span.byte_len());
        // An error is ignored: this is only a hint.
        let _ = fadvise(file, span.offset(), len, Advice::WillNeed);
    }
}

/// Whether the system itself reads at least 1 MiB ahead on the disk of this file. To announce more is then
/// slower: what is announced comes into the page cache in pages of 4 KiB, what the system reads ahead in large
/// ones.
///
/// Measured where it reads 8 MiB ahead: without announcements, tensors of 984 MB were read 1.45 times as fast
/// by a plan, and 1.35 times from zstd (Linux 6.18, ext4, medians of five rounds).
#[cfg(all(target_os = "linux", feature = "readahead"))]
fn system_reads_ahead(file: &std::fs::File) -> bool {
    use std::os::unix::fs::MetadataExt;
    const LEAST_KIB: u64 = 1024;

    let kib_of = |queue: &str| {
        let device = file.metadata().ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let path = format!("/sys/dev/block/{major}:{minor}/{queue}/read_ahead_kb");
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    };
    // A disk has a queue, and a partition is within its disk. Other file systems have neither.
    let kib = kib_of("queue").or_else(|| kib_of("../queue"));
    kib.is_some_and(|kib| kib >= LEAST_KIB)
}

/// Whether the page cache of the system holds the last byte of `span`. An empty span counts as held.
#[cfg(all(target_os = "linux", feature = "readahead"))]
fn is_cached(file: &std::fs::File, span: Span) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};

    if span.is_empty() {
        return true;
    }
    let last = span.end().strict_sub(1);
    let mut byte = [0];
    let bytes = &mut [io::IoSliceMut::new(&mut byte)];
    preadv2(file, bytes, last, ReadWriteFlags::NOWAIT).is_ok()
}

/// The offset of the next data, at or behind `offset`, in a file of `byte_len` bytes. Moves the cursor of
/// the file, which reads by position do not use. A file system without holes returns `offset`.
#[cfg(all(target_os = "linux", feature = "readahead"))]
pub fn data_from(file: &std::fs::File, offset: u64, byte_len: u64) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    match seek(file, SeekFrom::Data(offset)) {
        Ok(found) => found.clamp(offset, byte_len.max(offset)),
        Err(Errno::NXIO) => byte_len.max(offset),
        Err(_) => offset,
    }
}
