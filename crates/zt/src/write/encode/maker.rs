//! Components whose bytes are made by the workers, in memory that the caller lends.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use zt_container::codec::{FRAME_CONTENT, SINGLE_FRAME_MAX};
use zt_container::{Encoding, Exact};

use super::{Begin, Encoder, Item, Placed, Stored};
use crate::cores::work::Task;
use crate::error::{Error, Result};
use crate::write::choice::{Head, Method, choose};
use crate::write::options::ComponentOptions;
use crate::write::tools::Tools;
use zt_container::memory::resize;

/// A component whose bytes any thread can make from any place on. It is longer than a single frame;
/// shorter components are copied, so that the next object begins before they end.
pub(crate) struct Made<'m> {
    pub(crate) options: ComponentOptions,
    pub(crate) byte_len: usize,
    /// Fills memory with the bytes from a place on.
    pub(crate) fill: &'m (dyn Fn(usize, &mut [u8]) + Sync),
}

/// Chunks of one component, in their order, and their results.
struct Plan<'m> {
    made: &'m Made<'m>,
    method: Method,
}

impl<W: Write> Encoder<W> {
    /// Stores components with the same bytes as [`Encoder::encode`], in the memory of the queue.
    pub(crate) fn encode_made(&mut self, all: &[Made<'_>]) -> Result<Vec<Placed>> {
        self.write_queue()?;
        let (tools, workers) = (Arc::clone(&self.tools), Arc::clone(&self.workers));
        let plans = workers.scope(all.len(), |scope| {
            let tools = &*tools;
            let plan = |made| scope.start(move || Plan::new(made, tools));
            let plans: Vec<_> = all.iter().map(plan).collect();
            let plans = plans.into_iter();
            plans
                .map(|plan| plan.wait().ok_or_else(Error::out_of_order)?)
                .collect::<Result<Vec<_>>>()
        })?;
        let chunks = plans.iter().flat_map(|plan| {
            let starts = (0..plan.made.byte_len).step_by(FRAME_CONTENT);
            starts.map(move |start| (plan, start))
        });
        let mut placed = Vec::with_capacity(all.len());
        workers.scope(usize::MAX, |scope| {
            let mut queue = VecDeque::new();
            let mut queued = 0usize;
            for (plan, start) in chunks {
                let range = start..plan.made.byte_len.min(start.plus(FRAME_CONTENT));
                queued += range.len();
                let (tools, made) = (&*tools, range.clone());
                let task = scope.start(move || plan.make(made, tools));
                queue.push_back((plan, range, task));
                while queued > self.budget
                    && let Some((plan, range, task)) = queue.pop_front()
                {
                    queued -= range.len();
                    placed.extend(self.place_made(plan, range, task)?);
                }
            }
            for (plan, range, task) in queue {
                placed.extend(self.place_made(plan, range, task)?);
            }
            Ok(placed)
        })
    }

    /// Writes one chunk. After the last one, returns the component's blob.
    fn place_made(
        &mut self,
        plan: &Plan<'_>,
        range: Range<usize>,
        task: Task<'_, Result<Stored>>,
    ) -> Result<Option<Placed>> {
        let byte_len = plan.made.byte_len;
        if range.start == 0 {
            self.place(Item::Begin(Begin {
                encoding: Encoding::Raw,
                alignment: self.alignment_of(byte_len as u64),
                digest: plan.made.options.digest,
                has_table: matches!(plan.method, Method::Frames(_)),
                is_alone: false,
                is_long: true,
            }))?;
        }
        let stored = task.wait().ok_or_else(Error::out_of_order)??;
        self.write_frame(stored)?;
        if range.end < byte_len {
            return Ok(None);
        }
        self.end_placed(byte_len as u64).map(Some)
    }
}

impl<'m> Plan<'m> {
    fn new(made: &'m Made<'m>, tools: &Tools) -> Result<Self> {
        let method = choose(tools, made.options.compression, made)?;
        Ok(Plan { made, method })
    }

    fn make(&self, range: Range<usize>, tools: &Tools) -> Result<Stored> {
        let memory = tools.buffer(range.len())?;
        let content = self.made.bytes(range, memory)?;
        Stored::part(tools, content, self.method, self.made.options.digest)
    }
}

impl Made<'_> {
    /// The bytes of `range`, in `memory` that is used again.
    fn bytes(&self, range: Range<usize>, mut memory: Vec<u8>) -> Result<Vec<u8>> {
        resize(&mut memory, range.len() as u64)?;
        (self.fill)(range.start, &mut memory);
        Ok(memory)
    }
}

/// The number of bytes that decide for a component in pieces.
impl Head for Made<'_> {
    fn byte_len(&self) -> usize {
        self.byte_len.min(SINGLE_FRAME_MAX)
    }

    fn stretch(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>> {
        self.bytes(range, Vec::new()).map(Cow::Owned)
    }
}
