//! Arrays, printed as NumPy prints them.

use std::iter;
use std::ops::Range;

/// A longer array is summarised.
const THRESHOLD: u64 = 1000;
/// Columns of a line, as NumPy has them.
const WIDTH: usize = 75;
/// The limit on the elements of a summary: many short dimensions would show millions.
const SHOWN: u64 = 4096;

/// The parts of an array that [`array`] shows, each as the places of every dimension: all of it, or
/// its corners.
pub(crate) fn shown(shape: &[u64]) -> Vec<Vec<Range<u64>>> {
    let mut layout = Layout::of(shape);
    product(shape.iter().map(|&dimension| {
        let runs = layout.runs(dimension);
        layout = layout.inner();
        runs
    }))
}

/// The indices of the elements of a part, in row-major order.
pub(crate) fn indices(part: &[Range<u64>]) -> Vec<Vec<u64>> {
    // A shape of 0×2^40 is valid: its other dimensions must not be listed.
    if part.iter().any(Range::is_empty) {
        return Vec::new();
    }
    product(part.iter().map(|places| places.clone().collect()))
}

/// Every choice of one item from each list; the last list varies fastest.
fn product<T: Clone>(lists: impl Iterator<Item = Vec<T>>) -> Vec<Vec<T>> {
    lists.fold(vec![Vec::new()], |chosen, list| {
        let extended = |chosen: &Vec<T>| {
            let with = |item: &T| [&chosen[..], std::slice::from_ref(item)].concat();
            list.iter().map(with).collect::<Vec<_>>()
        };
        chosen.iter().flat_map(extended).collect()
    })
}

/// The text of an array. `cells` are the texts of the [`shown`] elements, in row-major order.
pub(crate) fn array(shape: &[u64], cells: &[String]) -> String {
    if count(shape) == 0 {
        return "[]".to_owned();
    }
    let cells = if shape.is_empty() { cells.to_vec() } else { aligned(cells) };
    Layout::of(shape).render(shape, &mut cells.into_iter(), 1)
}

/// The number of elements of a valid shape.
fn count(shape: &[u64]) -> u64 {
    zt::formats::element_count(shape).unwrap_or(u64::MAX)
}

/// Which positions of an array are shown.
#[derive(Clone, Copy)]
struct Layout {
    /// Positions at each end of a dimension; `None` for all.
    edge: Option<u64>,
    /// The number of outer dimensions that show their first position alone. 30 dimensions of 2 have
    /// no middle to leave out.
    first_only: usize,
}

impl Layout {
    fn of(shape: &[u64]) -> Self {
        if count(shape) <= THRESHOLD {
            return Layout { edge: None, first_only: 0 };
        }
        let fit = |edge: u64, shape: &[u64]| {
            let mut each = shape.iter().map(|dimension| (*dimension).min(2 * edge));
            let count = each.try_fold(1u64, u64::checked_mul);
            count.is_some_and(|count| count <= SHOWN)
        };
        let edge = [3, 2].into_iter().find(|edge| fit(*edge, shape)).unwrap_or(1);
        let fits = |outer: &usize| fit(edge, shape.get(*outer..).unwrap_or_default());
        let first_only = (0..shape.len()).find(fits).unwrap_or(shape.len());
        Layout { edge: Some(edge), first_only }
    }

    fn inner(self) -> Self {
        Layout { first_only: self.first_only.max(1) - 1, ..self }
    }

    /// The shown places of a dimension. There is a gap behind each run but the last, and behind the
    /// first place of an outer dimension.
    fn runs(self, dimension: u64) -> Vec<Range<u64>> {
        let end = match self.edge {
            Some(_) if self.first_only > 0 => dimension.min(1),
            Some(edge) if dimension > 2 * edge => {
                return vec![0..edge, dimension - edge..dimension];
            }
            _ => dimension,
        };
        iter::once(0..end).collect()
    }

