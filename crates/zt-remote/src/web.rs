//! Files of web servers and of the Hugging Face Hub.

use std::env;
use std::sync::Arc;

use object_store::http::HttpBuilder;
use object_store::path::Path;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use url::Url;
use zt::Result;

use crate::address::Located;
use crate::client::{Connector, client, retry};
use crate::error::Fault;
use crate::options::RemoteOptions;

/// The site of the Hub, unless `HF_ENDPOINT` names another.
const HUB: &str = "https://huggingface.co";

const NOT_ENCRYPTED: &str = "the connection would not be encrypted: --allow-http, or the storage option allow_http, allows that";
const NOT_ON_HUB: &str = "the URL of a file on the Hub is hf://OWNER/REPOSITORY[@REVISION]/PATH";
const NOT_A_HEADER: &str = "HF_TOKEN has characters that a header cannot hold";

/// A file of a web server. The store is its folder, and keeps the query, which has the signature of a
/// signed URL.
pub(crate) fn of_server(
    url: &Url,
    options: &RemoteOptions,
    token: Option<&str>,
) -> Result<Located> {
    if url.scheme() == "http" && !options.allow_http {
        return Err(Fault::settings(&NOT_ENCRYPTED).into());
    }
    let mut folder = url.clone();
    folder.set_fragment(None);
    let name = url.path_segments().and_then(Iterator::last);
    let name = name.unwrap_or_default().to_owned();
    if let Ok(mut segments) = folder.path_segments_mut() {
        segments.pop();
    }
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = value.map_err(|_| Fault::settings(&NOT_A_HEADER))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let store = HttpBuilder::new()
        .with_url(folder)
        .with_client_options(client(options))
        .with_http_connector(Connector::of_server(options, headers))
        .with_retry(retry(options))
        .build()
        .map_err(|error| Fault::settings(&error))?;
    let path = Path::from_url_path(name).map_err(|error| Fault::settings(&error))?;
    Ok((Arc::new(store), path))
}

/// A file of a repository on the Hub: `hf://OWNER/REPOSITORY[@REVISION]/PATH`, and `hf://datasets/...`,
/// `hf://spaces/...`. A revision with a slash is written with `%2F`.
pub(crate) fn of_hub(url: &Url, options: &RemoteOptions) -> Result<Located> {
    let mut parts: Vec<&str> = url.host_str().into_iter().collect();
    parts.extend(url.path_segments().into_iter().flatten());
    let kind = match parts.first() {
        Some(&("datasets" | "spaces")) => Some(parts.remove(0)),
        _ => None,
    };
    // In a URL, the text before an @ is a user.
    if !url.username().is_empty() || parts.len() < 3 {
        return Err(Fault::settings(&NOT_ON_HUB).into());
    }
    let [owner, repository, path @ ..] = &parts[..] else {
        return Err(Fault::settings(&NOT_ON_HUB).into());
    };
    let (repository, revision) = repository.split_once('@').unwrap_or((repository, "main"));
    let endpoint = env::var("HF_ENDPOINT").unwrap_or_else(|_| HUB.to_owned());
    let kind = kind.map(|kind| format!("{kind}/")).unwrap_or_default();
    let resolved = format!(
        "{}/{kind}{owner}/{repository}/resolve/{revision}/{}",
        endpoint.trim_end_matches('/'),
        path.join("/"),
    );
    let resolved = Url::parse(&resolved).map_err(|why| Fault::NotUrl { why })?;
    let mut options = options.clone();
    // A user who names an unencrypted site has asked for it.
    options.allow_http |= endpoint.starts_with("http://");
    let token = env::var("HF_TOKEN").ok().filter(|token| !token.is_empty());
    of_server(&resolved, &options, token.as_deref())
}
