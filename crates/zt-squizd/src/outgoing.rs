//! An object that becomes a tensor block.

use std::collections::HashMap;
use std::io::{BufReader, Read as _};

use zt::formats::{Quantization, ZeroKind, dense_byte_len, element_count};
use zt::{ComponentReader, DType, Object, Result, Value};
use zt_foreign::{Job, Loss, Outgoing};

use crate::attributes::{SUB_BLOCK_LEN, TENSOR_ID, TENSOR_SCALE, TENSOR_ZERO};
use crate::block::{Encoding, PLAIN, RANK_MAX};
use crate::names::{Place, name_within, tensor_id};
use crate::scales::SUB_BLOCK;

/// The role of quantized values.
pub(super) const PACKED: &str = "packed_weight";

/// A tensor as a block and its entries in the tables.
pub(super) struct Tensor<'i> {
    pub(super) object: Outgoing<'i>,
    pub(super) place: Place,
    pub(super) encoding: Encoding,
    dims: Vec<u32>,
    /// Bytes of its values.
    pub(super) payload_len: u64,
    /// `None` unless it is quantized.
    pub(super) scales: Option<Scales>,
}

/// The entries of a quantized tensor in the tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scales {
    pub(super) tensor_id: u64,
    /// The pair of the whole tensor; `None` if it is the pair of the only group.
    pub(super) pair: Option<[f32; 2]>,
    /// The number of groups with entries of their own.
    pub(super) sub_blocks: u64,
}

impl<'i> Tensor<'i> {
    /// The object as a tensor; `None` if SQUIZD cannot represent it and losses are allowed. `ids`
    /// are the ids of other tensors: sub-blocks are found by them.
    pub(super) fn new(
        job: &mut Job<'_>,
        mut object: Outgoing<'i>,
        ids: &mut Ids,
    ) -> Result<Option<Self>> {
        let name = object.name();
        let source = object.object();
        let (rank, limit) = (source.shape.len(), RANK_MAX as usize);
        if rank > limit {
            let loss = Loss::Rank { rank, limit };
            job.accept(loss, Some(name));
            return Ok(None);
        }
        let dims = source.shape.iter().map(|dim| u32::try_from(*dim));
        let Ok(dims) = dims.collect::<Result<Vec<u32>, _>>() else {
            job.accept(Loss::Shape, Some(name));
            return Ok(None);
        };
        let place = Place::of(name);
        if !job.options.dense
            && let Some((encoding, scales)) = quantized(source)
        {
            let packed = source.component(PACKED);
            let Some(payload_len) = packed.and_then(|data| data.blob.decoded_len) else {
                let role = PACKED.to_owned();
                job.accept(Loss::Component { role }, Some(name));
                return Ok(None);
            };
            let scales = identified(job, &object, place, scales, ids)?;
            return Ok(Some(Tensor {
                object,
                place,
                encoding,
                dims,
                payload_len,
                scales: Some(scales),
            }));
        }
        if !job.make_plain(&mut object) {
            return Ok(None);
        }
        let Some(dtype) = job.typed(&object, plain_type) else {
            return Ok(None);
        };
        job.rest(&object, &[]);
        let Some(payload_len) = dense_byte_len(&source.shape, dtype.byte_len() as u64) else {
            job.accept(Loss::Shape, Some(name));
            return Ok(None);
        };
        Ok(Some(Tensor {
            object,
            place,
            encoding: Encoding::Plain(dtype),
            dims,
            payload_len,
            scales: None,
        }))
    }

    pub(super) fn head(&self) -> Vec<u8> {
        #[expect(clippy::cast_possible_truncation, reason = "at most RANK_MAX")]
        let rank = self.dims.len() as u32;
        let (magic, before, after) = match self.encoding {
            Encoding::Plain(dtype) => (b"NPCL", vec![plain_code(dtype), rank], None),
            Encoding::Int2 { sub_block_len } => (b"INT2", vec![], Some(sub_block_len)),
            _ => (b"INT4", vec![], None),
        };
        let fields = before.into_iter().chain(self.dims.iter().copied());
        let fields = fields.chain(after);
        let fields = fields.flat_map(u32::to_le_bytes);
        magic.iter().copied().chain(fields).collect()
    }

    pub(super) fn pairs(&self) -> Result<PairReader<'i>> {
        let tensor = &self.object.tensor;
        let zeros = self.object.object().component("zeros");
        let zeros = zeros.map(|_| tensor.reader("zeros")).transpose()?;
        let numbers = |reader| BufReader::with_capacity(64 << 10, reader);
        // Adding -0 keeps a value of -0.
        let no_zero = match quantization(self.object.object()).map(|q| q.zero_kind) {
            Some(ZeroKind::Additive) => 0.0,
            _ => -0.0,
        };
        Ok(PairReader {
            scales: numbers(tensor.reader("scales")?),
            zeros: zeros.map(numbers),
            no_zero,
        })
    }
}

fn plain_code(dtype: DType) -> u32 {
    let mut codes = (0..).zip(PLAIN);
    codes.find(|row| row.1 == dtype).map_or(0, |row| row.0)
}

fn plain_type(dtype: DType, logical_type: Option<&str>) -> Option<DType> {
    let is_plain = logical_type.is_none() && PLAIN.contains(&dtype);
    is_plain.then_some(dtype)
}

fn quantization(object: &Object) -> Option<Quantization> {
    Quantization::from_attributes(object.attributes(), &object.shape).ok()
}

