//! How the components of a `.zt` file are written.

use clap::{Args, ValueEnum};
use zt::foreign::Kind;
use zt::formats::PlaneCoding;
use zt::{Compression, DEFAULT_LEVEL, DigestAlgorithm, WriteOptions};
use zt_convert::ZT;

use crate::args::jobs::Jobs;
use crate::failure::Failure;

/// The options of every command that writes components.
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Compress with zstd at this level, from -7 to 22 [default: 3]; `auto` decides for each
    /// component from a sample. A component that does not shrink stays raw. Without --zstd, --raw
    /// and --planes, each component stays compressed or raw as it is
    #[arg(
        long,
        value_name = "LEVEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "3",
        value_parser = compression
    )]
    zstd: Option<Compression>,
    /// Store every component uncompressed
    #[arg(long, conflicts_with_all = ["zstd", "planes"], hide_short_help = true)]
    raw: bool,
    /// Split floating-point tensors into planes of bytes, which compress better and lose nothing;
    /// --zstd=auto is then the default. With `huffman`, files are read faster, by fewer readers
    #[arg(
        long,
        value_name = "CODING",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "zstd",
        value_enum
    )]
    planes: Option<Planes>,
    /// Digest to store for each component [default: as in the input, or crc32c]
    #[arg(long, value_enum, hide_short_help = true)]
    digest: Option<Digest>,
    /// Digest to store for each MiB of a longer raw component, by which readers verify slices [default:
    /// crc32c; none beside --digest none]
    #[arg(
        long,
        value_name = "DIGEST",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "crc32c",
        value_enum,
        hide_short_help = true
    )]
    chunk_digests: Option<Digest>,
    /// Alignment of components in bytes: a power of two from 64 to 2^30
    #[arg(long, value_name = "N", value_parser = alignment, hide_short_help = true)]
    align: Option<u64>,
    /// Store every component separately; by default, equal bytes are stored once
    #[arg(long, hide_short_help = true)]
    pub(crate) no_dedup: bool,
    #[command(flatten)]
    jobs: Jobs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Digest {
    Crc32c,
    Sha256,
    None,
}

/// The value of `--planes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Planes {
    /// `zt.planes/1`
    Zstd,
    /// `zt.planes/2`
    Huffman,
}

impl Planes {
    const fn coding(self) -> PlaneCoding {
        match self {
            Planes::Zstd => PlaneCoding::Plain,
            Planes::Huffman => PlaneCoding::Huffman,
        }
    }
}

impl Digest {
    const fn algorithm(self) -> Option<DigestAlgorithm> {
        match self {
            Digest::Crc32c => Some(DigestAlgorithm::Crc32c),
            Digest::Sha256 => Some(DigestAlgorithm::Sha256),
            Digest::None => None,
        }
    }
}

impl WriteArgs {
    /// The options for files of kind `target`.
    ///
    /// # Errors
    ///
    /// Code `misuse` for an option that applies to `.zt` files alone.
    pub(crate) fn options_for(&self, target: Kind) -> Result<WriteOptions, Failure> {
        match self.only_of_zt() {
            Some(flag) if target != ZT => Err(Failure::misuse(format!(
                "{flag} is for .zt output, but the output is {target}"
            ))),
            _ => Ok(self.options()),
        }
    }

    /// The first given option that applies to `.zt` files alone.
    pub(crate) fn only_of_zt(&self) -> Option<&'static str> {
        let given = [
            ("--zstd", self.zstd.is_some()),
            ("--raw", self.raw),
            ("--planes", self.planes.is_some()),
            ("--digest", self.digest.is_some()),
            ("--chunk-digests", self.chunk_digests.is_some()),
            ("--align", self.align.is_some()),
            ("--no-dedup", self.no_dedup),
        ];
        let mut given = given.into_iter().filter(|(_, given)| *given);
        given.next().map(|(flag, _)| flag)
    }

    fn options(&self) -> WriteOptions {
        let mut options = WriteOptions::new().threads(self.jobs.threads());
        if let Some(planes) = self.planes {
            options = options.planes_in(planes.coding());
        }
        if self.raw {
            options = options.compression(Compression::None);
        }
        if let Some(compression) = self.zstd {
            options = options.compression(compression);
        }
        if let Some(digest) = self.digest {
            options = options.digest(digest.algorithm());
        }
        if let Some(digest) = self.chunk_digests {
            options = options.chunk_digests(digest.algorithm());
        }
        if let Some(align) = self.align {
            options = options.alignment(align);
        }
        options
    }
}

/// The value of `--zstd`.
pub(crate) fn compression(text: &str) -> Result<Compression, String> {
    const LEVELS: std::ops::RangeInclusive<i32> = -7..=22;
    match text.parse() {
        Ok(level) if LEVELS.contains(&level) => Ok(Compression::Zstd(level)),
        _ if text == "auto" => Ok(Compression::Auto),
        _ => Err("expected `auto` or a level from -7 to 22".to_owned()),
    }
}

/// The value of `--align`, as [`WriteOptions::alignment`] takes it.
fn alignment(text: &str) -> Result<u64, String> {
    let align = text.parse().ok().filter(|align: &u64| {
        align.is_power_of_two() && (zt::container::ALIGNMENT..=1 << 30).contains(align)
    });
    align.ok_or_else(|| "expected a power of two from 64 to 2^30".to_owned())
}

const _: () = assert!(DEFAULT_LEVEL == 3, "the help says so");
