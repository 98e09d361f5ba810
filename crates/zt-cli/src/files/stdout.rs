//! A file that is written to stdout.

use std::io::{self, IsTerminal, Write};

use crate::failure::Failure;
use crate::output::{Output, is_closed_pipe, of_stdout};

/// Stdout without the line buffer of the standard library. It remembers whether the reader has closed
/// the pipe.
#[derive(Debug)]
pub(crate) struct Stdout {
    #[cfg(unix)]
    out: std::fs::File,
    #[cfg(not(unix))]
    out: io::Stdout,
    is_closed: bool,
}

impl Stdout {
    #[cfg(unix)]
    fn open() -> io::Result<Self> {
        use std::os::fd::AsFd;
        Ok(Stdout { out: io::stdout().as_fd().try_clone_to_owned()?.into(), is_closed: false })
    }

    #[cfg(not(unix))]
    fn open() -> io::Result<Self> {
        Ok(Stdout { out: io::stdout(), is_closed: false })
    }
}

/// Refuses a file on stdout if the JSON document is there too, or a terminal; `is_forced` allows the
/// terminal.
pub(crate) fn expect_free(output: &Output, is_forced: bool) -> Result<(), Failure> {
    let why = if output.json {
        "stdout cannot take both the file and the JSON document"
    } else if io::stdout().is_terminal() && !is_forced {
        "the file would be written to the terminal: redirect stdout, or use --force"
    } else {
        return Ok(());
    };
    Err(Failure::misuse(why))
}

/// Calls `write` with stdout.
///
/// # Errors
///
/// [`Failure::CutOff`] if the reader closes the pipe before the end.
pub(crate) fn to_stdout<T>(write: impl FnOnce(&mut Stdout) -> zt::Result<T>) -> Result<T, Failure> {
    let mut stdout = Stdout::open().map_err(zt::Error::from)?;
    write(&mut stdout)
        .map_err(|error| if stdout.is_closed { Failure::CutOff } else { Failure::Error(error) })
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| {
            self.is_closed |= is_closed_pipe(&error);
            of_stdout(&error)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| of_stdout(&error))
    }
}
