//! The choice of objects, and their new names.

use std::collections::{HashMap, hash_map};
use std::mem::take;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use regex_lite::{Regex, RegexBuilder};
use zt::{Error, ErrorKind, File, Limits, codes};
use zt_convert::Names;

use crate::args::glob;
use crate::failure::Failure;
use crate::output::text::printable;

/// The options of every command that reads objects of files.
#[derive(Debug, Default, Args)]
pub(crate) struct SelectArgs {
    /// Take only objects whose name matches: `*` is any text, `?` one character, `[a-z]` a set; may be
    /// given several times
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern, display_order = 70)]
    include: Vec<String>,

    /// Leave out objects whose name matches; may be given several times
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern, display_order = 71)]
    exclude: Vec<String>,

    /// Rename objects by a rule as in `sed -E`: s/^model\.//; several rules apply in order
    #[arg(
        long,
        value_name = "RULE",
        value_parser = rule_of_input,
        display_order = 72
    )]
    rename: Vec<Rule>,

    /// Rename objects as a file lists: in each line an old name, a tab, the new name; the rules of
    /// --rename come after
    #[arg(
        long,
        value_name = "FILE",
        value_parser = name_list(),
        value_hint = clap::ValueHint::FilePath,
        display_order = 73,
        hide_short_help = true
    )]
    rename_from: Option<NameList>,
}

/// The most memory of a compiled pattern. Its time grows with that, and counted repeats make it large.
const LARGEST: usize = 32 << 10;

/// The most groups and matches in a replacement: each may be as long as the name.
const REFERENCES: usize = 64;

/// `s/PATTERN/REPLACEMENT/FLAGS`.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// The number of the only input that it is for, from 1 on.
    input: Option<usize>,
    pattern: Regex,
    replacement: String,
    is_global: bool,
}

impl SelectArgs {
    /// Whether all objects are taken under their own names.
    pub(crate) fn is_empty(&self) -> bool {
        let is_renaming = !self.rename.is_empty() || self.rename_from.is_some();
        self.include.is_empty() && self.exclude.is_empty() && !is_renaming
    }

    /// The patterns alone, for a command that gives them another meaning; the rules remain.
    pub(crate) fn take_patterns(&mut self) -> Self {
        let (include, exclude) = (take(&mut self.include), take(&mut self.exclude));
        SelectArgs { include, exclude, ..SelectArgs::default() }
    }

    /// Whether patterns of `--include` choose.
    pub(crate) fn has_include(&self) -> bool {
        !self.include.is_empty()
    }

    /// What of it is for an input with one of these `numbers`, of `count` inputs: patterns and rules
    /// without a number, and those with its number.
    ///
    /// # Errors
    ///
    /// Code `misuse` for a number above `count`, and 0.
    pub(crate) fn of_input(&self, numbers: &[usize], count: usize) -> Result<Self, Failure> {
        let is_for = |input: Option<usize>| match input {
            Some(input) if !(1..=count).contains(&input) => Err(Failure::misuse(format!(
                "{input}: is for input {input}, and the number of inputs is {count}; [{input}]: matches these characters in a name"
            ))),
            input => Ok(input.is_none_or(|input| numbers.contains(&input))),
        };
        let patterns = |patterns: &[String]| {
            let mut chosen = Vec::new();
            for pattern in patterns {
                let (input, pattern) = numbered(pattern);
                if is_for(input)? {
                    chosen.push(pattern.to_owned());
                }
            }
            Ok::<_, Failure>(chosen)
        };
        let mut rename = Vec::new();
        for rule in &self.rename {
            if is_for(rule.input)? {
                let input = None;
                rename.push(Rule { input, ..rule.clone() });
            }
        }
        Ok(SelectArgs {
            include: patterns(&self.include)?,
            exclude: patterns(&self.exclude)?,
            rename,
            rename_from: self.rename_from.clone(),
        })
    }

    /// The chosen objects of `file`, under their new names. Patterns match the old names.
    ///
    /// # Errors
    ///
    /// Code `duplicate-name` if two objects get one name; code `misuse` if one gets an empty name, and for
    /// a rule with the number of an input.
    pub(crate) fn apply(&self, file: File) -> Result<File, Failure> {
        if self.is_empty() {
            return Ok(file);
        }
        if let Some(input) = self.rename.iter().find_map(|rule| rule.input) {
            return Err(Failure::misuse(format!(
                "--rename {input}: is for convert, merge and append, which number their inputs"
            )));
        }
        let names = NewNames::new(&self.rename, self.rename_from.as_ref())?;
        if let Some(list) = &self.rename_from {
            list.found(file.names())?;
        }
        let choose = |name: &str| self.takes(name).then(|| names.of(name));
        let pairs = file.names().filter_map(|name| Some((name, choose(name)?)));
        expect_new_names(pairs)?;
        Ok(file.select(|name| choose(name)?.ok())?)
    }

    /// Refuses patterns that would take minutes.
    pub(crate) fn expect_few(&self) -> Result<(), Failure> {
        glob::expect_few(self.include.iter().chain(&self.exclude))
    }

