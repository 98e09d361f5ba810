//! Values that were never written, as a source that repeats one element.

use std::io;

use zt::Source;
use zt::container::memory::{end_of_read, in_memory};

/// Equal elements, or zeros if the element has no bytes. Nothing is kept in memory but one element.
pub(crate) struct Constant {
    element: Vec<u8>,
    byte_len: u64,
}

impl Constant {
    pub(crate) fn new(element: Vec<u8>, byte_len: u64) -> Self {
        Constant { element, byte_len }
    }
}

impl Source for Constant {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len, offset, buf)?;
        fill(&self.element, offset, buf);
        Ok(())
    }
}

/// Fills `buf` with the repeated element, as if `offset` such bytes were before it, or with zeros.
pub(crate) fn fill(element: &[u8], offset: u64, buf: &mut [u8]) {
    if element.iter().all(|byte| *byte == 0) {
        return buf.fill(0);
    }
    let phase = offset.strict_rem(element.len() as u64);
    let (before, after) = element.split_at(in_memory(phase));
    let once = after.iter().chain(before);
    for (to, from) in buf.iter_mut().zip(once) {
        *to = *from;
    }
    // The filled part is copied after itself: always whole elements, except the last time.
    let mut filled = element.len();
    while let Some((done, rest)) = buf.split_at_mut_checked(filled) {
        let len = done.len().min(rest.len());
        let (Some(to), Some(from)) = (rest.get_mut(..len), done.get(..len)) else {
            return;
        };
        if to.is_empty() {
            return;
        }
        to.copy_from_slice(from);
        filled = filled.strict_mul(2);
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
            let expected: Vec<u8> =
                [1, 2, 3].into_iter().cycle().skip(start).take(part.len()).collect();
            assert_eq!(part, expected);
        }
        assert!(source.read_at(29, &mut [0; 2]).is_err());
    }

    #[test]
    fn an_element_of_no_bytes_gives_zeros() {
        let mut bytes = [7; 3];
        fill(&[], 0, &mut bytes);
        assert_eq!(bytes, [0; 3]);
    }
}
