//! Developer commands: `cargo xtask test`, `docs`, `book`, `weight`, `instructions`, `determinism`, `mutants`,
//! `sizes`, `python`, `playground`, `dist`.
//!
//! `test` is all that a change must pass, and what CI runs: format, lints, all tests, documents,
//! the determinism check, and the Python package. Every step runs even when one before it failed,
//! so that one run tells all. Nothing is skipped silently. `test quick` is a part of it, `test full` more. Left out:
//! installing anything but Python's packages and mdBook, which go below cargo's target folder.

mod book;
mod built;
mod checkout;
mod determinism;
mod dist;
mod docs;
mod full;
mod instructions;
mod mutants;
mod playground;
mod python;
mod quick;
mod say;
mod step;
mod times;
mod weight;

use std::process::ExitCode;

use docs::Mode;
use say::say;
use step::{Lane, Outcome, Report, cargo};

const USAGE: &str = "\
usage: cargo xtask <command>

  test          everything that a change must pass
  test quick [CRATES]
                between two edits: format, lints, and tests of the crates that have changed
  test full     everything, the site of documents, the playground, 25,000 worlds, and the mutants; takes hours
  python        the Python package: install it below target, run its tests
  playground [test]
                the simulator as one page for a browser, below target; and run it in one
  dist [--check]
                what people install, below target/dist: a static program, packages for Debian and Python, crates;
                or licences and promises of the crates, and all of it twice, in two places, to see that both are equal
  docs          run the commands of README.md and docs, and write the output that they show
  book          make a site of the documents, by mdBook, and follow its links
  weight [--format md | --before FILE]
                lines, seconds of builds and tests, dependencies, by crate; beside what it printed before
  sizes [PROGRAMS]
                hold `pagetide size` to twelve real programs, in memory cgroups of this host; takes an hour
  instructions [--write]
                what a page costs, counted by callgrind, against docs/performance.md, or into it
  determinism   the same bytes from two runs, a debug and a release build, one job and two
  mutants [--mutants|--constants] [--shard K/N] [FILES]
                which wrong code of mm's decisions, or of FILES, its tests let pass; takes hours";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let report = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => {
            let mut report = test(0);
            report.tell_times();
            full::tell_last();
            report
        }
        ["test", "quick", ref crates @ ..] => quick::test(crates),
        ["test", "full"] => {
            let mut report = test(full::STEPS + 1 + dist::CHECKS);
            report.step("damaged files of others", damaged);
            dist::check(&mut report);
            full::test(&mut report);
            report.tell_times();
            report
        }
        ["instructions", ref rest @ ..] => only("instructions", || built::then(|| instructions::run(rest))),
        ["determinism"] => only("determinism", || built::then(|| determinism::check(&["debug"]))),
        ["dist", ref rest @ ..] => dist::run(rest),
        ["python"] => only("the Python package", || built::then(python::test)),
        ["playground"] => only("the playground", playground::make),
        ["playground", "test"] => only("the playground in a browser", playground::test),
        ["docs"] => only("documents", || built::then(|| docs::run(Mode::Write))),
        ["book"] => only("a site of the documents", book::make),
        ["weight", ref rest @ ..] => return weight::run(rest),
        ["sizes", ref programs @ ..] => only("sizes of real programs", || {
            let run = ["run", "--package=pagetide-evidence", "--release", "--locked", "--", "sizes"];
            cargo(&[&run[..], programs].concat(), &[])
        }),
        ["mutants", ref rest @ ..] => only("mutants", || mutants::run(rest)),
        _ => {
            say(USAGE);
            return ExitCode::from(2);
        }
    };
    report.end()
}

/// The steps that every change must pass, of `more` beyond them. Two lanes run at the same time where one waits: the
/// build beside Python's packages alone, as two compilers on two CPUs take a sixth longer than one after the other;
/// and tests, which wait for real kernels, beside all else. Lints come last, as they leave no CPU idle, and have the
/// profile of the build, which has compiled their procedural macros.
fn test(more: usize) -> Report {
    const BUILD: Lane<'_> = &[("build", built::everything)];
    const TOOLS: Lane<'_> = &[("what Python's tests use", python::tools)];
    const TESTS: Lane<'_> = &[
        ("tests", || cargo(&["test", "--workspace", "--release", "--no-fail-fast", "--locked"], &[])),
        ("commands of the documents", || docs::run(Mode::Check)),
    ];
    const OTHERS: Lane<'_> = &[
        ("instructions", || instructions::run(&[])),
        ("worlds of the model", full::check_worlds),
        ("determinism", || determinism::check(&[])),
        ("the Python package", python::test),
        ("lints", || {
            let clippy = ["clippy", "--workspace", "--all-targets", "--release", "--locked"];
            cargo(&[&clippy[..], &["--", "-D", "warnings"]].concat(), &[])
        }),
        ("documentation of the code", || {
            cargo(
                &["doc", "--workspace", "--no-deps", "--release", "--locked"],
                &[("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links")],
            )
        }),
    ];
    let lanes = [BUILD, TOOLS, TESTS, OTHERS];
    let mut report = Report::new(1 + lanes.concat().len() + more);
    report.step("format", || cargo(&["fmt", "--all", "--check"], &[]));
    report.side_by_side(BUILD, TOOLS);
    report.side_by_side(TESTS, OTHERS);
    report
}

/// Gives every reader of what others wrote damaged bytes for ten minutes, where an ordinary test takes a moment.
fn damaged() -> Outcome {
    let arguments = ["test", "--package=pagetide-lab", "--locked", "--test=lab", "foreign"];
    cargo(&arguments, &[("PAGETIDE_DAMAGE_SECONDS", "600")])
}

fn only(name: &str, run: impl FnOnce() -> Outcome) -> Report {
    let mut report = Report::new(1);
    report.step(name, run);
    report
}

impl From<std::io::Error> for Outcome {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
