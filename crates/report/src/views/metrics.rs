//! Metrics of many recordings, one row each: for results that are one list, not two sides.
//!
//! What matters most comes first, the rest on demand; a column has one unit. Next: [`crate::judge::view`].

use recording::Recording;

use crate::document::{Cell, Document, Section, Table, row};
use crate::judge::{Measure, Measures, ReportError, Scale, View, common_workload};
use crate::views::notes::notes;
use crate::views::oom::oom_killed;
use crate::views::recordings::with_data;

/// A row for each recording and a column for each metric that any of them has; for programs what [`super::run`] has.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn metrics<'a>(recordings: &[&'a Recording], view: &View) -> Result<Document<'a>, ReportError> {
    let workload = common_workload(recordings.iter().copied())?;
    let Measures { first, rest } = Measures::of(recordings.iter().copied(), view);
    let more = (!view.all && !rest.is_empty()).then(|| format!("{} more metrics with `--all`", rest.len()));
    let rest = if view.all && !rest.is_empty() { metrics_table(recordings, &rest) } else { Table::new() };
    let document = Document::new(workload)
        .section(Section::first(workload, None))
        .section(Section::untitled().with(metrics_table(recordings, &first)).lines_of(more))
        .section(Section::new("other metrics").with(rest))
        .section(notes(recordings));
    Ok(with_data(document, recordings.to_vec(), |_| view.clone()))
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
    let headings = columns.iter().map(|(measure, _, scale)| measure.heading_in(scale));
    let mut table = Table::new().texts(["run"]).numbers(headings);
    for (index, recording) in recordings.iter().enumerate() {
        let value = |(_, values, scale): &(&Measure, Vec<Option<f64>>, Scale)| {
            Cell::from(values[index].map(|value| value * scale.factor))
        };
        let run = match oom_killed(recording) {
            Some(killed) => format!("{}: {killed}", recording.label),
            None => recording.label.clone(),
        };
        table.push(row![run].into_iter().chain(columns.iter().map(value)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

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
        insta::assert_snapshot!(metrics(&[&small, &large], &View::default()).unwrap().render(Format::Text, 80), @r#"
    replay x.csv

     run       miss_percent, %  misses  requests
     lru 10                 90      90         -
     lru 1000                -       7       100
    "#);
    }
}
