//! URLs in the place of paths.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};
use zt::Source as _;
use zt_remote::{Remote, RemoteOptions, Upload, is_url};

use crate::share::error::Result;
use crate::share::work::{IS_STOPPED, Watch};

/// The path as a URL, if it is one.
pub(crate) fn url_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| is_url(text))
}

/// The settings of a store, by the names of `object_store`.
pub(crate) fn options(settings: Option<&Bound<'_, PyDict>>) -> Result<RemoteOptions> {
    let mut options = RemoteOptions::new().interrupt(|| IS_STOPPED.load(Ordering::Relaxed));
    for (key, value) in settings.into_iter().flatten() {
        let key: String = key.extract()?;
        let text = match value.cast::<PyBool>() {
            Ok(is_on) => is_on.is_true().to_string(),
            Err(_) => value.str()?.to_string(),
        };
        if key == "timeout" {
            let seconds: u64 = value.extract()?;
            options = options.timeout(Duration::from_secs(seconds.max(1)));
            continue;
        }
        if key.ends_with("allow_http") {
            options = options.allow_http(text.eq_ignore_ascii_case("true"));
        }
        options = options.setting(key, text);
    }
    Ok(options)
}

/// Begins the object at a URL.
pub(crate) fn create(url: &str, remote: &RemoteOptions, overwrite: bool) -> zt::Result<Upload> {
    Upload::create(url, &remote.clone().overwrite(overwrite))
}

/// The bytes of an object, such as the index of a checkpoint. `most`: how many there may be. The store states
/// the length, and we allocate that much.
#[pyfunction]
#[pyo3(signature = (url, storage_options = None, *, most = 1 << 30))]
pub(crate) fn read_object<'py>(
    py: Python<'py>,
    url: &str,
    storage_options: Option<&Bound<'py, PyDict>>,
    most: u64,
) -> Result<Bound<'py, PyBytes>> {
    let remote = options(storage_options)?;
    let bytes = Watch::default().run(py, |_| {
        let object = Remote::open(url, &remote)?;
        if object.byte_len() > most {
            return Ok(None);
        }
        let mut bytes = zt::Buffer::try_zeroed(object.byte_len())?;
        object.read_at(0, &mut bytes)?;
        Ok(Some(bytes))
    })?;
    let large = || PyValueError::new_err(format!("the object has more than {most} bytes"));
    let bytes = bytes.ok_or_else(large)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Writes the object at a URL in one step. It replaces an existing one.
#[pyfunction]
#[pyo3(signature = (url, data, storage_options = None))]
pub(crate) fn write_object(
    py: Python<'_>,
    url: &str,
    data: &[u8],
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<()> {
    let remote = options(storage_options)?;
    Watch::default().run(py, |_| {
        let mut upload = create(url, &remote, true)?;
        upload.write_all(data)?;
        upload.finish()
    })
}
