//! How codes lie in bytes.

/// Codes in units of bytes. A unit is a little-endian number, and each code in it has a place of its own.
///
/// ```
/// use zt_quantized::Packing;
///
/// // Two codes a byte, the first in the low half; and AWQ's order of eight in a word.
/// let nibbles = Packing::bits(4);
/// let awq = Packing::ordered(4, 4, &[0, 4, 1, 5, 2, 6, 3, 7]);
/// assert_eq!((nibbles.codes(), nibbles.byte_len()), (2, 1));
/// assert_eq!((awq.codes(), awq.byte_len()), (8, 4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    bits: u32,
    byte_len: usize,
    /// By code: the bit at which it begins.
    shifts: Vec<u32>,
    /// The words that a line of a stream is made of, in bytes: it may end within a unit. None: whole units.
    word: Option<u64>,
    along: Along,
}

/// The direction in which the codes of a unit follow each other in the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Along {
    /// Columns of one row.
    Row,
    /// Rows of one column. A unit is made of words of so many bytes, from rows of words that follow each other.
    Column { word: usize },
    /// The rows are cut into as many parts as a unit has codes. A byte has a code of each part.
    Parts,
}

impl Packing {
    /// A code each byte.
    pub fn bytes() -> Self {
        Packing::bits(8)
    }

    /// A stream of codes of 1 to 8 bits, the lowest bits first. The units are the least bytes that hold whole codes.
    pub fn bits(bits: u32) -> Self {
        let bits = bits.clamp(1, 8);
        // Of 8 codes at most, which have whole bytes.
        let codes = (1..=8u32).find(|codes| codes.strict_mul(bits).is_multiple_of(8)).unwrap_or(8);
        Packing::stream(bits, codes)
    }

    fn stream(bits: u32, codes: u32) -> Self {
        let shifts = (0..codes).map(|code| code.strict_mul(bits)).collect();
        let byte_len = codes.strict_mul(bits).div_ceil(8) as usize;
        Packing { bits, byte_len, shifts, word: None, along: Along::Row }
    }

    /// As many codes as fit in words of 4 bytes, the lowest bits first. Bits that are left over are unused.
    pub fn words(bits: u32) -> Self {
        let bits = bits.clamp(1, 8);
        Packing { byte_len: 4, ..Packing::stream(bits, 32u32.strict_div(bits)) }
    }

    /// Units of `byte_len` bytes whose code `i` begins at the bit `bits * places[i]`.
    pub fn ordered(bits: u32, byte_len: usize, places: &[u32]) -> Self {
        let bits = bits.clamp(1, 8);
        let shifts = places.iter().map(|place| place.strict_mul(bits)).collect();
        Packing { bits, byte_len: byte_len.clamp(1, 16), shifts, word: None, along: Along::Row }
    }

    /// The same stream of codes, in whole words of `word` bytes: a row ends with its last word.
    pub fn in_words(self, word: usize) -> Self {
        Packing { word: Some(word.clamp(1, 4) as u64), ..self }
    }

    /// Two codes a byte, the first in the high half.
    pub fn high_first() -> Self {
        Packing::ordered(4, 1, &[1, 0])
    }

    /// The same codes along the rows of one column, in units of whole words of `word` bytes.
    pub fn down_columns(self, word: usize) -> Self {
        let word = word.clamp(1, 4);
        if self.byte_len.is_multiple_of(word) {
            return Packing { along: Along::Column { word }, ..self };
        }
        let bits = (word as u64).strict_mul(8);
        let is_whole = |codes: &u32| u64::from(codes.strict_mul(self.bits)).is_multiple_of(bits);
        let codes = (1..=32).find(is_whole).unwrap_or(32);
        let units = Packing::stream(self.bits, codes);
        Packing { word: Some(word as u64), along: Along::Column { word }, ..units }
    }

    /// Bytes, or words of 4 bytes for 3 bits, with codes of as many parts of the rows as there are codes: the first part
    /// has the high bits.
    pub fn parts(bits: u32) -> Self {
        let stream = if bits == 3 { Packing::words(3) } else { Packing::bits(bits) };
        let shifts = stream.shifts.iter().rev().copied().collect();
        Packing { shifts, along: Along::Parts, ..stream }
    }

