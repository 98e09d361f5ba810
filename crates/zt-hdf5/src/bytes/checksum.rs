//! The checksums of metadata and of chunks.

/// Bob Jenkins' `lookup3` with the initial value 0: the checksum of metadata since version 2.
pub(crate) fn lookup3(bytes: &[u8]) -> u32 {
    // The length modulo 2^32.
    let [a, b, c, d, ..] = (bytes.len() as u64).to_le_bytes();
    let start = 0xDEAD_BEEF_u32.wrapping_add(u32::from_le_bytes([a, b, c, d]));
    let mut state = [start; 3];
    let mut blocks = bytes.chunks(12).peekable();
    while let Some(block) = blocks.next() {
        let mut padded = [0; 12];
        for (to, from) in padded.iter_mut().zip(block) {
            *to = *from;
        }
        let (words, _) = padded.as_chunks::<4>();
        for (sum, word) in state.iter_mut().zip(words) {
            *sum = sum.wrapping_add(u32::from_le_bytes(*word));
        }
        state = match blocks.peek() {
            Some(_) => mix(state),
            None => finish(state),
        };
    }
    let [_, _, sum] = state;
    sum
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for by in [4, 6, 8, 16, 19, 4] {
        a = a.wrapping_sub(c) ^ c.rotate_left(by);
        c = c.wrapping_add(b);
        (a, b, c) = (b, c, a);
    }
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    let step = |to: &mut u32, from: u32, by| *to = (*to ^ from).wrapping_sub(from.rotate_left(by));
    step(&mut c, b, 14);
    step(&mut a, c, 11);
    step(&mut b, a, 25);
    step(&mut c, b, 16);
    step(&mut a, c, 4);
    step(&mut b, a, 14);
    step(&mut c, b, 24);
    [a, b, c]
}

/// Fletcher's checksum of big-endian 16-bit words: the checksum of chunks.
pub(crate) fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (0u32, 0u32);
    // `H5_checksum_fletcher32` folds, so a multiple of 65,535 becomes 65,535 and not 0.
    let fold = |sum: u32| (sum & 0xFFFF).wrapping_add(sum >> 16);
    let mut add = |word: u32| {
        low = fold(low.wrapping_add(word));
        high = fold(high.wrapping_add(low));
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    for pair in pairs {
        add(u32::from(u16::from_be_bytes(*pair)));
    }
    for byte in rest {
        add(u32::from(u16::from_be_bytes([*byte, 0])));
    }
    high << 16 | low
}
