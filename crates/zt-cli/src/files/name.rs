//! The name of an object as the name of a file.

/// Bytes of a file name on nearly every file system, without the extension.
const MAX: usize = 255 - ".npy".len();

/// A file name without an extension. Characters that a file system, a shell or a terminal treats
/// specially are percent-encoded, so a name is never a path.
///
/// Different objects get different files, except that some file systems ignore case. A name that is
/// too long is shortened and ends in a hash of the whole name.
pub(crate) fn file_name(name: &str) -> String {
    if name.is_empty() {
        // No other name gives this, because digits follow every other percent sign.
        return "%".to_owned();
    }
    let is_device = is_device(name);
    let mut out = String::with_capacity(name.len());
    for (at, character) in name.char_indices() {
        let is_first = at == 0;
        let is_hidden = is_first && matches!(character, '.' | '-' | '~' | ' ');
        let is_special = character.is_control() || r#"/\:*?"<>|%"#.contains(character);
        if is_special
            || is_hidden
            || (is_first && is_device)
            || crate::output::text::is_unsafe(character)
        {
            let mut buffer = [0; 4];
            for byte in character.encode_utf8(&mut buffer).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(character);
        }
    }
    if out.len() > MAX { cut(&out, name) } else { out }
}

/// Shortens a name. No other name has `%~`, because digits follow every other percent sign.
fn cut(encoded: &str, name: &str) -> String {
    let fits = |end: &usize| encoded.is_char_boundary(*end);
    let end = (0..=MAX - 34).rev().find(fits).unwrap_or(0);
    let hash = hash(name.as_bytes());
    format!("{}%~{hash}", encoded.get(..end).unwrap_or_default())
}

/// 128 bits in hexadecimal digits, the same on every machine.
fn hash(bytes: &[u8]) -> String {
    // FNV-1a. A collision on purpose is refused, as two names of one file are.
    let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b_u128;
    let basis = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let mut hash = basis;
    for byte in bytes {
        hash = (hash ^ u128::from(*byte)).wrapping_mul(prime);
    }
    format!("{hash:032x}")
}

/// Whether the name is a device on Windows, with or without an extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.trim_end().to_ascii_uppercase();
    let numbered = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    let names = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
    names.contains(&stem.as_str())
        || numbered.is_some_and(|number| {
            matches!(number, "¹" | "²" | "³")
                || number.len() == 1 && number.bytes().all(|digit| digit.is_ascii_digit())
        })
}