    /// Whether the patterns choose the object `name`.
    pub(crate) fn takes(&self, name: &str) -> bool {
        let is_in = self.include.is_empty() || glob::any_matches(&self.include, name);
        is_in && !glob::any_matches(&self.exclude, name)
    }

    /// Refuses a list of new names that has an object of no input, once all inputs are open.
    pub(crate) fn expect_names_found(&self) -> Result<(), Failure> {
        self.rename_from.as_ref().map_or(Ok(()), NameList::expect_all_found)
    }

    /// Refuses patterns that leave nothing of these files.
    pub(crate) fn expect_some<'f>(
        &self,
        files: impl IntoIterator<Item = &'f File>,
    ) -> Result<(), Failure> {
        let mut files = files.into_iter();
        if files.any(|file| !file.is_empty()) {
            return Ok(());
        }
        let quoted = |patterns: &[String]| {
            let patterns = patterns.iter().map(|pattern| format!("{pattern:?}"));
            patterns.collect::<Vec<_>>().join(" or ")
        };
        let (include, exclude) = (quoted(&self.include), quoted(&self.exclude));
        let what = match (include.is_empty(), exclude.is_empty()) {
            (true, true) => return Ok(()),
            (false, true) => format!("no object matches --include {include}"),
            (true, false) => format!("every object matches --exclude {exclude}"),
            (false, false) => {
                format!("every object that matches --include {include} matches --exclude {exclude}")
            }
        };
        let message = format!("{what}; `zt ls` lists names");
        Err(Error::new(ErrorKind::Misuse, "not-found", message).into())
    }
}

/// Refuses an empty name for an object that had another. It is usually an empty variable of a script.
pub(crate) fn expect_new_name(old: &str, new: &str) -> Result<(), Error> {
    if !new.is_empty() || old.is_empty() {
        return Ok(());
    }
    let message = "the new name of the object is empty";
    Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message).with_object(old))
}

/// Refuses new names that are empty, and one for two objects. Each pair has the old name first.
pub(crate) fn expect_new_names<'n>(
    pairs: impl Iterator<Item = (&'n str, Result<String, Error>)>,
) -> Result<(), Error> {
    let mut taken = HashMap::new();
    for (old, new) in pairs {
        let new = new?;
        expect_new_name(old, &new)?;
        match taken.entry(new) {
            hash_map::Entry::Vacant(place) => {
                place.insert(old);
            }
            hash_map::Entry::Occupied(place) => {
                let [other, old] = [place.get(), old].map(printable);
                let message = format!("both \"{other}\" and \"{old}\" get this name");
                let error = Error::new(ErrorKind::Misuse, codes::DUPLICATE_NAME, message);
                return Err(error.with_object(place.key()));
            }
        }
    }
    Ok(())
}

/// The new names of objects.
pub(crate) struct NewNames<'r> {
    listed: Option<&'r HashMap<String, NewName>>,
    rules: &'r [Rule],
}

impl<'r> NewNames<'r> {
    /// The names of a list, and the rules that apply after it.
    ///
    /// # Errors
    ///
    /// Code `names` for a line without a tab, and for two new names of one object.
    pub(crate) fn new(rules: &'r [Rule], list: Option<&'r NameList>) -> Result<Self, Failure> {
        let listed = list.map(NameList::names).transpose()?;
        Ok(NewNames { listed, rules })
    }

    /// The new name of the object `name`, which may be the old one.
    ///
    /// # Errors
    ///
    /// Code `misuse` if a rule makes a name longer than names may be.
    pub(crate) fn of(&self, name: &str) -> Result<String, Error> {
        let listed = self.listed.and_then(|listed| listed.get(name));
        let listed = listed.map_or(name, |new| new.name.as_str());
        let apply = |name: String, rule: &Rule| rule.apply(&name);
        let renamed = self.rules.iter().try_fold(listed.to_owned(), apply);
        renamed.map_err(|error| error.with_object(name))
    }
}

/// A file that lists new names. It is read once for all inputs, because a pipe cannot be read again.
#[derive(Debug, Clone)]
pub(crate) struct NameList {
    path: PathBuf,
    names: Arc<OnceLock<HashMap<String, NewName>>>,
}

#[derive(Debug)]
struct NewName {
    name: String,
    /// Whether an input has the old name.
    is_found: AtomicBool,
}

