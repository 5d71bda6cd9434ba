//! What a size says: sentences and tables.

use std::iter;

use super::check;
use super::figures::{limit, mib, places, ranged};
use super::found::{Advice, Sized, SizedPoint, Spread};
use crate::document::number::plain;
use crate::document::{Cell, Table, row};

pub(super) fn title(sized: &Sized) -> String {
    let part = sized.one_in.map_or_else(String::new, |one_in| format!(", a sample of 1/{one_in}"));
    let seeds = match &sized.seeds[..] {
        [only] => format!("seed {only}"),
        [first, .., last] => format!("seeds {first} to {last}"),
        [] => "no seed".to_owned(),
    };
    let runs = if sized.runs == 1 { "run" } else { "runs" };
    format!("{} on {} ({}{part}, {seeds}), {} {runs}", sized.trace, sized.kernel, sized.machine, sized.runs)
}

/// What to set, and sentences that define and found it.
pub(super) fn advised(sized: &Sized) -> (String, Vec<String>) {
    let Some(advice) = &sized.advice else {
        let why = match (&sized.program, sized.targets.is_empty()) {
            (Some(check), false) => check::nothing(check),
            (_, true) => "no target was set".to_owned(),
            (None, false) => {
                format!("no limit that was run keeps the target: not `{}`", sized.targets.join("`, nor `"))
            }
        };
        let patched =
            sized.patches.iter().map(|patch| format!("no patch of `{patch}`: nothing is recommended"));
        return ("no recommendation".to_owned(), iter::once(why).chain(patched).collect());
    };
    let Advice { high, max, low, headroom, .. } = advice;
    let heading = format!("memory.high {}, memory.max {}, memory.low {}", mib(*high), mib(*max), mib(*low));
    let worth = "of what is below it, each MiB is worth more hits than one on average";
    let is_moved = sized.knee.is_some_and(|knee| knee.limit != *low);
    let low_said = match (advice.low_is_knee, is_moved) {
        (true, false) => format!("memory.low is the knee of the curve: {worth}"),
        (true, true) => format!("memory.low is the knee of the curve, moved as memory.high was: {worth}"),
        (false, _) => "memory.low is memory.high: the curve has no knee below it".to_owned(),
    };
    let mut sentences = check::founded(sized, advice);
    sentences.extend([
        format!(
            "memory.max is {headroom} % above it (--headroom): room for reclaim, and for what the trace does not show; \
             a group that uses all of it is killed"
        ),
        low_said,
    ]);
    if let Some(run) = &advice.run_as_set {
        let kept = if run.keeps == Some(true) { "keeps" } else { "does not keep" };
        let slower = run
            .slowdown
            .map_or("killed".to_owned(), |slowdown| format!("{} % slower", ranged(slowdown, 1.0, 1)));
        let hits =
            run.hit_ratio.map_or_else(String::new, |hits| format!(", {} % hits", ranged(hits, 100.0, 1)));
        sentences
            .push(format!("all three set at once were run, too: that {kept} the target ({slower}{hits})"));
    }
    if sized.program.is_none() && sized.verified.is_none() {
        sentences.push("not checked: the model alone says so (`--verify` checks it)".to_owned());
    }
    (heading, sentences)
}

const MIB: f64 = 1.0 / 1_048_576.0;

pub(super) fn curve(sized: &Sized) -> Table {
    let mut table = headed(&["limit"]);
    for point in &sized.points {
        table.push([limit(point.limit)].into_iter().chain(cells(point)).chain(row![marks(sized, point)]));
    }
    table
}

/// A table whose first columns name the row.
fn headed(first: &[&str]) -> Table {
    let numbers =
        ["hits, %", "refaults per s", "in reclaim, s", "read, MiB", "written, MiB", "run, s", "slower, %"];
    Table::new().amounts(first).amounts(numbers).texts([""])
}

fn cells(point: &SizedPoint) -> [Cell; 7] {
    let cell = |spread: Option<Spread>, factor: f64, digits: Option<usize>| {
        spread
            .map(|spread| ranged(spread, factor, digits.unwrap_or_else(|| places(spread.most * factor))))
            .into()
    };
    [
        cell(point.hit_ratio, 100.0, Some(2)),
        cell(point.refaults, 1.0, Some(0)),
        cell(point.in_reclaim, 1.0, None),
        cell(point.read, MIB, Some(0)),
        cell(point.written, MIB, Some(0)),
        cell(point.run, 1.0, None),
        cell(point.slowdown, 1.0, Some(1)),
    ]
}

/// What there is to say of a row.
fn marks(sized: &Sized, point: &SizedPoint) -> String {
    let mut marks = Vec::new();
    match (point.killed, sized.seeds.len()) {
        (0, _) => {}
        (_, 1) => marks.push("killed".to_owned()),
        (killed, seeds) => marks.push(format!("{killed} of {seeds} killed")),
    }
    if point.limit.is_some() && sized.knee.map(|knee| knee.limit) == point.limit {
        marks.push("knee".to_owned());
    }
    if point.limit.is_some() && sized.advice.as_ref().map(|advice| advice.high) == point.limit {
        marks.push("enough".to_owned());
    }
    marks.join(", ")
}

