//! Samples of several runs side by side, by our own statistics: what `pagetide stats` shows.
//!
//! Rates are averaged harmonically, everything else arithmetically; the first run is the baseline. Differences of
//! means are judged as [`crate::judge::change`] judges those of runs, all of a table as one family. Percentiles are
//! samples themselves, by nearest rank, and there are none that no sample lies beyond. What has no samples is `-`.
//! Left out: whether samples are independent, which nobody can see in them; the footer says so. Next:
//! [`crate::views::mmtests`], the same samples in the tables of that suite.

use serde_json::{Value, json};
use stats::describe::{harmonic_mean, mean, sample_stddev};
use stats::difference::Difference;
use stats::mmtests::Better;
use stats::mmtests_table::{Run, operations};
use stats::multiple::Family;
use stats::percentile::of_samples;
use stats::{shift, shift_of_rates, welch_t_test};

use crate::document::number::{SMALL_PERCENT, percent_with_interval, signed, signed_percent};
use crate::document::{Document, Records, Section, Table, row};
use crate::judge::{LEVEL, TestsTold, method_name};

/// Percentiles that a table has, where there are samples for them.
const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9)];

/// One operation of one run.
struct Row<'a> {
    operation: &'a str,
    run: &'a str,
    samples: &'a [f64],
    better: Better,
    is_rate: bool,
    /// Of the baseline.
    base: Option<f64>,
    is_base: bool,
    change: Option<Difference>,
}

impl<'a> Row<'a> {
    fn mean(&self) -> Option<f64> {
        mean_of(self.samples, self.is_rate)
    }

    fn percent(&self, of: f64) -> f64 {
        100.0 * of / self.base.unwrap_or(f64::NAN).abs()
    }

    fn verdict(&self) -> &'static str {
        match (self.is_base, self.samples.is_empty(), self.change) {
            (true, _, _) => "",
            (false, true, _) => "no samples",
            (false, false, None) if self.base.is_none() => "no samples to compare with",
            (false, false, None) => "too few samples",
            (false, false, Some(d)) if d.difference == 0.0 && d.low == d.high => "same",
            (false, false, Some(d)) if !d.excludes_zero() => "no clear change",
            (false, false, Some(d)) if self.percent(d.difference).abs() < SMALL_PERCENT => "alike",
            (false, false, Some(d)) => {
                if (d.difference > 0.0) == (self.better == Better::Higher) {
                    "better"
                } else {
                    "worse"
                }
            }
        }
    }

    fn change_text(&self) -> String {
        match self.change {
            None if self.is_base => String::new(),
            None => "-".to_owned(),
            Some(d) if self.base == Some(0.0) => signed(d.difference),
            Some(d) if d.low == d.high => signed_percent(self.percent(d.difference)),
            Some(d) if !(d.low.is_finite() && d.high.is_finite()) => {
                signed_percent(self.percent(d.difference))
            }
            Some(d) => {
                percent_with_interval(self.percent(d.difference), self.percent(d.low), self.percent(d.high))
            }
        }
    }
}

/// Rows of all operations, each with all runs, and the family that their tests are.
struct Rows<'a> {
    rows: Vec<Row<'a>>,
    family: Family,
}

impl<'a> Rows<'a> {
    fn of(runs: &'a [Run], better: &dyn Fn(&str) -> Better) -> Self {
        if runs.is_empty() {
            return Self { rows: Vec::new(), family: Family { tests: 0 } };
        }
        let operations = operations(runs);
        // Which are tested does not depend on how many there are.
        let tests = operations.iter().flat_map(|operation| {
            runs[1..].iter().filter(|run| varies(runs[0].samples(operation), run.samples(operation)))
        });
        let family = Family { tests: tests.count() };
        let level = family.level_of_each(LEVEL);
        let rows = |operation: &'a str| rows_of(runs, operation, better(operation), level);
        Self { rows: operations.into_iter().flat_map(rows).collect(), family }
    }

    fn footer(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (harmonic, told) in
            [(true, "harmonic mean, as of rates; more is better"), (false, "arithmetic mean; less is better")]
        {
            let mut names: Vec<String> = self
                .rows
                .iter()
                .filter(|row| {
                    row.is_base && row.is_rate == harmonic && (row.better == Better::Higher) == harmonic
                })
                .map(|row| row.operation.to_owned())
                .collect();
            names.dedup();
            if !names.is_empty() {
                lines.push(format!("{}: {told}", names.join(", ")));
            }
        }
        for row in self.rows.iter().filter(|row| row.is_base && !row.is_rate && row.better == Better::Higher)
        {
            lines.push(format!(
                "{}: arithmetic mean, as a rate of 0 has no harmonic one; more is better",
                row.operation
            ));
        }
        let tests = self.rows.iter().filter_map(|row| row.change).filter(|d| d.low != d.high);
        if let Some(tests) = TestsTold::of(tests.map(|d| d.test), self.family) {
            let together = match self.family.tests {
                1 => "interval and verdict hold at 95 %".to_owned(),
                tests => {
                    format!(
                        "intervals and verdicts hold at 95 % over all {tests} tests together (Bonferroni)"
                    )
                }
            };
            lines.push(format!("sd: standard deviation of samples; {}; {together}", tests.methods));
            lines.extend(tests.assumed);
            lines.push(
                "samples are taken to be independent, which those of one run seldom are: repeat whole runs to know how \
                 much they vary"
                    .to_owned(),
            );
        }
        lines
    }

