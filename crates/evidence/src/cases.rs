//! Questions that the field has open, on the model and on real kernels: the tables of `docs/cases`.
//!
//! `data/cases/NAME.toml` says which runs answer a question, `data/cases.csv` what each of them gave, and a place
//! `<!-- table: T -->` in the page of that name shows it. `cases [--model] [NAME...]` runs them and writes both, by the
//! command line itself, as a reader would; `cases --check` runs the model again, which has to give the same to the
//! last digit.
//!
//! Left out: whether a real kernel still gives what is kept; it is another each time, within the spread that is shown.
//! Neighbour: [`crate::real`], for the loads of the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::real;
use crate::rows::figure;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const DATA: &str = "crates/evidence/data/cases";
const KEPT: &str = "crates/evidence/data/cases.csv";
const PAGES: &str = "docs/cases";
const HEADER: &str = "case,table,row,column,on,figure,values";
const BEGIN: &str = "<!-- table: ";
const SOURCES: &str = "<!-- sources: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";
/// Seeds of the model's runs, and how often a real kernel runs.
const SEEDS: u64 = 3;
const REPEATS: u64 = 2;
/// Stands for a kernel of one's own in `real`: the variable that has its path, or the table's words for it.
const OWN: &str = "$";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    table: Vec<Table>,
}

/// Rows are runs, columns kernels; each figure of a run is a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    /// What stands behind `pagetide run`.
    run: String,
    /// Metrics by their name, `oom_kills`, or counters as `vmstat:NAME`; with their words.
    figures: Vec<Figure>,
    rows: Vec<Row>,
    columns: Vec<Column>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    of: String,
    what: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    label: String,
    #[serde(default)]
    with: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    label: String,
    kernel: String,
    /// What `--on` names, and options behind it; `$NAME` is a path in that variable.
    #[serde(default)]
    real: Option<String>,
}

impl Column {
    /// What the model runs it on: the machine of User-Mode Linux, unless another is named.
    fn options(&self) -> String {
        let machine = if self.kernel.contains("--machine") { "" } else { "--machine guest-uml " };
        format!("{machine}--kernel {}", self.kernel)
    }

    /// Its columns in a table.
    fn sides(&self) -> impl Iterator<Item = &'static str> {
        self.real.iter().map(|_| REAL).chain([MODEL])
    }
}

/// Case, table, row, column, [`MODEL`] or [`REAL`], figure.
type Key = [String; 6];
/// What a run of a table gave, each repeat.
type Kept = BTreeMap<Key, Vec<f64>>;
const MODEL: &str = "model";
const REAL: &str = "real";

fn key(case: &str, table: &Table, (row, column): (&Row, &Column), on: &str, figure: &Figure) -> Key {
    [case, &table.name, &row.label, &column.label, on, &figure.of].map(str::to_owned)
}

/// Runs these cases, or all, and writes what they gave. Real kernels that are not here keep what they gave before.
pub(crate) fn run(names: &[&str], with_real: bool) -> Result<(), Box<dyn Error>> {
    for (name, case) in cases(names)? {
        for table in &case.table {
            for (row, column) in each(table) {
                let mut now = Kept::new();
                measure(&mut now, &name, table, row, column, with_real)?;
                // Somebody else may run other cases meanwhile.
                let mut kept = kept()?;
                kept.append(&mut now);
                std::fs::write(path(KEPT), text(&kept))?;
            }
        }
    }
    let (mut kept, known) = (kept()?, known()?);
    kept.retain(|key, _| known.contains(key));
    std::fs::write(path(KEPT), text(&kept))?;
    for page in pages()? {
        std::fs::write(&page, rendered(&page, &kept)?)?;
    }
    Ok(())
}

