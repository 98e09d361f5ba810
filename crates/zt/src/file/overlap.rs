//! A limit for repeated reads of the same bytes, where blobs overlap.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt_container::{Limits, Span};

use crate::error::{Error, Fault, Result};
use crate::file::File;

/// What any file may have read beyond its multiple: small files are not worth a refusal.
const SLACK: u64 = 16 << 20;

/// Bytes that may still be read of one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    left: u64,
    limit: u64,
}

impl Allowance {
    /// For something of so many bytes.
    pub(crate) const fn of(byte_len: u64, limits: &Limits) -> Self {
        let limit = limits.overlap;
        Allowance {
            left: byte_len.saturating_mul(limit).saturating_add(SLACK),
            limit,
        }
    }

    /// Takes so many bytes of what is left.
    ///
    /// # Errors
    ///
    /// Code `overlap` where there are not so many: nothing is taken then.
    pub(crate) fn spend(&mut self, byte_len: u64) -> Result<()> {
        let left = self.left.checked_sub(byte_len);
        self.left = left.ok_or_else(|| self.exceeded())?;
        Ok(())
    }

    #[cfg(test)]
    pub(crate) const fn left(&self) -> u64 {
        self.left
    }

    /// What is said of bytes that are not read.
    pub(crate) fn exceeded(&self) -> Error {
        Fault::OverlapLimit { limit: self.limit }.into()
    }
}

impl File {
    /// Whether all components can be read, or written to another file, within
    /// [`Limits::overlap`]. A range that several components share counts once; ranges that overlap
    /// count each. To be asked before work that takes as long, or as much room, as the components
    /// together. Decodes every object; reads no data.
    ///
    /// # Errors
    ///
    /// Code `overlap`, with the first component that is too much.
    pub fn check_overlap(&self) -> Result<()> {
        let entries = self.entries();
        let tensors: Vec<_> = entries.iter().flat_map(|entry| entry.tensor()).collect();
        let parts = tensors
            .iter()
            .flat_map(|tensor| tensor.located().map(move |part| (tensor, part)));
        let mut spans: Vec<(usize, Span, &str, &str)> = parts
            .map(|(tensor, part)| {
                let span = part.component.blob.span;
                (tensor.source_index(part), span, tensor.name(), &**part.role)
            })
            .collect();
        let place = |(source, span, ..): &(usize, Span, &str, &str)| {
            (*source, span.offset(), span.byte_len())
        };
        spans.sort_by_key(place);
        spans.dedup_by_key(|span| place(span));
        for of_one in spans.chunk_by(|(source, ..), (next, ..)| source == next) {
            let source = of_one.first().map_or(0, |(source, ..)| *source);
            let source = self.inner.sources.get(source);
            let byte_len = source.map_or(0, |source| source.byte_len());
            let mut allowance = Allowance::of(byte_len, &self.inner.limits);
            for (_, span, name, role) in of_one {
                let spent = allowance.spend(span.byte_len());
                spent.map_err(|error| error.with_object(name).with_component(role))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::arithmetic_side_effects)]
    fn all_that_is_allowed_is_given_and_not_one_byte_more() {
        let limits = Limits::default();
        let mut allowance = Allowance::of(1000, &limits);
        allowance.spend(limits.overlap * 1000).unwrap();
        assert_eq!(allowance.spend(SLACK + 1).unwrap_err().code(), "overlap");
        allowance.spend(SLACK).unwrap();
        allowance.spend(0).unwrap();
        allowance.spend(1).unwrap_err();
        let mut allowance = Allowance::of(u64::MAX, &limits);
        allowance.spend(u64::MAX).unwrap();
        allowance.spend(1).unwrap_err();
    }
}
