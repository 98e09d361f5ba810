//! Why a key, a signature or a proof is refused.

use zt::{ErrorKind, codes};

/// The error of a key, a signature or a proof, or of a model that differs from the signed one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the docs and the texts of the variants explain the fields")]
pub enum SignatureFault {
    /// The file is no key of the wanted half.
    #[error("not a {expected} key: {why}")]
    Key { expected: &'static str, why: &'static str },
    /// A key that a password protects.
    #[error("the key is encrypted: write it without a password to a file that only you can read")]
    EncryptedKey,
    /// A key of an algorithm that is not built.
    #[error("the key is no Ed25519 and no ECDSA P-256 key")]
    Algorithm,
    /// The bytes are something else than a bundle.
    #[error("not a signature of `zt sign` or `model_signing`: {0}")]
    NoSignature(String),
    /// More bytes than [`crate::Statement::MAX_LEN`].
    #[error("the signature has {byte_len} bytes, the limit is {limit}")]
    TooLong { byte_len: u64, limit: u64 },
    /// A bundle that is verified by a certificate.
    #[error(
        "the signature is by a certificate, which this program does not verify: use `model_signing verify`"
    )]
    Certificate,
    /// The envelope is of something else than an in-toto statement.
    #[error("the signature's payload is \"{}\", and no in-toto statement", found.escape_debug())]
    PayloadType { found: String },
    /// The statement is about something else than a model.
    #[error("the signature's {what} is \"{}\", which is no signature of a model", found.escape_debug())]
    Statement { what: &'static str, found: String },
    /// A field of the statement is missing, of another type, or contradicts another one.
    #[error("the signature's {field} is invalid")]
    Field { field: &'static str },
    /// Files were hashed in a way that is not built.
    #[error("the signature's {what} \"{}\" is not supported", found.escape_debug())]
    Method { what: &'static str, found: String },
    /// The bundle says that it was made by another key.
    #[error("the signature is by another key: it names {found}, and this one is {expected}")]
    OtherKey { found: String, expected: String },
    /// The key did not sign these bytes.
    #[error("the signature is not by this key, or what was signed was changed")]
    Invalid,
    /// A statement of another program.
    #[error("the signature has no facts about seals and tensors: it is not by `zt sign`")]
    NoFacts,
    /// The seal is another one.
    #[error("the seal is not the one that was signed")]
    Seal,
    /// The tensor was changed, or another one has its name.
    #[error(
        "the tensor is not the one that was signed: its shape, type, attributes or values differ"
    )]
    Tensor,
    /// There is no tensor of that name.
    #[error("there is no tensor \"{}\", which the proof is about", name.escape_debug())]
    Absent { name: String },
    /// Bytes of the rows were changed.
    #[error("the bytes of the rows, or of the header, are not those that were signed")]
    Rows,
    /// The file has another length.
    #[error("the file has {found} bytes, and the signed one has {expected}")]
    Length { expected: u64, found: u64 },
    /// The bytes are no proof.
    #[error("not a proof of `zt prove`: {0}")]
    NoProof(&'static str),
    /// The proof does not lead to what was signed.
    #[error("the proof does not belong to this signature")]
    Unrelated,
    /// A read of something that the proof does not cover.
    #[error("the proof does not cover the bytes from {offset} on")]
    Uncovered { offset: u64 },
    /// A proof that would be too long.
    #[error("the proof would have {byte_len} bytes, the limit is {limit}")]
    LongProof { byte_len: u64, limit: u64 },
    /// The name of a tensor in several models, or in none.
    #[error("{count} models of the seal have a tensor \"{}\", and one has to", name.escape_debug())]
    Count { name: String, count: usize },
}

impl From<SignatureFault> for zt::Error {
    fn from(fault: SignatureFault) -> Self {
        use SignatureFault as F;
        let (kind, code) = match &fault {
            F::Key { .. } => (ErrorKind::Malformed, codes::KEY),
            F::EncryptedKey | F::Algorithm => (ErrorKind::Unsupported, codes::KEY),
            F::Certificate | F::Method { .. } | F::NoFacts => {
                (ErrorKind::Unsupported, codes::UNSUPPORTED)
            }
            F::OtherKey { .. } => (ErrorKind::DigestMismatch, codes::SIGNATURE_KEY),
            F::Invalid => (ErrorKind::DigestMismatch, codes::SIGNATURE_INVALID),
            F::Seal | F::Tensor | F::Absent { .. } | F::Rows | F::Length { .. } => {
                (ErrorKind::DigestMismatch, codes::SIGNATURE_MISMATCH)
            }
            F::NoProof(_) | F::Unrelated | F::Uncovered { .. } => {
                (ErrorKind::Malformed, codes::PROOF)
            }
            F::LongProof { .. } | F::Count { .. } => (ErrorKind::Misuse, codes::MISUSE),
            _ => (ErrorKind::Malformed, codes::SIGNATURE),
        };
        zt::Error::new(kind, code, fault)
    }
}
