//! The files of a repository of the Hub, by its API.

use serde::Deserialize;
use zt::Result;

use crate::download::list::{List, Listed, Repository, checked, encoded, header, parse};
use crate::download::proof::{Proof, parsed};
use crate::options::RemoteOptions;

#[derive(Deserialize)]
struct Answer {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
}

/// The files of the repository `url`; `None` for another address.
pub(super) fn list(url: &str, options: &RemoteOptions) -> Result<Option<List>> {
    let Some((kind, name, revision)) = repository(url) else {
        return Ok(None);
    };
    of_repository(kind, name, revision, options).map(Some)
}

/// The parts of `hf:[KIND/]OWNER/NAME[@REVISION]`, with or without `//`; `None` for a file of a repository.
fn repository(url: &str) -> Option<(&str, &str, &str)> {
    let rest = url.strip_prefix("hf:")?;
    let rest = rest.strip_prefix("//").unwrap_or(rest).trim_end_matches('/');
    let (kind, rest) = match rest.split_once('/')? {
        (kind @ ("datasets" | "spaces"), rest) => (kind, rest),
        _ => ("models", rest),
    };
    let (name, revision) = rest.split_once('@').unwrap_or((rest, "main"));
    let is_repository = name.split('/').filter(|part| !part.is_empty()).count() == 2
        && name.split('/').count() == 2
        && !revision.contains('/');
    is_repository.then_some((kind, name, revision))
}

fn of_repository(kind: &str, name: &str, revision: &str, options: &RemoteOptions) -> Result<List> {
    let bytes = crate::web::api(&format!("{kind}/{name}/revision/{revision}?blobs=true"), options)?;
    let answer: Answer = parse(&bytes, url_of(kind, name, revision, ""))?;
    let is_commit = !answer.sha.is_empty() && answer.sha.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_commit {
        return Err(header("the answer of the Hub has no commit", name));
    }
    let files = answer.siblings.into_iter().map(|sibling| {
        let url = url_of(kind, name, &answer.sha, &sibling.rfilename);
        let sha256 = sibling.lfs.as_ref().and_then(|lfs| parsed(&lfs.sha256));
        let blob = sibling.lfs.map(|lfs| lfs.sha256).or(sibling.blob_id);
        let blob = blob.filter(|blob| blob.bytes().all(|it| it.is_ascii_hexdigit()));
        Listed {
            name: sibling.rfilename,
            url,
            byte_len: sibling.size,
            sha256,
            proof: Proof::Hub,
            blob,
        }
    });
    let files = files.collect();
    let repository = Repository {
        kind: kind.to_owned(),
        name: name.to_owned(),
        revision: revision.to_owned(),
        commit: answer.sha.clone(),
    };
    checked(List { files, repository: Some(repository) })
}

/// The URL of a file of the Hub.
fn url_of(kind: &str, name: &str, revision: &str, file: &str) -> String {
    let kind = if kind == "models" { String::new() } else { format!("{kind}/") };
    format!("hf://{kind}{name}@{revision}/{}", encoded(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_told_from_a_file_of_one() {
        assert_eq!(repository("hf:o/m"), Some(("models", "o/m", "main")));
        assert_eq!(repository("hf://o/m@v1/"), Some(("models", "o/m", "v1")));
        assert_eq!(repository("hf:datasets/o/m"), Some(("datasets", "o/m", "main")));
        for other in ["hf://o/m/f.zt", "hf:o", "s3://o/m", "hf://o/m@r/f", "hf:/o"] {
            assert_eq!(repository(other), None, "{other}");
        }
        assert_eq!(url_of("models", "o/m", "c", "a b/c+d"), "hf://o/m@c/a%20b/c%2Bd");
    }
}
