//! Objects of one name in several inputs.

use zt::diff::{Change, DiffOptions, Side, diff_tensors};
use zt::{Error, Result};
use zt_foreign::{Duplicate, Fault, Incoming, Job, OnDuplicate};

/// Whether `second` is written in the place of `first`, which has the same name. The other one becomes
/// a duplicate of the summary.
///
/// # Errors
///
/// Code `duplicate-name`; the fault of an object that has to be compared.
pub(crate) fn replaces(
    first: &Incoming<'_>,
    second: &Incoming<'_>,
    job: &mut Job<'_>,
) -> Result<bool> {
    let name = second.tensor.name();
    let [of_first, of_second] = [first, second].map(|it| it.path.map(ToOwned::to_owned));
    let path = match job.options.on_duplicate {
        OnDuplicate::First => of_second,
        OnDuplicate::Last => of_first,
        OnDuplicate::Same if is_same(first, second, job)? => of_second,
        policy => {
            let (first, second) = (of_first, of_second);
            let fault = match policy {
                OnDuplicate::Same => Fault::Different { first, second },
                _ => Fault::Repeated { first, second },
            };
            return Err(Error::from(fault).with_object(name));
        }
    };
    job.summary.duplicates.push(Duplicate::new(name, path));
    Ok(job.options.on_duplicate == OnDuplicate::Last)
}

fn is_same(first: &Incoming<'_>, second: &Incoming<'_>, job: &Job<'_>) -> Result<bool> {
    let options = DiffOptions::new().threads(job.options.write.thread_count());
    let mut changes = diff_tensors(&first.tensor, &second.tensor, &options)?;
    let unreadable = changes.iter().position(|change| matches!(change, Change::Unreadable { .. }));
    if let Some(at) = unreadable
        && let Change::Unreadable { side, error } = changes.swap_remove(at)
    {
        let incoming = match side {
            Side::A => first,
            Side::B => second,
        };
        return Err(match incoming.path {
            Some(path) => error.with_path(path),
            None => error,
        });
    }
    Ok(changes.is_empty())
}
