//! Room `test_kit`: tests that any implementation of [`ObjectFormat`](zt_formats::ObjectFormat) can run in
//! one call. The feature `test-kit` adds it, for the tests of your crate:
//!
//! ```toml
//! [dev-dependencies]
//! zt = { package = "zt-tensor", version = "0.1", features = ["test-kit"] }
//! ```
//!
//! | call | what it checks |
//! | --- | --- |
//! | [`check_format`] | your format, with objects of it that you give |
//! | [`check_file`] | an open file of any kind: every way to read gives the same values |
//! | [`check_damaged`] | an open file that may be damaged: errors blame the file, and no way to read contradicts another |
//!
//! `zt_foreign::test_kit` has the kit for kinds of files. All calls panic where a check fails, with a
//! message that names the case. They use no randomness. Where a list of cases would be long, it is thinned
//! evenly: an object of 64 bytes is tried with each of its bits.
//!
//! It knows every room before it. It must not know: any format.
#![expect(
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod cases;
mod file;
mod format;

pub use cases::{Damage, case, check, damages, sound};
pub use file::{check_damaged, check_file};
pub use format::check_format;
