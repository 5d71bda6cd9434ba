//! The `pagetide` command: arguments in, tables and numbers out.
//!
//! Thin by rule: what a command means is `pagetide-lab`'s, how results look is
//! `pagetide-report`'s. Here are only arguments ([`args`]), streams ([`printer`]), progress
//! ([`progress`]) and exit codes ([`exit`]).

mod args;
mod commands;
mod exit;
mod printer;
mod progress;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use printer::Printer;

fn main() -> ExitCode {
    let cli = Cli::parse(); // Wrong usage ends here with exit code 2.
    let printer = Printer::new(cli.verbosity());
    let run = || match &cli.command {
        Command::List(args) => commands::list(args, &printer),
        Command::Run(args) => commands::run(args, &printer),
        Command::Compare(args) => commands::compare(args, &printer),
        Command::Sweep(args) => commands::sweep(args, &printer),
        Command::Replay(args) => commands::replay(args, &printer),
    };
    let code = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => exit::DONE,
        Ok(Err(failure)) => printer.failure(&failure),
        Err(_) => exit::INTERNAL, // The panic has told what it is.
    };
    ExitCode::from(code)
}
