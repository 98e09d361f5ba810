//! Files of stores, with the traffic of all of them.

use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use zt_remote::{Meter, RemoteFolder, RemoteOptions};
pub(crate) use zt_remote::{Remote as Opened, Upload};

use crate::failure::signals;
use crate::files::remote::RemoteArgs;
use crate::output::Output;
use crate::output::size::human;
use crate::output::text::count;

/// The traffic of all files.
static METER: LazyLock<Meter> = LazyLock::new(Meter::default);
/// Whether the traffic is printed at the end.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

fn options(arguments: &RemoteArgs) -> RemoteOptions {
    IS_SHOWN.fetch_or(arguments.requests, Ordering::Relaxed);
    RemoteOptions::new()
        .allow_http(arguments.allow_http)
        .meter(&METER)
        .interrupt(|| signals::caught().is_some())
}

pub(crate) fn open(path: &Path, arguments: &RemoteArgs) -> zt::Result<Opened> {
    let opened = Opened::open(&super::secrets::address(path), &options(arguments));
    opened.map_err(|error| error.with_path(path))
}

pub(crate) fn create(path: &Path, overwrite: bool, arguments: &RemoteArgs) -> zt::Result<Upload> {
    let options = options(arguments).overwrite(overwrite);
    let created = Upload::create(&super::secrets::address(path), &options);
    created.map_err(|error| error.with_path(path))
}

/// A folder that the files of a set are written to.
pub(crate) fn folder(path: &Path, arguments: &RemoteArgs) -> zt::Result<RemoteFolder> {
    let folder = RemoteFolder::new(&super::secrets::address(path), &options(arguments));
    folder.map_err(|error| error.with_path(path))
}

/// Prints what was sent and received, if it was asked for.
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
