//! Metrics of a workload file: seconds of a phase, pages of a file in memory, counters of the kernel, and what a
//! labelled step took.
//!
//! Counters are read where a phase ends, and only those that a metric asks for: reading `memory.stat` flushes the
//! kernel's batched statistics. A counter that a kernel does not have leaves its metric out. Next: [`super::play`].

use std::collections::{BTreeMap, BTreeSet};

use units::Nanos;

use crate::language::table::{Entry, Mistake, Table};
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{Errno, OpenMode, System};
use crate::written::definition::{
    Again, Counted, Definition, FileState, Found, LAST, Measured, MetricDefinition, Span, Step, each_step,
};
use crate::written::expression::Unit;
use crate::written::layout::{LaidFile, LaidSet};
use crate::written::plan::Plan;
use crate::written::scope::{Scope, check_word};
use crate::written::tally::Tally;
use language::metric::Better;

const KINDS: [&str; 12] = [
    "seconds",
    "resident",
    "vmstat",
    "stat",
    "events",
    "latency",
    "rate",
    "operations",
    "took",
    "rates",
    "found",
    "value",
];
const KEYS: [&str; 26] = [
    "events",
    "took",
    "each",
    "sum",
    "rates",
    "found",
    "value",
    "parts",
    "per",
    "head",
    "seconds",
    "resident",
    "vmstat",
    "stat",
    "latency",
    "rate",
    "operations",
    "group",
    "at",
    "over",
    "after",
    "percentile",
    "unit",
    "better",
    "of",
    "help",
];
const BETTER: [&str; 3] = ["more", "less", "neither"];

/// Reads the table `metrics`.
pub(super) fn read(
    top: &Table<'_>,
    scope: &Scope<'_>,
    read: &Definition,
) -> Result<Vec<MetricDefinition>, Mistake> {
    let mut labels = BTreeSet::new();
    for steps in read.all_steps() {
        each_step(steps, &mut |step| match step {
            Step::Work(work) => labels.extend(work.label.as_deref()),
            Step::Create { label, .. } => labels.extend(label.as_deref()),
            Step::Count { label, .. }
            | Step::Reclaim { label, .. }
            | Step::Again { again: Again::Timed(label), .. } => {
                labels.insert(label);
            }
            _ => {}
        });
    }
    let Some(entry) = top.get("metrics") else { return Ok(seconds_of_phases(scope)) };
    let table = Table::of(top.source, "`metrics`".to_owned(), entry)?;
    let mut metrics: Vec<MetricDefinition> = Vec::new();
    for entry in table.all() {
        check_word(top.source, &entry.name, entry.key_at)?;
        let own = Table::of(top.source, format!("metric `{}`", entry.name), entry)?;
        metrics.push(metric(&own, entry, scope, &labels)?);
        own.finish(&KEYS)?;
    }
    for metric in &metrics {
        if let Some(of) = &metric.of
            && !metrics.iter().any(|other| other.name == *of)
        {
            return Err(top.source.unknown(
                entry.value_at,
                "metric",
                of,
                metrics.iter().map(|other| &*other.name),
            ));
        }
    }
    Ok(metrics)
}

/// What a file that declares none has.
fn seconds_of_phases(scope: &Scope<'_>) -> Vec<MetricDefinition> {
    let metric = |phase: &String| MetricDefinition {
        name: format!("{phase}_seconds"),
        what: Measured::Seconds(phase.clone()),
        unit: "s".to_owned(),
        better: Better::Less,
        of: None,
        help: format!("until {phase}"),
        per: None,
        heads: true,
    };
    scope.phases.iter().map(metric).collect()
}

fn metric(
    own: &Table<'_>,
    entry: &Entry<'_>,
    scope: &Scope<'_>,
    labels: &BTreeSet<&str>,
) -> Result<MetricDefinition, Mistake> {
    let given: Vec<&Entry<'_>> = KINDS.iter().filter_map(|kind| own.get(kind)).collect();
    let [kind] = given[..] else {
        let kinds = KINDS.map(|kind| format!("`{kind}`")).join(", ");
        let message = format!("{} needs one of {kinds}", own.called);
        return Err(own.source.fail_hint(
            entry.value_at,
            message,
            "such as `resident = \"hot\"` or `vmstat = \"pgscan_direct\"`",
        ));
    };
    let (what, unit, better) = measured(own, kind, scope, labels)?;
    Ok(MetricDefinition {
        name: entry.name.clone(),
        what,
        unit: own.text("unit")?.unwrap_or_else(|| unit.to_owned()),
        better: direction(own)?.unwrap_or(better),
        of: own.text("of")?,
        help: own.text("help")?.unwrap_or_default(),
        per: scope.optional(own, "per", Unit::Bytes)?,
        heads: own.get("head").is_none() || own.flag("head")?,
    })
}

