//! What steps of `cargo xtask test` and programs of tests took: a table, and a note for `cargo xtask weight`.
//!
//! The note is a file below cargo's target folder, a line for each: `step`, `tests` or `commit`, a name, seconds. A
//! failed step's programs are left out, as their output is.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::checkout::{commit, target};
use crate::say::say;

/// A program of tests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Runner {
    pub(crate) name: String,
    pub(crate) seconds: f64,
}

impl Runner {
    /// The program that cargo's line says it runs now: `mm` for the unit tests of a crate, `mm: tests/mm/main.rs`
    /// for others.
    pub(crate) fn named(line: &str) -> Option<Self> {
        let plain = without_colour(line);
        let line = plain.trim();
        let name = if let Some(name) = line.strip_prefix("Doc-tests ") {
            format!("{}: documentation", of_crate(name))
        } else {
            let (what, program) = line.strip_prefix("Running ")?.split_once(" (")?;
            let program = program.trim_end_matches(')').rsplit('/').next()?;
            let (program, _) = program.rsplit_once('-')?;
            match what.strip_prefix("unittests ") {
                Some(_) => of_crate(program).to_owned(),
                None => format!("{}: {what}", of_crate(program)),
            }
        };
        Some(Self { name, seconds: 0.0 })
    }
}

fn of_crate(program: &str) -> &str {
    program.strip_prefix("pagetide_").unwrap_or(program)
}

fn without_colour(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// Steps and programs in the order in which they ran.
#[derive(Default)]
pub(crate) struct Times {
    steps: Vec<Runner>,
    programs: Vec<Runner>,
}

impl Times {
    pub(crate) fn step(&mut self, name: &str, took: Duration) {
        self.steps.push(Runner { name: name.to_owned(), seconds: took.as_secs_f64() });
    }

    pub(crate) fn runners(&mut self, runners: Vec<Runner>) {
        self.programs.extend(runners);
    }

    /// Steps as they ended, and what `all` of them took, which is less than their sum where two ran at a time; then the
    /// programs of a second and more, the longest first.
    pub(crate) fn table(&self, all: Duration) -> String {
        let mut table = format!("\n{:>8}  step\n", "seconds");
        for Runner { name, seconds } in &self.steps {
            let _ = writeln!(table, "{seconds:>8.0}  {name}");
        }
        let _ = writeln!(table, "{:>8.0}  all\n\n{:>8}  tests", all.as_secs_f64(), "seconds");
        let mut long: Vec<&Runner> = self.programs.iter().filter(|program| program.seconds >= 1.0).collect();
        long.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        for Runner { name, seconds } in &long {
            let _ = writeln!(table, "{seconds:>8.1}  {name}");
        }
        let short: f64 =
            self.programs.iter().map(|program| program.seconds).filter(|seconds| *seconds < 1.0).sum();
        let _ =
            writeln!(table, "{short:>8.1}  {} others, below a second each", self.programs.len() - long.len());
        table
    }

    /// Keeps them below cargo's target folder.
    pub(crate) fn note(&self) {
        let kinds = [("step", &self.steps), ("tests", &self.programs)];
        let lines = kinds.iter().flat_map(|(kind, all)| {
            all.iter().map(move |Runner { name, seconds }| format!("{kind}\t{name}\t{seconds:.2}\n"))
        });
        let note = format!("commit\t{}\t0\n{}", commit().trim(), lines.collect::<String>());
        if let Err(error) = fs::create_dir_all(target()).and_then(|()| fs::write(file(), note)) {
            say(&format!("{}: {error}", file().display()));
        }
    }
}

/// The last note: which commit it is of, steps, and programs of tests.
pub(crate) fn noted() -> Option<(String, Vec<Runner>, Vec<Runner>)> {
    read(&fs::read_to_string(file()).ok()?)
}

fn read(note: &str) -> Option<(String, Vec<Runner>, Vec<Runner>)> {
    let (mut of, mut steps, mut programs) = (None, Vec::new(), Vec::new());
    for line in note.lines() {
        let mut columns = line.split('\t');
        let (kind, name, seconds) =
            (columns.next()?, columns.next()?.to_owned(), columns.next()?.parse().ok()?);
        match kind {
            "commit" => of = Some(name),
            "step" => steps.push(Runner { name, seconds }),
            _ => programs.push(Runner { name, seconds }),
        }
    }
    Some((of?, steps, programs))
}

fn file() -> PathBuf {
    target().join("test-times")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_tests_is_named_after_its_crate() {
        let named = |line: &str| Runner::named(line).map(|runner| runner.name);
        let of = |program: &str| format!("     Running {program}-0b0e946b4497c8b7)");
        assert_eq!(named(&of("unittests src/lib.rs (target/debug/deps/pagetide_mm")).as_deref(), Some("mm"));
        assert_eq!(
            named(&of("\u{1b}[0m\u{1b}[1mtests/mm/main.rs (target/debug/deps/mm")).as_deref(),
            Some("mm: tests/mm/main.rs")
        );
        assert_eq!(named("   Doc-tests pagetide_sim").as_deref(), Some("sim: documentation"));
        assert_eq!(named("running 12 tests"), None);
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let runner = |name: &str, seconds| Runner { name: name.to_owned(), seconds };
        assert_eq!(
            read("commit\t1234abcd of 2026-11-24\t0\nstep\tlints\t12.50\ntests\tmm: documentation\t0.10\n"),
            Some((
                "1234abcd of 2026-11-24".to_owned(),
                vec![runner("lints", 12.5)],
                vec![runner("mm: documentation", 0.1)]
            ))
        );
        assert_eq!(read("step\tlints\t12.50\n"), None);
    }

    #[test]
    fn the_longest_programs_come_first_and_short_ones_together() {
        let mut times = Times::default();
        times.step("lints", Duration::from_secs(12));
        let runner = |name: &str, seconds| Runner { name: name.to_owned(), seconds };
        times.runners(vec![runner("mm", 2.0), runner("sim", 30.25), runner("units", 0.5)]);
        let expected = "\n seconds  step\n      12  lints\n      12  all\n\n seconds  tests\n    30.2  sim\n     2.0  mm\n     0.5  1 others, below a second each\n";
        assert_eq!(times.table(Duration::from_secs(12)), expected);
    }
}
