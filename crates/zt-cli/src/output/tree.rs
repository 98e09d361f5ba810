//! Sums of objects by the parts of their names.

use std::cmp::{Ordering, Reverse};

use serde::Serialize;

use crate::output::size::Sum;
use crate::output::text::cell;

/// Sums over objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sums {
    pub(crate) objects: u64,
    /// Elements of all shapes.
    pub(crate) parameters: Sum,
    /// Bytes after decoding.
    pub(crate) decoded_size: Sum,
    /// Bytes as they are stored.
    pub(crate) stored_size: Sum,
}

/// What a tree adds up.
pub(crate) trait Summed: Clone + Default {
    fn add(&mut self, other: &Self);
    /// For [`Order::Size`].
    fn size(&self) -> u64;
}

impl Summed for Sums {
    fn size(&self) -> u64 {
        self.decoded_size.or_most()
    }

    fn add(&mut self, other: &Self) {
        self.objects += other.objects;
        self.parameters.add(other.parameters.0);
        self.decoded_size.add(other.decoded_size.0);
        self.stored_size.add(other.stored_size.0);
    }
}

/// The order of the branches of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By name, where `layers.2` comes before `layers.10`.
    Name,
    /// The largest first.
    Size,
    /// As the objects come.
    Given,
}

/// A line of the tree: an object, or a prefix at which names part.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Branch<'n, S = Sums> {
    /// The prefix that the names have in common, at the end of a part.
    pub(crate) name: &'n str,
    /// The bytes of the prefix of the branch above.
    #[serde(skip)]
    pub(crate) above: usize,
    /// 0 at the top.
    pub(crate) depth: usize,
    #[serde(flatten)]
    pub(crate) sums: S,
}

impl<S> Branch<'_, S> {
    /// Its part of the name, indented.
    pub(crate) fn label(&self) -> String {
        /// Deeper branches stand below each other. The width of a table is bounded.
        const DEEPEST: usize = 32;
        let part = self.name.get(self.above..).unwrap_or_default();
        let part = match self.above {
            0 => part,
            _ => part.strip_prefix(['.', '/']).unwrap_or(part),
        };
        let indent = "  ".repeat(self.depth.min(DEEPEST));
        format!("{indent}{}", cell(part))
    }
}

struct Node<'n, S> {
    name: &'n str,
    /// The place of its first object in the list.
    first: usize,
    sums: S,
    children: Vec<usize>,
}

/// The tree of these objects, each with its sums, from the top down to `max_depth`.
///
/// A prefix with a single branch is no line of its own. So there are at most two lines per object,
/// however many parts a name has.
pub(crate) fn tree<'n, S: Summed>(
    objects: &[(&'n str, S)],
    order: Order,
    max_depth: usize,
) -> Vec<Branch<'n, S>> {
    let mut sorted: Vec<usize> = (0..objects.len()).collect();
    sorted.sort_by(|a, b| natural(objects[*a].0, objects[*b].0));
    // The nodes by their position; `open` is the path from the top to the last object.
    let mut nodes: Vec<Node<'n, S>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut tops: Vec<usize> = Vec::new();
    let mut last = "";
    for at in sorted {
        let (name, sums) = (objects[at].0, objects[at].1.clone());
        let common = common_len(last, name);
        // Nodes that are no prefix of this name are complete. The empty name is a prefix of none.
        let mut complete = None;
        while let Some(top) = open.pop() {
            if common > 0 && nodes[top].name.len() <= common {
                open.push(top);
                break;
            }
            if let Some(child) = complete.replace(top) {
                adopt(&mut nodes, top, child);
            }
        }
        match (complete, open.last()) {
            (None, _) => {}
            (Some(child), Some(above)) if nodes[*above].name.len() == common => {
                adopt(&mut nodes, *above, child);
            }
            (Some(child), _) if common == 0 => tops.push(child),
            // Names part here for the first time.
            (Some(child), _) => {
                let parting = nodes.len();
                open.push(parting);
                nodes.push(Node {
                    name: name.get(..common).unwrap_or_default(),
                    first: at,
                    sums: S::default(),
                    children: Vec::new(),
                });
                adopt(&mut nodes, parting, child);
            }
        }
        open.push(nodes.len());
        nodes.push(Node { name, first: at, sums, children: Vec::new() });
        last = name;
    }
    while let Some(top) = open.pop() {
        match open.last() {
            Some(above) => adopt(&mut nodes, *above, top),
            None => tops.push(top),
        }
    }
    lines(&nodes, tops, order, max_depth)
}

fn adopt<S: Summed>(nodes: &mut [Node<'_, S>], above: usize, child: usize) {
    let (sums, first) = (nodes[child].sums.clone(), nodes[child].first);
    let node = &mut nodes[above];
    node.sums.add(&sums);
    node.first = node.first.min(first);
    node.children.push(child);
}

/// The nodes in the order of the lines. Names may nest deeper than calls can.
fn lines<'n, S: Summed>(
    nodes: &[Node<'n, S>],
    tops: Vec<usize>,
    order: Order,
    max_depth: usize,
) -> Vec<Branch<'n, S>> {
    let sorted = |mut children: Vec<usize>| {
        // They come sorted by name, and each sort is stable.
        match order {
            Order::Name => {}
            Order::Size => children.sort_by_key(|at| Reverse(nodes[*at].sums.size())),
            Order::Given => children.sort_by_key(|at| nodes[*at].first),
        }
        children
    };
    let mut lines = Vec::new();
    let mut stack: Vec<(usize, usize, usize)> = Vec::new();
    let push = |stack: &mut Vec<(usize, usize, usize)>, children, depth, above| {
        let children = sorted(children).into_iter().rev();
        stack.extend(children.map(|at| (at, depth, above)));
    };
    push(&mut stack, tops, 0, 0);
    while let Some((at, depth, above)) = stack.pop() {
        if depth >= max_depth {
            continue;
        }
        let node = &nodes[at];
        lines.push(Branch { name: node.name, above, depth, sums: node.sums.clone() });
        let children = node.children.clone();
        push(&mut stack, children, depth + 1, node.name.len());
    }
    lines
}

/// The bytes of the parts that both names begin with. A dot or a slash begins the part after it.
fn common_len(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let ends = |name: &[u8]| name.get(same).is_none_or(is_separator);
    if ends(a) && ends(b) {
        return same;
    }
    let same = a.get(..same).unwrap_or_default();
    same.iter().rposition(is_separator).unwrap_or(0)
}

fn is_separator(byte: &u8) -> bool {
    matches!(byte, b'.' | b'/')
}

/// The first part of a text that begins with one.
fn first_part(text: &str) -> &str {
    let mut bytes = text.bytes().enumerate().skip(1);
    let end = bytes.find_map(|(at, byte)| is_separator(&byte).then_some(at));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Compares names part by part, and numbers in them by value.
fn natural(a: &str, b: &str) -> Ordering {
    let common = common_len(a, b);
    let [a, b] = [a, b].map(|name| first_part(name.get(common..).unwrap_or_default()));
    let by_value = match (number(a), number(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => Ordering::Equal,
    };
    by_value.then_with(|| a.cmp(b))
}

/// The value of a part that is a number: its digits by their count.
fn number(part: &str) -> Option<(usize, &str)> {
    let digits = part.trim_start_matches(['.', '/']);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let digits = digits.trim_start_matches('0');
    is_number.then_some((digits.len(), digits))
}
