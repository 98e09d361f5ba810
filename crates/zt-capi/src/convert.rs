//! Files of any kind as files of any kind that is written.

use std::path::Path;

use zt::{FloatType, Result, WriteOptions};
use zt_convert::{ConvertOptions, Kinds};
use zt_model::LocationOptions;

use crate::border::misuse;
use crate::error::zt_error;
use crate::file::location;
use crate::report::zt_report;

/// What a caller asks for.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) kind: Option<&'a str>,
    pub(crate) dtype: Option<&'a str>,
    pub(crate) write: Option<WriteOptions>,
    pub(crate) dense: bool,
    pub(crate) lossy: bool,
    pub(crate) overwrite: bool,
}

/// Writes `from` as `to`, and gives the warnings: what the inputs warn of, and what was lost.
pub(crate) fn convert(from: &Path, to: &Path, wanted: Wanted<'_>) -> Result<zt_report> {
    let kinds = Kinds::builtin();
    let kind = match wanted.kind {
        Some(name) => kinds.get(name).map(|kind| kind.kind()),
        None => kinds.of_extension(to),
    };
    let kind = kind.ok_or_else(|| match wanted.kind {
        Some(name) => misuse(format!("this build has no kind {name:?}")),
        None => misuse("the extension is of no kind: name one").with_path(location(to).path()),
    })?;
    let dtype = wanted.dtype.map(|name| {
        let found = FloatType::from_typed(name);
        found.ok_or_else(|| misuse(format!("{name:?} is no type to cast to")))
    });
    let options = ConvertOptions::new(kind)
        .dense(wanted.dense)
        .dtype(dtype.transpose()?)
        .drop_unsupported(wanted.lossy)
        .allow_inf(wanted.lossy)
        .overwrite(wanted.overwrite)
        .write(wanted.write.unwrap_or_default());
    let places = LocationOptions::new();
    let input = location(from).open(&places)?;
    let summary = location(to).convert(&[input], &options, &places)?;
    Ok(zt_report(summary.warnings.iter().map(zt_error::of_warning).collect()))
}
