//! The tuned rows: counters of measured kernels that the model was fitted to, and what it makes of them now.
//!
//! `data/*reference.toml` hold the counters. Each scenario is run on the simulator with the [`SEEDS`], as the kernel's
//! own timing is chance; a row says what was measured, what was simulated, and whether that is a hit by the tolerance
//! of the counter. Left out: how near the model is where nobody fitted it, which worlds tell (`worlds.rs`). Next:
//! `hits.rs`, which counts.

mod mapped;
mod programs;
mod swap;

use std::collections::BTreeMap;
use std::error::Error;

use serde::Deserialize;

use crate::growth::growth;
use lab::LabError;
use lab::PlannedRun;
use lab::batch::{Control, run_all};
use lab::{Request, Subject, command};
use recording::Recording;

const REFERENCE: &str = include_str!("../data/reference.toml");
/// They draw the phase of the kernel's periodic workers.
const SEEDS: [u64; 3] = [1, 2, 3];
/// The phases that counters were measured over, one a workload; the whole run where there is none of them.
const PHASES: [&str; 3] = ["stream_done", "read_done", "created"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    /// What stands for the measured guests.
    machine: String,
    scenario: Vec<Measured>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    name: String,
    #[serde(default = "first_workload")]
    workload: String,
    kernel: String,
    /// Where it is not the reference's: a machine with a change behind its name.
    #[serde(default)]
    machine: Option<String>,
    mem: String,
    /// What it swaps to; none where nothing is said.
    #[serde(default)]
    swap: Option<String>,
    /// Time between two samples of its counters, where that is part of what was measured.
    #[serde(default)]
    interval: Option<String>,
    params: BTreeMap<String, String>,
    #[serde(default)]
    sysctls: BTreeMap<String, String>,
    /// By others; the counters of their choice are the rows. Empty where only a guest of our own ran.
    #[serde(default)]
    measured: BTreeMap<String, Vec<f64>>,
    /// The same in a guest that `--on vm:VERSION` made.
    #[serde(default)]
    guest: BTreeMap<String, Vec<f64>>,
}

fn first_workload() -> String {
    "hot-and-stream".to_owned()
}

impl Measured {
    /// What the simulator is held against.
    fn real(&self) -> &BTreeMap<String, Vec<f64>> {
        if self.measured.is_empty() { &self.guest } else { &self.measured }
    }
}

/// How near is near enough.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Tolerance {
    /// A part of the measured value.
    Relative(f64),
    /// Within the measured repeats, and a part of the outermost beyond them.
    Repeats(f64),
    /// Within the measured repeats, and this factor beyond them.
    Factor(f64),
    /// A number of pages.
    Pages(f64),
    /// A part of the hot set.
    OfHotSet(f64),
    /// A number of percentage points.
    Points(f64),
    /// Shown, not judged: it depends on how the scheduler shares work out.
    Shown,
}

/// One counter of one scenario.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The scenario's name.
    pub(crate) scenario: String,
    /// Its workload.
    pub(crate) workload: String,
    /// The kernel.
    pub(crate) kernel: String,
    /// The counter.
    pub(crate) counter: String,
    /// Every measured repeat; empty where only a guest of our own was run.
    pub(crate) measured: Vec<f64>,
    /// The same scenario in a guest of our own; empty where it was not run.
    pub(crate) guest: Vec<f64>,
    /// Every simulated seed.
    pub(crate) simulated: Vec<f64>,
    /// `hit`, `miss` or `shown`.
    pub(crate) verdict: &'static str,
    /// The command that shows it.
    pub(crate) command: String,
}

impl Row {
    /// Simulated to measured (without that, to our own guest), medians; none when that is zero.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let real = if self.measured.is_empty() { &self.guest } else { &self.measured };
        let (simulated, real) = (median(&self.simulated), median(real));
        (real != 0.0).then(|| simulated / real)
    }
}

