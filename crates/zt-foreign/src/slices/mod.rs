//! Tensors that are stored as slices: each has some of the elements, in row-major order.
//!
//! ```text
//! 0 1 | 2 3     slices of a tensor of [2, 4]: from [0, 0] on [2, 2] elements,
//! 4 5 | 6 7     and from [0, 2] on [2, 2] elements
//! ```
//!
//! Programs that train on many machines leave one slice for each process. Every element must be in exactly
//! one slice: a gap is never filled, and no slice hides another one.

mod assembled;
mod cover;
#[cfg(feature = "json")]
mod saved;
mod section;

pub use assembled::{Assembled, byte_len};
pub use cover::{SliceFault, check};
#[cfg(feature = "json")]
pub use saved::{SHARDING_INFO, saved_offsets};
pub use section::Section;

/// Where a slice lies in its tensor. Both lists are outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The index of its first element.
    pub offsets: Vec<u64>,
    /// Its elements in each dimension.
    pub sizes: Vec<u64>,
}

impl Slice {
    fn is_empty(&self) -> bool {
        self.sizes.contains(&0)
    }

    /// The offset, the size and the end of every dimension. Only a slice that [`check`] accepts has
    /// exact ends.
    fn axes(&self) -> impl DoubleEndedIterator<Item = (u64, u64, u64)> + ExactSizeIterator {
        let axes = self.offsets.iter().zip(&self.sizes);
        axes.map(|(offset, size)| (*offset, *size, offset.saturating_add(*size)))
    }
}
