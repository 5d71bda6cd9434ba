//! Steps that are told as they run, and the summary at the end.
//!
//! Output of programs is passed on line by line, so that a long step shows life; the counts and seconds that cargo's
//! test runners print are kept. A step that runs beside others is told as a whole, when it has ended. What each took is
//! shown at the end, see `times.rs`.

use std::io::{self, BufRead, BufReader, IsTerminal};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::say::{kept, say};
use crate::times::{Runner, Times};

/// How a step ended.
pub(crate) enum Outcome {
    /// As it should, with the tests that it ran.
    Passed(Tests),
    /// It did not, and why.
    Failed(String),
    /// It could not be run, and what is missing.
    Skipped(String),
}

/// Tests as their runners counted them, and what each runner took.
#[derive(Debug, Default)]
pub(crate) struct Tests {
    passed: u64,
    failed: u64,
    ignored: u64,
    runners: Vec<Runner>,
    complaints: Complaints,
}

/// What programs said of what failed, for the end of all: logs are long, and those of CI are cut at their front.
#[derive(Debug, Default)]
struct Complaints {
    lines: Vec<String>,
    /// Lines that follow a panic and are of it.
    to_come: u32,
}

impl Complaints {
    /// As many lines as one reads.
    const MOST: usize = 60;
    const MARKS: [&str; 4] = ["FAILED", " failed: ", "panicked at", "error: test failed"];

    fn look(&mut self, line: &str) {
        // The text of a panic is below its place.
        let is_new = Self::MARKS.iter().any(|mark| line.contains(mark));
        self.to_come = if is_new { 4 } else { self.to_come.saturating_sub(1) };
        if self.to_come > 0 && self.lines.len() < Self::MOST {
            self.lines.push(line.to_owned());
        }
    }
}

