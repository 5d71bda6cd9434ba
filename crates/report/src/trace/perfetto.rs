//! What a recording tells of the whole run, for the Perfetto user interface.
//!
//! | track | what it shows |
//! |---|---|
//! | `run` | the run with its results, and its phases |
//! | `OOM kills` | whom the OOM killer took, and what the kernel printed |
//! | a thread for each task | what it did and waited for; kernel threads are those of process 2 |
//! | each disk | requests, on as many lines as there were at once |
//! | headings with counters | gauges as they were read, of events the rate between two readings |
//!
//! A recording without events knows how long a task waited in a phase and not when: then there is one slice
//! for each phase in which a task waited, with the sums. Next: `events.rs`, which draws the rest.

use std::collections::BTreeMap;

use recording::{Chunk, Names, OomKill, Phase, Recording, SectionTime, Wait};

use super::counters;
use super::events::{Canvas, Drawing};
use super::packets::{Category, Happens, Key, Kind, Packets};
use super::tasks::Tasks;

/// A trace in the format of Perfetto; times are boot time.
#[derive(Debug)]
pub(super) struct PerfettoTrace {
    packets: Packets,
    tasks: Tasks,
    drawing: Drawing,
}

impl PerfettoTrace {
    /// The trace of `recording` without its events; `has_events` if they will follow as chunks.
    pub(super) fn new(recording: &Recording, has_events: bool) -> Self {
        let mut packets = Packets::new();
        let mut tasks = Tasks::default();
        draw_run(recording, &mut packets);
        draw_kills(&recording.oom_kills, &mut packets);
        tasks.start_processes(&recording.workload, &mut packets);
        if !has_events {
            draw_sums(recording, &mut tasks, &mut packets);
        }
        let cgroups: Vec<&str> = recording.memcg.keys().map(String::as_str).collect();
        counters::draw(&recording.series, &cgroups, &mut packets);
        Self { packets, tasks, drawing: Drawing::default() }
    }

    /// Adds events, which follow those of the chunk before.
    pub(super) fn events(&mut self, chunk: &Chunk, names: &Names) {
        let canvas = &mut Canvas { names, tasks: &mut self.tasks, packets: &mut self.packets };
        for event in &chunk.events {
            self.drawing.draw(event, canvas);
        }
    }

    /// The bytes that have come since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.packets.take()
    }
}

fn draw_run(recording: &Recording, packets: &mut Packets) {
    let end = end_of(recording);
    let about = "Phases as the workload named them; the run itself holds its results and its scenario.";
    let track = packets.described("run", None, 0, Kind::Plain, about);
    let name = packets.name(&format!("{} on {}", recording.workload, recording.kernel));
    packets.event(0, track, Happens::Begin(name, Category::Run), |annotations| {
        annotations.said("label", &recording.label);
        annotations.said("backend", &recording.backend);
        annotations.said("seed", &recording.seed.to_string());
        if !recording.metrics.is_empty() {
            annotations.group("metrics", |metrics| {
                for (name, &value) in &recording.metrics {
                    metrics.number(name, value);
                }
            });
        }
        for (number, note) in recording.notes.iter().enumerate() {
            annotations.said(&format!("note {}", number + 1), note);
        }
        annotations.said("scenario", &recording.scenario_toml);
    });
    let mut from = 0;
    for Phase { name, at_ns, .. } in &recording.phases_to_the_end() {
        let name = packets.name(name);
        packets.event(from, track, Happens::Begin(name, Category::Run), |_| {});
        packets.event((*at_ns).max(from), track, Happens::End, |_| {});
        from = (*at_ns).max(from);
    }
    packets.event(end.max(from), track, Happens::End, |_| {});
}

fn draw_kills(kills: &[OomKill], packets: &mut Packets) {
    if kills.is_empty() {
        return;
    }
    let track = packets.track("OOM kills", None, 3, Kind::Plain);
    for kill in kills {
        let name =
            packets.name(if kill.panicked { "panic: System is deadlocked on memory" } else { "oom_kill" });
        let (task, cgroup) = (packets.text(&kill.task), packets.text(&kill.cgroup));
        packets.event(kill.at_ns, track, Happens::Instant(name, Category::Oom), |annotations| {
            annotations.text(Key::Task, task);
            annotations.text(Key::Cgroup, cgroup);
            annotations.said("by", if kill.by_limit { "the cgroup's limit" } else { "the machine's memory" });
            if let Some(pages) = kill.anon_pages {
                annotations.int(Key::Pages, i64::try_from(pages).unwrap_or(i64::MAX));
            }
            for (name, lines) in [("why", &kill.why), ("memory", &kill.memory)] {
                if !lines.is_empty() {
                    annotations.said(name, &lines.join("\n"));
                }
            }
        });
    }
}

/// What a task waited and did in one phase.
#[derive(Default)]
struct Sums<'a> {
    waits: Vec<&'a Wait>,
    sections: Vec<&'a SectionTime>,
}

fn draw_sums(recording: &Recording, tasks: &mut Tasks, packets: &mut Packets) {
    let phases = spans(recording);
    let mut sums: BTreeMap<(&str, usize), Sums<'_>> = BTreeMap::new();
    let place = |name: &str| phases.iter().position(|(phase, ..)| phase == name).unwrap_or(phases.len() - 1);
    for wait in &recording.waits {
        sums.entry((&wait.task, place(&wait.phase))).or_default().waits.push(wait);
    }
    for time in &recording.sections {
        sums.entry((&time.task, place(&time.phase))).or_default().sections.push(time);
    }
    for ((task, phase), Sums { waits, sections }) in sums {
        let track = tasks.track(task, packets);
        let (phase, from, to) = &phases[phase];
        let within = if phase.is_empty() { "the run" } else { phase };
        let name = packets.name(&format!("sums of waits in {within}"));
        packets.event(*from, track, Happens::Begin(name, Category::Wait), |annotations| {
            for wait in waits {
                let within = if wait.within.is_empty() { "" } else { " in " };
                annotations.group(&format!("{}{within}{}", wait.wait, wait.within), |one| {
                    one.int(Key::Count, signed(wait.count));
                    one.int(Key::Spent, signed(wait.spent_ns));
                    one.int(Key::Longest, signed(wait.longest_ns));
                    one.said("kind", &wait.kind.to_string());
                    one.said("ended_by", &wait.ended.to_string());
                    if let Some(futile) = wait.futile {
                        one.int(Key::Futile, i64::from(futile));
                    }
                    if !wait.on.is_empty() {
                        one.said("on", &wait.on);
                    }
                });
            }
            for time in sections {
                annotations.group(&format!("time in {}", time.within), |one| {
                    one.int(Key::Count, signed(time.count));
                    one.int(Key::Spent, signed(time.spent_ns));
                    one.int(Key::Longest, signed(time.longest_ns));
                });
            }
        });
        packets.event(*to, track, Happens::End, |_| {});
    }
}

/// Phases with their begin and end, and behind them the whole run under no name.
fn spans(recording: &Recording) -> Vec<(String, u64, u64)> {
    let mut spans = Vec::new();
    let mut from = 0;
    for Phase { name, at_ns, .. } in recording.phases_to_the_end() {
        let to = at_ns.max(from);
        spans.push((name, from, to));
        from = to;
    }
    spans.push((String::new(), 0, end_of(recording).max(from)));
    spans
}

/// When the run ended, or was last read.
fn end_of(recording: &Recording) -> u64 {
    let last = recording.series.times_ns().last().unwrap_or(0);
    recording.duration_ns().unwrap_or(0).max(last)
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
