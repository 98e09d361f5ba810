//! Quantized tensors: integers with scales and zero-points.

use std::sync::Arc;

use zt::foreign::SourceId;
use zt::formats::{Packing, Quantization};
use zt::{Blob, Component, DType, Memory, Result, Source, Span};
use zt_foreign::strided::{self, Strided};

use crate::arguments::{Arguments, wrong};
use crate::assemble::{Assembled, Assembler};
use crate::element::Meaning;
use crate::fault::{Done, TensorFault};
use crate::global::{Global, Scheme};
use crate::pickle::{Node, Value};
use crate::tensor::{self, Known, Layout, check_shape, view};
use crate::view::{View, product};

/// The scales and zero-points of a quantized tensor.
#[derive(Debug)]
pub(super) enum Scale {
    PerTensor {
        scale: f64,
        zero_point: i64,
    },
    PerChannel {
        /// The sizes outside the channels, and the elements of a channel inside them.
        outer: Vec<u64>,
        channels: u64,
        inner_len: u64,
        scales: Numbers,
        zero_points: Numbers,
    },
}

/// One number per channel.
#[derive(Debug)]
pub(super) enum Numbers {
    View(Box<View>),
    /// torch wrote lists before version 1.4: little-endian numbers.
    Listed(DType, Vec<u8>),
}

/// `(storage, offset, size, stride, (scheme, ...), ...)`.
pub(super) fn layout(arguments: &Arguments<'_, '_>, known: &mut Known) -> Done<Layout> {
    let heap = arguments.heap;
    let integers = tensor::strided(arguments, None, known)?;
    if !matches!(integers.element.meaning, Meaning::Quantized { .. }) {
        let found = "a storage of elements that are not quantized";
        return Err(TensorFault::Argument { name: "storage", found });
    }
    let parameters = Arguments::new(heap, arguments.value(4, "quantizer_params")?, "scheme")?;
    let scheme = parameters.value(0, "scheme")?;
    let Value::Global(Global::QuantizationScheme(scheme)) = scheme else {
        return Err(wrong(heap, "scheme", scheme));
    };
    let scale = match scheme {
        Scheme::PerTensor => Scale::PerTensor {
            scale: parameters.float(1, "scale")?,
            zero_point: parameters.int(2, "zero_point")?,
        },
        Scheme::PerChannel | Scheme::PerChannelFloat => {
            let axis = parameters.unsigned(3, "axis")?;
            let axis = usize::try_from(axis).map_err(|_| TensorFault::Overflow)?;
            let (Some(outer), Some([channels, inner @ ..])) =
                (integers.shape.get(..axis), integers.shape.get(axis..))
            else {
                let (what, found) = ("axis", axis as u64);
                let expected = integers.shape.len() as u64;
                return Err(TensorFault::Parts { what, expected, found });
            };
            Scale::PerChannel {
                outer: outer.to_vec(),
                channels: *channels,
                inner_len: product(inner).ok_or(TensorFault::Overflow)?,
                scales: numbers(&parameters, 1, "scales", *channels)?,
                zero_points: numbers(&parameters, 2, "zero_points", *channels)?,
            }
        }
        Scheme::Symmetric => {
            let name = "symmetric quantization".to_owned();
            return Err(TensorFault::Layout { name });
        }
    };
    Ok(Layout::Quantized { integers, scale })
}

/// One number per channel.
fn numbers(
    arguments: &Arguments<'_, '_>,
    at: usize,
    name: &'static str,
    channels: u64,
) -> Done<Numbers> {
    let (heap, value) = (arguments.heap, arguments.value(at, name)?);
    let Some(Node::List(items)) = heap.node(value) else {
        let view = view(arguments, at, name)?;
        check_shape(name, &[channels], &view)?;
        return Ok(Numbers::View(Box::new(view)));
    };
    let found = items.len() as u64;
    if found != channels {
        return Err(TensorFault::Parts { what: name, expected: channels, found });
    }
    let items = Arguments::of_items(heap, items);
    let is_integer = items.int(0, name).is_ok();
    let mut bytes = Vec::new();
    for at in 0..items.len() {
        bytes.extend(if is_integer {
            items.int(at, name)?.to_le_bytes()
        } else {
            items.float(at, name)?.to_le_bytes()
        });
    }
    let dtype = if is_integer { DType::I64 } else { DType::F64 };
    Ok(Numbers::Listed(dtype, bytes))
}

