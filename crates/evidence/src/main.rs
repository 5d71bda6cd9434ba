//! Generates the documents of this repository that hold figures: `cargo run --release -p pagetide-evidence -- NAME`.
//!
//! | name | what it prints | text and measured figures |
//! |---|---|---|
//! | `fidelity` | `docs/fidelity.md`: the model beside measured kernels | `data/fidelity.md`, `data/*reference.toml` |
//! | `slab-skew` | `docs/slab-skew.md`: slab against page cache, taken apart | `data/slab-skew.md` |
//! | `sources` | `docs/sources.md`: the model beside what sources report | `data/sources.md`, `data/sources.toml` |
//! | `workloads` | `docs/workloads.md`: what the workloads are | `data/workloads.md`, `data/workloads.toml` |
//! | `size-samples` | the table on samples in `docs/size.md` | a trace that is given |
//!
//! Start with `fidelity.rs`. Who uses pagetide never builds this. Left out: whether a document is what its command
//! prints now; only `docs/workloads.md` has a test for it, as the others take minutes of runs.

mod fidelity;
mod growth;
mod size_samples;
mod slab_skew;
mod sources;
mod workloads;

use std::error::Error;
use std::io::Write;

use lab::Control;

const USAGE: &str = "fidelity, slab-skew, sources, workloads, or size-samples";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let control = Control::default();
    let document = match arguments[..] {
        ["fidelity"] => fidelity::to_markdown(&fidelity::rows(&[1, 2, 3], 0, &control)?) + "\n",
        ["slab-skew"] => slab_skew::to_markdown(&slab_skew::results(0, &control)?)?,
        ["sources"] => sources::to_markdown(&sources::results(0, &control)?) + "\n",
        ["workloads"] => workloads::to_markdown(&workloads::figures(0, &control)?),
        ["size-samples", ref rest @ ..] => return size_samples::print(rest),
        _ => return Err(USAGE.into()),
    };
    std::io::stdout().lock().write_all(document.as_bytes())?;
    Ok(())
}
