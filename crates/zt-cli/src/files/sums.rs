//! Lines of a list of hashes: `sha256:2c26b4…  model.zt`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::output::text::is_unsafe;

/// The line of a file. A backslash at the start means that the path has escapes: `\\`, `\n`, `\r`, and
/// `\x1b` for any byte. So the line is printable, and [`parse`] finds every path.
pub(crate) fn line(content: &str, path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    match path.to_str() {
        // Linux finds no path with the separator of Windows. In a verbatim path there is no other.
        Some(text) if cfg!(windows) && !text.contains(is_unsafe) && !text.starts_with(r"\\?\") => {
            format!("{content}  {}", text.replace('\\', "/"))
        }
        Some(text) if !text.contains(is_unsafe) => format!("{content}  {text}"),
        _ => format!("\\{content}  {}", escaped(bytes)),
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                unsafe_one if is_unsafe(unsafe_one) => {
                    let mut buffer = [0; 4];
                    hex(unsafe_one.encode_utf8(&mut buffer).as_bytes(), &mut out);
                }
                other => out.push(other),
            }
        }
        hex(chunk.invalid(), &mut out);
    }
    out
}

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.push_str(&format!("\\x{byte:02x}"));
    }
}

/// The hash, as `sha256:` and hexadecimal digits in lower case, and the path; `None` for a line that
/// is no such one.
pub(crate) fn parse(line: &[u8]) -> Option<(String, PathBuf)> {
    let rest = line.strip_prefix(b"\\");
    let is_escaped = rest.is_some();
    let rest = rest.unwrap_or(line).strip_prefix(b"sha256:")?;
    let (digits, rest) = rest.split_at_checked(64)?;
    let path = rest.strip_prefix(b"  ")?;
    if path.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let digits = std::str::from_utf8(digits).ok()?.to_ascii_lowercase();
    let path = if is_escaped { unescaped(path)? } else { path.to_vec() };
    Some((format!("sha256:{digits}"), path_of(path)?.into()))
}

fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next()? {
            b'\\' => b'\\',
            b'n' => b'\n',
            b'r' => b'\r',
            b'x' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> Option<OsString> {
    Some(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}
