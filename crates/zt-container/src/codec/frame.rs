//! Compressing and decoding frames. Ours have their content size and a checksum; frames of other writers
//! need neither.

use zstd::zstd_safe::{CCtx, CParameter, DCtx, ParamSwitch, Strategy, get_error_name};

use crate::codec::{FRAME_CONTENT, FrameDecoder};
use crate::error::{Error, LimitExceeded, Result, ZstdFault};

/// Compresses contents into frames. Its tables are large: use one for many frames.
pub struct FrameCompressor {
    context: CCtx<'static>,
}

impl FrameCompressor {
    /// A compressor of zstd's `level` (1 to 22; 0 means its default, negative levels are faster).
    ///
    /// The window is 1 MiB, the frame length of a large component. With a larger window, level 3 took 4 %
    /// more time for a frame of 4 MiB of weights, because it searched places that had left the cache.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded::Allocation`] if there is no memory for it.
    pub fn new(level: i32) -> Result<Self> {
        let mut parameters = vec![CParameter::CompressionLevel(level)];
        // Lower levels have a window of at most this size by default.
        if level == 0 || level > 2 {
            parameters.push(CParameter::WindowLog(FRAME_CONTENT.ilog2()));
        }
        Self::with(&parameters)
    }

    /// A compressor that codes bytes by their frequency and does not search for repetitions: for bytes that
    /// do not repeat, such as the exponents of weights. Its frames are plain zstd.
    ///
    /// On the upper bytes of Gaussian bf16 weights the result is smaller than level 1 (0.34 of the content
    /// instead of 0.37), in a third of the time. On bytes that repeat it is many times larger.
    ///
    /// # Errors
    ///
    /// As [`FrameCompressor::new`].
    pub fn entropy_only() -> Result<Self> {
        /// `ZSTD_TARGETLENGTH_MAX`: the fast strategy uses it as the step of its search, so it searches at
        /// one position of each block.
        const NO_SEARCH: u32 = 1 << 17;
        Self::with(&[
            CParameter::CompressionLevel(1),
            CParameter::Strategy(Strategy::ZSTD_fast),
            CParameter::TargetLength(NO_SEARCH),
            // With so large a step, zstd would by default not compress literals.
            CParameter::LiteralCompressionMode(ParamSwitch::Enable),
        ])
    }

    fn with(parameters: &[CParameter]) -> Result<Self> {
        let mut context = CCtx::try_create().ok_or_else(no_context)?;
        for parameter in parameters.iter().chain(&[CParameter::ChecksumFlag(true)]) {
            context.set_parameter(*parameter).map_err(refused)?;
        }
        Ok(FrameCompressor { context })
    }

    /// The most bytes that a frame of `content_len` bytes takes.
    pub fn bound(content_len: usize) -> usize {
        zstd::zstd_safe::compress_bound(content_len)
    }

    /// Replaces `frame` by one frame of `content`, with content size and checksum.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded::Allocation`] if there is no memory for the frame.
    pub fn compress(&mut self, content: &[u8], frame: &mut Vec<u8>) -> Result<()> {
        let bound = Self::bound(content.len());
        frame.clear();
        frame.try_reserve(bound).map_err(|_| no_memory(bound))?;
        self.context.compress2(frame, content).map_err(refused)?;
        Ok(())
    }
}

impl std::fmt::Debug for FrameCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameCompressor").finish_non_exhaustive()
    }
}

/// Decodes all frames of `stored` into exactly `out`.
///
/// # Errors
///
/// As [`FrameDecompressor::decode_into`].
pub fn decode_into(stored: &[u8], out: &mut [u8]) -> Result<()> {
    FrameDecompressor::new()?.decode_into(stored, out)
}

/// Decodes frames that are in memory. Its tables are large: use one for many blobs.
pub struct FrameDecompressor {
    context: DCtx<'static>,
}

impl FrameDecompressor {
    /// A decompressor for any number of frames, one after another.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded::Allocation`] if there is no memory for it.
    pub fn new() -> Result<Self> {
        let context = DCtx::try_create().ok_or_else(no_context)?;
        Ok(FrameDecompressor { context })
    }

    /// Decodes all frames of `stored` into exactly `out`.
    ///
    /// # Errors
    ///
    /// [`crate::FramingViolation::Zstd`] if the frames are damaged or decode to another number of bytes.
    pub fn decode_into(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let expected = out.len() as u64;
        // One call decodes concatenated frames, skips skippable ones, and refuses trailing bytes. The
        // destination is the window, so a frame that declares a large window needs no memory.
        match self.context.decompress(out, stored) {
            Ok(found) if found as u64 == expected => Ok(()),
            Ok(found) => Err(ZstdFault::Short { expected, found: found as u64 }.into()),
            Err(code) => Err(match get_error_name(code) {
                "Destination buffer is too small" => ZstdFault::Long { expected }.into(),
                "Src size is incorrect" => ZstdFault::Cut.into(),
                _ if takes_as_stream(stored, out)? => return Ok(()),
                _ => refused(code),
            }),
        }
    }
}

/// Decodes, as a stream, frames that zstd has refused in one call. Returns whether that succeeds.
///
/// A stream passes over a compressed block of no bytes, and one call does not. Both ways to read a
/// component must agree.
fn takes_as_stream(stored: &[u8], out: &mut [u8]) -> Result<bool> {
    let mut decoder = FrameDecoder::new(out.len() as u64)?;
    let (mut input, mut rest) = (stored, out);
    loop {
        let Ok((taken, given)) = decoder.run(input, rest) else {
            return Ok(false);
        };
        input = input.get(taken..).unwrap_or_default();
        rest = rest.get_mut(given..).unwrap_or_default();
        if taken == 0 && given == 0 {
            return Ok(input.is_empty() && rest.is_empty() && decoder.at_boundary());
        }
    }
}

impl std::fmt::Debug for FrameDecompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameDecompressor").finish_non_exhaustive()
    }
}

pub(super) fn no_context() -> Error {
    no_memory(0)
}

fn no_memory(byte_len: usize) -> Error {
    Error::Limit(LimitExceeded::Allocation { byte_len: byte_len as u64 })
}

/// Our error for zstd's: a lack of memory is not a fault of the bytes.
pub(super) fn refused(code: usize) -> Error {
    match get_error_name(code) {
        "Allocation error : not enough memory" => no_context(),
        why => ZstdFault::Refused(why).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_memory_for_zstd_is_no_fault_of_the_frame() {
        // `ZSTD_error_memory_allocation` and `ZSTD_error_corruption_detected`, as functions return them.
        assert_eq!(refused(0usize.wrapping_sub(64)).code(), "allocation");
        assert_eq!(refused(0usize.wrapping_sub(20)).code(), "zstd");
    }
}
