//! What runs at one limit came to, and whether they keep the target.

use recording::Recording;
use report::{Group, Limit, SizedPoint, Spread};
use units::Bytes;

use crate::error::LabError;
use crate::show::fail_if::judge;
use crate::show::view::view;

/// The phase in which everything counts.
const PHASE: &str = "replayed";
/// Parts of the kernel in which a task reclaims by itself.
const RECLAIM: [&str; 3] = ["limit reclaim", "allocation stall", "allocation pause"];

/// What must not be so at a limit that is enough.
#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    pub(super) limits: Vec<Limit>,
    /// The time that a slowdown is of.
    pub(super) slowdown_of: String,
}

impl Target {
    /// Whether each of `runs` keeps it beside the run of its seed without a limit.
    ///
    /// # Errors
    /// It is on what no run has.
    pub(super) fn is_kept(&self, base: &[Recording], runs: &[Recording]) -> Result<bool, LabError> {
        for (base, run) in base.iter().zip(runs) {
            if run.metrics.is_empty() || !run.oom_kills.is_empty() {
                return Ok(false); // What was killed did less, and may be done sooner for it.
            }
            let group = |label: &str, recording| Group {
                label: label.to_owned(),
                command: String::new(),
                recordings: vec![recording],
            };
            let groups = [group("no limit", base), group("limit", run)];
            let judged = judge(&groups, &view([base, run], true, Vec::new()), &self.limits)?;
            if judged.iter().any(|judged| judged.outcome.fails()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Pages that hit, of all asked for.
pub(super) fn hit_ratio(run: &Recording) -> Option<f64> {
    run.metrics.get("page_miss_ratio").map(|misses| 1.0 - misses)
}

/// One point of the curve.
///
/// # Errors
/// As [`Target::is_kept`].
pub(super) fn point(
    limit: Option<Bytes>,
    base: &[Recording],
    runs: &[Recording],
    target: &Target,
) -> Result<SizedPoint, LabError> {
    let of = |value: &dyn Fn(&Recording) -> Option<f64>| Spread::of(runs.iter().filter_map(value));
    let metric = |name: &'static str| move |run: &Recording| run.metrics.get(name).copied();
    // What was killed did less, and is not slower or faster for it.
    let slower = |(base, run): (&Recording, &Recording)| {
        if !run.oom_kills.is_empty() {
            return None;
        }
        let (base, run) = (base.metrics.get(&target.slowdown_of)?, run.metrics.get(&target.slowdown_of)?);
        (*base > 0.0).then(|| 100.0 * (run / base - 1.0))
    };
    let refaults =
        |run: &Recording| Some(run.metrics.get("refaults")? / run.metrics.get("replay_seconds")?.max(1e-9));
    let keeps = if target.limits.is_empty() { None } else { Some(target.is_kept(base, runs)?) };
    Ok(SizedPoint {
        limit: limit.map(Bytes::get),
        hit_ratio: of(&hit_ratio),
        refaults: of(&refaults),
        in_reclaim: of(&in_reclaim),
        stalled: of(&metric("stalled_seconds")),
        read: of(&|run| kib(run, "pgpgin")),
        written: of(&|run| kib(run, "pgpgout")),
        run: of(&metric("replay_seconds")),
        slowdown: Spread::of(base.iter().zip(runs).filter_map(slower)),
        keeps,
        killed: runs.iter().filter(|run| !run.oom_kills.is_empty()).count(),
    })
}

/// Bytes by a counter of KiB, of what counts.
fn kib(run: &Recording, counter: &str) -> Option<f64> {
    let phase = run.phases.iter().find(|phase| phase.name == PHASE)?;
    phase.vmstat.get(counter).map(|&kib| 1024.0 * kib as f64)
}

/// Seconds; a real kernel does not tell.
fn in_reclaim(run: &Recording) -> Option<f64> {
    if !run.is_simulated() || run.metrics.is_empty() {
        return None;
    }
    let is_reclaim = |within: &str| RECLAIM.contains(&within);
    let of = run.sections.iter().filter(|section| section.phase == PHASE && is_reclaim(&section.within));
    Some(of.map(|section| section.spent_ns as f64 / 1e9).sum())
}
