//! Reads past the page cache of the system (`O_DIRECT` of Linux).

use std::sync::Arc;

use zt_container::Source;

/// The same bytes, read past the page cache. `None` if the source is no file that is read by position, or its
/// file system has no such reads.
#[cfg(target_os = "linux")]
pub(super) fn past_cache(source: &Arc<dyn Source>) -> Option<Box<dyn Source>> {
    Some(Box::new(linux::Direct::new(source)?))
}

/// `None`: other systems are not asked for such reads.
#[cfg(not(target_os = "linux"))]
pub(super) const fn past_cache(_: &Arc<dyn Source>) -> Option<Box<dyn Source>> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use rustix::fs::{Mode, OFlags};
    use zt_container::{Source, read_exact_at};
    use zt_formats::Buffer;

    /// What `O_DIRECT` asks of offsets, of lengths and of memory. Where a file system asks for more, the page
    /// cache is used.
    const BLOCK: usize = 4096;

    /// The most that is read at a time and then copied. With fewer pages a disk takes longer.
    ///
    /// Pays: a plan of matrices of 2.5 MB takes 0.83 of the time that it takes with 64 KiB, and as long as with 4 MiB.
    const PIECE: usize = 2 << 20;

    /// Long enough for large pages. What is not used costs nothing.
    const BUFFER: u64 = 8 << 20;

    /// A file that is read past the page cache. It can give everything that `source` gives.
    pub(super) struct Direct {
        source: Arc<dyn Source>,
        file: File,
        /// Memory for blocks that have no place of their own.
        buffers: Mutex<Vec<Buffer>>,
    }

    impl Direct {
        pub(super) fn new(source: &Arc<dyn Source>) -> Option<Self> {
            // The same file, even if another has its name now.
            let path = format!("/proc/self/fd/{}", source.file()?.as_raw_fd());
            let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
            let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
            Some(Direct {
                source: Arc::clone(source),
                file: file.into(),
                buffers: Mutex::default(),
            })
        }

        /// Fills `out` with whole blocks, straight into their place where that is possible.
        fn read(&self, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
            if offset.is_multiple_of(BLOCK as u64) && out.as_ptr().addr().is_multiple_of(BLOCK) {
                let whole = out.len().strict_sub(out.len().strict_rem(BLOCK));
                let (blocks, rest) = out.split_at_mut(whole);
                read_exact_at(&self.file, offset, blocks)?;
                (offset, out) = (offset.saturating_add(whole as u64), rest);
            }
            if out.is_empty() {
                return Ok(());
            }
            let mut buffer = self.take()?;
            let copied = self.copy(offset, out, &mut buffer);
            self.free().push(buffer);
            copied
        }

        /// Reads the blocks around the wanted bytes into `buffer`, and copies these.
        fn copy(&self, mut offset: u64, mut out: &mut [u8], buffer: &mut [u8]) -> io::Result<()> {
            let start = buffer.as_ptr().align_offset(BLOCK);
            let buffer = buffer.get_mut(start..).and_then(|it| it.get_mut(..PIECE));
            let buffer = buffer.ok_or(io::ErrorKind::OutOfMemory)?;
            while !out.is_empty() {
                let skipped = usize::try_from(offset.strict_rem(BLOCK as u64)).unwrap_or(0);
                let begin = offset.saturating_sub(skipped as u64);
                let len = out.len().min(PIECE.saturating_sub(skipped));
                let (wanted, rest) = out.split_at_mut(len);
                let end = skipped.saturating_add(len);
                let blocks = buffer.get_mut(..end.next_multiple_of(BLOCK));
                let blocks = blocks.unwrap_or_default();
                read_until(&self.file, begin, blocks, end)?;
                wanted.copy_from_slice(blocks.get(skipped..end).unwrap_or_default());
                (offset, out) = (offset.saturating_add(len as u64), rest);
            }
            Ok(())
        }

        fn take(&self) -> io::Result<Buffer> {
            let free = self.free().pop();
            let new = || Buffer::try_zeroed(BUFFER).map_err(|_| io::ErrorKind::OutOfMemory.into());
            free.map_or_else(new, Ok)
        }

        fn free(&self) -> MutexGuard<'_, Vec<Buffer>> {
            self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Source for Direct {
        fn byte_len(&self) -> u64 {
            self.source.byte_len()
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            match self.read(offset, buf) {
                // The blocks of the file system are larger.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.source.read_at(offset, buf)
                }
                read => read,
            }
        }
    }

    /// Reads whole blocks until there are `least` bytes. The last block of a file is shorter.
    fn read_until(file: &File, begin: u64, blocks: &mut [u8], least: usize) -> io::Result<()> {
        let mut found = 0usize;
        while found < least {
            let rest = blocks.get_mut(found..).unwrap_or_default();
            match file.read_at(rest, begin.saturating_add(found as u64)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => found = found.saturating_add(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[cfg(test)]
    #[allow(clippy::arithmetic_side_effects, reason = "tests")]
    mod tests {
        use std::cell::RefCell;
        use std::io::Write;

        use proptest::prelude::*;
        use zt_container::FileSource;

        use super::*;

        #[test]
        fn any_part_has_the_bytes_of_the_file() {
            // Not a multiple of a block.
            let bytes: Vec<u8> = (0..3u32 << 20).map(|at| (at / 7).to_le_bytes()[0]).collect();
            let bytes = &bytes[..bytes.len() - 1234];
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let source: Arc<dyn Source> = Arc::new(FileSource::from_file(file).unwrap());
            let Some(direct) = Direct::new(&source) else {
                return; // A file system without such reads.
            };
            let len = bytes.len();
            // Aligned, so that whole blocks are read into their place.
            let out = RefCell::new(Buffer::try_zeroed(BUFFER).unwrap());
            let place = out.borrow().as_ptr().align_offset(BLOCK);
            proptest!(|(start in 0..len, wanted in 0..len, shift in 0..2usize, aligned: bool)| {
                let start = if aligned { start / BLOCK * BLOCK } else { start };
                let wanted = wanted.min(len - start);
                let mut out = out.borrow_mut();
                let out = &mut out[place + shift..][..wanted];
                direct.read(start as u64, out).unwrap();
                prop_assert!(out == &bytes[start..][..wanted]);
            });
            let beyond = direct.read_at(len as u64 - 1, &mut [0; 2]).unwrap_err();
            assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
