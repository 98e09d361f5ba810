//! Writes any objects as a SQUIZD file with plain, INT4 and INT2 tensors. This is an experiment.
//!
//! The layout is one on which all readings of the specification agree: blocks without gaps, layers
//! ascending, all `scale_offset` at the first table, tensors' entries in one table and sub-blocks'
//! entries in the next.

use std::io::Write;

use zt::{Attributes, Error, Result, Warning};
use zt_foreign::{Fault, FileWriter, Job, Loss, Merged, Outgoing, Sink, display};

use crate::block::Encoding;
use crate::header::{Flags, HEADER_LEN, MAGIC};
use crate::index::ENTRY_LEN as INDEX_ENTRY_LEN;
use crate::outgoing::{Ids, PACKED, Tensor};
use crate::read::{SQUIZD, Squizd};
use crate::scales::{MAGIC as TABLE_MAGIC, SUB_BLOCK};

/// The code of the warning about every written file.
const EXPERIMENTAL: &str = "experimental";

impl FileWriter for Squizd {
    /// Writes a file that our reader accepts strictly, if its layers have no gaps.
    #[expect(clippy::arithmetic_side_effects, reason = "bytes that were written")]
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        let message =
            "writing SQUIZD is experimental: no other program is known to read such files";
        let warning = Warning::new(EXPERIMENTAL, message);
        job.summary.warnings.push(warning);
        let arch_id = arch_id(job, merged.attributes)?;
        job.fields(&merged.extra, None);
        let mut tensors = Vec::with_capacity(merged.objects.len());
        let mut ids = Ids::default();
        for incoming in &merged.objects {
            let object = Outgoing::new(incoming);
            let tensor = Tensor::new(job, object, &mut ids)?;
            tensors.extend(job.kept(incoming, tensor));
        }
        job.check()?;
        // The sort is stable: tensors without a number in their names stay in the order of their data.
        tensors.sort_by_key(|tensor| tensor.place.sort_key());
        let layers: Vec<&[Tensor<'_>]> =
            tensors.chunk_by(|a, b| a.place.layer == b.place.layer).collect();
        name(job, &layers)?;
        let plan = Plan::new(&layers)?;
        sink.write_all(&plan.header(arch_id))?;
        for tensor in &tensors {
            sink.write_all(&tensor.head())?;
            let (object, byte_len) = (&tensor.object, tensor.payload_len);
            let cast = match tensor.scales {
                None => object.write_values(byte_len, sink, job.options.progress)?,
                Some(_) => object.write_role(PACKED, byte_len, sink, job.options.progress)?,
            };
            let scales = tensor.scales.map_or(0, |scales| scales.sub_blocks.max(1));
            // A scale and a zero take 8 bytes.
            job.written(object.name(), byte_len + 8 * scales, cast)?;
        }
        plan.write_tables(&tensors, sink)
    }
}

/// The architecture, the only attribute that is written. The header has the others of our reader.
fn arch_id(job: &mut Job<'_>, attributes: Option<Attributes>) -> Result<u16> {
    let mut arch_id = 0;
    for (key, value) in attributes.iter().flatten() {
        let fields = value.as_map().filter(|_| key.as_str() == Some("squizd"));
        let Some(fields) = fields else {
            let key = display(key);
            job.lose_attribute(key);
            continue;
        };
        for (key, value) in fields {
            match (key.as_str(), value.as_u64().map(u16::try_from)) {
                (Some("arch_id"), Some(Ok(id))) => arch_id = id,
                (Some("version" | "flags" | "layer_count" | "arch"), _) => {}
                _ => {
                    let key = format!("\"squizd\"/{}", display(key));
                    job.lose_attribute(key);
                }
            }
        }
    }
    Ok(arch_id)
}

/// Reports lost names. Names are not stored, so only a name that readers derive from the place stays.
fn name(job: &mut Job<'_>, layers: &[&[Tensor<'_>]]) -> Result<()> {
    for tensors in layers {
        for (place, tensor) in tensors.iter().enumerate() {
            let becomes = format!("layers.{}.{place}", tensor.place.layer);
            let name = tensor.object.name();
            if name != becomes {
                job.accept(Loss::Renamed { becomes }, Some(name));
            }
        }
    }
    Ok(())
}

/// The places of all parts of the file.
struct Plan {
    flags: u32,
    layers: Vec<Layer>,
    /// Where the last block ends and the tables begin.
    end: u64,
    /// The number of entries of tensors, and of sub-blocks.
    entries: [u32; 2],
}

