//! The program `pagetide`. All of it is in the library beside this file, so that tools can ask for its command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    pagetide_cli::main()
}
