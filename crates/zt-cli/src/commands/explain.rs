//! `zt explain`: explain the code of an error or a warning.

use clap::Args;
use serde::Serialize;
use zt::codes::{self, Blame, CodeInfo, WarningInfo};

use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::table::Table;

/// Explain the code of an error or a warning
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The code, as in `error[digest-mismatch]` or `warning[ambiguous]`; all codes by default
    code: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  zt explain digest-mismatch
  zt explain 'warning[alignment]'
  zt explain

A few codes are used by errors and by warnings.

Keys of --json: `severity` (`error` or `warning`), `code`, `meaning`, `fault` and `remedy` (null for
a warning). Without CODE, the document is a list.";

#[derive(Serialize)]
struct Document {
    severity: &'static str,
    code: &'static str,
    fault: Option<&'static str>,
    meaning: String,
    remedy: Option<&'static str>,
}

impl From<&CodeInfo> for Document {
    fn from(info: &CodeInfo) -> Self {
        Document {
            severity: "error",
            code: info.code,
            fault: Some(info.fault.as_str()),
            meaning: info.meaning.to_owned(),
            remedy: Some(info.remedy),
        }
    }
}

impl From<&WarningInfo> for Document {
    fn from(info: &WarningInfo) -> Self {
        Document {
            severity: "warning",
            code: info.code,
            fault: None,
            meaning: meaning(info),
            remedy: None,
        }
    }
}

/// The meaning of a warning, after its source.
fn meaning(info: &WarningInfo) -> String {
    format!("{}: {}", info.from, info.meaning)
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Some(code) = &arguments.code else {
        return list(output);
    };
    // The code may be given as a message prints it, with brackets, or in snake case.
    let asked = code.trim_end_matches(':');
    let within = |severity| asked.strip_prefix(severity)?.strip_prefix('[')?.strip_suffix(']');
    let of_warning = within("warning");
    let asked = of_warning.or(within("error")).unwrap_or(asked);
    let asked = asked.trim_matches(['[', ']']).replace('_', "-");
    let error = codes::explain(&asked).filter(|_| of_warning.is_none());
    let warning = codes::explain_warning(&asked);
    match (error, warning) {
        (Some(info), _) => explain(info, output)?,
        (None, Some(info)) if output.json => output.document(&Document::from(&info))?,
        (None, Some(info)) => {
            output.line(&format!("warning[{}]\n\n{}", info.code, meaning(&info)))?;
        }
        (None, None) => {
            let errors = codes::ALL.iter().map(|info| info.code);
            let own = codes::WARNINGS.iter().map(|info| info.code);
            let own = own.filter(|code| codes::explain(code).is_none());
            let known = errors.chain(own).collect::<Vec<_>>().join(", ");
            return Err(Failure::misuse(format!("unknown code {code:?}; the codes are {known}")));
        }
    }
    Ok(Exit::Ok)
}

fn explain(info: &CodeInfo, output: &mut Output) -> Result<(), Failure> {
    if output.json {
        return output.document(&Document::from(info));
    }
    let fault = match info.fault {
        Blame::File => "the file",
        Blame::System => "the system",
        Blame::Build => "none: this build does not support it",
        Blame::Limits => "none: the limits forbid it",
        Blame::Caller => "the call",
    };
    let (code, meaning, remedy) = (info.code, info.meaning, info.remedy);
    output.line(&format!("{code}\n\n{meaning}\n\nAt fault: {fault}.\n\n{remedy}"))
}

fn list(output: &mut Output) -> Result<Exit, Failure> {
    if output.json {
        let errors = codes::ALL.iter().map(Document::from);
        let warnings = codes::WARNINGS.iter().map(Document::from);
        let documents: Vec<Document> = errors.chain(warnings).collect();
        output.document(&documents)?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["CODE", "MEANING"]);
    for info in codes::ALL {
        table.row([info.code.to_owned(), info.meaning.to_owned()]);
    }
    for info in codes::WARNINGS {
        table.row([format!("warning[{}]", info.code), meaning(info)]);
    }
    output.line(&table.render(output.colored()))?;
    Ok(Exit::Ok)
}