/// Whether the model gives what is kept.
pub(crate) fn check() -> Result<(), Box<dyn Error>> {
    let before = kept()?;
    let mut now = Kept::new();
    for (name, case) in cases(&[])? {
        for table in &case.table {
            for (row, column) in each(table) {
                measure(&mut now, &name, table, row, column, false)?;
            }
        }
    }
    let other = |(key, values): (&Key, &Vec<f64>)| {
        let was = before.get(key);
        let line = format!("{}: {values:?}, kept {was:?}", key.join(" "));
        (was != Some(values)).then_some(line)
    };
    let told: Vec<String> = now.iter().filter_map(other).collect();
    if told.is_empty() { Ok(()) } else { Err(told.join("\n").into()) }
}

fn each(table: &Table) -> impl Iterator<Item = (&Row, &Column)> {
    table.rows.iter().flat_map(|row| table.columns.iter().map(move |column| (row, column)))
}

/// Runs one row on one column's kernel.
fn measure(
    kept: &mut Kept,
    case: &str,
    table: &Table,
    row: &Row,
    column: &Column,
    with_real: bool,
) -> Result<(), Box<dyn Error>> {
    let common = format!("{} {}", table.run, row.with);
    let model = format!("{common} {}", column.options());
    let mut runs = vec![(MODEL, model, SEEDS)];
    if let Some(on) = column.real.as_ref().filter(|_| with_real) {
        match real_options(on) {
            Some(options) => runs.push((REAL, format!("{common} --on {options}"), REPEATS)),
            None => say(&format!("SKIPPED: {on} of {} is not here; its figures stay", column.label)),
        }
    }
    for (on, options, repeats) in runs {
        let one = |seed: u64| json(&format!("{options} --seed {seed}"));
        let runs: Vec<serde_json::Value> = match on {
            MODEL => side_by_side(repeats, &one)?,
            _ => (1..=repeats).map(one).collect::<Result<_, _>>()?,
        };
        for figure in &table.figures {
            kept.insert(
                key(case, table, (row, column), on, figure),
                runs.iter().filter_map(|run| value(run, &figure.of)).collect(),
            );
        }
    }
    Ok(())
}

/// All of these runs at once, in their order.
fn side_by_side(
    repeats: u64,
    one: &(dyn Fn(u64) -> Result<serde_json::Value, String> + Sync),
) -> Result<Vec<serde_json::Value>, String> {
    std::thread::scope(|scope| {
        let runs: Vec<_> = (1..=repeats).map(|seed| scope.spawn(move || one(seed))).collect();
        runs.into_iter().map(|run| run.join().map_err(|_| "a run panicked".to_owned())?).collect()
    })
}

/// What stands behind `--on`; none where a kernel of one's own is not named.
fn real_options(real: &str) -> Option<String> {
    let Some((before, rest)) = real.split_once(OWN) else { return Some(real.to_owned()) };
    let (name, after) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(format!("{before}{} {after}", std::env::var(name).ok()?))
}

