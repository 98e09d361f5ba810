//! URLs where a command takes a path.

#[cfg(feature = "remote")]
mod on;
mod secrets;

use std::io;
use std::path::Path;

use clap::Args;
use zt::{Error, ErrorKind, FileSource, codes};
use zt_convert::foreign;
#[cfg(not(feature = "remote"))]
use zt_model::LocationOptions;

#[cfg(feature = "remote")]
pub(crate) use on::{options, report};
pub(crate) use secrets::{location, without_secrets};

use crate::failure::Failure;
use crate::files::stdin::refuse_stdin;
#[cfg(not(feature = "remote"))]
use crate::output::Output;

/// Seconds.
const TIMEOUT: u64 = 30;

/// The options of every command that takes URLs.
#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// Allow unencrypted connections, for URLs that begin with http://
    #[arg(long, display_order = 83)]
    pub(crate) allow_http: bool,

    /// Print at the end how many requests stores were sent, and how many bytes came back
    #[arg(long, display_order = 84)]
    pub(crate) requests: bool,

    /// Wait for an answer of a server for at most this long; one that sends less than 1 KiB a second is
    /// not waited for either. A request is sent again for three times as long
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = TIMEOUT,
        value_parser = clap::value_parser!(u64).range(1..=3600),
        display_order = 85
    )]
    pub(crate) timeout: u64,
}

impl Default for RemoteArgs {
    fn default() -> Self {
        RemoteArgs { allow_http: false, requests: false, timeout: TIMEOUT }
    }
}

pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(foreign::is_url)
}

/// Refuses stdin, a URL and a folder where one file is edited.
pub(crate) fn expect_file(path: &Path, what: &str) -> Result<(), Failure> {
    refuse_stdin(path)?;
    expect_local(path, what)?;
    if path.is_dir() {
        // The system says why, or nothing.
        let error = FileSource::open(path)
            .map_or_else(Error::from, |_| io::Error::from(io::ErrorKind::IsADirectory).into());
        return Err(Failure::Refused(error.with_path(path)));
    }
    Ok(())
}

/// Refuses a URL where a file of this machine is changed, measured or made.
pub(crate) fn expect_local(path: &Path, what: &str) -> Result<(), Failure> {
    if !is_url(path) {
        return Ok(());
    }
    let message = format!("{what}: use a file of this machine");
    let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message);
    Err(Failure::Error(error.with_path(path)))
}

/// Without stores, every URL is refused when it is opened.
#[cfg(not(feature = "remote"))]
pub(crate) fn options(_: &RemoteArgs) -> LocationOptions<'static> {
    LocationOptions::new()
}

#[cfg(not(feature = "remote"))]
pub(crate) fn report(_: &Output) {}
