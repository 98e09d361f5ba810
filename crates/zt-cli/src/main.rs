//! The program `zt`. All of it is in the library of this package.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(zt_cli::main(std::env::args_os()))
}
