//! The tables of mmtests from recordings: samples of all runs of a group are pooled, as mmtests
//! pools its iterations. The layout and the statistics are `stats::mmtests_table`'s.

use std::collections::BTreeMap;

use stats::mmtests::{Better, RowSet, Rules};
use stats::mmtests_table::{Run, comparison, ops_table};
use stats::ops::{ops_mean, ops_rows};

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
