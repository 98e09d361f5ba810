//! Parses the Python literals of headers as data, and never evaluates them.

/// The most levels of lists, tuples and dicts. Structured dtypes nest a few levels.
const DEPTH_MAX: usize = 32;

/// A value of Python's `ast.literal_eval`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Literal<'t> {
    /// A string without its quotes and their prefix. Escapes are kept, because no key or dtype has
    /// one.
    Text(&'t str),
    /// An integer with 64 bits. Python 2 writes `3L`.
    Unsigned(u64),
    /// A negative integer, or one with more than 64 bits.
    Beyond,
    Bool(bool),
    None,
    Tuple(Vec<Literal<'t>>),
    List(Vec<Literal<'t>>),
    Dict(Vec<(Literal<'t>, Literal<'t>)>),
}

/// Parses `text` as one literal with white space around it. The error is the offset of the fault.
pub(super) fn parse(text: &str) -> Result<Literal<'_>, usize> {
    let mut parser = Parser { rest: text };
    let value = parser.value(0);
    parser.skip_space();
    match value {
        Some(value) if parser.rest.is_empty() => Ok(value),
        _ => Err(text.len().abs_diff(parser.rest.len())),
    }
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    /// Skips bytes that were looked at, and returns them.
    fn skip(&mut self, len: usize) -> &'t str {
        let (skipped, rest) = self.rest.split_at(len);
        self.rest = rest;
        skipped
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        loop {
            self.skip_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0C'));
            if !self.rest.starts_with('#') {
                return;
            }
            self.skip_while(|c| c != '\n');
        }
    }

    /// Skips the characters that `is_wanted`, and returns them.
    fn skip_while(&mut self, is_wanted: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_wanted(c));
        self.skip(end.unwrap_or(self.rest.len()))
    }

    /// Skips `token` if it is next, and returns whether it was.
    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let is_next = self.rest.starts_with(token);
        if is_next {
            self.skip(token.len());
        }
        is_next
    }

    fn value(&mut self, depth: usize) -> Option<Literal<'t>> {
        self.skip_space();
        match self.rest.chars().next()? {
            _ if depth > DEPTH_MAX => None,
            quote @ ('\'' | '"') => self.text(quote),
            'u' | 'U' | 'r' | 'R' => {
                self.skip(1);
                let quote = self.rest.chars().next()?;
                matches!(quote, '\'' | '"').then(|| self.text(quote))?
            }
            '0'..='9' | '-' | '+' => self.integer(),
            '(' => self.tuple(depth),
            '[' => {
                self.skip(1);
                self.items("]", depth).map(|(items, _)| Literal::List(items))
            }
            '{' => self.dict(depth),
            _ => self.word(),
        }
    }

    fn text(&mut self, quote: char) -> Option<Literal<'t>> {
        self.skip(1);
        let mut is_escaped = false;
        let end = self.rest.char_indices().find(|(_, c)| {
            let ends = !is_escaped && (*c == quote || *c == '\n');
            is_escaped = !is_escaped && *c == '\\';
            ends
        });
        let (end, _) = end.filter(|(_, c)| *c == quote)?;
        let text = self.skip(end);
        self.skip(1);
        Some(Literal::Text(text))
    }

    fn integer(&mut self) -> Option<Literal<'t>> {
        let is_negative = self.take("-");
        if !is_negative {
            self.take("+");
        }
        self.skip_space();
        let word = self.skip_while(|c| c.is_alphanumeric() || matches!(c, '.' | '_'));
        match magnitude(word.strip_suffix('L').unwrap_or(word))? {
            Some(number) if !is_negative => Some(Literal::Unsigned(number)),
            _ => Some(Literal::Beyond),
        }
    }

    /// Parentheses around one value without a comma are not a tuple.
    fn tuple(&mut self, depth: usize) -> Option<Literal<'t>> {
        self.skip(1);
        let (mut items, has_comma) = self.items(")", depth)?;
        if items.len() == 1 && !has_comma {
            return items.pop();
        }
        Some(Literal::Tuple(items))
    }

    /// The values up to `end`, and whether a comma follows the last.
    fn items(&mut self, end: &str, depth: usize) -> Option<(Vec<Literal<'t>>, bool)> {
        let mut items = Vec::new();
        let mut has_comma = true;
        while !self.take(end) {
            if !has_comma {
                return None;
            }
            items.push(self.value(depth.strict_add(1))?);
            has_comma = self.take(",");
        }
        Some((items, has_comma))
    }

    fn dict(&mut self, depth: usize) -> Option<Literal<'t>> {
        self.skip(1);
        let mut pairs = Vec::new();
        let mut has_comma = true;
        while !self.take("}") {
            if !has_comma {
                return None;
            }
            let key = self.value(depth.strict_add(1))?;
            let value = self.take(":").then(|| self.value(depth.strict_add(1)))??;
            pairs.push((key, value));
            has_comma = self.take(",");
        }
        Some(Literal::Dict(pairs))
    }

    /// A constant. If more letters follow, the caller finds an error there.
    fn word(&mut self) -> Option<Literal<'t>> {
        let words = [
            ("True", Literal::Bool(true)),
            ("False", Literal::Bool(false)),
            ("None", Literal::None),
        ];
        let found = words.into_iter().find(|(word, _)| self.take(word));
        found.map(|(_, value)| value)
    }
}

/// A Python integer: decimal or with the prefix of a base, with underscores between digits.
/// `Some(None)` for more than 64 bits. Floats and complex numbers are invalid in headers.
fn magnitude(word: &str) -> Option<Option<u64>> {
    let (base, digits) = match word.get(..2) {
        Some("0x" | "0X") => (16, word.get(2..)?),
        Some("0o" | "0O") => (8, word.get(2..)?),
        Some("0b" | "0B") => (2, word.get(2..)?),
        _ => (10, word),
    };
    // An underscore may follow the prefix.
    let digits = match base {
        10 => digits,
        _ => digits.strip_prefix('_').unwrap_or(digits),
    };
    let is_number = |digits: &str| {
        let mut digits = digits.chars();
        digits.as_str() != "" && digits.all(|digit| digit.is_digit(base))
    };
    // Leading zeros are only allowed in zero.
    let is_octal =
        base == 10 && digits.starts_with('0') && digits.contains(|c| c > '0' && c <= '9');
    if is_octal || !digits.split('_').all(is_number) {
        return None;
    }
    Some(u64::from_str_radix(&digits.replace('_', ""), base).ok())
}
