//! What a comparison may say of numbers that hardly vary, that only one side has, or that the model
//! cannot tell apart.

use super::golden::{runs, view};
use super::group;
use crate::views::compare;
use crate::{Format, Known, KnownOff, View};
use recording::Recording;
use serde_json::Value;

fn compared(base: &[Recording], new: &[Recording]) -> String {
    compare(&[group("base", base), group("new", new)], &view()).unwrap().render(Format::Text, 100)
}

/// The row of a metric without its column of names.
fn row<'a>(text: &'a str, metric: &str) -> &'a str {
    text.lines()
        .find(|line| line.trim_start().starts_with(metric))
        .unwrap_or_else(|| panic!("{metric} in\n{text}"))
}

/// A t test of three equal differences gave p = 0: "95 % sure", from one number.
#[test]
fn numbers_that_no_seed_changes_are_judged_by_size_not_by_a_test() {
    let (mut base, mut new) = (runs("base", &[126.0; 3]), runs("new", &[6400.0; 3]));
    base.iter_mut().for_each(|run| run.samples.clear());
    for run in &mut new {
        run.samples.clear();
        run.metrics.insert("reread_ms".into(), 469.6); // 0.02 % less
    }
    let text = compared(&base, &new);
    assert!(row(&text, "hot_pages_cached:").ends_with("126 -> 6400 of 6400 pages, better"));
    assert!(row(&text, "reread_ms").ends_with("<0.1 %  alike"), "{text}");
    assert!(
        text.contains("differences are the same in all 3 seeds, so judged by size, not by a test"),
        "{text}"
    );
    assert!(!text.contains('±') && !text.contains('['), "{text}");
    let json: Value = serde_json::from_str(
        &compare(&[group("base", &base), group("new", &new)], &view()).unwrap().render(Format::Json, 80),
    )
    .unwrap();
    assert_eq!(json["comparison"]["rows"][0]["p"], Value::Null);
    assert_eq!(json["comparison"]["rows"][0]["interval"], Value::Null);
}

#[test]
fn where_one_side_never_varies_the_table_says_what_was_tested() {
    let text = compared(&runs("base", &[1700.0, 1690.0, 1720.0]), &runs("new", &[6400.0; 3]));
    assert!(
        text.contains("an interval beside a value without ±: that side is the same in all 3 seeds"),
        "{text}"
    );
    assert!(text.contains("hot_pages_cached: 1703 ± 15 -> 6400 of 6400 pages, better"), "{text}");
}

/// The verdict was adjusted for many rows, the interval beside it was not: it excluded 0 beside "no
/// clear change".
#[test]
fn interval_and_verdict_of_a_row_are_of_one_family() {
    let base = runs("base", &[1000.0, 1010.0, 1020.0, 1005.0]);
    // About p = 0.03 by itself, and twice that over two rows.
    let new = runs("new", &[1012.0, 1013.0, 1040.0, 1011.0]);
    let json =
        compare(&[group("base", &base), group("new", &new)], &view()).unwrap().render(Format::Json, 80);
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["comparison"]["rows"].as_array().unwrap();
    let tested: Vec<&Value> = rows.iter().filter(|row| !row["p"].is_null()).collect();
    assert!(!tested.is_empty());
    for row in tested {
        let [low, high] = [0, 1].map(|at| row["interval"][at].as_f64().unwrap());
        let excludes_zero = low > 0.0 || high < 0.0;
        assert_eq!(excludes_zero, row["p"].as_f64().unwrap() < 0.05, "{row}");
        assert_eq!(excludes_zero, row["verdict"] != "no clear change", "{row}");
    }
}

/// A difference of a nanosecond in a mean of 697 µs was "better".
#[test]
fn a_difference_that_the_model_cannot_tell_is_said_to_be_so() {
    let (base, mut new) = (runs("base", &[1710.0]), runs("new", &[1710.0]));
    new[0].samples.insert("read_latency_us".into(), vec![81.0, 96.0, 120.0]);
    let text = compared(&base, &new);
    assert!(row(&text, "read_latency_us").ends_with("  -    below resolution"), "{text}");
    for run in new.iter_mut() {
        run.backend = "host".into();
    }
    let mut real = base.clone();
    real[0].backend = "host".into();
    assert!(row(&compared(&real, &new), "read_latency_us").ends_with("one run"), "real kernels resolve it");
}

/// It was "missing", or 0 beside the kernel's count.
#[test]
fn what_only_one_kind_of_kernel_counts_is_said_to_be_so() {
    let (mut model, mut real) = (runs("linux-6.12", &[1710.0]), runs("6.12.117", &[1650.0]));
    real[0].backend = "vm:6.12".into();
    model[0].metrics.remove("reread_ms");
    model[0].vmstat.remove("pgsteal_direct");
    real[0].samples.clear();
    let groups = [group("linux-6.12", &model), group("6.12.117", &real)];
    let text = compare(&groups, &View { all: true, ..view() }).unwrap().render(Format::Text, 100);
    assert!(
        row(&text, "reread_ms").contains("not modelled") && row(&text, "reread_ms").ends_with("  -"),
        "{text}"
    );
    assert!(row(&text, "read_latency_us").contains("not counted"), "{text}");
    assert!(row(&text, "pgsteal_direct").contains("not modelled"), "{text}");
    assert!(
        text.contains("not compared: 1 counter that the model does not keep, 0 counters that the real"),
        "{text}"
    );
}

