//! `cargo xtask mutants`: do `mm`'s own tests notice when one of its decisions is wrong?
//!
//! Two kinds of wrong code are built, one at a time, and put before the tests of `mm`, which should
//! fail: *mutants* of operators, values returned and match arms, which cargo-mutants makes, and *wrong
//! constants*, which it leaves alone, from [`table`]. What the tests let pass survives.
//!
//! All of it happens in a copy of the sources below the build folder ([`copy`]): a run that is cut short
//! leaves nothing behind in the repository. Left out: tests of other crates, which would catch more and
//! take longer; they say less about where a rule is held. docs/mutants.md has the figures.

mod constants;
mod copy;
mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::say::say;
use crate::step::Outcome;
use copy::SourceCopy;

/// Where decisions are made, below `crates/mm/src`.
const DECISIONS: [&str; 9] = [
    "alloc/fallback.rs",
    "alloc/pcp.rs",
    "alloc/watermark.rs",
    "cgroup/charge.rs",
    "cgroup/protection.rs",
    "compact/run.rs",
    "decide",
    "lru",
    "reclaim",
];

/// At least so many of a hundred viable mutants are to be caught, and of a hundred wrong constants.
const ENOUGH: usize = 97;

/// Tests of the library and of `tests`, no examples of documents.
const TESTS: [&str; 2] = ["--lib", "--tests"];

/// Makes mutants and wrong constants in the files that `arguments` name, the decisions when they name
/// none, and tells what survived.
pub(crate) fn run(arguments: &[&str]) -> Outcome {
    match Request::parse(arguments).and_then(|request| request.run()) {
        Ok(()) => Outcome::Passed(Default::default()),
        Err(why) => Outcome::Failed(why),
    }
}

/// What to measure.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    places: Vec<String>,
    /// `k/n`: every n-th mutant, from the k-th on; constants are always taken whole.
    shard: Option<String>,
    only: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mutants,
    Constants,
}

impl Request {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut request = Self::default();
        let mut rest = arguments.iter();
        while let Some(&argument) = rest.next() {
            match argument {
                "--shard" => {
                    let shard = rest.next().ok_or("`--shard` needs a value such as 0/4")?;
                    request.shard = Some((*shard).to_owned());
                }
                "--mutants" => request.only = Some(Kind::Mutants),
                "--constants" => request.only = Some(Kind::Constants),
                option if option.starts_with('-') => return Err(format!("`{option}` is not an option")),
                place => request.places.push(place.to_owned()),
            }
        }
        Ok(request)
    }

    fn run(&self) -> Result<(), String> {
        // Before anything is built.
        let tool = (self.only != Some(Kind::Constants)).then(Tool::find).transpose()?;
        let copy = SourceCopy::refresh()?;
        let files = self.files(&copy)?;
        let everywhere = self.places.is_empty();
        let mut short = Vec::new();
        if let Some(tool) = tool {
            let tally = tool.run(&copy, &files, self.shard.as_deref())?;
            tally.tell("mutants");
            short.extend(tally.falls_short().then_some("mutants"));
        }
        if self.only != Some(Kind::Mutants) {
            let tally = constants::run(&copy, (!everywhere).then_some(&files[..]))?;
            tally.tell("wrong constants");
            short.extend(tally.falls_short().then_some("wrong constants"));
        }
        if short.is_empty() {
            return Ok(());
        }
        Err(format!("fewer than {ENOUGH} % were caught of {}", short.join(" and ")))
    }

    /// Files below `crates/mm/src`, each with its ending.
    fn files(&self, copy: &SourceCopy) -> Result<Vec<String>, String> {
        let places: Vec<&str> = if self.places.is_empty() {
            DECISIONS.to_vec()
        } else {
            self.places.iter().map(String::as_str).collect()
        };
        let mut files = Vec::new();
        for place in places {
            let below = place.strip_prefix("crates/mm/src/").unwrap_or(place);
            let found = copy.files_at(below)?;
            if found.is_empty() {
                return Err(format!("`{place}` is neither a file nor a folder of crates/mm/src"));
            }
            files.extend(found);
        }
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// cargo-mutants, which makes the mutants.
struct Tool;

impl Tool {
    fn find() -> Result<Self, String> {
        let found = Command::new(cargo()).args(["mutants", "--version"]).output();
        if found.is_ok_and(|output| output.status.success()) {
            return Ok(Self);
        }
        Err("cargo-mutants is not installed\nhint: cargo install cargo-mutants --locked".into())
    }

    /// Unit tests are quick to build and catch most; what they miss comes before all tests.
    fn run(&self, copy: &SourceCopy, files: &[String], shard: Option<&str>) -> Result<Tally, String> {
        let results = copy.results()?;
        // What a value looks like in a message is no decision.
        let mut choice = vec!["--exclude-re".to_owned(), "impl .*(Display|Debug) for".to_owned()];
        if let Some(shard) = shard {
            choice.extend(["--sharding", "round-robin", "--shard", shard].map(str::to_owned));
        }
        stage(copy, files, &choice, &["--lib"])?;
        let mut tally = Tally::default();
        tally.read(&results, &[Fate::Caught, Fate::Unviable, Fate::Timeout]);
        let missed = names(&results, Fate::Missed);
        if !missed.is_empty() {
            let choice: Vec<String> =
                missed.iter().flat_map(|name| ["--re".to_owned(), pattern(name)]).collect();
            stage(copy, files, &choice, &TESTS)?;
            tally.read(&results, &Fate::ALL);
        }
        Ok(tally)
    }
}

/// Puts the mutants of `files` that `choice` leaves before `tests`.
fn stage(copy: &SourceCopy, files: &[String], choice: &[String], tests: &[&str]) -> Result<(), String> {
    let mut command = copy.command();
    command.args(["mutants", "--in-place", "--package", "pagetide-mm", "--caught", "--unviable"]);
    command.args(["--minimum-test-timeout", "10"]).args(choice);
    for file in files {
        command.args(["--file", &format!("crates/mm/src/{file}")]);
    }
    let status = command.arg("--").args(tests).status().map_err(|error| format!("{command:?}: {error}"))?;
    match status.code() {
        // 2 and 3: some were missed, some did not end.
        Some(0 | 2 | 3) => Ok(()),
        Some(4) => Err("mm's own tests fail before anything is changed".into()),
        _ => Err(format!("cargo-mutants: {status}")),
    }
}

/// Mutants that met this fate; a list that is not there is empty.
fn names(results: &Path, fate: Fate) -> Vec<String> {
    let list = std::fs::read_to_string(results.join(fate.list())).unwrap_or_default();
    list.lines().map(str::to_owned).collect()
}

/// A regular expression that matches `name` and nothing else.
fn pattern(name: &str) -> String {
    let mut pattern = String::from("^");
    for c in name.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "$"
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// What became of one piece of wrong code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Caught,
    Missed,
    /// It does not compile.
    Unviable,
    /// A test did not end: caught, too.
    Timeout,
}

impl Fate {
    const ALL: [Self; 4] = [Self::Caught, Self::Missed, Self::Unviable, Self::Timeout];

    /// Where cargo-mutants lists such mutants.
    const fn list(self) -> &'static str {
        match self {
            Self::Caught => "caught.txt",
            Self::Missed => "missed.txt",
            Self::Unviable => "unviable.txt",
            Self::Timeout => "timeout.txt",
        }
    }
}

