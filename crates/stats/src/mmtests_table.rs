//! The layout of mmtests' tables, to the byte: kernel people read it and paste it.
//!
//! Statistic left-justified, operation left-justified, then for each run a right-justified
//! number with two decimals and a percentage in parentheses (in stars where the row is starred).
//! The first run is the baseline. A run's name is cut at its first `-` into two header lines.
//! One difference: what is missing prints as `-`, not as 0.00.

use std::collections::BTreeSet;

use crate::mmtests::{Better, RowSet, Rules, percent, star};
use crate::ops::OpsRow;

/// One column of a table: a run and its samples, pooled over iterations.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Name of the run, such as `5.3.0-rc3-vanilla`.
    pub name: String,
    /// Operation, such as `1-files/sec`, and its samples; in the order in which they are shown.
    pub operations: Vec<(String, Vec<f64>)>,
}

impl Run {
    /// The samples of an operation; none where the run does not have it.
    pub fn samples(&self, operation: &str) -> &[f64] {
        self.operations.iter().find(|(name, _)| name == operation).map_or(&[], |(_, samples)| samples)
    }
}

/// The operations of all runs, each once, in the order in which they come.
pub fn operations(runs: &[Run]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let all = runs.iter().flat_map(|run| &run.operations).map(|(name, _)| name.as_str());
    all.filter(|name| seen.insert(*name)).collect()
}

/// Columns of a number, without its percentage.
fn number_width(rules: Rules) -> usize {
    match rules {
        Rules::G19 => 12,
        Rules::Head => 18,
    }
}

/// The comparison table of `runs`; `better` tells each operation's direction.
///
/// Rows are grouped by statistic, then by operation. Every line ends in a newline; without runs the text is
/// empty.
pub fn comparison(runs: &[Run], rules: Rules, set: RowSet, better: &dyn Fn(&str) -> Better) -> String {
    let operations = operations(runs);
    let statistics = set.statistics(rules);
    let rows = statistics.iter().flat_map(|&statistic| operations.iter().map(move |&name| (statistic, name)));
    let label_width = rows.clone().map(|(s, name)| s.label(rules, better(name)).len()).max().unwrap_or(0);
    let name_width = operations.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let width = number_width(rules);

    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let mut text = header(&names, label_width + 1 + name_width, width + 7 + 4);
    for (statistic, name) in rows {
        let direction = better(name);
        text.push_str(&format!("{:<label_width$} {name:<name_width$}", statistic.label(rules, direction)));
        let base_samples = runs.first().map_or(&[][..], |run| run.samples(name));
        let base = statistic.value(base_samples, rules, direction);
        for run in runs {
            let new_samples = run.samples(name);
            let new = statistic.value(new_samples, rules, direction);
            let starred = star(statistic, set, rules, direction, base_samples, new_samples);
            let change = base.zip(new).map(|(base, new)| percent(base, new, statistic.better(direction)));
            text.push_str(&cell(new, change, starred, width));
        }
        text.push('\n');
    }
    text
}

/// The table of Ops rows: one column of 15 a run, no percentages.
pub fn ops_table(runs: &[(String, Vec<OpsRow>)]) -> String {
    let labels: Vec<&str> =
        runs.first().map(|(_, rows)| rows.iter().map(|row| row.label).collect()).unwrap_or_default();
    let label_width = labels.iter().map(|label| label.len()).max().unwrap_or(0);
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = header(&names, "Ops ".len() + label_width, 15);
    for label in labels {
        text.push_str(&format!("Ops {label:<label_width$}"));
        for (_, rows) in runs {
            let value = rows.iter().find(|row| row.label == label).and_then(|row| row.value);
            text.push_str(&format!("{:>15}", two_decimals(value)));
        }
        text.push('\n');
    }
    text
}

/// The table of durations in seconds, user, system and elapsed: one column a run.
pub fn duration_table(runs: &[(String, [Option<f64>; 3])], rules: Rules) -> String {
    const LABELS: [&str; 3] = ["Duration User", "Duration System", "Duration Elapsed"];
    let label_width = LABELS[2].len();
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    let width = number_width(rules);
    let mut text = header(&names, label_width, width);
    for (row, label) in LABELS.into_iter().enumerate() {
        let cells: String =
            runs.iter().map(|(_, seconds)| format!("{:>width$}", two_decimals(seconds[row]))).collect();
        text.push_str(&format!("{label:<label_width$}{cells}\n"));
    }
    text
}

