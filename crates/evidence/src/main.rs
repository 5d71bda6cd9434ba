//! Generates the documents of this repository that hold figures: `cargo run --release -p pagetide-evidence -- NAME`.
//!
//! | name | what it prints | from |
//! |---|---|---|
//! | `worlds [DIR...]` | nothing: it writes `data/worlds`, `known-error.csv` of `lab` | folders of worlds |
//! | `fidelity` | `docs/fidelity.md`: how near the model is to real kernels | what `worlds` and `hits` made |
//! | `rows [SCENARIO...]` | rows that the model was fitted to, with their commands | `data/*reference.toml` |
//! | `hits [--check]` | `data/hits.csv`: how many of them hit; or where fewer do | `data/*reference.toml` |
//! | `real [--check \| RUN...]` | `data/real-sources.csv`: the sources' loads, as `hits` | `data/real-sources.toml` |
//! | `cases [--model] [NAME...]` | nothing; it writes the tables of `docs/cases` | `data/cases` |
//! | `cases --check` | nothing: whether the model still gives them | `data/cases.csv` |
//! | `slab-skew` | `docs/slab-skew.md`: slab against page cache, taken apart | `data/slab-skew.md` |
//! | `sources [--kept]` | `docs/sources.md`; or with the sources' own machines kept | `data/*sources.*` |
//! | `workloads` | `docs/workloads.md`: what the workloads are | `data/workloads.md`, `data/workloads.toml` |
//! | `sizes [PROGRAM...]` | nothing; it writes `data/sizes.toml`: sizes held to real programs | `data/sizes/*.sh` |
//! | `sizes --table` | their table in `docs/size.md` | `data/sizes.toml` |
//! | `size-samples` | the table on samples in `docs/size.md` | a trace that is given |
//!
//! Start with `fidelity.rs`. Who uses pagetide never builds this. Left out: whether a document is what its command
//! prints now; only `docs/fidelity.md` and `docs/workloads.md` have a test for it, as the others take minutes of runs.

mod cases;
mod disagreement;
mod fidelity;
mod growth;
mod hits;
mod mechanism;
mod real;
mod rows;
mod size_samples;
mod sizes;
mod slab_skew;
mod sources;
mod workloads;
mod worlds;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use lab::Control;

const USAGE: &str = "name one: worlds [DIR...], fidelity, rows [SCENARIO...], hits [--check], real [--check | RUN...], cases [--check | [--model] NAME...], slab-skew, sources [--kept], workloads, size-samples, sizes [--table | PROGRAM...]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let control = Control::default();
    let document = match arguments[..] {
        ["worlds", ref folders @ ..] => return worlds::keep(folders),
        ["fidelity"] => fidelity::to_markdown()?,
        ["rows", ref names @ ..] => rows::to_markdown(&rows::rows(names, 0)?),
        ["hits"] => hits::write(&hits::count(&rows::rows(&[], 0)?)),
        ["hits", "--check"] => return hits::check(&hits::count(&rows::rows(&[], 0)?)),
        ["real", "--check"] => return real::check(&real::model(&[], &control)?),
        ["real", ref names @ ..] => real::write(&real::model(names, &control)?),
        ["cases", "--check"] => return cases::check(),
        ["cases", "--model", ref names @ ..] => return cases::run(names, false),
        ["cases", ref names @ ..] => return cases::run(names, true),
        ["slab-skew"] => slab_skew::to_markdown(&slab_skew::results(0, &control)?)?,
        ["sources"] => sources::to_markdown(&sources::results(0, &control)?)?,
        ["sources", "--kept"] => sources::with_kept_experiments()?,
        ["workloads"] => workloads::to_markdown(&workloads::figures(0, &control)?),
        ["sizes", "--table"] => sizes::table()?,
        ["sizes", ref names @ ..] => return sizes::measure(names),
        ["size-samples", ref rest @ ..] => return size_samples::print(rest),
        _ => return Err(USAGE.into()),
    };
    std::io::stdout().lock().write_all(document.as_bytes())?;
    Ok(())
}
