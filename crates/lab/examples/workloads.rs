//! Prints `docs/workloads.md`: `cargo run --release -p pagetide-lab --example workloads`.

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let figures = pagetide_lab::workloads::figures(0, &pagetide_lab::Control::default())?;
    write!(std::io::stdout().lock(), "{}", pagetide_lab::workloads::to_markdown(&figures))?;
    Ok(())
}
