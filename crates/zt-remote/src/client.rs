//! The options that all clients of stores share.

use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::options::RemoteOptions;

/// The options of every client.
pub(crate) fn client(options: &RemoteOptions) -> ClientOptions {
    choose_cryptography();
    ClientOptions::new()
        .with_allow_http(options.allow_http)
        .with_connect_timeout(options.timeout)
        .with_read_timeout(options.timeout)
        // A long body may take long, as long as bytes arrive.
        .with_timeout_disabled()
}

/// TLS uses ring, unless the program has chosen another implementation for all its connections.
fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

pub(crate) fn retry(options: &RemoteOptions) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: options.retries,
        ..RetryConfig::default()
    }
}
