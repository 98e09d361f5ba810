//! The clients of stores and web servers: how long they wait, and where their credentials go.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue};
use reqwest::redirect::{Attempt, Policy};

use tokio::time::{Instant, Sleep};

use crate::options::RemoteOptions;

/// The least bytes a second of a body. Of an upload, for the time in which it must be answered.
const LEAST_RATE: u64 = 1 << 10;

/// A service of the machine itself, which has its credentials, answers at once or not at all.
const OF_MACHINE: Duration = Duration::from_secs(1);

/// Redirects that are followed, at most.
const REDIRECTS: usize = 10;

/// Why a client gives up.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("no answer within {seconds} s")]
    Silent { seconds: u64 },
    #[error("fewer than {least} bytes a second came")]
    Slow { least: u64 },
    #[error(
        "the store redirects to {host}, where credentials are not sent: check the endpoint and the region"
    )]
    Redirected { host: String },
}

/// A failure that another try would not mend. `HttpError` puts words before its source, and this is the source
/// of another `HttpError`, so it has the text of the source alone.
#[derive(Debug)]
struct Permanent(HttpError);

impl fmt::Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source() {
            Some(source) => fmt::Display::fmt(source, f),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl StdError for Permanent {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// The options of every client that object_store looks at itself.
pub(crate) fn client(options: &RemoteOptions) -> ClientOptions {
    ClientOptions::new().with_allow_http(options.allow_http).with_connect_timeout(options.timeout)
}

/// How often a request is repeated, and for how long.
pub(crate) fn retry(options: &RemoteOptions) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: options.retries,
        retry_timeout: options.timeout.saturating_mul(3),
    }
}

/// Makes the clients of one store.
#[derive(Debug)]
pub(crate) struct Connector {
    options: RemoteOptions,
    /// Headers of every request, which have the credentials of a web server.
    headers: HeaderMap,
    /// Credentials of a store are in headers that a client would send to any address.
    stays: bool,
}

impl Connector {
    /// For a store with credentials: redirects to another host or port are errors.
    #[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
    pub(crate) fn of_store(options: &RemoteOptions) -> Self {
        Connector { options: options.clone(), headers: HeaderMap::new(), stays: true }
    }

    /// For a web server. These headers, which are sensitive, are not sent to another host or port.
    #[cfg(feature = "http")]
    pub(crate) fn of_server(options: &RemoteOptions, headers: HeaderMap) -> Self {
        Connector { options: options.clone(), headers, stays: false }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        choose_cryptography();
        let of = |options: &ClientOptions, key| options.get_config_value(&key);
        let ours = of(&client(&self.options), ClientConfigKey::ConnectTimeout);
        let connect = if of(options, ClientConfigKey::ConnectTimeout) == ours {
            self.options.timeout
        } else {
            OF_MACHINE
        };
        let allows_http = of(options, ClientConfigKey::AllowHttp);
        let redirects =
            if self.stays { Policy::custom(within_origin) } else { Policy::limited(REDIRECTS) };
        let client = reqwest::Client::builder()
            .user_agent(concat!("zt/", env!("CARGO_PKG_VERSION")))
            .default_headers(self.headers.clone())
            .connect_timeout(connect)
            .http1_only()
            .https_only(allows_http.as_deref() != Some("true"))
            .redirect(redirects)
            .build();
        let client = client.map_err(|error| object_store::Error::Generic {
            store: "HTTP",
            source: error.into(),
        })?;
        Ok(HttpClient::new(Patient {
            client: HttpClient::new(client),
            timeout: self.options.timeout,
            notice: self.options.notice,
            has_failed: AtomicBool::new(false),
            is_noticed: AtomicBool::new(false),
        }))
    }
}

/// Follows a redirect within one host and port only.
fn within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let first = attempt.previous().first().map(url::Url::origin);
    if first != Some(attempt.url().origin()) {
        let host = attempt.url().host_str().unwrap_or_default().to_owned();
        return attempt.error(Failure::Redirected { host });
    }
    match attempt.previous().len() {
        0..=REDIRECTS => attempt.follow(),
        _ => attempt.stop(),
    }
}

/// TLS uses ring, unless the program has chosen another implementation for all its connections.
pub(crate) fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// A client that waits for an answer for a limited time, and says when a request is sent again.
struct Patient {
    client: HttpClient,
    timeout: Duration,
    notice: Option<fn(&str)>,
    /// The last request failed in a way that another try may mend.
    has_failed: AtomicBool,
    is_noticed: AtomicBool,
}

impl fmt::Debug for Patient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patient").finish_non_exhaustive()
    }
}

type Called<'c> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

impl HttpService for Patient {
    fn call<'this, 'call>(&'this self, request: HttpRequest) -> Called<'call>
    where
        'this: 'call,
        Self: 'call,
    {
        Box::pin(self.answer(request))
    }
}

impl Patient {
    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if self.has_failed.swap(false, Ordering::Relaxed)
            && let Some(notice) = self.notice
            && !self.is_noticed.swap(true, Ordering::Relaxed)
        {
            let host = request.uri().host().unwrap_or_default();
            notice(&format!("{host} does not answer as it should: trying again"));
        }
        let sent = request.body().content_length() as u64;
        let limit = self.timeout.saturating_add(Duration::from_secs(sent / LEAST_RATE));
        let answered = tokio::time::timeout(limit, self.client.execute(request)).await;
        let answered = answered.unwrap_or_else(|_| {
            let seconds = limit.as_secs();
            Err(HttpError::new(HttpErrorKind::Timeout, Failure::Silent { seconds }))
        });
        let may_mend = match &answered {
            Ok(response) => {
                let status = response.status();
                status.is_server_error() || matches!(status.as_u16(), 408 | 429)
            }
            Err(error) if is_permanent(error) => {
                return answered
                    .map_err(|error| HttpError::new(HttpErrorKind::Unknown, Permanent(error)));
            }
            Err(_) => true,
        };
        self.has_failed.store(may_mend, Ordering::Relaxed);
        let timeout = self.timeout;
        answered.map(|answer| with_length(answer).map(|body| Watched::of(body, timeout)))
    }
}

