//! From decoded bytes to a stored blob: chunks compressed on all cores, written in order.

use std::io::Write;

use zt_container::codec::{FRAME_CONTENT, FrameCompressor, SINGLE_FRAME_MAX, SeekTable};
use zt_container::{ALIGNMENT, Blob, ContainerWriter, Encoding};

use crate::error::Result;
use crate::options::{ComponentOptions, Compression};

/// Content that is compressed at a time. Fixed, so that the bytes written do not depend on the
/// number of threads; the first one decides whether the component shrinks at all.
const BATCH: usize = 16 * FRAME_CONTENT;

/// Components of at least this many bytes begin on a page.
const LARGE: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Compresses and lays out the components of one file.
pub(crate) struct Encoder {
    alignment: Option<u64>,
    workers: Workers,
    /// For components of a single frame; making one costs more than using it.
    compressor: Option<(i32, FrameCompressor)>,
    frame: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(alignment: Option<u64>, threads: Option<usize>) -> Result<Self> {
        /// Beyond this, padding is larger than what it pads.
        const MOST: u64 = 1 << 30;
        if let Some(alignment) = alignment
            && !(alignment.is_power_of_two() && (ALIGNMENT..=MOST).contains(&alignment))
        {
            let misuse = zt_container::Misuse::Alignment(alignment);
            return Err(zt_container::Error::Misuse(misuse).into());
        }
        let workers = Workers::new(threads)?;
        Ok(Encoder {
            alignment,
            workers,
            compressor: None,
            frame: Vec::new(),
        })
    }

    /// Where a component of `byte_len` decoded bytes may begin.
    fn alignment_of(&self, byte_len: u64) -> u64 {
        self.alignment
            .unwrap_or(if byte_len >= LARGE { PAGE } else { ALIGNMENT })
    }

    /// Stores a component that is in memory.
    pub(crate) fn encode<W: Write>(
        &mut self,
        container: &mut ContainerWriter<W>,
        content: &[u8],
        options: ComponentOptions,
    ) -> Result<Blob> {
        let mut component = Component::new(options, content.len() as u64);
        let batches = content.chunks(BATCH);
        let last = batches.len().saturating_sub(1);
        if content.is_empty() {
            component.push(self, container, &[], true)?;
        }
        for (at, batch) in batches.enumerate() {
            component.push(self, container, batch, at == last)?;
        }
        component.finish(container)
    }

    fn compress_one(&mut self, level: i32, content: &[u8]) -> Result<&[u8]> {
        if self.compressor.as_ref().is_none_or(|(of, _)| *of != level) {
            self.compressor = Some((level, FrameCompressor::new(level)?));
        }
        if let Some((_, compressor)) = &mut self.compressor {
            compressor.compress(content, &mut self.frame)?;
        }
        Ok(&self.frame)
    }
}

/// A component on its way into a container: what has been decided and counted so far.
pub(crate) struct Component {
    options: ComponentOptions,
    /// Decoded bytes as far as they are known beforehand, for the placement alone.
    expected_len: u64,
    decoded_len: u64,
    stage: Stage,
}

enum Stage {
    /// Nothing is written yet.
    Undecided,
    Raw,
    OneFrame,
    Frames(SeekTable),
}

impl Component {
    /// The number of bytes that [`Component::push`] wants at a time, but for the last.
    pub(crate) const BATCH: usize = BATCH;

    pub(crate) fn new(options: ComponentOptions, expected_len: u64) -> Self {
        Component {
            options,
            expected_len,
            decoded_len: 0,
            stage: Stage::Undecided,
        }
    }

    /// Decoded bytes that are to come, where the caller knows better than the shape.
    pub(crate) fn expect_len(&mut self, byte_len: u64) {
        self.expected_len = byte_len;
    }

    /// Whether bytes are stored as they come, so that they need not be gathered into batches.
    pub(crate) fn is_raw(&self) -> bool {
        self.options.compression == Compression::None || matches!(self.stage, Stage::Raw)
    }

