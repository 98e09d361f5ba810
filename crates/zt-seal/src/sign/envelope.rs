//! The signature file: a DSSE envelope in a Sigstore bundle, as `model_signing` writes it for a plain key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use zt::Result;

use crate::sign::fault::SignatureFault as Fault;
use crate::sign::keys::{PublicKey, SecretKey};

const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    verification_material: Material,
    dsse_envelope: Envelope,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<KeyId>,
    /// Entries of a log, which need a network to be made. None is written, and none is looked at.
    #[serde(default, serialize_with = "none")]
    tlog_entries: Vec<IgnoredAny>,
    #[serde(default, skip_serializing)]
    certificate: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    x509_certificate_chain: Option<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
struct KeyId {
    /// The SHA-256 of the public key as PEM.
    #[serde(default)]
    hint: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Serialize, Deserialize)]
struct Signature {
    sig: String,
    #[serde(default)]
    keyid: String,
}

fn none<S: Serializer>(_: &[IgnoredAny], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq([(); 0])
}

/// The signature file of a payload.
pub(super) fn seal(payload: &[u8], key: &SecretKey) -> Result<Vec<u8>> {
    let sig = STANDARD.encode(key.sign(&encoding(payload))?);
    let bundle = Bundle {
        media_type: MEDIA_TYPE.to_owned(),
        verification_material: Material {
            public_key: Some(KeyId { hint: key.public().fingerprint()? }),
            tlog_entries: Vec::new(),
            certificate: None,
            x509_certificate_chain: None,
        },
        dsse_envelope: Envelope {
            payload: STANDARD.encode(payload),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: vec![Signature { sig, keyid: String::new() }],
        },
    };
    serde_json::to_vec(&bundle).map_err(|error| Fault::NoSignature(error.to_string()).into())
}

/// The payload of a signature file, which the key has signed.
pub(super) fn open(bytes: &[u8], key: &PublicKey) -> Result<Vec<u8>> {
    let bundle: Bundle =
        serde_json::from_slice(bytes).map_err(|error| Fault::NoSignature(error.to_string()))?;
    let Bundle { media_type, verification_material: material, dsse_envelope: envelope } = bundle;
    if media_type != MEDIA_TYPE {
        let found = shown(&media_type);
        return Err(Fault::Statement { what: "media type", found }.into());
    }
    if material.certificate.is_some() || material.x509_certificate_chain.is_some() {
        return Err(Fault::Certificate.into());
    }
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(Fault::PayloadType { found: shown(&envelope.payload_type) }.into());
    }
    let [signature] = &envelope.signatures[..] else {
        return Err(Fault::Field { field: "list of signatures" }.into());
    };
    let decode = |text: &str, field| STANDARD.decode(text).map_err(|_| Fault::Field { field });
    let payload = decode(&envelope.payload, "payload")?;
    let sig = decode(&signature.sig, "sig")?;
    let (found, expected) = (material.public_key.map(|it| it.hint), key.fingerprint()?);
    match found.filter(|hint| !hint.is_empty()) {
        Some(found) if found != expected => {
            return Err(Fault::OtherKey { found: shown(&found), expected }.into());
        }
        _ => {}
    }
    if !key.has_signed(&encoding(&payload), &sig) {
        return Err(Fault::Invalid.into());
    }
    Ok(payload)
}

/// What is signed: DSSE's encoding of the type and the payload.
fn encoding(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// The beginning of a text of a stranger, for a message.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
