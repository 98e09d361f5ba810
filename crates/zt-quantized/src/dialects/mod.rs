//! The ways to store quantized weights.
//!
//! ```text
//! scaled              FP8 and int8 with a scale beside them: DeepSeek, compressed-tensors, ModelOpt, MXFP8
//! compressed_tensors  packed integers, NVFP4 and MXFP4
//! modelopt            NVFP4
//! gpt_oss             MXFP4 of stacked experts
//! gptq, awq           packed integers
//! bitsandbytes        NF4, FP4 and int8
//! comfy               FP8 and NVFP4 of ComfyUI
//! mlx                 packed integers, MXFP4 and NVFP4 of MLX
//! torchao, hqq, quanto
//! named               what is known by name and has no values here
//! ```

mod awq;
mod bitsandbytes;
mod comfy;
mod compressed_tensors;
mod gpt_oss;
mod gptq;
mod hqq;
mod mlx;
mod modelopt;
mod named;
mod quanto;
mod scaled;
mod torchao;

use std::sync::Arc;

use zt::Result;

use crate::model::Model;
use crate::weight::Weight;

/// A way to store quantized weights.
///
/// ```
/// use zt::{FloatType, Result};
/// use zt_quantized::{Codes, Dialect, Formula, Model, Packing, Weight};
///
/// /// Codes of a byte, `NAME.codes`, with a scale for all, `NAME.scale`.
/// struct Mine;
///
/// impl Dialect for Mine {
///     fn name(&self) -> &'static str {
///         "mine"
///     }
///
///     fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
///         let formula = |name: &str| {
///             let codes = model.tensor("mine", &format!("{name}.codes"))?;
///             let shape = codes.tensor().shape().to_vec();
///             let values = (0..=255u8).map(f32::from).collect();
///             let matrix = [1, 1, shape.iter().product()];
///             let codes = Codes::packed(codes, Packing::bytes(), values, matrix)?;
///             let scale = Codes::numbers(model.tensor("mine", &format!("{name}.scale"))?, [1, 1, 1])?;
///             Formula::new(shape, codes)?.scale(scale)
///         };
///         let weight = |name: &str| {
///             let parts = [format!("{name}.codes"), format!("{name}.scale")];
///             Weight::new(name, "mine", parts, FloatType::BF16, formula(name))
///         };
///         Ok(model.ending(".codes").into_iter().map(weight).collect())
///     }
/// }
/// # zt_quantized::Dialects::builtin().with(Mine);
/// ```
pub trait Dialect: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The weights of a model that are stored so. One that lacks a part is a weight whose formula is the error.
    ///
    /// # Errors
    ///
    /// As reading the small tensors that describe others.
    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>>;
}

/// Dialects, in the order in which they are asked.
#[derive(Clone)]
pub struct Dialects(Vec<Arc<dyn Dialect>>);

impl Dialects {
    /// All dialects of this crate.
    pub fn builtin() -> Self {
        Dialects(vec![
            Arc::new(named::Named),
            Arc::new(torchao::Torchao),
            Arc::new(comfy::Comfy),
            Arc::new(hqq::Hqq),
            Arc::new(quanto::Quanto),
            Arc::new(bitsandbytes::Bitsandbytes),
            Arc::new(gpt_oss::GptOss),
            Arc::new(gptq::Gptq),
            Arc::new(awq::Awq),
            Arc::new(compressed_tensors::CompressedTensors),
            Arc::new(modelopt::Modelopt),
            Arc::new(mlx::Mlx),
            Arc::new(scaled::Scaled),
        ])
    }

    /// The same dialects and another one, which is asked before them.
    pub fn with(mut self, dialect: impl Dialect + 'static) -> Self {
        self.0.insert(0, Arc::new(dialect));
        self
    }

    /// The dialects.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Dialect> {
        self.0.iter().map(|dialect| &**dialect)
    }
}

impl Default for Dialects {
    fn default() -> Self {
        Dialects::builtin()
    }
}

/// The values of codes of FP4, E2M1. OCP Microscaling Formats 1.0, §5.3.3.
pub(crate) const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// The values of codes that are integers from `first` on.
pub(crate) fn integers(bits: u32, first: f32) -> Vec<f32> {
    (0..1u16 << bits.min(8)).map(|code| f32::from(code) + first).collect()
}

/// The values of codes that are exponents of E8M0, in bytes. OCP Microscaling Formats 1.0, §5.4.1.
pub(crate) fn exponents() -> Result<Vec<f32>> {
    crate::find::byte_values("f8_e8m0fnu")
}

/// A number in the place of another: how many values share something along a dimension.
pub(crate) fn ratio(whole: u64, parts: u64) -> Option<u64> {
    whole.checked_div(parts).filter(|_| whole.is_multiple_of(parts))
}
