//! Metrics of many recordings, one row each: for results that are one list, not two sides.

use recording::Recording;

use crate::measure::unit;
use crate::notes::{notes_markdown, notes_text, separated};
use crate::number::plain;
use crate::oom::oom_killed;
use crate::table::{Align, Table, clean};
use crate::{ReportError, common_workload};

/// A row for each recording and a column for each metric that any of them has, for a terminal of
/// `width` columns.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn metrics_text(recordings: &[&Recording], width: usize) -> Result<String, ReportError> {
    let workload = common_workload(recordings.iter().copied())?;
    let table = metrics_table(recordings).to_text(width);
    Ok(format!("{}\n\n{table}{}", clean(workload), separated(notes_text(recordings))))
}

/// [`metrics_text`] in Markdown.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn metrics_markdown(recordings: &[&Recording]) -> Result<String, ReportError> {
    let workload = common_workload(recordings.iter().copied())?;
    let table = metrics_table(recordings).to_markdown();
    Ok(format!("## {}\n\n{table}{}", clean(workload), separated(notes_markdown(recordings))))
}

fn metrics_table(recordings: &[&Recording]) -> Table {
    let mut names: Vec<&String> = recordings.iter().flat_map(|recording| recording.metrics.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let heading = |name: &&String| match unit(name) {
        "" => ((*name).clone(), Align::Number),
        unit if name.ends_with(unit) => ((*name).clone(), Align::Number),
        unit => (format!("{name} {unit}"), Align::Number),
    };
    let mut table =
        Table::new(std::iter::once(("run".to_owned(), Align::Left)).chain(names.iter().map(heading)));
    for recording in recordings {
        let value = |name: &&String| recording.metrics.get(*name).map_or("-".into(), |&value| plain(value));
        let run = match oom_killed(recording) {
            Some(killed) => format!("{}: {killed}", recording.label),
            None => recording.label.clone(),
        };
        table.push(std::iter::once(run).chain(names.iter().map(value)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, metrics: &[(&str, f64)]) -> Recording {
        let mut recording = Recording::new(label, "replay x.csv", "policy", "lru", 0);
        recording.metrics = metrics.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        recording
    }

    #[test]
    fn each_recording_is_a_row_and_a_metric_that_it_lacks_is_a_dash() {
        let (small, large) = (
            run("lru 10", &[("misses", 90.0), ("miss_percent", 90.0)]),
            run("lru 1000", &[("misses", 7.0), ("requests", 100.0)]),
        );
        insta::assert_snapshot!(metrics_text(&[&small, &large], 80).unwrap(), @r#"
    replay x.csv

     run       miss_percent %  misses  requests
     lru 10                90      90         -
     lru 1000               -       7       100
    "#);
    }
}
