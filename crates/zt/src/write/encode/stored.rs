//! The work of a worker: a chunk of decoded bytes becomes stored bytes.

use std::borrow::Cow;

use zt_container::{DigestAlgorithm, Encoding};

use super::sums::Sums;
use crate::error::Result;
use crate::write::choice::{Method, choose};
use crate::write::options::ComponentOptions;
use crate::write::tools::Tools;

/// A chunk as it is stored. Bytes in lent memory stay there.
pub(super) struct Stored<'m> {
    pub(super) bytes: Cow<'m, [u8]>,
    pub(super) encoding: Encoding,
    pub(super) content_len: usize,
    pub(super) sums: Option<Sums>,
}

impl<'m> Stored<'m> {
    /// Encodes all of a component: as one frame, unless it does not shrink.
    pub(super) fn alone(
        tools: &Tools,
        content: Cow<'m, [u8]>,
        options: ComponentOptions,
        chunks: Option<DigestAlgorithm>,
    ) -> Result<Self> {
        let content_len = content.len();
        if let Method::Frames(effort) = choose(tools, options.compression, &*content)? {
            let frame = tools.compress(effort, &content)?;
            if frame.len() < content_len {
                tools.take_back(content);
                return Ok(Stored {
                    sums: Some(Sums::of(&frame, options.digest, None)?),
                    bytes: frame.into(),
                    encoding: Encoding::Zstd,
                    content_len,
                });
            }
            tools.give_back(frame);
        }
        Ok(Stored {
            sums: Some(Sums::of(&content, options.digest, chunks)?),
            bytes: content,
            encoding: Encoding::Raw,
            content_len,
        })
    }

    /// Encodes a part of a component, by the method that was chosen for all of it.
    pub(super) fn part(tools: &Tools, content: Cow<'m, [u8]>, method: Method) -> Result<Self> {
        let content_len = content.len();
        let (bytes, encoding) = match method {
            Method::Raw => (content, Encoding::Raw),
            Method::Frames(effort) => {
                let frame = tools.compress(effort, &content)?;
                tools.take_back(content);
                (frame.into(), Encoding::Zstd)
            }
            Method::Codes => {
                let chunk = tools.code(&content)?;
                tools.take_back(content);
                (chunk.into(), Encoding::Raw)
            }
        };
        Ok(Stored { bytes, encoding, content_len, sums: None })
    }
}
