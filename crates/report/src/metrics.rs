//! Metrics of many recordings, one row each: for results that are one list, not two sides.
//!
//! What matters most comes first, the rest on demand; a column has one unit. Next: [`crate::view`].

use recording::Recording;

use crate::notes::{notes_markdown, notes_text, separated};
use crate::number::plain;
use crate::oom::oom_killed;
use crate::table::{Align, Table, clean};
use crate::view::{Measure, Measures, Scale, View};
use crate::wrap::paragraph;
use crate::{ReportError, common_workload};

/// A row for each recording and a column for each metric that any of them has, for a terminal.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn metrics_text(recordings: &[&Recording], view: impl Into<View>) -> Result<String, ReportError> {
    let view = &view.into();
    let workload = common_workload(recordings.iter().copied())?;
    let measures = Measures::of(recordings.iter().copied(), view);
    let mut text = paragraph(&clean(workload), view.width, 2);
    text += &format!("\n{}", metrics_table(recordings, &measures.first).to_text(view.width));
    if view.all && !measures.rest.is_empty() {
        let rest = metrics_table(recordings, &measures.rest);
        text += &format!("\nother metrics\n{}", rest.to_text(view.width));
    } else if !measures.rest.is_empty() {
        text += &paragraph(&format!("{} more metrics with `--all`", measures.rest.len()), view.width, 2);
    }
    Ok(text + &separated(notes_text(recordings, view.width)))
}

/// [`metrics_text`] in Markdown.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn metrics_markdown(recordings: &[&Recording], view: impl Into<View>) -> Result<String, ReportError> {
    let view = &view.into();
    let workload = common_workload(recordings.iter().copied())?;
    let measures = Measures::of(recordings.iter().copied(), view);
    let mut text =
        format!("## {}\n\n{}", clean(workload), metrics_table(recordings, &measures.first).to_markdown());
    if view.all && !measures.rest.is_empty() {
        text += &format!("\n{}", metrics_table(recordings, &measures.rest).to_markdown());
    }
    Ok(text + &separated(notes_markdown(recordings)))
}

pub(crate) fn metrics_table(recordings: &[&Recording], measures: &[Measure]) -> Table {
    let values = |measure: &Measure| -> Vec<Option<f64>> {
        recordings.iter().map(|recording| measure.value(recording)).collect()
    };
    let columns: Vec<(&Measure, Vec<Option<f64>>, Scale)> = measures
        .iter()
        .map(|measure| {
            let values = values(measure);
            let scale = Scale::of(measure.unit, values.iter().flatten().copied());
            (measure, values, scale)
        })
        .collect();
    let heading = |(measure, _, scale): &(&Measure, Vec<Option<f64>>, Scale)| {
        (measure.heading_in(scale), Align::Number)
    };
    let mut table =
        Table::new(std::iter::once(("run".to_owned(), Align::Left)).chain(columns.iter().map(heading)));
    for (index, recording) in recordings.iter().enumerate() {
        let value = |(_, values, scale): &(&Measure, Vec<Option<f64>>, Scale)| {
            values[index].map_or("-".into(), |value| plain(value * scale.factor))
        };
        let run = match oom_killed(recording) {
            Some(killed) => format!("{}: {killed}", recording.label),
            None => recording.label.clone(),
        };
        table.push(std::iter::once(run).chain(columns.iter().map(value)));
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

     run       miss_percent, %  misses  requests
     lru 10                 90      90         -
     lru 1000                -       7       100
    "#);
    }
}