    /// A packing of these parts; `None` if the codes do not lie in units of at most 16 bytes.
    pub(crate) fn described(
        bits: u32,
        byte_len: u64,
        shifts: &[u32],
        word: Option<u64>,
        along: Along,
    ) -> Option<Self> {
        let byte_len = usize::try_from(byte_len).ok().filter(|len| (1..=16).contains(len))?;
        let end = u32::try_from(byte_len.strict_mul(8)).ok()?.checked_sub(bits)?;
        let lies_within = shifts.iter().all(|shift| *shift <= end) && shifts.len() <= 128;
        let are_words = word.is_none_or(|word| (1..=4).contains(&word));
        let is_down = match along {
            Along::Column { word } => (1..=4).contains(&word) && byte_len.is_multiple_of(word),
            Along::Row | Along::Parts => true,
        };
        let fits = (1..=8).contains(&bits) && !shifts.is_empty() && lies_within;
        let packing = Packing { bits, byte_len, shifts: shifts.to_vec(), word, along };
        (fits && are_words && is_down).then_some(packing)
    }

    /// By code of a unit: the bit at which it begins.
    pub(crate) fn shifts(&self) -> &[u32] {
        &self.shifts
    }

    /// Bytes of the words that a line is made of, if it may end within a unit.
    pub(crate) const fn word(&self) -> Option<u64> {
        self.word
    }

    /// Codes of a unit.
    pub fn codes(&self) -> u64 {
        self.shifts.len() as u64
    }

    /// Bytes of a unit.
    pub fn byte_len(&self) -> u64 {
        self.byte_len as u64
    }

    /// Bits of a code.
    pub const fn bits_of_code(&self) -> u32 {
        self.bits
    }

    pub(crate) const fn along(&self) -> Along {
        self.along
    }

    /// Rows and bytes of a row of what is stored for a matrix of `rows` and `columns`.
    pub(crate) fn stored(&self, rows: u64, columns: u64) -> Option<[u64; 2]> {
        let units = |count: u64| count.div_ceil(self.codes());
        // Bytes of a line of so many codes.
        let line = |count: u64| match self.word {
            None => units(count).checked_mul(self.byte_len()),
            Some(word) => {
                let bits = count.checked_mul(self.bits.into())?;
                bits.div_ceil(word.checked_mul(8)?).checked_mul(word)
            }
        };
        match self.along {
            Along::Row => Some([rows, line(columns)?]),
            Along::Column { word } => {
                let word = word as u64;
                Some([line(rows)?.checked_div(word)?, columns.checked_mul(word)?])
            }
            Along::Parts => Some([units(rows), columns.checked_mul(self.byte_len())?]),
        }
    }

    /// The code at the place `at` of a unit.
    #[inline]
    pub(crate) fn code(&self, unit: u128, at: usize) -> usize {
        let shift = self.shifts.get(at).copied().unwrap_or(0);
        let mask = (1u128 << self.bits).strict_sub(1);
        ((unit >> shift) & mask) as usize
    }
}

/// A packing, and the value of each code.
#[derive(Debug, Clone)]
pub(crate) struct Decoder {
    pub(crate) packing: Packing,
    values: Vec<f32>,
    /// If each byte has two codes that are neighbours in the matrix: the values of each byte.
    pairs: Vec<[f32; 2]>,
    /// Whether each byte is a code.
    is_bytes: bool,
    /// The value of code 0, if each further code is one more.
    first: Option<f32>,
}

impl Decoder {
    /// `None` if there is not a value for each code.
    pub(crate) fn new(packing: Packing, values: Vec<f32>) -> Option<Self> {
        if values.len() != 1usize << packing.bits {
            return None;
        }
        let lie_every = |bits: usize| {
            let count = packing.byte_len.strict_mul(8).strict_div(bits);
            packing.shifts.iter().copied().eq((0..).step_by(bits).take(count))
        };
        let mut pairs = Vec::new();
        let shifts = match &*packing.shifts {
            &[first, second] if packing.byte_len == 1 => Some([first, second]),
            _ => lie_every(4).then_some([0, 4]),
        };
        if let (4, Some(shifts)) = (packing.bits, shifts) {
            let value =
                |byte: u8, shift: u32| values.get(usize::from((byte >> shift) & 15)).copied();
            pairs = (0..=255)
                .map(|byte| shifts.map(|shift| value(byte, shift).unwrap_or_default()))
                .collect();
        }
        let is_bytes = packing.bits == 8 && lie_every(8);
        let first = values.first().copied().filter(|first| {
            let numbers = (0u16..).map(|code| first + f32::from(code));
            values.iter().zip(numbers).all(|(value, number)| value.to_bits() == number.to_bits())
        });
        Some(Decoder { packing, values, pairs, is_bytes, first })
    }

