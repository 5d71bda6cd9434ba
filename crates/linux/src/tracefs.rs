//! Counts of trace events that no counter has: page blocks that change their type, reclaim waits.
//!
//! A trace instance of our own holds a histogram trigger on each event, so that nobody else's
//! tracing is touched and nothing is written into a ring buffer; the number of hits is the count. Only
//! timed waits, of which there are few, go into the ring buffer of the instance: [`crate::waits`].
//! Fallbacks to another mobility type are counted by the order of the block, as the simulator does:
//! those below a whole pageblock mix types and are the fragmenting ones. It needs root, tracefs
//! mounted and `CONFIG_HIST_TRIGGERS`; what is missing goes into the notes. Up to 6.5 an instance has
//! an inode for each file of each event, 6 to 8 MiB; a guest of our own, whose memory is what is
//! measured, uses the one that the kernel has anyway.
//!
//! Left out: mounting tracefs; all other fields of the events.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use units::Nanos;

use crate::cgroup::write_existing;
use crate::monitor::Monitor;
use crate::owner::{Processes, leftover};
use crate::parse::{self, Parser};
use crate::trace_line;
use crate::waits::{self, KERNEL_BUFFER_KIB, Wait, WaitLog};

const EXTFRAG: &str = "mm_page_alloc_extfrag";
const EVENTS: [(&str, &str); 7] = [
    ("kmem", EXTFRAG),
    ("vmscan", "mm_vmscan_direct_reclaim_begin"),
    ("vmscan", "mm_vmscan_memcg_reclaim_begin"),
    ("vmscan", "mm_vmscan_kswapd_wake"),
    ("vmscan", "mm_vmscan_wakeup_kswapd"),
    ("vmscan", "mm_vmscan_throttled"),
    ("compaction", "mm_compaction_begin"),
];

/// What to count by, and who reads the counts.
fn histogram(event: &str) -> (&'static str, Parser) {
    match event {
        EXTFRAG => ("hist:keys=fallback_order", parse::trace_extfrag),
        // Any field does; the totals are what is read.
        _ => ("hist:keys=common_type", parse::trace_hits),
    }
}

/// An instance, which is removed when dropped, or a guest's whole tracing.
pub(crate) struct Tracing {
    instance: Option<PathBuf>,
    /// Whether it was made for us.
    is_ours: bool,
    /// Whether it has histograms.
    counts: bool,
    waits: Option<WaitLog>,
}

impl Tracing {
    /// Starts counting, and samples the counts with `monitor`. Where we are `alone` on the machine,
    /// nobody else's tracing can be touched.
    pub(crate) fn start(monitor: &mut Monitor, alone: bool) -> Self {
        let Some(tracefs) = tracefs() else {
            monitor.note("trace events are not counted: tracefs is not mounted or not for us".to_owned());
            return Self::nowhere();
        };
        if alone {
            Self::start_in(tracefs.to_owned(), false, monitor)
        } else {
            Self::start_beside(tracefs, monitor)
        }
    }

    fn start_beside(tracefs: &Path, monitor: &mut Monitor) -> Self {
        let Ok(owner) = Processes::of_machine().current() else {
            monitor.note("trace events are not counted: /proc is not mounted".to_owned());
            return Self::nowhere();
        };
        let instance = tracefs.join("instances").join(owner.name(0));
        if let Err(error) = fs::create_dir(&instance) {
            monitor.note(format!("trace events are not counted: {}: {error}", instance.display()));
            return Self::nowhere();
        }
        Self::start_in(instance, true, monitor)
    }

    fn start_in(instance: PathBuf, is_ours: bool, monitor: &mut Monitor) -> Self {
        let counts = count(&instance, monitor);
        let waits = listen(&instance, monitor);
        Self { instance: Some(instance), is_ours, counts, waits }
    }

    fn nowhere() -> Self {
        Self { instance: None, is_ours: false, counts: false, waits: None }
    }

    /// Hears of the waits that ended since it was last called; to be called often, `now` being the
    /// monotonic time.
    pub(crate) fn look(&mut self, now: Nanos) {
        if let Some(waits) = &mut self.waits {
            waits.look(now.get() / 1000);
        }
    }

