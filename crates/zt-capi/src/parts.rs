//! Many tensors and parts of tensors, read into memory of the caller.

use zt::{DType, Error, ErrorKind, Result, Slice, codes};

use crate::dtype;
use crate::options::zt_read_options;
use crate::tensor::{expect_len, zt_tensor};

/// What is read, and where it goes.
pub(crate) struct Job<'a> {
    pub(crate) tensor: &'a zt_tensor,
    /// Empty for all of it.
    pub(crate) slices: Vec<Slice>,
    /// The dimensions of the part.
    pub(crate) counts: Vec<u64>,
    pub(crate) dtype: Option<DType>,
    pub(crate) out: &'a mut [u8],
}

impl Job<'_> {
    /// Whether the stored bytes are the values, and go straight into the caller's memory.
    fn is_direct(&self) -> bool {
        let stored = dtype::of(self.tensor.dtype);
        self.slices.is_empty()
            && self.tensor.format.as_c_str() == c"dense"
            && stored.is_some_and(|it| {
                dtype::is_native(it) && self.dtype.is_none_or(|wanted| wanted == it)
            })
            && self.tensor.tensor().is_ok_and(|tensor| tensor.fault().is_none())
    }
}

/// Reads all jobs in the order of their files, on all cores. The results are in the order of `jobs`.
pub(crate) fn read(jobs: Vec<Job<'_>>, options: &zt_read_options) -> Vec<Result<()>> {
    // What a part is not told otherwise.
    let none = || Error::new(ErrorKind::Interrupted, codes::INTERRUPTED, "the part was not read");
    let mut results: Vec<Result<()>> = jobs.iter().map(|_| Err(none())).collect();
    let is_plain = options.threads == 0 && options.past_cache == 0;
    let Some(file) = jobs.first().map(|job| job.tensor.file()) else {
        return results;
    };
    let (mut direct, mut planned) = (Vec::new(), Vec::new());
    for (job, result) in jobs.into_iter().zip(&mut results) {
        let found = job.tensor.byte_len(&job.counts, job.dtype);
        let found = found.and_then(|byte_len| expect_len(job.out, byte_len));
        match found.and_then(|()| job.tensor.tensor()) {
            Err(error) => *result = Err(job.tensor.blame(error)),
            Ok(tensor) if is_plain && job.is_direct() => {
                direct.push((job.tensor, tensor, job.out, result));
            }
            Ok(tensor) => {
                planned.push((tensor, job.tensor, job.slices, job.dtype, job.out, result))
            }
        }
    }
    let (mut wanted, mut places) = (Vec::new(), Vec::new());
    for (handle, tensor, out, result) in direct {
        wanted.push((tensor, "data", out));
        places.push((handle, result));
    }
    for ((handle, place), read) in places.into_iter().zip(file.read_many_into(wanted)) {
        *place = read.map_err(|error| handle.blame(error));
    }
    let parts = planned.iter().map(|(tensor, _, slices, ..)| (*tensor, slices.clone()));
    let mut plan = file.plan(parts.collect::<Vec<_>>()).page_cache(options.past_cache == 0);
    if options.memory > 0 {
        plan = plan.memory(options.memory);
    }
    if options.threads > 0 {
        plan = plan.threads(usize::try_from(options.threads).unwrap_or(usize::MAX));
    }
    let done = plan.for_each(|at, dense| {
        if let Some((_, tensor, _, dtype, out, result)) = planned.get_mut(at) {
            let filled = dense.and_then(|dense| tensor.fill(dense, *dtype, out));
            **result = filled.map_err(|error| tensor.blame(error));
        }
        Ok::<(), Error>(())
    });
    if let Err(error) = done {
        let unread = results
            .iter_mut()
            .filter(|it| it.as_ref().is_err_and(|it| it.kind() == ErrorKind::Interrupted));
        unread.for_each(|result| *result = Err(error.clone()));
    }
    results
}
