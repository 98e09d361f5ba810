//! CBOR as §3.1 accepts it: one item, well-formed, keys unique, nested up to a limit.

use std::collections::BTreeSet;

/// The limit of §12.
const DEPTH: usize = 64;

/// Bytes of a key that has parts, §12.
const KEY: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Unsigned(u64),
    /// -1 minus the number.
    Negative(u64),
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Item>),
    /// The pairs, and the bytes that the map takes.
    Map(Vec<(Item, Item)>, usize),
    Tag(u64, Box<Item>),
    /// 20 is false, 21 true, 22 null.
    Simple(u8),
    /// The bits of a binary64 of the same value, or a NaN of the same payload.
    Float(u64),
}

impl Item {
    pub(super) fn as_unsigned(&self) -> Option<u64> {
        match self {
            Item::Unsigned(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_map(&self) -> Option<&[(Item, Item)]> {
        match self {
            Item::Map(pairs, _) => Some(pairs),
            _ => None,
        }
    }

    pub(super) fn as_array(&self) -> Option<&[Item]> {
        match self {
            Item::Array(items) => Some(items),
            _ => None,
        }
    }
}

/// `None` where no reader may accept the bytes.
pub(super) fn parse(bytes: &[u8]) -> Option<Item> {
    let mut parser = Parser { bytes, at: 0 };
    let item = parser.item(0)?;
    (parser.at == bytes.len()).then_some(item)
}

struct Parser<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// The first byte of an item and what follows it.
struct Head {
    major: u8,
    info: u8,
    argument: u64,
}

impl Parser<'_> {
    fn take(&mut self, len: u64) -> Option<&[u8]> {
        let end = self.at.checked_add(usize::try_from(len).ok()?)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn head(&mut self) -> Option<Head> {
        let first = self.take(1)?[0];
        let (major, info) = (first >> 5, first & 31);
        let argument = match info {
            0..=23 => u64::from(info),
            24..=27 => {
                let bytes = self.take(1 << (info - 24))?;
                bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
            }
            31 if matches!(major, 2..=5 | 7) => 0,
            _ => return None,
        };
        Some(Head { major, info, argument })
    }

    /// Whether a break is next; it is taken.
    fn at_break(&mut self) -> bool {
        let is_break = self.bytes.get(self.at) == Some(&0xff);
        self.at += usize::from(is_break);
        is_break
    }

    fn item(&mut self, depth: usize) -> Option<Item> {
        let start = self.at;
        let head = self.head()?;
        let is_nested = matches!(head.major, 4..=6);
        let depth = depth + usize::from(is_nested);
        if depth > DEPTH {
            return None;
        }
        Some(match head.major {
            0 => Item::Unsigned(head.argument),
            1 => Item::Negative(head.argument),
            2 => Item::Bytes(self.string(&head)?),
            3 => Item::Text(self.text(&head)?),
            4 => Item::Array(self.array(&head, depth)?),
            5 => {
                let pairs = self.map(&head, depth)?;
                Item::Map(pairs, self.at - start)
            }
            6 => Item::Tag(head.argument, Box::new(self.item(depth)?)),
            _ => simple_or_float(&head)?,
        })
    }

    fn string(&mut self, head: &Head) -> Option<Vec<u8>> {
        if head.info != 31 {
            return Some(self.take(head.argument)?.to_vec());
        }
        let mut whole = Vec::new();
        while !self.at_break() {
            whole.extend(self.chunk(head.major)?);
        }
        Some(whole)
    }

    /// Each chunk is UTF-8 by itself.
    fn text(&mut self, head: &Head) -> Option<String> {
        if head.info != 31 {
            return String::from_utf8(self.take(head.argument)?.to_vec()).ok();
        }
        let mut whole = String::new();
        while !self.at_break() {
            whole.push_str(std::str::from_utf8(&self.chunk(head.major)?).ok()?);
        }
        Some(whole)
    }

    fn chunk(&mut self, major: u8) -> Option<Vec<u8>> {
        let head = self.head()?;
        if head.major != major || head.info == 31 {
            return None;
        }
        Some(self.take(head.argument)?.to_vec())
    }

    fn array(&mut self, head: &Head, depth: usize) -> Option<Vec<Item>> {
        let mut items = Vec::new();
        let mut left = head.argument;
        while match head.info {
            31 => !self.at_break(),
            _ => left > 0,
        } {
            items.push(self.item(depth)?);
            left = left.saturating_sub(1);
        }
        Some(items)
    }

    fn map(&mut self, head: &Head, depth: usize) -> Option<Vec<(Item, Item)>> {
        let mut pairs = Vec::new();
        let mut keys = BTreeSet::new();
        let mut left = head.argument;
        while match head.info {
            31 => !self.at_break(),
            _ => left > 0,
        } {
            let start = self.at;
            let key = self.item(depth)?;
            let has_parts = matches!(key, Item::Array(_) | Item::Map(..) | Item::Tag(..));
            if has_parts && self.at - start > KEY {
                return None;
            }
            if !keys.insert(encoded(&key)) {
                return None;
            }
            pairs.push((key, self.item(depth)?));
            left = left.saturating_sub(1);
        }
        Some(pairs)
    }
}

fn simple_or_float(head: &Head) -> Option<Item> {
    let bits = head.argument;
    Some(match head.info {
        0..=23 => Item::Simple(head.info),
        24 => Item::Simple(u8::try_from(bits).ok().filter(|number| *number >= 32)?),
        25 => Item::Float(widened(bits, 5, 10)),
        26 => Item::Float(widened(bits, 8, 23)),
        27 => Item::Float(bits),
        _ => return None,
    })
}

/// The bits of the binary64 that equals a narrower float, NaN payloads included.
fn widened(bits: u64, exponent_len: u32, mantissa_len: u32) -> u64 {
    let sign = bits >> (exponent_len + mantissa_len) << 63;
    let most = (1 << exponent_len) - 1;
    let exponent = bits >> mantissa_len & most;
    let mantissa = bits & ((1 << mantissa_len) - 1);
    let bias = i32::try_from(most >> 1).unwrap_or(0);
    if exponent == most {
        return sign | 0x7ff << 52 | mantissa << (52 - mantissa_len);
    }
    // Small whole numbers times powers of two: exact.
    let (whole, power) = match exponent {
        0 => (mantissa, 1 - bias),
        _ => (mantissa | 1 << mantissa_len, exponent as i32 - bias),
    };
    let value = whole as f64 * 2f64.powi(power - mantissa_len as i32);
    sign | value.to_bits()
}

/// One encoding for all that is equal: not §3.5's, whose floats are shorter, but equal where that is.
fn encoded(item: &Item) -> Vec<u8> {
    let head = |major: u8, argument: u64| {
        let mut out = vec![major];
        out.extend(argument.to_be_bytes());
        out
    };
    match item {
        Item::Unsigned(number) => head(0, *number),
        Item::Negative(number) => head(1, *number),
        Item::Bytes(bytes) => [head(2, bytes.len() as u64), bytes.clone()].concat(),
        Item::Text(text) => [head(3, text.len() as u64), text.as_bytes().to_vec()].concat(),
        Item::Array(items) => {
            let items: Vec<Vec<u8>> = items.iter().map(encoded).collect();
            [head(4, items.len() as u64), items.concat()].concat()
        }
        Item::Map(pairs, _) => {
            let pair = |(key, value): &(Item, Item)| [encoded(key), encoded(value)].concat();
            let mut pairs: Vec<Vec<u8>> = pairs.iter().map(pair).collect();
            pairs.sort();
            [head(5, pairs.len() as u64), pairs.concat()].concat()
        }
        Item::Tag(number, inner) => [head(6, *number), encoded(inner)].concat(),
        Item::Simple(number) => head(7, u64::from(*number)),
        Item::Float(bits) => head(8, *bits),
    }
}
