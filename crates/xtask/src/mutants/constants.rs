//! Wrong constants, one at a time.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::copy::SourceCopy;
use super::table::{Place, TABLE};
use super::{Fate, TESTS, Tally};
use crate::say::say;

/// One constant, and a wrong value for it.
struct Wrong {
    /// Below `crates/mm/src`.
    file: &'static str,
    /// A whole line of it, without the space around it; no other line there is the same.
    line: &'static str,
    /// What stands once on that line.
    constant: &'static str,
    /// What to write instead.
    wrong: &'static str,
}

/// A test may take so much longer than all took before anything was changed, and at least this long.
const PATIENCE: u32 = 5;
const PATIENCE_AT_LEAST: Duration = Duration::from_secs(20);

/// Tries the constants of the table, or those of it that are in `files`.
pub(super) fn run(copy: &SourceCopy, files: Option<&[String]>) -> Result<Tally, String> {
    let wanted = |file: &str| files.is_none_or(|files| files.iter().any(|wanted| wanted == file));
    let of_file = |&(file, places): &(&'static str, &'static [Place])| {
        places.iter().map(move |&(line, constant, wrong)| Wrong { file, line, constant, wrong })
    };
    let chosen: Vec<Wrong> = TABLE.iter().filter(|(file, _)| wanted(file)).flat_map(of_file).collect();
    // All places are looked up before the first is tried.
    let mut changed = Vec::new();
    for wrong in &chosen {
        let path = copy.source(wrong.file);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", wrong.file))?;
        changed.push((path, wrong.applied(&text)?, text));
    }
    let tests = build(copy, &TESTS)?.ok_or("mm's own tests do not build before anything is changed")?;
    let begin = Instant::now();
    if pass(copy, &tests, Duration::from_secs(3600))? != Some(true) {
        return Err("mm's own tests fail before anything is changed".into());
    }
    let patience = (begin.elapsed() * PATIENCE).max(PATIENCE_AT_LEAST);
    let mut tally = Tally::default();
    for (index, (wrong, (path, text, original))) in chosen.iter().zip(changed).enumerate() {
        let told = |error: std::io::Error| format!("{}: {error}", wrong.file);
        fs::write(&path, text).map_err(told)?;
        let fate = fate(copy, patience);
        // The copy is brought up to date by the next run, too, should this one not come so far.
        fs::write(&path, original).map_err(told)?;
        let fate = fate?;
        let what = format!("{}: `{}`: {} -> {}", wrong.file, wrong.line, wrong.constant, wrong.wrong);
        say(&format!("{:>3}/{} {:<8} {what}", index + 1, chosen.len(), format!("{fate:?}")));
        tally.add(wrong.file, fate, &what);
    }
    Ok(tally)
}

impl Wrong {
    /// The file with the wrong value.
    fn applied(&self, text: &str) -> Result<String, String> {
        let place = format!("`{}` of {}", self.line, self.file);
        let mut lines = text.split_inclusive('\n').filter(|line| line.trim() == self.line);
        let (Some(line), None) = (lines.next(), lines.next()) else {
            let times = text.lines().filter(|line| line.trim() == self.line).count();
            return Err(format!("the table of wrong constants names {place}, which is there {times} times"));
        };
        if line.matches(self.constant).count() != 1 {
            return Err(format!("the table of wrong constants wants one `{}` in {place}", self.constant));
        }
        let begin = line.as_ptr() as usize - text.as_ptr() as usize;
        let wrong = line.replace(self.constant, self.wrong);
        Ok([&text[..begin], &wrong, &text[begin + line.len()..]].concat())
    }
}

/// Unit tests first, then all: most is caught by what is quickly built.
fn fate(copy: &SourceCopy, patience: Duration) -> Result<Fate, String> {
    for targets in [&TESTS[..1], &TESTS] {
        let Some(tests) = build(copy, targets)? else { return Ok(Fate::Unviable) };
        match pass(copy, &tests, patience)? {
            Some(true) => {}
            Some(false) => return Ok(Fate::Caught),
            None => return Ok(Fate::Timeout),
        }
    }
    Ok(Fate::Missed)
}

