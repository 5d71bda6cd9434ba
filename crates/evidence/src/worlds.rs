//! Folders of worlds to what the repository keeps of them: `crates/lab/data/known-error.csv`, which is part of the
//! program, and `data/worlds.toml`, which says what ran and where the model is farthest off.
//!
//! All folders that count are given at once: the files hold these and no others. Left out: what a counter is about,
//! see `mechanism.rs`; how the files are shown, see `fidelity.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;

use lab::known::{self, ALL, COUNTS, KnownError, POOL, TIMES};
use lab::worlds::Class;
use recording::chunk::FactKind;
use recording::worlds::{WorldRow, read_worlds};

use crate::disagreement::{Disagreement, disagreements};
use crate::mechanism::{is_of_reclaim, is_time};

/// Where both files are.
const KNOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/data/known-error.csv");
const RAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/worlds.toml");
/// What [`RAN`] begins with.
const HEAD: &str =
    "# Made by `cargo run --release -p pagetide-evidence -- worlds DIR...`; not edited by hand.\n\n";

/// What `data/worlds.toml` says.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ran {
    /// Of each folder, what ran.
    pub(crate) folder: Vec<Folder>,
    /// Where the model is farthest off.
    pub(crate) disagreement: Vec<Disagreement>,
}

/// Worlds of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
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

/// A row of a world with what stands behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged<'a> {
    /// The model's kernel.
    pub(crate) kernel: &'a str,
    pub(crate) row: &'a WorldRow,
    pub(crate) class: Class,
}

/// Reads the folders and writes both files.
pub(crate) fn keep(folders: &[&str]) -> Result<(), Box<dyn Error>> {
    if folders.is_empty() {
        return Err("name the folders that `pagetide worlds --out` made".into());
    }
    let mut all: Vec<(String, Vec<WorldRow>)> = Vec::new();
    for folder in folders {
        let rows = read_worlds(&Path::new(folder).join(lab::worlds::TABLE))?;
        let kernel = kernel_of(&rows).ok_or_else(|| format!("`{folder}` has no worlds"))?;
        if rows.iter().all(|row| row.real.is_empty()) {
            return Err(format!("nothing ran for real in the worlds of `{folder}`").into());
        }
        let seeds = |rows: &[WorldRow]| rows.iter().map(|row| row.seed).collect::<BTreeSet<_>>();
        let twice = all.iter().filter(|(other, _)| *other == kernel);
        if twice.flat_map(|(_, rows)| seeds(rows)).any(|seed| seeds(&rows).contains(&seed)) {
            return Err(format!("worlds of {kernel} in `{folder}` are in another folder, too").into());
        }
        all.push((kernel, rows));
    }
    all.sort_by_key(|(kernel, rows)| (age(kernel), rows[0].seed));
    let judged = judged(&all);
    let ran = Ran {
        folder: all.iter().map(|(kernel, rows)| ran(kernel, rows)).collect(),
        disagreement: disagreements(&judged, &all),
    };
    let known = known_errors(&judged);
    fs::write(KNOWN, known::write(&known))?;
    fs::write(RAN, HEAD.to_owned() + &toml::to_string(&ran)?)?;
    Ok(())
}

/// What the repository keeps.
pub(crate) fn kept() -> Ran {
    toml::from_str(include_str!("../data/worlds.toml")).expect("the embedded file is well-formed")
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
