//! A remote file that is written from front to back.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::{
    GetOptions, GetRange, MultipartUpload, ObjectStoreExt, PutMode, PutOptions, UploadPart,
};
use tokio::task::AbortHandle;
use zt::container::memory::in_memory;
use zt::{Error, Result};

use crate::address::Address;
use crate::error::{Fault, of_store};
use crate::options::RemoteOptions;
use crate::runtime::{self, PAUSE};

/// Stores refuse shorter parts, except for the last one.
const SHORTEST_PART: u64 = 5 << 20;

/// How long an upload that is dropped waits for its parts, and then for the store.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Stores accept at most 10,000 parts, so parts become longer after every 1,000.
const STEP: u64 = 1000;

/// Parts that stay at a store cost money, so a refused cancellation is tried again.
const ABORTS: usize = 3;

/// An object that is written. It appears at [`Upload::finish`], as a whole.
///
/// Bytes go out in parts, several at once, while the caller makes the next. An upload that is dropped
/// before it is finished is cancelled, and its parts are deleted.
///
/// An existing object is not replaced, unless [`RemoteOptions::overwrite`] is set. For an object of one
/// part, the store checks that as a condition of the request. Stores have no such condition for several
/// parts: there, two requests ask whether the object exists, at the beginning and before the end.
///
/// ```no_run
/// use zt::{Dense, WriteOptions};
///
/// let mut upload = zt_remote::create("s3://models/new.zt")?;
/// let mut writer = WriteOptions::new().to_writer(&mut upload)?;
/// writer.add("bias", &Dense::from_slice(&[2], &[0.5f32, 1.0])?)?;
/// writer.finish()?;
/// upload.finish()?;
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug)]
pub struct Upload {
    address: Address,
    options: RemoteOptions,
    buffer: Vec<u8>,
    /// Parts so far, and their bytes.
    parts: u64,
    sent: u64,
    /// `None` until there is more than one part.
    multipart: Option<Box<dyn MultipartUpload>>,
    flight: Arc<Flight>,
    is_done: bool,
}

/// Parts on their way.
#[derive(Debug, Default)]
struct Flight {
    state: Mutex<State>,
    landed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    parts: usize,
    bytes: u64,
    failure: Option<Error>,
    /// The tasks that send parts, also those that have ended.
    tasks: Vec<AbortHandle>,
}

impl Flight {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `is_full` is true: until there is room for another part, or until no part is on its way.
    /// Ends when `is_due` returns `true`.
    fn wait_while(
        &self,
        is_full: impl Fn(&State) -> bool,
        is_due: impl Fn() -> bool,
    ) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while is_full(&state) && !is_due() {
            let waited = self.landed.wait_timeout(state, PAUSE);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn land(&self, bytes: u64, outcome: Result<()>) {
        let mut state = self.state();
        state.parts = state.parts.strict_sub(1);
        state.bytes = state.bytes.strict_sub(bytes);
        if let Err(error) = outcome {
            state.failure.get_or_insert(error);
        }
        drop(state);
        self.landed.notify_all();
    }
}

impl Upload {
    /// Begins to write the object at `url`. Nothing is visible before [`Upload::finish`].
    ///
    /// # Errors
    ///
    /// As [`crate::create`].
    pub fn create(url: &str, options: &RemoteOptions) -> Result<Self> {
        Self::at(Address::new(url, options)?, options)
    }

    pub(crate) fn at(address: Address, options: &RemoteOptions) -> Result<Self> {
        let upload = Upload {
            address,
            options: options.clone(),
            buffer: Vec::new(),
            parts: 0,
            sent: 0,
            multipart: None,
            flight: Arc::default(),
            is_done: false,
        };
        if !upload.address.is_writable {
            return Err(upload.named(Fault::ReadOnly.into()));
        }
        upload.expect_absent()?;
        Ok(upload)
    }

    /// The URL, without a query and without a password.
    pub fn url(&self) -> &str {
        &self.address.text
    }