/// What it is, its unit, and which way is the good one.
fn measured(
    own: &Table<'_>,
    kind: &Entry<'_>,
    scope: &Scope<'_>,
    labels: &BTreeSet<&str>,
) -> Result<(Measured, &'static str, Better), Mistake> {
    let (name, at) = (own.scalar_of(kind)?, kind.value_at);
    let label = || match labels.contains(&*name) {
        true => Ok(name.clone()),
        false => {
            let mistake = own.source.unknown(at, "label", &name, labels.iter().copied());
            let hint = format!("give the step that it is about `label = \"{name}\"`");
            Err(if labels.is_empty() { Mistake { hint: Some(hint), ..mistake } } else { mistake })
        }
    };
    Ok(match &*kind.name {
        "seconds" => {
            scope.phase(&name, at)?;
            (Measured::Seconds(name), "s", Better::Less)
        }
        "resident" => {
            scope.file(&name, at)?;
            let at = phase_of(own, "at", scope)?.unwrap_or(LAST);
            (Measured::Resident { files: name, at }, "pages", Better::More)
        }
        "vmstat" | "stat" | "events" => {
            let groups = || scope.groups_of(own, own.needed("group", "\"A\"")?);
            let of = match &*kind.name {
                "vmstat" => Counted::Machine,
                "stat" => Counted::Groups(groups()?, "memory.stat"),
                _ => Counted::Groups(groups()?, "memory.events"),
            };
            check_word(own.source, &name, at)?;
            (Measured::Counter { of, name, span: span(own, scope)? }, "", Better::Less)
        }
        "took" => (Measured::Took { label: label()?, each: own.flag("each")? }, "s", Better::Less),
        "found" => {
            let how = match (own.flag("each")?, own.flag("sum")?) {
                (true, _) => Found::Each,
                (false, true) => Found::Sum,
                _ => Found::First,
            };
            (Measured::Found { label: label()?, how }, "pages", Better::More)
        }
        "value" => (Measured::Value(scope.amount(own, kind, Unit::Bytes)?), "", Better::Neither),
        "rates" => {
            let entry = own.needed("parts", "64")?;
            let parts = own.scalar_of(entry)?.parse().ok().filter(|parts| (1..=10_000).contains(parts));
            let parts = parts.ok_or_else(|| own.source.fail(entry.value_at, "`parts` is from 1 to 10000"))?;
            (Measured::Rates { label: label()?, parts }, "MiB/s", Better::More)
        }
        "latency" => {
            let percentile = percentile(own)?;
            (Measured::Latency { label: label()?, percentile }, "us", Better::Less)
        }
        "rate" => (Measured::Rate(label()?), "MiB/s", Better::More),
        _ => (Measured::Operations(label()?), "", Better::More),
    })
}

/// Which way is the good one, where a file says it.
fn direction(own: &Table<'_>) -> Result<Option<Better>, Mistake> {
    let Some(entry) = own.get("better") else { return Ok(None) };
    match &*own.text_of(entry)? {
        "more" => Ok(Some(Better::More)),
        "less" => Ok(Some(Better::Less)),
        "neither" => Ok(Some(Better::Neither)),
        other => Err(own.source.unknown(entry.value_at, "direction", other, BETTER)),
    }
}

fn percentile(own: &Table<'_>) -> Result<f64, Mistake> {
    let entry = own.needed("percentile", "99")?;
    let text = own.scalar_of(entry)?;
    text.parse()
        .ok()
        .filter(|percentile| (0.0..=100.0).contains(percentile))
        .ok_or_else(|| own.source.fail(entry.value_at, format!("`{text}` is no percentile from 0 to 100")))
}

/// The number of the phase that `key` names, from 1.
fn phase_of(own: &Table<'_>, key: &str, scope: &Scope<'_>) -> Result<Option<usize>, Mistake> {
    let Some(entry) = own.get(key) else { return Ok(None) };
    let name = own.text_of(entry)?;
    scope.phase(&name, entry.value_at)?;
    Ok(scope.phases.iter().position(|phase| *phase == name).map(|number| number + 1))
}

fn span(own: &Table<'_>, scope: &Scope<'_>) -> Result<Span, Mistake> {
    let [over, after, at] =
        [phase_of(own, "over", scope)?, phase_of(own, "after", scope)?, phase_of(own, "at", scope)?];
    match (over, after, at) {
        (Some(over), None, None) => Ok(Span::Over(over)),
        (None, None, Some(at)) => Ok(Span::At(at)),
        (None, None, None) => Ok(Span::Between(0, LAST)),
        (None, Some(after), at) if at.is_none_or(|at| after < at) => {
            Ok(Span::Between(after, at.unwrap_or(LAST)))
        }
        _ => {
            let message = format!("{} has no span of time", own.called);
            let hint = "`over` is a phase, `at` the end of one, `after` and `at` lie between the ends of two";
            Err(own.source.fail_hint(own.at, message, hint))
        }
    }
}

