//! Hints for a name that no object has.

use std::path::Path;

use zt::{Error, File, codes};

use crate::args::glob;
use crate::failure::Failure;
use crate::files::remote::is_url;
use crate::files::stdin::is_stdin;
use crate::output::Output;
use crate::output::text::printable;

/// The result of a call about an object of `file`, which lies at `path`. If no object has the name,
/// adds a hint: at the option `by` for patterns, or at the name that is closest.
pub(crate) fn hinted<T>(
    result: zt::Result<T>,
    path: &Path,
    file: &File,
    by: Option<&str>,
    output: &mut Output,
) -> Result<T, Failure> {
    result.map_err(|error| {
        hint(&error, file, by, output);
        error.with_path(path).into()
    })
}

fn hint(error: &Error, file: &File, by: Option<&str>, output: &mut Output) {
    let Some(name) = error.object().filter(|name| file.get(name).is_none()) else {
        return;
    };
    if error.code() != codes::NOT_FOUND {
        return;
    }
    let is_pattern = name.contains(['*', '?', '[']);
    let matched = file.names().filter(|other| glob::matches(name, other));
    match matched.count() {
        count @ 1.. if is_pattern => {
            let name = printable(name);
            output.hint(match by {
                Some(option) => format!("{option} '{name}' takes all {count} that match"),
                None => format!("{count} names match; `zt ls --glob '{name}'` lists them"),
            });
        }
        _ => hint_at_beginning(name, file, output),
    }
}

/// Adds a hint at the names that begin with `prefix` and a dot or a slash; if none does, at the closest one.
fn hint_at_beginning(prefix: &str, file: &File, output: &mut Output) {
    let is_within = |name: &&str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(['.', '/']))
    };
    let within: Vec<&str> = file.names().filter(is_within).collect();
    match within[..] {
        [] => hint_at_nearest(prefix, file.names(), output),
        [name] => output.hint(format!("did you mean \"{}\"?", printable(name))),
        [first, ..] => output.hint(format!(
            "{} names begin with \"{}\", such as \"{}\"",
            within.len(),
            printable(prefix),
            printable(first)
        )),
    }
}

/// Adds a hint if `file` is missing and `name` is a file: the two arguments are swapped.
pub(crate) fn hint_at_order(file: &Path, name: &str, output: &mut Output) {
    if !is_stdin(file) && !is_url(file) && !file.exists() && Path::new(name).is_file() {
        output.hint("the file comes first, then the name of the object");
    }
}

/// Adds a hint at the name that is closest, if one is close.
pub(crate) fn hint_at_nearest<'n>(
    asked: &str,
    names: impl Iterator<Item = &'n str>,
    output: &mut Output,
) {
    if let Some(name) = zt::nearest(asked, names) {
        output.hint(format!("did you mean \"{}\"?", printable(name)));
    }
}
