//! The tables of mmtests from recordings: samples of all runs of a group are pooled, as mmtests
//! pools its iterations. The layout and the statistics are `stats::mmtests_table`'s.

use std::collections::BTreeMap;

use stats::describe::mean;
use stats::mmtests::{Better, RowSet, Rules};
use stats::mmtests_table::{Run, comparison, duration_table, ops_table};
use stats::ops::{ops_mean, ops_rows};

use crate::measure::{Direction, direction};
use crate::view::View;
use crate::{Group, ReportError, common_workload_of_groups};

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
    let runs: Vec<Run> = groups.iter().map(pooled).collect();
    if runs.iter().all(|run| run.operations.is_empty()) {
        return Err(ReportError::NoSamples { workload: workload.into() });
    }
    Ok(format!("{workload}\n{}", comparison(&runs, rules, set, better)))
}

/// All that mmtests prints of a comparison: the whole row set of 2019 for each kind of sample, the
/// durations where they were measured, and the Ops rows.
///
/// # Errors
/// No recordings, different workloads, or no samples at all.
pub fn mmtests_report(groups: &[Group<'_>], view: &View) -> Result<String, ReportError> {
    let better = |name: &str| {
        let known = view.headlines.iter().find(|headline| headline.name == name);
        match known.map_or_else(|| direction(name), |headline| headline.direction) {
            Direction::Higher => Better::Higher,
            Direction::Lower | Direction::Neutral => Better::Lower,
        }
    };
    let mut text = mmtests_text(groups, Rules::G19, RowSet::Variable, &better)?;
    let durations: Vec<_> = groups.iter().map(durations).collect();
    if durations.iter().any(|(_, seconds)| seconds.iter().any(Option::is_some)) {
        text += &format!("\n{}", duration_table(&durations));
    }
    Ok(text + &format!("\n{}", ops_text(groups)?))
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

fn pooled(group: &Group<'_>) -> Run {
    let mut operations: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, samples) in group.recordings.iter().flat_map(|recording| &recording.samples) {
        operations.entry(name.clone()).or_default().extend(samples);
    }
    Run { name: group.label.clone(), operations }
}

/// mmtests' Ops rows of each group: the mean over its runs. Rows that no group has are left out.
///
/// # Errors
/// No recordings, or different workloads.
pub fn ops_text(groups: &[Group<'_>]) -> Result<String, ReportError> {
    common_workload_of_groups(groups)?;
    let mut columns: Vec<_> = groups
        .iter()
        .map(|group| {
            let rows = |recording: &&recording::Recording| {
                ops_rows(&recording.vmstat, recording.duration_ns().map(|ns| ns as f64 / 1e9))
            };
            (group.label.clone(), ops_mean(&group.recordings.iter().map(rows).collect::<Vec<_>>()))
        })
        .collect();
    let known: Vec<&str> = columns
        .iter()
        .flat_map(|(_, rows)| rows.iter().filter(|row| row.value.is_some()).map(|row| row.label))
        .collect();
    for (_, rows) in &mut columns {
        rows.retain(|row| known.contains(&row.label));
    }
    Ok(ops_table(&columns))
}
