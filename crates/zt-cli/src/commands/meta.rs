//! `zt meta`: show or change the attributes of a file.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use zt::{Error, ErrorKind, Value, WriteOptions};
use zt_convert::foreign::{AttributeChange, Fault};

use crate::args::edit::EditArgs;
use crate::args::input::InputArgs;
use crate::args::rewrite::Rewrite;
use crate::args::{hints, value};
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::output::Output;
use crate::output::json::{escaped, object, path_text};
use crate::output::progress::Progress;
use crate::output::text::{cell, printable};
use crate::output::value::{Any, Attributes};

/// Show or change the attributes of a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  zt meta get model.safetensors
  zt meta get model.zt license --text
  zt meta set model.zt license Apache-2.0
  zt meta set model.zt heads 32
  zt meta set model.zt version 1.0 --text
  zt meta set model.zt config @config.json
  zt meta set model.gguf tokenizer.chat_template @template.jinja
  zt meta set model.gguf llama.context_length 8192 --type u32
  zt meta rm model.zt license

Values that JSON cannot represent: {\"$bytes\":\"AQI=\"} (base64), {\"$float\":\"nan\"} (also `inf` and
`-inf`), {\"$tag\":1,\"value\":0}.";

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, which is parsed once")]
enum Action {
    Get(Get),
    Set(Set),
    Rm(Rm),
}

/// Print the attributes of a file of any kind as JSON
///
/// A list of more than 16 values is shortened, except with --full or --json.
///
/// Keys of --json: `file` and `attributes`; with KEY, `file`, `key` and `value`.
#[derive(Debug, Args)]
struct Get {
    /// A file of any kind, or the index or the folder of a sharded set; `-` is stdin
    file: PathBuf,
    /// Name of the attribute; all attributes by default
    key: Option<String>,
    /// Print a text without quotes and escapes; on a terminal, control characters stay escaped
    #[arg(long, requires = "key")]
    text: bool,
    /// Print long lists whole
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    input: InputArgs,
}

/// Set an attribute of a file of .zt, safetensors or GGUF
///
/// A .zt file is edited in place. Another file is written anew, and replaces the old one when it is
/// complete. An attribute of a GGUF file keeps its type.
///
/// Keys of --json: `file`, `dry_run`, `key`, `old` (null for a new attribute), `new`, `file_size`.
#[derive(Debug, Args)]
struct Set {
    #[command(flatten)]
    target: EditArgs,
    /// Name of the attribute
    key: String,
    /// Value: JSON if it parses as JSON, else a text; @FILE is the text of a file, and @@ a leading @
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// Treat the value as a text, even if it parses as JSON
    #[arg(long)]
    text: bool,
    /// Type of the attribute in a GGUF file: u8 to u64, i8 to i64, f32, f64, bool, str,
    /// array[uint32]; by default its old type, or the first usual one that holds the value
    #[arg(long = "type", value_name = "TYPE")]
    value_type: Option<String>,
}

/// Remove an attribute of a file of .zt, safetensors or GGUF
///
/// Keys of --json: `file`, `dry_run`, `key`, `old`, `file_size`.
#[derive(Debug, Args)]
struct Rm {
    #[command(flatten)]
    target: EditArgs,
    /// Name of the attribute
    key: String,
}

#[derive(Serialize)]
struct Changed<'a> {
    file: String,
    dry_run: bool,
    key: &'a str,
    old: Option<Any<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Any<'a>>,
    file_size: u64,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match &arguments.action {
        Action::Get(get) => show(get, output),
        Action::Set(set) => {
            if set.key.is_empty() {
                return Err(Failure::misuse("the name of an attribute cannot be empty"));
            }
            let change = AttributeChange {
                key: set.key.clone(),
                values: value::readings(&set.value, set.text)?,
                value_type: set.value_type.clone(),
            };
            self::change(&set.target, change, output)
        }
        Action::Rm(rm) => {
            let change =
                AttributeChange { key: rm.key.clone(), values: Vec::new(), value_type: None };
            self::change(&rm.target, change, output)
        }
    }
}

fn show(get: &Get, output: &mut Output) -> Result<Exit, Failure> {
    let file = get.input.open(&get.file)?;
    output.truncated(&get.file, &file);
    let attributes = file.attributes().map_err(Failure::Refused)?;
    let path = path_text(&get.file);
    let Some(key) = &get.key else {
        if output.json {
            let attributes = Attributes(attributes.as_ref());
            output.document(&object! { file: path, attributes })?
        } else {
            let all = Value::Map(attributes.unwrap_or_default());
            output.line(&get.pretty(&all))?
        }
        return Ok(Exit::Ok);
    };
    let value = attributes.as_ref().and_then(|map| map.get(key));
    let value = value.ok_or_else(|| {
        let map = attributes.as_ref();
        let keys = map.into_iter().flat_map(|map| map.iter());
        hints::hint_at_nearest(key, keys.filter_map(|(key, _)| key.as_str()), output);
        missing(key).with_path(&get.file)
    })?;
    match (output.json, value.as_str()) {
        (true, _) => output.document(&object! { file: path, key, value: Any(value) })?,
        (false, Some(text)) if get.text && io::stdout().is_terminal() => {
            let lines: Vec<Cow<'_, str>> = text.lines().map(printable).collect();
            output.line(&lines.join("\n"))?
        }
        (false, Some(text)) if get.text => output.line(text)?,
        (false, _) => output.line(&get.pretty(value))?,
    }
    Ok(Exit::Ok)
}