/// What a run says of itself.
fn json(options: &str) -> Result<serde_json::Value, String> {
    let here = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let program = here.with_file_name("pagetide");
    say(&format!("pagetide run {options}"));
    let output = Command::new(&program)
        .current_dir(ROOT)
        .args(["run", "-q", "--format", "json"])
        .args(options.split_whitespace())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("{}: {error}; `cargo build --release` makes it", program.display()))?;
    if !output.status.success() {
        return Err(format!("pagetide run {options}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let mut shown: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("pagetide run {options}: {error}"))?;
    Ok(shown["runs"][0].take())
}

/// A figure of a run; none where it did not come so far.
fn value(run: &serde_json::Value, of: &str) -> Option<f64> {
    match of.split_once(':') {
        _ if of == "oom_kills" => run["oom_kills"].as_array().map(|kills| kills.len() as f64),
        Some(("vmstat", counter)) => {
            let phases = run["phases"].as_array()?;
            Some(phases.iter().filter_map(|phase| phase["vmstat"][counter].as_u64()).sum::<u64>() as f64)
        }
        _ => run["metrics"][of].as_f64(),
    }
}

fn cases(names: &[&str]) -> Result<Vec<(String, Case)>, Box<dyn Error>> {
    let mut cases = Vec::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(path(DATA))?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if names.is_empty() || names.contains(&&*name) {
            let case = toml::from_str(&std::fs::read_to_string(&file)?);
            let case: Case = case.map_err(|error| format!("{}: {error}", file.display()))?;
            // They are cells of `cases.csv`.
            let labels = case.table.iter().flat_map(|table| {
                let rows = table.rows.iter().map(|row| &row.label);
                rows.chain(table.columns.iter().map(|column| &column.label))
            });
            if let Some(label) = labels.into_iter().find(|label| label.contains(',')) {
                return Err(format!("{}: label `{label}` has a comma", file.display()).into());
            }
            cases.push((name, case));
        }
    }
    match names.iter().find(|name| !cases.iter().any(|(own, _)| own == *name)) {
        Some(name) => Err(format!("there is no case `{name}` in {DATA}").into()),
        None => Ok(cases),
    }
}

/// All that tables ask for.
fn known() -> Result<BTreeSet<Key>, Box<dyn Error>> {
    let mut known = BTreeSet::new();
    for (case, content) in cases(&[])? {
        for table in &content.table {
            for cell in each(table) {
                for figure in &table.figures {
                    known.extend([MODEL, REAL].map(|on| key(&case, table, cell, on, figure)));
                }
            }
        }
    }
    Ok(known)
}

fn kept() -> Result<Kept, Box<dyn Error>> {
    let text = std::fs::read_to_string(path(KEPT)).unwrap_or_else(|_| HEADER.to_owned());
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(format!("{KEPT} does not begin with `{HEADER}`").into());
    }
    let mut kept = Kept::new();
    for line in lines {
        let mut cells: Vec<&str> = line.split(',').collect();
        let values =
            cells.pop().unwrap_or_default().split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let key: [&str; 6] = cells.try_into().map_err(|_| format!("{KEPT}: `{line}`"))?;
        kept.insert(key.map(str::to_owned), values);
    }
    Ok(kept)
}

/// As the file has them.
fn text(kept: &Kept) -> String {
    let line = |(key, values): (&Key, &Vec<f64>)| {
        let values: Vec<String> = values.iter().map(f64::to_string).collect();
        format!("{},{}\n", key.join(","), values.join(" "))
    };
    std::iter::once(format!("{HEADER}\n")).chain(kept.iter().map(line)).collect()
}

/// A page with its tables as they are kept.
fn rendered(page: &Path, kept: &Kept) -> Result<String, Box<dyn Error>> {
    let name = page.file_stem().unwrap_or_default().to_string_lossy();
    let tables: Vec<Table> = (cases(&[])?.into_iter())
        .filter(|(case, _)| *case == name)
        .flat_map(|(_, case)| case.table)
        .collect();
    let shown = std::fs::read_to_string(page)?;
    let (mut text, mut lines) = (String::new(), shown.lines());
    while let Some(line) = lines.next() {
        text += line;
        text += "\n";
        let asked = |begin: &str| line.strip_prefix(begin).and_then(|rest| rest.strip_suffix(CLOSE));
        let body = match (asked(BEGIN), asked(SOURCES)) {
            (Some(wanted), _) => {
                let table = tables.iter().find(|table| table.name == wanted);
                self::table(&name, table.ok_or_else(|| format!("{name}: no table `{wanted}`"))?, kept)
            }
            (None, Some(wanted)) => real::figures(wanted)?,
            (None, None) => continue,
        };
        text += &format!("{body}{END}\n");
        if !lines.any(|line| line == END) {
            return Err(format!("{name}: `{line}` has no `{END}`").into());
        }
    }
    Ok(text)
}

