//! The stored ranges of all components of a file, each range once.

use std::cmp::Reverse;

use zt_container::{DigestAlgorithm, Encoding, Span, ZstdFault, check_declared};
use zt_manifest::{ByteOrder, DType};

use crate::cores::progress::Gauge;
use crate::cores::scan::{Job, Outcome, scan};
use crate::error::Result;
use crate::file::overlap::{Allowance, decoded_most};
use crate::file::tensor::{Located, Tensor};
use crate::file::{Entry, File};

/// Every component of every sound object, with the outcome of reading its bytes.
///
/// Tied weights share a blob, and a short manifest can give one blob to any number of components. The
/// bytes of a blob are read once. The memory is proportional to the number of components.
pub(crate) struct Survey<'f> {
    /// By entry: its fault, or its handle and the first of its components in `outcome_of`.
    objects: Vec<Result<(Tensor<'f>, usize)>>,
    /// By component: its outcome; `None` if its declaration was refused before a read.
    outcome_of: Vec<Option<u32>>,
    outcomes: Vec<Outcome>,
}

/// The checks that a survey makes.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// Compares every digest, whatever the file was opened with.
    pub(crate) every_digest: bool,
    pub(crate) bools: bool,
    pub(crate) content: bool,
    /// Computes the CRC-32C of content that is stored as it is.
    pub(crate) crc32c: bool,
}

/// The bytes that may still be read of the last source.
#[derive(Default)]
pub(crate) struct Spent(Option<(usize, Allowance)>);

impl Spent {
    /// Later ranges overlap none of the ranges so far.
    pub(crate) fn forget(&mut self) {
        if let Some((_, allowance)) = &mut self.0 {
            allowance.forget();
        }
    }
}

/// Components of one key have the same content.
type Key = (usize, Span, Encoding, usize);