    /// Percentiles that some row has.
    fn percentiles(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let known = |percent: f64| self.rows.iter().any(|row| of_samples(row.samples, percent).is_some());
        PERCENTILES.into_iter().filter(move |(_, percent)| known(*percent))
    }

    fn table(&self) -> Table {
        let percentiles: Vec<(&str, f64)> = self.percentiles().collect();
        let mut table = Table::new()
            .texts(["metric", "run"])
            .numbers(["n", "mean", "sd", "min"])
            .numbers(percentiles.iter().map(|(name, _)| name))
            .numbers(["max", "change [95 %]"])
            .texts(["verdict"])
            .named_by(2)
            .grouped([4 + percentiles.len() + 1, 2]);
        for row in &self.rows {
            let extreme = |pick: fn(f64, f64) -> f64| row.samples.iter().copied().reduce(pick);
            let mut cells = row![row.operation, row.run, row.samples.len(), row.mean()].to_vec();
            cells.extend(row![sample_stddev(row.samples), extreme(f64::min)]);
            cells.extend(percentiles.iter().map(|(_, percent)| of_samples(row.samples, *percent).into()));
            cells.extend(row![extreme(f64::max), row.change_text(), row.verdict()]);
            table.push(cells);
        }
        table
    }
}

fn rows_of<'a>(runs: &'a [Run], operation: &'a str, better: Better, level: f64) -> Vec<Row<'a>> {
    let all = || runs.iter().flat_map(|run| run.samples(operation));
    let is_rate = better == Better::Higher && all().all(|&sample| sample > 0.0);
    let base = runs[0].samples(operation);
    let shift = if is_rate { shift_of_rates } else { shift };
    runs.iter()
        .enumerate()
        .map(|(index, run)| {
            let samples = run.samples(operation);
            Row {
                operation,
                run: &run.name,
                samples,
                better,
                is_rate,
                base: mean_of(base, is_rate),
                is_base: index == 0,
                change: (index > 0).then(|| shift(base, samples, false, level)).flatten(),
            }
        })
        .collect()
}

/// Whether there is a spread to test a difference against.
fn varies(base: &[f64], new: &[f64]) -> bool {
    welch_t_test(base, new, LEVEL).is_some_and(|found| found.low != found.high)
}

fn mean_of(samples: &[f64], is_rate: bool) -> Option<f64> {
    if is_rate { harmonic_mean(samples) } else { mean(samples) }
}

/// The samples of `runs`, of which the first is the baseline; `better` tells the direction of each operation.
///
/// JSON: `{"schema": 1, "level", "tests", "rows": [{"metric", "run", "direction", "mean_kind", "n", "mean", "sd",
/// "min", "p50", "p95", "p99", "p99.9", "max", "change", "change_percent", "interval", "p", "test", "verdict"}]}`.
/// `interval` and `p` hold over `tests` tests together at `level`. What is not known is `null`. CSV: one record for
/// each run and operation with the same columns, the interval as `low` and `high`; what is not known is empty.
pub fn samples<'a>(runs: &'a [Run], better: &'a dyn Fn(&str) -> Better) -> Document<'a> {
    let rows = Rows::of(runs, better);
    Document::new("samples")
        .section(Section::untitled().with(rows.table()).lines_of(rows.footer()))
        .json(move || {
            let Rows { rows, family } = Rows::of(runs, better);
            let all: Vec<Value> = rows.iter().map(|row| row_json(row, family)).collect();
            json!({ "schema": 1, "level": LEVEL, "tests": family.tests, "rows": all })
        })
        .csv(move || records(&Rows::of(runs, better)))
}

fn row_json(row: &Row<'_>, family: Family) -> Value {
    let extreme = |pick: fn(f64, f64) -> f64| row.samples.iter().copied().reduce(pick);
    let tested = row.change.filter(|d| d.low != d.high);
    let mut object = json!({
        "metric": row.operation,
        "run": row.run,
        "direction": if row.better == Better::Higher { "higher" } else { "lower" },
        "mean_kind": if row.is_rate { "harmonic" } else { "arithmetic" },
        "n": row.samples.len(),
        "mean": row.mean(),
        "sd": sample_stddev(row.samples),
        "min": extreme(f64::min),
        "max": extreme(f64::max),
        "change": row.change.map(|d| d.difference),
        "change_percent": row.change.map(|d| row.percent(d.difference)).filter(|percent| percent.is_finite()),
        "interval": tested.map(|d| [d.low, d.high]),
        "p": tested.map(|d| family.adjusted_p(d.p)),
        "test": tested.map(|d| method_name(d.test)),
        "verdict": Some(row.verdict()).filter(|verdict| !verdict.is_empty()),
    });
    for (name, percent) in PERCENTILES {
        object[name] = json!(of_samples(row.samples, percent));
    }
    object
}