/// The body of an answer, which must come at least at [`LEAST_RATE`].
struct Watched {
    body: HttpResponseBody,
    /// The time over which the rate is measured, and its end.
    timeout: Duration,
    end: Pin<Box<Sleep>>,
    /// Bytes since its beginning.
    came: u64,
}

impl Watched {
    fn of(body: HttpResponseBody, timeout: Duration) -> HttpResponseBody {
        HttpResponseBody::new(Watched {
            body,
            timeout,
            end: Box::pin(tokio::time::sleep(timeout)),
            came: 0,
        })
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let len = frame.data_ref().map_or(0, Bytes::len) as u64;
            self.came = self.came.strict_add(len);
        }
        if polled.is_ready() || self.end.as_mut().poll(context).is_pending() {
            return polled;
        }
        let least = u128::from(LEAST_RATE).strict_mul(self.timeout.as_millis()) / 1000;
        if u128::from(self.came) < least {
            let slow = Failure::Slow { least: LEAST_RATE };
            return Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Timeout, slow))));
        }
        if let Some(next) = Instant::now().checked_add(self.timeout) {
            self.end.as_mut().reset(next);
        }
        self.came = 0;
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// Gives the answer to a request for a range its length, which proxies leave out if they send the body
/// in chunks.
fn with_length(mut response: HttpResponse) -> HttpResponse {
    let headers = response.headers_mut();
    let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    if let Some(len) = range.and_then(byte_len)
        && !headers.contains_key(CONTENT_LENGTH)
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
    }
    response
}

/// The number of bytes of `bytes FIRST-LAST/ALL`.
fn byte_len(range: &str) -> Option<u64> {
    let (range, _) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    last.checked_sub(first)?.checked_add(1)
}

/// Whether another try would fail in the same way: nothing listens at the address, or its certificate is
/// not to be trusted.
fn is_permanent(error: &HttpError) -> bool {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return matches!(failure, Failure::Redirected { .. });
        }
        if error.is::<rustls::Error>() {
            return true;
        }
        next = error.source();
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                return true;
            }
            // Its source is that of the error within it.
            next = error.get_ref().map(|inner| inner as &(dyn StdError + 'static)).or(next);
        }
    }
    false
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use std::task::ready;

    use object_store::client::HttpRequestBody;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Sends this many bytes every second for 100 seconds, or never answers.
    #[derive(Debug)]
    struct Server(Option<usize>);

    impl HttpService for Server {
        fn call<'this, 'call>(&'this self, _: HttpRequest) -> Called<'call>
        where
            'this: 'call,
            Self: 'call,
        {
            Box::pin(async {
                let Some(rate) = self.0 else {
                    return std::future::pending().await;
                };
                Ok(HttpResponse::new(HttpResponseBody::new(Drip {
                    rate,
                    left: 100,
                    next: Box::pin(tokio::time::sleep(SECOND)),
                })))
            })
        }
    }

    struct Drip {
        rate: usize,
        left: usize,
        next: Pin<Box<Sleep>>,
    }

    impl Body for Drip {
        type Data = Bytes;
        type Error = HttpError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
            ready!(self.next.as_mut().poll(context));
            let Some(left) = self.left.checked_sub(1) else {
                return Poll::Ready(None);
            };
            self.left = left;
            self.next.as_mut().reset(Instant::now() + SECOND);
            let piece = Bytes::from(vec![0; self.rate]);
            Poll::Ready(Some(Ok(Frame::data(piece))))
        }
    }

    /// The length of an answer. Its clock is not the machine's: it goes on when all tasks wait.
    fn read(rate: Option<usize>) -> Result<usize, HttpError> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let patient = Patient {
            client: HttpClient::new(Server(rate)),
            timeout: 30 * SECOND,
            notice: None,
            has_failed: AtomicBool::new(false),
            is_noticed: AtomicBool::new(false),
        };
        runtime.block_on(async {
            let answer = patient.call(HttpRequest::new(HttpRequestBody::empty()));
            let body = answer.await?.into_body().bytes().await?;
            Ok(body.len())
        })
    }

    #[test]
    fn a_slow_body_is_an_error_and_a_long_one_is_not() {
        assert_eq!(read(Some(2 << 10)).unwrap(), 200 << 10);
        for (rate, expected) in
            [(Some(1 << 9), "fewer than 1024 bytes a second came"), (None, "no answer within 30 s")]
        {
            let error = read(rate).unwrap_err();
            assert_eq!(error.kind(), HttpErrorKind::Timeout);
            assert_eq!(error.source().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn a_range_has_a_length() {
        assert_eq!(byte_len("bytes 10-19/100"), Some(10));
        assert_eq!(byte_len("bytes 10-19/*"), Some(10));
        for wrong in
            ["", "bytes */100", "bytes 9-8/100", "items 1-2/3", "bytes 0-18446744073709551615/1"]
        {
            assert_eq!(byte_len(wrong), None, "{wrong}");
        }
    }
}
