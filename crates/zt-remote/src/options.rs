//! Options of connections, reads and uploads.

use std::time::Duration;

use crate::traffic::Meter;

/// Options of a connection. Their defaults suit a store in the same region.
///
/// Credentials come from the environment by each cloud's own names (`AWS_ACCESS_KEY_ID`,
/// `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME`, `HF_TOKEN`), or from the machine's
/// own identity.
///
/// ```
/// let options = zt_remote::RemoteOptions::new()
///     .setting("aws_region", "eu-central-1")
///     .memory(256 << 20);
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) allow_http: bool,
    pub(crate) overwrite: bool,
    pub(crate) end_first: Vec<&'static str>,
    pub(crate) memory: u64,
    pub(crate) part: u64,
    pub(crate) in_flight: usize,
    pub(crate) timeout: Duration,
    pub(crate) retries: usize,
    pub(crate) meter: Meter,
    pub(crate) interrupt: Option<fn() -> bool>,
    pub(crate) notice: Option<fn(&str)>,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        RemoteOptions {
            settings: Vec::new(),
            allow_http: false,
            overwrite: false,
            end_first: Vec::new(),
            memory: 192 << 20,
            part: 8 << 20,
            in_flight: 16,
            timeout: Duration::from_secs(30),
            retries: 8,
            meter: Meter::default(),
            interrupt: None,
            notice: None,
        }
    }
}

impl RemoteOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a setting of the store. `object_store` defines the keys: `aws_endpoint`,
    /// `google_service_account`, `azure_storage_account_name`. A setting takes precedence over the
    /// environment. Settings of other stores are ignored.
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Sets whether connections may be unencrypted. They are refused by default.
    pub fn allow_http(mut self, allow_http: bool) -> Self {
        self.allow_http = allow_http;
        self
    }

    /// Sets whether an upload may replace an object. It is refused by default.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Adds extensions of files whose end is fetched when they are opened, not their beginning: `zt`, whose
    /// manifest is there. Default: none.
    pub fn end_first(mut self, extensions: impl IntoIterator<Item = &'static str>) -> Self {
        self.end_first.extend(extensions);
        self
    }

    /// Sets how many bytes may be in memory beside the caller's: fetched ahead, or waiting for an upload.
    /// Default: 192 MiB. At least two parts are held.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the bytes of one request. Longer ranges are fetched by several at once. Default: 8 MiB.
    /// Uploads need at least 5 MiB.
    pub fn part(mut self, bytes: u64) -> Self {
        self.part = bytes.max(1);
        self
    }

    /// Sets the number of requests at a time. Default: 16. Four requests of less than 256 KiB count as one.
    pub fn in_flight(mut self, requests: usize) -> Self {
        self.in_flight = requests.max(1);
        self
    }

    /// Sets the longest wait for an answer, and for the next bytes of one. Default: 30 seconds. Fewer than
    /// 1 KiB a second over this time are an error. A request is sent again for three times as long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how often a failed request is repeated. Default: 8 times, with growing waits.
    pub fn retries(mut self, retries: usize) -> Self {
        self.retries = retries;
        self
    }

    /// Sets a function that is called once for each store, when a request to it is sent again.
    pub fn notice(mut self, notice: fn(&str)) -> Self {
        self.notice = Some(notice);
        self
    }

    /// Sets the meter that counts requests and bytes. Several files can share it.
    pub fn meter(mut self, meter: &Meter) -> Self {
        self.meter = meter.clone();
        self
    }

    /// Sets a function that is called several times a second while a call waits for the network. If it
    /// returns `true`, the call ends with [`zt::ErrorKind::Interrupted`].
    pub fn interrupt(mut self, interrupt: fn() -> bool) -> Self {
        self.interrupt = Some(interrupt);
        self
    }
}
