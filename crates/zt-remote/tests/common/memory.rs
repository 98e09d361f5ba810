//! Objects in memory, served as a web server and as S3 does.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::http::{Request, Response};

#[derive(Debug, Default)]
pub(crate) struct Objects {
    objects: HashMap<String, Object>,
    /// Parts of uploads, by upload and number.
    uploads: HashMap<u64, BTreeMap<u64, Vec<u8>>>,
    /// Uploads and versions so far.
    count: u64,
}

#[derive(Debug)]
struct Object {
    bytes: Arc<Vec<u8>>,
    version: u64,
}

impl Objects {
    pub(crate) fn put(&mut self, name: &str, bytes: impl Into<Arc<Vec<u8>>>) {
        self.count += 1;
        let object = Object { bytes: bytes.into(), version: self.count };
        self.objects.insert(name.to_owned(), object);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Vec<u8>> {
        let object = self.objects.get(name)?;
        Some(object.bytes.to_vec())
    }

    pub(crate) fn replace(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(mut bytes) = self.get(name) {
            change(&mut bytes);
            self.put(name, bytes);
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.objects.keys().cloned().collect();
        names.sort();
        names
    }

    pub(crate) fn uploads(&self) -> usize {
        self.uploads.len()
    }

    pub(crate) fn answer(&mut self, request: &mut Request) -> Response {
        let upload = request.parameter("uploadId").map(str::to_owned);
        let upload = upload.map(|id| id.parse().unwrap_or_default());
        match (&*request.method, upload) {
            ("GET" | "HEAD", _) => self.send(request),
            ("POST", None) => self.begin(),
            ("POST", Some(id)) => self.complete(request, id),
            ("PUT", None) => {
                let bytes = std::mem::take(&mut request.body);
                self.store(request, bytes)
            }
            ("PUT", Some(id)) => self.part(request, id),
            ("DELETE", Some(id)) => match self.uploads.remove(&id) {
                Some(_) => Response::new(204, ""),
                None => Response::new(404, ""),
            },
            ("DELETE", None) => {
                self.objects.remove(request.name());
                Response::new(204, "")
            }
            _ => Response::new(405, ""),
        }
    }

    fn send(&self, request: &Request) -> Response {
        let Some(object) = self.objects.get(request.name()) else {
            return Response::new(404, "");
        };
        let tag = format!("\"{}\"", object.version);
        if request.headers.get("if-match").is_some_and(|wanted| wanted != tag) {
            return Response::new(412, "");
        }
        let total = object.bytes.len();
        let range = request.range(total);
        let (status, part) = match range.clone() {
            Some(part) if part.is_empty() => return Response::new(416, ""),
            Some(part) => (206, part),
            None => (200, 0..total),
        };
        let response = Response::of(status, Arc::clone(&object.bytes), part)
            .with("ETag", tag)
            .with("Last-Modified", "Tue, 24 Nov 2026 10:00:00 GMT");
        match range {
            Some(part) => {
                let range = format!("bytes {}-{}/{total}", part.start, part.end - 1);
                response.with("Content-Range", range)
            }
            None => response,
        }
    }

    fn store(&mut self, request: &Request, bytes: Vec<u8>) -> Response {
        let is_new = request.headers.get("if-none-match") == Some("*");
        if is_new && self.objects.contains_key(request.name()) {
            return Response::new(412, "");
        }
        self.put(request.name(), bytes);
        Response::new(200, "").with("ETag", format!("\"{}\"", self.count))
    }

    fn begin(&mut self) -> Response {
        self.count += 1;
        self.uploads.insert(self.count, BTreeMap::new());
        let id = self.count;
        let answer = "InitiateMultipartUploadResult";
        Response::new(200, format!("<{answer}><UploadId>{id}</UploadId></{answer}>"))
    }

    fn part(&mut self, request: &mut Request, id: u64) -> Response {
        let number = request.parameter("partNumber").unwrap_or("0").parse();
        match (self.uploads.get_mut(&id), number) {
            (Some(parts), Ok(number)) => {
                parts.insert(number, std::mem::take(&mut request.body));
                Response::new(200, "").with("ETag", format!("\"{number}\""))
            }
            _ => Response::new(404, ""),
        }
    }

    fn complete(&mut self, request: &Request, id: u64) -> Response {
        let Some(parts) = self.uploads.get(&id) else {
            return Response::new(404, "");
        };
        let parts: Vec<&[u8]> = parts.values().map(Vec::as_slice).collect();
        let whole = parts.concat();
        let stored = self.store(request, whole);
        if stored.status != 200 {
            return stored;
        }
        self.uploads.remove(&id);
        let answer = "CompleteMultipartUploadResult";
        let tag = format!("<{answer}><ETag>{}</ETag></{answer}>", self.count);
        Response::new(200, tag)
    }
}
