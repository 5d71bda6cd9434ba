//! Prints `docs/slab-skew.md`:
//! `cargo run --release -p pagetide-lab --example slab_skew > docs/slab-skew.md`.

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    use pagetide_lab::slab_skew::{results, to_markdown};
    let skew = results(0, &pagetide_lab::Control::default())?;
    write!(std::io::stdout().lock(), "{}", to_markdown(&skew)?)?;
    Ok(())
}
