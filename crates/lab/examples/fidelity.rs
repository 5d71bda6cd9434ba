//! Prints the tables of `docs/fidelity.md`:
//! `cargo run --release -p pagetide-lab --example fidelity`.

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = pagetide_lab::fidelity::rows(&[1, 2, 3], 0, &pagetide_lab::Control::default())?;
    writeln!(std::io::stdout().lock(), "{}", pagetide_lab::fidelity::to_markdown(&rows))?;
    Ok(())
}
