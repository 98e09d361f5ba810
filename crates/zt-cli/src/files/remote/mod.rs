//! URLs where a command takes a path.

mod secrets;

use std::io;
use std::path::Path;
#[cfg(feature = "remote")]
use std::{
    io::Write,
    sync::LazyLock,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use clap::Args;
use zt::{Error, ErrorKind, FileSource, codes};
use zt_convert::foreign;
use zt_model::{Location, LocationOptions};
#[cfg(feature = "remote")]
use zt_remote::{Meter, RemoteOptions};

pub(crate) use secrets::without_secrets;

use crate::failure::Failure;
#[cfg(feature = "remote")]
use crate::failure::signals;
use crate::files::kinds;
use crate::files::stdin::refuse_stdin;
use crate::output::Output;
#[cfg(feature = "remote")]
use crate::output::{size::human, text::count};

/// The traffic of all files.
#[cfg(feature = "remote")]
static METER: LazyLock<Meter> = LazyLock::new(Meter::default);
/// Whether the traffic is printed at the end.
#[cfg(feature = "remote")]
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Seconds.
const TIMEOUT: u64 = 30;

/// The options of every command that takes URLs.
#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// Allow unencrypted connections, for URLs that begin with http://
    #[arg(long, display_order = 83, hide_short_help = true)]
    pub(crate) allow_http: bool,

    /// Print at the end how many requests stores were sent, and how many bytes came back
    #[arg(long, display_order = 84, hide_short_help = true)]
    pub(crate) requests: bool,

    /// Wait for an answer of a server for at most this long; one that sends less than 1 KiB a second is
    /// not waited for either. A request is sent again for three times as long
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = TIMEOUT,
        value_parser = clap::value_parser!(u64).range(1..=3600),
        hide_short_help = true,
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

/// What was typed, with the secrets of its URL.
pub(crate) fn location(path: &Path) -> Location {
    let url = path.to_str().and_then(secrets::url_of);
    url.map_or_else(|| Location::new(path), |url| Location::url(url, path))
}

/// The URL that was typed, with its secrets.
#[cfg(feature = "remote")]
pub(crate) fn typed_url(path: &Path) -> Option<String> {
    let url = path.to_str()?;
    secrets::url_of(url).or_else(|| foreign::is_like_url(url).then(|| url.to_owned()))
}

/// How files are opened: the connections to stores.
#[cfg(feature = "remote")]
pub(crate) fn options(arguments: &RemoteArgs) -> LocationOptions<'static> {
    LocationOptions::new().kinds(kinds::table().clone()).remote(stores(arguments))
}

/// The connections to stores.
#[cfg(feature = "remote")]
pub(crate) fn stores(arguments: &RemoteArgs) -> RemoteOptions {
    IS_SHOWN.fetch_or(arguments.requests, Ordering::Relaxed);
    RemoteOptions::new()
        .allow_http(arguments.allow_http)
        .meter(&METER)
        .timeout(Duration::from_secs(arguments.timeout))
        .notice(|message| {
            // An error of stderr cannot be reported.
            let _ = writeln!(io::stderr(), "note: {message}");
        })
        .interrupt(|| signals::caught().is_some())
}

/// Prints what was sent and received, if it was asked for.
#[cfg(feature = "remote")]
pub(crate) fn report(output: &Output) {
    if !IS_SHOWN.load(Ordering::Relaxed) {
        return;
    }
    let traffic = METER.traffic();
    let mut note = count(traffic.requests, "request", "requests");
    note.push_str(&format!("; {} received", human(traffic.bytes)));
    if traffic.sent > 0 {
        note.push_str(&format!(", {} sent", human(traffic.sent)));
    }
    output.note(&note);
}

/// Without stores, every URL is refused when it is opened.
#[cfg(not(feature = "remote"))]
pub(crate) fn options(_: &RemoteArgs) -> LocationOptions<'static> {
    LocationOptions::new().kinds(kinds::table().clone())
}

#[cfg(not(feature = "remote"))]
pub(crate) fn report(_: &Output) {}
