//! Files of web servers and of the Hugging Face Hub.

use std::env;
use std::sync::Arc;

use object_store::http::HttpBuilder;
use object_store::path::Path;
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use url::Url;
use zt::Result;

use crate::address::Located;
use crate::client::{Connector, choose_cryptography, client, retry};
use crate::error::Fault;
use crate::options::RemoteOptions;
use crate::runtime;

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
        headers.insert(AUTHORIZATION, bearer(token)?);
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
    let resolved = resolved(url)?;
    let mut options = options.clone();
    // A user who names an unencrypted site has asked for it.
    options.allow_http |= resolved.scheme() == "http";
    of_server(&resolved, &options, token().as_deref())
}

/// The address at the Hub of `hf://...`.
fn resolved(url: &Url) -> Result<Url> {
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
    let endpoint = endpoint();
    let kind = kind.map(|kind| format!("{kind}/")).unwrap_or_default();
    let resolved =
        format!("{}/{kind}{owner}/{repository}/resolve/{revision}/{}", endpoint, path.join("/"),);
    Url::parse(&resolved).map_err(|why| Fault::NotUrl { why }.into())
}

/// The address of the Hub, without a slash at the end.
fn endpoint() -> String {
    let endpoint = env::var("HF_ENDPOINT").unwrap_or_else(|_| HUB.to_owned());
    endpoint.trim_end_matches('/').to_owned()
}

/// What a server tells of a file without its bytes.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The tag that the Hub gives: the SHA-256 of a file in LFS or Xet.
    pub(crate) linked_etag: Option<String>,
    /// The commit of the repository, if the Hub has answered.
    pub(crate) commit: Option<String>,
    /// The headers that have digests of the whole file.
    pub(crate) digests: Vec<String>,
}

/// The headers of a file; `None` for other stores, and for a server that refuses the question.
pub(crate) fn head(url: &str, options: &RemoteOptions) -> Result<Option<Head>> {
    let url = Url::parse(url).map_err(|why| Fault::NotUrl { why })?;
    let (url, is_hub) = match url.scheme() {
        "http" | "https" => (url, false),
        "hf" => (resolved(&url)?, true),
        _ => return Ok(None),
    };
    // The tag of the Hub is in its redirect, not in the answer of the site that has the file.
    let redirects = if is_hub { Policy::none() } else { Policy::limited(10) };
    let client = plain_client(&url, options, redirects, is_hub)?;
    options.meter.begin();
    let answer = runtime::wait(options.interrupt, async move { client.head(url).send().await })?;
    let Ok(answer) = answer else { return Ok(None) };
    if !answer.status().is_success() && !answer.status().is_redirection() {
        return Ok(None);
    }
    let headers = answer.headers();
    let one = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let digests = ["repr-digest", "content-digest", "digest"].into_iter().filter_map(one);
    Ok(Some(Head {
        linked_etag: one("x-linked-etag").filter(|_| is_hub),
        commit: one("x-repo-commit").filter(|_| is_hub),
        digests: digests.collect(),
    }))
}

/// The answer of the Hub's API to a question, at most 64 MiB.
pub(crate) fn api(question: &str, options: &RemoteOptions) -> Result<Vec<u8>> {
    const LONGEST: usize = 64 << 20;
    let url = format!("{}/api/{question}", endpoint());
    let asked = Url::parse(&url).map_err(|why| Fault::NotUrl { why })?;
    let client = plain_client(&asked, options, Policy::limited(10), true)?;
    options.meter.begin();
    let answer = runtime::wait(options.interrupt, async move {
        let mut answer = client.get(asked).send().await?.error_for_status()?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            if bytes.len().saturating_add(chunk.len()) > LONGEST {
                break;
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    })?;
    answer.map_err(|error: reqwest::Error| {
        let kind = match error.status().map(|status| status.as_u16()) {
            Some(401 | 403) => std::io::ErrorKind::PermissionDenied,
            Some(404) => std::io::ErrorKind::NotFound,
            _ => std::io::ErrorKind::Other,
        };
        let error = std::io::Error::new(kind, error.without_url().to_string());
        zt::Error::from(error).with_path(url.as_ref())
    })
}

/// A client for one question about `url`. It does not leave an encrypted connection for another.
fn plain_client(
    url: &Url,
    options: &RemoteOptions,
    redirects: Policy,
    is_hub: bool,
) -> Result<Client> {
    choose_cryptography();
    let mut headers = HeaderMap::new();
    if let Some(token) = token().filter(|_| is_hub) {
        headers.insert(AUTHORIZATION, bearer(&token)?);
    }
    let client = Client::builder()
        .user_agent(concat!("zt/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .connect_timeout(options.timeout)
        .timeout(options.timeout)
        .http1_only()
        .https_only(url.scheme() == "https")
        .redirect(redirects)
        .build();
    client.map_err(|error| Fault::settings(&error).into())
}

fn token() -> Option<String> {
    env::var("HF_TOKEN").ok().filter(|token| !token.is_empty())
}

fn bearer(token: &str) -> Result<HeaderValue> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| Fault::settings(&NOT_A_HEADER))?;
    value.set_sensitive(true);
    Ok(value)
}
