//! A search for several short byte strings at once.
/// Texts to search for. This is Horspool's search for several texts of at least [`Needles::width`]
/// bytes: each byte of the input gives the number of bytes that the search can skip.
pub(super) struct Needles {
    texts: Vec<&'static [u8]>,
    /// Bytes of the shortest text.
    width: usize,
    /// For each last byte of a stretch of `width` bytes, how far behind it the next text may begin;
    /// 0 if a text may begin with the stretch.
    skips: Box<[usize; 256]>,
}

impl Needles {
    pub(super) fn new(texts: Vec<&'static [u8]>) -> Self {
        let width = texts.iter().map(|text| text.len()).min().unwrap_or(0);
        let mut skips = Box::new([width.max(1); 256]);
        for text in &texts {
            for (byte, rest) in text.iter().take(width).zip((0..width).rev()) {
                if let Some(skip) = skips.get_mut(usize::from(*byte)) {
                    *skip = rest.min(*skip);
                }
            }
        }
        Needles { texts, width, skips }
    }

    /// The places of the texts in `bytes`, from front to back, and which text each is.
    pub(super) fn find_in(&self, bytes: &[u8], mut found: impl FnMut(usize, &'static [u8])) {
        let mut at = 0_usize;
        while let Some(stretch) = bytes.get(at..).filter(|rest| rest.len() >= self.width) {
            let last = stretch.get(self.width.strict_sub(1));
            let skip = last.and_then(|byte| self.skips.get(usize::from(*byte)));
            let skip = skip.copied().unwrap_or(1);
            if skip == 0
                && let Some(text) = self.texts.iter().find(|text| stretch.starts_with(text))
            {
                found(at, text);
            }
            at = at.saturating_add(skip.max(1)); // Beyond the end at most: the loop is hot.
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_search_at_every_offset() {
        let needles = Needles::new(vec![b"abcab", b"cabb", b"bbbbbb"]);
        let mut bytes = Vec::new();
        let mut state = 1_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push(b"abc"[usize::try_from(state >> 16).unwrap() % 3]);
        }
        let mut found = Vec::new();
        needles.find_in(&bytes, |at, text| found.push((at, text)));
        let expected = (0..bytes.len()).filter_map(|at| {
            let mut texts = needles.texts.iter();
            Some((at, *texts.find(|text| bytes[at..].starts_with(text))?))
        });
        let expected: Vec<(usize, &[u8])> = expected.collect();
        assert!(expected.len() > 100);
        assert_eq!(found, expected);
        needles.find_in(b"", |_, _| panic!("there is nothing"));
    }
}
