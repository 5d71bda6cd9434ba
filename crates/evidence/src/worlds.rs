//! Worlds that the repository keeps: their tables in `data/worlds`, and what the program knows of them,
//! `crates/lab/data/known-error.csv`.
//!
//! The tables have what ran for real, so that a changed model can be held to it where no kernel runs:
//! `pagetide worlds --real-of crates/evidence/data/worlds/6.12`. All folders that count are given at once, and what is
//! kept holds no others. Left out: what a counter is about, see `mechanism.rs`; how it is shown, see `fidelity.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;

use lab::known::{self, ALL, COUNTS, KnownError, POOL, TIMES};
use lab::worlds::{Class, judge_itself};
use recording::chunk::FactKind;
use recording::worlds::{WorldRow, read_worlds, write_worlds};

use crate::disagreement::{Disagreement, disagreements};
use crate::mechanism::{is_of_reclaim, is_time};

/// What the program knows.
const KNOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/data/known-error.csv");
/// A folder for each kernel.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/worlds");

/// The first of the seeds that ran for the first time after mechanisms were mended by those before.
const FRESH: u64 = 1191;

/// What ran, and how far off the model is.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Of each kernel, what ran.
    pub(crate) folder: Vec<Folder>,
    /// Of seeds that nobody had looked at, how near the model is, and how near each real run is to the others.
    pub(crate) ceiling: Vec<Ceiling>,
    /// Where the model is farthest off.
    pub(crate) disagreement: Vec<Disagreement>,
}

/// Worlds of one kernel.
#[derive(Debug)]
pub(crate) struct Folder {
    /// What ran for real.
    pub(crate) real: String,
    /// The model beside it.
    pub(crate) kernel: String,
    /// Seeds, the first and the last.
    pub(crate) seeds: [u64; 2],
    /// Worlds.
    pub(crate) worlds: usize,
    /// Those that ran to their end on both sides.
    pub(crate) judged: usize,
}

/// How near a model could be: what each real run is by the others.
#[derive(Debug)]
pub(crate) struct Ceiling {
    /// The model's kernel.
    pub(crate) kernel: String,
    /// `limit` or `global`.
    pub(crate) scope: &'static str,
    /// Counters by how near the model is.
    pub(crate) model: [usize; 5],
    /// The same counters of each real run.
    pub(crate) itself: [usize; 5],
}

/// A row of a world with what stands behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged<'a> {
    /// The model's kernel.
    pub(crate) kernel: &'a str,
    pub(crate) row: &'a WorldRow,
    pub(crate) class: Class,
}

/// The rows of a kernel's worlds, by the name of its model.
type Worlds = Vec<(String, Vec<WorldRow>)>;

/// Keeps the worlds of these folders, or those that are kept, and writes what the program knows of them.
pub(crate) fn keep(folders: &[&str]) -> Result<(), Box<dyn Error>> {
    let all = if folders.is_empty() { read_kept()? } else { read(folders)? };
    if !folders.is_empty() {
        fs::remove_dir_all(KEPT)?; // Other kernels' would be shown beside these.
        for (_, rows) in &all {
            let folder = Path::new(KEPT).join(release(rows));
            fs::create_dir_all(&folder)?;
            write_worlds(&folder.join(lab::worlds::TABLE), rows)?;
        }
    }
    fs::write(KNOWN, known::write(&known_errors(&judged(&all))))?;
    Ok(())
}

/// The worlds of all folders, those of a kernel together.
fn read(folders: &[&str]) -> Result<Worlds, Box<dyn Error>> {
    let mut all: BTreeMap<(Vec<u32>, String), Vec<WorldRow>> = BTreeMap::new();
    for folder in folders {
        let rows = read_worlds(&Path::new(folder).join(lab::worlds::TABLE))?;
        let kernel = kernel_of(&rows).ok_or_else(|| format!("`{folder}` has no worlds"))?;
        if rows.iter().all(|row| row.real.is_empty()) {
            return Err(format!("nothing ran for real in the worlds of `{folder}`").into());
        }
        let before = all.entry((age(&kernel), kernel.clone())).or_default();
        let there: BTreeSet<u64> = before.iter().map(|row| row.seed).collect();
        if rows.iter().any(|row| there.contains(&row.seed)) {
            return Err(format!("worlds of {kernel} in `{folder}` are in another folder, too").into());
        }
        before.extend(rows);
        before.sort_by_key(|row| row.seed); // Stable: the rows of a world stay in their order.
    }
    Ok(all.into_iter().map(|((_, kernel), rows)| (kernel, rows)).collect())
}

