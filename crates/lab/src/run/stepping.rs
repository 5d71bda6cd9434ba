//! A simulated run that is stopped to look at it, for teaching and research: the state as the kernel's files show it.
//!
//! The run is that of [`crate::simulate()`]: gone on with to its end it leaves the same recording. Looking changes
//! nothing. Left out: real kernels, which do not wait to be looked at; events, which [`crate::simulate_with_events`]
//! hands out.

mod look;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mm::base::frame::{FrameState, PageFlags};
use mm::base::ids::MemcgId;
use mm::base::layout::{ZoneId, ZoneKind};
use mm::lru::lists::LruList;
use mm::lru::mglru::state::Kind;
use mm::pages::tree::Slot;
use recording::Recording;
use report::{Cell, List};
use sim::run::{SimError, SimRun};
use sim::{Doing, Progress, SimMemory};
use units::{Nanos, Pfn, parse_nanos};
use workload::Scenario;
use workload::scenario::{Backend, ScenarioProblem};

use crate::error::LabError;
use crate::resolve::zones::{self, zone_row};
use crate::run::clock::Clock;
use crate::run::simulate::{completed, failure, panic_message, plan, violation};

pub use look::{FileLook, FrameLook, Home, ListLook, Look, Use, ZoneLook};

/// A simulated run between two events.
pub struct Stepping {
    /// None when a mechanism's invariant broke: what is left is no state of a kernel.
    run: Option<sim::run::Stepping>,
    identity: Recording,
    /// Time on a clock that the run itself took; none where there is no clock.
    took: Option<Duration>,
}

/// A page of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageLook {
    /// There is no file of that name so far.
    NoFile,
    /// Neither the page nor a memory of it is there.
    Absent,
    /// It was evicted, and a shadow says when.
    Evicted,
    /// It is in the page cache.
    Cached(CachedPage),
}

/// What is known of a page in the page cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedPage {
    /// The frame that heads its folio.
    pub pfn: u64,
    /// Pages of its folio.
    pub pages: u32,
    /// The zone of the frame, by the kernel's name.
    pub zone: &'static str,
    /// Path of the cgroup that it is charged to; empty for the root.
    pub cgroup: String,
    /// Where the frame is: `lru`, `batch` on its way there, `isolated` by reclaim or compaction.
    pub state: &'static str,
    /// The list that it is on or belongs on, by the name in `/proc/vmstat` without `nr_`.
    pub list: &'static str,
    /// Its flags, by the names of `page-types`.
    pub flags: Vec<&'static str>,
}

const LRU_COLUMNS: [&str; 4] = ["node", "list", "generation", "pages"];
const TASK_COLUMNS: [&str; 4] = ["task", "doing", "what", "since_ns"];

/// Flags that a kernel shows, too.
const FLAGS: [(PageFlags, &str); 12] = [
    (PageFlags::LOCKED, "locked"),
    (PageFlags::REFERENCED, "referenced"),
    (PageFlags::DIRTY, "dirty"),
    (PageFlags::ACTIVE, "active"),
    (PageFlags::WORKINGSET, "workingset"),
    (PageFlags::WRITEBACK, "writeback"),
    (PageFlags::RECLAIM, "reclaim"),
    (PageFlags::SWAP_BACKED, "swapbacked"),
    (PageFlags::UNEVICTABLE, "unevictable"),
    (PageFlags::MLOCKED, "mlocked"),
    (PageFlags::MAPPED, "mmap"),
    (PageFlags::READAHEAD, "readahead"),
];

/// Reads a time of a run: `2 s`, `150ms`.
///
/// # Errors
/// It is none.
pub fn parse_moment(text: &str) -> Result<Nanos, LabError> {
    let joined: String = text.split_whitespace().collect();
    let wrong = |source| ScenarioProblem::NotADuration { key: "time", source };
    Ok(parse_nanos(&joined).map_err(wrong)?)
}