    /// The shown places of a dimension; `None` stands for a gap.
    fn places(self, dimension: u64) -> Vec<Option<u64>> {
        let mut places = Vec::new();
        for run in self.runs(dimension) {
            let is_cut = run.end < dimension;
            places.extend(run.map(Some));
            places.extend(is_cut.then_some(None));
        }
        places
    }

    fn render(
        self,
        shape: &[u64],
        cells: &mut dyn Iterator<Item = String>,
        depth: usize,
    ) -> String {
        let Some((dimension, inner)) = shape.split_first() else {
            return cells.next().unwrap_or_default();
        };
        let indent = " ".repeat(depth);
        let places = self.places(*dimension);
        let parts = places.into_iter().map(|place| match place {
            Some(_) => self.inner().render(inner, cells, depth + 1),
            None => "...".to_owned(),
        });
        if !inner.is_empty() {
            let gap = format!("{}{indent}", "\n".repeat(inner.len()));
            return format!("[{}]", parts.collect::<Vec<_>>().join(&gap));
        }
        let mut text = String::from("[");
        let mut column = depth;
        for (at, word) in parts.enumerate() {
            let len = word.chars().count();
            if at > 0 {
                if column + 1 + len >= WIDTH {
                    text.truncate(text.trim_end().len());
                    text.push('\n');
                    text.push_str(&indent);
                    column = depth;
                } else {
                    text.push(' ');
                    column += 1;
                }
            }
            text.push_str(&word);
            column += len;
        }
        text.push(']');
        text
    }
}

/// Cells of one width. Decimal points are aligned unless a number has an exponent.
fn aligned(cells: &[String]) -> Vec<String> {
    let split = |cell: &str| {
        let at = cell.find('.').unwrap_or(cell.len());
        (at, cell.len() - at)
    };
    let has_point = |cell: &String| cell.contains('.');
    let by_point = cells.iter().any(has_point)
        && !cells.iter().any(|cell| cell.contains('e') || cell.ends_with('j'));
    let width = cells.iter().map(String::len).max().unwrap_or(0);
    if !by_point {
        return cells.iter().map(|cell| format!("{cell:>width$}")).collect();
    }
    let points = || cells.iter().filter(|cell| has_point(cell)).map(|cell| split(cell));
    let before = points().map(|(before, _)| before).max().unwrap_or(0);
    let after = points().map(|(_, after)| after).max().unwrap_or(0);
    // A NaN or an infinity has no point and is aligned to the right.
    let width = width.max(before + after);
    let align = |cell: &String| {
        if !has_point(cell) {
            return format!("{cell:>width$}");
        }
        let (_, own) = split(cell);
        let number = format!("{cell}{}", " ".repeat(after - own));
        format!("{number:>width$}")
    };
    cells.iter().map(align).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of the shown elements; `text` takes a row-major position.
    fn cells(shape: &[u64], text: impl Fn(u64) -> String) -> Vec<String> {
        let parts = shown(shape).into_iter();
        let mut shown: Vec<Vec<u64>> = parts.flat_map(|part| indices(&part)).collect();
        shown.sort_unstable();
        let position = |index: &Vec<u64>| {
            let places = index.iter().zip(shape);
            places.fold(0, |position, (place, dimension)| position * dimension + place)
        };
        shown.iter().map(position).map(text).collect()
    }

    #[test]
    fn an_array_without_elements_takes_no_memory_for_its_other_dimensions() {
        assert!(cells(&[0, 1 << 40, 1 << 20], |_| "0".to_owned()).is_empty());
    }

    #[test]
    fn many_dimensions_show_few_elements() {
        for shape in [&[7; 5][..], &[7; 20], &[2; 30], &[1; 64], &[3, 2, 1 << 40]] {
            let cells = cells(shape, |_| "0".to_owned());
            assert!(!cells.is_empty() && cells.len() as u64 <= SHOWN);
            assert_eq!(array(shape, &cells).matches('0').count(), cells.len());
        }
    }
}
