//! What is read off a running kernel: when the program begins, at a given period, at the end of
//! every phase, and when the program has ended.
//!
//! Reading the simulated state costs no simulated time. But once a second, and at the end of a
//! phase, it does what a monitor on a real kernel does: it reads `memory.stat` of every cgroup,
//! which flushes statistics there (MECHANISMS-6X 4.3), so simulated and measured runs see numbers
//! of the same age. Samples in between show cgroups as last flushed.

use std::collections::BTreeMap;

use kernel::cgroup::files::group_of;
use kernel::machine::{Pressure, Stalled};
use mm::MemcgId;
use mm::alloc::watermark::Mark;
use mm::alloc::zone::Zone;
use mm::base::gfp::MigrateType;
use mm::cgroup::tree::{Memcg, UNLIMITED};
use mm::version::geometry::Cache;
use units::Nanos;
use workload::Outcome;

use crate::engine::sim::SimKernel;
use crate::run::handing::{Handing, PhaseSample, SampleChunk, SampleSink};

/// All that is read when a program has ended, at one instant.
#[derive(Debug)]
pub(crate) struct AtEnd {
    /// When that was.
    pub(crate) at: Nanos,
    pub(crate) vmstat: BTreeMap<String, u64>,
    pub(crate) memcg: BTreeMap<String, BTreeMap<String, u64>>,
    /// Length of every stall on fragmentation in microseconds.
    pub(crate) fragment_stalls: Vec<u64>,
}

/// How often the monitor of a measured guest read `memory.stat`.
const MONITOR_PERIOD: Nanos = Nanos::from_secs(1);

/// Counters of cgroups that are sampled, under the names of [`memcg_stats`].
const MEMCG_COLUMNS: [&str; 11] = [
    "current",
    "events_low",
    "file",
    "anon",
    "inactive_file",
    "active_file",
    "pgscan",
    "pgsteal",
    "pgrefill",
    "workingset_refault_file",
    "workingset_activate_file",
];

/// Pressure on memory, in the order of its file.
const PRESSURE: [&str; 8] = [
    "psi_memory_some_avg10",
    "psi_memory_some_avg60",
    "psi_memory_some_avg300",
    "psi_memory_some_total_us",
    "psi_memory_full_avg10",
    "psi_memory_full_avg60",
    "psi_memory_full_avg300",
    "psi_memory_full_total_us",
];

/// Collects samples of one run.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    pub(crate) phases: Vec<PhaseSample>,
    /// `/proc/vmstat` when the program began.
    pub(crate) vmstat_before: BTreeMap<String, u64>,
    /// When `memory.stat` is read the next time.
    reads_at: Nanos,
    /// The place of each column in a row, in the order in which they appeared: cgroups come and go.
    columns: BTreeMap<String, usize>,
    /// Values by place; a column that appeared later is not there yet.
    rows: Vec<(Nanos, Vec<u64>)>,
    /// What the program has measured so far, as it says.
    pub(crate) kept: Outcome,
    /// Who is handed rows as they come, once the program has begun.
    handing: Option<Handing>,
    began: bool,
}

impl Sampler {
    /// A sampler that hands rows out if somebody wants them.
    pub(crate) fn new(sink: Option<SampleSink>) -> Self {
        Self { handing: sink.map(Handing::new), ..Self::default() }
    }

    /// The program begins: what was sampled before is not of the run.
    pub(crate) fn begin(&mut self, now: Nanos, kernel: &SimKernel) {
        self.rows.clear();
        self.began = true;
        self.vmstat_before = counted(kernel);
        self.sample(now, kernel);
    }

    /// The program has ended: the last sample.
    pub(crate) fn end(&mut self, now: Nanos, kernel: &SimKernel) -> AtEnd {
        self.reads_at = now;
        self.sample(now, kernel);
        AtEnd {
            at: now,
            vmstat: counted(kernel),
            memcg: memcg_stats(kernel, true),
            fragment_stalls: kernel.fragment_stalls(),
        }
    }

    /// Samples at the end of a phase.
    pub(crate) fn mark(&mut self, phase: &str, now: Nanos, kernel: &SimKernel) {
        let vmstat = counted(kernel);
        kernel.machine().end_phase();
        self.phases.push(PhaseSample { name: phase.to_string(), at: now, vmstat });
        self.reads_at = now;
        self.sample(now, kernel);
    }

