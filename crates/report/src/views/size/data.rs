//! A size for programs: one JSON object, or one CSV record for each limit.

use serde_json::{Value, json};

use super::figures::spread;
use super::found::{Advice, OtherDisk, Practice, SampleCheck, Sized, SizedPoint, Spread, VerifiedPoint};
use super::settings::settings;
use crate::document::{Paste, Records};
use crate::judge::known::Known;

/// Everything, as one JSON object.
pub(super) fn value(sized: &Sized) -> Value {
    let points: Vec<Value> = sized.points.iter().map(point).collect();
    let verified = sized.verified.as_ref().map(|(kernel, points)| {
        json!({ "kernel": kernel, "points": points.iter().map(verified).collect::<Vec<_>>() })
    });
    json!({
        "trace": sized.trace,
        "holds": sized.holds,
        "kernel": sized.kernel,
        "machine": sized.machine,
        "seeds": sized.seeds,
        "sample_one_in": sized.one_in,
        "held_bytes": sized.held,
        "targets": sized.targets,
        "slowdown_of": sized.slowdown_of,
        "resolution": sized.resolution,
        "points": points,
        "knee": sized.knee.map(|knee| json!({
            "limit_bytes": knee.limit, "neighbour_below_bytes": knee.between.0, "neighbour_above_bytes": knee.between.1,
        })),
        "advice": sized.advice.as_ref().map(|of| advice(of, sized)),
        "sample_check": sized.checked.iter().map(checked).collect::<Vec<_>>(),
        "practices": sized.practices.iter().map(|of| practice(of, sized.advice.as_ref())).collect::<Vec<_>>(),
        "other_disks": sized.other_disks.iter().map(other_disk).collect::<Vec<_>>(),
        "verified": verified,
        "program_check": sized.program.as_ref().map(super::check::value),
        "notes": sized.notes,
        "known_error": sized.known.as_ref().map(Known::value),
        "runs": sized.runs,
        "command": sized.command,
    })
}

pub(super) fn point(point: &SizedPoint) -> Value {
    json!({
        "limit_bytes": point.limit,
        "hit_ratio": spread(point.hit_ratio),
        "refaults_per_second": spread(point.refaults),
        "in_reclaim_seconds": spread(point.in_reclaim),
        "stalled_seconds": spread(point.stalled),
        "read_bytes": spread(point.read),
        "written_bytes": spread(point.written),
        "run_seconds": spread(point.run),
        "slowdown_percent": spread(point.slowdown),
        "keeps_target": point.keeps,
        "killed": point.killed,
    })
}

/// Settings to paste.
pub(super) fn pastes(pastes: &[Paste]) -> Vec<Value> {
    let one = |paste: &Paste| json!({ "of": paste.to, "lines": paste.lines, "lacks": paste.lacks });
    pastes.iter().map(one).collect()
}

fn advice(advice: &Advice, sized: &Sized) -> Value {
    let lines = pastes(&settings(sized));
    json!({
        "memory_max_bytes": advice.max,
        "memory_high_bytes": advice.high,
        "memory_low_bytes": advice.low,
        "largest_too_small_bytes": advice.too_small,
        "headroom_percent": advice.headroom,
        "low_is_knee": advice.low_is_knee,
        "run_as_set": advice.run_as_set.as_ref().map(point),
        "settings": lines,
    })
}

fn practice(practice: &Practice, advice: Option<&Advice>) -> Value {
    json!({
        "rule": practice.rule,
        "limit_bytes": practice.limit,
        "slowdown_percent": practice.slowdown,
        "killed": practice.killed,
        "keeps_target": practice.keeps,
        "bytes_above_advice": advice.map(|advice| practice.limit as i64 - advice.max as i64),
    })
}

fn other_disk(other: &OtherDisk) -> Value {
    json!({
        "disk": other.disk,
        "memory_high_bytes": other.high,
        "slowdown_percent_at_advice": other.slowdown,
        "killed_at_advice": other.killed,
    })
}

fn checked(check: &SampleCheck) -> Value {
    json!({
        "limit_bytes": check.limit,
        "hit_ratio_of_sample": check.hit_ratio.0,
        "hit_ratio_of_whole": check.hit_ratio.1,
        "run_seconds_of_sample": check.run.0,
        "run_seconds_of_whole": check.run.1,
    })
}

fn verified(verified: &VerifiedPoint) -> Value {
    json!({ "what": verified.what, "model": point(&verified.model), "real": point(&verified.real) })
}

/// A number of a point, by name.
type Column = (&'static str, fn(&SizedPoint) -> Option<Spread>);

const COLUMNS: [Column; 8] = [
    ("hit_ratio", |point| point.hit_ratio),
    ("refaults_per_second", |point| point.refaults),
    ("in_reclaim_seconds", |point| point.in_reclaim),
    ("stalled_seconds", |point| point.stalled),
    ("read_bytes", |point| point.read),
    ("written_bytes", |point| point.written),
    ("run_seconds", |point| point.run),
    ("slowdown_percent", |point| point.slowdown),
];

/// One record for each limit; no limit is `max`, as in `memory.max`. What has several seeds has its mean, its least
/// and its most.
pub(super) fn records(sized: &Sized) -> Records {
    std::iter::once(header()).chain(sized.points.iter().map(record)).collect()
}

/// Names of the columns.
pub(super) fn header() -> Vec<String> {
    let mut header: Vec<String> = ["limit_bytes", "keeps_target", "killed"].map(str::to_owned).into();
    header.extend(
        COLUMNS.iter().flat_map(|(name, _)| ["", "_least", "_most"].map(|end| format!("{name}{end}"))),
    );
    header
}

/// Of one limit.
pub(super) fn record(point: &SizedPoint) -> Vec<String> {
    let limit = point.limit.map_or("max".to_owned(), |limit| limit.to_string());
    let keeps = point.keeps.map_or(String::new(), |keeps| keeps.to_string());
    let mut record = vec![limit, keeps, point.killed.to_string()];
    record.extend(COLUMNS.iter().flat_map(|(_, value)| match value(point) {
        Some(Spread { least, mean, most }) => [mean, least, most].map(|value| value.to_string()),
        None => Default::default(),
    }));
    record
}