impl NameList {
    /// Notes names of an input.
    fn found<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<(), Failure> {
        let listed = self.names()?;
        for new in names.filter_map(|name| listed.get(name)) {
            new.is_found.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn expect_all_found(&self) -> Result<(), Failure> {
        let listed = self.names()?.iter();
        let missing = listed.filter(|(_, new)| !new.is_found.load(Ordering::Relaxed));
        let mut missing: Vec<&str> = missing.map(|(old, _)| old.as_str()).collect();
        missing.sort_unstable();
        let Some(first) = missing.first() else { return Ok(()) };
        let more = match missing.len() {
            1 => String::new(),
            2 => " (and 1 other)".to_owned(),
            count => format!(" (and {} others)", count - 1),
        };
        let message = format!("no input has the object \"{}\"{more}", printable(first));
        Err(Error::new(ErrorKind::Misuse, "names", message).with_path(&self.path).into())
    }

    fn names(&self) -> Result<&HashMap<String, NewName>, Failure> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = self.read()?;
        Ok(self.names.get_or_init(|| names))
    }

    fn read(&self) -> Result<HashMap<String, NewName>, Failure> {
        let mut names = HashMap::new();
        let text = Names::text(&self.path)?;
        let lines = text.lines().enumerate();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let refuse = |what: &str| {
                let message = format!("line {}: {what}", at + 1);
                Error::new(ErrorKind::Misuse, "names", message).with_path(&self.path)
            };
            let (old, new) = line
                .split_once('\t')
                .filter(|(_, new)| !new.contains('\t'))
                .ok_or_else(|| refuse("expected an old name, a tab and a new name"))?;
            let new = NewName { name: new.to_owned(), is_found: AtomicBool::new(false) };
            if names.insert(old.to_owned(), new).is_some() {
                return Err(refuse("the object has a new name already").into());
            }
        }
        Ok(names)
    }
}

/// Takes the path of a list of names.
pub(crate) fn name_list() -> impl TypedValueParser<Value = NameList> {
    PathBufValueParser::new().map(|path| NameList { path, names: Arc::default() })
}

impl Rule {
    /// The name is as long as a rule may make it before the next rule sees it.
    fn apply(&self, name: &str) -> Result<String, Error> {
        let most = if self.is_global { usize::MAX } else { 1 };
        let limit = Limits::default().name_len;
        let (mut renamed, mut copied) = (String::new(), 0);
        for found in self.pattern.captures_iter(name).take(most) {
            let Some(whole) = found.get(0) else { continue };
            renamed.push_str(&name[copied..whole.start()]);
            found.expand(&self.replacement, &mut renamed);
            copied = whole.end();
            if renamed.len() > limit {
                break;
            }
        }
        renamed.push_str(&name[copied..]);
        if renamed.len() > limit && renamed.len() > name.len() {
            let message = format!("a rule makes the name longer than {limit} bytes");
            return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message));
        }
        Ok(renamed)
    }
}

/// The number of the only input that a pattern is for, and the rest: `2:layers.*`.
fn numbered(text: &str) -> (Option<usize>, &str) {
    let parts = text.split_once(':');
    let parts = parts.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
    match parts.and_then(|(number, rest)| Some((number.parse().ok()?, rest))) {
        Some((number, rest)) => (Some(number), rest),
        None => (None, text),
    }
}

/// Parses a rule that may be for one input: `2:s/^/adapter./`.
fn rule_of_input(text: &str) -> Result<Rule, String> {
    let (input, text) = numbered(text);
    let rule = rule(text)?;
    Ok(Rule { input, ..rule })
}

/// Parses a rule.
pub(crate) fn rule(text: &str) -> Result<Rule, String> {
    let expected = "expected s/PATTERN/REPLACEMENT/, with a g at the end to replace every match";
    let rest = text.strip_prefix('s').ok_or(expected)?;
    let may_be_mark = |mark: &char| mark.is_ascii_punctuation() && *mark != '\\';
    let mark = rest.chars().next().filter(may_be_mark).ok_or(expected)?;
    let parts = split(&rest[1..], mark);
    let [pattern, replacement, flags] = &parts[..] else {
        return Err(expected.to_owned());
    };
    let is_global = match flags.as_str() {
        "" => false,
        "g" => true,
        _ => return Err(expected.to_owned()),
    };
    let pattern = RegexBuilder::new(pattern).size_limit(LARGEST).build();
    let pattern = pattern.map_err(|error| error.to_string())?;
    let groups = pattern.captures_len();
    let replacement = replacement_of(replacement, groups)?;
    if replacement.matches("${").count() > REFERENCES {
        return Err(format!("a replacement has at most {REFERENCES} groups"));
    }
    Ok(Rule { input: None, pattern, replacement, is_global })
}

/// The parts between marks. A backslash before a mark makes it a character of the part.
fn split(text: &str, mark: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == mark {
            parts.push(String::new());
            continue;
        }
        let Some(part) = parts.last_mut() else { break };
        if character != '\\' {
            part.push(character);
            continue;
        }
        match characters.next() {
            Some(next) if next == mark => part.push(next),
            next => {
                part.push(character);
                part.extend(next);
            }
        }
    }
    parts
}

/// A replacement of sed, where `\1` is a group and `&` the match, as the regex crates write it.
fn replacement_of(text: &str, groups: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '&' => out.push_str("${0}"),
            '$' => out.push_str("$$"),
            '\\' => match characters.next() {
                Some(digit @ '0'..='9') => {
                    let group = digit.to_digit(10).unwrap_or_default();
                    if group as usize >= groups {
                        return Err(format!("the pattern has no group \\{digit}"));
                    }
                    out.push_str(&format!("${{{digit}}}"));
                }
                Some('$') => out.push_str("$$"),
                next => out.extend(next),
            },
            other => out.push(other),
        }
    }
    Ok(out)
}
