//! Signatures, keys and proofs that a stranger wrote.

use std::sync::LazyLock;

use zt::Memory;
use zt_convert::Kinds;
use zt_seal::{Proof, PublicKey, Seal, SecretKey, Statement};

/// The vectors of spec/signature.md §5.
struct Vectors {
    key: SecretKey,
    p256: PublicKey,
    statement: Statement,
    seal: Seal,
    /// The bytes of the file that `rows.proof` is about.
    file: Memory<Vec<u8>>,
}

static VECTORS: LazyLock<Vectors> = LazyLock::new(|| {
    let key = SecretKey::from_bytes(include_bytes!("../../data/signature/ed25519.pem"));
    let p256 = PublicKey::from_bytes(include_bytes!("../../data/signature/p256.pub"));
    let p256 = p256.expect("a sound key");
    let statement = Statement::open(include_bytes!("../../data/signature/p256.sig"), &p256);
    let seal = Seal::from_bytes(include_bytes!("../../data/seal/model.seal"));
    let header = br#"{"c":{"dtype":"U8","shape":[5000000],"data_offsets":[0,5000000]}}       "#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend((0..ROWS).map(value));
    Vectors {
        key: key.expect("a sound key"),
        p256,
        statement: statement.expect("a sound signature"),
        seal: seal.expect("a sound seal"),
        file: Memory::new(file),
    }
});

const ROWS: u64 = 5_000_000;

/// The value of a row of that file.
fn value(row: u64) -> u8 {
    u8::try_from(row / 7 % 251).unwrap_or_default()
}

/// A signature, its payload or a key. A payload that is accepted holds after it is signed, and no other signature but
/// ours holds for our key.
pub fn signature(bytes: &[u8]) {
    let vectors = &*VECTORS;
    let _ = (SecretKey::from_bytes(bytes), PublicKey::from_bytes(bytes));
    if let Ok(statement) = Statement::open(bytes, &vectors.p256) {
        assert!(statement.name == "model" || statement.facts().is_err(), "nothing else was signed");
    }
    let Ok(statement) = Statement::from_json(bytes) else {
        return;
    };
    let compared = statement.compare(&vectors.seal, None);
    assert!(!compared.files_hold() || compared.files.len() == statement.paths().count());
    let _ = statement.compare(&vectors.seal, Some("model.safetensors.index.json".as_ref()));
    let signed = statement.sign(&vectors.key).expect("it is as short as its payload");
    let opened = Statement::open(&signed, &vectors.key.public()).expect("it was signed");
    assert_eq!(opened, statement);
}

/// A proof. If it is accepted, it has exactly these bytes, and what it proves is what was signed.
pub fn proof(bytes: &[u8]) {
    let vectors = &*VECTORS;
    let Ok(proof) = Proof::from_bytes(bytes) else {
        return;
    };
    assert_eq!(proof.to_bytes().expect("it was read"), bytes, "a proof has one encoding");
    match proof.rows() {
        None => {
            for tensor in vectors.seal.models.iter().flat_map(|model| &model.tensors) {
                let holds = proof.check_tensor(&vectors.statement, &tensor.identity).is_ok();
                assert!(!holds || tensor.name == proof.name(), "the tensor has another name");
            }
        }
        Some(rows) => {
            let checked = proof.check_rows(&vectors.statement, &vectors.file, &Kinds::builtin());
            let Ok(dense) = checked else { return };
            let values = dense.elements().as_slice::<u8>().expect("bytes");
            assert!(values.iter().copied().eq(rows.map(value)), "the rows have other values");
        }
    }
}