impl Stepping {
    /// Boots the machine of `scenario`; its workload has done nothing yet. `stop` ends what runs soon, and `progress`
    /// is called every few thousand events.
    ///
    /// # Errors
    /// A scenario for a real kernel, or a machine that cannot be built.
    pub fn begin(
        scenario: &Scenario,
        label: &str,
        stop: &Arc<AtomicBool>,
        progress: impl FnMut(Progress) + 'static,
    ) -> Result<Self, LabError> {
        if scenario.backend != Backend::Sim {
            let backend = &scenario.backend;
            return Err(LabError::refused(
                format!("`{backend}` cannot be stopped and looked at: only simulated runs are stepped"),
                "run it on `sim`",
            ));
        }
        let (spec, identity): (SimRun, Recording) = plan(scenario, label)?;
        let clock = Clock::begin();
        let run = sim::run::Stepping::begin(&spec, Arc::clone(stop), progress)
            .map_err(|error| failure(identity.clone(), &error))?;
        Ok(Self { run: Some(run), identity, took: clock.took() })
    }

    /// Goes on up to `time` of simulated time, or to the end of the workload.
    ///
    /// # Errors
    /// [`LabError::Interrupted`] when the stop flag was set, after which one can go on; an invariant is violated.
    pub fn run_until(&mut self, time: Nanos) -> Result<(), LabError> {
        self.advance(|run| run.run_until(time).map_err(SimError::from))
    }

    /// Goes on by so many events, or to the end of the workload.
    ///
    /// # Errors
    /// As [`Stepping::run_until`].
    pub fn step(&mut self, events: u64) -> Result<(), LabError> {
        self.advance(|run| (0..events).try_for_each(|_| run.step()).map_err(SimError::from))
    }

    fn advance(
        &mut self,
        go: impl FnOnce(&mut sim::run::Stepping) -> Result<(), SimError>,
    ) -> Result<(), LabError> {
        let Some(run) = self.run.as_mut() else { return Err(self.broken()) };
        let clock = Clock::begin();
        let ended = catch_unwind(AssertUnwindSafe(|| go(run)));
        self.took = sum(self.took, &clock);
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failure(self.identity.clone(), &error)),
            Err(panic) => {
                self.run = None;
                Err(violation(self.identity.clone(), panic_message(panic.as_ref())))
            }
        }
    }

    fn broken(&self) -> LabError {
        let message = "the run has no state since an invariant was violated".to_owned();
        violation(self.identity.clone(), message)
    }

    fn run(&self) -> Result<&sim::run::Stepping, LabError> {
        self.run.as_ref().ok_or_else(|| self.broken())
    }

    /// Whether the workload has ended.
    pub fn is_over(&self) -> bool {
        self.run.as_ref().is_none_or(sim::run::Stepping::is_over)
    }

    /// Simulated time of the last event.
    ///
    /// # Errors
    /// An invariant was violated before.
    pub fn now(&self) -> Result<Nanos, LabError> {
        Ok(self.run()?.now())
    }

    /// Events so far.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn events(&self) -> Result<u64, LabError> {
        Ok(self.run()?.events())
    }

    /// `/proc/vmstat`: events since boot, gauges as they are.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn vmstat(&self) -> Result<BTreeMap<String, u64>, LabError> {
        Ok(self.run()?.vmstat())
    }

    /// `memory.stat` and the other files of every cgroup but the root, by path. Reading does not flush them here.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn memcg(&self) -> Result<BTreeMap<String, BTreeMap<String, u64>>, LabError> {
        Ok(self.run()?.memcg())
    }

    /// The zones as `/proc/zoneinfo` has them, in pages.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn zones(&self) -> Result<List, LabError> {
        let mut list = zones::empty();
        self.run()?.memory(|memory| {
            for (index, zone) in (0..).zip(memory.core.alloc.zones()) {
                list.push(zone_row(memory, ZoneId(index), zone));
            }
        });
        Ok(list)
    }

    /// The pages of the cgroup at `path` on each of its lists or generations, node by node.
    ///
    /// # Errors
    /// As [`Stepping::now`]; no such cgroup.
    pub fn lru(&self, path: &str) -> Result<List, LabError> {
        let mut list = List::new("lru", &LRU_COLUMNS);
        self.run()?.memory(|memory| {
            let memcg = find(memory, path)?;
            for node in memory.nodes() {
                let lruvec = memory.lru.lruvec(memcg, node);
                let mut push = |name: &str, generation: Cell, pages: u64| {
                    list.push([Cell::Count(u64::from(node.0)), name.into(), generation, pages.into()]);
                };
                let Some(gens) = lruvec.gens() else {
                    let all = LruList::ALL.iter().zip(LIST_NAMES);
                    all.for_each(|(&of, name)| {
                        push(name, Cell::None, lruvec.size(of, ZoneKind::ALL[ZoneKind::COUNT - 1]));
                    });
                    continue;
                };
                for (kind, name) in [(Kind::Anon, "anon"), (Kind::File, "file")] {
                    for seq in gens.min_seq(kind)..=gens.max_seq() {
                        push(name, seq.into(), gens.pages_of(kind, seq));
                    }
                }
            }
            Ok::<(), LabError>(())
        })?;
        Ok(list)
    }

    /// The tasks that have not ended, and what each does now.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn tasks(&self) -> Result<List, LabError> {
        let mut list = List::new("tasks", &TASK_COLUMNS);
        for task in self.run()?.tasks() {
            let (doing, what, since) = match task.doing {
                Doing::Waiting { reason, since } => {
                    ("waits", sim::kernel_name(reason).into(), Cell::Count(since.get()))
                }
                Doing::Queued(cpu) => ("is queued", format!("cpu{}", cpu.0).into(), Cell::None),
                Doing::OnCpu(cpu) => ("runs", format!("cpu{}", cpu.0).into(), Cell::None),
            };
            list.push([task.name.into(), doing.into(), what, since]);
        }
        Ok(list)
    }

    /// Page `index` of the file at `path`.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn page(&self, path: &str, index: u32) -> Result<PageLook, LabError> {
        let run = self.run()?;
        let Some(mapping) = run.mapping_of(path) else { return Ok(PageLook::NoFile) };
        Ok(run.memory(|memory| match memory.cache.find(mapping, index) {
            Slot::Empty => PageLook::Absent,
            Slot::Shadow(_) => PageLook::Evicted,
            Slot::Page(pfn) => PageLook::Cached(cached(memory, pfn)),
        }))
    }

    /// Goes on to the end; the recording is that of any other run of the scenario.
    ///
    /// # Errors
    /// As [`crate::simulate()`].
    pub fn finish(self) -> Result<Recording, LabError> {
        let Some(run) = self.run else { return Err(self.broken()) };
        let Self { identity, took, .. } = self;
        let clock = Clock::begin();
        let ended = catch_unwind(AssertUnwindSafe(|| run.finish()));
        let wall_ns = sum(took, &clock).map(|took| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        completed(identity, ended, wall_ns)
    }
}

