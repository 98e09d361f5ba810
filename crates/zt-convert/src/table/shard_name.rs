//! Names of shards, such as `model-00002-of-00003.safetensors`.

use std::path::Path;

use zt_foreign::without_query;

/// Whether a path names one of several shards, such as `model-00002-of-00003.safetensors`.
pub(crate) fn is_one_of_several(path: &Path) -> bool {
    let name = without_query(path).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    unnumbered(name) != name && !name.ends_with("-of-00001")
}

/// `model` for `model-00001-of-00003`.
pub(crate) fn unnumbered(stem: &str) -> &str {
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|it| it.is_ascii_digit());
    let (start, count) = stem.rsplit_once("-of-").unwrap_or((stem, ""));
    match start.rsplit_once('-') {
        Some((name, number)) if is_number(number) && is_number(count) => name,
        _ => stem,
    }
}
