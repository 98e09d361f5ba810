//! Which values hold a certain kind of value, at any depth.

use crate::fault::PickleFault;
use crate::global::Global;
use crate::heap::{Heap, Node, NodeId, Value, reserve};

/// The values of a heap that are of a kind, or hold a value of that kind at any depth.
///
/// ```
/// use zt_pickle::{NoGlobal, Node, load};
///
/// // A list of an object outside the pickle.
/// let pickle = load(b"(lU\x01xQa.", |_, _, _| None::<NoGlobal>)?;
/// let holders = pickle.heap.holders(|node| matches!(node, Node::Persistent(_))).unwrap();
/// assert!(holders.has(pickle.root));
/// # Ok::<(), zt_pickle::PickleError>(())
/// ```
#[derive(Debug)]
pub struct Holders(Vec<bool>);

impl Holders {
    /// Whether a value is of the kind or holds one.
    pub fn has<G: Global>(&self, value: Value<G>) -> bool {
        matches!(value, Value::Node(id) if self.0.get(id.place()) == Some(&true))
    }
}

/// A holder of a value, and the link to the next holder of the same value.
type Link = (u32, Option<u32>);

impl<G: Global> Heap<'_, G> {
    /// The values for which `is_kind` holds, and all that hold them, in time and memory in
    /// proportion to the heap.
    ///
    /// # Errors
    ///
    /// [`PickleFault::Allocation`].
    pub fn holders(&self, is_kind: impl Fn(&Node<'_, G>) -> bool) -> Result<Holders, PickleFault> {
        let (mut links, mut first) = (Vec::new(), Vec::new());
        let (mut is_in, mut rest) = (Vec::new(), Vec::new());
        reserve(&mut first, self.values().count())?;
        reserve(&mut is_in, self.values().count())?;
        first.resize(self.values().count(), None);
        is_in.resize(self.values().count(), false);
        for (holder, value) in (0..).zip(self.values()) {
            let Some(node) = self.node(value) else {
                continue;
            };
            self.each_child(node, |child| {
                if let Some(last) = first.get_mut(child.place()) {
                    let link: Link = (holder, *last);
                    reserve(&mut links, 1)?;
                    let place = u32::try_from(links.len());
                    *last = Some(place.map_err(|_| PickleFault::Limit {
                        what: "values within others",
                        limit: u32::MAX.into(),
                    })?);
                    links.push(link);
                }
                Ok(())
            })?;
            if is_kind(node) {
                reserve(&mut rest, 1)?;
                rest.push(holder);
            }
        }
        while let Some(place) = rest.pop() {
            match is_in.get_mut(place as usize) {
                Some(is_in) if !*is_in => *is_in = true,
                _ => continue,
            }
            let mut next = first.get(place as usize).copied().flatten();
            while let Some((holder, behind)) = next.and_then(|link: u32| links.get(link as usize)) {
                reserve(&mut rest, 1)?;
                rest.push(*holder);
                next = *behind;
            }
        }
        Ok(Holders(is_in))
    }

    /// Visits all larger values that a node holds.
    fn each_child(
        &self,
        node: &Node<'_, G>,
        mut visit: impl FnMut(NodeId) -> Result<(), PickleFault>,
    ) -> Result<(), PickleFault> {
        let mut visit = |value: &Value<G>| match value {
            Value::Node(id) => visit(*id),
            _ => Ok(()),
        };
        match node {
            Node::Tuple(items) | Node::List(items) | Node::Set(items) | Node::FrozenSet(items) => {
                items.iter().try_for_each(visit)
            }
            Node::Dict(pairs) => pairs.iter().try_for_each(|(key, value)| {
                visit(key)?;
                visit(value)
            }),
            Node::Made(made) => [made.arguments].iter().chain(&made.state).try_for_each(visit),
            Node::StandIn(object) => {
                let given = [object.state, object.items, object.pairs];
                let given = given.iter().flatten();
                [object.arguments].iter().chain(given).try_for_each(visit)
            }
            Node::Text(_)
            | Node::Halves(_)
            | Node::Bytes(_)
            | Node::Elsewhere { .. }
            | Node::Long(_)
            | Node::Named { .. }
            | Node::Persistent(_) => Ok(()),
        }
    }
}