fn read_kept() -> Result<Worlds, Box<dyn Error>> {
    let folders = fs::read_dir(KEPT)?.map(|entry| Ok(entry?.path().display().to_string()));
    let folders = folders.collect::<Result<Vec<_>, std::io::Error>>()?;
    read(&folders.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What of a real kernel's name tells one from another.
fn release(rows: &[WorldRow]) -> &str {
    let kernel = &rows[0].kernel;
    kernel.split_once(':').map_or(kernel, |(_, release)| release)
}

/// What is kept.
pub(crate) fn kept() -> Result<Ran, Box<dyn Error>> {
    let all = read_kept()?;
    Ok(Ran {
        folder: all.iter().map(|(kernel, rows)| ran(kernel, rows)).collect(),
        ceiling: ceilings(&judged(&all)),
        disagreement: disagreements(&judged(&all), &all),
    })
}

/// Older releases come first.
pub(crate) fn age(kernel: &str) -> Vec<u32> {
    kernel.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// The kernel of the model, as its command names it.
fn kernel_of(rows: &[WorldRow]) -> Option<String> {
    let command = rows.iter().find(|row| is_run(row, "model"))?.text.as_deref()?;
    let (_, rest) = command.split_once(" --kernel ")?;
    Some(rest.split_whitespace().next()?.to_owned())
}

pub(crate) fn is_run(row: &WorldRow, counter: &str) -> bool {
    row.kind == FactKind::Run.name() && row.counter == counter
}

fn judged(all: &[(String, Vec<WorldRow>)]) -> Vec<Judged<'_>> {
    let rows = all.iter().flat_map(|(kernel, rows)| rows.iter().map(move |row| (kernel, row)));
    let judged =
        rows.filter_map(|(kernel, row)| Some(Judged { kernel, row, class: Class::named(&row.class)? }));
    judged.filter(|judged| judged.class.is_judged()).collect()
}

fn ran(kernel: &str, rows: &[WorldRow]) -> Folder {
    let outcomes: Vec<&WorldRow> = rows.iter().filter(|row| is_run(row, "outcome")).collect();
    let seeds = || outcomes.iter().map(|row| row.seed);
    Folder {
        real: rows[0].kernel.clone(),
        kernel: kernel.to_owned(),
        seeds: [seeds().min().unwrap_or(0), seeds().max().unwrap_or(0)],
        worlds: outcomes.len(),
        judged: outcomes.iter().filter(|row| row.text.is_none()).count(),
    }
}

/// Of the fresh worlds of each kernel, under a limit and for the whole machine.
fn ceilings(judged: &[Judged<'_>]) -> Vec<Ceiling> {
    let mut found: Vec<Ceiling> = Vec::new();
    for scope in ["limit", "global"] {
        for Judged { kernel, row, class } in judged.iter().filter(|judged| judged.row.scope == scope) {
            let itself = judge_itself(&row.real);
            if itself.is_empty() || row.seed < FRESH || row.kind == FactKind::Run.name() {
                continue;
            }
            if found.last().is_none_or(|last| last.kernel != *kernel || last.scope != scope) {
                found.push(Ceiling { kernel: (*kernel).to_owned(), scope, model: [0; 5], itself: [0; 5] });
            }
            let counts = found.last_mut().expect("it was put there");
            let place =
                |class: &Class| Class::ALL.iter().position(|known| known == class).expect("it is one");
            counts.model[place(class)] += 1;
            itself.iter().for_each(|class| counts.itself[place(class)] += 1);
        }
    }
    found
}

/// Kernel, workload, scope, kind, counter.
type Key<'a> = (Vec<u32>, &'a str, &'a str, &'a str, &'a str, &'a str);

/// An error of a world: its seed, how near it is, and by what part it is off.
type Off = (u64, Class, f64);

/// A row for each counter of each workload, and of all workloads together; and what all counters come to.
fn known_errors(judged: &[Judged<'_>]) -> Vec<KnownError> {
    let mut groups: BTreeMap<Key<'_>, Vec<Off>> = BTreeMap::new();
    for Judged { kernel, row, class } in judged {
        let is_metric = row.kind == FactKind::Metric.name();
        // Paths of groups differ from workload to workload.
        let counter = row.counter.rsplit(':').next().unwrap_or(&row.counter);
        // How a run ended is no number.
        let error = row.error.map_or(if *class == Class::Spread { 0.0 } else { f64::INFINITY }, f64::abs);
        let own = (row.kind.as_str(), counter);
        for workload in [row.workload.as_str(), ALL] {
            // Other workloads have other metrics.
            let own = (workload != ALL || !is_metric).then_some(own);
            for (kind, counter) in own.into_iter().chain(pool(row).map(|pool| (POOL, pool))) {
                let key = (age(kernel), *kernel, workload, row.scope.as_str(), kind, counter);
                groups.entry(key).or_default().push((row.seed, *class, error));
            }
        }
    }
    groups.into_iter().map(|(key, errors)| known_error(key, &errors)).collect()
}

/// What it counts towards, beside itself: a time, or a result or counter of reclaim. Counters of groups say again what
/// those of the machine do.
fn pool(row: &WorldRow) -> Option<&'static str> {
    let is = |kind: FactKind| row.kind == kind.name();
    match () {
        () if is(FactKind::Metric) && is_time(&row.counter) => Some(TIMES),
        () if is(FactKind::Metric) => Some(COUNTS),
        () if is(FactKind::Vmstat) && is_of_reclaim(&row.counter) => Some(COUNTS),
        () => None,
    }
}

fn known_error((_, kernel, workload, scope, kind, counter): Key<'_>, errors: &[Off]) -> KnownError {
    let count = |wanted: &Class| errors.iter().filter(|(_, class, _)| class == wanted).count();
    let mut sorted: Vec<f64> = errors.iter().map(|(_, _, error)| *error).collect();
    sorted.sort_by(f64::total_cmp);
    let at_least = |part: f64| sorted[((sorted.len() as f64 * part).ceil() as usize).max(1) - 1];
    let mut near = [0; 5];
    near.iter_mut().zip(&Class::ALL).for_each(|(near, class)| *near = count(class));
    KnownError {
        kernel: kernel.to_owned(),
        workload: workload.to_owned(),
        scope: scope.to_owned(),
        kind: kind.to_owned(),
        counter: counter.to_owned(),
        worlds: errors.iter().map(|(seed, _, _)| seed).collect::<BTreeSet<_>>().len(),
        near,
        median: at_least(0.5),
        p90: at_least(0.9),
    }
}
