//! What a page shows of a file: the document of `zt report`.

use std::collections::HashSet;

use wasm_bindgen::prelude::wasm_bindgen;
use zt::{Error, ErrorKind, File, codes};
use zt_report::{Report, ReportOptions};

use crate::error::{OrThrow, Result};
use crate::file::OpenFile;

#[wasm_bindgen]
impl OpenFile {
    /// The document of the objects with these names, or of all. `values` says which are read: `all`, `sample` or `none`.
    /// With `detail` no picture is left out.
    pub fn report(&self, values: &str, names: Option<Vec<String>>, detail: bool) -> Result<String> {
        let options = options(values, detail).or_throw()?;
        let file = self.some(names.as_deref()).or_throw()?;
        let report = Report::of(&file, &self.name(), &options).or_throw()?;
        Ok(report.to_json(options.limit().unwrap_or(usize::MAX)))
    }

    /// As `report`, of what changed since `before`.
    pub fn compare(
        &self,
        before: &OpenFile,
        values: &str,
        names: Option<Vec<String>>,
        detail: bool,
    ) -> Result<String> {
        let options = options(values, detail).or_throw()?;
        let [a, b] = [before, self].map(|file| file.some(names.as_deref()));
        let paths = [before, self].map(OpenFile::name);
        let files = [&a.or_throw()?, &b.or_throw()?];
        let report = Report::compare(files, [&paths[0], &paths[1]], &options).or_throw()?;
        Ok(report.to_json(options.limit().unwrap_or(usize::MAX)))
    }
}

impl OpenFile {
    /// The objects with these names, faulty ones included.
    pub(crate) fn some(&self, names: Option<&[String]>) -> zt::Result<File> {
        let Some(names) = names else {
            return Ok(self.file().clone());
        };
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        self.file().select(|name| names.contains(name).then(|| name.to_owned()))
    }
}

fn options(values: &str, detail: bool) -> zt::Result<ReportOptions<'static>> {
    let options = ReportOptions::new().detail(detail);
    match values {
        "all" => Ok(options),
        "sample" => Ok(options.sample(true)),
        "none" => Ok(options.headers(true)),
        _ => {
            let message = format!("values is {values:?}: pass \"all\", \"sample\" or \"none\"");
            Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message))
        }
    }
}
