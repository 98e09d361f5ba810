//! The manifest's schema (§3) and versions (§11).

use std::collections::BTreeMap;

use super::cbor::Item;
use super::component::{Component, Table};
use super::{get, types};

#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) shape: Vec<u64>,
    pub(super) format: String,
    pub(super) attributes: Vec<(Item, Item)>,
    pub(super) components: BTreeMap<String, Component>,
}

/// Objects by name, `None` for one whose fields are wrong.
pub(super) type Objects = BTreeMap<String, Option<Object>>;

/// Those of a root of 1.1 or 1.2; `None` where the root refuses the file.
pub(super) fn objects(root: &Item) -> Option<Objects> {
    let root = root.as_map()?;
    let minor = version(get(root, "version")?.as_text()?)?;
    is_map_or_absent(root, "attributes").then_some(())?;
    named(get(root, "objects")?, |item| object(item, minor))
}

/// The values of a map by name; `None` where a key is no text.
pub(super) fn named<T>(map: &Item, read: impl Fn(&Item) -> T) -> Option<BTreeMap<String, T>> {
    let pairs = map.as_map()?.iter();
    let pair = |(key, value): &(Item, Item)| Some((key.as_text()?.to_owned(), read(value)));
    pairs.map(pair).collect()
}

pub(super) fn is_map_or_absent(map: &[(Item, Item)], key: &str) -> bool {
    get(map, key).is_none_or(|value| value.as_map().is_some())
}

/// The minor version; `None` for one that is refused.
pub(super) fn version(text: &str) -> Option<u64> {
    let end = text.find(['+', '-']).unwrap_or(text.len());
    let numbers: Vec<&str> = text[..end].split('.').collect();
    let is_number =
        |number: &&str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if numbers.len() > 3 || !numbers.iter().all(is_number) {
        return None;
    }
    let numbers: Vec<u64> = numbers.iter().map(|n| n.parse().ok()).collect::<Option<_>>()?;
    (numbers[0] == 1).then(|| numbers.get(1).copied().unwrap_or(0))
}

fn object(item: &Item, minor: u64) -> Option<Object> {
    let fields = item.as_map()?;
    let components = named(get(fields, "components")?, |item| component(item, minor))?;
    Some(Object {
        shape: shape(fields)?,
        format: get(fields, "format")?.as_text()?.to_owned(),
        attributes: attributes(fields)?,
        components: all_or_none(components)?,
    })
}

pub(super) fn all_or_none(
    components: BTreeMap<String, Option<Component>>,
) -> Option<BTreeMap<String, Component>> {
    let components = components.into_iter();
    components.map(|(role, component)| Some((role, component?))).collect()
}

pub(super) fn shape(fields: &[(Item, Item)]) -> Option<Vec<u64>> {
    let items = get(fields, "shape")?.as_array()?;
    items.iter().map(Item::as_unsigned).collect()
}

pub(super) fn attributes(fields: &[(Item, Item)]) -> Option<Vec<(Item, Item)>> {
    match get(fields, "attributes") {
        None => Some(Vec::new()),
        Some(value) => value.as_map().map(<[_]>::to_vec),
    }
}

/// A text that may be absent; `None` where it is something else.
pub(super) fn optional_text(fields: &[(Item, Item)], key: &str) -> Option<Option<String>> {
    match get(fields, key) {
        None => Some(None),
        Some(value) => value.as_text().map(|text| Some(text.to_owned())),
    }
}

/// Whether the encoding is zstd; `None` for one that there is not.
pub(super) fn is_zstd(encoding: Option<&str>) -> Option<bool> {
    match encoding {
        None | Some("raw") => Some(false),
        Some("zstd") => Some(true),
        Some(_) => None,
    }
}

fn component(item: &Item, minor: u64) -> Option<Component> {
    let fields = item.as_map()?;
    let dtype = get(fields, "dtype")?.as_text()?;
    types::width(dtype)?;
    let uncompressed = match get(fields, "uncompressed_length") {
        None => None,
        Some(value) => Some(value.as_unsigned()?),
    };
    let is_zstd = is_zstd(optional_text(fields, "encoding")?.as_deref())?;
    if is_zstd && uncompressed.is_none() && minor >= 2 {
        return None;
    }
    Some(Component {
        logical: optional_text(fields, "type")?.filter(|name| name != dtype),
        dtype: Some(dtype.to_owned()),
        offset: get(fields, "offset")?.as_unsigned()?,
        length: get(fields, "length")?.as_unsigned()?,
        is_zstd,
        uncompressed,
        digest: optional_text(fields, "digest")?,
        is_big: false,
        table: get(fields, "zt.chunks").and_then(Table::read),
    })
}
