//! Writes man pages and completions for shells, from the definition of the command line.
//!
//! `cargo xtask dist` packs what `cargo run -p pagetide-cli --example pages -- FOLDER` writes: `man/pagetide*.1`, and
//! `completions` for bash, zsh, fish and nushell. What makes them is a dependency of this example alone, so that
//! nobody who builds the command builds it. Left out: PowerShell and Elvish, as the command runs on Linux.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap_complete::aot::{Bash, Fish, Zsh, generate_to};
use clap_complete_nushell::Nushell;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        return fail("usage: pages FOLDER");
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{}: {error}", Path::new(&folder).display())),
    }
}

fn write(folder: &Path) -> io::Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(pagetide_cli::command(), man)?;
    let name = "pagetide";
    let command = &mut pagetide_cli::command();
    generate_to(Bash, command, name, &completions)?;
    generate_to(Zsh, command, name, &completions)?;
    generate_to(Fish, command, name, &completions)?;
    generate_to(Nushell, command, name, &completions)?;
    Ok(())
}

#[allow(clippy::print_stderr, reason = "a tool of developers")]
fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}
