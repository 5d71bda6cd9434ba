//! The one door to the terminal: data to standard output, all else to standard error.
//!
//! A reader that has gone away (`| head`) is no error. Colour is for terminals only, and never
//! when `NO_COLOR` is set.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use lab::{Class, LabError};
use report::Document;

use crate::args::Verbosity;
use crate::{exit, signals};

/// Why a command did not do what it was told.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The work failed.
    Lab(LabError),
    /// Options that do not go together.
    Usage(String),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl<E: Into<LabError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Lab(error.into())
    }
}

/// Writes to both streams.
#[derive(Debug)]
pub(crate) struct Printer {
    verbosity: Verbosity,
}

/// Columns of tables that do not go to a terminal, so that a file is the same everywhere.
const WIDTH_OF_FILES: usize = 80;

impl Printer {
    pub(crate) const fn new(verbosity: Verbosity) -> Self {
        Self { verbosity }
    }

    pub(crate) const fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Columns that a table may take.
    pub(crate) fn width(&self) -> usize {
        match terminal_size::terminal_size_of(io::stdout()) {
            Some((width, _)) => usize::from(width.0).clamp(60, 120),
            None => WIDTH_OF_FILES,
        }
    }

    /// Whether progress may be drawn, rather than told line by line.
    pub(crate) fn can_draw(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Data to standard output.
    pub(crate) fn data(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
            _ => Ok(()),
        }
    }

    /// A report in a format, to standard output.
    pub(crate) fn document(
        &self,
        document: &Document<'_>,
        format: impl Into<report::Format>,
    ) -> Result<(), Failure> {
        self.data(&document.render(format.into(), self.width()))
    }

    /// A line to standard error, unless nothing shall be said.
    pub(crate) fn note(&self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.line(text);
        }
    }

    /// A line to standard error. Nobody can be told when that fails.
    pub(crate) fn line(&self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    /// Something that the reader of a result has to know, unless nothing shall be said.
    pub(crate) fn warning(&self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.labelled("warning", AnsiColor::Yellow, text);
        }
    }

    /// Tells a failure and its remedy; returns the exit code.
    pub(crate) fn failure(&self, failure: &Failure) -> u8 {
        match failure {
            Failure::Lab(error) => {
                self.labelled("error", AnsiColor::Red, &error.to_string());
                error.causes().iter().for_each(|cause| self.line(&format!("  caused by: {cause}")));
                if let Some(hint) = error.hint() {
                    self.labelled("hint", AnsiColor::Cyan, &hint);
                }
                match error.class() {
                    Class::Interrupted => signals::exit_code(),
                    class => exit::code(class),
                }
            }
            Failure::Usage(problem) => {
                self.labelled("error", AnsiColor::Red, problem);
                exit::INTERNAL
            }
            Failure::Output(error) => {
                self.labelled("error", AnsiColor::Red, "cannot write to standard output");
                self.line(&format!("  caused by: {error}"));
                exit::INTERNAL
            }
        }
    }

    fn labelled(&self, label: &str, color: AnsiColor, text: &str) {
        let style = Style::new().bold().fg_color(Some(color.into()));
        self.line(&format!("{style}{label}{style:#}: {text}"));
    }
}
