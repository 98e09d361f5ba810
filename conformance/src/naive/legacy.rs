//! Manifests of layouts 0.1 and 1.0 (`spec/legacy.md`).

use std::collections::BTreeMap;

use super::cbor::Item;
use super::component::Component;
use super::object::{
    Object, Objects, all_or_none, attributes, is_map_or_absent, is_zstd, named, optional_text,
    shape, version,
};
use super::{get, types};

/// `None` where the root refuses the file.
pub(super) fn tensors_0_1(root: &Item) -> Option<Objects> {
    let mut objects = BTreeMap::new();
    for item in root.as_array()? {
        let fields = item.as_map()?;
        let name = get(fields, "name")?.as_text()?;
        if objects.insert(name.to_owned(), tensor_0_1(fields)).is_some() {
            return None;
        }
    }
    Some(objects)
}

fn tensor_0_1(fields: &[(Item, Item)]) -> Option<Object> {
    let is_big = match optional_text(fields, "data_endianness")?.as_deref() {
        None | Some("little") => false,
        Some("big") => true,
        Some(_) => return None,
    };
    let is_zstd = is_zstd(Some(get(fields, "encoding")?.as_text()?))?;
    let data = Component {
        dtype: Some(types::of_long(get(fields, "dtype")?.as_text()?)?.to_owned()),
        logical: None,
        offset: get(fields, "offset")?.as_unsigned()?,
        length: get(fields, "size")?.as_unsigned()?,
        is_zstd,
        uncompressed: None,
        digest: optional_text(fields, "checksum")?,
        is_big: is_big && !is_zstd,
        table: None,
    };
    Some(Object {
        shape: shape(fields)?,
        format: get(fields, "layout")?.as_text()?.to_owned(),
        attributes: Vec::new(),
        components: BTreeMap::from([("data".to_owned(), data)]),
    })
}

/// `None` where the root refuses the file.
pub(super) fn tensors_1_0(root: &Item) -> Option<Objects> {
    let root = root.as_map()?;
    version(get(root, "version")?.as_text()?)?;
    is_map_or_absent(root, "attributes").then_some(())?;
    named(get(root, "tensors")?, tensor_1_0)
}

fn tensor_1_0(item: &Item) -> Option<Object> {
    let fields = item.as_map()?;
    let dtype = types::of_long(get(fields, "dtype")?.as_text()?)?;
    let components = named(get(fields, "components")?, component_1_0)?;
    let mut components = all_or_none(components)?;
    for (role, component) in &mut components {
        component.dtype = match role.as_str() {
            "data" | "values" => Some(dtype.to_owned()),
            "indices" | "indptr" | "coords" => Some("u64".to_owned()),
            _ => None,
        };
    }
    Some(Object {
        shape: shape(fields)?,
        format: get(fields, "format")?.as_text()?.to_owned(),
        attributes: attributes(fields)?,
        components,
    })
}

fn component_1_0(item: &Item) -> Option<Component> {
    let fields = item.as_map()?;
    Some(Component {
        dtype: None,
        logical: None,
        offset: get(fields, "offset")?.as_unsigned()?,
        length: get(fields, "length")?.as_unsigned()?,
        is_zstd: is_zstd(optional_text(fields, "encoding")?.as_deref())?,
        uncompressed: None,
        digest: optional_text(fields, "digest")?,
        is_big: false,
        table: None,
    })
}