/// A table in Markdown, and the commands of its last cells.
fn table(case: &str, table: &Table, kept: &Kept) -> String {
    let cell = |row: &Row, column: &Column, on: &str, of: &Figure| {
        kept.get(&key(case, table, (row, column), on, of))
            .map_or_else(|| "-".to_owned(), |values| spread(values))
    };
    let (mut head, mut rule) = ("| |".to_owned(), "|---|".to_owned());
    let with_figures = table.figures.len() > 1;
    if with_figures {
        head += " |";
        rule += "---|";
    }
    let with_real = table.columns.iter().any(|column| column.real.is_some());
    for column in &table.columns {
        let sides = column.sides();
        head += &match with_real {
            true => sides.map(|on| format!(" {} {on} |", column.label)).collect::<String>(),
            false => format!(" {} |", column.label),
        };
        rule += if column.real.is_some() { "---:|---:|" } else { "---:|" };
    }
    let mut lines = vec![head, rule];
    for row in &table.rows {
        for (number, of) in table.figures.iter().enumerate() {
            let label = if number == 0 { &*row.label } else { "" };
            let mut line =
                if with_figures { format!("| {label} | {} |", of.what) } else { format!("| {label} |") };
            for column in &table.columns {
                let sides = column.sides();
                line += &sides.map(|on| format!(" {} |", cell(row, column, on, of))).collect::<String>();
            }
            lines.push(line);
        }
    }
    lines.extend([String::new(), "```sh".to_owned()]);
    lines.extend(commands(table));
    lines.push("```".to_owned());
    lines.join("\n") + "\n"
}

/// Those of the last cells: of a real kernel, and of the model.
fn commands(table: &Table) -> Vec<String> {
    let with = table.rows.last().map_or("", |row| &row.with);
    let common = format!("pagetide run {} {with}", table.run);
    let real = table.columns.iter().rev().find_map(|column| column.real.as_ref());
    let on = real.map(|on| format!("{} --on {}", common.trim(), on.replace(OWN, "PATH_OF_")));
    let of_model = |column: &Column| format!("{} {}", common.trim(), column.options());
    on.into_iter().chain(table.columns.last().map(of_model)).collect()
}

/// One value where all are the same, else the least and the most.
fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (least_text, most_text) = (figure(least), figure(most));
    match values {
        [] => "-".to_owned(),
        _ if least_text == most_text => least_text,
        _ => format!("{least_text} to {most_text}"),
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn path(of: &str) -> PathBuf {
    Path::new(ROOT).join(of)
}

/// Those that have a place for a table.
fn pages() -> std::io::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(path(PAGES))?.map(|entry| Ok(entry?.path()));
    let mut pages: Vec<PathBuf> = files.collect::<std::io::Result<_>>()?;
    pages.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_show_what_is_kept_and_nothing_else_is_kept() {
        let kept = kept().unwrap();
        assert_eq!(text(&kept), std::fs::read_to_string(path(KEPT)).unwrap());
        let known = known().unwrap();
        assert!(kept.keys().all(|key| known.contains(key)), "a table has gone: run `cases`");
        for page in pages().unwrap() {
            let shown = std::fs::read_to_string(&page).unwrap();
            assert!(rendered(&page, &kept).unwrap() == shown, "{} is stale: run `cases`", page.display());
        }
        for (name, case) in cases(&[]).unwrap() {
            let shown = std::fs::read_to_string(path(PAGES).join(format!("{name}.md"))).unwrap();
            for table in &case.table {
                assert!(shown.contains(&format!("{BEGIN}{}{CLOSE}", table.name)), "{name}: {}", table.name);
                assert!(table.rows.iter().all(|row| !row.label.contains(',')), "{name}: {}", table.name);
            }
        }
    }

    #[test]
    fn every_workload_of_a_case_is_right() {
        let files = std::fs::read_dir(path(PAGES)).unwrap().map(|entry| entry.unwrap().path());
        let mut count = 0;
        for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "toml")) {
            let spec = workload::WorkloadSpec::of_file(&std::fs::read_to_string(&file).unwrap()).unwrap();
            assert_eq!(Some(spec.name), file.file_stem().and_then(|stem| stem.to_str()));
            count += 1;
        }
        assert!(count >= 6);
    }

    #[test]
    fn a_cell_shows_the_spread_of_repeats() {
        assert_eq!(spread(&[3.0, 3.0]), "3");
        assert_eq!(spread(&[4.0, 3.0, 10.5]), "3 to 10.50");
        assert_eq!(spread(&[]), "-");
    }
}
