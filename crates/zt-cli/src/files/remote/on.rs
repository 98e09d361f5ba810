//! How stores are asked, with the traffic of all files.

use std::io::{self, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zt_model::LocationOptions;
use zt_remote::{Meter, RemoteOptions};

use crate::failure::signals;
use crate::files::remote::RemoteArgs;
use crate::output::Output;
use crate::output::size::human;
use crate::output::text::count;

/// The traffic of all files.
static METER: LazyLock<Meter> = LazyLock::new(Meter::default);
/// Whether the traffic is printed at the end.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

pub(crate) fn options(arguments: &RemoteArgs) -> LocationOptions<'static> {
    IS_SHOWN.fetch_or(arguments.requests, Ordering::Relaxed);
    let stores = RemoteOptions::new()
        .allow_http(arguments.allow_http)
        .meter(&METER)
        .timeout(Duration::from_secs(arguments.timeout))
        .notice(|message| {
            // An error of stderr cannot be reported.
            let _ = writeln!(io::stderr(), "note: {message}");
        })
        .interrupt(|| signals::caught().is_some());
    LocationOptions::new().remote(stores)
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
