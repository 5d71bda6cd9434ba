//! The `pagetide` command: arguments in, tables and numbers out.
//!
//! Thin by rule: what a command means is `pagetide-lab`'s, how results look is
//! `pagetide-report`'s. Here are only arguments ([`args`]), streams ([`printer`]), progress
//! ([`progress`]), [`signals`] and exit codes ([`exit`]).

mod args;
mod commands;
mod estimate;
mod exit;
mod printer;
mod progress;
mod signals;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use args::{Cli, Command};
use printer::Printer;

/// The command line, for whoever describes it: man pages, completions.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The whole program: what was typed, done; and the code that it ends with.
pub fn main() -> ExitCode {
    lab::real::become_init_in_a_guest();
    let matches = command().get_matches(); // Wrong usage ends here with exit code 2.
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let (Command::Sweep(args), Some((_, matches))) = (&mut cli.command, matches.subcommand()) {
        args.in_order_of(matches);
    }
    let printer = Printer::new(cli.verbosity());
    let done = |()| exit::DONE;
    let run = || match &cli.command {
        Command::List(args) => commands::list(args, &printer).map(done),
        Command::Run(args) => commands::run(args, &printer).map(done),
        Command::Compare(args) => commands::compare(args, &printer).map(done),
        Command::Sweep(args) => commands::sweep(args, &printer),
        Command::Ablate(args) => commands::ablate(args, &printer).map(done),
        Command::Replay(args) => commands::replay(args, &printer).map(done),
        Command::Size(args) => commands::size(args, &printer).map(done),
        Command::Worlds(args) => commands::worlds(args, &printer).map(done),
        Command::Explain(args) => commands::explain(args, &printer).map(done),
        Command::Capture(args) => commands::capture(args, &printer),
        Command::Record(args) => commands::record(args, &printer),
        Command::Report(args) => commands::report(args, &printer).map(done),
        Command::Stats(args) => commands::stats(args, &printer).map(done),
        Command::Export(args) => commands::export(args, &printer).map(done),
        Command::Import(args) => commands::import(args, &printer).map(done),
        Command::Trace(args) => commands::trace(args, &printer).map(done),
        Command::Machine(args) => commands::machine(args, &printer).map(done),
        Command::Vm(args) => commands::vm(args, &printer).map(done),
        Command::Uml(args) => commands::uml(args, &printer).map(done),
    };
    let code = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => printer.failure(&failure),
        Err(_) => exit::INTERNAL, // The panic has told what it is.
    };
    ExitCode::from(code)
}
