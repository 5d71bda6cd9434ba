//! Groups of runs side by side: the tables of a comparison, for a terminal and in Markdown.
//!
//! Next: [`crate::change`] has the rules by which two sides of one measure are judged,
//! [`crate::findings`] what moved most in the counters.

use std::collections::BTreeSet;

use recording::Recording;
use stats::describe::{harmonic_mean, mean};
use stats::difference::Test;
use stats::multiple::holm;

use crate::change::{Change, Pairing, Side};
use crate::findings::findings;
use crate::histogram::histogram;
use crate::measure::{Direction, direction, is_rate, unit};
use crate::notes::{notes_markdown, notes_text, separated};
use crate::oom::{group_ended, in_markdown, oom_lines};
use crate::table::{Align, Table, clean};
use crate::{Group, ReportError, common_workload_of_groups};

/// The comparison for a terminal of `width` columns: the first group is the baseline, every
/// other one gets a table, what moved most in its counters, and the commands at the end.
///
/// # Errors
/// Fewer than two groups, a group without recordings, different workloads.
pub fn compare_text(groups: &[Group<'_>], width: usize) -> Result<String, ReportError> {
    let workload = common_workload_of_groups(groups)?;
    let groups = &by_seed(groups)[..];
    let [base, others @ ..] = groups else { return Err(ReportError::NoRecordings) };
    if others.is_empty() {
        return Err(ReportError::OneGroup { label: base.label.clone() });
    }
    let mut text = format!("{}: {}\n{}", clean(workload), clean(&versus(groups)), oom_lines(groups));
    for group in others {
        let rows = compared(base, group);
        let (table, notes) = comparison_table(base, group, &rows);
        text += &format!("\n{}{notes}\n{}", table.to_text(width), findings(base, group, width));
    }
    let histogram = histogram(groups);
    if !histogram.is_empty() {
        text += &format!("\nhow often\n{}", histogram.to_text(width));
    }
    text += &separated(notes_text(&recordings_of(groups)));
    text += "\nmade by\n";
    for group in groups {
        text += &format!("  {}: {}\n", clean(&group.label), clean(&group.command));
    }
    Ok(text)
}

/// The comparison in Markdown; with one group, its values only.
///
/// # Errors
/// No group, a group without recordings, different workloads.
pub fn to_markdown(groups: &[Group<'_>]) -> Result<String, ReportError> {
    let workload = common_workload_of_groups(groups)?;
    let groups = &by_seed(groups)[..];
    let [base, others @ ..] = groups else { return Err(ReportError::NoRecordings) };
    let mut text = format!("## {}: {}\n\n", clean(workload), clean(&versus(groups)));
    text += &in_markdown(&oom_lines(groups));
    if others.is_empty() {
        text += &values_table(base).to_markdown();
    }
    for (index, group) in others.iter().enumerate() {
        let (table, notes) = comparison_table(base, group, &compared(base, group));
        text += &format!("{}{}\n{notes}", if index > 0 { "\n" } else { "" }, table.to_markdown());
    }
    let histogram = histogram(groups);
    if !histogram.is_empty() {
        text += &format!("\n{}", histogram.to_markdown());
    }
    text += &separated(notes_markdown(&recordings_of(groups)));
    text += "\n```sh\n";
    for group in groups {
        text += &format!("{}  # {}\n", clean(&group.command), clean(&group.label));
    }
    Ok(text + "```\n")
}

fn recordings_of<'a>(groups: &[Group<'a>]) -> Vec<&'a Recording> {
    groups.iter().flat_map(|group| group.recordings.iter().copied()).collect()
}

/// The groups with their runs in order of seed, so that equal seeds pair.
fn by_seed<'a>(groups: &[Group<'a>]) -> Vec<Group<'a>> {
    let mut groups = groups.to_vec();
    for group in &mut groups {
        group.recordings.sort_by_key(|recording| recording.seed);
    }
    groups
}

fn versus(groups: &[Group<'_>]) -> String {
    groups.iter().map(|group| group.label.as_str()).collect::<Vec<_>>().join(" against ")
}

/// One row: a metric, or the mean of a kind of sample.
struct Row {
    name: String,
    measure: String,
    base: Side,
    new: Side,
    change: Change,
    verdict: &'static str,
}

fn compared(base: &Group<'_>, new: &Group<'_>) -> Vec<Row> {
    let pairing = Pairing::of(base, new);
    let mut rows: Vec<Row> = measures(&[base, new])
        .into_iter()
        .map(|measure| {
            let [base, new] = [base, new].map(|group| Side::of(group, |recording| measure.value(recording)));
            let change = Change::between(&base, &new, pairing);
            Row { name: measure.heading(), measure: measure.name, base, new, change, verdict: "" }
        })
        .collect();
    let tested =
        |row: &Row| if let Change::Tested(difference) = row.change { Some(difference.p) } else { None };
    let mut corrected = holm(&rows.iter().filter_map(tested).collect::<Vec<_>>()).into_iter();
    for row in &mut rows {
        let p = tested(row).and_then(|_| corrected.next()).unwrap_or(1.0);
        let base = row.base.mean().unwrap_or(0.0);
        row.verdict = row.change.verdict(direction(&row.measure), base, p);
    }
    rows
}

/// Something that recordings have a number for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Measure {
    name: String,
    from_samples: bool,
}