    /// Lets something happen that is as if it had been so from the beginning: what it changes, earlier rows have too.
    pub(crate) fn beforehand<T>(&mut self, kernel: &SimKernel, happens: impl FnOnce() -> T) -> T {
        let before = self.row(kernel);
        let result = happens();
        self.was_beforehand(kernel, &before);
        result
    }

    /// What has happened since `before`, a [`Self::row`], is as if it had been so from the beginning.
    pub(crate) fn was_beforehand(&mut self, kernel: &SimKernel, before: &[u64]) {
        let after = self.row(kernel);
        for (_, row) in &mut self.rows {
            for (value, (before, after)) in row.iter_mut().zip(before.iter().zip(&after)) {
                *value = (*value + after).saturating_sub(*before);
            }
        }
    }

    /// What the machine has; groups come behind it.
    pub(crate) fn row(&mut self, kernel: &SimKernel) -> Vec<u64> {
        let mut row = Vec::with_capacity(self.columns.len());
        kernel.mem(|mem| mem.vmstat().for_each(|(name, value)| self.put(&mut row, name, value)));
        pressure(kernel, MemcgId::ROOT).for_each(|(name, value)| self.put(&mut row, name, value));
        for (name, value) in zone_columns(kernel).into_iter().chain(slab_columns(kernel)) {
            self.put(&mut row, &name, value);
        }
        row
    }

    /// Samples everything.
    pub(crate) fn sample(&mut self, now: Nanos, kernel: &SimKernel) {
        let mut row = self.row(kernel);
        let reads = now >= self.reads_at;
        if reads {
            self.reads_at = Nanos((now.get() / MONITOR_PERIOD.get() + 1) * MONITOR_PERIOD.get());
        }
        for (path, stats) in memcg_stats(kernel, reads) {
            let group = path.replace('/', "_");
            for name in MEMCG_COLUMNS.into_iter().chain(PRESSURE) {
                if let Some(&value) = stats.get(name) {
                    self.put(&mut row, &format!("cg_{group}_{name}"), value);
                }
            }
        }
        self.rows.push((now, row));
        let is_due = |handing: &Handing| handing.is_due(self.rows.len());
        if self.began && self.handing.as_ref().is_some_and(is_due) {
            self.hand_over(counted(kernel));
        }
    }

    fn hand_over(&mut self, vmstat: BTreeMap<String, u64>) {
        let Some(mut handing) = self.handing.take() else { return };
        let columns = self.columns.keys().cloned().collect();
        let rows = self.rows[handing.handed..].iter().map(|(at, row)| (*at, self.ordered(row))).collect();
        let (phases, vmstat_before) = (&self.phases[..], &self.vmstat_before);
        handing.hand(SampleChunk { columns, rows, phases, vmstat_before, vmstat });
        self.handing = Some(handing);
    }

    /// A row in the order of the columns' names: a cgroup that did not exist yet reads 0.
    fn ordered(&self, row: &[u64]) -> Vec<u64> {
        self.columns.values().map(|&place| row.get(place).copied().unwrap_or(0)).collect()
    }

    fn put(&mut self, row: &mut Vec<u64>, name: &str, value: u64) {
        let place = match self.columns.get(name) {
            Some(&place) => place,
            None => {
                let place = self.columns.len();
                self.columns.insert(name.to_owned(), place);
                place
            }
        };
        if row.len() <= place {
            row.resize(place + 1, 0);
        }
        row[place] = value;
    }

    /// The samples as a table.
    pub(crate) fn table(&self) -> (Vec<String>, Vec<(Nanos, Vec<u64>)>) {
        let columns = self.columns.keys().cloned().collect();
        let mut rows: Vec<(Nanos, Vec<u64>)> =
            self.rows.iter().map(|(at, row)| (*at, self.ordered(row))).collect();
        // A phase may end in the instant of a sample; the later reading stands.
        rows.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = std::mem::take(&mut later.1);
            }
            same
        });
        (columns, rows)
    }
}

/// `/proc/vmstat`, and the pressure of the machine.
fn counted(kernel: &SimKernel) -> BTreeMap<String, u64> {
    let pressure = pressure(kernel, MemcgId::ROOT).map(|(name, value)| (name.to_owned(), value));
    kernel.vmstat().into_iter().chain(pressure).collect()
}

/// What `memory.pressure` of a cgroup says: averages in hundredths of a percent, totals in microseconds.
fn pressure(kernel: &SimKernel, memcg: MemcgId) -> impl Iterator<Item = (&'static str, u64)> + use<> {
    let Pressure { some, full } = kernel.machine().pressure_aside(group_of(memcg));
    let values = |Stalled { average: [ten, sixty, three_hundred], total }: Stalled| {
        [ten, sixty, three_hundred, total.get() / 1000]
    };
    PRESSURE.into_iter().zip([values(some), values(full)].concat())
}

