//! A URL becomes a store and the path of an object in it.

use std::env;
use std::sync::Arc;

use object_store::path::{Path, PathPart};
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use url::Url;
use zt::Result;
use zt_foreign::without_secrets;

use crate::error::Fault;
use crate::options::RemoteOptions;

/// The site of the Hub, unless `HF_ENDPOINT` names another.
const HUB: &str = "https://huggingface.co";

/// An object that may or may not exist.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    /// The URL without secrets, for messages.
    pub(crate) text: String,
    /// Whether the store takes uploads in parts.
    pub(crate) is_writable: bool,
}

impl Address {
    /// The store and path of `url`.
    pub(crate) fn new(url: &str, options: &RemoteOptions) -> Result<Self> {
        let parsed = Url::parse(url).map_err(|why| Fault::NotUrl { why })?;
        if parsed.path().is_empty() || parsed.path().ends_with('/') {
            return Err(Fault::NoFile.into());
        }
        let text = without_secrets(url);
        let is_writable = matches!(
            parsed.scheme(),
            "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss" | "file" | "memory"
        );
        let (store, path) = match parsed.scheme() {
            #[cfg(feature = "http")]
            "hf" => of_hub(&parsed, options)?,
            #[cfg(feature = "http")]
            "http" | "https" => of_server(&parsed, options, None)?,
            #[cfg(feature = "aws")]
            "s3" | "s3a" => of_aws(&parsed, options)?,
            #[cfg(feature = "gcp")]
            "gs" => of_google(&parsed, options)?,
            #[cfg(feature = "azure")]
            "az" | "azure" | "abfs" | "abfss" => of_azure(&parsed, options)?,
            "file" => of_disk(&parsed)?,
            scheme => {
                let scheme = scheme.to_owned();
                return Err(Fault::Scheme { scheme }.into());
            }
        };
        Ok(Address {
            store,
            path,
            text,
            is_writable,
        })
    }

    /// The file's name, the last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.filename().unwrap_or_default()
    }

    /// The object at `location` below the same folder.
    ///
    /// # Errors
    ///
    /// Code `path` for a location that could be elsewhere: a file must not make its reader fetch another
    /// address.
    pub(crate) fn below(&self, location: &str) -> Result<Self> {
        let is_plain = |name: &str| {
            !matches!(name, "" | "." | "..")
                && !name.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'))
        };
        if !location.split('/').all(is_plain) {
            return Err(Fault::Elsewhere.into());
        }
        let mut parts: Vec<_> = self.path.parts().collect();
        parts.pop();
        // A part is encoded: its characters have no meaning in a URL.
        parts.extend(location.split('/').map(PathPart::from));
        let address = self.text.split('?').next().unwrap_or_default();
        let folder = address.rsplit_once('/').map_or("", |(folder, _)| folder);
        Ok(Address {
            store: Arc::clone(&self.store),
            path: parts.into_iter().collect(),
            text: format!("{folder}/{location}"),
            is_writable: self.is_writable,
        })
    }
}

/// What all clients have in common.
fn client(options: &RemoteOptions) -> ClientOptions {
    choose_cryptography();
    ClientOptions::new()
        .with_allow_http(options.allow_http)
        .with_connect_timeout(options.timeout)
        .with_read_timeout(options.timeout)
        // A long body may take its time as long as bytes come.
        .with_timeout_disabled()
}

/// TLS uses ring, unless the program has chosen another implementation for all its connections.
fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // It fails only if another thread was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

fn retry(options: &RemoteOptions) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: options.retries,
        ..RetryConfig::default()
    }
}

fn settings_fault(error: &object_store::Error) -> zt::Error {
    let why = without_secrets(&error.to_string());
    Fault::Settings { why }.into()
}

/// The path of an object in a bucket.
fn path_of(url: &Url) -> Result<Path> {
    let path = Path::from_url_path(url.path());
    path.map_err(|error| {
        Fault::Settings {
            why: error.to_string(),
        }
        .into()
    })
}

/// Applies the settings that `$builder` knows.
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
macro_rules! configured {
    ($builder:expr, $url:expr, $options:expr) => {{
        let mut builder = $builder.with_url(bucket_of($url));
        for (key, value) in &$options.settings {
            if let Ok(key) = key.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        builder
            .with_client_options(client($options))
            .with_retry(retry($options))
            .build()
            .map_err(|error| settings_fault(&error))?
    }};
}

/// The URL of the bucket or container alone.
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
fn bucket_of(url: &Url) -> String {
    let mut bucket = url.clone();
    bucket.set_path("");
    bucket.to_string()
}

#[cfg(feature = "aws")]
fn of_aws(url: &Url, options: &RemoteOptions) -> Result<(Arc<dyn ObjectStore>, Path)> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
    let mut options = options.clone();
    let builder = with_profile(AmazonS3Builder::from_env())?;
    // A user who names an unencrypted server has asked for it.
    let mut endpoint = [Key::S3Endpoint, Key::Endpoint].into_iter();
    let endpoint = endpoint.find_map(|key| builder.get_config_value(&key));
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    options.allow_http |= is_plain || is_set("AWS_ALLOW_HTTP");
    // Many servers that speak the protocol cannot delete several objects with one request.
    let builder = builder.with_disable_bulk_delete(true);
    let store = configured!(builder, url, &options);
    Ok((Arc::new(store), path_of(url)?))
}