impl Measure {
    fn heading(&self) -> String {
        match (self.from_samples, self.is_harmonic()) {
            (false, _) => self.name.clone(),
            (true, false) => format!("{} (mean)", self.name),
            (true, true) => format!("{} (harmonic mean)", self.name),
        }
    }

    /// Rates of work are averaged harmonically; rates of trouble, which may be 0, are not.
    fn is_harmonic(&self) -> bool {
        is_rate(&self.name) && direction(&self.name) == Direction::Higher
    }

    /// A metric's value, or the mean of a run's samples. A rate of 0 makes the harmonic mean 0,
    /// its limit: an interval without any work is not a missing one.
    fn value(&self, recording: &Recording) -> Option<f64> {
        if !self.from_samples {
            return recording.metrics.get(&self.name).copied();
        }
        let samples = recording.samples.get(&self.name)?;
        match self.is_harmonic() {
            false => mean(samples),
            true if samples.contains(&0.0) => Some(0.0),
            true => harmonic_mean(samples),
        }
    }
}

fn measures(groups: &[&Group<'_>]) -> BTreeSet<Measure> {
    let recordings = || groups.iter().flat_map(|group| &group.recordings);
    let metrics: BTreeSet<&String> = recordings().flat_map(|recording| recording.metrics.keys()).collect();
    // A metric of the same name is what the workload makes of these samples.
    let samples =
        recordings().flat_map(|recording| recording.samples.keys()).filter(|name| !metrics.contains(name));
    metrics
        .iter()
        .map(|&name| Measure { name: name.clone(), from_samples: false })
        .chain(samples.map(|name| Measure { name: name.clone(), from_samples: true }))
        .collect()
}

fn values_table(group: &Group<'_>) -> Table {
    let headings = [("metric", Align::Left), ("unit", Align::Left), (group.label.as_str(), Align::Number)];
    let mut table = Table::new(headings.map(|(text, align)| (text.to_owned(), align)));
    for measure in measures(&[group]) {
        let side = Side::of(group, |recording| measure.value(recording));
        table.push([measure.heading(), unit(&measure.name).into(), side.text()]);
    }
    table
}

/// The table and the lines below it that say how to read it.
fn comparison_table(base: &Group<'_>, new: &Group<'_>, rows: &[Row]) -> (Table, String) {
    let tested: Vec<Test> = rows
        .iter()
        .filter_map(|row| if let Change::Tested(d) = row.change { Some(d.test) } else { None })
        .collect();
    let only_single = rows.iter().all(|row| matches!(row.change, Change::OneRun(_) | Change::Missing));
    let change = match (only_single, tested.is_empty()) {
        (true, _) => "ratio",
        (false, true) => "change",
        (false, false) => "change [95 % CI]",
    };
    let headings = [
        ("metric", Align::Left),
        ("unit", Align::Left),
        (base.label.as_str(), Align::Number),
        (new.label.as_str(), Align::Number),
        (change, Align::Number),
        ("verdict", Align::Left),
    ];
    let mut table = Table::new(headings.map(|(text, align)| (text.to_owned(), align)));
    if !oom_lines(&[base.clone(), new.clone()]).is_empty() {
        let [base, new] = [base, new].map(group_ended);
        table.push(["how it ended".into(), String::new(), base, new, String::new(), String::new()]);
    }
    for row in rows {
        table.push([
            row.name.clone() + &partly_missing(row),
            unit(&row.measure).into(),
            row.base.text(),
            row.new.text(),
            row.change.text(row.base.mean().unwrap_or(0.0)),
            row.verdict.into(),
        ]);
    }
    let mut notes = String::new();
    if rows.is_empty() {
        notes += "no metrics and no samples in these recordings\n";
    } else if let Some(&test) = tested.first() {
        let runs = match test {
            Test::Paired => format!("{} paired seeds", base.recordings.len()),
            Test::Welch => format!("{} and {} runs", base.recordings.len(), new.recordings.len()),
        };
        let test = if test == Test::Paired { "paired t test" } else { "Welch's t test" };
        let family =
            if tested.len() == 1 { "5 %".into() } else { format!("5 % over {} rows (Holm)", tested.len()) };
        notes += &format!("{runs}: mean ± standard deviation; {test}, {family}\n");
    } else if rows.iter().any(|row| matches!(row.change, Change::Exact(_))) {
        notes += "one seed: exact for this seed, says nothing of others; `--seeds 10` shows the spread\n";
    } else {
        notes += "one run a side: how much repeats vary is not known; make more runs for a verdict\n";
    }
    (table, notes)
}

fn partly_missing(row: &Row) -> String {
    let part = |side: &Side| side.missing > 0 && !side.values.is_empty();
    if !part(&row.base) && !part(&row.new) {
        return String::new();
    }
    let of = |side: &Side| format!("{} of {}", side.values.len(), side.values.len() + side.missing);
    format!(" (in {} and {} runs)", of(&row.base), of(&row.new))
}
