//! The contract of a kind of tensor file, and what all kinds share.
//!
//! ```text
//! zt-container <- zt-manifest <- zt-formats <- zt <- zt-foreign <- zt-zip <- (each kind) <- zt-convert <- zt-cli
//!                                                    ^ here
//! ```
//!
//! A kind of file is a type that implements [`FileKind`], and [`FileWriter`] if its files can be
//! written. It opens a file as a [`zt::File`] whose components are ranges of the foreign file. So
//! listing, reading, verifying, hashing and converting need no code per kind. `zt-convert` has the
//! table of kinds.
//!
//! | module | contents |
//! | --- | --- |
//! | (root) | the contract: [`FileKind`], [`FileWriter`], [`Probe`], [`Opening`], [`Input`], [`Fault`] |
//! | [`outgoing`] | objects on their way into a file: [`Job`], [`Merged`], [`Outgoing`], [`Loss`], [`Sink`] |
//! | [`Neighbours`] | files that a file names, opened if they are below its folder |
//! | [`Folder`] | the same of a file that is not on a disk |
//! | [`strided`] | elements in another order than row-major, gathered when they are read |
//! | [`fields`], [`fnv1a`], [`repeated`] | small tools that several kinds share |
//!
//! Invariants: the bytes of a file decide its kind, never its name; neither reading nor writing drops
//! a tensor silently.
//!
//! Absent: the kinds, the table of kinds, opening files, threads.
#![forbid(unsafe_code)]

/// A setter for each of these fields. The field's own text says what it does.
macro_rules! setters {
    ($($field:ident: $type:ty),+ $(,)?) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$type>) -> Self {
            self.$field = $field.into();
            self
        }
    )+};
}

mod fault;
pub mod fields;
mod fnv;
mod folder;
mod input;
#[cfg(feature = "json")]
pub mod json;
mod kind;
mod names;
mod neighbours;
pub mod outgoing;
pub mod strided;
mod unique;
mod url;

pub use fault::Fault;
pub use fnv::fnv1a;
pub use folder::{Folder, Opened, TargetFolder, open_one};
pub use input::{Input, InputOptions};
pub use kind::{FileKind, FileWriter, Opening, Probe};
pub use names::Names;
pub use neighbours::{LEADS_OUT, Neighbours, Refusal, leads_out};
pub use outgoing::{
    ConvertOptions, DATA, Incoming, Job, LOSSY, Loss, Merged, Outgoing, Overflow, Sink, Summary,
    Treatment, Written, display,
};
pub use unique::repeated;
pub use url::{beside, is_url, without_secrets};
