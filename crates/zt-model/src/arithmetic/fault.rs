//! Why files cannot be computed with.

use zt::{Error, ErrorKind, codes};

/// Why files cannot be computed with. The object of the error is the tensor.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{count} weights for {inputs} inputs")]
    WeightCount { count: usize, inputs: usize },
    #[error("the weights must be finite numbers, and their sum must not be 0")]
    Weights,
    #[error("missing from the first input")]
    Surplus,
    #[error("missing; --exclude leaves it out of all inputs")]
    Missing,
    #[error("has the shape {found:?}, and {expected:?} in the first input")]
    Shape { expected: Vec<u64>, found: Vec<u64> },
    #[error(
        "is no dense floating-point tensor, and not equal in all inputs; \
        --exclude leaves it out, and converting the inputs with --dense decodes it"
    )]
    Unequal,
    #[error("a computed value is out of range for {float}; use --dtype f32, or --allow-inf")]
    OutOfRange { float: &'static str },
    #[error(
        "no tensor of LoRA: expected a name that ends with .lora_A.weight or .lora_B.weight, or a module of \
        modules_to_save"
    )]
    NoFactor,
    #[error("a second adapter in one file, which also has {first:?}")]
    SecondAdapter { first: String },
    #[error("one factor of two: lora_A and lora_B belong together")]
    Unpaired,
    #[error("there are no tensors of LoRA in the adapter")]
    NoFactors,
    #[error(
        "the base has no tensor {base:?}, and lacks {more} more weights that the adapter changes; \
        `zt convert ADAPTER NEW --rename RULE` gives them other names"
    )]
    NoBase { base: String, more: usize },
    #[error(
        "{name:?} is no dense floating-point tensor, but {format}; converting with --dense decodes it"
    )]
    Format { name: String, format: String },
    #[error("lora_A with the shape {a:?} and lora_B with {b:?} do not fit {name:?} with {shape:?}")]
    Factors { a: Vec<u64>, b: Vec<u64>, name: String, shape: Vec<u64> },
    #[error("is no dense floating-point tensor")]
    NotFloating,
    #[error("the value at position {position} is not finite")]
    NotFinite { position: u64 },
    #[error("bits: {bits} is out of range: {least} to 16")]
    Bits { bits: u32, least: u32 },
    #[error("group size: {0} is out of range: 1 to 2^20")]
    GroupSize(u64),
    #[error(
        "no blocks of the type {0:?} are made: the types are q8_0, q4_0, q4_1, q5_0, q5_1 and iq4_nl; llama-quantize of llama.cpp makes K-quants"
    )]
    BlockType(String),
    #[error(
        "no tensor of f64, f32, f16 or bf16 can be quantized among those that are chosen: by default those of two or \
        more dimensions are, and rows of blocks have a multiple of 32 values"
    )]
    NoValues,
    #[error(
        "{count} of the chosen objects are quantized already, such as {name:?} ({what}): first write them as bf16, \
        with `zt convert --dense --dtype bf16`, and quantize that file"
    )]
    IsQuantized { count: usize, name: String, what: String },
    #[error(
        "{count} of the weights are codes whose scales lie beside them ({dialect}), such as {name:?}: --logical \
        (`InputOptions::logical` in Rust) computes with their values"
    )]
    Codes { count: usize, dialect: String, name: String },
    #[error("has too many values")]
    TooLong,
    #[error(
        "the scale is unknown: no adapter_config.json with lora_alpha is beside the adapter; give --scale"
    )]
    NoScale,
    #[error(
        "the factors have the rank {rank}, and {key} of adapter_config.json gives {expected}; --scale gives one scale \
        to all modules"
    )]
    Rank { rank: f64, expected: f64, key: &'static str },
    #[error("the pattern {pattern:?} of adapter_config.json is unsupported: {error}")]
    Pattern { pattern: String, error: regex_lite::Error },
    #[error("has the shape {found:?}, and {base:?} has {expected:?}")]
    SavedShape { found: Vec<u64>, base: String, expected: Vec<u64> },
    #[error("{0} is unsupported: only the sum of LoRA is computed")]
    Method(String),
    #[error("is not the configuration of an adapter: {0}")]
    Config(serde_json::Error),
    #[error("has {byte_len} bytes, the limit is {limit}")]
    ConfigLen { byte_len: u64, limit: u64 },
    #[error("the folder has no adapter_model.safetensors and no adapter_model.bin")]
    NoModel,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let (kind, code) = match fault {
            Fault::Missing
            | Fault::Surplus
            | Fault::NoBase { .. }
            | Fault::NoModel
            | Fault::NoValues
            | Fault::NoFactors => (ErrorKind::Misuse, codes::NOT_FOUND),
            Fault::OutOfRange { .. } => (ErrorKind::Unsupported, "lossy"),
            Fault::NoFactor
            | Fault::SecondAdapter { .. }
            | Fault::Format { .. }
            | Fault::Unequal
            | Fault::NotFloating
            | Fault::IsQuantized { .. }
            | Fault::Codes { .. }
            | Fault::TooLong
            | Fault::Pattern { .. }
            | Fault::Method(_) => (ErrorKind::Unsupported, codes::UNSUPPORTED),
            Fault::Config(_) | Fault::ConfigLen { .. } => (ErrorKind::Malformed, "header"),
            _ => (ErrorKind::Misuse, codes::MISUSE),
        };
        Error::new(kind, code, fault)
    }
}
