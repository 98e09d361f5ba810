//! What Python would call or import when it loads a pickle, as text. Nothing is run to find it.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::fault::PickleError;
use crate::global::{Global, NoGlobal};
use crate::heap::{Heap, Node, Value};
use crate::machine::load;
use crate::risk::{Risk, Use};

/// The most globals of one pickle that are listed.
const USES: usize = 64;

/// The limit of a name and of the text of arguments, in characters.
const LEN: usize = 120;

/// Values within values that are shown, and items of one.
const DEPTH: usize = 4;
const ITEMS: usize = 8;

/// Pickles within pickles that are looked into.
const NESTED: usize = 4;

/// The globals that bytes would use as pickles, one after another, up to the first that is invalid. What that
/// one does before it breaks counts: Python runs it.
///
/// ```
/// let found = zt_pickle::uses(b"cos\nsystem\n(Vtrue\ntR.");
/// assert!(found[0].is_danger);
/// assert_eq!(found[0].to_string(), r#"Python would call os.system("true"); nothing was run"#);
/// ```
pub fn uses(bytes: &[u8]) -> Vec<Use> {
    let mut found = Vec::new();
    in_streams(bytes, NESTED, &mut found);
    found
}

/// Whether [`uses`] can find something in bytes that begin with this one: it is an instruction that needs no
/// values before it.
pub const fn begins(first: u8) -> bool {
    matches!(
        first,
        0x80 | 0x82..=0x84 | 0x88..=0x8f | 0x95 | 0x96
            | b'(' | b')' | b']' | b'}'
            | b'B' | b'C' | b'F' | b'G' | b'I'..=b'N' | b'S'..=b'V' | b'X' | b'c'
    )
}

fn in_streams(mut bytes: &[u8], nested: usize, found: &mut Vec<Use>) {
    while !bytes.is_empty() && found.len() < USES {
        match load(bytes, |_, _, _| None::<NoGlobal>) {
            Ok(pickle) => {
                pickle.heap.collect(nested, found);
                bytes = pickle.rest;
            }
            Err(PickleError { uses, .. }) => {
                for one in uses {
                    add(found, one);
                }
                return;
            }
        }
    }
}

/// Adds a global once.
fn add(found: &mut Vec<Use>, one: Use) {
    if found.len() < USES && !found.iter().any(|known| known.global == one.global) {
        found.push(one);
    }
}

impl<G: Global> Heap<'_, G> {
    /// The globals of this pickle that the caller does not accept and that are not known to be harmless, called
    /// or named, also by values that the pickle drops, and by pickles in its byte strings.
    pub fn uses(&self) -> Vec<Use> {
        let mut found = Vec::new();
        self.collect(NESTED, &mut found);
        found
    }

    fn collect(&self, nested: usize, found: &mut Vec<Use>) {
        let mut called = HashMap::new();
        for value in self.values() {
            if let Some(Node::StandIn(object)) = self.node(value)
                && let Some(global) = self.named(object.class)
            {
                called.entry(global).or_insert(object.arguments);
            }
        }
        for value in self.values() {
            let Some(node) = self.node(value) else {
                continue;
            };
            if let Node::Named { .. } = node
                && let Some((module, name)) = self.named(value)
            {
                let risk = Risk::of(module, name);
                if risk == Risk::Harmless {
                    continue;
                }
                let arguments = called.get(&(module, name));
                let global = format!("{}.{}", cut(module), cut(name));
                let one = Use {
                    global,
                    is_danger: risk == Risk::Danger,
                    arguments: arguments.map(|arguments| self.shown(*arguments)),
                };
                add(found, one);
            }
            if let Some(nested) = nested.checked_sub(1) {
                match node {
                    Node::Bytes(bytes) if is_pickle(bytes) => in_streams(bytes, nested, found),
                    // Protocol 2 has bytes as a text of Latin-1.
                    Node::Text(text) if is_pickle_in_latin1(text) => {
                        let bytes = text.chars().map(|it| u8::try_from(u32::from(it)));
                        if let Ok(bytes) = bytes.collect::<Result<Vec<u8>, _>>() {
                            in_streams(&bytes, nested, found);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Arguments as text.
    fn shown(&self, arguments: Value<G>) -> String {
        let mut text = String::new();
        match self.tuple(arguments) {
            Some(items) => self.show_items(items.iter().copied(), DEPTH, &mut text),
            None => self.show(arguments, DEPTH, &mut text),
        }
        shortened(&text)
    }

    fn show_items(&self, items: impl Iterator<Item = Value<G>>, depth: usize, text: &mut String) {
        for (at, item) in items.enumerate() {
            if at > 0 {
                text.push_str(", ");
            }
            if at == ITEMS || text.len() > LEN {
                text.push('…');
                return;
            }
            self.show(item, depth, text);
        }
    }

    fn show(&self, value: Value<G>, depth: usize, text: &mut String) {
        let Some(deeper) = depth.checked_sub(1) else {
            text.push('…');
            return;
        };
        // Writing to a text cannot fail.
        let _ = match value {
            Value::None => write!(text, "None"),
            Value::Bool(true) => write!(text, "True"),
            Value::Bool(false) => write!(text, "False"),
            Value::Int(number) => write!(text, "{number}"),
            Value::Float(number) => write!(text, "{number}"),
            Value::Global(_) => write!(text, "…"),
            Value::Node(_) => match self.node(value) {
                Some(Node::Text(found)) => write!(text, "\"{}\"", cut(found)),
                Some(Node::Bytes(bytes)) => {
                    let shown = bytes.get(..LEN).unwrap_or(bytes);
                    write!(text, "b\"{}\"", shown.escape_ascii())
                }
                Some(Node::Named { .. }) => {
                    let (module, name) = self.named(value).unwrap_or_default();
                    write!(text, "{}.{}", cut(module), cut(name))
                }
                Some(
                    Node::Tuple(items)
                    | Node::List(items)
                    | Node::Set(items)
                    | Node::FrozenSet(items),
                ) => {
                    text.push('(');
                    self.show_items(items.iter().copied(), deeper, text);
                    write!(text, ")")
                }
                Some(Node::Dict(pairs)) => {
                    text.push('{');
                    let items = pairs.iter().flat_map(|(key, value)| [*key, *value]);
                    self.show_items(items, deeper, text);
                    write!(text, "}}")
                }
                Some(Node::StandIn(object)) => {
                    self.show(object.class, deeper, text);
                    text.push('(');
                    let arguments = self.tuple(object.arguments).unwrap_or_default();
                    self.show_items(arguments.iter().copied(), deeper, text);
                    write!(text, ")")
                }
                _ => write!(text, "{}", self.describe(value)),
            },
        };
    }
}

/// The beginning of a text, escaped.
fn cut(text: &str) -> String {
    shortened(text).escape_debug().to_string()
}

fn shortened(text: &str) -> String {
    let beginning: String = text.chars().take(LEN).collect();
    if beginning.len() < text.len() { beginning + "…" } else { beginning }
}

/// Whether bytes may be a pickle: PROTO, or a GLOBAL of the protocols 0 and 1.
fn is_pickle(bytes: &[u8]) -> bool {
    match bytes {
        [0x80, 0..=5, ..] => true,
        [b'c', rest @ ..] | [b'(', b'c' | b'i', rest @ ..] => {
            rest.ends_with(b".") && rest.contains(&b'\n')
        }
        _ => false,
    }
}

fn is_pickle_in_latin1(text: &str) -> bool {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some('\u{80}'), Some('\0'..='\u{5}')) => true,
        _ => is_pickle(text.as_bytes()),
    }
}
