//! The SHA-256 that the sender of a file gives.

use std::fmt;

use zt::{Digest, Result, Source};

use crate::options::RemoteOptions;
use crate::remote::Remote;

/// The longest list of sums that is read.
const LONGEST_LIST: u64 = 4 << 20;

/// What the SHA-256 of a downloaded file was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proof {
    /// The caller's, such as one of a seal.
    Given,
    /// Each leaf, of the caller's [`super::Leaves`]. Then no SHA-256 is computed.
    Leaves,
    /// The tag of the Hub, for files in LFS and Xet.
    Hub,
    /// The header `Repr-Digest` or `Content-Digest` of RFC 9530, or `Digest` of RFC 3230.
    Header,
    /// The line of `SHA256SUMS` in the same folder.
    Sums,
    /// Nothing: the length alone is known to be right.
    Nothing,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Proof::Given => "given",
            Proof::Leaves => "of the seal",
            Proof::Hub => "of the Hub",
            Proof::Header => "of the server",
            Proof::Sums => "of SHA256SUMS",
            Proof::Nothing => "none",
        })
    }
}

/// The SHA-256 of a file, from the headers of its server or from the list beside it. A list is no error if it
/// cannot be fetched.
pub(super) fn find(
    url: &str,
    remote: &Remote,
    options: &RemoteOptions,
) -> Result<(Option<[u8; 32]>, Proof)> {
    if let Some(found) = of_server(url, options)? {
        return Ok(found);
    }
    let list = remote.beside(&["SHA256SUMS"]).pop();
    if let Some(Ok(Some(list))) = list
        && list.byte_len() <= LONGEST_LIST
    {
        let mut bytes = vec![0; usize::try_from(list.byte_len()).unwrap_or_default()];
        list.read_at(0, &mut bytes)?;
        let name = remote.name();
        let found = sums(&bytes).into_iter().find(|(_, listed)| *listed == name);
        if let Some((sha256, _)) = found {
            return Ok((Some(sha256), Proof::Sums));
        }
    }
    Ok((None, Proof::Nothing))
}

/// What the headers of a server give; `None` if the list may have more.
#[cfg(feature = "http")]
fn of_server(url: &str, options: &RemoteOptions) -> Result<Option<(Option<[u8; 32]>, Proof)>> {
    let Some(head) = crate::web::head(url, options)? else {
        return Ok(None);
    };
    if let Some(sha256) = head.linked_etag.as_deref().and_then(parsed) {
        return Ok(Some((Some(sha256), Proof::Hub)));
    }
    if let Some(sha256) = head.digests.iter().find_map(|digest| of_header(digest)) {
        return Ok(Some((Some(sha256), Proof::Header)));
    }
    Ok(head.commit.is_some().then_some((None, Proof::Nothing)))
}

#[cfg(not(feature = "http"))]
fn of_server(_: &str, _: &RemoteOptions) -> Result<Option<(Option<[u8; 32]>, Proof)>> {
    Ok(None)
}

/// The sums and names of a list as `sha256sum` writes it.
pub(super) fn sums(list: &[u8]) -> Vec<([u8; 32], String)> {
    let lines = String::from_utf8_lossy(list);
    let of_line = |line: &str| {
        let (digits, name) = line.split_once(' ')?;
        let name = name.strip_prefix([' ', '*'])?;
        let name = name.strip_prefix("./").unwrap_or(name);
        Some((parsed(digits)?, name.to_owned()))
    };
    lines.lines().filter_map(of_line).collect()
}

/// The SHA-256 of a field such as `sha-256=:BASE64:` or, in the older header, `SHA-256=BASE64`.
#[cfg(any(feature = "http", test))]
fn of_header(field: &str) -> Option<[u8; 32]> {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let of_item = |item: &str| {
        let (algorithm, value) = item.trim().split_once('=')?;
        let value = value.trim().trim_matches(':');
        let bytes = BASE64_STANDARD.decode(value).ok()?;
        bytes.try_into().ok().filter(|_| algorithm.eq_ignore_ascii_case("sha-256"))
    };
    field.split(',').find_map(of_item)
}

/// A SHA-256 in hexadecimal digits, perhaps in quotation marks.
pub(super) fn parsed(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.trim_start_matches("W/").trim_matches('"');
    match format!("sha256:{digits}").parse() {
        Ok(Digest::Sha256(sum)) => Some(sum),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_headers_and_lists_are_parsed() {
        let text = "ab".repeat(32);
        assert_eq!(parsed(&format!("\"{text}\"")), Some([0xAB; 32]));
        assert_eq!(parsed(&text[2..]), None);
        assert_eq!(parsed(&format!("{}+1", &text[2..])), None);
        let base64 = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=";
        for field in [format!("sha-512=:AA==:, sha-256=:{base64}:"), format!("SHA-256={base64}")] {
            assert_eq!(of_header(&field), Some([0xAB; 32]), "{field}");
        }
        assert_eq!(of_header("sha-256=:AA==:"), None);
        let list = format!("{text}  a b\n{text} *./c\nnonsense\n");
        let names: Vec<String> = sums(list.as_bytes()).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["a b", "c"]);
    }
}
