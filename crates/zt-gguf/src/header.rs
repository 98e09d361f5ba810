//! The header of a GGUF file, checked against every rule.

use zt::{ByteOrder, Error, Result, Source, Span};
use zt_foreign::repeated;

use crate::cursor::Cursor;
use crate::metadata::Metadata;
use crate::tensor_type::TensorType;
use crate::value_type::VALUES_MAX;
use crate::violation::Violation;

pub(super) const MAGIC: [u8; 4] = *b"GGUF";

/// The most dimensions of a tensor.
pub(super) const RANK_MAX: u32 = 4;

/// The most tensors of a file. Each takes some hundred bytes of memory, and as little as 24 of the file.
const TENSORS_MAX: u64 = 1 << 20;

/// A checked header.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) order: ByteOrder,
    pub(super) metadata: Metadata,
    /// In the order of their data. Names are unique.
    pub(super) tensors: Vec<Tensor>,
}

/// One tensor. Its format checks later whether its bytes exist and match its shape.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) tensor_type: TensorType,
    /// Row-major.
    pub(super) shape: Vec<u64>,
    /// The shape in the header, if the pairs record another.
    pub(super) stored: Option<Vec<u64>>,
    /// Why a recorded shape is wrong.
    pub(super) fault: Option<Error>,
    /// Why a recorded shape is not used.
    pub(super) remark: Option<Error>,
    /// Absolute.
    pub(super) span: Span,
}

/// A tensor as the header describes it.
struct Info {
    name: String,
    tensor_type: TensorType,
    shape: Vec<u64>,
    /// From the first byte of the data.
    offset: u64,
}

impl Header {
    /// Reads and checks the header of the file in `source`.
    pub(super) fn read(source: &dyn Source) -> Result<Self> {
        let mut cursor = Cursor::new(source);
        let magic = cursor.take(4, "the magic")?;
        if magic != MAGIC {
            let found = magic.to_vec();
            return Err(Error::from(Violation::Magic { found }).with_offset(0));
        }
        let (version, order) = version(&mut cursor)?;
        cursor.set_layout(order, version == 1);
        // The fewest bytes of a tensor and of a pair: with an empty name or key.
        let (least_tensor, least_pair) = if version == 1 { (20, 9) } else { (24, 13) };
        let tensors = cursor.count("tensors", least_tensor, TENSORS_MAX)?;
        let pairs = cursor.count("pairs", least_pair, VALUES_MAX)?;
        let metadata = Metadata::read(&mut cursor, pairs)?;
        let alignment = metadata.alignment()?;
        cursor.check_count("tensors", tensors, least_tensor, TENSORS_MAX)?;
        let infos = (0..tensors).map(|_| info(&mut cursor));
        let infos = infos.collect::<Result<Vec<Info>>>()?;
        let mut names: Vec<&str> = infos.iter().map(|info| info.name.as_str()).collect();
        if let Some(name) = repeated(&mut names) {
            return Err(Error::from(Violation::RepeatedName).with_object(name));
        }
        let data = cursor.offset().checked_next_multiple_of(alignment);
        let data = data.ok_or(Violation::Overflow)?;
        Ok(Header { order, metadata, tensors: place(infos, data, alignment, source.byte_len())? })
    }
}

/// The version, and the byte order in which it is valid.
fn version(cursor: &mut Cursor<'_>) -> Result<(u32, ByteOrder)> {
    let found = cursor.u32("the version")?;
    let orders = [(found, ByteOrder::Little), (found.swap_bytes(), ByteOrder::Big)];
    let known = orders.into_iter().find(|(version, _)| (1..=3).contains(version));
    known.ok_or_else(|| Error::from(Violation::Version { found }).with_offset(4))
}

fn info(cursor: &mut Cursor<'_>) -> Result<Info> {
    let name = cursor.text("a name")?;
    let described = description(cursor);
    let (tensor_type, shape, offset) = described.map_err(|error| error.with_object(&name))?;
    Ok(Info { name, tensor_type, shape, offset })
}

/// The fields after a name: dimensions, fastest first, the type and the offset.
fn description(cursor: &mut Cursor<'_>) -> Result<(TensorType, Vec<u64>, u64)> {
    let found = cursor.u32("the number of dimensions")?;
    let limit = RANK_MAX;
    if found > limit {
        return Err(cursor.error(Violation::Rank { found, limit }));
    }
    let dimensions = (0..found).map(|_| cursor.length("a dimension"));
    let mut shape = dimensions.collect::<Result<Vec<u64>>>()?;
    shape.reverse();
    let tensor_type = TensorType::from_id(cursor.u32("a type")?);
    Ok((tensor_type, shape, cursor.u64("an offset")?))
}

/// Computes the spans of the tensors: one after the other, each at the next multiple of the
/// alignment. A tensor of unknown length goes up to the next one, or to the end of the file.
fn place(infos: Vec<Info>, data: u64, alignment: u64, byte_len: u64) -> Result<Vec<Tensor>> {
    // Writers may leave out padding that nothing follows, so the file may end before `data`.
    let end_of_data = byte_len.saturating_sub(data);
    if infos.is_empty() && end_of_data > 0 {
        let error = Error::from(Violation::Unclaimed { len: end_of_data });
        return Err(error.with_offset(data));
    }
    let offsets: Vec<u64> = infos.iter().map(|info| info.offset).collect();
    let following = offsets.into_iter().skip(1).chain([end_of_data]);
    let mut tensors = Vec::with_capacity(infos.len());
    // Where the next tensor begins, or the first place where it may begin.
    let (mut expected, mut is_exact) = (0u64, true);
    for (info, next) in infos.into_iter().zip(following) {
        let (found, name) = (info.offset, info.name);
        let blame = |violation: Violation| Error::from(violation).with_object(&name);
        let start = data.checked_add(found).ok_or_else(|| blame(Violation::Overflow))?;
        let blame = |violation: Violation| blame(violation).with_offset(start);
        if is_exact && found != expected {
            return Err(blame(Violation::Misplaced { expected, found }));
        }
        if found < expected || !found.is_multiple_of(alignment) {
            let least = expected;
            return Err(blame(Violation::Unordered { least, found }));
        }
        let known = info.tensor_type.byte_len(&info.shape);
        let span = match known {
            // Beyond the end if the file ends before `data`.
            Some(0) => Span::new(start.min(byte_len), 0),
            Some(len) => Span::new(start, len),
            // If `next` comes first, it is refused below, or this tensor lies beyond the end.
            None => Span::new(start, next.saturating_sub(found)),
        };
        let end = known
            .map_or(Some(found), |len| found.checked_add(len)?.checked_next_multiple_of(alignment));
        let (Some(span), Some(end)) = (span, end) else {
            return Err(blame(Violation::Overflow));
        };
        (expected, is_exact) = (end, known.is_some());
        tensors.push(Tensor {
            name,
            tensor_type: info.tensor_type,
            shape: info.shape,
            stored: None,
            fault: None,
            remark: None,
            span,
        });
    }
    Ok(tensors)
}
