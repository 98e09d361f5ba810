//! What a delta changes, as far as that is known without its base.

use zt::formats::{Delta as Attributes, DeltaCodec, element_count};
use zt::{Error, File, Tensor, Value};

use crate::page::abridged;
use crate::report::{Delta, DeltaSummary};

/// The file attribute. Spec: formats/zt.delta.
const KEY: &str = "zt.delta";
/// Bytes of the identity of each object of the base.
const MARK: usize = 8;
/// Bytes of a name of the base, as JSON.
const NAME: usize = 500;

/// `None` for a file that is no delta.
pub(crate) fn summary(file: &File) -> Option<DeltaSummary> {
    let attributes = file.attributes().ok().flatten()?;
    let header = attributes.get(KEY)?.as_map()?;
    let marks = header.get("objects").and_then(Value::as_bytes);
    let removed = header.get("removed").and_then(Value::as_array);
    let objects = file.tensors().flatten();
    let changed = objects
        .filter(|it| it.format() == Attributes::FORMAT)
        .count();
    Some(DeltaSummary {
        base: (marks.map_or(0, <[u8]>::len) / MARK) as u64,
        changed: changed as u64,
        whole: (file.len() - changed) as u64,
        removed: removed.map_or(0, <[Value]>::len) as u64,
    })
}

/// `None` for an object of another format. A sample reads none of its bytes.
pub(crate) fn delta(tensor: &Tensor<'_>, is_sample: bool) -> Result<Option<Delta>, Error> {
    if tensor.format() != Attributes::FORMAT {
        return Ok(None);
    }
    let found = Attributes::from_attributes(tensor.attributes())?;
    let roles = found.sha256.iter().map(|(role, _)| abridged(role, NAME));
    let mut delta = Delta {
        base: found.base.map(|name| abridged(name, NAME)),
        attributes: found.attributes.is_some(),
        roles: roles.collect(),
        stretches: None,
    };
    if let ([(role, _)], false) = (&*found.sha256, is_sample) {
        delta.stretches = stretches(tensor.shape(), &tensor.bytes(role)?);
    }
    Ok(Some(delta))
}

/// How many stretches have a code, and how many there are; `None` if the component has not an element for each value.
fn stretches(shape: &[u64], coded: &[u8]) -> Option<[u64; 2]> {
    let all = element_count(shape)?.div_ceil(DeltaCodec::STRETCH as u64);
    let table = usize::try_from(all.checked_mul(4)?).ok()?;
    let (codes, table) = coded.split_at_checked(coded.len().checked_sub(table)?)?;
    let lens = table
        .as_chunks::<4>()
        .0
        .iter()
        .map(|len| u32::from_le_bytes(*len));
    let sum: u64 = lens.clone().map(u64::from).sum();
    let changed = lens.filter(|len| *len > 0).count();
    (sum == codes.len() as u64).then_some([changed as u64, all])
}
