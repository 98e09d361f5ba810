//! Elements in another order than row-major, such as Fortran arrays and transposed or sliced views,
//! as a source of the same elements in row-major order.
//!
//! The rows of a view are scattered over its bytes. So the view is gathered in *bands*: one pass over
//! the bytes, in their own order, collects as many outermost rows as fit into a few megabytes. The
//! views of a file share a few bands, and a band is kept only while it is read. So memory grows
//! neither with the number of views nor with their size.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod bands;
mod cut;
mod order;
mod step;
mod view;
mod window;

use std::io;
use std::sync::{Arc, OnceLock};

use zt::container::BlobReader;
use zt::{Blob, Limits, Result, Source};

pub use bands::Bands;
pub use cut::{Band, Cut};
pub use cut::{SEQUENTIAL_BAND, share};
use step::scatter;
pub use step::{Place, Step};
pub use view::View;
use window::{Window, at_once};

/// Runs of at least this length are read one by one, without a band.
const LONG_RUN: u64 = 4 << 10;

/// The elements of a view in row-major order.
pub struct Strided {
    base: Arc<dyn Source>,
    view: View,
    bands: Bands,
    id: u64,
    cut: Cut,
    /// Whether runs are read one by one, without a band.
    is_direct: bool,
    check: Option<(Blob, OnceLock<()>)>,
}

impl Strided {
    /// The elements of `view`, which lies within `base`. The views of a file share `bands`.
    ///
    /// # Errors
    ///
    /// Code `unsupported` if the base is sequential and would be read again too often.
    pub fn new(base: Arc<dyn Source>, view: View, bands: &Bands) -> Result<Self> {
        let cut = view.cut(&*base);
        let mut is_direct = view.dimensions.is_empty() || view.run >= LONG_RUN;
        if base.is_sequential() {
            let dimensions = view.dimensions.iter();
            let steps = dimensions.map(|dimension| (dimension.count, dimension.stride));
            is_direct = is_direct && order::restarts(steps, view.run) == 0;
            if !is_direct {
                let byte_len = base.byte_len().min(view.end).max(view.byte_len);
                order::allow(byte_len, cut.bands(), restarts(&view, &cut))?;
            }
        }
        Ok(Strided {
            base,
            view,
            bands: bands.clone(),
            id: bands.next_id(),
            cut,
            is_direct,
            check: None,
        })
    }

    /// Checks the digest of `blob`, bytes of the base, before the last element is read. The elements
    /// have no digest in row-major order.
    pub fn checked(mut self, blob: Blob) -> Self {
        self.check = Some((blob, OnceLock::new()));
        self
    }

    fn check(&self) -> Result<()> {
        let Some((blob, is_right)) = &self.check else {
            return Ok(());
        };
        if is_right.get().is_some() {
            return Ok(());
        }
        // The bytes are raw and exist, so the limits on decoding do not apply.
        let mut reader = BlobReader::new(&self.base, blob, &Limits::default())?;
        let mut piece = vec![0; 256 << 10];
        while reader.read(&mut piece)? > 0 {}
        let _ = is_right.set(()); // Another thread may have set it to the same.
        Ok(())
    }

    /// Copies from the band that holds `offset`, and returns the number of bytes.
    fn copy(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let band = self.cut.locate(offset);
        let key = (self.id, band.start);
        let skip = offset.saturating_sub(band.start);
        self.bands
            .copy(key, band.byte_len, skip, out, || self.gather(&band))
    }

