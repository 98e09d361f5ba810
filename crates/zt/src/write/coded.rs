//! Plane 0 of `zt.planes/2`: workers code its chunks.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use zt_formats::HuffmanEncoder;

use crate::cores::work::{Task, Workers};
use crate::error::{Error, Result};
use crate::write::component::ComponentWriter;
use crate::write::tools::Tools;

/// Takes symbols, and writes their chunks in order.
pub(crate) struct Coder<'c, 'o, 'a, 'w> {
    component: &'c mut ComponentWriter<'o, 'a, 'w>,
    workers: Arc<Workers>,
    tools: Arc<Tools>,
    /// Symbols that are not a chunk yet.
    gathered: Vec<u8>,
    tasks: VecDeque<Task<'static, Result<Vec<u8>>>>,
    /// The lengths of the chunks that were written, little-endian.
    lengths: Vec<u8>,
}

impl<'c, 'o, 'a, 'w> Coder<'c, 'o, 'a, 'w> {
    pub(crate) fn new(component: &'c mut ComponentWriter<'o, 'a, 'w>) -> Self {
        let encoder = &component.object.writer.encoder;
        let (workers, tools) = (Arc::clone(&encoder.workers), Arc::clone(&encoder.tools));
        let (gathered, tasks, lengths) = (Vec::new(), VecDeque::new(), Vec::new());
        Coder { component, workers, tools, gathered, tasks, lengths }
    }

    fn start(&mut self) -> Result<()> {
        let (symbols, tools) = (std::mem::take(&mut self.gathered), Arc::clone(&self.tools));
        self.tasks.push_back(self.workers.start(move || tools.code(symbols)));
        if self.tasks.len() > self.workers.threads() {
            self.write_next()?;
        }
        Ok(())
    }

    fn write_next(&mut self) -> Result<()> {
        let Some(task) = self.tasks.pop_front() else {
            return Ok(());
        };
        let chunk = task.wait().ok_or_else(Error::out_of_order)??;
        self.component.write_all(&chunk)?;
        // At most a byte more than its symbols.
        let len = u32::try_from(chunk.len()).map_err(|_| Error::out_of_order())?;
        self.lengths.extend(len.to_le_bytes());
        self.tools.give_back(chunk);
        Ok(())
    }

    /// Writes what is left, and returns the lengths of all chunks.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>> {
        if !self.gathered.is_empty() {
            self.start()?;
        }
        while !self.tasks.is_empty() {
            self.write_next()?;
        }
        Ok(self.lengths)
    }
}

impl Write for Coder<'_, '_, '_, '_> {
    fn write(&mut self, symbols: &[u8]) -> io::Result<usize> {
        if self.gathered.capacity() == 0 {
            self.gathered = self.tools.buffer(HuffmanEncoder::CHUNK)?;
        }
        let room = HuffmanEncoder::CHUNK.strict_sub(self.gathered.len());
        let taken = symbols.get(..room).unwrap_or(symbols);
        self.gathered.extend_from_slice(taken);
        if self.gathered.len() == HuffmanEncoder::CHUNK {
            self.start()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
