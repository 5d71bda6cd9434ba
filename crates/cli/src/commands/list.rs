//! `pagetide list`: names in columns.

use lab::names::{self, Entry};

use crate::args::ListArgs;
use crate::printer::{Failure, Printer};

pub(crate) fn list(args: &ListArgs, printer: &Printer) -> Result<(), Failure> {
    printer.data(&columns(&names::list(args.what.into()), 0))
}

fn columns(entries: &[Entry], indent: usize) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let line = |entry: &Entry| {
        let head = format!("{:indent$}{:width$}  {}\n", "", entry.name, entry.help);
        head + &columns(&entry.details, indent + 4)
    };
    entries.iter().map(line).collect()
}