/// Where counters are read: a file of a group, or `/proc/vmstat`.
pub(super) type Place = (Option<usize>, &'static str);

/// What was read at the end of each phase.
pub(super) struct Readings {
    times: Vec<Nanos>,
    counters: Vec<BTreeMap<(Place, String), u64>>,
    resident: BTreeMap<String, u64>,
}

impl Readings {
    pub(super) fn new() -> Self {
        Self { times: Vec::new(), counters: Vec::new(), resident: BTreeMap::new() }
    }

    /// Reads what metrics ask for at the end of the next phase; the first time is when tasks begin.
    pub(super) async fn take<S: System>(&mut self, sys: &S, plan: &Plan) -> Result<(), WorkloadError> {
        let number = self.times.len();
        self.times.push(sys.now());
        let mut wanted: BTreeMap<Place, BTreeSet<&str>> = BTreeMap::new();
        for metric in &plan.definition.metrics {
            match &metric.what {
                Measured::Counter { of, name, span } if plan.needs(*span, number) => {
                    for place in plan.places(of) {
                        wanted.entry(place).or_default().insert(name);
                    }
                }
                Measured::Resident { files, at } if plan.position(*at) == Some(number) => {
                    let pages = resident(sys, plan.set(files)?).await?;
                    self.resident.insert(metric.name.clone(), pages);
                }
                _ => {}
            }
        }
        let mut read = BTreeMap::new();
        for ((group, file), names) in wanted {
            let group_path = group.map(|group| &*plan.definition.groups[group].path);
            for (name, value) in counters(sys, group_path, file).await? {
                if names.contains(&*name) {
                    read.insert(((group, file), name), value);
                }
            }
        }
        self.counters.push(read);
        Ok(())
    }

    /// All metrics, once everything has ended.
    pub(super) fn outcome(&self, plan: &Plan, tally: &Tally) -> Outcome {
        let mut outcome = Outcome::default();
        for metric in &plan.definition.metrics {
            let samples = match &metric.what {
                Measured::Took { label, each: true } => tally.passes(label),
                Measured::Rates { label, .. } => tally.rates(label),
                Measured::Found { label, how: Found::Each } => match tally.found(label) {
                    [] => continue,
                    found => found.iter().map(|&pages| pages as f64).collect(),
                },
                what => {
                    let per = metric.per.as_ref().map_or(1, |per| plan.bound.amount(per)) as f64;
                    if let Some(value) = self.value(&metric.name, what, plan, tally) {
                        outcome.metric(&metric.name, value / per);
                    }
                    continue;
                }
            };
            outcome.samples.insert(metric.name.clone(), samples);
        }
        outcome
    }

    fn value(&self, name: &str, what: &Measured, plan: &Plan, tally: &Tally) -> Option<f64> {
        match what {
            Measured::Seconds(phase) => {
                let number = plan.position(plan.phase(phase) + 1)?;
                Some(self.times.get(number)?.saturating_sub(*self.times.get(number - 1)?).as_secs_f64())
            }
            Measured::Resident { .. } => self.resident.get(name).map(|&pages| pages as f64),
            Measured::Counter { of, name, span } => {
                let places = plan.places(of);
                let at = |number: usize| {
                    let read = self.counters.get(number)?;
                    let all = places.iter().map(|&place| read.get(&(place, name.clone())));
                    let sum = all.sum::<Option<u64>>().filter(|_| !places.is_empty())?;
                    Some(sum as f64)
                };
                match plan.span(*span)? {
                    (None, to) => at(to),
                    (Some(from), to) => Some(at(to)? - at(from)?),
                }
            }
            Measured::Latency { label, percentile } => tally.percentile_us(label, *percentile),
            Measured::Rate(label) => tally.mib_per_second(label),
            Measured::Operations(label) => Some(tally.operations(label) as f64),
            Measured::Took { label, .. } => Some(tally.took(label)),
            Measured::Rates { .. } => None,
            Measured::Found { label, how } => {
                let found = tally.found(label);
                let sum = found.iter().sum::<u64>();
                found.first().map(|&first| if *how == Found::Sum { sum } else { first } as f64)
            }
            Measured::Value(amount) => Some(plan.bound.amount(amount) as f64),
        }
    }
}

/// `/proc/vmstat`, or a file of a group.
async fn counters<S: System>(
    sys: &S,
    group: Option<&str>,
    file: &str,
) -> Result<Vec<(String, u64)>, WorkloadError> {
    let Some(group) = group else { return Ok(sys.vmstat().await?) };
    let text = sys.cgroup_read(group, file).await?;
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(pair).collect())
}

/// Pages of these files that are in memory; a file that is gone has none.
pub(super) async fn resident<S: System>(sys: &S, set: &LaidSet) -> Result<u64, WorkloadError> {
    let mut pages = 0;
    for LaidFile { path, size, .. } in &set.files {
        let stays = set.state == FileState::LaidOut;
        if stays && *size == 0 {
            continue;
        }
        let file = match sys.open(path, OpenMode::Read).await {
            Ok(file) => file,
            Err(error) if error.errno == Errno::NoEnt => continue,
            Err(error) => return Err(error.into()),
        };
        let size = if stays { *size } else { sys.file_size(path).await? };
        if size > 0 {
            pages += sys.resident_pages(&file, 0, size).await?;
        }
    }
    Ok(pages)
}
