//! What a delta changes, as far as that is known without its base.

use zt::formats::{Delta as Attributes, DeltaCodec, element_count};
use zt::{Error, File, Slice, Tensor, Value};

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
    let changed = objects.filter(|it| it.format() == Attributes::FORMAT).count();
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
        delta.stretches = stretches(tensor, role)?;
    }
    Ok(Some(delta))
}

/// How many blocks have a code, and how many there are; `None` if the component has not an element for each value.
fn stretches(tensor: &Tensor<'_>, role: &str) -> Result<Option<[u64; 2]>, Error> {
    tensor.verify(role)?;
    let byte_len = tensor.decoded_len(role)?;
    let codes_len =
        element_count(tensor.shape()).and_then(|it| DeltaCodec::codes_len(it, byte_len));
    let Some(codes_len) = codes_len else {
        return Ok(None);
    };
    let table = tensor.slice_component(role, &[Slice::from(codes_len..)])?;
    Ok(DeltaCodec::ends(&table.elements().bytes, codes_len).map(|mut ends| {
        let all = ends.len() as u64;
        ends.retain(|end| *end > 0);
        ends.dedup();
        [ends.len() as u64, all]
    }))
}
