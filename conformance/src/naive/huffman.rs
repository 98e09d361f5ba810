//! Chunks of `zt.planes/2`, bit by bit. Spec: formats/zt.planes-2.

use std::collections::BTreeMap;

/// The `count` symbols of a chunk; `None` where it breaks a rule.
#[must_use]
pub fn decode(chunk: &[u8], count: usize) -> Option<Vec<u8>> {
    let (kind, rest) = chunk.split_first()?;
    match kind {
        0 => (rest.len() == count).then(|| rest.to_vec()),
        1 => (rest.len() == 1).then(|| vec![rest[0]; count]),
        2 => streams(rest, count),
        _ => None,
    }
}

fn streams(rest: &[u8], count: usize) -> Option<Vec<u8>> {
    let (lengths, rest) = rest.split_at_checked(128)?;
    let (table, rest) = rest.split_at_checked(12)?;
    let (streams, zeros) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
    if zeros.iter().any(|byte| *byte != 0) {
        return None;
    }
    let symbols = symbols_of_codes(lengths)?;
    let per_stream = count.div_ceil(4).div_ceil(64) * 64;
    let (mut streams, mut found) = (streams, Vec::new());
    for at in 0..4 {
        let len = match table.get(4 * at..4 * at + 4) {
            Some(len) => u32::from_le_bytes(len.try_into().ok()?) as usize,
            None => streams.len(),
        };
        let (stream, behind) = streams.split_at_checked(len)?;
        streams = behind;
        let end = count.min((at + 1) * per_stream);
        let mut bits = stream.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
        let mut used = 0;
        while found.len() < end {
            let mut code = String::new();
            let symbol = loop {
                code.push(if bits.next()? == 1 { '1' } else { '0' });
                used += 1;
                if let Some(symbol) = symbols.get(&code) {
                    break *symbol;
                }
            };
            found.push(symbol);
        }
        let is_ended = stream.len() == usize::div_ceil(used, 8) && bits.all(|bit| bit == 0);
        is_ended.then_some(())?;
    }
    Some(found)
}

/// Each code as text, its first bit first.
fn symbols_of_codes(lengths: &[u8]) -> Option<BTreeMap<String, u8>> {
    let nibbles = lengths.iter().flat_map(|two| [two & 15, two >> 4]);
    let mut order: Vec<(u8, u8)> = nibbles.zip(0..=255).filter(|(length, _)| *length > 0).collect();
    order.sort_unstable();
    if order.iter().any(|(length, _)| *length > 11) {
        return None;
    }
    let mut codes = BTreeMap::new();
    // The next code, as a number of 11 bits.
    let mut next = 0u32;
    for (length, symbol) in order {
        let code = format!("{next:011b}");
        codes.insert(
            code[code.len() - 11..code.len() - 11 + usize::from(length)].to_owned(),
            symbol,
        );
        next += 1 << (11 - length);
    }
    (next == 1 << 11).then_some(codes)
}