pub(super) fn knee(sized: &Sized) -> String {
    let defined =
        "the limit highest above the straight line from the first to the last, memory and hits both linear";
    let Some(knee) = sized.knee else {
        return format!("knee: none; no limit stands clearly above the line ({defined})");
    };
    let between = match knee.between {
        (Some(below), Some(above)) => {
            format!(", between {} and {}, which were run, too", mib(below), mib(above))
        }
        (Some(below), None) => format!(", the largest; the next below is {}", mib(below)),
        (None, Some(above)) => format!(", the smallest; the next above is {}", mib(above)),
        (None, None) => String::new(),
    };
    format!("knee: {}{between} ({defined})", mib(knee.limit))
}

/// What lies between limits.
pub(super) fn between(sized: &Sized) -> Option<String> {
    let resolution = sized.resolution?;
    Some(format!(
        "limits were run {} % apart beside the knee and where the target begins to be kept, and further apart where \
         the curve is flatter; between two of them nothing is known but that a curve rises",
        plain(100.0 * resolution)
    ))
}

/// Tables beside the curve: heading, table, what they say.
pub(super) fn extra(sized: &Sized) -> Vec<(String, Table, String)> {
    let mut extra = Vec::new();
    if !sized.checked.is_empty() {
        let mut table = Table::new().amounts([
            "limit",
            "hits of the sample, %",
            "hits of the whole, %",
            "points off",
            "run by the sample, s",
            "run of the whole, s",
        ]);
        for check in &sized.checked {
            let (sample, whole) = check.hit_ratio;
            table.push(row![
                limit(check.limit),
                format!("{:.2}", 100.0 * sample),
                format!("{:.2}", 100.0 * whole),
                format!("{:+.2}", 100.0 * (sample - whole)),
                format!("{:.3}", check.run.0),
                format!("{:.3}", check.run.1),
            ]);
        }
        extra.push(("the sample beside the whole trace, at the same limits".to_owned(), table, off(sized)));
    }
    if !sized.practices.is_empty() {
        extra.push(practices(sized));
    }
    if !sized.other_disks.is_empty() {
        let mut table = Table::new().texts(["disk"]).amounts(["enough", "slower at what is recommended, %"]);
        for other in &sized.other_disks {
            let slower = match (other.killed, other.slowdown) {
                (true, _) => "killed".to_owned(),
                (false, slowdown) => slowdown.map_or_else(String::new, |slowdown| format!("{slowdown:.1}")),
            };
            let enough = other.high.map_or("more than was run".to_owned(), mib);
            table.push(row![&other.disk, enough, slower]);
        }
        let said =
            "by the model, at the limits of the curve: how fast the disk is decides what a limit costs";
        extra.push(("on another disk".to_owned(), table, said.to_owned()));
    }
    if let Some(check) = &sized.program {
        extra.push(check::table(check, sized.advice.as_ref().map(|advice| advice.high)));
    }
    if let Some((kernel, points)) = sized.verified.as_ref().filter(|(_, points)| !points.is_empty()) {
        let mut table = headed(&["point", "limit", "by"]).named_by(3);
        for point in points {
            for (by, measured) in [("model", &point.model), (kernel.as_str(), &point.real)] {
                let killed = if measured.killed > 0 { "killed" } else { "" };
                let named = row![&point.what, limit(measured.limit), by];
                table.push(named.into_iter().chain(cells(measured)).chain(row![killed]));
            }
        }
        let said = "a real kernel does not tell its time in reclaim; run times compare a modelled disk with a real one";
        extra.push((format!("the model beside {kernel}"), table, said.to_owned()));
    }
    extra
}

/// What people set today, beside what is recommended.
fn practices(sized: &Sized) -> (String, Table, String) {
    let mut table =
        Table::new().texts(["rule"]).amounts(["limit", "slower, %", "beside memory.max"]).texts([""]);
    for practice in &sized.practices {
        let slower = practice.slowdown.map_or_else(String::new, |slowdown| format!("{slowdown:.1}"));
        let beside = sized.advice.as_ref().map_or_else(String::new, |advice| {
            let sign = if practice.limit < advice.max { '-' } else { '+' };
            format!("{sign}{}", mib(practice.limit.abs_diff(advice.max)))
        });
        let mark = match (practice.killed, practice.keeps) {
            (true, _) => "killed",
            (false, Some(false)) => "misses the target",
            (false, _) => "",
        };
        table.push(row![&practice.rule, limit(Some(practice.limit)), slower, beside, mark]);
    }
    let said = "by the model, of this run alone: their tools look at weeks";
    ("what people set today, on this curve".to_owned(), table, said.to_owned())
}

/// How far off the sample is.
fn off(sized: &Sized) -> String {
    let points = sized.checked.iter().map(|check| 100.0 * (check.hit_ratio.0 - check.hit_ratio.1).abs());
    let (most, sum, count) = points.fold((0.0, 0.0, 0), |(most, sum, count): (f64, f64, u32), off| {
        (most.max(off), sum + off, count + 1)
    });
    format!(
        "the sample is off by {most:.2} points of hits at most, {:.2} on average",
        sum / f64::from(count.max(1))
    )
}

pub(super) fn rests_on(sized: &Sized) -> Vec<String> {
    let mut notes = vec![format!("Without a limit it keeps {} in memory.", mib(sized.held))];
    notes.extend(sized.notes.iter().cloned());
    notes.extend(sized.known.as_ref().map(|known| sentence(&known.told())));
    notes
}

/// A line as a sentence.
fn sentence(line: &str) -> String {
    let mut rest = line.chars();
    let first = rest.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(rest).collect::<String>() + "."
}
