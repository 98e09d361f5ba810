//! The hashes of dense values: if the caller wants them, and of objects that stand for dense ones.

use std::collections::HashMap;

use zt_container::{DigestAlgorithm, Hasher, memory::zeroed};
use zt_formats::{Dense, View, dense_byte_len};

use super::hash::{BytesHash, DenseHash, Hashed, sum};
use crate::cores::parallel;
use crate::cores::progress::Gauge;
use crate::error::{ErrorKind, Result};
use crate::file::overlap::Allowance;
use crate::file::tensor::Tensor;
use crate::read::compressed::DATA;
use crate::read::contents::key;

/// Bytes of a dense value that are hashed at a time.
///
/// Pays: nothing: `zt hash` of 75 MB in planes takes 1.06 of the CPU time that it takes with 64 KiB, and 0.98 of
/// that with 8 MiB.
const PIECE: u64 = 1 << 20;

/// The source of the hash of a dense value.
enum Value {
    /// The object is dense, and its bytes have been hashed.
    Known(DenseHash),
    /// The value of this number is decoded.
    Decoded(usize),
}

/// The hash of each object's dense value: of all objects, or only of objects that stand for a dense
/// one. A manifest can give the same bytes to any number of objects. So equal objects are decoded once,
/// and different ones within the limits of `allowance`.
pub(super) fn dense_values(
    objects: &[Hashed<'_>],
    of_all: bool,
    mut allowance: Allowance,
    gauge: &Gauge<'_>,
) -> Result<Vec<Result<Option<DenseHash>>>> {
    let mut distinct: Vec<Result<Tensor<'_>>> = Vec::new();
    let mut places = HashMap::new();
    let mut values: Vec<Option<Value>> = Vec::with_capacity(objects.len());
    for (entry, hash) in objects {
        let tensor = entry.tensor().ok();
        let tensor = tensor.filter(|tensor| of_all || tensor.stands_for().is_some());
        let hash = hash.as_ref().ok().filter(|hash| hash.fault.is_none());
        let Some((tensor, hash)) = tensor.zip(hash) else {
            values.push(None);
            continue;
        };
        values.push(Some(match own_value(&tensor, &hash.components) {
            Some(known) => Value::Known(known),
            None => Value::Decoded(*places.entry(key(&tensor)?).or_insert_with(|| {
                let lens = hash.components.iter().map(|(_, bytes)| bytes.byte_len);
                let allowed = allowance.spend(lens.fold(0, u64::saturating_add));
                distinct.push(allowed.map(|()| tensor));
                distinct.len().strict_sub(1)
            })),
        }));
    }
    let decoded = parallel::map(&distinct, |allowed| {
        let decoded = allowed.clone();
        match decoded.and_then(|tensor| decoded_value(&tensor, gauge)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            // Formats without dense values and unknown formats have none. That is no fault.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Ok(None)),
            decoded => Ok(decoded.map(Some)),
        }
    })?;
    let named = objects.iter().zip(values).map(|((entry, _), value)| {
        let decoded = match value {
            None => return Ok(None),
            Some(Value::Known(known)) => return Ok(Some(known)),
            Some(Value::Decoded(at)) => decoded.get(at).cloned().unwrap_or(Ok(None)),
        };
        decoded.map_err(|error| error.of_object(entry.name()))
    });
    Ok(named.collect())
}

/// The value of a dense object whose bytes have been hashed. `None` if the file omits the length or the
/// type: then only the format knows whether the bytes are an array.
fn own_value(tensor: &Tensor<'_>, components: &[(String, BytesHash)]) -> Option<DenseHash> {
    let data = tensor.component(DATA).ok()?;
    data.blob.decoded_len?;
    let dtype = data.dtype.filter(|_| tensor.format() == Dense::FORMAT)?;
    let (_, bytes) = components.iter().find(|(role, _)| role == DATA)?;
    Some(DenseHash::of(dtype, data.logical_type.as_deref(), *bytes))
}

fn decoded_value(tensor: &Tensor<'_>, gauge: &Gauge<'_>) -> Result<DenseHash> {
    gauge.report(0)?;
    let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
    let Some((dtype, logical_type)) = tensor.dense_type() else {
        let dense = tensor.to_dense()?;
        let elements = dense.elements();
        hasher.update(&elements.bytes);
        let (sha256, byte_len) = (sum(hasher), elements.bytes.len() as u64);
        let bytes = BytesHash { sha256, byte_len };
        return Ok(DenseHash::of(elements.dtype, elements.logical_type(), bytes));
    };
    let mut reader = tensor.dense_reader()?;
    let value_len = tensor.value_len(dtype, logical_type.as_deref());
    let dense_len = dense_byte_len(tensor.shape(), value_len as u64);
    // A piece holds whole values, at least one.
    let piece_len = dense_len.map_or(PIECE, |len| len.min(PIECE)).max(16);
    let (mut piece, mut next) = (zeroed(piece_len)?, zeroed(piece_len)?);
    let mut byte_len = 0u64;
    let mut len = reader.read_elements(&mut piece)?;
    while len > 0 {
        gauge.report(0)?;
        byte_len = byte_len.strict_add(len as u64);
        let bytes = piece.get(..len).unwrap_or_default();
        let (read, ()) =
            parallel::join(|| reader.read_elements(&mut next), || hasher.update(bytes));
        len = read?;
        std::mem::swap(&mut piece, &mut next);
    }
    let sha256 = sum(hasher);
    let bytes = BytesHash { sha256, byte_len };
    Ok(DenseHash::of(dtype, logical_type.as_deref(), bytes))
}