/// Adds the settings of the user's profile that the environment does not have.
#[cfg(feature = "aws")]
fn with_profile(
    mut builder: object_store::aws::AmazonS3Builder,
) -> Result<object_store::aws::AmazonS3Builder> {
    use object_store::aws::AmazonS3ConfigKey as Key;
    let profile = crate::profile::Profile::of_environment()?;
    let has = |builder: &object_store::aws::AmazonS3Builder, key| {
        builder.get_config_value(&key).is_some()
    };
    if let Some(keys) = profile.credentials
        && !has(&builder, Key::AccessKeyId)
        && !has(&builder, Key::WebIdentityTokenFile)
    {
        builder = builder
            .with_access_key_id(keys.id)
            .with_secret_access_key(keys.secret);
        if let Some(token) = keys.token {
            builder = builder.with_token(token);
        }
    }
    if let Some(region) = profile.region
        && !has(&builder, Key::Region)
        && !has(&builder, Key::DefaultRegion)
    {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = profile.endpoint
        && !has(&builder, Key::S3Endpoint)
        && !has(&builder, Key::Endpoint)
        && !is_set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
    {
        builder = builder.with_endpoint(endpoint);
    }
    Ok(builder)
}

#[cfg(feature = "gcp")]
fn of_google(url: &Url, options: &RemoteOptions) -> Result<(Arc<dyn ObjectStore>, Path)> {
    use object_store::gcp::GoogleCloudStorageBuilder;
    let store = configured!(GoogleCloudStorageBuilder::from_env(), url, options);
    Ok((Arc::new(store), path_of(url)?))
}

#[cfg(feature = "azure")]
fn of_azure(url: &Url, options: &RemoteOptions) -> Result<(Arc<dyn ObjectStore>, Path)> {
    use object_store::azure::MicrosoftAzureBuilder;
    let mut options = options.clone();
    options.allow_http |= is_set("AZURE_ALLOW_HTTP");
    let store = configured!(MicrosoftAzureBuilder::from_env(), url, &options);
    Ok((Arc::new(store), path_of(url)?))
}

#[cfg(any(feature = "aws", feature = "azure"))]
fn is_set(name: &str) -> bool {
    env::var(name).is_ok_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true"))
}

fn of_disk(url: &Url) -> Result<(Arc<dyn ObjectStore>, Path)> {
    use object_store::local::LocalFileSystem;
    let path = url.to_file_path().map_err(|()| Fault::NoFile)?;
    let path = Path::from_absolute_path(path);
    let path = path.map_err(|error| Fault::Settings {
        why: error.to_string(),
    })?;
    Ok((Arc::new(LocalFileSystem::new()), path))
}

/// A file of a web server. Its folder is the store, and a query stays with it: signed URLs have their
/// signature there.
#[cfg(feature = "http")]
fn of_server(
    url: &Url,
    options: &RemoteOptions,
    token: Option<&str>,
) -> Result<(Arc<dyn ObjectStore>, Path)> {
    use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
    use object_store::http::HttpBuilder;

    if url.scheme() == "http" && !options.allow_http {
        return Err(Fault::NotEncrypted.into());
    }
    let mut folder = url.clone();
    folder.set_fragment(None);
    let name = url.path_segments().and_then(Iterator::last);
    let name = name.unwrap_or_default().to_owned();
    if let Ok(mut segments) = folder.path_segments_mut() {
        segments.pop();
    }
    let mut client = client(options);
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            let why = "HF_TOKEN has characters that a header cannot hold".to_owned();
            Fault::Settings { why }
        })?;
        value.set_sensitive(true);
        client = client.with_default_headers(HeaderMap::from_iter([(AUTHORIZATION, value)]));
    }
    let store = HttpBuilder::new()
        .with_url(folder)
        .with_client_options(client)
        .with_retry(retry(options))
        .build()
        .map_err(|error| settings_fault(&error))?;
    let path = Path::from_url_path(name);
    let path = path.map_err(|error| Fault::Settings {
        why: error.to_string(),
    })?;
    Ok((Arc::new(store), path))
}

/// A file of a repository on the Hub: `hf://OWNER/REPOSITORY[@REVISION]/PATH`, and `hf://datasets/...`,
/// `hf://spaces/...`. A revision with a slash is written with `%2F`.
#[cfg(feature = "http")]
fn of_hub(url: &Url, options: &RemoteOptions) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let mut parts: Vec<&str> = url.host_str().into_iter().collect();
    parts.extend(url.path_segments().into_iter().flatten());
    let kind = match parts.first() {
        Some(&("datasets" | "spaces")) => Some(parts.remove(0)),
        _ => None,
    };
    // A URL takes what stands before an @ for a user.
    if !url.username().is_empty() || parts.len() < 3 {
        return Err(Fault::Hub.into());
    }
    let [owner, repository, path @ ..] = &parts[..] else {
        return Err(Fault::Hub.into());
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