/// Builds tests of `mm`; none when it does not compile.
fn build(copy: &SourceCopy, targets: &[&str]) -> Result<Option<Vec<PathBuf>>, String> {
    let mut command = copy.command();
    command.args(["test", "--no-run", "--package", "pagetide-mm", "--color", "never"]).args(targets);
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Ok(None);
    }
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let tests: Vec<PathBuf> = told.lines().filter_map(executable).map(PathBuf::from).collect();
    if tests.is_empty() { Err(format!("cargo names no tests:\n{told}")) } else { Ok(Some(tests)) }
}

/// The path in a line of cargo such as `Executable tests/lru.rs (target/debug/deps/lru-1234)`.
fn executable(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("Executable ")?.strip_suffix(')')?.rsplit_once('(').map(|(_, path)| path)
}

/// Whether all tests pass; none when they take too long.
fn pass(copy: &SourceCopy, tests: &[PathBuf], patience: Duration) -> Result<Option<bool>, String> {
    let end = Instant::now() + patience;
    for test in tests {
        let mut command = Command::new(test);
        command.current_dir(copy.package()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("INSTA_UPDATE", "no");
        let told = |error: std::io::Error| format!("{}: {error}", test.display());
        let mut child = command.spawn().map_err(told)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(told)? {
                break status;
            }
            if Instant::now() >= end {
                child.kill().and_then(|()| child.wait()).map_err(told)?;
                return Ok(None);
            }
            sleep(Duration::from_millis(5));
        };
        if !status.success() {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRONG: Wrong =
        Wrong { file: "a.rs", line: "const CLUSTER: u64 = 32;", constant: "32", wrong: "31" };

    #[test]
    fn a_constant_is_changed_at_its_place_only() {
        let text = "fn a() {\n    const CLUSTER: u64 = 32;\n}\nconst OTHER: u64 = 32;\n";
        let changed = "fn a() {\n    const CLUSTER: u64 = 31;\n}\nconst OTHER: u64 = 32;\n";
        assert_eq!(WRONG.applied(text).as_deref(), Ok(changed));
    }

    #[test]
    fn a_place_that_no_longer_matches_is_named() {
        let gone = WRONG.applied("const CLUSTER: u64 = 64;\n").unwrap_err();
        assert!(gone.contains("`const CLUSTER: u64 = 32;` of a.rs, which is there 0 times"), "{gone}");
        let twice = WRONG.applied("const CLUSTER: u64 = 32;\nconst CLUSTER: u64 = 32;\n").unwrap_err();
        assert!(twice.contains("2 times"), "{twice}");
        let other = Wrong { constant: "16", ..WRONG };
        assert!(other.applied("const CLUSTER: u64 = 32;\n").unwrap_err().contains("one `16`"));
    }

    /// A line that had changed was noticed only by whoever ran the command next.
    #[test]
    fn every_place_of_the_table_is_in_the_code() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../mm/src");
        let mut gone = Vec::new();
        for &(file, places) in TABLE {
            let text = fs::read_to_string(sources.join(file)).unwrap();
            for &(line, constant, wrong) in places {
                gone.extend(Wrong { file, line, constant, wrong }.applied(&text).err());
            }
        }
        assert_eq!(gone, Vec::<String>::new());
    }

    #[test]
    fn cargo_says_where_tests_are() {
        let line = "  Executable unittests src/lib.rs (target/debug/deps/pagetide_mm-12)";
        assert_eq!(executable(line), Some("target/debug/deps/pagetide_mm-12"));
        assert_eq!(executable("   Compiling pagetide-mm v0.1.0 (crates/mm)"), None);
    }
}