fn records(Rows { rows, family }: &Rows<'_>) -> Records {
    const COLUMNS: [&str; 20] = [
        "metric",
        "run",
        "direction",
        "mean_kind",
        "n",
        "mean",
        "sd",
        "min",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max",
        "change",
        "change_percent",
        "low",
        "high",
        "p",
        "test",
        "verdict",
    ];
    let field = |row: &Value, name: &str| match name {
        "low" => text_of(&row["interval"][0]),
        "high" => text_of(&row["interval"][1]),
        name => text_of(&row[name]),
    };
    let record = |row: &Row<'_>| {
        let row = row_json(row, *family);
        COLUMNS.iter().map(|name| field(&row, name)).collect()
    };
    let header = COLUMNS.map(str::to_owned).to_vec();
    std::iter::once(header).chain(rows.iter().map(record)).collect()
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    fn run(name: &str, operations: &[(&str, &[f64])]) -> Run {
        let operations =
            operations.iter().map(|(name, samples)| ((*name).to_owned(), samples.to_vec())).collect();
        Run { name: name.to_owned(), operations }
    }

    fn by_name(name: &str) -> Better {
        crate::views::mmtests::better(crate::direction(name))
    }

    fn two() -> [Run; 2] {
        let base = run(
            "base",
            &[
                ("files_per_s", &[100.0, 110.0, 90.0, 105.0, 95.0, 99.0]),
                ("stalls_per_s", &[4.0, 5.0, 6.0, 5.0, 5.0, 4.0]),
                ("only_base_us", &[1.0, 2.0]),
            ],
        );
        let new = run(
            "new",
            &[
                ("files_per_s", &[150.0, 160.0, 145.0, 155.0, 149.0, 152.0]),
                ("stalls_per_s", &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            ],
        );
        [base, new]
    }

    /// A reference suite shows a stall rate that falls to 0 as 0.00 % or leaves it out.
    #[test]
    fn zeros_are_kept_what_is_missing_is_said_and_less_is_better_where_it_is() {
        insta::assert_snapshot!(samples(&two(), &by_name).render(Format::Text, 100), @"
         metric        run   n     mean      sd  min  p50  max       change [95 %]  verdict
         files_per_s   base  6   99.41   7.083    90   99  110
         files_per_s   new   6  151.7    5.193   145  150  160   +53 % [+36, +74]   better
         stalls_per_s  base  6    4.833  0.7528    4    5    6
         stalls_per_s  new   6    0      0         0    0    0  -100 % [-114, -83]  better
         only_base_us  base  2    1.5    0.7071    1    1    2
         only_base_us  new   0    -      -         -    -    -     -                no samples
        files_per_s: harmonic mean, as of rates; more is better
        stalls_per_s, only_base_us: arithmetic mean; less is better
        sd: standard deviation of samples; exact permutation test; intervals and verdicts hold at 95 %
          over all 2 tests together (Bonferroni)
        samples are taken to be independent, which those of one run seldom are: repeat whole runs to know
          how much they vary
        ");
    }

    #[test]
    fn json_and_csv_say_the_same() {
        let json: Value = serde_json::from_str(&samples(&two(), &by_name).render(Format::Json, 80)).unwrap();
        assert_eq!((&json["tests"], json["rows"].as_array().unwrap().len()), (&2.into(), 6));
        let row = &json["rows"][3];
        assert_eq!(
            (&row["metric"], &row["run"], &row["mean"]),
            (&"stalls_per_s".into(), &"new".into(), &0.0.into())
        );
        assert_eq!((&row["verdict"], &row["test"]), (&"better".into(), &"permutation".into()));
        let missing = &json["rows"][5];
        assert_eq!(
            (&missing["mean"], &missing["n"], &missing["verdict"]),
            (&Value::Null, &0.into(), &"no samples".into())
        );
        let csv = samples(&two(), &by_name).render(Format::Csv, 80);
        assert!(
            csv.lines().nth(4).unwrap().starts_with("stalls_per_s,new,lower,arithmetic,6,0.0,0.0,0.0,0.0,"),
            "{csv}"
        );
        assert!(
            csv.lines()
                .nth(6)
                .unwrap()
                .ends_with("only_base_us,new,lower,arithmetic,0,,,,,,,,,,,,,,,no samples"),
            "{csv}"
        );
    }
}
