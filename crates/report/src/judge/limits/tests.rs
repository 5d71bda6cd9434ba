//! What is a crossed limit, and what is not.

use super::*;
use crate::Format;
use crate::tests::golden::{runs, view};
use crate::tests::group;
use crate::views::compare;

fn limit(name: &str, condition: Condition) -> Limit {
    Limit { text: format!("{name} ..."), name: name.to_owned(), condition }
}

fn change(order: Order, amount: Amount) -> Condition {
    Condition::Compared { of: LimitOn::Change, order, amount }
}

const FALLS_5: Condition =
    Condition::Compared { of: LimitOn::Change, order: Order::Less, amount: Amount::Percent(-5.0) };

fn outcomes(base: &[Recording], new: &[Recording], limits: &[Limit]) -> Vec<(Outcome, &'static str)> {
    let groups = [group("base", base), group("new", new)];
    let judged = judge_limits(&groups, &view(), limits).unwrap();
    judged.into_iter().map(|judged| (judged.outcome, judged.why)).collect()
}

#[test]
fn one_simulated_run_a_side_is_exact() {
    let (base, new) = (runs("base", &[1000.0]), runs("new", &[940.0]));
    let on = |condition| outcomes(&base, &new, &[limit("hot_pages_cached", condition)])[0];
    let percent = |order, percent| on(change(order, Amount::Percent(percent))).0;
    assert_eq!(percent(Order::Less, -5.0), Outcome::Crossed);
    assert_eq!(percent(Order::Less, -6.0), Outcome::Kept, "it fell by exactly that");
    assert_eq!(percent(Order::LessOrEqual, -6.0), Outcome::Crossed);
    assert_eq!(percent(Order::Greater, 0.0), Outcome::Kept);
    assert_eq!(on(change(Order::Less, Amount::Plain(-59.0))).0, Outcome::Crossed);
    let value =
        |order, value| on(Condition::Compared { of: LimitOn::Value, order, amount: Amount::Plain(value) }).0;
    assert_eq!(value(Order::Less, 950.0), Outcome::Crossed);
    assert_eq!(value(Order::GreaterOrEqual, 941.0), Outcome::Kept);
    // More is better of this one.
    let went = |way, amount| on(Condition::Went(way, amount)).0;
    assert_eq!(went(Way::Worse, None), Outcome::Crossed);
    assert_eq!(went(Way::Worse, Some(Amount::Percent(5.0))), Outcome::Crossed);
    assert_eq!(went(Way::Worse, Some(Amount::Percent(7.0))), Outcome::Kept);
    assert_eq!(went(Way::Better, None), Outcome::Kept);
    assert_eq!(went(Way::Changed, Some(Amount::Plain(50.0))), Outcome::Crossed);
}

/// A limit that noise crosses would make every other build red.
#[test]
fn a_change_that_is_not_clear_from_noise_counts_as_none() {
    let base = runs("base", &[1000.0, 1300.0, 900.0, 1200.0]);
    let new = runs("new", &[1200.0, 800.0, 1000.0, 900.0]);
    let unclear = "the change is not clear from noise, and counts as none";
    assert_eq!(
        outcomes(
            &base,
            &new,
            &[
                limit("hot_pages_cached", FALLS_5),
                limit("hot_pages_cached", change(Order::Less, Amount::Percent(-50.0))),
                limit("hot_pages_cached", Condition::Went(Way::Worse, None)),
                // Who demands an improvement has not seen one.
                limit("hot_pages_cached", change(Order::Less, Amount::Percent(5.0))),
            ]
        ),
        [
            (Outcome::Unclear, unclear),
            (Outcome::Kept, ""),
            (Outcome::Unclear, unclear),
            (Outcome::Crossed, unclear)
        ]
    );
    let steady = runs("new", &[905.0, 1210.0, 803.0, 1099.0]);
    assert_eq!(outcomes(&base, &steady, &[limit("hot_pages_cached", FALLS_5)])[0], (Outcome::Crossed, ""));
}

/// The more limits, the more likely one is crossed by chance: they are one family.
#[test]
fn many_limits_are_judged_together() {
    let base = runs("base", &[1000.0, 1010.0, 1020.0, 1005.0]);
    let new = runs("new", &[930.0, 1002.0, 935.0, 925.0]); // p is about 0.03
    let one = limit("hot_pages_cached", FALLS_5);
    assert_eq!(outcomes(&base, &new, std::slice::from_ref(&one))[0].0, Outcome::Crossed);
    let many: Vec<Limit> = std::iter::repeat_n(one, 6).collect();
    assert_eq!(outcomes(&base, &new, &many)[0].0, Outcome::Unclear);
}

#[test]
fn a_run_of_a_real_kernel_is_taken_as_measured_but_decides_nothing_without_an_amount() {
    let (mut base, mut new) = (runs("base", &[1000.0]), runs("new", &[940.0]));
    base.iter_mut().chain(&mut new).for_each(|run| run.backend = "vm:6.12".into());
    let limits =
        [limit("hot_pages_cached", FALLS_5), limit("hot_pages_cached", Condition::Went(Way::Worse, None))];
    assert_eq!(
        outcomes(&base, &new, &limits),
        [
            (Outcome::Crossed, "a side has one run, taken as measured"),
            (Outcome::Unclear, "a side has one run: how much repeats vary is not known")
        ]
    );
}