/// Names of [`LruList::ALL`].
const LIST_NAMES: [&str; LruList::COUNT] =
    ["inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable"];

fn sum(before: Option<Duration>, clock: &Clock) -> Option<Duration> {
    Some(before? + clock.took()?)
}

fn find(memory: &SimMemory, path: &str) -> Result<MemcgId, LabError> {
    let groups = &memory.core.cgroups;
    let found = if path.is_empty() { Some(MemcgId::ROOT) } else { groups.find(path) };
    found.ok_or_else(|| {
        let known = groups.ids().filter(|&id| groups[id].online).map(|id| groups[id].path.as_str());
        LabError::Unknown(workload::UnknownName::new("cgroup", path, known))
    })
}

fn cached(memory: &SimMemory, pfn: Pfn) -> CachedPage {
    let frames = &memory.core.alloc.frames;
    let flags = frames.flags(pfn);
    let list = LruList::ALL.iter().position(|&list| list == LruList::of(flags)).expect("one of all");
    CachedPage {
        pfn: u64::from(pfn.0),
        pages: frames.pages(pfn),
        zone: memory.core.alloc.zone(memory.core.alloc.zone_of(pfn)).kind.name(),
        cgroup: memory.core.cgroups[memory.page_memcg(pfn)].path.clone(),
        state: match frames.state(pfn) {
            FrameState::Lru => "lru",
            FrameState::Batch => "batch",
            FrameState::Isolated => "isolated",
            _ => "in use",
        },
        list: LIST_NAMES[list],
        flags: FLAGS.iter().filter(|(flag, _)| flags.has(*flag)).map(|&(_, name)| name).collect(),
    }
}

#[cfg(test)]
mod tests;
