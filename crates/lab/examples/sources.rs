//! Prints the tables of `docs/sources.md`:
//! `cargo run --release -p pagetide-lab --example sources`.

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let results = pagetide_lab::sources::results(0, &pagetide_lab::Control::default())?;
    writeln!(std::io::stdout().lock(), "{}", pagetide_lab::sources::to_markdown(&results))?;
    Ok(())
}