/// A run that the OOM killer ended has no metrics, and passed.
#[test]
fn what_a_column_lacks_and_the_baseline_has_is_not_kept() {
    let (base, mut new) = (runs("base", &[1000.0, 1000.0]), runs("new", &[1000.0, 1000.0]));
    new[1].metrics.clear();
    let value = Condition::Compared { of: LimitOn::Value, order: Order::Less, amount: Amount::Plain(1.0) };
    let limits = [limit("hot_pages_cached", FALLS_5), limit("hot_pages_cached", value)];
    let missing = (Outcome::Missing, "runs of this column lack it");
    assert_eq!(outcomes(&base, &new, &limits), [missing, missing]);
    // The other way round there is no change to tell, but a value.
    let mut none = base.clone();
    none.iter_mut().for_each(|run| run.metrics.clear());
    let told = outcomes(&none, &base, &limits);
    assert_eq!(
        told,
        [(Outcome::Missing, "a side has no number, or too few samples for it"), (Outcome::Kept, "")]
    );
}

#[test]
fn from_nothing_any_change_is_beyond_every_percentage() {
    let with = |count: u64| {
        let mut runs = runs("run", &[1000.0]);
        runs[0].vmstat.insert("allocstall_normal".into(), count);
        runs
    };
    let rises = limit("allocstall_normal", change(Order::Greater, Amount::Percent(400.0)));
    assert_eq!(outcomes(&with(0), &with(1), std::slice::from_ref(&rises))[0].0, Outcome::Crossed);
    assert_eq!(outcomes(&with(0), &with(0), &[rises])[0].0, Outcome::Kept);
}

#[test]
fn percentiles_counters_and_cgroups_have_limits_too() {
    let (base, mut new) = (runs("base", &[1000.0]), runs("new", &[1000.0]));
    new[0].samples.insert("read_latency_us".into(), (1..=1000).map(f64::from).collect());
    new[0].vmstat.insert("pgscan_direct".into(), 700);
    new[0].memcg.insert("/A".into(), [("pgscan".to_owned(), 70)].into());
    let above = |name: &str, amount| {
        let condition = Condition::Compared { of: LimitOn::Value, order: Order::Greater, amount };
        let groups = [group("base", &base), group("new", &new)];
        judge_limits(&groups, &view(), &[limit(name, condition)]).map(|judged| judged[0].values[1])
    };
    assert_eq!(above("read_latency_us.p99", Amount::Plain(1.0)), Ok(Some(990.0)));
    assert_eq!(above("read_latency_us.p99.9", Amount::Plain(1.0)), Ok(Some(999.0)));
    assert_eq!(above("read_latency_us.max", Amount::Nanoseconds(2e6)), Ok(Some(1000.0)));
    assert_eq!(above("pgscan_direct", Amount::Plain(1.0)), Ok(Some(700.0)));
    assert_eq!(above("/A:pgscan", Amount::Plain(1.0)), Ok(Some(70.0)));
    let told = |name, amount| above(name, amount).unwrap_err().to_string();
    assert_eq!(
        told("pgscan_direct", Amount::Nanoseconds(1.0)),
        "`pgscan_direct ...`: `pgscan_direct` is a plain number, and the limit is a time"
    );
    assert_eq!(
        told("read_latency_us.p101", Amount::Plain(1.0)),
        "`read_latency_us.p101 ...`: no run has a metric, samples or counter `read_latency_us.p101`"
    );
    let worse = limit("nr_free_pages", Condition::Went(Way::Worse, None));
    new[0].vmstat.insert("nr_free_pages".into(), 7);
    let groups = [group("base", &base), group("new", &new)];
    assert_eq!(
        judge_limits(&groups, &view(), &[worse]).unwrap_err().to_string(),
        "`nr_free_pages ...`: nobody says which way of `nr_free_pages` is the better one"
    );
}

#[test]
fn the_report_shows_each_limit_with_what_came_of_it() {
    let (base, new) = (runs("base", &[1000.0, 1000.0]), runs("new", &[940.0, 940.0]));
    let groups = [group("base", &base), group("new", &new)];
    let limits = [
        Limit { text: "hot_pages_cached < -5%".into(), ..limit("hot_pages_cached", FALLS_5) },
        Limit { text: "reread_ms worse".into(), ..limit("reread_ms", Condition::Went(Way::Worse, None)) },
    ];
    let mut view = view();
    view.limits = judge_limits(&groups, &view, &limits).unwrap();
    let text = compare(&groups, &view).unwrap().render(Format::Text, 80);
    let shown = text.split_once("\nlimits\n").unwrap().1.split_once("\n\n").unwrap().0;
    insta::assert_snapshot!(shown, @"
    limit                   run  baseline  value  change  limit is
    hot_pages_cached < -5%  new      1000    940  -6 %    crossed
    reread_ms worse         new       426    429  +0.7 %  crossed
    ");
    assert_eq!(view.limits[0].told(), "`hot_pages_cached < -5%`, new: 1000 -> 940 (-6 %)");
}
