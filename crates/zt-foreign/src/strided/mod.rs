//! Elements in another order than row-major, such as Fortran arrays and transposed or sliced views,
//! as a source of the same elements in row-major order.
//!
//! The rows of a view are scattered over its bytes. So the view is gathered in *bands*: one pass over
//! the bytes, in their own order, collects as many outermost rows as fit into a few megabytes. The
//! views of a file share a few bands, and a band is kept only while it is read. So memory grows
//! neither with the number of views nor with their size.

mod bands;
mod check;
mod cut;
mod order;
mod step;
mod view;
mod window;

use std::io;
use std::sync::Arc;

use zt::container::memory::{end_of_read, in_memory, zeroed};
use zt::{Blob, Result, Source};

pub use bands::Bands;
pub(crate) use check::Check;
pub(crate) use cut::divided;
pub use cut::{Band, Cut};
pub use cut::{SEQUENTIAL_BAND, share};
use step::scatter;
pub use step::{Place, Step};
pub use view::View;
use window::{Window, at_once};

/// Runs of at least this length are read one by one, without a band.
///
/// Pays: not measured.
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
    check: Option<Check>,
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

    /// Checks the digest of `blob`, bytes of the base, if it has one, before the last element is read. The elements
    /// have no digest in row-major order.
    pub fn checked(mut self, blob: Blob) -> Self {
        self.check = Some(Check::new(blob));
        self
    }

    /// The elements of a band, in row-major order.
    fn gather(&self, band: &Band) -> io::Result<Vec<u8>> {
        let mut bytes = zeroed(band.byte_len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut steps = self.view.steps(&self.cut, band.rows);
        let mut window = Window::new(&*self.base, &steps, self.view.run);
        let inner = steps.pop().unwrap_or(Step::ONE);
        let mut place = Place::new(steps, self.view.first_of(band));
        loop {
            for piece in inner.pieces(window.at_once(place.from, &inner)) {
                let from = place.from.strict_add(piece.from);
                let to = place.to.strict_add(piece.to);
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
        if !self.is_direct {
            let make = |band: &Band| self.gather(band);
            return self.bands.fill(self.id, &self.cut, offset, out, make);
        }
        while !out.is_empty() {
            let (index, within) = divided(offset, self.view.run);
            let rest = self.view.run.strict_sub(within);
            let len = in_memory(rest.min(out.len() as u64));
            let (run, further) = out.split_at_mut(len);
            let from = self.run_at(index).strict_add(within);
            self.base.read_at(from, run)?;
            offset = offset.strict_add(len as u64);
            out = further;
        }
        Ok(())
    }

    /// The offset in the base of a run.
    fn run_at(&self, mut index: u64) -> u64 {
        let mut at = self.view.offset;
        for dimension in self.view.dimensions.iter().rev() {
            let position;
            (index, position) = divided(index, dimension.count);
            at = at.strict_add(position.strict_mul(dimension.stride));
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
        let end = end_of_read(self.view.byte_len, offset, buf)?;
        self.fill(offset, buf)?;
        if let Some(check) = &self.check
            && end == self.view.byte_len
        {
            check.run(&*self.base)?;
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
mod tests {
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

    #[test]
    fn bands_are_dropped_once_they_are_read() {
        let (bands, view) = (Bands::default(), View::fortran(0, 4, &[30, 70]).unwrap());
        let base = Arc::new(Positioned(vec![0; 8400]));
        let strided = Strided::new(base, view, &bands).unwrap();
        for offset in (0..8400).step_by(700) {
            strided.read_at(offset, &mut [0; 700]).unwrap();
        }
        assert!(bands.is_empty());
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
}