impl Assembler<'_> {
    /// An object of the format `quantized_group`. A channel of torch is one group or several.
    pub(super) fn quantized(&mut self, integers: View, scale: Scale) -> Result<Assembled> {
        let element = integers.element;
        let Meaning::Quantized { bits, per_word, word, is_signed } = element.meaning else {
            return Err(TensorFault::Element { name: element.name }.into());
        };
        let (shape, count) = (integers.shape.clone(), integers.count);
        let group_size = match &scale {
            Scale::PerTensor { .. } => count,
            Scale::PerChannel { inner_len, .. } => *inner_len,
        };
        let packing = Packing { per_word, dtype: word };
        let mut quantization = Quantization::new(bits, group_size.max(1), packing);
        quantization.signed = is_signed;

        let (scales, zeros) = match scale {
            Scale::PerTensor { scale, zero_point } => {
                let groups = usize::from(count > 0);
                // torch stores the scale as f64, and computes with f32.
                #[expect(clippy::cast_possible_truncation, reason = "rounded, as torch does")]
                let scale = (scale as f32).to_le_bytes().repeat(groups);
                let zero = zero_point.to_le_bytes().repeat(groups);
                (self.numbers(DType::F32, scale)?, self.numbers(DType::I64, zero)?)
            }
            Scale::PerChannel { outer, channels, scales, zero_points, .. } => {
                // An empty group has no scale.
                let channels = if count == 0 { 0 } else { channels };
                (
                    self.channels(scales, &outer, channels)?,
                    self.channels(zero_points, &outer, channels)?,
                )
            }
        };
        let (id, blob) = self.place(integers)?;
        let mut packed = Component::new(word, blob);
        packed.byte_order = self.order_of(word);
        let mut parts = Assembled::new(shape, "quantized_group");
        for (key, value) in &quantization.to_attributes() {
            parts.attribute(key.clone(), value.clone());
        }
        parts.push("packed_weight", (packed, id));
        parts.push("scales", scales);
        parts.push("zeros", zeros);
        Ok(parts)
    }

    fn numbers(&mut self, dtype: DType, bytes: Vec<u8>) -> Result<(Component, SourceId)> {
        let span = Span::new(0, bytes.len() as u64).ok_or(TensorFault::Overflow)?;
        let id = self.builder.derived(Memory::new(bytes));
        Ok((Component::new(dtype, Blob::raw(span)), id))
    }

    /// One number for every group: the numbers of the channels, repeated for every index of the
    /// outer dimensions.
    fn channels(
        &mut self,
        numbers: Numbers,
        outer: &[u64],
        channels: u64,
    ) -> Result<(Component, SourceId)> {
        match numbers {
            Numbers::View(view) => self.component(view.repeated(outer, channels)?),
            Numbers::Listed(dtype, bytes) => self.repeated(dtype, bytes, outer, channels),
        }
    }

    fn repeated(
        &mut self,
        dtype: DType,
        bytes: Vec<u8>,
        outer: &[u64],
        channels: u64,
    ) -> Result<(Component, SourceId)> {
        let width = dtype.byte_len() as u64;
        let base: Arc<dyn Source> = Arc::new(Memory::new(bytes));
        let mut shape = outer.to_vec();
        shape.push(channels);
        let mut strides = vec![0; outer.len()];
        strides.push(width);
        let view = strided::View::new(0, width, &shape, &strides).ok_or(TensorFault::Overflow)?;
        let span = Span::new(0, view.byte_len()).ok_or(TensorFault::Overflow)?;
        let id = self.builder.derived(Strided::new(base, view, &self.bands)?);
        Ok((Component::new(dtype, Blob::raw(span)), id))
    }
}
