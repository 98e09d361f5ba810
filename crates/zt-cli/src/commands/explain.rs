//! `zt explain`: what an error code means.

use clap::Args;
use serde::Serialize;
use zt::codes::{self, Blame, CodeInfo};

use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::table::Table;

/// Explain an error code
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The code, as in `error[digest-mismatch]`; without one, all of them are listed
    code: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  zt explain digest-mismatch
  zt explain";

#[derive(Serialize)]
struct Document {
    code: &'static str,
    fault: &'static str,
    meaning: &'static str,
    remedy: &'static str,
}

impl From<&CodeInfo> for Document {
    fn from(info: &CodeInfo) -> Self {
        let CodeInfo {
            code,
            fault,
            meaning,
            remedy,
        } = *info;
        Document {
            code,
            fault: fault.as_str(),
            meaning,
            remedy,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Some(code) = &arguments.code else {
        return list(output);
    };
    // As it stands in a message, brackets and all, or in snake case, will do.
    let asked = code
        .trim_start_matches("error")
        .trim_matches(['[', ']', ':'])
        .replace('_', "-");
    let Some(info) = codes::explain(&asked) else {
        let known: Vec<&str> = codes::ALL.iter().map(|info| info.code).collect();
        let known = known.join(", ");
        return Err(Failure::misuse(format!(
            "there is no code {code:?}; the codes are {known}"
        )));
    };
    if output.json {
        output.document(&Document::from(info))?;
    } else {
        let fault = match info.fault {
            Blame::File => "the file",
            Blame::System => "the system",
            Blame::Build => "nobody: this build does not cover it",
            Blame::Limits => "nobody: the limits forbid it",
            Blame::Caller => "the call",
        };
        let CodeInfo {
            code,
            meaning,
            remedy,
            ..
        } = info;
        output.line(&format!(
            "{code}\n\n{meaning}\n\nAt fault: {fault}.\n\n{remedy}"
        ))?;
    }
    Ok(Exit::Ok)
}

fn list(output: &mut Output) -> Result<Exit, Failure> {
    if output.json {
        let documents: Vec<Document> = codes::ALL.iter().map(Document::from).collect();
        output.document(&documents)?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["CODE", "MEANING"]);
    for info in codes::ALL {
        table.row([info.code.to_owned(), info.meaning.to_owned()]);
    }
    let colored = output.colored();
    output.line(&table.render(colored))?;
    Ok(Exit::Ok)
}
