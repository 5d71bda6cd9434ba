//! Steps that are told as they run, and the summary at the end.
//!
//! Output of cargo is passed on line by line, so that a long step shows life; the counts that its
//! test runners print are added up.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// A line to standard output; a reader that has gone away does not matter.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// How a step ended.
pub(crate) enum Outcome {
    /// As it should, with the tests that it ran.
    Passed(Tests),
    /// It did not, and why.
    Failed(String),
    /// It could not be run, and what is missing.
    Skipped(String),
}

/// Tests as their runners counted them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tests {
    passed: u64,
    failed: u64,
    ignored: u64,
}

/// All steps so far.
pub(crate) struct Report {
    total: usize,
    ran: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
    tests: Tests,
}

impl Report {
    pub(crate) fn new(total: usize) -> Self {
        Self { total, ran: 0, failed: Vec::new(), skipped: Vec::new(), tests: Tests::default() }
    }

    /// Runs one step and tells how it went.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> Outcome) {
        self.ran += 1;
        say(&format!("== step {}/{}: {name}", self.ran, self.total));
        let begin = Instant::now();
        let outcome = run();
        let seconds = begin.elapsed().as_secs();
        match outcome {
            Outcome::Passed(tests) => {
                self.tests.add(tests);
                say(&format!("== {name}: ok, {seconds} s"));
            }
            Outcome::Skipped(why) => {
                say(&format!("== {name}: SKIPPED: {why}"));
                self.skipped.push(format!("{name} ({why})"));
            }
            Outcome::Failed(why) => {
                say(&format!("== {name}: FAILED, {seconds} s: {why}"));
                self.failed.push(name.to_owned());
            }
        }
    }

    /// Whether no step has failed so far, or was skipped.
    pub(crate) fn all_passed(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty()
    }

    /// The summary, and the exit code that goes with it.
    pub(crate) fn end(self) -> ExitCode {
        let Tests { passed, failed, ignored } = self.tests;
        if ignored > 0 {
            say(&format!("skipped: {ignored} tests are marked as ignored"));
        }
        if passed + failed > 0 {
            say(&format!("{passed} passed, {failed} failed, {ignored} ignored"));
        }
        for skipped in &self.skipped {
            say(&format!("SKIPPED: {skipped}"));
        }
        if self.failed.is_empty() {
            say(&format!("all {} steps passed", self.ran - self.skipped.len()));
            ExitCode::SUCCESS
        } else {
            say(&format!("failed steps: {}", self.failed.join(", ")));
            ExitCode::FAILURE
        }
    }
}

/// Runs cargo with its output passed on.
pub(crate) fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    match run_cargo(arguments, environment) {
        Ok((true, tests)) => Outcome::Passed(tests),
        Ok((false, _)) => Outcome::Failed(format!("`cargo {}`", arguments.join(" "))),
        Err(error) => Outcome::from(error),
    }
}

fn run_cargo(arguments: &[&str], environment: &[(&str, &str)]) -> io::Result<(bool, Tests)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .args(arguments)
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut tests = Tests::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            tests.count(&line);
            say(&line);
        }
    }
    Ok((child.wait()?.success(), tests))
}

impl Tests {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    /// Adds `test result: ok. 12 passed; 0 failed; 1 ignored; ...`.
    fn count(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let counts = result.split_once(". ").map_or("", |(_, counts)| counts);
        for part in counts.split("; ") {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_runners_add_up() {
        let mut tests = Tests::default();
        for line in [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "test other ... ok",
        ] {
            tests.count(line);
        }
        assert_eq!((tests.passed, tests.failed, tests.ignored), (15, 2, 1));
    }
}
