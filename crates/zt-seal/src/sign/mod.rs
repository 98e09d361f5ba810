//! Signatures of models, and proofs of single tensors and rows against a signature. Spec: signature.md.
//!
//! ```text
//! fault      why a key, a signature or a proof is refused
//! hash       SHA-256 and its text
//! keys       Ed25519 and P-256 from PEM and OpenSSH files
//! envelope   the signature file: DSSE in a Sigstore bundle
//! statement  what is signed: OMS's digests of files, and the facts of a seal
//! compare    files and models against a statement
//! tree       trees with some known leaves
//! proof      one tensor, or rows of one, of a signed model
//! ```
//!
//! It must not know: clocks, networks, random numbers, certificates.

mod compare;
mod envelope;
mod fault;
mod hash;
mod keys;
mod proof;
mod statement;
mod tree;

pub use compare::{Comparison, FileState};
pub use fault::SignatureFault;
pub use keys::{PublicKey, SecretKey};
pub use proof::Proof;
pub use statement::{Facts, SignedFile, SignedModel, Statement};