impl<'f> Survey<'f> {
    /// Reads the bytes of all components, on the pool that calls this. `spent` is the allowance that
    /// earlier surveys of the file have left.
    /// Fails only if it is interrupted.
    pub(crate) fn of(
        file: &'f File,
        entries: &[Entry<'f>],
        wanted: Checks,
        Spent(allowance): &mut Spent,
        gauge: &Gauge<'_>,
    ) -> Result<Self> {
        let mut objects = Vec::with_capacity(entries.len());
        // Nearly every object has one component, and a list that grows takes three times the memory.
        let mut parts = Vec::with_capacity(entries.len());
        for entry in entries {
            let first = parts.len();
            objects.push(entry.tensor().map(|tensor| (tensor, first)));
            if let Some(Ok((tensor, _))) = objects.last() {
                parts.extend(tensor.located().map(|part| (*tensor, part)));
            }
        }
        let limits = &file.inner.limits;
        let mut order: Vec<(Key, Reverse<u64>, u32)> = Vec::with_capacity(parts.len());
        for ((tensor, part), at) in parts.iter().zip(0..) {
            let blob = &part.component.blob;
            if check_declared(blob, limits).is_ok() {
                order.push((key(tensor, *part), Reverse(decoded_most(blob)), at));
            }
        }
        // The first of equal ranges is counted: the one that decodes to the most.
        order.sort_unstable_by_key(|((source, span, encoding, width), decoded, at)| {
            let (offset, byte_len) = (span.offset(), span.byte_len());
            let key = (*source, offset, byte_len, *encoding as u8, *width);
            (key, *decoded, *at)
        });
        let mut outcome_of = vec![None; parts.len()];
        let mut jobs: Vec<Job<'f>> = Vec::with_capacity(order.len());
        // Ranges that overlap are read one by one. The allowance limits these reads.
        let mut refused: Vec<u32> = Vec::new();
        let mut last = None;
        for (key, _, at) in order {
            let Some(((tensor, part), outcome)) =
                place(&parts, at).zip(place_mut(&mut outcome_of, at))
            else {
                continue;
            };
            if last != Some(key) {
                let (source, ..) = key;
                let of_source = allowance.take_if(|(known, _)| *known == source);
                let (_, left) = allowance.insert(of_source.unwrap_or_else(|| {
                    let byte_len = tensor.source(*part).byte_len();
                    (source, Allowance::of(byte_len, limits))
                }));
                if left.spend_on(source, &part.component.blob).is_err() {
                    refused.push(at);
                    continue;
                }
                jobs.push(new_job(tensor, *part, wanted));
                last = Some(key);
            }
            *outcome = u32::try_from(jobs.len().strict_sub(1)).ok();
            if let Some(job) = jobs.last_mut() {
                add(job, tensor, *part, wanted);
            }
        }
        drop(parts);
        let mut outcomes = scan(&jobs, limits, gauge)?;
        if let Some((_, allowance)) = allowance.as_ref().filter(|_| !refused.is_empty()) {
            let is_refused = u32::try_from(outcomes.len()).ok();
            outcomes.push(Outcome::failed(allowance.exceeded()));
            for at in refused {
                if let Some(outcome) = place_mut(&mut outcome_of, at) {
                    *outcome = is_refused;
                }
            }
        }
        Ok(Survey { objects, outcome_of, outcomes })
    }

    /// Bytes of content that were decoded. Shared bytes count once.
    pub(crate) fn decoded_len(&self) -> u64 {
        let lens = self.outcomes.iter().flat_map(|outcome| &outcome.decoded);
        lens.fold(0, |all, len| all.strict_add(*len))
    }

    /// The handle of an entry, or its fault, and the outcome of each of its components in the order of
    /// [`Tensor::located`].
    pub(crate) fn object(
        &self,
        at: usize,
    ) -> Result<(Tensor<'f>, impl Iterator<Item = Option<&Outcome>>)> {
        let object = self.objects.get(at).cloned();
        let (tensor, first) =
            object.unwrap_or_else(|| Err(crate::error::Fault::NoSuchObject.into()))?;
        let outcomes = self.outcome_of.get(first..).unwrap_or_default().iter();
        let outcomes = outcomes.map(|outcome| {
            let at = usize::try_from((*outcome)?).ok()?;
            self.outcomes.get(at)
        });
        Ok((tensor, outcomes))
    }
}

fn place<T>(items: &[T], at: u32) -> Option<&T> {
    items.get(usize::try_from(at).ok()?)
}

fn place_mut<T>(items: &mut [T], at: u32) -> Option<&mut T> {
    items.get_mut(usize::try_from(at).ok()?)
}

fn key(tensor: &Tensor<'_>, part: Located<'_>) -> Key {
    let component = part.component;
    let width = match component.byte_order {
        ByteOrder::Big => component.dtype.map_or(1, DType::byte_len),
        _ => 1,
    };
    let blob = &component.blob;
    (tensor.source_index(part), blob.span, blob.encoding, width)
}

fn new_job<'f>(tensor: &Tensor<'f>, part: Located<'f>, wanted: Checks) -> Job<'f> {
    let (_, span, encoding, width) = key(tensor, part);
    let mut job = Job {
        source: tensor.source(part),
        span,
        encoding,
        declared: part.component.blob.decoded_len,
        width,
        digests: [None; 3],
        content: wanted.content,
        bools: false,
        is_disputed: false,
        uses: 0,
    };
    if wanted.crc32c && job.is_stored() {
        job.want(DigestAlgorithm::Crc32c);
    }
    job
}

/// One more component that has these bytes.
fn add(job: &mut Job<'_>, tensor: &Tensor<'_>, part: Located<'_>, wanted: Checks) {
    let blob = &part.component.blob;
    if wanted.every_digest || tensor.must_verify(part) {
        blob.algorithm().into_iter().for_each(|algorithm| job.want(algorithm));
    }
    job.bools |= wanted.bools && part.component.dtype == Some(DType::Bool);
    job.is_disputed |= job.declared != blob.decoded_len;
    job.declared = job.declared.max(blob.decoded_len);
    job.uses = job.uses.strict_add(1);
}

/// The length of a component's content. With `verify` its digest must be right. The content must be
/// complete, and bools must be 0 or 1.
///
/// A wrong digest explains every error of a decoder, so it is reported instead.
pub(crate) fn judge(
    tensor: &Tensor<'_>,
    part: Located<'_>,
    outcome: Option<&Outcome>,
    verify: bool,
) -> Result<u64> {
    let blob = &part.component.blob;
    let limits = tensor.limits();
    check_declared(blob, limits).map_err(|error| tensor.blame(error, part))?;
    // More than 2^32 components, or more bytes than checksums combine to. Neither exists, and
    // neither may pass as verified.
    let unknown = || zt_container::Error::Misuse(zt_container::Misuse::TooLong);
    let Some(outcome) = outcome else {
        return Err(tensor.blame(unknown(), part));
    };
    let digest = blob.digest.as_ref().filter(|_| verify);
    let digest = digest.and_then(|expected| Some((expected, expected.algorithm()?)));
    if let Some((expected, algorithm)) = digest {
        match outcome.digest(algorithm) {
            Some(found) if found == expected => {}
            Some(found) => {
                let (expected, found) = (expected.clone(), found.clone());
                let mismatch = zt_container::Error::DigestMismatch { expected, found };
                return Err(tensor.blame(mismatch, part));
            }
            None if outcome.decoded.is_ok() => return Err(tensor.blame(unknown(), part)),
            None => {}
        }
    }
    let decoded = outcome.decoded.clone();
    let found = decoded.map_err(|error| tensor.blame(error, part))?;
    match blob.decoded_len {
        Some(expected) if expected < found => {
            let fault = zt_container::Error::from(ZstdFault::Long { expected });
            return Err(tensor.blame(fault, part));
        }
        Some(expected) if expected > found => {
            let fault = zt_container::Error::from(ZstdFault::Short { expected, found });
            return Err(tensor.blame(fault, part));
        }
        _ => {}
    }
    tensor.verified(part, digest.is_some(), || Ok(()))?;
    if let Some(error) = &outcome.wrong_bool
        && part.component.dtype == Some(DType::Bool)
    {
        return Err(tensor.blame_format(error.as_ref().clone().with_role(part.role.clone())));
    }
    Ok(found)
}
