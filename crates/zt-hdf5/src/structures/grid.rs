//! The numbers and places of a dataset's chunks.

/// A shape, and the chunks that cover it.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// Elements in every dimension, outermost first.
    pub(crate) shape: Vec<u64>,
    /// Elements of a chunk in every dimension, one at least.
    pub(crate) chunk: Vec<u64>,
    /// Chunks in every dimension.
    counts: Vec<u64>,
    /// The most chunks in every dimension; `None` if it is unlimited.
    limits: Vec<Option<u64>>,
    /// Bytes of a chunk.
    pub(crate) chunk_len: u64,
}

impl Grid {
    /// The chunks of a shape that may grow to `limits`. `None` if the ranks differ, or the bytes of a
    /// chunk overflow.
    pub(crate) fn new(
        shape: Vec<u64>,
        limits: &[Option<u64>],
        chunk: Vec<u64>,
        element_len: u64,
    ) -> Option<Self> {
        if shape.len() != chunk.len() || limits.len() != chunk.len() || chunk.contains(&0) {
            return None;
        }
        let mut factors = chunk.iter();
        let chunk_len = factors.try_fold(element_len, |len, count| len.checked_mul(*count))?;
        let counts = shape.iter().zip(&chunk);
        let counts = counts.map(|(count, chunk)| count.div_ceil(*chunk)).collect();
        let limits = limits.iter().zip(&chunk);
        let limits = limits.map(|(limit, chunk)| limit.map(|limit| limit.div_ceil(*chunk)));
        Some(Grid { limits: limits.collect(), shape, chunk, counts, chunk_len })
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Chunks of the largest shape; `None` if it is unlimited or overflows.
    pub(crate) fn count_max(&self) -> Option<u64> {
        let mut limits = self.limits.iter();
        limits.try_fold(1u64, |product, count| product.checked_mul((*count)?))
    }

    /// The row-major number of the chunk at `place`, in chunks; `None` outside the shape.
    pub(crate) fn number(&self, place: &[u64]) -> Option<u64> {
        let mut number = 0u64;
        for (at, count) in place.iter().zip(&self.counts) {
            if at >= count {
                return None;
            }
            number = number.checked_mul(*count)?.checked_add(*at)?;
        }
        Some(number)
    }

    /// The place, in chunks, of the chunk with a number: the inverse of [`Grid::number`].
    pub(crate) fn place(&self, number: u64) -> Vec<u64> {
        let mut place = vec![0; self.rank()];
        let mut rest = number;
        for (at, count) in place.iter_mut().zip(&self.counts).rev() {
            // There is no chunk if a dimension is empty.
            *at = rest.strict_rem(*count);
            rest = rest.strict_div(*count);
        }
        place
    }

    /// Whether the chunk at `place`, in chunks, is partly outside the shape.
    pub(crate) fn is_on_edge(&self, place: &[u64]) -> bool {
        let mut axes = place.iter().zip(&self.chunk).zip(&self.shape);
        // The chunks inside are a quotient without its remainder.
        axes.any(|((at, chunk), count)| *at >= count.strict_div(*chunk))
    }

    /// The number of the chunk whose first element is at `first`. The error is a coordinate where
    /// no chunk begins.
    pub(crate) fn number_of_first(&self, first: &[u64]) -> Result<Option<u64>, u64> {
        let mut place = Vec::with_capacity(first.len());
        for (at, chunk) in first.iter().zip(&self.chunk) {
            if !at.is_multiple_of(*chunk) {
                return Err(*at);
            }
            place.push(at.strict_div(*chunk));
        }
        Ok(self.number(&place))
    }

    /// The number of the chunk at an index of an array for the shape at its largest.
    pub(crate) fn number_of_fixed(&self, index: u64) -> Option<u64> {
        let all: Vec<usize> = (0..self.rank()).collect();
        self.number_of_order(index, &all)
    }

    /// The same if one dimension is unlimited: it is the outermost of the array.
    pub(crate) fn number_of_extensible(&self, index: u64) -> Option<u64> {
        let unlimited = self.limits.iter().position(Option::is_none)?;
        let others = (0..self.rank()).filter(|axis| *axis != unlimited);
        let order: Vec<usize> = std::iter::once(unlimited).chain(others).collect();
        self.number_of_order(index, &order)
    }

    /// The number of a chunk in a shape with the axes in another order, outermost first.
    fn number_of_order(&self, index: u64, order: &[usize]) -> Option<u64> {
        let mut place = vec![0; self.rank()];
        let mut rest = index;
        for (position, axis) in order.iter().enumerate().rev() {
            let count = self.limits.get(*axis).copied().flatten();
            let slot = place.get_mut(*axis)?;
            if position == 0 {
                *slot = rest;
            } else {
                *slot = rest.checked_rem(count?)?;
                rest = rest.checked_div(count?)?;
            }
        }
        self.number(&place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_row_major_in_the_current_shape() {
        let grid = Grid::new(vec![5, 7], &[Some(20), None], vec![2, 3], 4).unwrap();
        assert_eq!(grid.chunk_len, 24);
        assert_eq!(grid.number(&[2, 2]), Some(8));
        assert_eq!(grid.number(&[3, 0]), None);
        assert_eq!(grid.place(8), [2, 2]);
        assert_eq!(grid.number_of_first(&[4, 6]), Ok(Some(8)));
        assert_eq!(grid.number_of_first(&[4, 5]), Err(5));
        assert_eq!(grid.count_max(), None);
        // The shape may have ten rows of chunks; the columns are unlimited and the outer dimension.
        assert_eq!(grid.number_of_extensible(10 * 2 + 1), Some(5));
        assert_eq!(grid.number_of_extensible(3), None);
    }

    #[test]
    fn fixed_arrays_count_the_chunks_of_the_largest_shape() {
        let grid = Grid::new(vec![3, 3], &[Some(3), Some(9)], vec![1, 3], 1).unwrap();
        assert_eq!(grid.count_max(), Some(9));
        assert_eq!(grid.number_of_fixed(6), Some(2));
        assert_eq!(grid.number_of_fixed(7), None);
    }

    #[test]
    fn a_chunk_that_ends_with_the_shape_is_not_on_its_edge() {
        let grid = Grid::new(vec![5, 6], &[None, None], vec![2, 3], 1).unwrap();
        assert!(!grid.is_on_edge(&[0, 0]));
        assert!(!grid.is_on_edge(&[1, 1]));
        assert!(grid.is_on_edge(&[2, 1]));
    }

    #[test]
    fn a_grid_that_overflows_or_has_no_chunks_is_refused() {
        assert!(Grid::new(vec![3], &[None], vec![1 << 61], 8).is_none());
        assert!(Grid::new(vec![3, 3], &[None], vec![1], 8).is_none());
        assert!(Grid::new(vec![3], &[None], vec![0], 8).is_none());
    }
}
