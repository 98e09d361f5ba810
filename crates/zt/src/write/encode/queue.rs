//! Items that wait to be written, in their order.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::Write;

use zt_container::DigestAlgorithm;
use zt_formats::PlaneCoding;

use super::Encoder;
use super::blob::{Begin, Placed};
use super::stored::Stored;
use crate::cores::work::Task;
use crate::error::Result;

pub(super) enum Item<'m> {
    Begin(Begin),
    Raw(Cow<'m, [u8]>),
    Frame(Task<'m, Result<Stored<'m>>>),
    /// The lengths of the codes of the blob before, as a raw blob.
    Lengths(Option<DigestAlgorithm>),
    /// `None` for codes: as many bytes as are stored.
    End {
        decoded_len: Option<u64>,
    },
}

/// Items that wait to be written, each with its share of the budget.
#[derive(Default)]
pub(super) struct Queue<'m> {
    items: VecDeque<(Item<'m>, usize)>,
    queued: usize,
}

impl<'m> Queue<'m> {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Writes `item` after the queue; now, if the queue is empty. Waits only if too much is queued.
    pub(super) fn submit<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        item: Item<'m>,
        cost: usize,
    ) -> Result<()> {
        let is_ready = !matches!(item, Item::Frame(_)) || encoder.workers.threads() == 1;
        if self.items.is_empty() && is_ready {
            return encoder.write_item(item);
        }
        self.items.push_back((item, cost));
        self.queued = self.queued.strict_add(cost);
        while let Some((item, cost)) = self.items.pop_front() {
            let can_wait = self.queued <= encoder.budget;
            if can_wait && matches!(&item, Item::Frame(task) if !task.is_done()) {
                self.items.push_front((item, cost));
                break;
            }
            self.write_oldest(encoder, item, cost)?;
        }
        Ok(())
    }

    /// Ends the component whose items were submitted last.
    pub(super) fn end<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        decoded_len: Option<u64>,
    ) -> Result<Placed> {
        if self.is_empty() {
            return encoder.end_now(decoded_len);
        }
        self.end_later(encoder, decoded_len)
    }

    /// Stores the lengths of the codes that were submitted last, of `symbols` symbols.
    pub(super) fn store_lengths<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        symbols: u64,
        digest: Option<DigestAlgorithm>,
    ) -> Result<Placed> {
        self.submit(encoder, Item::Lengths(digest), 0)?;
        self.end(encoder, Some(PlaneCoding::lengths_len(symbols)))
    }

    /// As [`Queue::end`], for a component that is incomplete even if all of it is written.
    pub(super) fn end_later<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        decoded_len: Option<u64>,
    ) -> Result<Placed> {
        let placed = encoder.place_later(decoded_len);
        self.submit(encoder, Item::End { decoded_len }, 0)?;
        Ok(placed)
    }

    /// Writes all items, and waits for the work in progress.
    pub(super) fn write<W: Write>(&mut self, encoder: &mut Encoder<W>) -> Result<()> {
        while let Some((item, cost)) = self.items.pop_front() {
            self.write_oldest(encoder, item, cost)?;
        }
        Ok(())
    }

    /// Writes `item`, the oldest. While another thread works on it, this one works on those behind it.
    fn write_oldest<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        item: Item<'m>,
        cost: usize,
    ) -> Result<()> {
        if let Item::Frame(oldest) = &item {
            oldest.help();
            for (item, _) in &self.items {
                match item {
                    _ if oldest.is_done() => break,
                    Item::Frame(task) => task.help(),
                    _ => {}
                }
            }
        }
        self.queued = self.queued.strict_sub(cost);
        encoder.write_item(item)
    }
}
