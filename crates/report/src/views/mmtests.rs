//! The tables of mmtests from recordings: samples of all runs of a group are pooled, as mmtests
//! pools its iterations. The layout and the statistics are `stats::mmtests_table`'s.

mod place;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use recording::Recording;
use stats::describe::mean;
use stats::mmtests::{Better, RowSet, Rules};
use stats::mmtests_table::{Run, comparison, duration_table, ops_table};
use stats::ops::{MISTAKEN, OpsRow, OpsRules, ops_mean, ops_rows};

pub use place::Place;

use crate::judge::{Direction, Group, ReportError, View, common_workload_of_groups, direction};

/// mmtests' comparison table of the groups' samples, the first group being the baseline.
///
/// `better` tells the direction of each kind of sample; [`crate::direction`] can serve where it
/// is not neutral.
///
/// # Errors
/// No recordings, different workloads, or no samples at all.
pub fn mmtests_text(
    groups: &[Group<'_>],
    rules: Rules,
    set: RowSet,
    better: &dyn Fn(&str) -> Better,
) -> Result<String, ReportError> {
    let workload = common_workload_of_groups(groups)?;
    let (runs, known) = named(&pooled_samples(groups)?, rules, better);
    let better = |name: &str| known.get(name).copied().unwrap_or_else(|| better(name));
    Ok(format!("{workload}\n{}", comparison(&runs, rules, set, &better)))
}

/// All that mmtests of that generation prints of a comparison: `set`'s rows for each kind of sample, the durations
/// where they were measured, and the Ops rows.
///
/// # Errors
/// No recordings, different workloads, or no samples at all.
pub fn mmtests_tables(
    groups: &[Group<'_>],
    rules: Rules,
    set: RowSet,
    better: &dyn Fn(&str) -> Better,
) -> Result<String, ReportError> {
    let mut text = mmtests_text(groups, rules, set, better)?;
    let durations: Vec<_> = groups.iter().map(durations).collect();
    if durations.iter().any(|(_, seconds)| seconds.iter().any(Option::is_some)) {
        text += &format!("\n{}", duration_table(&durations, rules));
    }
    Ok(text + &format!("\n{}", ops_text(groups, OpsRules::AsShipped(rules))?))
}

/// The rows that a generation printed: all of them in 2019 for fsmark, the source's table; few at HEAD.
pub fn usual_rows(rules: Rules) -> RowSet {
    match rules {
        Rules::G19 => RowSet::Variable,
        Rules::Head => RowSet::Multiops,
    }
}

/// The direction of `name` as `view` knows it, or else as its name tells.
pub fn better_in(view: &View, name: &str) -> Better {
    let known = view.headlines.iter().find(|headline| headline.name == name);
    better(known.map_or_else(|| direction(name), |headline| headline.direction))
}

/// The samples of each group as one run of a table.
///
/// # Errors
/// No recordings, different workloads, or no samples at all.
pub fn pooled_samples(groups: &[Group<'_>]) -> Result<Vec<Run>, ReportError> {
    let workload = common_workload_of_groups(groups)?;
    let runs = pooled(groups);
    if runs.iter().all(|run| run.operations.is_empty()) {
        return Err(ReportError::NoSamples { workload: workload.into() });
    }
    Ok(runs)
}

/// mmtests knows no measure without a good side; what it does not know is a time to it.
pub fn better(direction: Direction) -> Better {
    match direction {
        Direction::Higher => Better::Higher,
        Direction::Lower | Direction::Neutral => Better::Lower,
    }
}

/// What the reader has to know of Ops rows that are mmtests' own: where they are not what they say.
pub fn mmtests_notes(groups: &[Group<'_>], rules: Rules) -> Vec<String> {
    let [printed, right] = [OpsRules::AsShipped(rules), OpsRules::Repaired]
        .map(|rules| groups.iter().map(|group| ops_of(group, rules).1).collect::<Vec<_>>());
    let told = |rows: &[Vec<OpsRow>], label: &str| -> Vec<String> {
        let value = |rows: &Vec<OpsRow>| rows.iter().find(|row| row.label == label).and_then(|row| row.value);
        rows.iter()
            .map(|rows| value(rows).map_or_else(|| "-".to_owned(), |value| format!("{value:.2}")))
            .collect()
    };
    let note = |label: &&str| {
        let (printed, right) = (told(&printed, label), told(&right, label));
        let differ = printed != right;
        differ.then(|| format!("`Ops {label}` is counted as mmtests does; right is {}", right.join(", ")))
    };
    MISTAKEN.iter().filter_map(note).collect()
}

/// User, system and elapsed time of a group, each the mean over its runs.
fn durations(group: &Group<'_>) -> (String, [Option<f64>; 3]) {
    let mean_of = |name: &str| {
        let values: Option<Vec<f64>> =
            group.recordings.iter().map(|recording| recording.metrics.get(name).copied()).collect();
        mean(&values?)
    };
    (group.label.clone(), ["user_seconds", "system_seconds", "elapsed_seconds"].map(mean_of))
}

/// The samples of each group, and the operations in an order in which `2-files/sec` is before `16-files/sec`.
fn pooled(groups: &[Group<'_>]) -> Vec<Run> {
    let run = |group: &Group<'_>| {
        let mut operations: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, samples) in group.recordings.iter().flat_map(|recording| &recording.samples) {
            operations.entry(name).or_default().extend(samples);
        }
        let mut operations: Vec<(String, Vec<f64>)> =
            operations.into_iter().map(|(name, samples)| (name.to_owned(), samples)).collect();
        operations.sort_by(|(a, _), (b, _)| by_numbers(a, b));
        Run { name: group.label.clone(), operations }
    };
    groups.iter().map(run).collect()
}

/// Operations under the names that mmtests has for them, and the directions of those. Faults of both kinds make
/// one operation more.
fn named(
    runs: &[Run],
    rules: Rules,
    better: &dyn Fn(&str) -> Better,
) -> (Vec<Run>, BTreeMap<String, Better>) {
    let mut known = BTreeMap::new();
    let renamed = |run: &Run| {
        let mut operations: Vec<(String, Vec<f64>)> = Vec::new();
        let mut both: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, samples) in &run.operations {
            let direction = better(name);
            let place = Place::of(name, direction);
            let label = place.as_ref().map_or_else(|| name.clone(), |place| place.label(rules));
            if let Some(Place::Faults { threads, .. }) = &place {
                let label = format!("fault-both-{threads}");
                known.insert(label.clone(), direction);
                both.entry(label).or_default().extend(samples);
            }
            known.insert(label.clone(), direction);
            operations.push((label, samples.clone()));
        }
        operations.extend(both);
        Run { name: run.name.clone(), operations }
    };
    (runs.iter().map(renamed).collect(), known)
}

/// Texts in order, numbers in them by what they count.
fn by_numbers(a: &str, b: &str) -> Ordering {
    let key = |text: &str| -> Vec<(u64, String)> {
        let is_joint = |(a, b): (char, char)| a.is_ascii_digit() != b.is_ascii_digit();
        let joints = text.chars().zip(text.chars().skip(1)).enumerate().filter(|&(_, pair)| is_joint(pair));
        let ends: Vec<usize> = joints.map(|(index, _)| index + 1).chain([text.chars().count()]).collect();
        let mut begin = 0;
        let part = |end: usize| {
            let part: String = text.chars().skip(begin).take(end - begin).collect();
            begin = end;
            (part.parse().unwrap_or(u64::MAX), part)
        };
        ends.into_iter().map(part).collect()
    };
    key(a).cmp(&key(b))
}

/// mmtests' Ops rows of each group: the mean over its runs. Of the repaired rows those that no group has are left
/// out; mmtests has all of its rows always.
///
/// # Errors
/// No recordings, or different workloads.
pub fn ops_text(groups: &[Group<'_>], rules: OpsRules) -> Result<String, ReportError> {
    common_workload_of_groups(groups)?;
    let mut columns: Vec<_> = groups.iter().map(|group| ops_of(group, rules)).collect();
    if rules == OpsRules::Repaired {
        let known: Vec<&str> = columns
            .iter()
            .flat_map(|(_, rows)| rows.iter().filter(|row| row.value.is_some()).map(|row| row.label))
            .collect();
        for (_, rows) in &mut columns {
            rows.retain(|row| known.contains(&row.label));
        }
    }
    Ok(ops_table(&columns))
}

fn ops_of(group: &Group<'_>, rules: OpsRules) -> (String, Vec<OpsRow>) {
    let rows = |recording: &&Recording| ops_rows(&recording.vmstat, elapsed(recording), rules);
    (group.label.clone(), ops_mean(&group.recordings.iter().map(rows).collect::<Vec<_>>()))
}

/// The seconds that velocities are of: those that the workload measured, as mmtests takes those of its test, or
/// those of the whole run.
fn elapsed(recording: &Recording) -> Option<f64> {
    let measured = recording.metrics.get("elapsed_seconds").copied();
    measured.or_else(|| recording.duration_ns().map(|ns| ns as f64 / 1e9))
}