    /// The value of each code.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// The value of code 0, if each further code is one more.
    pub(crate) const fn first(&self) -> Option<f32> {
        self.first
    }

    /// If each byte has two codes that are neighbours in the matrix: the values of each byte.
    pub(crate) fn pairs(&self) -> Option<&[[f32; 2]; 256]> {
        self.pairs.as_slice().try_into().ok()
    }

    /// The value of the code at the place `at` of a unit.
    pub(crate) fn value(&self, unit: u128, at: usize) -> f32 {
        self.values.get(self.packing.code(unit, at)).copied().unwrap_or(f32::NAN)
    }

    /// Fills `out` with the values of the codes of `bytes`, which begin with a whole unit.
    pub(crate) fn decode(&self, bytes: &[u8], out: &mut [f32]) {
        if let Some(pairs) = self.pairs() {
            return decode_pairs(pairs, bytes, out);
        }
        if let (true, Ok(values)) = (self.is_bytes, <&[f32; 256]>::try_from(&*self.values)) {
            for (place, byte) in out.iter_mut().zip(bytes) {
                *place = values.get(usize::from(*byte)).copied().unwrap_or_default();
            }
            return;
        }
        let (codes, len) = (self.packing.shifts.len().max(1), self.packing.byte_len.max(1));
        for (places, unit) in out.chunks_mut(codes).zip(bytes.chunks(len)) {
            self.decode_unit(unit_of(unit), places);
        }
    }

    /// Fills `places` with the values of the codes of a unit.
    pub(crate) fn decode_unit(&self, unit: u128, places: &mut [f32]) {
        for (at, place) in places.iter_mut().enumerate() {
            *place = self.value(unit, at);
        }
    }

    /// Fills `out` with the values of the codes at the bit `shift` of each word.
    pub(crate) fn decode_at(&self, words: &[u32], shift: usize, out: &mut [f32]) {
        let shift = shift & 31;
        let mask = (1u32 << self.packing.bits).strict_sub(1);
        if let Some(first) = self.first {
            for (place, word) in out.iter_mut().zip(words) {
                let [code, ..] = ((word >> shift) & mask).to_le_bytes();
                *place = first + f32::from(code);
            }
            return;
        }
        if let Ok(values) = <&[f32; 16]>::try_from(&*self.values) {
            for (place, word) in out.iter_mut().zip(words) {
                let code = (word >> shift) & 15;
                *place = values.get(code as usize).copied().unwrap_or(f32::NAN);
            }
            return;
        }
        for (place, word) in out.iter_mut().zip(words) {
            let code = ((word >> shift) & mask) as usize;
            *place = self.values.get(code).copied().unwrap_or(f32::NAN);
        }
    }
}

/// Fills `out` with the values of bytes of two codes each.
#[inline]
pub(crate) fn decode_pairs(pairs: &[[f32; 2]; 256], bytes: &[u8], out: &mut [f32]) {
    let (whole, last) = out.as_chunks_mut::<2>();
    let pair = |byte: &u8| pairs.get(usize::from(*byte)).copied().unwrap_or_default();
    for (places, byte) in whole.iter_mut().zip(bytes) {
        *places = pair(byte);
    }
    if let (Some(place), Some(byte)) = (last.first_mut(), bytes.get(whole.len())) {
        [*place, _] = pair(byte);
    }
}

/// At most 16 bytes as a little-endian number.
#[inline]
pub(crate) fn unit_of(bytes: &[u8]) -> u128 {
    if bytes.len() <= 4 {
        return short_unit_of(bytes).into();
    }
    bytes.iter().rev().fold(0, |unit, byte| (unit << 8) | u128::from(*byte))
}

/// At most 4 bytes as a little-endian number.
#[inline]
pub(crate) fn short_unit_of(bytes: &[u8]) -> u32 {
    match <[u8; 4]>::try_from(bytes) {
        Ok(word) => u32::from_le_bytes(word),
        Err(_) => bytes.iter().rev().fold(0, |unit, byte| (unit << 8) | u32::from(*byte)),
    }
}
