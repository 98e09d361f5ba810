//! An object on its way to a tensor block.

use std::collections::HashMap;

use zt::formats::{Quantization, ZeroKind, dense_byte_len, element_count};
use zt::{ComponentReader, DType, Object, Result, Value};
use zt_foreign::{Job, Loss, Outgoing};

use crate::block::{Encoding, RANK_MAX};
use crate::names::{Place, name_within, tensor_id};
use crate::scales::SUB_BLOCK;
use crate::{SUB_BLOCK_LEN, TENSOR_ID, TENSOR_SCALE, TENSOR_ZERO};

/// The role of quantized values.
pub(super) const PACKED: &str = "packed_weight";

/// A tensor as a block and its entries in the tables.
pub(super) struct Tensor<'i> {
    pub(super) object: Outgoing<'i>,
    pub(super) place: Place,
    pub(super) encoding: Encoding,
    /// Bytes of its values.
    pub(super) payload_len: u64,
    /// Where it is quantized.
    pub(super) scales: Option<Scales>,
}

/// What the tables are to say of a quantized tensor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scales {
    pub(super) tensor_id: u64,
    /// The pair of the whole tensor; `None` where it is that of the only group.
    pub(super) pair: Option<[f32; 2]>,
    /// Groups with entries of their own.
    pub(super) sub_blocks: u64,
}

impl<'i> Tensor<'i> {
    /// The object as a tensor; `None` where nothing of it can be said and that is allowed. `ids`
    /// are those that others have: sub-blocks are found by them.
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
            job.accept(loss, Some(name))?;
            return Ok(None);
        }
        if source.shape.iter().any(|dim| u32::try_from(*dim).is_err()) {
            job.accept(Loss::Shape, Some(name))?;
            return Ok(None);
        }
        let place = Place::of(name);
        if !job.options.dense
            && let Some((encoding, scales)) = quantized(source)
        {
            let scales = identified(job, &object, place, scales, ids)?;
            let packed = source.component(PACKED);
            return Ok(Some(Tensor {
                object,
                place,
                encoding,
                payload_len: packed.and_then(|data| data.blob.decoded_len).unwrap_or(0),
                scales: Some(scales),
            }));
        }
        if !job.make_plain(&mut object)? {
            return Ok(None);
        }
        let Some(dtype) = job.typed(&object, plain_type)? else {
            return Ok(None);
        };
        job.rest(&object, &[])?;
        let Some(payload_len) = dense_byte_len(&source.shape, dtype.byte_len() as u64) else {
            job.accept(Loss::Shape, Some(name))?;
            return Ok(None);
        };
        Ok(Some(Tensor {
            object,
            place,
            encoding: Encoding::Plain(dtype),
            payload_len,
            scales: None,
        }))
    }

    /// The fields of the block.
    pub(super) fn head(&self) -> Vec<u8> {
        let dims = self.object.object().shape.iter();
        // Checked when the tensor was made.
        let dims: Vec<u32> = dims.filter_map(|dim| u32::try_from(*dim).ok()).collect();
        let rank = u32::try_from(dims.len()).unwrap_or(RANK_MAX);
        let (magic, before, after) = match self.encoding {
            Encoding::Plain(dtype) => (b"NPCL", vec![plain_code(dtype), rank], None),
            Encoding::Int2 { sub_block_len } => (b"INT2", vec![], Some(sub_block_len)),
            _ => (b"INT4", vec![], None),
        };
        let fields = before.into_iter().chain(dims).chain(after);
        let fields = fields.flat_map(u32::to_le_bytes);
        magic.iter().copied().chain(fields).collect()
    }

    /// The scales and zeros in turns, from the first group on.
    pub(super) fn pairs(&self) -> Result<PairReader<'i>> {
        let tensor = &self.object.tensor;
        let zeros = self.object.object().component("zeros");
        let zeros = zeros.map(|_| tensor.reader("zeros")).transpose()?;
        // What is added to nothing is -0, so that a value of -0 stays one.
        let no_zero = match quantization(self.object.object()).map(|q| q.zero_kind) {
            Some(ZeroKind::Additive) => 0.0,
            _ => -0.0,
        };
        Ok(PairReader {
            scales: Numbers::new(tensor.reader("scales")?),
            zeros: zeros.map(Numbers::new),
            no_zero,
        })
    }
}

/// The code of a plain block's dtype.
fn plain_code(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => 1,
        DType::BF16 => 2,
        _ => 0,
    }
}

fn plain_type(dtype: DType, logical_type: Option<&str>) -> Option<DType> {
    let is_plain = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
    Some(dtype).filter(|_| is_plain && logical_type.is_none())
}