/// Runs these scenarios, or all without a name, `jobs` runs at a time (0: one for each CPU); rows of captured programs
/// are as they were recorded.
///
/// # Errors
/// A name that no scenario has; the first run that fails.
pub(crate) fn rows(wanted: &[&str], jobs: usize) -> Result<Vec<Row>, Box<dyn Error>> {
    let known = names();
    if let Some(name) = wanted.iter().find(|name| !known.iter().any(|known| known == *name)) {
        return Err(format!("no scenario is called `{name}`; without a name all of them run").into());
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(&name);
    let mut rows = rows_of(|measured| is_wanted(&measured.name), &SEEDS, jobs, &Control::default())?;
    rows.extend(programs::rows().into_iter().filter(|row| is_wanted(&row.scenario)));
    Ok(rows)
}

/// All scenarios, in the order of their rows.
pub(crate) fn names() -> Vec<String> {
    let simulated = reference().scenario.into_iter().map(|measured| measured.name);
    let mut names: Vec<String> =
        simulated.chain(programs::rows().into_iter().map(|row| row.scenario)).collect();
    names.dedup();
    names
}

/// Rows of the scenarios of one workload.
pub(crate) fn rows_of_workload(
    name: &str,
    seeds: &[u64],
    jobs: usize,
    control: &Control,
) -> Result<Vec<Row>, LabError> {
    rows_of(|measured| measured.workload == name, seeds, jobs, control)
}

fn rows_of(
    wanted: impl Fn(&Measured) -> bool,
    seeds: &[u64],
    jobs: usize,
    control: &Control,
) -> Result<Vec<Row>, LabError> {
    let mut reference = reference();
    reference.scenario.retain(wanted);
    let mut plan = Vec::new();
    for measured in &reference.scenario {
        for &seed in seeds {
            let scenario = request(measured, &reference.machine, seed).resolve()?;
            plan.push(PlannedRun { label: measured.name.clone(), scenario });
        }
    }
    let recordings = run_all(&plan, jobs, control, |_, _| Ok(()))?.into_result()?;
    let mut rows = Vec::new();
    for (index, measured) in reference.scenario.iter().enumerate() {
        let first = index * seeds.len();
        let command = command(&plan[first].scenario);
        let runs = &recordings[first..first + seeds.len()];
        for (counter, values) in measured.real() {
            let simulated: Vec<f64> = runs.iter().filter_map(|run| value(run, counter)).collect();
            let hot_pages = runs[0].metrics.get("hot_pages_total").copied().unwrap_or(0.0);
            let verdict = verdict(tolerance(measured, counter), values, &simulated, hot_pages);
            rows.push(Row {
                scenario: measured.name.clone(),
                workload: measured.workload.clone(),
                kernel: measured.kernel.clone(),
                counter: counter.clone(),
                measured: measured.measured.get(counter).cloned().unwrap_or_default(),
                guest: measured.guest.get(counter).cloned().unwrap_or_default(),
                simulated,
                verdict,
                command: command.clone(),
            });
        }
    }
    Ok(rows)
}

/// All that is embedded.
fn reference() -> Reference {
    let read = |text| toml::from_str::<Reference>(text).expect("the embedded reference is well-formed");
    let mut all = read(REFERENCE);
    all.scenario.extend(read(swap::REFERENCE).scenario);
    all.scenario.extend(read(mapped::REFERENCE).scenario);
    all
}

fn request(measured: &Measured, machine: &str, seed: u64) -> Request {
    let mut request = Request::new(Subject::Workload(measured.workload.clone()));
    request.kernel = Some(measured.kernel.clone());
    request.machine = Some(measured.machine.as_deref().unwrap_or(machine).to_owned());
    request.mem = Some(measured.mem.clone());
    request.swap.clone_from(&measured.swap);
    request.interval.clone_from(&measured.interval);
    let pairs = |map: &BTreeMap<String, String>| {
        map.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    request.params = pairs(&measured.params);
    request.sysctls = pairs(&measured.sysctls);
    request.seed = Some(seed);
    request
}

/// Limit reclaim makes real counters repeat exactly; global reclaim depends on who runs when. On 7.2 it is in steps of
/// whole folios, and repeats of one row differ by up to two of them, as stocks of seven cgroups on each CPU do: a
/// figure has to be among the repeats.
fn tolerance(measured: &Measured, counter: &str) -> Tolerance {
    if measured.workload == "anon-and-file" {
        return swap::tolerance(measured, counter);
    }
    if measured.workload == "mapped-and-stream" {
        return mapped::tolerance(counter);
    }
    if measured.workload == workload::sequential_readers::NAME {
        return match counter {
            "allocstall" | "direct_share_percent" | "kswapd_share_percent" => Tolerance::Relative(0.25),
            "pgscan" | "pgsteal" => Tolerance::Relative(0.1),
            _ => Tolerance::Shown,
        };
    }
    if measured.workload == workload::small_files::NAME {
        return match counter {
            "slab_growth_share" => Tolerance::Points(0.1),
            "inode_steals" | "pgscan" | "pgsteal" | "slabs_scanned" => Tolerance::Relative(0.25),
            "oom_kill" => Tolerance::Pages(0.0),
            _ => Tolerance::Shown,
        };
    }
    if measured.workload == workload::inode_storm::NAME {
        return match counter {
            "pinned_mib_at_oom" => Tolerance::Relative(0.05),
            _ if counter.starts_with(SLAB_AFTER) => Tolerance::Relative(0.15),
            _ => Tolerance::Shown,
        };
    }
    let under_limit = measured.params.contains_key("limit");
    let counts_reclaim =
        matches!(counter, "memcg_pgscan" | "memcg_pgsteal" | "pgscan_direct" | "pgsteal_direct");
    if under_limit && counts_reclaim && measured.kernel.starts_with("linux-7.2") {
        return Tolerance::Repeats(0.0);
    }
    match (under_limit, counter) {
        (true, "memcg_pgscan" | "memcg_pgsteal" | "pgscan_file" | "pgsteal_file") => {
            Tolerance::Relative(0.001)
        }
        (true, "hot_pages_cached") => Tolerance::Pages(32.0),
        (false, "hot_pages_cached") => Tolerance::OfHotSet(0.05),
        (false, "pgscan_direct_per_stall") => Tolerance::Relative(0.05),
        (false, "pgscan" | "extfrag_events" | "extfrag_events_all") => Tolerance::Relative(0.15),
        (false, "percentage_huge") => Tolerance::Points(5.0),
        _ => Tolerance::Shown,
    }
}

fn verdict(tolerance: Tolerance, measured: &[f64], simulated: &[f64], hot_pages: f64) -> &'static str {
    let allowed = |value: f64| match tolerance {
        Tolerance::Relative(part) => value.abs() * part,
        Tolerance::Pages(allowed) | Tolerance::Points(allowed) => allowed,
        Tolerance::OfHotSet(part) => hot_pages * part,
        Tolerance::Repeats(_) | Tolerance::Factor(_) | Tolerance::Shown => f64::INFINITY,
    };
    // One run of a real kernel is one draw from what its timing allows, as one seed is here.
    let value = median(simulated);
    let real = median(measured);
    match tolerance {
        Tolerance::Shown => "shown",
        Tolerance::Repeats(part) if swap::is_within(measured, value, 1.0 - part, 1.0 + part) => "hit",
        Tolerance::Factor(factor) if swap::is_within(measured, value, 1.0 / factor, factor) => "hit",
        Tolerance::Repeats(_) | Tolerance::Factor(_) => "miss",
        _ if (value - real).abs() <= allowed(real) => "hit",
        _ => "miss",
    }
}

/// The counter over the phase that is compared; none of a step that the run did not get to the end of.
fn value(run: &Recording, counter: &str) -> Option<f64> {
    for (prefix, of_step) in OF_STEPS {
        if let Some(pinned) = counter.strip_prefix(prefix) {
            return of_step(run, step(run, pinned)?);
        }
    }
    if let Some((phase, counter)) = counter.split_once(':') {
        return swap::value_of(run, phase, counter);
    }
    Some(value_of_phase(run, counter))
}

/// What begins the name of a counter of one step of `inode-storm`, with the pinned memory behind it, and its
/// value.
type OfStep = (&'static str, fn(&Recording, usize) -> Option<f64>);
const OF_STEPS: [OfStep; 3] = [
    ("free_mib_after_", |run, step| Some(mib(*run.samples.get("free_pages")?.get(step)?))),
    (SLAB_AFTER, |run, step| {
        let first = |name| run.series.column(name)?.first().map(|&pages| pages as f64);
        let booted = first("nr_slab_reclaimable")? + first("nr_slab_unreclaimable")?;
        Some(mib(run.samples.get("slab_pages")?.get(step)? - booted))
    }),
    ("allocstalls_in_", |run, step| run.samples.get("alloc_stalls")?.get(step).copied()),
];
const SLAB_AFTER: &str = "slab_growth_mib_after_";

/// Which step had so much pinned.
fn step(run: &Recording, pinned: &str) -> Option<usize> {
    let pinned = units::parse_size(pinned).ok()?;
    let gib = pinned.get() as f64 / f64::from(1 << 30);
    run.samples.get("pinned_gib")?.iter().position(|&step| (step - gib).abs() < 1e-6)
}

/// What could not be reclaimed at the first kill, by the kernel's report: of a run that a panic ended after it.
fn unevictable_mib(run: &Recording) -> Option<f64> {
    let words = run.oom_kills.first()?.memory.iter().flat_map(|line| line.split_whitespace());
    words.filter_map(|word| word.strip_prefix("unevictable:")?.parse().ok()).next().map(mib)
}

fn mib(pages: f64) -> f64 {
    pages * units::PAGE_SIZE as f64 / f64::from(1 << 20)
}

fn value_of_phase(run: &Recording, counter: &str) -> f64 {
    let phase = run.phases.iter().find(|phase| PHASES.contains(&phase.name.as_str()));
    let vmstat = phase.map_or(&run.vmstat, |phase| &phase.vmstat);
    let event = |name: &str| vmstat.get(name).map_or(0.0, |&count| count as f64);
    let stalls = || {
        let all = vmstat.iter();
        all.filter(|(name, _)| name.starts_with("allocstall_")).map(|(_, &count)| count as f64).sum::<f64>()
    };
    let skipped = || ["pgskip_dma", "pgskip_dma32", "pgskip_normal"].map(event).iter().sum::<f64>();
    let scanned = || event("pgscan_kswapd") + event("pgscan_direct") - skipped();
    // Direct reclaim takes pages of any zone here: it skips none.
    let direct_share = || if scanned() > 0.0 { 100.0 * event("pgscan_direct") / scanned() } else { 0.0 };
    match counter {
        "pgscan" => scanned(),
        "pgskip" => skipped(),
        "pgsteal" => event("pgsteal_kswapd") + event("pgsteal_direct"),
        "direct_share_percent" => direct_share(),
        "slab_growth_share" => growth(run).map_or(0.0, |growth| growth.share),
        "slab_growth_ratio" => growth(run).map_or(0.0, |growth| growth.ratio),
        "pinned_mib_at_oom" => {
            let told = run.metrics.get("pinned_gib_at_oom").map(|gib| 1024.0 * gib);
            told.or_else(|| unevictable_mib(run)).unwrap_or(0.0)
        }
        "inode_steals" => event("kswapd_inodesteal") + event("pginodesteal"),
        "kswapd_share_percent" => 100.0 - direct_share(),
        "allocstall" => stalls(),
        "pgscan_direct_per_stall" => {
            let stalls = stalls();
            if stalls > 0.0 { event("pgscan_direct") / stalls } else { 0.0 }
        }
        _ => run.metrics.get(counter).copied().unwrap_or_else(|| event(counter)),
    }
}

fn median(values: &[f64]) -> f64 {
    stats::describe::median(values).unwrap_or(0.0)
}

/// A table for each scenario, with the command that shows it.
pub(crate) fn to_markdown(rows: &[Row]) -> String {
    let mut text = String::new();
    for scenario in rows.chunk_by(|a, b| a.scenario == b.scenario) {
        let first = &scenario[0];
        text += &format!("## {}\n\n`{}`\n\n", first.scenario, first.command);
        text += "| counter | measured | own guest | simulated | ratio | verdict |\n";
        text += "|---|---:|---:|---:|---:|---|\n";
        for row in scenario {
            let ratio = row.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.4}"));
            text += &format!(
                "| `{}` | {} | {} | {} | {ratio} | {} |\n",
                row.counter,
                spread(&row.measured),
                spread(&row.guest),
                spread(&row.simulated),
                row.verdict
            );
        }
        text.push('\n');
    }
    text
}

/// One value, or the smallest and largest of several.
fn spread(values: &[f64]) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low == high { figure(low) } else { format!("{} .. {}", figure(low), figure(high)) }
}