    /// The elements of a band, in row-major order.
    fn gather(&self, band: &Band) -> io::Result<Vec<u8>> {
        let len = usize::try_from(band.byte_len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(len, 0);
        let mut steps = self.view.steps(&self.cut, band.rows);
        let mut window = Window::new(&*self.base, &steps, self.view.run);
        let inner = steps.pop().unwrap_or(Step::ONE);
        let mut place = Place::new(steps, self.view.first_of(band));
        loop {
            for piece in inner.pieces(window.at_once(place.from, &inner)) {
                let from = place.from.saturating_add(piece.from);
                let to = place.to.saturating_add(piece.to);
                let span = piece.step.span(from, self.view.run);
                let source = window.bytes(span.ok_or(io::ErrorKind::UnexpectedEof)?)?;
                let target = usize::try_from(to).ok().and_then(|to| bytes.get_mut(to..));
                let target = target.ok_or(io::ErrorKind::UnexpectedEof)?;
                scatter(source, target, &piece.step, self.view.run);
            }
            if !place.advance() {
                return Ok(bytes);
            }
        }
    }

    fn fill(&self, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            let len = if self.is_direct {
                let within = offset.checked_rem(self.view.run).unwrap_or(0);
                let rest = self.view.run.saturating_sub(within);
                let len = usize::try_from(rest).unwrap_or(usize::MAX).min(out.len());
                let from = self.run_at(offset).saturating_add(within);
                self.base
                    .read_at(from, out.get_mut(..len).unwrap_or_default())?;
                len
            } else {
                self.copy(offset, out)?
            };
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset = offset.saturating_add(len as u64);
            out = out.get_mut(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// The offset in the base of the run that holds the byte `offset` of the elements.
    fn run_at(&self, offset: u64) -> u64 {
        let mut index = offset.checked_div(self.view.run).unwrap_or(0);
        let mut at = self.view.offset;
        for dimension in self.view.dimensions.iter().rev() {
            let position = index.checked_rem(dimension.count).unwrap_or(0);
            index = index.checked_div(dimension.count).unwrap_or(0);
            at = at.saturating_add(position.saturating_mul(dimension.stride));
        }
        at
    }
}

impl Source for Strided {
    fn byte_len(&self) -> u64 {
        self.view.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.base.is_sequential()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.view.byte_len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.fill(offset, buf)?;
        if end == Some(self.view.byte_len) {
            self.check()?;
        }
        Ok(())
    }
}

/// How often a band goes back in its base.
fn restarts(view: &View, cut: &Cut) -> u64 {
    let mut steps = view.steps(cut, cut.rows);
    // Runs that are read together are no step.
    steps.pop_if(|inner| inner.count <= at_once(inner, view.run));
    let steps = steps.iter().map(|step| (step.count, step.from));
    order::restarts(steps, 0)
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "small numbers"
)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use zt::Span;

    use super::*;

    /// Bytes that are not resident.
    struct Positioned(Vec<u8>);

    impl Source for Positioned {
        fn byte_len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            zt::Memory::new(&self.0).read_at(offset, buf)
        }
    }

    /// Bytes that are not resident, the longest read, and the number of reads.
    struct Recorded {
        bytes: Positioned,
        longest: AtomicUsize,
        reads: AtomicUsize,
        is_sequential: bool,
    }

    impl Recorded {
        fn new(bytes: Vec<u8>, is_sequential: bool) -> Self {
            Recorded {
                bytes: Positioned(bytes),
                longest: AtomicUsize::new(0),
                reads: AtomicUsize::new(0),
                is_sequential,
            }
        }
    }

    impl Source for Recorded {
        fn byte_len(&self) -> u64 {
            self.bytes.byte_len()
        }

        fn is_sequential(&self) -> bool {
            self.is_sequential
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            self.longest.fetch_max(buf.len(), Ordering::Relaxed);
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.bytes.read_at(offset, buf)
        }
    }

    fn bytes(len: u64) -> Vec<u8> {
        (0..len)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect()
    }

    /// The elements, copied one by one.
    fn expected(bytes: &[u8], offset: u64, len: u64, shape: &[u64], strides: &[u64]) -> Vec<u8> {
        let count: u64 = shape.iter().product();
        let mut out = Vec::new();
        for element in 0..count {
            let (mut index, mut at) = (element, offset);
            for (count, stride) in shape.iter().zip(strides).rev() {
                at += index % count * stride;
                index /= count;
            }
            out.extend_from_slice(&bytes[at as usize..(at + len) as usize]);
        }
        out
    }

    fn check(offset: u64, len: u64, shape: &[u64], strides: &[u64]) {
        let view = View::new(offset, len, shape, strides).unwrap();
        let bytes = bytes(view.end());
        let expected = expected(&bytes, offset, len, shape, strides);
        assert_eq!(view.byte_len(), expected.len() as u64);
        if let Some(span) = view.as_span() {
            assert_eq!(
                &bytes[span.offset() as usize..span.end() as usize],
                expected
            );
        }
        let sources: [Arc<dyn Source>; 3] = [
            Arc::new(zt::Memory::new(bytes.clone())),
            Arc::new(Positioned(bytes.clone())),
            Arc::new(Recorded::new(bytes, true)),
        ];
        for source in sources {
            let (bands, is_sequential) = (Bands::default(), source.is_sequential());
            let strided = Strided::new(source, view.clone(), &bands).unwrap();
            assert_eq!(strided.is_sequential(), is_sequential);
            for piece in [expected.len().max(1), 700, 4096] {
                let mut found = vec![0; expected.len()];
                for (at, part) in found.chunks_mut(piece).enumerate() {
                    strided.read_at((at * piece) as u64, part).unwrap();
                }
                assert!(found == expected, "{shape:?} {strides:?} by {piece}");
            }
            assert!(bands.is_empty(), "bands are dropped once they are read");
        }
    }

    #[test]
    fn views_of_any_strides_are_row_major() {
        check(0, 4, &[3, 5], &[4, 12]);
        check(8, 2, &[4, 3, 2], &[2, 8, 24]);
        check(0, 8, &[2, 3, 4], &[8, 64, 16]);
        check(3, 1, &[7, 1, 5], &[1, 9, 7]);
        check(0, 4, &[], &[]);
        check(0, 4, &[3, 0, 2], &[4, 4, 4]);
        check(5, 3, &[4, 4], &[48, 6]);
        check(0, 4, &[3, 4], &[0, 4]);
        check(0, 2, &[2, 3, 4, 5], &[2, 40, 8, 4000]);
        check(0, 4, &[3, 5, 2000], &[8000, 24000, 4]);
        check(0, 16, &[300, 700], &[16, 4800]);
        check(0, 4, &[3, 400_000], &[4, 12]);
    }

    /// A column is scattered over its base, and one read has a bound.
    #[test]
    fn reading_a_column_does_not_read_the_whole_base() {
        const WINDOW: usize = 256 << 10;
        for (shape, strides, is_sequential, most) in [
            (&[100][..], &[32 << 10][..], false, 8),
            (&[100], &[32 << 10], true, WINDOW),
            (&[3, 100], &[8, 32 << 10], false, 24),
            (&[100, 3], &[32 << 10, 16 << 10], false, 8),
            (&[1000], &[2 << 10], false, WINDOW),
            (&[1000], &[2 << 10], true, WINDOW),
            (&[2, 1000], &[16, 2 << 10], false, WINDOW),
        ] {
            let view = View::new(16, 8, shape, strides).unwrap();
            let bytes = bytes(view.end());
            let expected = expected(&bytes, 16, 8, shape, strides);
            let base = Arc::new(Recorded::new(bytes, is_sequential));
            let source = Arc::clone(&base) as Arc<dyn Source>;
            let strided = Strided::new(source, view, &Bands::default()).unwrap();
            let mut found = vec![0; expected.len()];
            strided.read_at(0, &mut found).unwrap();
            assert!(found == expected, "{strides:?}");
            let longest = base.longest.load(Ordering::Relaxed);
            assert!(longest <= most, "{strides:?}: {longest}");
        }
    }

    /// Three columns that are far from each other, with elements that are near.
    #[test]
    fn a_column_of_near_elements_is_one_read() {
        let view = View::new(0, 8, &[1000, 3], &[256, 264 << 10]).unwrap();
        let base = Arc::new(Recorded::new(bytes(view.end()), false));
        let source = Arc::clone(&base) as Arc<dyn Source>;
        let strided = Strided::new(source, view, &Bands::default()).unwrap();
        let mut found = vec![0; 24_000];
        strided.read_at(0, &mut found).unwrap();
        assert_eq!(base.reads.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn bands_are_high_enough_for_a_cache_line_unless_they_are_long() {
        let cut = |row: u64, base: &dyn Source| {
            let view = View::fortran(0, 4, &[1 << 10, row / 4]).unwrap();
            let cut = view.cut(base);
            assert_eq!(cut.row, row);
            cut.rows
        };
        // A band of resident bytes has 1 MiB, and an element has 4 of the 64 bytes of a cache line.
        assert_eq!(cut(512 << 10, &zt::Memory::new([0u8; 4])), 16);
        // A share has at least 4 MiB, and 16 such rows would be too many bytes.
        let positioned = Positioned(vec![0; 4]);
        assert!(cut(4 << 20, &positioned) <= (32 << 20) / (4 << 20));
    }

    /// A source that has a length but cannot be read.
    struct Made {
        byte_len: u64,
        is_sequential: bool,
    }

    impl Source for Made {
        fn byte_len(&self) -> u64 {
            self.byte_len
        }

        fn is_sequential(&self) -> bool {
            self.is_sequential
        }

        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// A deflated base is inflated again from its beginning wherever a view goes back.
    #[test]
    fn a_sequential_base_that_would_be_read_again_too_often_is_refused() {
        const GIB: u64 = 1 << 30;
        let fortran = |rows: u64| View::fortran(0, 4, &[rows, 1 << 14]).unwrap();
        let apart = |count: u64| {
            let strides = [300_008, 300_004, 300_000];
            View::new(0, 4, &[count, count, 700], &strides).unwrap()
        };
        let swapped = View::new(0, 8192, &[1000, 200], &[8192, 8_192_000]).unwrap();
        for (view, byte_len, is_allowed) in [
            (fortran(1 << 15), 2 * GIB, true),
            (fortran(1 << 17), 8 * GIB, false),
            (apart(2), GIB / 4, true),
            (apart(12), GIB / 4, false),
            (swapped, 2 * GIB, true),
            // One pass.
            (View::new(0, 4, &[1000], &[5 << 20]).unwrap(), 8 * GIB, true),
            // Columns that overlap, each read at once.
            (
                View::new(0, 4, &[1 << 16, 100], &[24, 16]).unwrap(),
                2 * GIB,
                true,
            ),
            (
                View::new(0, 8192, &[1 << 20], &[16384]).unwrap(),
                16 * GIB,
                true,
            ),
        ] {
            for is_sequential in [true, false] {
                let base = Arc::new(Made {
                    byte_len,
                    is_sequential,
                });
                let strided = Strided::new(base, view.clone(), &Bands::default());
                let error = strided.err();
                let is_refused = is_sequential && !is_allowed;
                let code = error.as_ref().map(zt::Error::code);
                assert_eq!(code, is_refused.then_some("unsupported"), "{view:?}");
            }
        }
    }

    #[test]
    fn a_view_that_is_row_major_is_a_span() {
        let plain = View::new(8, 4, &[2, 1, 3], &[12, 99, 4]).unwrap();
        assert_eq!(plain.as_span(), Span::new(8, 24));
        assert_eq!(
            View::fortran(0, 4, &[1, 6]).unwrap().as_span(),
            Span::new(0, 24)
        );
        assert_eq!(
            View::fortran(0, 4, &[2, 0]).unwrap().as_span(),
            Span::new(0, 0)
        );
        assert_eq!(View::fortran(0, 4, &[2, 3]).unwrap().as_span(), None);
    }

    #[test]
    fn a_view_beyond_the_last_address_is_refused() {
        assert_eq!(View::new(0, 4, &[1 << 62, 2], &[4, 4]), None);
        assert_eq!(View::new(0, 4, &[2], &[u64::MAX]), None);
        assert_eq!(View::new(u64::MAX, 1, &[2], &[1]), None);
        assert_eq!(View::new(0, 1, &[2], &[]), None);
        assert_eq!(View::fortran(0, 8, &[1 << 61, 0]), None);
    }

    #[test]
    fn the_digest_of_the_base_is_compared_at_the_end() {
        // The second is longer than a piece.
        for columns in [3, 100_000] {
            let len = columns * 8;
            let base = bytes(len);
            let digest = zt::DigestAlgorithm::Crc32c.digest(&base).unwrap();
            for (right, change) in [(true, 0), (false, 1)] {
                let mut base = base.clone();
                base[len as usize - 17] ^= change;
                let blob = Blob {
                    digest: Some(digest.clone()),
                    ..Blob::raw(Span::new(0, len).unwrap())
                };
                let view = View::fortran(0, 4, &[2, columns]).unwrap();
                let base = Arc::new(zt::Memory::new(base));
                let strided = Strided::new(base, view, &Bands::default()).unwrap();
                let strided = strided.checked(blob);
                strided.read_at(0, &mut [0; 8]).unwrap();
                assert_eq!(strided.read_at(len - 8, &mut [0; 8]).is_ok(), right);
            }
        }
    }
}