fn quantization(object: &Object) -> Option<Quantization> {
    Quantization::from_attributes(object.attributes(), &object.shape).ok()
}

/// How a block says the object, if one does: a matrix of the bytes that INT4 and INT2 have, with
/// scales that the tables can hold and values that come out of the same arithmetic.
fn quantized(object: &Object) -> Option<(Encoding, Scales)> {
    let is_group = object.format == "quantized_group" && object.shape.len() == 2;
    let quantization = quantization(object).filter(|_| is_group)?;
    let count = element_count(&object.shape)?;
    let zeros = object.component("zeros");
    let numbers = [
        object.component("scales"),
        zeros.or(object.component("scales")),
    ];
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
    let layout = (
        quantization.bits,
        quantization.packing.per_word,
        quantization.signed,
    );
    let (encoding, is_whole) = match layout {
        // The number of entries is all that says how long groups are.
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
        pair: match is_whole && groups == 1 {
            true => None,
            // With these, replacing and scaling by the tensor's pair are the same.
            false => Some(pair.unwrap_or([1.0, 0.0])),
        },
        sub_blocks: if is_whole { 0 } else { groups },
    };
    Some((encoding, scales))
}

/// The ids that tensors have, each with one where to look for a free one.
#[derive(Default)]
pub(super) struct Ids(HashMap<u64, u64>);

impl Ids {
    fn is_free(&self, id: u64) -> bool {
        !self.0.contains_key(&id)
    }

    /// Takes the first free id from `wished` on. All names of a file may hash to one: whoever
    /// passes taken ids leaves word at each where the way ended.
    fn take(&mut self, wished: u64) -> u64 {
        let mut passed = Vec::new();
        let mut id = wished;
        while let Some(next) = self.0.get(&id) {
            passed.push(id);
            id = *next;
        }
        let after = id.wrapping_add(1) & !SUB_BLOCK;
        for taken in passed.into_iter().chain([id]) {
            self.0.insert(taken, after);
        }
        id
    }
}

/// The scales with an id that no other tensor has; what else the object says is a loss.
fn identified(
    job: &mut Job<'_>,
    object: &Outgoing<'_>,
    place: Place,
    mut scales: Scales,
    ids: &mut Ids,
) -> Result<Scales> {
    let (name, source) = (object.name(), object.object());
    let mut said = vec!["bits", "group_size", "packing", "signed", "zero_kind"];
    let attributes = source.attributes();
    let id = attributes.get(TENSOR_ID).and_then(Value::as_u64);
    let id = id.filter(|id| id >> 63 == 0 && ids.is_free(*id));
    if id.is_some() {
        said.push(TENSOR_ID);
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
        said.extend([TENSOR_SCALE, TENSOR_ZERO]);
    }
    if scales.sub_blocks == 0 {
        said.push(SUB_BLOCK_LEN);
    }
    job.rest(object, &said)?;
    Ok(scales)
}

/// A number that f32 holds.
#[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
fn single(value: &Value) -> Option<f32> {
    let wide = value.as_f64()?;
    let single = wide as f32;
    (f64::from(single).to_bits() == wide.to_bits()).then_some(single)
}

/// Gives the pairs of a tensor's groups one after the other, in bounded memory.
pub(super) struct PairReader<'i> {
    scales: Numbers<'i>,
    zeros: Option<Numbers<'i>>,
    no_zero: f32,
}

impl PairReader<'_> {
    /// The next scale and zero, as the tables have them.
    pub(super) fn next(&mut self) -> Result<[[u8; 4]; 2]> {
        let zero = match &mut self.zeros {
            Some(zeros) => zeros.next()?,
            None => self.no_zero.to_le_bytes(),
        };
        Ok([self.scales.next()?, zero])
    }
}

/// The numbers of a component.
struct Numbers<'i> {
    reader: ComponentReader<'i>,
    piece: Vec<u8>,
    len: usize,
    at: usize,
}

impl<'i> Numbers<'i> {
    fn new(reader: ComponentReader<'i>) -> Self {
        const PIECE: usize = 64 << 10;
        Numbers {
            reader,
            piece: vec![0; PIECE],
            len: 0,
            at: 0,
        }
    }

    fn next(&mut self) -> Result<[u8; 4]> {
        if self.at >= self.len {
            self.len = self.reader.read(&mut self.piece)?;
            self.at = 0;
        }
        let number = self.piece.get(self.at..self.len);
        self.at = self.at.saturating_add(4);
        // The length was checked with the object: there is a number for each group.
        let number = number.and_then(|rest| rest.first_chunk());
        Ok(number.copied().unwrap_or_default())
    }
}