struct Layer {
    idx: u32,
    offset: u64,
    byte_len: u64,
}

impl Plan {
    /// Tensors that are too large together are a loss, and so is a file without tensors.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "at most LAYERS_MAX layers, and the end only grows"
    )]
    fn new(layers: &[&[Tensor<'_>]]) -> Result<Self> {
        if layers.is_empty() {
            return Err(Fault::NothingToWrite { kind: SQUIZD }.into());
        }
        let mut plan = Plan {
            flags: 0,
            layers: Vec::with_capacity(layers.len()),
            end: (HEADER_LEN + INDEX_ENTRY_LEN * layers.len()) as u64,
            entries: [0; 2],
        };
        for tensors in layers {
            let offset = plan.end;
            for tensor in *tensors {
                let added = plan.add(tensor);
                added.ok_or_else(|| {
                    let (target, loss) = (SQUIZD, Loss::Shape);
                    Error::from(Fault::Lossy { target, loss }).with_object(tensor.object.name())
                })?;
            }
            plan.layers.push(Layer {
                idx: tensors.first().map_or(0, |tensor| tensor.place.layer),
                offset,
                byte_len: plan.end - offset,
            });
        }
        Ok(plan)
    }

    /// Adds a tensor; `None` if the offsets or counts overflow.
    fn add(&mut self, tensor: &Tensor<'_>) -> Option<()> {
        let head_len = tensor.head().len() as u64;
        let end = self.end.checked_add(head_len)?;
        self.end = end.checked_add(tensor.payload_len)?;
        if let Some(scales) = tensor.scales {
            let [tensors, sub_blocks] = self.entries;
            let added = u32::try_from(scales.sub_blocks).ok()?;
            self.entries = [tensors.checked_add(1)?, sub_blocks.checked_add(added)?];
        }
        self.flags |= match tensor.encoding {
            Encoding::Int4 => Flags::INT4.0,
            Encoding::Int2 { .. } => Flags::INT2.0,
            _ => 0,
        };
        Some(())
    }

    fn header(&self, arch_id: u16) -> Vec<u8> {
        #[expect(clippy::cast_possible_truncation, reason = "at most LAYERS_MAX")]
        let layer_count = self.layers.len() as u16;
        let [tensors, _] = self.entries;
        let scale_offset = if tensors > 0 { self.end } else { 0 };
        let mut out = MAGIC.to_vec();
        out.extend(1u16.to_le_bytes());
        out.extend(self.flags.to_le_bytes());
        out.extend(layer_count.to_le_bytes());
        out.extend(arch_id.to_le_bytes());
        out.resize(HEADER_LEN, 0);
        for layer in &self.layers {
            out.extend(layer.idx.to_le_bytes());
            out.extend(layer.offset.to_le_bytes());
            out.extend(layer.byte_len.to_le_bytes());
            out.extend(scale_offset.to_le_bytes());
            out.extend([0; 4]);
        }
        out
    }

    /// Writes the table of tensors, and the table of sub-blocks if there are any.
    fn write_tables(&self, tensors: &[Tensor<'_>], sink: &mut Sink<'_>) -> Result<()> {
        let [tensor_count, sub_block_count] = self.entries;
        if tensor_count > 0 {
            sink.write_all(&table_head(tensor_count))?;
        }
        let quantized = tensors.iter();
        let quantized = quantized.filter_map(|tensor| Some((tensor, tensor.scales?)));
        for (tensor, scales) in quantized.clone() {
            let pair = match scales.pair {
                Some(pair) => pair.map(f32::to_le_bytes),
                None => tensor.pairs()?.next()?,
            };
            write_entry(sink, scales.tensor_id, pair)?;
        }
        if sub_block_count > 0 {
            sink.write_all(&table_head(sub_block_count))?;
        }
        for (tensor, scales) in quantized.filter(|(_, scales)| scales.sub_blocks > 0) {
            let mut pairs = tensor.pairs()?;
            for _ in 0..scales.sub_blocks {
                write_entry(sink, scales.tensor_id | SUB_BLOCK, pairs.next()?)?;
            }
        }
        Ok(())
    }
}

fn table_head(entries: u32) -> Vec<u8> {
    [TABLE_MAGIC, entries.to_le_bytes()].concat()
}

fn write_entry(sink: &mut Sink<'_>, tensor_id: u64, pair: [[u8; 4]; 2]) -> Result<()> {
    sink.write_all(&tensor_id.to_le_bytes())?;
    Ok(sink.write_all(pair.as_flattened())?)
}
