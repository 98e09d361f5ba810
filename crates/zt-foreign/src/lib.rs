#![doc = include_str!("../README.md")]
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
pub use faults::{Cast, Fault, LOSSY, Loss, display};
#[cfg(feature = "zip")]
pub use open::archive;
pub use open::{
    Existing, Folder, Input, InputOptions, LEADS_OUT, Logical, LogicalTensor, Names, Neighbours,
    Opened, Opening, Probe, Refusal, TargetFolder, leads_out, open_one, refusal,
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
