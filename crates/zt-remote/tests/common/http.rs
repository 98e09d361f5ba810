//! Requests and responses of HTTP/1.1, as far as clients of stores use it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub(crate) struct Headers(pub(crate) Vec<(String, String)>);

impl Headers {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.remove(name);
        self.0.push((name.to_owned(), value.into()));
    }

    fn read(lines: &mut impl BufRead) -> Option<Self> {
        let mut headers = Headers::default();
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).ok()?;
            if line.trim().is_empty() {
                return Some(headers);
            }
            let (key, value) = line.split_once(':')?;
            headers.0.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        for (key, value) in &self.0 {
            write!(to, "{key}: {value}\r\n")?;
        }
        to.write_all(b"\r\n")
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) target: String,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The next request of a connection; `None` at its end.
    pub(crate) fn read(from: &mut impl BufRead) -> Option<Self> {
        let mut first = String::new();
        from.read_line(&mut first).ok()?;
        let mut words = first.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let headers = Headers::read(from)?;
        let len = headers.get("content-length").unwrap_or("0").parse().ok()?;
        let mut body = vec![0; len];
        from.read_exact(&mut body).ok()?;
        Some(Request { method, target, headers, body })
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        let path = self.target.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }

    /// The value of a parameter of the query; empty for one without a value.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let pairs = query.split('&');
        let mut pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The bytes that the header `Range` names, of `total`.
    pub(crate) fn range(&self, total: usize) -> Option<Range<usize>> {
        let range = self.headers.get("range")?;
        let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
        let (from, to) = match (from.parse::<usize>(), to.parse::<usize>()) {
            (Ok(from), Ok(to)) => (from, to + 1),
            (Ok(from), _) => (from, total),
            (_, Ok(len)) => (total.saturating_sub(len), total),
            _ => return None,
        };
        Some(from.min(total)..to.min(total))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    bytes: Arc<Vec<u8>>,
    part: Range<usize>,
}

impl Response {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let bytes = Arc::new(body.into());
        let part = 0..bytes.len();
        Self::of(status, bytes, part)
    }

    /// One whose body is a part of `bytes`.
    pub(crate) fn of(status: u16, bytes: Arc<Vec<u8>>, part: Range<usize>) -> Self {
        let mut headers = Headers::default();
        headers.set("Content-Length", part.len().to_string());
        Response { status, headers, bytes, part }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.set(name, value);
        self
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.part.clone()]
    }

    pub(crate) fn set_body(&mut self, body: Vec<u8>) {
        self.headers.set("Content-Length", body.len().to_string());
        self.part = 0..body.len();
        self.bytes = Arc::new(body);
    }

    /// Writes the head, and `len` bytes of the body.
    pub(crate) fn write(&self, to: &mut impl Write, len: usize) -> io::Result<()> {
        write!(to, "HTTP/1.1 {} Status\r\n", self.status)?;
        self.headers.write(to)?;
        to.write_all(&self.body()[..len])?;
        to.flush()
    }

    /// Writes the head without a length, and the body in two chunks.
    pub(crate) fn write_in_chunks(&mut self, to: &mut impl Write) -> io::Result<()> {
        self.headers.remove("Content-Length");
        self.headers.set("Transfer-Encoding", "chunked");
        write!(to, "HTTP/1.1 {} Status\r\n", self.status)?;
        self.headers.write(to)?;
        let (first, second) = self.body().split_at(self.body().len() / 2);
        for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
            write!(to, "{:x}\r\n", part.len())?;
            to.write_all(part)?;
            to.write_all(b"\r\n")?;
        }
        to.write_all(b"0\r\n\r\n")?;
        to.flush()
    }

    /// The answer of the server at `port` to `request`.
    pub(crate) fn from_server(port: u16, request: &Request) -> io::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        let mut headers = request.headers.clone();
        headers.set("Connection", "close");
        write!(stream, "{} {} HTTP/1.1\r\n", request.method, request.target)?;
        headers.write(&mut stream)?;
        stream.write_all(&request.body)?;
        let mut answer = BufReader::new(stream);
        let mut first = String::new();
        answer.read_line(&mut first)?;
        let status = first.split_whitespace().nth(1).and_then(|s| s.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let mut headers = Headers::read(&mut answer).ok_or(io::ErrorKind::InvalidData)?;
        let mut body = Vec::new();
        if request.method != "HEAD" {
            answer.read_to_end(&mut body)?;
        }
        if headers.get("transfer-encoding").is_some() {
            headers.remove("transfer-encoding");
            body = unchunked(&body);
        }
        headers.remove("connection");
        if request.method != "HEAD" {
            headers.set("Content-Length", body.len().to_string());
        }
        Ok(Response { status, headers, part: 0..body.len(), bytes: Arc::new(body) })
    }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let mut line = String::new();
        if body.read_line(&mut line).is_err() {
            return whole;
        }
        match usize::from_str_radix(line.trim(), 16) {
            Ok(len @ 1..) if len < body.len() => {
                whole.extend_from_slice(&body[..len]);
                body = &body[len + 2..];
            }
            _ => return whole,
        }
    }
}
