//! Waits as the simulator and the monitors of a real kernel tell them, in the form of a recording, and
//! the metrics that are made of them.
//!
//! - `wait_seconds`: time of all tasks in waits that the allocator and reclaim impose: for a write, or for
//!   progress of others.
//! - `futile_wait_seconds`: that in those of them which ran to their timeout with nothing under way that
//!   could have ended them.
//!
//! Both are of the phases that the workload measures, not of those that prepare it. Waits for pages,
//! pauses of writers and idleness are in the recording and in neither metric: real kernels have no
//! tracepoint for them. Next: `sim::WaitKind` for what is futile.

use std::collections::BTreeMap;

use recording::{Phase, Recording, SectionTime, WITHIN, Wait, WaitEnd, WaitKind};
use workload::WorkloadSpec;

/// All tasks' time in waits that the allocator and reclaim impose.
const WAITED: &str = "wait_seconds";
/// That of them in which nothing could come.
const FUTILE: &str = "futile_wait_seconds";
/// The part of all waiting of which it may not be known whether it was futile, for the rest to be told.
const UNKNOWN_MAX: f64 = 0.01;

/// Waits of the simulator. A wait belongs to the phase in which it ended.
pub(crate) fn wait(waits: sim::Waits, phases: &[Phase]) -> Wait {
    let (within, on) = (path(&waits.within), sim::whom_name(waits.reason, waits.within.whom));
    let lengths = (0_u8..).zip(waits.lengths).filter(|&(_, count)| count > 0);
    Wait {
        phase: phase_name(phases, waits.phase),
        task: waits.name,
        wait: sim::kernel_name(waits.reason).to_owned(),
        kind: match sim::WaitKind::of(waits.reason) {
            sim::WaitKind::Idle => WaitKind::Idle,
            sim::WaitKind::Io => WaitKind::Io,
            sim::WaitKind::Writes => WaitKind::Writes,
            sim::WaitKind::Reclaim => WaitKind::Reclaim,
            sim::WaitKind::Pause => WaitKind::Pause,
            sim::WaitKind::Task => WaitKind::Task,
        },
        ended: match waits.ended {
            sim::Ended::Woken => WaitEnd::Wake,
            sim::Ended::TimedOut => WaitEnd::Timeout,
            sim::Ended::Lasts => WaitEnd::Run,
        },
        futile: Some(waits.futile),
        count: waits.count,
        requested_ns: Some(waits.requested.get()).filter(|&ns| ns > 0),
        spent_ns: waits.spent.get(),
        longest_ns: waits.longest.get(),
        lengths: lengths.map(|(class, count)| (class, u64::from(count))).collect(),
        on: if within.is_empty() { String::new() } else { on.to_owned() },
        within,
    }
}

/// Time in a section, of the simulator.
pub(crate) fn section(time: sim::SectionTime, phases: &[Phase]) -> SectionTime {
    SectionTime {
        phase: phase_name(phases, time.phase),
        task: time.name,
        within: path(&time.within),
        count: time.count,
        spent_ns: time.spent.get(),
        longest_ns: time.longest.get(),
        waited: time.waited,
    }
}

fn path(within: &sim::Within) -> String {
    within.path().collect::<Vec<_>>().join(WITHIN)
}

/// The name of the phase in which something happened when `over` phases were over; what came after the
/// last one that reports know of belongs to it.
pub(crate) fn phase_name(phases: &[Phase], over: usize) -> String {
    phases.get(over).or(phases.last()).map_or_else(String::new, |phase| phase.name.clone())
}

/// `recording` with its waits and what they come to. To be called where all waits of the kinds that
/// the metrics are about are known.
pub(crate) fn with_waits(mut recording: Recording, waits: Vec<Wait>) -> Recording {
    // A workload that the OOM killer ended has no metrics; one that it did not has its own.
    if recording.ended_by().is_none() {
        recording.metrics.extend(metrics(&waits, prepares(&recording.workload)));
    }
    recording.waited(waits)
}

/// The phases of a workload, or of a replay, that only prepare.
fn prepares(workload: &str) -> &'static [&'static str] {
    WorkloadSpec::known(workload).map_or(&["warm-up"], |spec| spec.prepares)
}

fn metrics(waits: &[Wait], prepares: &[&str]) -> BTreeMap<String, f64> {
    let seconds = |of: &dyn Fn(&Wait) -> bool| {
        let is_measured = |wait: &Wait| !prepares.contains(&&*wait.phase);
        let of_interest = waits.iter().filter(|wait| wait.kind.is_imposed() && is_measured(wait) && of(wait));
        of_interest.map(|wait| wait.spent_ns).sum::<u64>() as f64 / 1e9
    };
    let all = seconds(&|_| true);
    let mut metrics = BTreeMap::from([(WAITED.to_owned(), all)]);
    if seconds(&|wait| wait.futile.is_none()) <= UNKNOWN_MAX * all {
        metrics.insert(FUTILE.to_owned(), seconds(&|wait| wait.futile == Some(true)));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kind: WaitKind, futile: Option<bool>, millis: u64) -> Wait {
        Wait {
            task: "reader".into(),
            wait: "w".into(),
            kind,
            ended: WaitEnd::Timeout,
            futile,
            count: 1,
            spent_ns: millis * 1_000_000,
            longest_ns: millis * 1_000_000,
            ..Wait::default()
        }
    }

    #[test]
    fn metrics_are_of_waits_that_are_imposed() {
        use WaitKind::{Idle, Io, Pause, Reclaim, Writes};
        let waits = [
            made(Writes, Some(true), 20),
            made(Writes, Some(false), 30),
            made(Reclaim, Some(true), 50),
            made(Io, Some(false), 1000),
            made(Pause, Some(false), 1000),
            made(Idle, Some(false), 1000),
            Wait { phase: "written".into(), ..made(Writes, Some(true), 1000) },
        ];
        let told: Vec<_> = metrics(&waits, &["written"]).into_iter().collect();
        assert_eq!(told, [(FUTILE.to_owned(), 0.07), (WAITED.to_owned(), 0.1)]);
    }

    /// A real kernel does not tell everything: what is not known is not 0.
    #[test]
    fn where_too_much_is_not_known_there_is_no_figure() {
        let waits =
            |unknown| [made(WaitKind::Writes, Some(true), 1000), made(WaitKind::Writes, None, unknown)];
        assert_eq!(metrics(&waits(5), &[])[FUTILE], 1.0);
        assert_eq!(metrics(&waits(50), &[]).get(FUTILE), None);
        assert_eq!(metrics(&waits(50), &[])[WAITED], 1.05);
        assert_eq!(metrics(&[], &[])[FUTILE], 0.0);
    }

    #[test]
    fn a_wait_after_the_last_phase_has_the_name_that_reports_give_the_rest() {
        let phase = |name: &str| Phase { name: name.into(), at_ns: 0, vmstat: BTreeMap::new() };
        let phases = [phase("written"), phase("after written")];
        let names: Vec<String> = (0..4).map(|over| phase_name(&phases, over)).collect();
        assert_eq!(names, ["written", "after written", "after written", "after written"]);
        assert_eq!(phase_name(&[], 0), "");
    }
}
