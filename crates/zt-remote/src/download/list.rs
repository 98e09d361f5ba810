//! The files of a folder, of a set, or of a repository of the Hub.

use std::collections::BTreeSet;

use futures_util::TryStreamExt;
use serde::Deserialize;
use url::Url;
use zt::{Error, ErrorKind, Result, Source, codes};

use crate::address::{Address, is_plain};
use crate::download::proof::{Proof, sums};
use crate::error::of_store;
use crate::options::RemoteOptions;
use crate::remote::Remote;
use crate::runtime;

/// The longest index and the longest list of a repository that are read.
const LONGEST: u64 = 256 << 20;

/// One of several files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listed {
    /// Its name below the folder: plain names with `/` between them.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Its length, if the list has it.
    pub byte_len: Option<u64>,
    /// Its SHA-256, if the list has it.
    pub sha256: Option<[u8; 32]>,
    /// Whose list it is.
    pub proof: Proof,
    /// The name of its blob in the Hub's cache.
    pub(super) blob: Option<String>,
}

/// The files of a repository, of a folder or of a set.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct List {
    /// The files, in the order of their names.
    pub files: Vec<Listed>,
    /// The repository and its commit.
    pub(super) repository: Option<Repository>,
}

impl List {
    /// Whether it is of a repository of the Hub.
    pub const fn is_repository(&self) -> bool {
        self.repository.is_some()
    }

    /// Files below the folder of `url`, which ends with a slash or with the name of a file: their names, lengths and
    /// SHA-256, as a seal has them.
    ///
    /// # Errors
    ///
    /// Code `path` for a name that leads out of the folder.
    pub fn below(
        url: &str,
        files: impl IntoIterator<Item = (String, u64, [u8; 32])>,
    ) -> Result<Self> {
        let files = files.into_iter().map(|(name, byte_len, sha256)| Listed {
            byte_len: Some(byte_len),
            sha256: Some(sha256),
            proof: Proof::Given,
            ..beside(url, name)
        });
        checked(List { files: files.collect(), repository: None })
    }
}

/// A repository of the Hub, at a commit.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// `models`, `datasets` or `spaces`.
    pub(super) kind: String,
    /// `OWNER/NAME`.
    pub(super) name: String,
    pub(super) revision: String,
    pub(super) commit: String,
}

#[derive(Deserialize)]
struct Index {
    weight_map: std::collections::BTreeMap<String, String>,
}

/// The files that `url` stands for; `None` for one file.
///
/// * `hf:OWNER/NAME[@REVISION]`: all files of the repository.
/// * An address that ends with `.index.json`: the index and the shards in it.
/// * An address that ends with a slash: all objects below it, in a store; the files of `SHA256SUMS`, on a web server.
///
/// # Errors
///
/// As [`crate::open`]; code `path` for a name that leads out of the folder; `header` for an index or an answer that is not
/// what it should be; `unsupported` for a folder of a web server without a list.
pub fn list(url: &str, options: &RemoteOptions) -> Result<Option<List>> {
    #[cfg(feature = "http")]
    if let Some(list) = super::hub::list(url, options)? {
        return Ok(Some(list));
    }
    let (place, _) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    if place.ends_with(".index.json") {
        return of_index(url, options).map(Some);
    }
    if !place.ends_with('/') {
        return Ok(None);
    }
    let is_web = place.starts_with("http://") || place.starts_with("https://");
    if is_web { of_sums(place, options).map(Some) } else { of_folder(place, options).map(Some) }
}

fn of_index(url: &str, options: &RemoteOptions) -> Result<List> {
    let remote = Remote::open(url, options)?;
    let index: Index = parse(&read(&remote)?, remote.url().to_owned())?;
    let shards: BTreeSet<String> = index.weight_map.into_values().collect();
    let names = std::iter::once(remote.name()).chain(shards);
    let files = names.map(|name| beside(url, name)).collect();
    checked(List { files, repository: None })
}

fn of_sums(url: &str, options: &RemoteOptions) -> Result<List> {
    let list = Remote::open(&format!("{url}SHA256SUMS"), options).map_err(|error| {
        let why = format!(
            "{error}; a web server does not list its folders: give the address of a file, of an index, or put SHA256SUMS there"
        );
        Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, why)
    })?;
    let files = sums(&read(&list)?).into_iter().map(|(sha256, name)| {
        let file = beside(&format!("{url}SHA256SUMS"), name);
        Listed { sha256: Some(sha256), proof: Proof::Sums, ..file }
    });
    checked(List { files: files.collect(), repository: None })
}

/// All objects below a folder of a store.
fn of_folder(url: &str, options: &RemoteOptions) -> Result<List> {
    let mut parsed = Url::parse(url).map_err(|why| crate::error::Fault::NotUrl { why })?;
    if let Ok(mut parts) = parsed.path_segments_mut() {
        parts.pop_if_empty().push("file");
    }
    let address = Address::new(parsed.as_str(), options)?;
    let mut parts: Vec<_> = address.path.parts().collect();
    parts.pop();
    let folder: object_store::path::Path = parts.into_iter().collect();
    options.meter.begin();
    let (store, below) = (std::sync::Arc::clone(&address.store), folder.clone());
    let found = runtime::wait(options.interrupt, async move {
        store.list(Some(&below)).try_collect::<Vec<_>>().await
    })?;
    let found = found.map_err(|error| of_store(&error).with_path(url.as_ref()))?;
    let files = found.into_iter().filter_map(|object| {
        let name: Vec<_> = object.location.prefix_match(&folder)?.collect();
        let name = name.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("/");
        let file = beside(&format!("{url}file"), name);
        Some(Listed { byte_len: Some(object.size), ..file })
    });
    checked(List { files: files.collect(), repository: None })
}

/// A file in the folder of `url`.
fn beside(url: &str, name: String) -> Listed {
    let (place, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let folder = place.rsplit_once('/').map_or("", |(folder, _)| folder);
    let url = format!("{folder}/{}{query}", encoded(&name));
    Listed { name, url, byte_len: None, sha256: None, proof: Proof::Nothing, blob: None }
}

/// A name in a URL, where its characters have no meaning.
pub(super) fn encoded(name: &str) -> String {
    let part = |part: &str| url::form_urlencoded::byte_serialize(part.as_bytes()).collect();
    let parts: Vec<String> = name.split('/').map(part).collect();
    // A form has `+` for a space.
    parts.join("/").replace('+', "%20")
}

/// The list in the order of its names. A name that leads out of the folder is an error, and a second one is dropped.
pub(super) fn checked(mut list: List) -> Result<List> {
    list.files.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(wrong) = list.files.iter().find(|file| !is_plain(&file.name)) {
        let why = format!("{} leads out of the folder", wrong.name.escape_debug());
        return Err(Error::new(ErrorKind::Malformed, codes::PATH, why));
    }
    list.files.dedup_by(|a, b| a.name == b.name);
    Ok(list)
}

fn read(remote: &Remote) -> Result<Vec<u8>> {
    if remote.byte_len() > LONGEST {
        return Err(header("the list is longer than 256 MiB", remote.url()));
    }
    let mut bytes = vec![0; usize::try_from(remote.byte_len()).unwrap_or_default()];
    remote.read_at(0, &mut bytes)?;
    Ok(bytes)
}

pub(super) fn parse<T: for<'a> Deserialize<'a>>(bytes: &[u8], place: String) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| header(&error.to_string(), &place))
}

pub(super) fn header(why: &str, place: &str) -> Error {
    Error::new(ErrorKind::Malformed, codes::HEADER, why.to_owned()).with_path(place.as_ref())
}
