//! URLs where a command takes a path.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zt::{Error, ErrorKind, codes};
use zt_convert::foreign;

use crate::failure::Failure;

/// Each URL with a secret: as it is shown everywhere, and as it is.
static URLS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

fn urls() -> MutexGuard<'static, Vec<(String, String)>> {
    URLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The argument without the secrets of its URL, which are kept for [`address`]. So no message, no
/// document and no error of another library can show them.
pub(crate) fn without_secrets(argument: OsString) -> OsString {
    let Some(text) = argument.to_str() else {
        return argument;
    };
    let (option, url) = match text.split_once('=') {
        Some((option, url)) if option.starts_with('-') => (Some(option), url),
        _ => (None, text),
    };
    let clean = foreign::without_secrets(url);
    if !foreign::is_url(url) || clean == url {
        return argument;
    }
    let mut urls = urls();
    let same = urls
        .iter()
        .filter(|(shown, real)| shown.starts_with(&clean) && real != url);
    let shown = match same.count() {
        0 => clean,
        others => format!("{clean}{}", others.saturating_add(1)),
    };
    urls.push((shown.clone(), url.to_owned()));
    match option {
        Some(option) => format!("{option}={shown}").into(),
        None => shown.into(),
    }
}

/// The URL with its secrets.
#[cfg(feature = "remote")]
fn address(path: &Path) -> String {
    let text = path.to_string_lossy();
    let urls = urls();
    let known = urls.iter().find(|(shown, _)| *shown == text);
    known.map_or_else(|| text.clone().into_owned(), |(_, url)| url.clone())
}

pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(foreign::is_url)
}

/// The URL without its query, for its extension.
pub(crate) fn without_query(path: &Path) -> PathBuf {
    match path.to_str().filter(|text| foreign::is_url(text)) {
        Some(url) => url.split('?').next().unwrap_or_default().into(),
        None => path.to_owned(),
    }
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

#[cfg(feature = "remote")]
pub(crate) use on::{create, open, report};

#[cfg(feature = "remote")]
mod on {
    use std::path::Path;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    use zt_remote::{Meter, RemoteOptions};
    pub(crate) use zt_remote::{Remote as Opened, Upload};

    use crate::args::remote::RemoteArgs;
    use crate::output::Output;
    use crate::output::size::human;
    use crate::output::text::count;
    use crate::signals;

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
        let opened = Opened::open(&super::address(path), &options(arguments));
        opened.map_err(|error| error.with_path(path))
    }

    pub(crate) fn create(
        path: &Path,
        overwrite: bool,
        arguments: &RemoteArgs,
    ) -> zt::Result<Upload> {
        let options = options(arguments).overwrite(overwrite);
        let created = Upload::create(&super::address(path), &options);
        created.map_err(|error| error.with_path(path))
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
}

#[cfg(not(feature = "remote"))]
pub(crate) use off::{create, open, report};

/// A build without the feature refuses every URL.
#[cfg(not(feature = "remote"))]
mod off {
    use std::convert::Infallible;
    use std::io::{self, Write};
    use std::path::Path;

    use zt::{Error, ErrorKind, Source, codes};
    use zt_convert::foreign::{Folder, Opened as Found};

    use crate::args::remote::RemoteArgs;
    use crate::output::Output;

    /// No file is ever opened.
    #[derive(Debug, Clone)]
    pub(crate) struct Opened(Infallible);
    /// No upload is ever begun.
    pub(crate) struct Upload(Infallible);

    impl Source for Opened {
        fn byte_len(&self) -> u64 {
            match self.0 {}
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
            match self.0 {}
        }
    }

    impl Folder for Opened {
        fn open(&self, _: &[&str]) -> Vec<Found> {
            match self.0 {}
        }
    }

    impl Write for Upload {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            match self.0 {}
        }
        fn flush(&mut self) -> io::Result<()> {
            match self.0 {}
        }
    }

    impl Upload {
        pub(crate) fn finish(self) -> zt::Result<()> {
            match self.0 {}
        }
    }

    fn refused<T>(path: &Path) -> zt::Result<T> {
        let message = "this build opens no URLs: build it with the feature `remote`";
        let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message);
        Err(error.with_path(path))
    }

    pub(crate) fn open(path: &Path, _: &RemoteArgs) -> zt::Result<Opened> {
        refused(path)
    }

    pub(crate) fn create(path: &Path, _: bool, _: &RemoteArgs) -> zt::Result<Upload> {
        refused(path)
    }

    pub(crate) fn report(_: &Output) {}
}
