//! Keys: Ed25519 and ECDSA P-256, from PEM and OpenSSH files.
//!
//! The crate `ssh-key` reads OpenSSH keys too. Its release brings the stack of RustCrypto before this one, for what
//! takes 60 lines here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePublicKey};
use p256::ecdsa::signature::{Signer, Verifier};
use p256::pkcs8::LineEnding;
use zt::Result;

use crate::sign::fault::SignatureFault as Fault;
use crate::sign::hash::{sha256, to_hex};

/// A private key without a password.
pub struct SecretKey(Secret);

enum Secret {
    Ed25519(ed25519_dalek::SigningKey),
    P256(p256::ecdsa::SigningKey),
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(Public);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Public {
    Ed25519(ed25519_dalek::VerifyingKey),
    P256(p256::ecdsa::VerifyingKey),
}

/// Never the key.
impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SecretKey").field(&self.public()).finish()
    }
}

impl SecretKey {
    /// The key in a file: PKCS#8, SEC 1 or OpenSSH, each in PEM.
    ///
    /// # Errors
    ///
    /// Code `key` for anything else, a key with a password, or one of another algorithm.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let refused = |why| Fault::Key { expected: "private", why };
        let text = std::str::from_utf8(bytes).map_err(|_| refused("it is no text"))?;
        let secret = match label(text) {
            Some("PRIVATE KEY") => {
                if let Ok(key) = ed25519_dalek::SigningKey::from_pkcs8_pem(text.trim()) {
                    Secret::Ed25519(key)
                } else {
                    let key = p256::SecretKey::from_pkcs8_pem(text.trim());
                    Secret::P256(key.map_err(|_| Fault::Algorithm)?.into())
                }
            }
            Some("EC PRIVATE KEY" | "EC PARAMETERS") => {
                // OpenSSL writes the name of the curve before the key.
                const BEGIN: &str = "-----BEGIN EC PRIVATE KEY-----";
                let key = text.find(BEGIN).and_then(|at| text.get(at..)).unwrap_or_default().trim();
                if key.contains("ENCRYPTED") {
                    return Err(Fault::EncryptedKey.into());
                }
                Secret::P256(
                    p256::SecretKey::from_sec1_pem(key).map_err(|_| Fault::Algorithm)?.into(),
                )
            }
            Some("OPENSSH PRIVATE KEY") => of_openssh(text)?,
            Some("ENCRYPTED PRIVATE KEY") => return Err(Fault::EncryptedKey.into()),
            Some("RSA PRIVATE KEY" | "DSA PRIVATE KEY") => return Err(Fault::Algorithm.into()),
            Some("PUBLIC KEY") => return Err(refused("it is a public one").into()),
            _ if text.starts_with("ssh-") || text.starts_with("ecdsa-") => {
                return Err(refused("it is a public one").into());
            }
            _ => return Err(refused("it is neither PEM nor OpenSSH").into()),
        };
        Ok(SecretKey(secret))
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(match &self.0 {
            Secret::Ed25519(key) => Public::Ed25519(key.verifying_key()),
            Secret::P256(key) => Public::P256(*key.verifying_key()),
        })
    }

    /// The signature, which is the same each time.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        match &self.0 {
            Secret::Ed25519(key) => Ok(key.sign(message).to_bytes().to_vec()),
            Secret::P256(key) => {
                let signature: p256::ecdsa::Signature =
                    key.try_sign(message).map_err(|_| Fault::Algorithm)?;
                Ok(signature.to_der().as_bytes().to_vec())
            }
        }
    }
}

