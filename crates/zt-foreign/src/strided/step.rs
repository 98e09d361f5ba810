//! Copies elements that lie apart to where they lie together.

use zt::Span;

/// A dimension: `count` elements that are `from` bytes apart in the base and `to` in the band.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The number of elements.
    pub count: u64,
    /// Bytes from one element to the next in the base.
    pub from: u64,
    /// Bytes from one element to the next in the band.
    pub to: u64,
}

impl Step {
    pub(super) const ONE: Step = Step { count: 1, from: 0, to: 0 };

    /// Pieces of this step with at most `count` elements each, in order.
    pub(super) fn pieces(self, count: u64) -> impl Iterator<Item = Piece> {
        let count = count.max(1);
        (0..self.count.div_ceil(count)).map(move |piece| {
            let first = piece.strict_mul(count);
            Piece {
                from: self.from.strict_mul(first),
                to: self.to.strict_mul(first),
                step: Step { count: count.min(self.count.strict_sub(first)), ..self },
            }
        })
    }

    /// The span of all elements in the base, from `offset` on. It exists for every step of a view.
    pub(super) fn span(&self, offset: u64, run: u64) -> Option<Span> {
        let reach = self.from.checked_mul(self.count.checked_sub(1)?)?;
        Span::new(offset, reach.checked_add(run)?)
    }
}

/// A part of a step, and its offset from the step's beginning in the base and in the band.
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) step: Step,
}

/// A position in several steps, which advances in the last step first.
pub struct Place {
    steps: Vec<Step>,
    at: Vec<u64>,
    /// The offset in the base.
    pub from: u64,
    /// The offset in the band.
    pub to: u64,
}

impl Place {
    /// The first place of these steps, outermost first, at `from` in the base.
    pub fn new(steps: Vec<Step>, from: u64) -> Self {
        Place { at: vec![0; steps.len()], steps, from, to: 0 }
    }

    /// Advances to the next place, and returns whether there is one.
    pub fn advance(&mut self) -> bool {
        for (step, at) in self.steps.iter().zip(&mut self.at).rev() {
            if at.strict_add(1) < step.count {
                *at = at.strict_add(1);
                self.from = self.from.strict_add(step.from);
                self.to = self.to.strict_add(step.to);
                return true;
            }
            self.from = self.from.strict_sub(step.from.strict_mul(*at));
            self.to = self.to.strict_sub(step.to.strict_mul(*at));
            *at = 0;
        }
        false
    }
}

/// Copies runs that are `inner.from` bytes apart to places that are `inner.to` bytes apart.
pub(super) fn scatter(source: &[u8], target: &mut [u8], inner: &Step, run: u64) {
    // A distance beyond memory leads to no second element.
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (from, run) = (size(inner.from), size(run));
    let targets = target.chunks_mut(size(inner.to).max(1)).take(size(inner.count));
    match run {
        1 => scatter_fixed::<1>(source, targets, from),
        2 => scatter_fixed::<2>(source, targets, from),
        4 => scatter_fixed::<4>(source, targets, from),
        8 => scatter_fixed::<8>(source, targets, from),
        16 => scatter_fixed::<16>(source, targets, from),
        _ => {
            for (at, target) in targets.enumerate() {
                let source = source.get(at.strict_mul(from)..);
                let source = source.and_then(|source| source.get(..run));
                if let (Some(source), Some(target)) = (source, target.get_mut(..run)) {
                    target.copy_from_slice(source);
                }
            }
        }
    }
}

/// As [`scatter`], for elements with a width that the compiler knows.
fn scatter_fixed<'t, const N: usize>(
    source: &[u8],
    targets: impl Iterator<Item = &'t mut [u8]>,
    from: usize,
) {
    for (at, target) in targets.enumerate() {
        let source = source.get(at.strict_mul(from)..);
        let source = source.and_then(|source| source.first_chunk::<N>());
        if let (Some(source), Some(target)) = (source, target.first_chunk_mut::<N>()) {
            *target = *source;
        }
    }
}
