//! What the program itself said of a recommendation: sentences, a table, JSON.

use serde_json::{Value, json};

use super::figures::{limit, mib, places, ranged, spread};
use super::found::{Advice, CheckedPoint, ProgramCheck, Sized};
use crate::document::{Table, row};

/// Who says what is recommended.
pub(super) fn founded(sized: &Sized, advice: &Advice) -> Vec<String> {
    let target = sized.targets.join("`, nor `");
    let Some(check) = &sized.program else {
        let seeds = if sized.seeds.len() == 1 { "" } else { " with every seed" };
        let below = match advice.too_small {
            Some(below) => format!("; {} does not", mib(below)),
            None => "; nothing smaller was run".to_owned(),
        };
        let by_itself = sized.points.iter().filter_map(|point| point.limit).filter(|&limit| {
            advice.too_small.is_none_or(|too_small| limit > too_small) && limit < advice.high
        });
        return vec![match by_itself.min() {
            None => format!(
                "memory.high is the least limit run that keeps the target{seeds} (not `{target}`), as does every larger \
                 one{below}"
            ),
            Some(limit) => format!(
                "{} keeps the target by itself{seeds} (not `{target}`), as does every larger limit run{below}; with all \
                 three set memory.high is the least that does",
                mib(limit)
            ),
        }];
    };
    let below = match advice.too_small {
        Some(below) => format!("at {} it does not", mib(below)),
        None => "nothing smaller was run".to_owned(),
    };
    let mut sentences = vec![format!(
        "checked: memory.high is the least limit at which the program itself keeps the target (not `{target}`), run cold \
         in {}; {below}",
        check.place
    )];
    sentences.extend(corrected(check, advice));
    sentences
}

/// How near limits of a check lie where it ends by itself.
const NEAR: f64 = 1.08;

/// How the model's curve is to be read after that.
fn corrected(check: &ProgramCheck, advice: &Advice) -> Option<String> {
    let model = check.model?;
    let factor = advice.high as f64 / model as f64;
    let least = advice.too_small.map_or(factor, |below| below as f64 / model as f64);
    let said = mib(model);
    Some(if (0.93..NEAR).contains(&factor) {
        format!("the model said {said}, which is as near as limits were run")
    } else if factor > least * NEAR + 0.01 {
        format!(
            "the model said {said}: the limits of its curve are to be read as {least:.2} to {factor:.2} times as large"
        )
    } else {
        format!(
            "the model said {said}: read the limits of its curve as {factor:.2} times as large, as memory.low was"
        )
    })
}

/// That nothing was recommended, and why.
pub(super) fn nothing(check: &ProgramCheck) -> String {
    let last = check.points.last();
    if last.is_some_and(|point| point.killed == 0 && point.refaults == 0.0) {
        return "checked: the program itself misses the target where nothing is taken from it, too: either other work on \
                this host slows it down, or it sizes its heap by its limit, which a flag of its runtime sets"
            .to_owned();
    }
    let killed = if last.is_some_and(|point| point.killed > 0) { ", and it was killed" } else { "" };
    let largest = last.and_then(|point| point.limit).map_or_else(|| "any limit".to_owned(), mib);
    format!(
        "checked: the program itself does not keep the target at {largest}{killed}; without a limit it held {}",
        mib(check.base.peak)
    )
}

/// The program's runs beside what the model says of the same limits.
pub(super) fn table(check: &ProgramCheck, enough: Option<u64>) -> (String, Table, String) {
    let mut table = Table::new()
        .amounts(["memory.max", "run, s", "slower, %", "by the model, %"])
        .amounts(["refaults", "held, MiB"])
        .texts([""]);
    for point in check.points.iter().chain([&check.base]) {
        let seconds =
            point.seconds.map_or_else(String::new, |spread| ranged(spread, 1.0, places(spread.most)));
        let percent = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
        let predicted = if point.predicted_killed { "killed".to_owned() } else { percent(point.predicted) };
        table.push(row![
            limit(point.limit),
            seconds,
            percent(point.slowdown),
            predicted,
            format!("{:.0}", point.refaults),
            format!("{:.0}", point.peak as f64 / 1_048_576.0),
            marks(point, enough),
        ]);
    }
    let said = format!(
        "`{}`, run cold in {}, {} until one was killed",
        check.command,
        check.place,
        match check.repeats {
            1 => "once at each limit".to_owned(),
            runs => format!("{runs} times at each limit, or"),
        }
    );
    ("the program itself".to_owned(), table, said)
}

fn marks(point: &CheckedPoint, enough: Option<u64>) -> String {
    let mut marks = Vec::new();
    if point.killed > 0 {
        marks.push("killed".to_owned());
    }
    marks.extend(point.ended.filter(|_| point.killed == 0).map(|ended| ended.to_string()));
    if point.limit.is_some() && point.limit == enough {
        marks.push("enough".to_owned());
    }
    marks.join(", ")
}

/// For programs.
pub(super) fn value(check: &ProgramCheck) -> Value {
    let points: Vec<Value> = check.points.iter().map(point).collect();
    json!({
        "command": check.command,
        "place": check.place,
        "without_limit": point(&check.base),
        "points": points,
        "memory_high_bytes_of_model": check.model,
    })
}

fn point(point: &CheckedPoint) -> Value {
    json!({
        "limit_bytes": point.limit,
        "runs": point.runs,
        "run_seconds": spread(point.seconds),
        "slowdown_percent": point.slowdown,
        "slowdown_percent_of_model": point.predicted,
        "killed_in_model": point.predicted_killed,
        "refaults": point.refaults,
        "major_faults": point.major_faults,
        "held_bytes": point.peak,
        "anonymous_bytes": point.anon_peak,
        "killed": point.killed,
        "ended": point.ended.map(|ended| ended.to_string()),
        "keeps_target": point.keeps,
    })
}