    /// How long the caller may do something else.
    pub(crate) fn patience(&self) -> Duration {
        self.waits.as_ref().map_or(Duration::MAX, |_| waits::PERIOD)
    }

    /// A phase of the workload is over.
    pub(crate) fn end_phase(&mut self, now: Nanos) {
        if let Some(waits) = &mut self.waits {
            waits.end_phase(now.get() / 1000);
        }
    }

    /// All waits; `None` where they were not listened to, or some were lost.
    pub(crate) fn finish(&mut self, now: Nanos, monitor: &mut Monitor) -> Option<Vec<Wait>> {
        let (waits, lost) = self.waits.take()?.finish(now.get() / 1000);
        if lost > 0 {
            monitor
                .note(format!("waits are not recorded: {lost} trace events found no room in their buffer"));
            return None;
        }
        Some(waits)
    }

    /// Where [`parse::trace_extfrag`] finds the counts of fallbacks; none where nothing is counted.
    pub(crate) fn extfrag_histogram(&self) -> Option<PathBuf> {
        let [(system, event), ..] = EVENTS;
        let instance = self.instance.as_ref().filter(|_| self.counts);
        instance.map(|instance| instance.join("events").join(system).join(event).join("hist"))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // The kernel keeps an instance whose pipe is open.
        drop(self.waits.take());
        if let Some(instance) = self.instance.as_ref().filter(|_| self.is_ours) {
            let _ = remove(instance);
        }
    }
}

/// Lets the kernel count events, where it can.
fn count(instance: &Path, monitor: &mut Monitor) -> bool {
    let directory = |system: &str, event: &str| instance.join("events").join(system).join(event);
    let (system, event) = EVENTS[0];
    if !directory(system, event).join("hist").exists() {
        monitor.note("trace events are not counted: this kernel has no CONFIG_HIST_TRIGGERS".to_owned());
        return false;
    }
    for (system, event) in EVENTS {
        let directory = directory(system, event);
        let (trigger, parser) = histogram(event);
        match write_existing(&directory.join("trigger"), trigger) {
            Ok(()) => monitor.add_trace_event(event, &directory.join("hist"), parser),
            Err(error) => monitor.note(format!("trace event {event} is not counted: {error}")),
        }
    }
    true
}

/// Lets the kernel tell of timed waits, by those of its events that it has.
fn listen(instance: &Path, monitor: &mut Monitor) -> Option<WaitLog> {
    let set = |file: &str, value: &str| write_existing(&instance.join(file), value);
    let clock = set("trace_clock", "mono").and_then(|()| set("buffer_size_kb", KERNEL_BUFFER_KIB));
    let log = clock.and_then(|()| WaitLog::open(instance));
    let log = match log {
        Ok(log) => log,
        Err(error) => {
            monitor.note(format!("waits are not recorded: {}: {error}", instance.display()));
            return None;
        }
    };
    let enable = |(system, event): (&str, &str)| set(&format!("events/{system}/{event}/enable"), "1").is_ok();
    if trace_line::EVENTS.into_iter().filter(|&event| enable(event)).count() == 0 {
        let names = trace_line::EVENTS.map(|(_, event)| event).join(", ");
        monitor.note(format!("waits are not recorded: this kernel has no event of {names}"));
        return None;
    }
    if !log.sees_writes() {
        monitor.note("which waits were futile is not known: /sys/block cannot be read".to_owned());
    }
    Some(log)
}

fn tracefs() -> Option<&'static Path> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new);
    places.into_iter().find(|path| path.join("instances").exists())
}

fn remove(instance: &Path) -> io::Result<()> {
    for (system, event) in EVENTS {
        let trigger = instance.join("events").join(system).join(event).join("trigger");
        let _ = write_existing(&trigger, &format!("!{}", histogram(event).0));
    }
    fs::remove_dir(instance)
}

/// Removes instances of runs that were killed; returns a sentence on each.
pub(crate) fn remove_dead(processes: &Processes) -> Vec<String> {
    let instances = tracefs().map(|tracefs| processes.dead(&tracefs.join("instances"))).unwrap_or_default();
    instances.iter().filter(|path| remove(path).is_ok()).map(|path| leftover(path)).collect()
}
