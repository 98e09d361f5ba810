//! Zeros from within the values to the end of a file.
//!
//! A program that reserves a file's length before it fetches the bytes leaves such zeros when it is stopped.
//! The file then has the right length and a sound header.

use zt_container::{Encoding, Source, Span};

use crate::check::verify::Report;
use crate::cores::progress::Gauge;
use crate::error::Result;
use crate::file::catalog::SourceOrigin;
use crate::file::kind::Kind;
use crate::file::tensor::{Located, Tensor};
use crate::file::{File, Warning};

/// Fewer zeros are no sign: a sector is the least that a file system reserves.
const LEAST: u64 = 512;

/// Downloads are written in multiples of a page.
const PAGE: u64 = 4096;

/// Bytes that are read at a time.
const PIECE: u64 = 1 << 20;

impl File {
    /// A warning for each file that ends in zeros from within a tensor on. A tensor of zeros only, such as a
    /// new bias, is no sign; nor are the last rows of a tensor, which some models have for padding.
    ///
    /// Reads the last bytes of each file, and from there back to the first zero. A read that fails is a
    /// problem.
    pub(super) fn find_zero_tails(&self, gauge: &Gauge<'_>, report: &mut Report) -> Result<()> {
        // A file of ours ends with a footer.
        if self.kind() == Kind::ZT {
            return Ok(());
        }
        let mut starts = Vec::with_capacity(self.inner.sources.len());
        for (at, source) in self.inner.sources.iter().enumerate() {
            let is_file = self.inner.catalog.place(at) == SourceOrigin::File;
            let is_local = is_file && !source.is_remote();
            let first = is_local.then(|| first_zero(&**source, gauge)).transpose();
            // A request to stop is no problem of the file.
            gauge.report(0)?;
            let first = first.unwrap_or_else(|error| {
                report.problems.push(error);
                None
            });
            starts.push(first.flatten());
        }
        if starts.iter().all(Option::is_none) {
            return Ok(());
        }
        for entry in self.entries() {
            let Ok(tensor) = entry.tensor() else { continue };
            for part in tensor.located() {
                let start = starts.get_mut(tensor.source_index(part));
                if let Some(start) = start
                    && let Some(first) = *start
                    && is_cut(&tensor, part, first)
                {
                    // Several components may share the bytes.
                    *start = None;
                    let message = format!(
                        "only zeros from byte {first} on, within this tensor, to the end of the file: usually a \
                         download that was cut; download the file again"
                    );
                    let warning = Warning::new("zero-tail", message).with_object(entry.name());
                    let warning = warning.with_component(part.role.to_string());
                    report.warnings.push(warning);
                }
            }
        }
        Ok(())
    }
}

/// Where the zeros at the end of a file begin, if there are enough of them.
fn first_zero(source: &dyn Source, gauge: &Gauge<'_>) -> Result<Option<u64>> {
    let byte_len = source.byte_len();
    if byte_len < LEAST {
        return Ok(None);
    }
    let (mut end, mut len) = (byte_len, LEAST);
    let mut piece = Vec::new();
    while end > 0 {
        gauge.report(0)?;
        let start = end.saturating_sub(len);
        if source.data_from(start) >= end {
            end = hole_before(source, start, end);
            continue;
        }
        piece.resize(usize::try_from(end.strict_sub(start)).unwrap_or(0), 0);
        source.read_at(start, &mut piece)?;
        if let Some(last) = piece.iter().rposition(|byte| *byte != 0) {
            let first = start.strict_add(last as u64).strict_add(1);
            return Ok(Some(first).filter(|first| byte_len.strict_sub(*first) >= LEAST));
        }
        (end, len) = (start, PIECE);
    }
    Ok(Some(0))
}

/// Where a hole of a sparse file begins that has the bytes from `known` to `end`. It may be a terabyte, and is not read.
fn hole_before(source: &dyn Source, known: u64, end: u64) -> u64 {
    let (mut low, mut high) = (0, known);
    while low < high {
        let middle = low.midpoint(high);
        if source.data_from(middle) >= end {
            high = middle;
        } else {
            low = middle.strict_add(1);
        }
    }
    high
}

/// Whether the zeros from `first` on begin within the values of a component that has no digest.
fn is_cut(tensor: &Tensor<'_>, part: Located<'_>, first: u64) -> bool {
    let (component, blob) = (part.component, &part.component.blob);
    let is_plain = blob.encoding == Encoding::Raw && blob.algorithm().is_none();
    let Some(before) = Span::between(blob.span.offset(), first).filter(|_| is_plain) else {
        return false;
    };
    // The last bytes of a value may be zero.
    let width = component.dtype.map_or(1, |dtype| dtype.byte_len() as u64);
    let kept = before.byte_len().next_multiple_of(width);
    let byte_len = blob.span.byte_len();
    if kept == 0 || kept >= byte_len {
        return false;
    }
    let page = first.next_multiple_of(PAGE);
    if page.strict_sub(first) <= width {
        return true;
    }
    let mut row = byte_len;
    for extent in tensor.shape() {
        match row.checked_div(*extent) {
            Some(inner) if inner >= LEAST => row = inner,
            _ => break,
        }
    }
    row == byte_len || !kept.is_multiple_of(row)
}