    /// Makes the object visible. The store has all of its bytes then.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if a part could not be written; code `overwrite` if an object of this name
    /// exists.
    ///
    /// A signal does not end the last request: its answer is awaited for [`RemoteOptions::timeout`], and if
    /// the object is complete by then, there is no error.
    ///
    /// After an error, nothing stays at the store, with two exceptions if an answer of the store was lost:
    ///
    /// * an object of this name and length may exist, and the message says so;
    /// * parts stay if the lost answer had the identifier of the upload, because clients cannot find it.
    pub fn finish(mut self) -> Result<()> {
        let finished = self.finish_parts();
        if finished.is_ok() {
            self.is_done = true;
        }
        // `drop` cancels a failed upload.
        finished.map_err(|error| self.named(error))
    }

    fn finish_parts(&mut self) -> Result<()> {
        if self.multipart.is_none() {
            return self.put_whole();
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        let is_due = || self.is_interrupted();
        let mut state = self.flight.wait_while(|state| state.parts > 0, is_due);
        if let Some(error) = state.failure.take() {
            return Err(error);
        }
        if state.parts > 0 {
            return Err(Fault::Interrupted.into());
        }
        drop(state);
        self.expect_absent()?;
        let Some(mut multipart) = self.multipart.take() else {
            return Ok(());
        };
        self.options.meter.begin();
        let (interrupt, patience) = (self.options.interrupt, self.options.timeout);
        let (multipart, completed) = runtime::wait(None, async move {
            let completed = runtime::patient(interrupt, patience, multipart.complete()).await;
            (multipart, completed)
        })?;
        let error = match completed {
            // After a signal, too: the object is there.
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => of_store(&error),
            None => Fault::Interrupted.into(),
        };
        self.multipart = Some(multipart);
        Err(self.checked(error))
    }

    /// The error of a completion. An answer can be lost, and a second attempt then finds no upload.
    fn checked(&self, error: Error) -> Error {
        let (store, path) = (Arc::clone(&self.address.store), self.address.path.clone());
        self.options.meter.begin();
        let look = async move { store.head(&path).await };
        match runtime::wait_for(self.options.timeout, look) {
            Some(Ok(found)) if found.size == self.sent => {
                let why = error.to_string();
                Fault::Uncertain { why }.into()
            }
            _ => error,
        }
    }

    /// A short object is one request.
    fn put_whole(&mut self) -> Result<()> {
        let mode = if self.options.overwrite { PutMode::Overwrite } else { PutMode::Create };
        let (store, path) = (Arc::clone(&self.address.store), self.address.path.clone());
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        self.options.meter.begin();
        self.options.meter.send(bytes.len() as u64);
        let payload = bytes.clone();
        let (interrupt, patience) = (self.options.interrupt, self.options.timeout);
        let put = runtime::wait(None, async move {
            let put = store.put_opts(&path, payload.into(), PutOptions::from(mode));
            runtime::patient(interrupt, patience, put).await
        })?;
        let error = match put {
            // After a signal, too: the object is there.
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => of_store(&error),
            None => Fault::Interrupted.into(),
        };
        if self.is_ours(bytes) {
            return Ok(());
        }
        Err(error)
    }

    /// Whether the object has exactly these bytes. The answer to a request can be lost, and a second attempt
    /// then finds the object of the first.
    fn is_ours(&self, bytes: Bytes) -> bool {
        let (store, path) = (Arc::clone(&self.address.store), self.address.path.clone());
        let len = bytes.len() as u64;
        self.options.meter.begin();
        let meter = self.options.meter.clone();
        let look = async move {
            let range = Some(GetRange::Bounded(0..len));
            let found = store.get_opts(&path, GetOptions::new().with_range(range));
            let found = found.await.ok().filter(|found| found.meta.size == len)?;
            let there = found.bytes().await.ok()?;
            meter.receive(there.len() as u64);
            Some(there == bytes)
        };
        matches!(runtime::wait_for(self.options.timeout, look), Some(Some(true)))
    }

    fn expect_absent(&self) -> Result<()> {
        if self.options.overwrite {
            return Ok(());
        }
        match is_there(&self.address, &self.options) {
            Ok(true) => Err(self.named(Fault::Exists.into())),
            Ok(false) => Ok(()),
            Err(error) => Err(self.named(error)),
        }
    }

    fn is_interrupted(&self) -> bool {
        self.options.interrupt.is_some_and(|is_due| is_due())
    }

    fn named(&self, error: Error) -> Error {
        error.with_path(self.address.text.as_ref())
    }

    /// The length of the next part. With 10,000 parts, a first length of 8 MiB is enough for 240 GiB and
    /// more.
    fn part_len(&self) -> u64 {
        let shortest = self.options.part.max(SHORTEST_PART);
        // Saturating: an option may be the largest number.
        shortest.saturating_mul((self.parts / STEP).strict_add(1))
    }

    /// Sends the buffer as a part, once there is room for one.
    fn send_part(&mut self) -> Result<()> {
        let (memory, most) = (self.options.memory, self.options.in_flight);
        let len = self.buffer.len() as u64;
        let is_full = |state: &State| {
            let is_over = state.bytes.strict_add(len) > memory || state.parts >= most;
            state.parts > 0 && state.failure.is_none() && is_over
        };
        let is_due = || self.is_interrupted();
        let mut state = self.flight.wait_while(is_full, is_due);
        if let Some(error) = &state.failure {
            return Err(error.clone());
        }
        if is_full(&state) {
            return Err(Fault::Interrupted.into());
        }
        state.parts = state.parts.strict_add(1);
        state.bytes = state.bytes.strict_add(len);
        drop(state);
        let sent = self.begin_part();
        let flight = Arc::clone(&self.flight);
        let spawned = sent.and_then(|part| {
            let task = runtime::spawn(async move {
                let outcome = part.await.map_err(|error| of_store(&error));
                flight.land(len, outcome);
            })?;
            let mut state = self.flight.state();
            state.tasks.retain(|task| !task.is_finished());
            state.tasks.push(task);
            Ok(())
        });
        spawned.inspect_err(|error| self.flight.land(len, Err(error.clone())))
    }

    fn begin_part(&mut self) -> Result<UploadPart> {
        let multipart = match &mut self.multipart {
            Some(multipart) => multipart,
            none => {
                let (store, path) = (Arc::clone(&self.address.store), self.address.path.clone());
                self.options.meter.begin();
                let (interrupt, patience) = (self.options.interrupt, self.options.timeout);
                let begun = runtime::wait(None, async move {
                    let begun = store.put_multipart(&path);
                    runtime::patient(interrupt, patience, begun).await
                })?;
                let begun = begun.ok_or(Fault::Interrupted)?;
                none.insert(begun.map_err(|error| of_store(&error))?)
            }
        };
        let next = Vec::with_capacity(self.buffer.len());
        let bytes = Bytes::from(std::mem::replace(&mut self.buffer, next));
        self.parts = self.parts.strict_add(1);
        self.sent = self.sent.strict_add(bytes.len() as u64);
        self.options.meter.begin();
        self.options.meter.send(bytes.len() as u64);
        Ok(multipart.put_part(bytes.into()))
    }
}

/// Whether the object exists.
pub(crate) fn is_there(address: &Address, options: &RemoteOptions) -> Result<bool> {
    let (store, path) = (Arc::clone(&address.store), address.path.clone());
    options.meter.begin();
    match runtime::wait(options.interrupt, async move { store.head(&path).await })? {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(of_store(&error)),
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.part_len().strict_sub(self.buffer.len() as u64);
        if room == 0 {
            self.send_part().map_err(|error| io::Error::from(self.named(error)))?;
            return self.write(bytes);
        }
        let len = in_memory(room.min(bytes.len() as u64));
        self.buffer.extend_from_slice(bytes.split_at(len).0);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        // Stores refuse parts that are too short, so the buffer is not sent.
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.flight.state();
        state.failure.get_or_insert(Fault::Cancelled.into());
        drop(state);
        // A part that arrives after the upload was cancelled could stay at the store.
        let since = Instant::now();
        let is_due = || since.elapsed() > PATIENCE || self.is_interrupted();
        let state = self.flight.wait_while(|state| state.parts > 0, is_due);
        state.tasks.iter().for_each(AbortHandle::abort);
        drop(state);
        if let Some(mut multipart) = self.multipart.take() {
            // `drop` cannot return an error. Rules of a bucket can delete old parts.
            let _ = runtime::wait_for(PATIENCE, async move {
                for _ in 0..ABORTS {
                    if multipart.abort().await.is_ok() {
                        break;
                    }
                }
            });
        }
    }
}