/// A count as it is, anything else with two decimals.
pub(crate) fn figure(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_reference_names_things_that_exist() {
        let reference = reference();
        for measured in &reference.scenario {
            let scenario = request(measured, &reference.machine, 1).resolve().unwrap();
            let machine = scenario.machine.as_deref().and_then(|name| name.split('+').next());
            assert_eq!(machine, Some(sim::machines::GUEST));
        }
        assert!(reference.scenario.len() >= 16);
    }

    #[test]
    fn a_counter_of_a_step_is_none_where_a_run_did_not_get_so_far() {
        let mut run = Recording::new("", "inode-storm", "sim", "", 1);
        let slab = ["nr_slab_reclaimable", "nr_slab_unreclaimable"].map(str::to_owned).to_vec();
        run.series = recording::Series::new(slab, vec![(0, vec![100, 156]), (1, vec![5000, 6000])]);
        let gib = |mib: f64| mib / 1024.0;
        for (name, values) in [
            ("pinned_gib", vec![gib(350.0), gib(360.0)]),
            ("free_pages", vec![2048.0, 1536.0]),
            ("slab_pages", vec![11_264.0, 9_472.0]),
            ("alloc_stalls", vec![7.0, 23.0]),
        ] {
            run.samples.insert(name.to_owned(), values);
        }
        run.metrics.insert("pinned_gib_at_oom".to_owned(), gib(370.0));
        assert_eq!(value(&run, "free_mib_after_350M"), Some(8.0));
        assert_eq!(value(&run, "slab_growth_mib_after_360M"), Some(36.0));
        assert_eq!(value(&run, "allocstalls_in_360M"), Some(23.0));
        assert_eq!(value(&run, "free_mib_after_370M"), None);
        assert_eq!(value(&run, "pinned_mib_at_oom"), Some(370.0));
    }

    #[test]
    fn a_hit_is_a_median_near_the_measured_median() {
        let near = Tolerance::Relative(0.001);
        assert_eq!(verdict(near, &[203_784.0], &[203_742.0], 0.0), "hit");
        assert_eq!(verdict(near, &[203_784.0], &[203_742.0, 203_000.0, 203_000.0], 0.0), "miss");
        assert_eq!(verdict(Tolerance::OfHotSet(0.05), &[51_327.0], &[20_000.0], 76_800.0), "miss");
        let repeats = |value| verdict(Tolerance::Repeats(0.0), &[203_872.0, 203_808.0], &[value], 0.0);
        assert_eq!([203_807.0, 203_808.0, 203_840.0, 203_873.0].map(repeats), ["miss", "hit", "hit", "miss"]);
    }
}
