//! Objects of an input that the output does not have.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use zt_convert::Duplicate;

use crate::output::json::path_text;
use crate::output::text::{listed, path};

/// Objects of one input.
#[derive(Serialize)]
pub(crate) struct Absent {
    #[serde(serialize_with = "shown")]
    pub(crate) input: PathBuf,
    pub(crate) names: Vec<String>,
}

fn shown<S: Serializer>(input: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path_text(input))
}

/// The objects that gave way to others of the same name, by file.
pub(crate) fn duplicates(duplicates: &[Duplicate]) -> Vec<Absent> {
    let mut files: Vec<Absent> = Vec::new();
    for Duplicate { name, path, .. } in duplicates {
        let input = path.clone().unwrap_or_default();
        let at = files.iter().position(|file| file.input == input);
        let at = at.unwrap_or(files.len());
        if at == files.len() {
            let names = Vec::new();
            files.push(Absent { input, names });
        }
        files[at].names.push(name.clone());
    }
    files
}

/// `; excluded: 2 of a.zt (x, y), 1 of b.zt (x)`; nothing for no objects.
pub(crate) fn text(what: &str, files: &[Absent]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let of_file = |file: &Absent| {
        let (count, input) = (file.names.len(), path(&file.input));
        format!("{count} of {input} ({})", listed(&file.names, 5))
    };
    let files: Vec<String> = files.iter().map(of_file).collect();
    format!("; {what}: {}", files.join(", "))
}