fn zone_columns(kernel: &SimKernel) -> Vec<(String, u64)> {
    let of = |zone: &Zone| {
        let prefix = format!("z{}_{}", zone.node, zone.kind.name());
        let area = &zone.free_area;
        let blocks = area.pageblocks().totals();
        let of_type = |migrate_type: MigrateType| {
            let name = format!("{migrate_type:?}").to_lowercase();
            [
                (format!("{prefix}_free_{name}"), area.free_of(migrate_type)),
                (format!("{prefix}_blocks_{name}"), u64::from(blocks[migrate_type as usize])),
            ]
        };
        let mark = |name: &str, mark| (format!("{prefix}_{name}"), zone.watermarks.mark(mark));
        let mut columns = vec![
            (format!("{prefix}_free"), zone.free_pages().0),
            (format!("{prefix}_boost"), zone.watermarks.boost().0),
            mark("min", Mark::Min),
            mark("low", Mark::Low),
            mark("high", Mark::High),
        ];
        columns.extend(
            MigrateType::ALL[..MigrateType::PCP_TYPES].iter().flat_map(|&migrate_type| of_type(migrate_type)),
        );
        columns
    };
    kernel.mem(|mem| mem.core.alloc.zones().iter().flat_map(of).collect())
}

/// What `/proc/slabinfo` says of the caches that it has as the model has them, in objects.
fn slab_columns(kernel: &SimKernel) -> Vec<(String, u64)> {
    let of = |cache: Cache| {
        let (num, active) = kernel.mem(|mem| mem.core.slabs.places(cache));
        let name = cache.name();
        [(format!("slab_{name}_active"), active), (format!("slab_{name}_num"), num)]
    };
    Cache::ALL.into_iter().filter(|cache| cache.has_own_line()).flat_map(of).collect()
}

/// `memory.stat` of every cgroup but the root, by path, with `memory.current` as `current`, `memory.events`
/// as `events_low` and so on, `memory.pressure`, and what it is protected by and limited to in bytes under
/// the names of the files (no limit is none); `flush` as reading `memory.stat` does.
pub(crate) fn memcg_stats(kernel: &SimKernel, flush: bool) -> BTreeMap<String, BTreeMap<String, u64>> {
    kernel.mem(|mem| {
        let ids: Vec<MemcgId> =
            mem.core.cgroups.ids().filter(|&id| id != MemcgId::ROOT && mem.core.cgroups[id].online).collect();
        ids.into_iter()
            .map(|id| {
                let lines = if flush { mem.memcg_stat(id) } else { mem.memcg_stat_as_flushed(id) };
                let mut stats: BTreeMap<String, u64> =
                    lines.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
                let group = &mem.core.cgroups[id];
                let swap = swap_files(group).filter(|_| mem.core.swap.total_pages() > 0);
                let others = other_files(group).chain(swap).chain(pressure(kernel, id));
                stats.extend(others.map(|(name, value)| (name.to_owned(), value)));
                (mem.core.cgroups[id].path.clone(), stats)
            })
            .collect()
    })
}

fn other_files(group: &Memcg) -> impl Iterator<Item = (&'static str, u64)> {
    let (memory, events) = (&group.memory, group.events);
    let counted = [
        ("events_low", events.low),
        ("events_high", events.high),
        ("events_max", events.max),
        ("events_oom", events.oom),
        ("events_oom_kill", events.oom_kill),
    ];
    let sizes = [
        ("current", Some(memory.usage)),
        ("memory.low", Some(memory.low)),
        ("memory.min", Some(memory.min)),
        ("memory.max", Some(memory.max).filter(|&max| max != UNLIMITED)),
    ];
    let bytes = |(name, pages): (_, Option<u64>)| Some((name, pages?.saturating_mul(units::PAGE_SIZE)));
    counted.into_iter().chain(sizes.into_iter().filter_map(bytes))
}

/// What a cgroup has in swap: told where there is some.
fn swap_files(group: &Memcg) -> impl Iterator<Item = (&'static str, u64)> {
    let events = group.swap.events;
    let counted = [("swap_events_high", events.high), ("swap_events_max", events.max)];
    let current = ("swap_current", group.swap.usage.saturating_mul(units::PAGE_SIZE));
    counted.into_iter().chain([("swap_events_fail", events.fail), current])
}
