#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod check;
mod contents;
mod decode;
mod fault;
mod files;
mod make;
mod mend;
mod options;
mod parity;
mod seal;
#[cfg(feature = "sign")]
mod sign;
mod source;
mod tracked;
mod tree;
mod walk;

pub use check::{Checked, Damage, Flaw, State, check};
pub use contents::{Contents, Model};
pub use fault::Fault;
pub use files::Files;
pub use make::{Made, seal};
pub use mend::{Mended, mend};
pub use options::SealOptions;
pub use parity::{ParityMade, ParityMended, Share, mend_with_parity, write_parity};
pub use seal::{Place, Seal, SealedFile, SealedModel, SealedTensor};
#[cfg(feature = "sign")]
#[cfg_attr(docsrs, doc(cfg(feature = "sign")))]
pub use sign::{
    Comparison, Facts, FileState, Proof, PublicKey, SecretKey, SignatureFault, SignedFile,
    SignedModel, Statement,
};
pub use source::{SealedFolder, SealedSource};
pub use tree::{LEAF, Sum};
