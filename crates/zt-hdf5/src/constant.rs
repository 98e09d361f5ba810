//! Values that were never written, as a source that repeats one element.

use std::io;

use zt::Source;

/// Equal elements.
pub(super) struct Constant {
    element: Vec<u8>,
    byte_len: u64,
}

impl Constant {
    pub(super) fn new(element: Vec<u8>, byte_len: u64) -> Self {
        Constant { element, byte_len }
    }
}

impl Source for Constant {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.byte_len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        repeat(&self.element, offset, buf);
        Ok(())
    }
}

/// Fills `buf` with the repeated element, as if `offset` such bytes were before it.
pub(super) fn repeat(element: &[u8], offset: u64, buf: &mut [u8]) {
    let phase = offset.checked_rem(element.len() as u64).unwrap_or(0);
    let phase = usize::try_from(phase).unwrap_or(0);
    let once = element.iter().cycle().skip(phase);
    for (to, from) in buf.iter_mut().zip(once.take(element.len())) {
        *to = *from;
    }
    // The filled part is copied after itself: always whole elements, except the last time.
    let mut filled = element.len();
    while filled > 0 && filled < buf.len() {
        let (done, rest) = buf.split_at_mut(filled);
        let len = done.len().min(rest.len());
        for (to, from) in rest.chunks_mut(len).zip(done.chunks(len)).take(1) {
            to.copy_from_slice(from);
        }
        filled = filled.saturating_add(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_continues_the_one_before() {
        let source = Constant::new(vec![1, 2, 3], 30);
        for start in 0..30 {
            let mut part = vec![0; 30 - start];
            source.read_at(start as u64, &mut part).unwrap();
            let expected: Vec<u8> = [1, 2, 3]
                .into_iter()
                .cycle()
                .skip(start)
                .take(part.len())
                .collect();
            assert_eq!(part, expected);
        }
        assert!(source.read_at(29, &mut [0; 2]).is_err());
    }

    #[test]
    fn an_element_of_no_bytes_fills_nothing() {
        let mut bytes = [7; 3];
        repeat(&[], 0, &mut bytes);
        assert_eq!(bytes, [7; 3]);
    }
}
