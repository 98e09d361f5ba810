//! The stores of clouds: buckets and containers.

#[cfg(any(feature = "aws", feature = "azure"))]
use std::env;
use std::sync::Arc;

use object_store::path::Path;
use url::Url;
use zt::Result;

use crate::address::Located;
use crate::client::{Connector, client, retry};
use crate::error::Fault;
use crate::options::RemoteOptions;

/// The path of an object in a bucket.
fn path_of(url: &Url) -> Result<Path> {
    let path = Path::from_url_path(url.path());
    path.map_err(|error| Fault::settings(&error).into())
}

/// The store of a builder, with the settings of `$options` that it knows.
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
            .with_http_connector(Connector::of_store($options))
            .with_retry(retry($options))
            .build()
            .map_err(|error| Fault::settings(&error))?
    }};
}

/// The URL of the bucket or container alone.
fn bucket_of(url: &Url) -> String {
    let mut bucket = url.clone();
    bucket.set_path("");
    bucket.to_string()
}

#[cfg(feature = "aws")]
pub(crate) fn of_aws(url: &Url, options: &RemoteOptions) -> Result<Located> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
    let mut options = options.clone();
    let builder = with_profile(AmazonS3Builder::from_env())?;
    // A user who names an unencrypted server has asked for it.
    let mut endpoint = [Key::S3Endpoint, Key::Endpoint].into_iter();
    let endpoint = endpoint.find_map(|key| builder.get_config_value(&key));
    let is_unencrypted = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    options.allow_http |= is_unencrypted || is_set("AWS_ALLOW_HTTP");
    // Many servers that speak the protocol cannot delete several objects with one request.
    let builder = builder.with_disable_bulk_delete(true);
    let store = configured!(builder, url, &options);
    Ok((Arc::new(store), path_of(url)?))
}

/// Adds the settings of the user's profile, unless the environment has them.
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
        builder = builder.with_access_key_id(keys.id).with_secret_access_key(keys.secret);
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
pub(crate) fn of_google(url: &Url, options: &RemoteOptions) -> Result<Located> {
    use object_store::gcp::GoogleCloudStorageBuilder;
    let store = configured!(GoogleCloudStorageBuilder::from_env(), url, options);
    Ok((Arc::new(store), path_of(url)?))
}

#[cfg(feature = "azure")]
pub(crate) fn of_azure(url: &Url, options: &RemoteOptions) -> Result<Located> {
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