/// One run each, but of other seeds: that is no exact difference.
#[test]
fn runs_of_different_seeds_are_no_exact_comparison() {
    let (base, mut new) = (runs("base", &[1710.0]), runs("new", &[6400.0]));
    new[0].seed = 2;
    let text = compared(&base, &new);
    assert!(row(&text, "reread_ms").ends_with("one run") && !text.contains("exact"), "{text}");
}

/// "One run a side", it said below a column of many, and "(one run)" behind its value.
#[test]
fn a_column_of_many_runs_beside_one_is_not_called_one_run() {
    let all = [("a", &[1710.0][..]), ("b", &[1650.0, 1655.0]), ("c", &[1640.0, 1660.0])];
    let all = all.map(|(label, kept)| (label, runs(label, kept)));
    let groups = all.each_ref().map(|(label, runs)| group(label, runs));
    let text = compare(&groups, &view()).unwrap().render(Format::Text, 100);
    assert!(text.contains("\na side has one run: how much repeats vary is not known"), "{text}");
    assert!(!text.contains("(one run)") && !text.contains("one run a side"), "{text}");
}

#[test]
fn json_of_a_comparison_has_its_verdicts_and_keeps_the_runs() {
    let kept = [("a", [126.0, 130.0]), ("b", [6400.0, 6390.0]), ("c", [126.0, 131.0])];
    let all = kept.map(|(label, kept)| runs(label, &kept));
    let groups: Vec<_> = kept.iter().zip(&all).map(|((label, _), runs)| group(label, runs)).collect();
    let view = View { warnings: vec!["they differ".into()], ..view() };
    let json: Value =
        serde_json::from_str(&compare(&groups, &view).unwrap().render(Format::Json, 80)).unwrap();
    assert_eq!((&json["schema"], json["runs"].as_array().unwrap().len()), (&1.into(), 6));
    assert_eq!(json["warnings"][0], "they differ");
    let comparison = &json["comparison"];
    assert_eq!(comparison["baseline"], "a");
    // Five metrics and samples, each of b and c against a.
    assert_eq!(comparison["rows"].as_array().unwrap().len(), 2 * 5);
    let row = &comparison["rows"][0];
    for (key, wanted) in
        [("metric", "hot_pages_cached"), ("unit", "pages"), ("direction", "higher"), ("label", "b")]
    {
        assert_eq!(row[key], wanted, "{key}");
    }
    assert_eq!(row["values"]["a"]["mean"], 128.0);
    assert_eq!((&row["values"]["b"]["n"], &row["change"]), (&2.into(), &6267.0.into()));
    assert!(row["interval"][0].as_f64().unwrap() < 6267.0 && row["p"].is_number(), "{row}");
    assert_eq!((&row["verdict"], &row["headline"]), (&"better".into(), &true.into()));

    let csv = compare(&groups, &view).unwrap().render(Format::Csv, 80);
    let judged: Vec<&str> =
        csv.lines().filter(|line| line.contains(",comparison,hot_pages_cached,")).collect();
    assert_eq!(judged.len(), 2 * 6, "{csv}");
    assert_eq!(judged[0], "hot-and-stream,b,,,,comparison,hot_pages_cached,change,6267");
    assert_eq!(judged[5], "hot-and-stream,b,,,,comparison,hot_pages_cached,verdict,better");
}

/// Replays on policies were told to have no counter that moved.
#[test]
fn runs_without_counters_are_not_said_to_agree_in_them() {
    let policy = |label: &str, misses: f64| {
        let mut run = Recording::new(label, "replay x.csv", "policy", "lru", 0);
        run.metrics.insert("misses".into(), misses);
        run
    };
    let (base, new) = ([policy("lru 2", 20.0)], [policy("lru 9", 7.0)]);
    let text = compare(&[group("lru 2", &base), group("lru 9", &new)], &View::default())
        .unwrap()
        .render(Format::Text, 80);
    assert!(row(&text, "misses").ends_with("-65 %  better"), "{text}");
    assert!(!text.contains("what the runs say") && !text.contains("--all"), "{text}");
}

/// The smaller of two differences is smaller than what the model is known to be off by; the other one is not named.
#[test]
fn a_difference_within_the_known_error_is_said_to_be() {
    let (base, new) = (runs("base", &[1710.0]), runs("new", &[1720.0]));
    let groups = [group("base", &base), group("new", &new)];
    let off = |p90| KnownOff { worlds: 9, median: 0.01, p90, within_10: 0.9 };
    let measures = [("hot_pages_cached", 0.05), ("reread_ms", 0.0)];
    let measures = measures.map(|(name, p90)| (name.to_owned(), off(p90))).into();
    let known = Known { is_own: true, worlds: 9, counts: Some(off(0.05)), measures, ..Known::default() };
    let known = vec![(base[0].scenario_toml.clone(), known)];
    let document = compare(&groups, &View { known, ..view() }).unwrap();
    let text = document.render(Format::Text, 120);
    assert!(
        text.contains("real kernels in 9 worlds like this: median 1.0 %, 9 in 10 within 5.0 %\n"),
        "{text}"
    );
    let smaller =
        "smaller than what the model is off by in such worlds: hot_pages_cached (9 in 10 within 5.0 %)\n";
    assert!(text.contains(smaller), "{text}");
    let json: Value = serde_json::from_str(&document.render(Format::Json, 80)).unwrap();
    let row = &json["comparison"]["rows"][0];
    assert_eq!((&row["metric"], &row["within_known_error"]), (&"hot_pages_cached".into(), &true.into()));
    assert_eq!(row["known_p90_error"], 0.05);
    assert_eq!(json["runs"][0]["known_error"]["worlds"], 9);
}