/// What became of the wrong code, by file.
#[derive(Debug, Default)]
struct Tally {
    files: BTreeMap<String, [usize; 4]>,
    missed: Vec<String>,
}

impl Tally {
    /// Adds lists that cargo-mutants leaves: a line `file:line:column: what` for each mutant.
    fn read(&mut self, results: &Path, fates: &[Fate]) {
        for &fate in fates {
            for name in names(results, fate) {
                self.add(name.split(':').next().unwrap_or(&name), fate, &name);
            }
        }
    }

    fn add(&mut self, file: &str, fate: Fate, what: &str) {
        let short = file.strip_prefix("crates/mm/src/").unwrap_or(file);
        self.files.entry(short.to_owned()).or_default()[fate as usize] += 1;
        if fate == Fate::Missed {
            self.missed.push(what.to_owned());
        }
    }

    fn sum(&self) -> [usize; 4] {
        self.files.values().fold([0; 4], |sum, counts| std::array::from_fn(|i| sum[i] + counts[i]))
    }

    fn falls_short(&self) -> bool {
        let [caught, missed, _, timeout] = self.sum();
        (caught + timeout) * 100 < ENOUGH * (caught + missed + timeout)
    }

    /// The table, and what survived.
    fn tell(&self, title: &str) {
        say(&format!("\n{title:<24} caught  missed  unviable  timeout  caught of viable"));
        for (file, counts) in &self.files {
            say(&row(file, *counts));
        }
        say(&row("all", self.sum()));
        if !self.missed.is_empty() {
            say("\nsurvivors:");
        }
        for line in &self.missed {
            say(&format!("  {line}"));
        }
    }
}

fn row(name: &str, [caught, missed, unviable, timeout]: [usize; 4]) -> String {
    let viable = caught + missed + timeout;
    // Rounded down: 100 % is all of them.
    let tenths = ((caught + timeout) * 1000).checked_div(viable);
    let share = tenths.map_or("-".into(), |tenths| format!("{}.{} %", tenths / 10, tenths % 10));
    format!("{name:<24} {caught:>6}  {missed:>6}  {unviable:>8}  {timeout:>7}  {share:>16}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_files_are_told_apart() {
        let request = Request::parse(&["--shard", "0/4", "lru", "--mutants"]).unwrap();
        let expected =
            Request { places: vec!["lru".into()], shard: Some("0/4".into()), only: Some(Kind::Mutants) };
        assert_eq!(request, expected);
        assert!(Request::parse(&["--shard"]).is_err());
        assert!(Request::parse(&["--all"]).unwrap_err().contains("`--all`"));
    }

    #[test]
    fn a_name_becomes_a_pattern_of_its_own() {
        assert_eq!(
            pattern("a.rs:1: replace > with * in B<C>::d"),
            r"^a\.rs:1: replace > with \* in B<C>::d$"
        );
    }

    #[test]
    fn the_share_is_over_what_compiles_and_never_rounded_up() {
        let mut tally = Tally::default();
        for _ in 0..96 {
            tally.add("crates/mm/src/lru/lists.rs", Fate::Caught, "");
        }
        tally.add("crates/mm/src/lru/lists.rs", Fate::Timeout, "");
        for _ in 0..3 {
            tally.add("crates/mm/src/lru/lists.rs", Fate::Missed, "what");
            tally.add("crates/mm/src/lru/lists.rs", Fate::Unviable, "");
        }
        assert!(!tally.falls_short());
        assert!(row("all", tally.sum()).ends_with("97.0 %"));
        tally.add("crates/mm/src/lru/two_lists.rs", Fate::Missed, "one more");
        assert!(tally.falls_short());
        assert!(row("all", tally.sum()).ends_with("96.0 %"), "96.03");
        assert_eq!(tally.missed.len(), 4);
        assert!(row("none", [0; 4]).ends_with('-'));
    }
}
