//! Events as the text of a kernel's `trace` file, for programs that read ftrace.
//!
//! A line is written as `trace_print_context` in `kernel/trace/trace_output.c` does, with the marks of
//! `trace_print_lat_fmt`, and an event as its `TP_printk` does ([`super::tracepoints`]). What lasted is written when
//! it was over, as a kernel does. Three things are ours: threads are numbered here, each file gets an inode
//! number when it first comes up, told in a comment, and comments at the head say what the recording does not hold.
//!
//! Left out: counters, which have no tracepoints, and all that a recording knows without events.

use std::fmt::Write;

use recording::{Chunk, Event, Names, Recording};

use super::line::{About, comm, device, one_line};
use super::threads::{ByName, Threads};
use super::tracepoints::Tracepoint;

/// What stands above the events of a kernel's `trace` file (`print_func_help_header_irq`).
const HEAD: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// What a reader has to know of what stands below.
const TOLD: &str = "\
# Formats are those of Linux 6.12. What the recording does not hold is 0, or `unknown` where a word stands:
# CPUs, pfn, page, gfp_flags, timeouts, and of reclaim nr_dirty to nr_unmap_fail and what shrinkers were to scan.
# folio is no address: its first half is the inode number, the second the place in the file in pages.
# Names without a tracepoint are pagetide's own: wait, page_*, memcg_low, watermark_boost.
";

/// The text of a run's events.
#[derive(Debug)]
pub(super) struct FtraceText {
    out: String,
    printer: Printer,
    /// By name: `comm-pid` as it begins a line.
    tasks: ByName<String>,
}

impl FtraceText {
    /// The head of the text of `recording`.
    pub(super) fn new(recording: &Recording) -> Self {
        let Recording { workload, kernel, backend, seed, .. } = recording;
        let run = one_line(&format!("# {workload} on {kernel} ({backend}), seed {seed}, by pagetide"));
        let (printer, tasks) = (Printer::new(recording), ByName::default());
        Self { out: format!("{HEAD}{run}\n{TOLD}"), printer, tasks }
    }

    /// Adds events, which follow those of the chunk before.
    pub(super) fn events(&mut self, chunk: &Chunk, names: &Names) {
        for event in &chunk.events {
            if let Some((file, inode)) = self.printer.new_file(event, names) {
                writeln!(self.out, "# inode {inode:x} is {}", one_line(file))
                    .expect("memory takes every write");
            }
            for event in self.printer.folios(event, names) {
                self.context(&event, names);
                self.printer.print(&event, names, &mut self.out);
                self.out.push('\n');
            }
        }
    }

    /// The bytes that have come since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }

    /// Task, CPU, marks and time of an event.
    fn context(&mut self, event: &Event, names: &Names) {
        let Self { printer, tasks, out } = self;
        // What no task did is done on top of the idle one, in an interrupt.
        let (task, marks) = match event.task {
            None => ("          <idle>-0      ", "d.h.."),
            Some(task) => {
                let text = tasks.place(task).get_or_insert_with(|| {
                    let name = names.text(task);
                    format!("{:>16}-{:<7}", comm(name), printer.threads.number(name).tid)
                });
                (text.as_str(), ".....")
            }
        };
        let micros = event.time_ns.saturating_add(event.duration_ns) / 1000;
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        write!(out, "{task} [000] {marks} {seconds:5}.{micros:06}: ").expect("memory takes every write");
    }
}

/// Events as a kernel prints them, with numbers for what a recording has names for.
#[derive(Debug)]
pub(super) struct Printer {
    pub(super) threads: Threads,
    tracepoints: ByName<Tracepoint>,
    /// By name: the inode number of the file; 0 for a disk.
    inodes: ByName<u64>,
    files: u64,
    /// Whom the OOM killer took, and when: events have no name of a victim.
    victims: Vec<(u64, String)>,
}

impl Printer {
    pub(super) fn new(recording: &Recording) -> Self {
        Self {
            threads: Threads::default(),
            tracepoints: ByName::default(),
            inodes: ByName::default(),
            files: 0,
            victims: recording.oom_kills.iter().map(|kill| (kill.at_ns, kill.task.clone())).collect(),
        }
    }

    /// The file of `event` with its inode number, if it has not come up before.
    pub(super) fn new_file<'a>(&mut self, event: &Event, names: &'a Names) -> Option<(&'a str, u64)> {
        let file = event.file?;
        let (inode, name) = (self.inodes.place(file), names.text(file));
        if inode.is_some() {
            return None;
        }
        if device(name).is_some() {
            *inode = Some(0);
            return None;
        }
        self.files += 1;
        *inode = Some(self.files);
        Some((name, self.files))
    }

    /// The event, once for each folio where a kernel's tracepoint is hit for each: a recording has runs of pages.
    pub(super) fn folios(&mut self, event: &Event, names: &Names) -> impl Iterator<Item = Event> + use<> {
        let event = *event;
        let folio = 1_u32 << event.order.unwrap_or(0).min(16);
        let count = match self.tracepoint(&event, names) {
            Tracepoint::Filemap | Tracepoint::LruInsertion | Tracepoint::LruActivate => {
                event.pages.div_ceil(folio).max(1)
            }
            _ => 1,
        };
        (0..count).map(move |number| {
            let before = u64::from(number) * u64::from(folio);
            let page = event.page.map(|page| page.saturating_add(before));
            Event { page, pages: if count > 1 { folio } else { event.pages }, ..event }
        })
    }

    fn tracepoint(&mut self, event: &Event, names: &Names) -> Tracepoint {
        let of = || Tracepoint::of(names.text(event.event));
        *self.tracepoints.place(event.event).get_or_insert_with(of)
    }

    /// `NAME: FIELDS`.
    pub(super) fn print(&mut self, event: &Event, names: &Names, out: &mut String) {
        let tracepoint = self.tracepoint(event, names);
        let file = event.file.map(|file| (names.text(file), self.inodes.place(file).unwrap_or(0)));
        let about = About { event, names, file };
        let written = match tracepoint {
            Tracepoint::MarkVictim => self.victim(event, out),
            _ => tracepoint.write(&about, out),
        };
        written.expect("memory takes every write");
    }

    fn victim(&mut self, event: &Event, out: &mut String) -> std::fmt::Result {
        let victim = self.victims.iter().find(|(at, _)| *at == event.time_ns);
        let victim = victim.map_or("unknown", |(_, task)| task);
        let tid = self.threads.number(victim).tid;
        let kb = event.value.unwrap_or(0).saturating_mul(4);
        let comm = comm(victim);
        write!(
            out,
            "mark_victim: pid={tid} comm={comm} total-vm={kb}kB anon-rss={kb}kB file-rss:0kB shmem-rss:0kB \
             uid=0 pgtables=0kB oom_score_adj=0"
        )
    }
}
