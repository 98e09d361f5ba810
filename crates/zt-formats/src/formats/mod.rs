//! Room `formats`: the formats of the specification, and ours.
//!
//! | module | holds |
//! | --- | --- |
//! | `dense` | `dense` |
//! | `sparse_csr`, `sparse_coo` | the two sparse formats |
//! | `index`, `scatter`, `sparse_part` | their indices, their dense value, their parts |
//! | `quantized_group`, `quantized_4bit` | the two quantized formats |
//! | `quantization`, `quantize`, `number` | their attributes, the way there from f32, scales and zero-points |
//! | `planes`, `plane_codec` | `zt.planes/1` and `zt.planes/2`, our own |
//! | `huffman`, `huffman_code` | the coding of a plane of `zt.planes/2` |
//! | `delta`, `delta_codec`, `delta_bits` | `zt.delta/1`, our own: what changed in an object |
//! | `quantized_weight` | `zt.quantized/1`, our own: the tensors of a quantized weight |
//! | `packed`, `packed_type` | `zt.<type>/1`, our own, for types of less than a byte |
//!
//! It knows the room `base`. A format must not know another one, except by its view.

mod delta;
mod delta_bits;
mod delta_codec;
mod dense;
mod huffman;
mod huffman_code;
mod index;
mod number;
mod packed;
mod packed_type;
mod plane_codec;
mod planes;
mod quantization;
mod quantize;
mod quantized_4bit;
mod quantized_group;
mod quantized_weight;
mod scatter;
mod sparse_coo;
mod sparse_csr;
mod sparse_part;

use std::sync::LazyLock;

use crate::base::Registry;

pub use delta::{Delta, DeltaFormat};
pub use delta_codec::DeltaCodec;
pub use dense::DenseFormat;
pub use huffman::{HuffmanDecoder, HuffmanEncoder};
pub use index::indices;
pub use packed::{Packed, PackedFormat};
pub use packed_type::PackedType;
pub use plane_codec::PlaneCodec;
pub use planes::{PlaneCoding, Planes, PlanesFormat};
pub use quantization::{Packing, Quantization, ZeroKind};
pub use quantized_4bit::{Quantized4Bit, Quantized4BitFormat};
pub use quantized_group::{Quantized, QuantizedGroup, QuantizedGroupFormat};
pub use quantized_weight::{QuantizedWeightFormat, StoredPart};
pub use sparse_coo::{Coo, SparseCooFormat};
pub use sparse_csr::{Csr, SparseCsrFormat};

impl Registry {
    /// Everything in the specification: its formats (§9), `quantized_4bit` of 1.0 and its logical
    /// types (§7.2); and our own: `zt.planes/1`, `zt.planes/2`, `zt.delta/1`, `zt.quantized/1`, and the formats of packed values.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Registry> = LazyLock::new(|| {
            let types = Registry::specified_types().clone();
            let types = types
                .with_format(DenseFormat)
                .with_format(SparseCsrFormat)
                .with_format(SparseCooFormat)
                .with_format(QuantizedGroupFormat)
                .with_format(Quantized4BitFormat)
                .with_format(PlanesFormat(PlaneCoding::Plain))
                .with_format(PlanesFormat(PlaneCoding::Huffman))
                .with_format(DeltaFormat)
                .with_format(QuantizedWeightFormat);
            let packed = PackedType::ALL.map(PackedFormat).into_iter();
            packed.fold(types, Registry::with_format)
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
