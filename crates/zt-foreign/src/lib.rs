//! The contract of a kind of tensor file, and what all kinds share.
//!
//! Place in the graph: above `zt` and `zt-zip`, below each kind.
//!
//! A kind of file is a type that implements [`FileKind`], and [`FileWriter`] if its files can be
//! written. It opens a file as a [`zt::File`] whose components are ranges of the foreign file. So
//! listing, reading, verifying, hashing and converting need no code per kind. `zt-convert` has the
//! table of kinds.
//!
//! | room | contents |
//! | --- | --- |
//! | `tools` | small tools that several kinds share: [`fnv1a`], [`json`], URLs |
//! | `values` | what elements mean: [`Meaning`]; the packing of values of less than a byte: [`Packing`] |
//! | [`strided`] | elements in another order than row-major, gathered when they are read |
//! | [`slices`] | tensors that are stored as slices, put together when they are read |
//! | [`sparse`] | sparse layouts of other programs, as coordinates for `sparse_coo` |
//! | `faults` | what goes wrong between files: [`Fault`], [`Loss`] |
//! | `open` | what a kind gets to open a file, and returns: [`Probe`], [`Opening`], [`Input`]; zip archives |
//! | `outgoing` | objects on their way into a file: [`Merged`], [`Outgoing`], [`Job`], [`Sink`] |
//! | `contract` | [`FileKind`], [`FileWriter`] |
//! | `test_kit` | tests that any kind can run: the feature `test-kit` |
//!
//! A room uses itself and the rooms above it.
//!
//! Invariants: the bytes of a file decide its kind, never its name; neither reading nor writing drops
//! a tensor silently.
//!
//! Absent: the kinds, the table of kinds, opening files, threads.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

/// A setter for each of these fields. The field's own text says what it does.
macro_rules! setters {
    ($($field:ident: $type:ty),+ $(,)?) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        pub fn $field(mut self, $field: impl Into<$type>) -> Self {
            self.$field = $field.into();
            self
        }
    )+};
}

mod contract;
mod faults;
mod open;
mod outgoing;
pub mod slices;
pub mod sparse;
pub mod strided;
#[cfg(feature = "test-kit")]
pub mod test_kit;
mod tools;
mod values;

pub use contract::{FileKind, FileWriter, SetForm, ShardPlace};
pub use faults::{Fault, LOSSY, Loss, Overflow, display};
#[cfg(feature = "zip")]
pub use open::archive;
pub use open::{
    Existing, Folder, Input, InputOptions, LEADS_OUT, Names, Neighbours, Opened, Opening, Probe,
    Refusal, TargetFolder, leads_out, open_one, refusal,
};
pub use outgoing::{
    AttributeChange, ConvertOptions, DATA, Duplicate, Incoming, Job, Merged, OnDuplicate, Outgoing,
    STORED_SHAPE, Sink, Summary, Treatment, Written,
};
#[cfg(feature = "json")]
pub use tools::json;
pub use tools::{beside, fnv1a, is_like_url, is_url, without_query, without_secrets};
pub use values::{Meaning, MlDtype, Packing};
pub use zt::container::{fields, repeated};