    /// Stores the next batch: exactly [`Component::BATCH`] bytes, or fewer and `last`;
    /// any number where [`Component::is_raw`].
    pub(crate) fn push<W: Write>(
        &mut self,
        encoder: &mut Encoder,
        container: &mut ContainerWriter<W>,
        content: &[u8],
        last: bool,
    ) -> Result<()> {
        self.decoded_len = self.decoded_len.saturating_add(content.len() as u64);
        let first = matches!(self.stage, Stage::Undecided);
        if first {
            container.begin_blob(encoder.alignment_of(self.expected_len), self.options.digest)?;
        }
        let Compression::Zstd(level) = self.options.compression else {
            self.stage = Stage::Raw;
            return Ok(container.write(content)?);
        };
        match &mut self.stage {
            Stage::Undecided if last && content.len() <= SINGLE_FRAME_MAX => {
                let frame = encoder.compress_one(level, content)?;
                let shrinks = frame.len() < content.len();
                container.write(if shrinks { frame } else { content })?;
                self.stage = if shrinks { Stage::OneFrame } else { Stage::Raw };
            }
            Stage::Undecided => {
                let frames = encoder.workers.compress(level, content)?;
                // The first 16 MiB speak for the rest: a sink takes nothing back.
                if frames.iter().map(Vec::len).sum::<usize>() < content.len() {
                    let mut table = SeekTable::default();
                    write_frames(container, &mut table, &frames, content)?;
                    self.stage = Stage::Frames(table);
                } else {
                    container.write(content)?;
                    self.stage = Stage::Raw;
                }
            }
            Stage::Frames(table) => {
                let frames = encoder.workers.compress(level, content)?;
                write_frames(container, table, &frames, content)?;
            }
            Stage::Raw | Stage::OneFrame => container.write(content)?,
        }
        Ok(())
    }

    /// Ends the blob, after the last push.
    pub(crate) fn finish<W: Write>(self, container: &mut ContainerWriter<W>) -> Result<Blob> {
        let encoding = match &self.stage {
            Stage::Undecided | Stage::Raw => Encoding::Raw,
            Stage::OneFrame => Encoding::Zstd,
            Stage::Frames(table) => {
                container.write(&table.to_frame())?;
                Encoding::Zstd
            }
        };
        let (span, digest) = container.end_blob()?;
        Ok(Blob {
            span,
            encoding,
            decoded_len: Some(self.decoded_len),
            digest,
        })
    }
}

fn write_frames<W: Write>(
    container: &mut ContainerWriter<W>,
    table: &mut SeekTable,
    frames: &[Vec<u8>],
    content: &[u8],
) -> Result<()> {
    for (frame, part) in frames.iter().zip(content.chunks(FRAME_CONTENT)) {
        container.write(frame)?;
        table.push(frame.len(), part.len())?;
    }
    Ok(())
}

/// The threads that compress.
struct Workers {
    #[cfg(feature = "rayon")]
    pool: Option<rayon::ThreadPool>,
}

#[cfg(feature = "rayon")]
impl Workers {
    fn new(threads: Option<usize>) -> Result<Self> {
        let build = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = threads
            .map(build)
            .transpose()
            .map_err(|_| crate::error::Fault::ThreadPool)?;
        Ok(Workers { pool })
    }

    /// One frame per [`FRAME_CONTENT`] bytes, in order.
    fn compress(&self, level: i32, content: &[u8]) -> Result<Vec<Vec<u8>>> {
        use rayon::prelude::*;
        let compress = || {
            let chunks = content.par_chunks(FRAME_CONTENT);
            let frames = chunks.map_init(|| FrameCompressor::new(level), frame_of);
            frames.collect()
        };
        match &self.pool {
            Some(pool) => pool.install(compress),
            None => compress(),
        }
    }
}

#[cfg(not(feature = "rayon"))]
impl Workers {
    fn new(_threads: Option<usize>) -> Result<Self> {
        Ok(Workers {})
    }

    fn compress(&self, level: i32, content: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut compressor = FrameCompressor::new(level);
        content
            .chunks(FRAME_CONTENT)
            .map(|part| frame_of(&mut compressor, part))
            .collect()
    }
}

fn frame_of(
    compressor: &mut zt_container::Result<FrameCompressor>,
    content: &[u8],
) -> Result<Vec<u8>> {
    let mut frame = Vec::new();
    match compressor {
        Ok(compressor) => compressor.compress(content, &mut frame)?,
        Err(_) => {
            let byte_len = content.len() as u64;
            let limit = zt_container::LimitExceeded::Allocation { byte_len };
            return Err(zt_container::Error::Limit(limit).into());
        }
    }
    frame.shrink_to_fit(); // The bound that was reserved is as long as the content.
    Ok(frame)
}
