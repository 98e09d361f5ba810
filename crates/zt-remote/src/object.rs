//! One version of an object of a store.

use std::ops::Range;

use bytes::BytesMut;
use futures_util::TryStreamExt;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStoreExt};
use tokio::task::yield_now;
use zt::{Error, Result};

use crate::address::Address;
use crate::error::{Fault, has_answer, of_store};
use crate::traffic::Meter;

/// Bytes of an object.
pub(crate) type Bytes = bytes::Bytes;

/// Which end of a file its reader needs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

/// An object whose version is fixed. Bytes of another version are an error, never a part of a result.
#[derive(Debug)]
pub(crate) struct Object {
    address: Address,
    meta: ObjectMeta,
    meter: Meter,
    /// The caller's meter, which other files may share.
    total: Meter,
}

impl Object {
    /// Opens the object with one request, which fetches up to `len` bytes of one end. Returns these
    /// bytes and their offset.
    pub(crate) async fn open(
        address: Address,
        end: End,
        len: u64,
        total: Meter,
    ) -> Result<(Self, u64, Bytes)> {
        let meter = Meter::default();
        let range = match end {
            End::First => GetRange::Bounded(0..len),
            End::Last => GetRange::Suffix(len),
        };
        let options = GetOptions::new().with_range(Some(range));
        meter.begin();
        total.begin();
        let answer = match address.store.get_opts(&address.path, options).await {
            Ok(answer) => answer,
            Err(error) => {
                return Self::open_unranged(address, [meter, total], end, len, &error).await;
            }
        };
        let (meta, range) = (answer.meta.clone(), answer.range.clone());
        let found = range.end.checked_sub(range.start).filter(|_| range.end <= meta.size);
        if found.is_none_or(|found| found > len) {
            let (expected, found) = (len, found.unwrap_or(0));
            return Err(Fault::Length { expected, found }.into());
        }
        let object = Object { address, meta, meter, total };
        let memory = BytesMut::new();
        let bytes = object.receive(answer, range.clone(), memory).await?;
        Ok((object, range.start, bytes))
    }

    /// Opens an object whose server refused the range: an empty object has none, and Azure knows no
    /// suffixes.
    async fn open_unranged(
        address: Address,
        [meter, total]: [Meter; 2],
        end: End,
        len: u64,
        error: &object_store::Error,
    ) -> Result<(Self, u64, Bytes)> {
        let is_final = matches!(
            error,
            object_store::Error::NotFound { .. }
                | object_store::Error::PermissionDenied { .. }
                | object_store::Error::Unauthenticated { .. }
        );
        // Without an answer to the first request there is none to another.
        if is_final || !has_answer(error) {
            return Err(of_store(error));
        }
        meter.begin();
        total.begin();
        let head = address.store.head(&address.path).await;
        let meta = head.map_err(|_| of_store(error))?;
        let object = Object { address, meta, meter, total };
        let byte_len = object.byte_len();
        if byte_len == 0 {
            return Ok((object, 0, Bytes::new()));
        }
        let range = match end {
            End::First => return Err(of_store(error)),
            End::Last => byte_len.strict_sub(len.min(byte_len))..byte_len,
        };
        let bytes = object.fetch(range.clone(), BytesMut::new()).await?;
        Ok((object, range.start, bytes))
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.meta.size
    }

    /// The tag, or the time of the last change; `None` if the server gives neither.
    pub(crate) fn version(&self) -> Option<String> {
        let time = self.meta.last_modified;
        let time = (time.timestamp() != 0).then(|| time.to_rfc3339());
        self.meta.e_tag.clone().or(time)
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The bytes of `range`, which lies within the object and is not empty. `memory`, which is empty, holds
    /// them, and grows if needed.
    pub(crate) async fn fetch(&self, range: Range<u64>, mut memory: BytesMut) -> Result<Bytes> {
        let strong = |tag: &&String| !tag.starts_with("W/");
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            // A weak tag never matches a condition. It is compared below.
            if_match: self.meta.e_tag.as_ref().filter(strong).cloned(),
            version: self.meta.version.clone(),
            ..GetOptions::default()
        };
        self.meter.begin();
        self.total.begin();
        let address = &self.address;
        let found = address.store.get_opts(&address.path, options).await;
        let found = found.map_err(|error| of_store(&error))?;
        let byte_len = range.end.strict_sub(range.start);
        memory.reserve(usize::try_from(byte_len).unwrap_or_default());
        self.receive(found, range, memory).await
    }

    /// The body of `found` in `memory`, if it is `range` of this version.
    async fn receive(
        &self,
        found: GetResult,
        range: Range<u64>,
        mut memory: BytesMut,
    ) -> Result<Bytes> {
        let (ours, theirs) = (&self.meta, &found.meta);
        // A tag that disappears may be a sign of another version, too.
        let has_tag = ours.e_tag.is_some();
        let is_same =
            ours.e_tag == theirs.e_tag && (has_tag || ours.last_modified == theirs.last_modified);
        if !is_same || ours.size != theirs.size {
            return Err(Fault::Changed.into());
        }
        let expected = range.end.strict_sub(range.start);
        let of_range = |found: u64| {
            if found == expected {
                Ok(())
            } else {
                Err(Error::from(Fault::Length { expected, found }))
            }
        };
        let found_len = found.range.end.checked_sub(range.start);
        let found_len = found_len.filter(|_| found.range.start == range.start);
        of_range(found_len.unwrap_or(0))?; // Another range has none of these bytes.
        // Other transfers run between two of these.
        yield_now().await;
        let mut body = found.into_stream();
        while let Some(chunk) = body.try_next().await.map_err(|error| of_store(&error))? {
            let received = (memory.len() as u64).strict_add(chunk.len() as u64);
            if received > expected {
                of_range(received)?;
            }
            memory.extend_from_slice(&chunk);
        }
        let bytes = memory.freeze();
        self.meter.receive(bytes.len() as u64);
        self.total.receive(bytes.len() as u64);
        of_range(bytes.len() as u64)?;
        Ok(bytes)
    }
}