/// Steps that run one after the other: what each is called, and does.
pub(crate) type Lane<'a> = &'a [(&'static str, fn() -> Outcome)];

/// A step of a lane whose output was kept.
struct Kept {
    name: &'static str,
    outcome: Outcome,
    told: String,
    took: Duration,
}

/// All steps so far.
pub(crate) struct Report {
    total: usize,
    ran: usize,
    /// Steps, and why.
    failed: Vec<(String, String)>,
    skipped: Vec<String>,
    tests: Tests,
    times: Times,
    begin: Instant,
}

impl Report {
    pub(crate) fn new(total: usize) -> Self {
        let (failed, skipped) = (Vec::new(), Vec::new());
        let (tests, times) = (Tests::default(), Times::default());
        Self { total, ran: 0, failed, skipped, tests, times, begin: Instant::now() }
    }

    /// Runs one step and tells how it went.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> Outcome) {
        self.begins(name);
        let begin = Instant::now();
        let outcome = run();
        self.ends(name, outcome, begin.elapsed());
    }

    /// Runs two lanes at the same time: the output of `first` as it comes, that of `second` between its steps.
    pub(crate) fn side_by_side(&mut self, first: Lane<'_>, second: Lane<'_>) {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                for &(name, run) in second {
                    let begin = Instant::now();
                    let (outcome, told) = kept(run);
                    let ended = Kept { name, outcome, told, took: begin.elapsed() };
                    sender.send(ended).expect("the lanes end together");
                }
            });
            for &(name, run) in first {
                self.step(name, run);
                receiver.try_iter().for_each(|ended| self.tell(ended));
            }
            receiver.iter().for_each(|ended| self.tell(ended));
        });
    }

    /// All of a step that ran beside others.
    fn tell(&mut self, Kept { name, outcome, told, took }: Kept) {
        self.begins(name);
        if !told.is_empty() {
            say(told.trim_end_matches('\n'));
        }
        self.ends(name, outcome, took);
    }

    fn begins(&mut self, name: &str) {
        self.ran += 1;
        say(&format!("== step {}/{}: {name}", self.ran, self.total));
    }

    fn ends(&mut self, name: &str, outcome: Outcome, took: Duration) {
        let seconds = took.as_secs();
        self.times.step(name, took);
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
                let first = why.lines().next().unwrap_or_default();
                say(&format!("== {name}: FAILED, {seconds} s: {first}"));
                self.failed.push((name.to_owned(), why));
            }
        }
    }

    /// Whether no step has failed so far, or was skipped.
    pub(crate) fn all_passed(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty()
    }

    /// What each step and each runner of tests took: shown, and noted for `cargo xtask weight`.
    pub(crate) fn tell_times(&mut self) {
        self.times.runners(std::mem::take(&mut self.tests.runners));
        say(&self.times.table(self.begin.elapsed()));
        self.times.note();
    }

    /// The summary, and the exit code that goes with it.
    pub(crate) fn end(self) -> ExitCode {
        let Tests { passed, failed, ignored, .. } = self.tests;
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
            let names: Vec<&str> = self.failed.iter().map(|(name, _)| &**name).collect();
            say(&format!("failed steps: {}", names.join(", ")));
            for (name, why) in &self.failed {
                say(&format!("== {name}: {why}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// Runs cargo with its output passed on.
pub(crate) fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    match run_cargo(arguments, environment) {
        Ok((true, tests)) => Outcome::Passed(tests),
        Ok((false, tests)) => {
            let command = format!("`cargo {}`", arguments.join(" "));
            Outcome::Failed(
                [command].into_iter().chain(tests.complaints.lines).collect::<Vec<_>>().join("\n"),
            )
        }
        Err(error) => Outcome::from(error),
    }
}

fn run_cargo(arguments: &[&str], environment: &[(&str, &str)]) -> io::Result<(bool, Tests)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).envs(environment.iter().copied());
    if io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut tests = Tests::default();
    let status = passed_on(command, |line| tests.count(line))?;
    Ok((status.success(), tests))
}

/// Runs a program that gets no input, and passes its output on. Both streams are one, as the line that names a
/// program of tests is on another than what it prints.
pub(crate) fn passed_on(mut command: Command, mut look: impl FnMut(&str)) -> io::Result<ExitStatus> {
    let (reader, writer) = io::pipe()?;
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // It holds ends of the pipe for writing, and reading ends with the last of these.
    drop(command);
    for line in BufReader::new(reader).lines() {
        let line = line?;
        look(&line);
        say(&line);
    }
    child.wait()
}

impl Tests {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.runners.extend(other.runners);
    }

    /// Adds `test result: ok. 12 passed; 0 failed; 1 ignored; ...`.
    fn count(&mut self, line: &str) {
        self.runners.extend(Runner::named(line));
        self.complaints.look(line);
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let counts = result.split_once(". ").map_or("", |(_, counts)| counts);
        for part in counts.split("; ") {
            if let (Some(took), Some(runner)) = (part.strip_prefix("finished in "), self.runners.last_mut()) {
                runner.seconds += took.trim_end_matches('s').parse().unwrap_or(0.0);
            }
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
            "     Running unittests src/lib.rs (target/debug/deps/pagetide_mm-0b0e946b4497c8b7)",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "test other ... ok",
        ] {
            tests.count(line);
        }
        assert_eq!((tests.passed, tests.failed, tests.ignored), (15, 2, 1));
        assert_eq!((&tests.runners[0].name[..], tests.runners[0].seconds), ("mm", 0.1));
    }

    #[test]
    fn what_failed_is_told_again_with_the_text_of_a_panic() {
        let mut tests = Tests::default();
        for line in [
            "  Phase(\"hot_ready after 0.4 s\")",
            "fetch of 6.1 failed: no network",
            "boot test of 6.1 passed",
            "thread 'main' panicked at boot.rs:7:5:",
            "its folder is gone",
            "  left: 1",
            " right: 0",
            "note: run with `RUST_BACKTRACE=1`",
        ] {
            tests.count(line);
        }
        let lines = tests.complaints.lines;
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert_eq!([&*lines[0], &*lines[5]], ["fetch of 6.1 failed: no network", " right: 0"]);
    }

    #[test]
    fn steps_beside_others_are_told_as_a_whole_and_counted() {
        fn says(text: &str) -> Outcome {
            say(text);
            Outcome::Passed(Tests { passed: 1, ..Tests::default() })
        }
        let (report, told) = kept(|| {
            let mut report = Report::new(3);
            let second: Lane<'_> =
                &[("beside", || says("of beside")), ("bad", || Outcome::Failed("why".into()))];
            report.side_by_side(&[("first", || says("of first"))], second);
            report
        });
        let expected = "== step 1/3: first\nof first\n== first: ok, 0 s\n\
                        == step 2/3: beside\nof beside\n== beside: ok, 0 s\n\
                        == step 3/3: bad\n== bad: FAILED, 0 s: why\n";
        assert_eq!(told, expected);
        assert_eq!((report.tests.passed, report.failed), (2, vec![("bad".to_owned(), "why".to_owned())]));
    }

    #[test]
    fn both_streams_of_a_program_are_passed_on() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo out; echo err >&2; cat; exit 3"]);
        let mut lines = 0;
        let (status, told) = kept(|| passed_on(shell, |_| lines += 1));
        assert_eq!((status.expect("a shell").code(), &*told, lines), (Some(3), "out\nerr\n", 2));
    }
}
