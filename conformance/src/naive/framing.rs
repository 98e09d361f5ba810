//! Where the manifest is (§2.1).

use super::Budget;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    V0_1,
    V1_0,
    /// Of versions 1.1 and 1.2.
    V1_1,
}

pub(super) struct Framing {
    pub(super) layout: Layout,
    /// Where the data region ends and the manifest begins.
    pub(super) start: u64,
    /// Where the manifest ends.
    end: u64,
}

impl Framing {
    pub(super) fn manifest<'f>(&self, file: &'f [u8]) -> &'f [u8] {
        &file[self.start as usize..self.end as usize]
    }
}

pub(super) fn locate(file: &[u8], budget: Budget) -> Option<Framing> {
    let len = file.len() as u64;
    let is_magic = |bytes: Option<&[u8]>| bytes == Some(b"ZTEN1000".as_slice());
    let layout = match file.get(..8)? {
        b"ZTEN0001" => Layout::V0_1,
        b"ZTEN1000" if len >= 16 && is_magic(file.get(file.len() - 8..)) => Layout::V1_1,
        b"ZTEN1000" => Layout::V1_0,
        _ => return None,
    };
    let trailer = if layout == Layout::V1_1 { 16 } else { 8 };
    if len < 8 + 1 + trailer {
        return None;
    }
    let end = len - trailer;
    let size = file[end as usize..][..8].try_into().ok()?;
    let size = u64::from_le_bytes(size);
    if size == 0 || size > end - 8 || size > budget.manifest_len {
        return None;
    }
    Some(Framing { layout, start: end - size, end })
}
