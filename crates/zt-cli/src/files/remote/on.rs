//! Files of stores, with the traffic of all of them.

use std::io::{self, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zt::container::memory;
use zt::{Source, Span};
use zt_convert::foreign::TargetFolder;
use zt_convert::{CHECKPOINT_METADATA, Input, InputOptions, Kinds};
use zt_remote::{Meter, Remote, RemoteFolder, RemoteOptions, Upload};

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
        .end_first(Kinds::builtin().read_from_end())
        .allow_http(arguments.allow_http)
        .meter(&METER)
        .timeout(Duration::from_secs(arguments.timeout))
        .notice(|message| {
            // An error of stderr cannot be reported.
            let _ = writeln!(io::stderr(), "note: {message}");
        })
        .interrupt(|| signals::caught().is_some())
}

/// Opens the file at a URL, or the file that describes a checkpoint's folder there.
pub(crate) fn open(
    path: &Path,
    arguments: &RemoteArgs,
    options: &InputOptions,
) -> zt::Result<Input> {
    let address = super::secrets::address(path);
    let remote = Remote::open_or_within(&address, CHECKPOINT_METADATA, &self::options(arguments));
    let remote = remote.map_err(|error| error.with_path(path))?;
    let is_within = remote.url().ends_with(CHECKPOINT_METADATA);
    let url = if is_within { remote.url().into() } else { path.to_owned() };
    Kinds::builtin().open_in(remote.clone(), url, &remote, options)
}

/// All bytes of a list, of at most 64 MiB.
pub(crate) fn bytes(path: &Path, arguments: &RemoteArgs) -> zt::Result<Vec<u8>> {
    const LONGEST: u64 = 64 << 20;
    let read = || {
        let remote = Remote::open(&super::secrets::address(path), &options(arguments))?;
        let whole = Span::new(0, remote.byte_len()).filter(|whole| whole.byte_len() <= LONGEST);
        let whole = whole.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut bytes = Vec::new();
        memory::fetch(&mut bytes, &remote, whole)?;
        Ok(bytes)
    };
    read().map_err(|error: zt::Error| error.with_path(path))
}

/// Uploads the file that `write` writes. If anything fails, the upload is cancelled.
pub(crate) fn write<T>(
    path: &Path,
    overwrite: bool,
    arguments: &RemoteArgs,
    write: impl FnOnce(&mut Upload) -> zt::Result<T>,
) -> zt::Result<T> {
    let options = options(arguments).overwrite(overwrite);
    let uploaded = || {
        let mut upload = Upload::create(&super::secrets::address(path), &options)?;
        let written = write(&mut upload)?;
        upload.finish()?;
        Ok(written)
    };
    uploaded().map_err(|error: zt::Error| error.with_path(path))
}

/// A folder that the files of a set are written to.
pub(crate) fn folder(path: &Path, arguments: &RemoteArgs) -> zt::Result<Box<dyn TargetFolder>> {
    match RemoteFolder::new(&super::secrets::address(path), &options(arguments)) {
        Ok(folder) => Ok(Box::new(folder)),
        Err(error) => Err(error.with_path(path)),
    }
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
