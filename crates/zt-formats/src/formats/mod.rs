//! Room `formats`: the formats of the specification, and ours.
//!
//! | module | holds |
//! | --- | --- |
//! | `dense` | `dense` |
//! | `sparse_csr`, `sparse_coo` | the two sparse formats |
//! | `index`, `scatter`, `sparse_part` | their indices, their dense value, their parts |
//! | `quantized_group`, `quantized_4bit` | the two quantized formats |
//! | `quantization`, `quantize`, `number` | their attributes, the way there from f32, scales and zero-points |
//! | `planes`, `plane_codec` | `zt.planes/1`, our own |
//!
//! It knows the room `base`. A format must not know another one, except by its view.

use std::sync::LazyLock;

use crate::base::registry::Registry;

pub(crate) mod dense;
pub(crate) mod index;
mod number;
pub(crate) mod plane_codec;
pub(crate) mod planes;
pub(crate) mod quantization;
mod quantize;
pub(crate) mod quantized_4bit;
pub(crate) mod quantized_group;
mod scatter;
pub(crate) mod sparse_coo;
pub(crate) mod sparse_csr;
mod sparse_part;

impl Registry {
    /// Everything in the specification: its formats (§9), `quantized_4bit` of 1.0 and its logical
    /// types (§7.2); and our own `zt.planes/1`.
    #[must_use]
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Registry> = LazyLock::new(|| {
            let types = Registry::specified_types().clone();
            types
                .with_format(dense::DenseFormat)
                .with_format(sparse_csr::SparseCsrFormat)
                .with_format(sparse_coo::SparseCooFormat)
                .with_format(quantized_group::QuantizedGroupFormat)
                .with_format(quantized_4bit::Quantized4BitFormat)
                .with_format(planes::PlanesFormat)
        });
        BUILTIN.clone()
    }
}

/// [`Registry::builtin`].
impl Default for Registry {
    fn default() -> Self {
        Registry::builtin()
    }
}