/// The encoding and scales of a block for the object, if there is one: the object is a matrix with
/// the bytes of INT4 or INT2, f32 scales, and the same arithmetic.
fn quantized(object: &Object) -> Option<(Encoding, Scales)> {
    let is_group = object.format == "quantized_group" && object.shape.len() == 2;
    let quantization = quantization(object).filter(|_| is_group)?;
    let count = element_count(&object.shape)?;
    let zeros = object.component("zeros");
    let numbers = [object.component("scales"), zeros.or(object.component("scales"))];
    let are_singles = numbers.into_iter().all(|numbers| {
        numbers.is_some_and(|numbers| {
            numbers.dtype == Some(DType::F32) && numbers.logical_type.is_none()
        })
    });
    let is_sum = zeros.is_none() || quantization.zero_kind == ZeroKind::Additive;
    if !are_singles || !is_sum || quantization.packing.dtype.byte_len() != 1 {
        return None;
    }
    let attributes = object.attributes();
    let pair = [TENSOR_SCALE, TENSOR_ZERO].map(|key| attributes.get(key).and_then(single));
    let pair = match pair {
        [Some(scale), Some(zero)] => Some([scale, zero]),
        _ => None,
    };
    let groups = quantization.group_count(count);
    let layout = (quantization.bits, quantization.packing.per_word, quantization.signed);
    let (encoding, is_whole) = match layout {
        // Only the number of entries gives the length of a group.
        (4, 2, true) if groups <= 1 => (Encoding::Int4, pair.is_none()),
        (4, 2, true) if count.is_multiple_of(quantization.group_size) => (Encoding::Int4, false),
        (2, 4, false) => {
            let unused = attributes.get(SUB_BLOCK_LEN).and_then(Value::as_u64);
            let unused = unused.filter(|len| *len > 0 && groups <= 1 && pair.is_none());
            let sub_block_len = u32::try_from(unused.unwrap_or(quantization.group_size)).ok()?;
            (Encoding::Int2 { sub_block_len }, unused.is_some())
        }
        _ => return None,
    };
    let scales = Scales {
        tensor_id: 0,
        pair: if is_whole && groups == 1 {
            None
        } else {
            // This default has no effect, in either reading of the specification.
            Some(pair.unwrap_or([1.0, 0.0]))
        },
        sub_blocks: if is_whole { 0 } else { groups },
    };
    Some((encoding, scales))
}

/// The used ids. Each leads to the id where the search for a free one goes on.
#[derive(Default)]
pub(super) struct Ids(HashMap<u64, u64>);

impl Ids {
    fn is_free(&self, id: u64) -> bool {
        !self.0.contains_key(&id)
    }

    /// Takes the first free id from `wished` on. All names of a file may hash to one id, so each
    /// search shortens the next one.
    fn take(&mut self, wished: u64) -> u64 {
        let mut passed = Vec::new();
        let mut id = wished;
        while let Some(next) = self.0.get(&id) {
            passed.push(id);
            id = *next;
        }
        // Begins again after the last id.
        let after = id.wrapping_add(1) & !SUB_BLOCK;
        for taken in passed.into_iter().chain([id]) {
            self.0.insert(taken, after);
        }
        id
    }
}

/// The scales with an unused id. Other attributes of the object are a loss.
fn identified(
    job: &mut Job<'_>,
    object: &Outgoing<'_>,
    place: Place,
    mut scales: Scales,
    ids: &mut Ids,
) -> Result<Scales> {
    let (name, source) = (object.name(), object.object());
    let mut written = vec!["bits", "group_size", "packing", "signed", "zero_kind"];
    let attributes = source.attributes();
    let id = attributes.get(TENSOR_ID).and_then(Value::as_u64);
    let id = id.filter(|id| id >> 63 == 0 && ids.is_free(*id));
    if id.is_some() {
        written.push(TENSOR_ID);
    }
    let id = id.unwrap_or_else(|| tensor_id(place.layer, name_within(place.layer, name)));
    scales.tensor_id = ids.take(id);
    let is_kept = |key: &str, value: f32| {
        attributes
            .get(key)
            .and_then(single)
            .is_some_and(|single| single.to_bits() == value.to_bits())
    };
    if let Some([scale, zero]) = scales.pair
        && is_kept(TENSOR_SCALE, scale)
        && is_kept(TENSOR_ZERO, zero)
    {
        written.extend([TENSOR_SCALE, TENSOR_ZERO]);
    }
    if scales.sub_blocks == 0 {
        written.push(SUB_BLOCK_LEN);
    }
    job.rest(object, &written);
    Ok(scales)
}

/// A number that f32 represents exactly.
#[expect(clippy::cast_possible_truncation, reason = "compared below")]
fn single(value: &Value) -> Option<f32> {
    let wide = value.as_f64()?;
    let single = wide as f32;
    (f64::from(single).to_bits() == wide.to_bits()).then_some(single)
}

/// Reads the pairs of a tensor's groups one after the other, in bounded memory.
pub(super) struct PairReader<'i> {
    scales: BufReader<ComponentReader<'i>>,
    zeros: Option<BufReader<ComponentReader<'i>>>,
    no_zero: f32,
}

impl PairReader<'_> {
    /// The next scale and zero, as bytes of the tables.
    pub(super) fn next(&mut self) -> Result<[[u8; 4]; 2]> {
        let (mut scale, mut zero) = ([0; 4], self.no_zero.to_le_bytes());
        self.scales.read_exact(&mut scale)?;
        if let Some(zeros) = &mut self.zeros {
            zeros.read_exact(&mut zero)?;
        }
        Ok([scale, zero])
    }
}
