//! Our reader against a plain one.

use std::collections::BTreeMap;

use zt::{Limits, OpenOptions};

use super::limits;
use crate::json;
use crate::naive::{self, Budget, Verdict};
use crate::observe::{Seen, SeenObject, observe};

/// A whole file, read by our reader and by the one of [`crate::naive`]: both refuse it, or both find
/// the same objects at fault and the same bytes in the others.
pub fn differential(bytes: &[u8]) {
    assert_same(bytes, limits());
}

/// As [`differential`], under any limits.
///
/// # Panics
///
/// Where the two disagree.
pub fn assert_same(bytes: &[u8], limits: Limits) {
    let budget = Budget {
        manifest_len: limits.manifest_len,
        decoded_len: limits.decoded_len,
    };
    let naive = naive::read(bytes, budget);
    let options = OpenOptions::new().limits(limits);
    let seen = observe(options.open_bytes(bytes.to_vec()));
    let ours = seen.refused.is_none().then(|| verdicts(&seen));
    assert_eq!(
        ours, naive,
        "ours, and the naive reader's: {:?}",
        seen.refused
    );
}

fn verdicts(seen: &Seen) -> BTreeMap<String, Verdict> {
    let verdict = |(name, object): (&String, &SeenObject)| {
        let of_it = |problem: &&crate::observe::Refusal| problem.object.as_ref() == Some(name);
        let is_sound = seen.problems.iter().find(of_it).is_none();
        (name.clone(), verdict(object, is_sound))
    };
    seen.objects.iter().map(verdict).collect()
}

fn verdict(object: &SeenObject, is_sound: bool) -> Verdict {
    if object.fault.is_some() {
        return Verdict::Fault;
    }
    let components = object.components.iter().map(|(role, component)| {
        let content = component.content.as_ref().ok();
        let content = content.map(|content| (content.byte_len, json::unhex(&content.sha256)));
        (role.clone(), content)
    });
    Verdict::Readable {
        components: components.collect(),
        is_sound,
    }
}
