//! `cargo xtask weight`: what there is to read, build, run and trust, by crate.
//!
//! Lines are counted now. Seconds of builds are those of the last `cargo build --release --timings`, and seconds of
//! tests those of the last `cargo xtask test`; what has not been measured here is said. Seconds of a crate's build are
//! those of its own units, which go side by side; a line below the table has the build by the clock.

mod count;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::process::{Command, ExitCode};

use crate::checkout::{commit, root, target};
use crate::say::say;
use crate::times;
use count::Lines;

const PREFIX: &str = "pagetide-";

/// Prints the table as text, or as Markdown, perhaps beside one that was printed before.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    let table = match arguments {
        [] => weigh().map(|table| table.text()),
        ["--format", "md"] => weigh().map(|table| table.markdown()),
        ["--before", file] => fs::read_to_string(file)
            .map_err(|error| format!("{file}: {error}"))
            .and_then(|before| Ok(weigh()?.beside(&before).markdown())),
        _ => Err("`weight` takes `--format md` or `--before FILE`, and nothing else".to_owned()),
    };
    let is_weighed = table.is_ok();
    say(&table.unwrap_or_else(|why| format!("error: {why}")));
    if is_weighed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Rows of cells under headings, and sentences below.
struct Table {
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

const HEADINGS: [&str; 6] = ["crate", "code", "comments", "tests", "build, s", "tests, s"];

fn weigh() -> Result<Table, String> {
    let built = fs::read_to_string(target().join("cargo-timings").join("cargo-timing.html")).ok();
    let units = built.as_deref().map(units).unwrap_or_default();
    let tested = times::noted();
    let (mut rows, mut all) = (Vec::new(), Lines::default());
    for name in crates()? {
        let folder = root().join("crates").join(&name);
        let lines = count::of_crate(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        all.add(lines);
        let package = format!("{PREFIX}{name}");
        let build = units.iter().filter(|unit| unit.name == package).map(|unit| unit.seconds);
        let tests = tested.iter().flat_map(|(_, _, programs)| programs);
        let tests =
            tests.filter(|program| program.name.split(':').next() == Some(&*name)).map(|it| it.seconds);
        rows.push(row(&name, lines, &mut build.into_iter(), &mut tests.into_iter()));
    }
    if !units.is_empty() {
        let mut others = units.iter().filter(|unit| !unit.name.starts_with(PREFIX)).map(|unit| unit.seconds);
        let mut dependencies = row("dependencies", Lines::default(), &mut others, &mut [].into_iter());
        dependencies[1..4].fill(String::new());
        rows.push(dependencies);
    }
    let programs = tested.iter().flat_map(|(_, _, programs)| programs);
    let (build, tests) = (&mut units.iter().map(|unit| unit.seconds), &mut programs.map(|it| it.seconds));
    rows.push(row("all", all, build, tests));
    let mut notes = vec![format!("lines of {}", commit().trim()), dependency_note()?, documents_note()?];
    notes.push(match units.iter().map(|unit| unit.end).reduce(f64::max) {
        Some(end) => format!("release build by the clock: {end:.0} s, {} units", units.len()),
        None => {
            "release build: not measured here; `cargo build --release --timings` from an empty target folder"
                .into()
        }
    });
    notes.push(match &tested {
        Some((of, steps, _)) => {
            let all: f64 = steps.iter().map(|step| step.seconds).sum();
            format!("`cargo xtask test` of {of}: {all:.0} s by the clock")
        }
        None => "tests: not measured here; `cargo xtask test`".to_owned(),
    });
    Ok(Table { rows, notes })
}

/// A row of the table; nothing where there are no seconds.
fn row(
    name: &str,
    lines: Lines,
    build: &mut dyn Iterator<Item = f64>,
    tests: &mut dyn Iterator<Item = f64>,
) -> Vec<String> {
    let seconds = |all: &mut dyn Iterator<Item = f64>| {
        all.reduce(|a, b| a + b).map_or(String::new(), |sum| format!("{sum:.1}"))
    };
    let counts = [lines.code, lines.comments, lines.tests].map(|count| count.to_string());
    [name.to_owned()].into_iter().chain(counts).chain([seconds(build), seconds(tests)]).collect()
}

fn crates() -> Result<Vec<String>, String> {
    let told = |error: std::io::Error| format!("crates: {error}");
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("crates")).map_err(told)? {
        let entry = entry.map_err(told)?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A unit of a build, as cargo's page of timings has it.
#[derive(Debug, PartialEq)]
struct Unit {
    name: String,
    seconds: f64,
    end: f64,
}

/// The page holds them as JSON, one key a line.
fn units(page: &str) -> Vec<Unit> {
    let Some((_, data)) = page.split_once("UNIT_DATA = ") else { return Vec::new() };
    let (mut units, mut name, mut start) = (Vec::new(), String::new(), 0.0);
    for line in data.lines().take_while(|line| !line.starts_with("];")) {
        let Some((key, value)) = line.trim().trim_end_matches(',').split_once(": ") else { continue };
        match key {
            "\"name\"" => name = value.trim_matches('"').to_owned(),
            "\"start\"" => start = value.parse().unwrap_or(0.0),
            "\"duration\"" => {
                let seconds = value.parse().unwrap_or(0.0);
                units.push(Unit { name: std::mem::take(&mut name), seconds, end: start + seconds });
            }
            _ => {}
        }
    }
    units
}

/// How many crates of others there are.
fn dependency_note() -> Result<String, String> {
    let lock =
        fs::read_to_string(root().join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    let all = lock.lines().filter(|line| line.starts_with("source = ")).count();
    let arguments =
        ["tree", "-p", "pagetide-cli", "-e", "normal,build", "--prefix", "none", "--locked", "-f", "{p}"];
    let tree = Command::new("cargo").args(arguments).current_dir(root()).output();
    let tree = tree.map_err(|error| format!("`cargo tree`: {error}"))?;
    if !tree.status.success() {
        return Err(format!("`cargo tree`: {}", String::from_utf8_lossy(&tree.stderr)));
    }
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    let others: BTreeSet<&str> =
        tree.lines().filter(|line| !line.starts_with(PREFIX) && !line.is_empty()).collect();
    let names = others.iter().map(|line| line.trim_end_matches(" (*)")).collect::<BTreeSet<_>>();
    Ok(format!("crates of others: {} in the command, {all} in all", names.len()))
}

fn documents_note() -> Result<String, String> {
    let told = |error: std::io::Error| format!("docs: {error}");
    let (mut by_hand, mut generated) = (0, 0);
    for path in count::files_below(&root().join("docs"), &["md"]).map_err(told)? {
        let text = fs::read_to_string(&path).map_err(told)?;
        let is_generated =
            text.contains("do not edit by hand") || path.iter().any(|part| part == "reference");
        *(if is_generated { &mut generated } else { &mut by_hand }) += text.lines().count();
    }
    Ok(format!("lines of docs: {by_hand} written, {generated} generated"))
}

impl Table {
    fn text(&self) -> String {
        let rows: Vec<Vec<String>> =
            [HEADINGS.map(str::to_owned).to_vec()].into_iter().chain(self.rows.clone()).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            let _ = write!(text, "{:<width$}", row[0], width = widths[0]);
            for (cell, width) in row[1..].iter().zip(&widths[1..]) {
                let _ = write!(text, "  {cell:>width$}");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text + "\n" + &self.notes.join("\n")
    }

    /// Each number behind the one in `before`, a table in Markdown: `12 to 10` where they differ.
    fn beside(mut self, before: &str) -> Self {
        let (table, notes) = before.split_once("\n\n").unwrap_or((before, ""));
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let old: Vec<Vec<String>> = table.lines().skip(2).map(cells).collect();
        let gone = old.iter().filter(|old| self.rows.iter().all(|row| row[0] != old[0]));
        let gone: Vec<_> =
            gone.map(|old| [&old[..1], &vec![String::new(); old.len() - 1]].concat()).collect();
        let last = self.rows.len().saturating_sub(1);
        self.rows.splice(last..last, gone);
        for row in &mut self.rows {
            let Some(old) = old.iter().find(|old| old[0] == row[0]) else { continue };
            for (cell, old) in row.iter_mut().zip(old).skip(1).filter(|(cell, old)| cell != old) {
                let told = |cell: &str| if cell.is_empty() { "-".to_owned() } else { cell.to_owned() };
                *cell = format!("{} to {}", told(old), told(cell));
            }
        }
        self.notes.extend(notes.lines().map(|note| format!("before: {}", note.trim_start_matches("- "))));
        self
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let headings = line(&HEADINGS.map(str::to_owned));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let notes: Vec<String> = self.notes.iter().map(|note| format!("- {note}")).collect();
        format!("{headings}|---|---:|---:|---:|---:|---:|\n{rows}\n{}", notes.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_from_the_page_of_cargo() {
        let page = "const UNIT_DATA = [\n  {\n    \"i\": 0,\n    \"name\": \"pagetide-mm\",\n    \"start\": 1.5,\n    \"duration\": 2.25,\n\
                    \"sections\": [\n      [\n        \"frontend\",\n  }\n];\n    \"name\": \"x\",\n    \"duration\": 9,\n";
        let unit = Unit { name: "pagetide-mm".to_owned(), seconds: 2.25, end: 3.75 };
        assert_eq!(units(page), [unit]);
        assert_eq!(units("nothing"), []);
    }

    #[test]
    fn numbers_stand_under_each_other() {
        let lines = Lines { code: 10, comments: 2, tests: 300 };
        let row = row("mm", lines, &mut [1.0, 0.5].into_iter(), &mut [].into_iter());
        let table = Table { rows: vec![row], notes: vec!["a".to_owned()] };
        assert_eq!(
            table.text(),
            "crate  code  comments  tests  build, s  tests, s\nmm       10         2    300       1.5\n\na"
        );
        let before = "| crate | code | comments | tests | build, s | tests, s |\n|---|---:|---:|---:|---:|---:|\n\
                      | gone | 1 | 1 | 1 |  |  |\n| mm | 12 | 2 | 300 |  | 3.0 |\n\n- b\n";
        let beside = Table { rows: table.rows.clone(), notes: Vec::new() }.beside(before).markdown();
        let (_, rows) = beside.split_once("---:|\n").unwrap();
        assert_eq!(
            rows,
            "| gone | 1 to - | 1 to - | 1 to - |  |  |\n\
             | mm | 12 to 10 | 2 | 300 | - to 1.5 | 3.0 to - |\n\n- before: b"
        );
        assert!(table.markdown().ends_with("| mm | 10 | 2 | 300 | 1.5 |  |\n\n- a"), "{}", table.markdown());
    }
}