impl Get {
    fn pretty(&self, value: &Value) -> String {
        if self.full { pretty(&Any(value)) } else { pretty(&Any(&shortened(value))) }
    }
}

/// The value, with the first values only of lists that are long: a tokenizer has lists of 100,000.
fn shortened(value: &Value) -> Value {
    const LONGEST: usize = 16;
    const FIRST: usize = 4;
    match value {
        Value::Array(items) => {
            let (count, is_long) = (items.len(), items.len() > LONGEST);
            let shown = if is_long { FIRST } else { count };
            let items = items.items().take(shown).map(|item| shortened(&item));
            let more = format!("... {} of {count} values more: --full", count - shown);
            let more = is_long.then(|| Value::from(more));
            Value::array(items.chain(more).collect())
        }
        Value::Map(map) => {
            let items = map.iter();
            let items = items.map(|(key, value)| (key.clone(), shortened(value)));
            Value::Map(items.collect())
        }
        other => other.clone(),
    }
}

/// Sets or removes an attribute.
fn change(
    target: &EditArgs,
    change: AttributeChange,
    output: &mut Output,
) -> Result<Exit, Failure> {
    if change.key == "zt.delta" {
        return Err(Failure::misuse(
            "the attribute `zt.delta` makes a file a delta; `zt delta` and `zt patch` change it",
        ));
    }
    if let Some(rewrite) = target.rewrite()? {
        return change_anew(rewrite, target, change, output);
    }
    let key = change.key.as_str();
    if let Some(value_type) = change.value_type {
        let error = Error::from(Fault::NoAttributeType { value_type });
        return Err(error.with_path(&target.file).into());
    }
    let new = change.values.into_iter().next();
    // From here on, Ctrl-C does not end the process in the middle of this short edit.
    let _progress = Progress::new(Some(0));
    let mut edit = target.begin(WriteOptions::new())?;
    let mut map = edit.editor.attributes().cloned().unwrap_or_default();
    let old = match &new {
        Some(value) => map.insert(key, value.clone()),
        None => {
            let old = map.remove(key);
            Some(old.ok_or_else(|| missing(key).with_path(&target.file))?)
        }
    };
    let set = edit.editor.set_attributes((!map.is_empty()).then_some(map));
    set.map_err(|error| error.with_path(&target.file))?;
    let file_size = edit.commit()?;
    answer(target, key, old.as_ref(), new.as_ref(), file_size, output)
}

/// As [`change`], for a file that is written anew.
fn change_anew(
    rewrite: Rewrite<'_>,
    target: &EditArgs,
    change: AttributeChange,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut attributes = rewrite.file().attributes()?.unwrap_or_default();
    let key = change.key.clone();
    let old = attributes.get(&key).cloned();
    if change.values.is_empty() {
        attributes.remove(&key);
    } else if let Some(kind) = kinds::table().get(rewrite.file().kind().as_str()) {
        let set = kind.set_attribute(&mut attributes, &change);
        set.map_err(|error| error.with_path(&target.file))?;
    }
    let new = attributes.get(&key).cloned();
    if old.is_none() && new.is_none() {
        return Err(missing(&key).with_path(&target.file).into());
    }
    let file_size = rewrite.commit(|name| Some(name.to_owned()), vec![change], output)?;
    answer(target, &key, old.as_ref(), new.as_ref(), file_size, output)
}

fn answer(
    target: &EditArgs,
    key: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    file_size: u64,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let document = Changed {
        file: target.shown(),
        dry_run: target.dry_run,
        key,
        old: old.map(Any),
        new: new.map(Any),
        file_size,
    };
    let shown = |value| Any(value).cell();
    let what = match (old, new) {
        (None, Some(new)) => format!("{} = {}", cell(key), shown(new)),
        (Some(old), Some(new)) => format!("{} = {}, was {}", cell(key), shown(new), shown(old)),
        _ => format!("{} removed", cell(key)),
    };
    target.answer(&document, &what, output)
}

fn missing(key: &str) -> Error {
    let message = format!("attribute \"{}\" does not exist", printable(key));
    Error::new(ErrorKind::Misuse, "not-found", message)
}

/// Cannot fail: keys are text and floats are finite.
fn pretty(value: &impl Serialize) -> String {
    escaped(&serde_json::to_string_pretty(value).unwrap_or_default())
}
