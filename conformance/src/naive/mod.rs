//! A reader written from `spec/zt-1.2.md`, `spec/legacy.md` and `spec/formats/` alone, to be held
//! against ours: plain, slow, and sharing no code with the crates under test.
//!
//! It has its own CBOR, its own arithmetic of spans and sizes, its own rules and digests; what
//! decodes Zstandard and hashes SHA-256 are the public crates for that. It says less than a reader
//! for users would: whether a file is refused, which objects are at fault, what bytes the others
//! hold, and whether their contents keep the rules. It says nothing of why.

mod cbor;
mod component;
mod delta;
mod framing;
mod huffman;
mod legacy;
mod object;
mod rules;
mod types;

use std::collections::BTreeMap;

use cbor::Item;
pub use delta::apply as apply_delta;
use framing::{Framing, Layout};
pub use huffman::decode as decode_chunk;

/// What a reader may spend (§12).
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Bytes of a manifest.
    pub manifest_len: u64,
    /// Decoded bytes of a compressed component.
    pub decoded_len: u64,
}

/// What the reader finds about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is listed, and cannot be read.
    Fault,
    /// It can be read.
    Readable {
        /// By role: how many bytes and their SHA-256, or `None` where they cannot be had.
        components: BTreeMap<String, Option<(u64, [u8; 32])>>,
        /// Whether every component can be had and all contents keep the rules.
        is_sound: bool,
    },
}

/// The verdict on every object of a file by name; `None` where the file is refused.
#[must_use]
pub fn read(file: &[u8], budget: Budget) -> Option<BTreeMap<String, Verdict>> {
    let framing = framing::locate(file, budget)?;
    let root = cbor::parse(framing.manifest(file))?;
    if framing.layout == Layout::V1_1 && !component::has_own_digest(framing.manifest(file)) {
        return None;
    }
    let objects = match framing.layout {
        Layout::V0_1 => legacy::tensors_0_1(&root)?,
        Layout::V1_0 => legacy::tensors_1_0(&root)?,
        Layout::V1_1 => object::objects(&root)?,
    };
    let reader = Reader { file, framing, budget };
    let verdict = |(name, object): (String, Option<object::Object>)| {
        let verdict =
            object.filter(|_| name.len() <= 65_536).and_then(|object| reader.judge(&object));
        (name, verdict.unwrap_or(Verdict::Fault))
    };
    Some(objects.into_iter().map(verdict).collect())
}

/// Judges objects of one file.
struct Reader<'f> {
    file: &'f [u8],
    framing: Framing,
    budget: Budget,
}

impl Reader<'_> {
    /// `None` for an object at fault.
    fn judge(&self, object: &object::Object) -> Option<Verdict> {
        if object.shape.len() > 64 {
            return None;
        }
        for component in object.components.values() {
            component.check(&self.framing, self.budget)?;
        }
        rules::check(object)?;
        let mut contents = BTreeMap::new();
        for (role, component) in &object.components {
            let demanded = rules::demanded_len(object, role);
            contents.insert(role.clone(), component.content(self.file, demanded, self.budget));
        }
        let mut components = object.components.values();
        let is_sound = rules::contents_are_sound(object, &contents)
            && components.all(|part| part.chunks_are_right(self.file, &self.framing));
        let summary = |content: Vec<u8>| {
            let hash = <sha2::Sha256 as sha2::Digest>::digest(&content);
            (content.len() as u64, hash.into())
        };
        let contents = contents.into_iter();
        let components = contents.map(|(role, content)| (role, content.map(summary)));
        Some(Verdict::Readable { components: components.collect(), is_sound })
    }
}

/// The value of a text key that a map has and that is not null.
fn get<'i>(map: &'i [(Item, Item)], key: &str) -> Option<&'i Item> {
    let is_key = |item: &Item| matches!(item, Item::Text(text) if text == key);
    let (_, value) = map.iter().find(|(name, _)| is_key(name))?;
    (*value != Item::Simple(22)).then_some(value)
}
