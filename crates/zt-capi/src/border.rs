//! The border to C: no panic crosses it, and nothing is printed.

use std::any::Any;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::Once;
use std::thread;

use zt::{Error, ErrorKind, Result, codes};

use crate::error::{ZT_OK, zt_error, zt_status};

/// Memory of the caller for a result. It need not be initialised.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

thread_local! {
    /// Whether this thread is within a call.
    static IS_WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Does the work of a call. An error and a panic become a handle for the caller, if it wants one.
pub(crate) fn call(error: Out<'_, *mut zt_error>, work: impl FnOnce() -> Result<()>) -> zt_status {
    let failure = match caught(|| work().map_err(|error| zt_error::of(&error))) {
        Ok(Ok(())) => return ZT_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => zt_error::of_panic(&panic),
    };
    let status = failure.status();
    if let Some(place) = error {
        place.write(Box::into_raw(Box::new(failure)));
    }
    status
}

/// The value of a call that cannot fail; `none` for a handle that is NULL, and after a panic.
pub(crate) fn value<T>(none: T, work: impl FnOnce() -> Option<T>) -> T {
    caught(work).ok().flatten().unwrap_or(none)
}

/// The result of `work`, or the text of its panic.
fn caught<T>(work: impl FnOnce() -> T) -> std::result::Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(silence);
    let was_within = IS_WITHIN.replace(true);
    // What a panic leaves behind is behind locks, which are not poisoned for us, or belongs to this call.
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_WITHIN.set(was_within);
    done.map_err(|panic| text_of(&*panic))
}

/// Panics within calls print nothing. The threads that the engine starts have no names, and print nothing either. Any
/// other thread, as of a Rust program that has this crate as a library, prints as before.
fn silence() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_ours = IS_WITHIN.try_with(Cell::get).unwrap_or(true);
        if !is_ours && thread::current().name().is_some() {
            before(info);
        }
    }));
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no text".to_owned())
}

/// The caller's fault.
pub(crate) fn misuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Misuse, codes::MISUSE, message.into())
}

/// The caller's argument, which is not NULL.
pub(crate) fn given<T>(argument: Option<T>, name: &str) -> Result<T> {
    argument.ok_or_else(|| misuse(format!("`{name}` is NULL")))
}

/// The place for a handle, which is NULL until the call succeeds.
pub(crate) fn place<'a, T>(
    out: Out<'a, *mut T>,
    name: &str,
) -> Result<&'a mut MaybeUninit<*mut T>> {
    let place = given(out, name)?;
    place.write(ptr::null_mut());
    Ok(place)
}

/// A handle of the caller's own.
pub(crate) fn give<T>(place: &mut MaybeUninit<*mut T>, value: T) {
    place.write(Box::into_raw(Box::new(value)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ZT_MISUSE, ZT_PANIC};

    #[test]
    fn a_panic_is_a_status() {
        assert_eq!(call(None, || panic!("of a test")), ZT_PANIC);
        assert_eq!(value(7, || panic!("of a test")), 7);
        assert_eq!(call(None, || Err(misuse("of a test"))), ZT_MISUSE);
        assert!(!IS_WITHIN.get());
    }
}
