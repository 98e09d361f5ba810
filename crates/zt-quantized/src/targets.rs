//! Which group of the settings of compressed-tensors a module is of.
//!
//! Source: `match_targets` of compressed-tensors 0.20.1. A module is of the group that has its name. Otherwise the first
//! pattern counts, in the order of letters, and then the name of its class, which is in no file.

use std::collections::{BTreeMap, HashMap};

use regex_lite::Regex;
use serde_json::{Map, Value};

/// Patterns that are tried for each module. More are in no real file.
const PATTERNS_MAX: usize = 256;

/// The targets of all groups.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    /// The group of a module.
    names: HashMap<String, [String; 1]>,
    /// In the order in which they are tried.
    patterns: Vec<(Regex, [String; 1])>,
    /// The groups that may have any other module.
    others: Vec<String>,
}

impl Targets {
    pub(crate) fn new(groups: &Map<String, Value>) -> Self {
        let (mut names, mut patterns, mut others) = (HashMap::new(), BTreeMap::new(), Vec::new());
        for (key, group) in groups {
            let targets = group.get("targets").and_then(Value::as_array).into_iter().flatten();
            for target in targets.filter_map(Value::as_str) {
                let group = [key.clone()];
                match target.strip_prefix("re:") {
                    Some(pattern) => _ = patterns.insert(pattern.to_owned(), group),
                    None if target.contains('.') => _ = names.insert(target.to_owned(), group),
                    None => {
                        names.insert(target.to_owned(), group);
                        others.push(key.clone());
                    }
                }
            }
        }
        // Python anchors a pattern at the beginning.
        let compile =
            |(pattern, group)| Some((Regex::new(&format!("^(?:{pattern})")).ok()?, group));
        let is_short = patterns.len() <= PATTERNS_MAX;
        let patterns =
            is_short.then(|| patterns.into_iter().map(compile).collect::<Option<Vec<_>>>());
        match patterns.flatten() {
            Some(patterns) if !others.is_empty() => {
                others.dedup();
                Targets { names, patterns, others }
            }
            // A pattern that cannot be tried may name any module.
            patterns => {
                let others = groups.keys().cloned().collect();
                Targets { names, patterns: patterns.unwrap_or_default(), others }
            }
        }
    }

    /// The groups that a module may be of.
    pub(crate) fn groups_of(&self, module: &str) -> &[String] {
        if let Some(group) = self.names.get(module) {
            return group;
        }
        let mut patterns = self.patterns.iter();
        match patterns.find(|(pattern, _)| pattern.is_match(module)) {
            Some((_, group)) => group,
            None => &self.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(targets: &[&[&str]]) -> Targets {
        let group = |(at, targets): (usize, &&[&str])| {
            (format!("group_{at}"), serde_json::json!({ "targets": targets }))
        };
        Targets::new(&targets.iter().enumerate().map(group).collect())
    }

    #[test]
    fn a_name_counts_before_a_pattern_and_a_pattern_before_a_class() {
        let targets = groups(&[&["Linear"], &["re:.*q_proj$", "re:a.*"], &["layers.0.q_proj"]]);
        assert_eq!(targets.groups_of("layers.0.q_proj"), ["group_2"]);
        assert_eq!(targets.groups_of("layers.1.q_proj"), ["group_1"]);
        assert_eq!(targets.groups_of("attention"), ["group_1"]);
        assert_eq!(targets.groups_of("layers.1.a"), ["group_0"]);
        assert_eq!(targets.groups_of("layers.1.q_proj.x"), ["group_0"]);
    }

    #[test]
    fn a_pattern_that_cannot_be_tried_may_name_any_module() {
        let targets = groups(&[&["Linear"], &["re:^(?!.*head).*"], &["layers.0.q_proj"]]);
        assert_eq!(targets.groups_of("layers.0.q_proj"), ["group_2"]);
        assert_eq!(targets.groups_of("x"), ["group_0", "group_1", "group_2"]);
        let only_names = groups(&[&["layers.0.a"], &["re:layers.0.b"]]);
        assert_eq!(only_names.groups_of("model.layers.0.a").len(), 2);
    }
}