impl PublicKey {
    /// The key in a file: SPKI in PEM, or a line of OpenSSH.
    ///
    /// # Errors
    ///
    /// Code `key` for anything else, or a key of another algorithm.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let refused = |why| Fault::Key { expected: "public", why };
        let text = std::str::from_utf8(bytes).map_err(|_| refused("it is no text"))?;
        let mut words = text.split_ascii_whitespace();
        let public = match (label(text), words.next(), words.next()) {
            (Some("PUBLIC KEY"), ..) => {
                if let Ok(key) = ed25519_dalek::VerifyingKey::from_public_key_pem(text.trim()) {
                    Public::Ed25519(key)
                } else {
                    let key = p256::PublicKey::from_public_key_pem(text.trim());
                    Public::P256(key.map_err(|_| Fault::Algorithm)?.into())
                }
            }
            (Some("CERTIFICATE"), ..) => {
                return Err(
                    refused("it is a certificate, which this program does not verify").into()
                );
            }
            (Some(label), ..) if label.ends_with("PRIVATE KEY") => {
                return Err(refused("it is a private one").into());
            }
            (None, Some(kind), Some(blob))
                if kind.starts_with("ssh-") || kind.starts_with("ecdsa-") =>
            {
                let blob = STANDARD.decode(blob).map_err(|_| refused("its base64 is invalid"))?;
                let mut fields = Fields(&blob);
                fields.public().filter(|_| fields.0.is_empty()).ok_or(Fault::Algorithm)?
            }
            _ => return Err(refused("it is neither PEM nor OpenSSH").into()),
        };
        Ok(PublicKey(public))
    }

    /// `ecdsa-p256` or `ed25519`.
    pub const fn algorithm(&self) -> &'static str {
        match self.0 {
            Public::Ed25519(_) => "ed25519",
            Public::P256(_) => "ecdsa-p256",
        }
    }

    /// The SHA-256 of the key as PEM, in hexadecimal digits: how a signature names it.
    ///
    /// # Errors
    ///
    /// None of a sound key.
    pub fn fingerprint(&self) -> Result<String> {
        let pem = match &self.0 {
            Public::Ed25519(key) => key.to_public_key_pem(LineEnding::LF),
            Public::P256(key) => p256::PublicKey::from(key).to_public_key_pem(LineEnding::LF),
        };
        Ok(to_hex(&sha256(&[pem.map_err(|_| Fault::Algorithm)?.as_bytes()])?))
    }

    /// Whether it has signed the message.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Public::Ed25519(key) => ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_strict(message, &signature).is_ok()),
            Public::P256(key) => p256::ecdsa::Signature::from_der(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
        }
    }
}

/// The label of the first PEM block.
fn label(text: &str) -> Option<&str> {
    let rest = text.trim_start().strip_prefix("-----BEGIN ")?;
    rest.split_once("-----").map(|(label, _)| label)
}

/// The key of an OpenSSH file: OpenSSH's PROTOCOL.key.
fn of_openssh(text: &str) -> Result<Secret> {
    let malformed = |why| Fault::Key { expected: "private", why };
    let lines = text.trim().lines().map(str::trim);
    let base64: String = lines.filter(|line| !line.starts_with("-----")).collect();
    let blob = STANDARD.decode(base64).map_err(|_| malformed("its base64 is invalid"))?;
    let mut fields = Fields(&blob);
    let whole = malformed("it is cut or damaged");
    if fields.take(15) != Some(b"openssh-key-v1\0") {
        return Err(whole.into());
    }
    let cipher = fields.text().ok_or(malformed("it is cut or damaged"))?;
    if cipher != b"none" {
        return Err(Fault::EncryptedKey.into());
    }
    let secret = (|| {
        let (_kdf, _options, count) = (fields.text()?, fields.text()?, fields.number()?);
        let (_public, private) = (fields.text()?, fields.text()?);
        if count != 1 || !fields.0.is_empty() {
            return None;
        }
        let mut fields = Fields(private);
        // Equal unless the password was wrong.
        if fields.number()? != fields.number()? {
            return None;
        }
        match fields.public() {
            Some(Public::Ed25519(public)) => {
                let seed: [u8; 32] = fields.text()?.get(..32)?.try_into().ok()?;
                let key = ed25519_dalek::SigningKey::from_bytes(&seed);
                (key.verifying_key() == public).then_some(Ok(Secret::Ed25519(key)))
            }
            Some(Public::P256(public)) => {
                // An integer, with a zero before a high bit, and without other zeros.
                let scalar = fields.text()?;
                let scalar = scalar.strip_prefix(&[0]).unwrap_or(scalar);
                let mut padded = [0; 32];
                padded.get_mut(32usize.checked_sub(scalar.len())?..)?.copy_from_slice(scalar);
                let key = p256::ecdsa::SigningKey::from_slice(&padded).ok()?;
                (*key.verifying_key() == public).then_some(Ok(Secret::P256(key)))
            }
            None => Some(Err(Fault::Algorithm)),
        }
    })();
    Ok(secret.ok_or(whole)??)
}

/// Fields of the wire format of SSH, RFC 4251 §5.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'b [u8]> {
        let len = self.number()?;
        self.take(usize::try_from(len).ok()?)
    }

    /// The algorithm and the public key.
    fn public(&mut self) -> Option<Public> {
        match self.text()? {
            b"ssh-ed25519" => {
                let key = self.text()?.try_into().ok()?;
                Some(Public::Ed25519(ed25519_dalek::VerifyingKey::from_bytes(&key).ok()?))
            }
            b"ecdsa-sha2-nistp256" => {
                let curve = self.text()?;
                let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(self.text()?).ok()?;
                (curve == b"nistp256").then_some(Public::P256(key))
            }
            _ => None,
        }
    }
}