fn cell(value: Option<f64>, change: Option<f64>, starred: bool, width: usize) -> String {
    let (open, close) = if starred { ("*", "*") } else { ("(", ")") };
    format!("{:>width$} {open}{:>7}%{close}", two_decimals(value), two_decimals(change))
}

fn two_decimals(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}"))
}

fn header(names: &[&str], indent: usize, width: usize) -> String {
    if names.is_empty() {
        return String::new();
    }
    let line = |part: fn(&str) -> (&str, &str), second: bool| {
        let cells: String = names
            .iter()
            .map(|name| if second { part(name).1 } else { part(name).0 })
            .map(|text| format!("{text:>width$}"))
            .collect();
        format!("{:indent$}{cells}\n", "")
    };
    line(split_name, false) + &line(split_name, true)
}

/// `5.3.0-rc3-vanilla` is `5.3.0-rc3` over `vanilla`: cut at the first `-` that no `rcN` follows.
fn split_name(name: &str) -> (&str, &str) {
    let Some((first, rest)) = name.split_once('-') else { return (name, "") };
    let candidate = rest.split('-').next().unwrap_or(rest);
    let is_rc = candidate
        .strip_prefix("rc")
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_rc {
        return (first, rest);
    }
    let end = first.len() + 1 + candidate.len();
    (&name[..end], name[end..].strip_prefix('-').unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VANILLA: [f64; 14] = [
        11421.5, 5047.8, 5005.1, 5003.7, 4925.8, 4918.7, 4917.8, 4901.8, 4837.3, 4667.4, 4658.4, 4649.6,
        4491.0, 4444.8,
    ];
    const SHRINKER: [f64; 14] = [
        9999.3, 5107.5, 5091.7, 5049.9, 4960.3, 4927.2, 4855.6, 4846.3, 4841.3, 4831.2, 4790.3, 4780.7,
        4768.2, 4765.6,
    ];

    fn run(name: &str, samples: &[f64]) -> Run {
        Run { name: name.into(), operations: vec![("1-files/sec".into(), samples.to_vec())] }
    }

    /// The table in the change log of "mm, vmscan: do not special-case slab reclaim when
    /// watermarks are boosted" (August 2019), byte for byte.
    #[test]
    fn the_published_small_file_table_comes_out_byte_for_byte() {
        let runs = [run("5.3.0-rc3-vanilla", &VANILLA), run("5.3.0-rc3-shrinker-v1r1", &SHRINKER)];
        let table = comparison(&runs, Rules::G19, RowSet::Variable, &|_| Better::Higher);
        assert_eq!(table, PUBLISHED);
    }

    /// The same change log's durations.
    #[test]
    fn the_published_durations_come_out_byte_for_byte() {
        let runs = [
            ("5.3.0-rc3-vanilla".to_owned(), [Some(501.82), Some(4401.44), Some(8124.76)]),
            ("5.3.0-rc3-shrinker-v1r1".to_owned(), [Some(497.29), Some(4424.08), None]),
        ];
        let published = "                   5.3.0-rc3   5.3.0-rc3
                     vanillashrinker-v1r1
Duration User         501.82      497.29
Duration System      4401.44     4424.08
Duration Elapsed     8124.76           -
";
        assert_eq!(duration_table(&runs, Rules::G19), published);
    }

    const PUBLISHED: &str = "                                   5.3.0-rc3              5.3.0-rc3
                                     vanilla          shrinker-v1r1
Min       1-files/sec     4444.80 (   0.00%)     4765.60 (   7.22%)
1st-qrtle 1-files/sec     5005.10 (   0.00%)     5091.70 (   1.73%)
2nd-qrtle 1-files/sec     4917.80 (   0.00%)     4855.60 (  -1.26%)
3rd-qrtle 1-files/sec     4667.40 (   0.00%)     4831.20 (   3.51%)
Max-1     1-files/sec    11421.50 (   0.00%)     9999.30 ( -12.45%)
Max-5     1-files/sec    11421.50 (   0.00%)     9999.30 ( -12.45%)
Max-10    1-files/sec    11421.50 (   0.00%)     9999.30 ( -12.45%)
Max-90    1-files/sec     4649.60 (   0.00%)     4780.70 (   2.82%)
Max-95    1-files/sec     4491.00 (   0.00%)     4768.20 (   6.17%)
Max-99    1-files/sec     4491.00 (   0.00%)     4768.20 (   6.17%)
Max       1-files/sec    11421.50 (   0.00%)     9999.30 ( -12.45%)
Hmean     1-files/sec     5004.75 (   0.00%)     5075.96 (   1.42%)
Stddev    1-files/sec     1778.70 (   0.00%)     1369.66 (  23.00%)
CoeffVar  1-files/sec       33.70 (   0.00%)       26.05 (  22.71%)
BHmean-99 1-files/sec     5053.72 (   0.00%)     5101.52 (   0.95%)
BHmean-95 1-files/sec     5053.72 (   0.00%)     5101.52 (   0.95%)
BHmean-90 1-files/sec     5107.05 (   0.00%)     5131.41 (   0.48%)
BHmean-75 1-files/sec     5208.45 (   0.00%)     5206.68 (  -0.03%)
BHmean-50 1-files/sec     5405.53 (   0.00%)     5381.62 (  -0.44%)
BHmean-25 1-files/sec     6179.75 (   0.00%)     6095.14 (  -1.37%)
";

    #[test]
    fn head_labels_a_rate_by_its_harmonic_spread() {
        let runs = [run("base", &[2.0, 8.0]), run("patched", &[200.0, 208.0])];
        insta::assert_snapshot!(comparison(&runs, Rules::Head, RowSet::Multiops, &|_| Better::Higher), @r"
                                              base                      patched
                                                                               
Min       1-files/sec              2.00 (   0.00%)            200.00 (9900.00%)
Hmean     1-files/sec              3.20 (   0.00%)            203.92 *6272.55%*
HStddev   1-files/sec              1.92 (   0.00%)              4.00 (-108.25%)
HCoeffVar 1-files/sec             60.00 (   0.00%)              1.96 (  96.73%)
Max       1-files/sec              8.00 (   0.00%)            208.00 (2500.00%)
BHmean.95 1-files/sec              8.00 (   0.00%)            208.00 (2500.00%)
");
    }

    #[test]
    fn a_star_replaces_both_parentheses_and_missing_samples_print_a_dash() {
        let runs = [run("a", &[5.0, 5.1, 4.9]), run("b", &[9.0, 9.1, 8.9]), run("c", &[])];
        let table = comparison(&runs, Rules::G19, RowSet::Multiops, &|_| Better::Lower);
        insta::assert_snapshot!(table, @"
                                                   a                      b                      c
                                                                                                  
        Min       1-files/sec        4.90 (   0.00%)        8.90 ( -81.63%)           - (      -%)
        Amean     1-files/sec        5.00 (   0.00%)        9.00 * -80.00%*           - (      -%)
        Stddev    1-files/sec        0.10 (   0.00%)        0.10 (   0.00%)           - (      -%)
        CoeffVar  1-files/sec        2.00 (   0.00%)        1.11 (  44.44%)           - (      -%)
        Max       1-files/sec        5.10 (   0.00%)        9.10 ( -78.43%)           - (      -%)
        BAmean-50 1-files/sec        4.90 (   0.00%)        8.90 ( -81.63%)           - (      -%)
        BAmean-95 1-files/sec        4.95 (   0.00%)        8.95 ( -80.81%)           - (      -%)
        BAmean-99 1-files/sec        4.95 (   0.00%)        8.95 ( -80.81%)           - (      -%)
        ");
    }

    #[test]
    fn run_names_are_cut_at_the_first_dash_but_not_before_a_release_candidate() {
        assert_eq!(split_name("5.3.0-rc3-vanilla"), ("5.3.0-rc3", "vanilla"));
        assert_eq!(split_name("5.3.0-vanilla-v2"), ("5.3.0", "vanilla-v2"));
        assert_eq!(split_name("5.3.0-rc3"), ("5.3.0-rc3", ""));
        assert_eq!(split_name("5.3.0-rcu-fix"), ("5.3.0", "rcu-fix"));
        assert_eq!(split_name("vanilla"), ("vanilla", ""));
    }
}
