//! Pressure stall information for memory: how much of the time tasks could not work because memory was short.
//!
//! # Theory of operation
//! A task is stalled on memory between [`Machine::stall`]'s two calls, whether it computes there or sleeps:
//! direct reclaim, reclaim at a limit, direct compaction, kswapd's and kcompactd's work, and the wait for a page
//! that was in use when it was evicted. For every group of tasks (the machine, each cgroup with what is below it)
//! and every CPU the scheduler counts
//!
//! ```text
//!   some     somebody there is stalled
//!   full     and nobody else runs or is ready there, or the one that runs is the stalled one itself: reclaim
//!            keeps the CPU from useful work
//!   nonidle  somebody runs, is ready, waits for I/O or is stalled
//! ```
//! A sleeper counts on the CPU that it was on last. Every two seconds the times of all CPUs since the last time
//! become one, weighted by the ticks that each was not idle: a stall on the only busy CPU of many is a stall of
//! everything that goes on. Averages over 10, 60 and 300 s move by that, in fixed point.
//!
//! The kernel's clock for the two seconds is a delayed work, which stops when nothing happens. Here it is no
//! event: a change or a reading later than it was due does its work first, with the states that have been since.
//!
//! Source: `kernel/sched/psi.c` of 6.12 (`psi_group_change`, `test_states`, `collect_percpu_times`,
//! `update_averages`, `calc_avgs`, `psi_show`), `include/linux/sched/loadavg.h` (`calc_load`). Every
//! simulated kernel is measured so, also those before 4.20, which have none; up to 5.11 `full` of a CPU that
//! reclaims was sampled by ticks. Left out: pressure of CPU and I/O, triggers, the time that a request of
//! such pages takes to be sent. CPU time that is charged and has not passed counts where it was charged, as
//! with sections.
//!
//! [`Machine::stall`]: kernel::machine::Machine::stall

use kernel::machine::{Pressure, Stalled, WaitReason};
use kernel::section::Site;
use units::Nanos;

use crate::accounts::average::{Averages, KINDS};
use crate::event::FOREVER;

/// What is counted on a CPU: the two kinds of stall, and that it is not idle.
const STATES: usize = KINDS + 1;
/// Who looks at what CPUs have gathered: the kernel, and the monitor of the simulator.
const LOOKERS: usize = 2;
const KERNEL: usize = 0;
const MONITOR: usize = 1;
const SOME: u8 = 1;
const FULL: u8 = 2;
const NONIDLE: u8 = 4;

/// What a task is to its groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Role(pub(crate) u8);

impl Role {
    /// It runs or is ready.
    pub(crate) const READY: u8 = 1;
    pub(crate) const ON_CPU: u8 = 2;
    pub(crate) const WAITS_FOR_IO: u8 = 4;
    pub(crate) const STALLED: u8 = 8;

    pub(crate) const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// Whether the kernel sleeps there by `io_schedule`, as of 6.12.
pub(crate) const fn is_io(reason: WaitReason) -> bool {
    matches!(
        reason,
        WaitReason::PageRead
            | WaitReason::PageWriteback
            | WaitReason::RequestQueue
            | WaitReason::InodeReclaim
            | WaitReason::DirtyThrottle
            | WaitReason::Congestion
    )
}

/// Whether a task in `site` is stalled on memory (`psi_memstall_enter`). A pause between two tries of an
/// allocation is not.
pub(crate) const fn is_stall(site: Site) -> bool {
    match site {
        Site::AllocationStall
        | Site::LimitReclaim
        | Site::DirectCompaction
        | Site::OverHigh
        | Site::Kswapd => true,
        Site::AllocationPause => false,
    }
}

/// What is kept of a task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OfTask {
    /// Its group.
    pub(crate) group: u32,
    /// Stalls that it is in, one within the other.
    pub(crate) stalls: u8,
    /// What it counts as, and on which CPU.
    pub(crate) role: Role,
    pub(crate) cpu: u16,
}

/// A group on one CPU: how many tasks are what, and for how long that made which state.
#[derive(Debug, Clone, Copy, Default)]
struct OnCpu {
    ready: u32,
    waiting_for_io: u32,
    stalled: u32,
    stalled_ready: u32,
    stalled_on_cpu: u32,
    states: u8,
    /// Since when it has these states; never before it was last counted.
    since: u64,
    times: [u64; STATES],
    /// Those of `times` that have become part of the group's, by who looks.
    seen: [[u64; STATES]; LOOKERS],
}

impl OnCpu {
    fn count(&mut self, role: Role, sign: i32) {
        let add = |count: &mut u32, is: bool| *count = count.wrapping_add_signed(if is { sign } else { 0 });
        add(&mut self.ready, role.has(Role::READY));
        add(&mut self.waiting_for_io, role.has(Role::WAITS_FOR_IO));
        if role.has(Role::STALLED) {
            add(&mut self.stalled, true);
            add(&mut self.stalled_ready, role.has(Role::READY));
            add(&mut self.stalled_on_cpu, role.has(Role::ON_CPU));
        }
    }

    /// Its tasks have changed: what was up to now passed with the states before.
    fn settle(&mut self, now: u64) {
        let states = self.states();
        if states != self.states {
            self.pass(now);
            self.states = states;
        }
    }

    /// `test_states`, and that a CPU which reclaims does nothing else.
    fn states(&self) -> u8 {
        let mut states = 0;
        if self.stalled > 0 {
            states |= SOME;
            if self.ready == self.stalled_ready || self.stalled_on_cpu > 0 {
                states |= FULL;
            }
        }
        if self.ready + self.waiting_for_io + self.stalled > 0 {
            states |= NONIDLE;
        }
        states
    }

    /// Times up to `now`.
    fn times(&self, now: u64) -> [u64; STATES] {
        let passed = now.saturating_sub(self.since);
        std::array::from_fn(|state| {
            self.times[state] + if self.states & (1 << state) == 0 { 0 } else { passed }
        })
    }

    fn pass(&mut self, now: u64) {
        self.times = self.times(now);
        self.since = self.since.max(now);
    }
}

/// A group of tasks on all CPUs.
#[derive(Debug)]
struct Group {
    parent: u32,
    cpus: Vec<OnCpu>,
    averages: Averages,
    /// Nanoseconds of stall as the monitor has read them.
    told: [u64; KINDS],
    /// When the averages are to move next; [`FOREVER`]: nothing has happened for a while.
    due: u64,
}

impl Group {
    /// What the CPUs add to the totals from the last look to `now`, and whether there was any activity. A task
    /// may change at a time of its own that is before the last look, which has then seen a little too much:
    /// that is made up for here, not taken back.
    fn recent(&self, now: u64, tick: u64, looker: usize) -> ([u64; KINDS], bool) {
        let (mut weighted, mut ticks, mut active) = ([0_u128; KINDS], 0, false);
        for cpu in &self.cpus {
            let times = cpu.times(now);
            let [some, full, nonidle] =
                std::array::from_fn(|state| times[state].saturating_sub(cpu.seen[looker][state]));
            active |= nonidle > 0;
            ticks += nonidle / tick;
            for (sum, time) in weighted.iter_mut().zip([some, full]) {
                *sum += u128::from(time) * u128::from(nonidle / tick);
            }
        }
        let whole =
            |sum: u128| u64::try_from(sum / u128::from(ticks.max(1))).expect("no longer than it took");
        let [some, full] = weighted.map(whole);
        ([some, full.min(some)], active)
    }

    /// `collect_percpu_times`: what the CPUs add since the last time, and whether there was any activity.
    fn collect(&mut self, now: u64, tick: u64, looker: usize) -> ([u64; KINDS], bool) {
        let recent = self.recent(now, tick, looker);
        for cpu in &mut self.cpus {
            let times = cpu.times(now);
            cpu.seen[looker] = std::array::from_fn(|state| times[state].max(cpu.seen[looker][state]));
        }
        recent
    }

    /// The same for totals and averages.
    fn fold(&mut self, now: u64, tick: u64) -> bool {
        let (times, active) = self.collect(now, tick, KERNEL);
        self.averages.add(times);
        self.averages.update(now);
        active
    }
}

/// All groups; the first is the machine.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: Vec<Group>,
    /// The first time at which averages are to move.
    due: u64,
    tick: u64,
    cpus: usize,
}

impl Groups {
    pub(crate) fn new(cpus: u16, hz: u64) -> Self {
        let mut groups =
            Self { groups: Vec::new(), due: FOREVER, tick: 1_000_000_000 / hz, cpus: usize::from(cpus) };
        groups.add(0, 0, 0);
        groups
    }

    pub(crate) fn add(&mut self, now: u64, group: u32, parent: u32) {
        assert!(group as usize == self.groups.len(), "groups are numbered as they are made");
        let averages = Averages::new(now, self.tick);
        let cpus = vec![OnCpu { since: now, ..OnCpu::default() }; self.cpus];
        self.groups.push(Group { parent, cpus, averages, told: [0; KINDS], due: FOREVER });
    }

    /// What a task was and what it is, on which CPUs.
    #[inline]
    pub(crate) fn change(&mut self, now: u64, group: u32, from: (u16, Role), to: (u16, Role)) {
        if now >= self.due {
            self.catch_up(now);
        }
        let mut number = group;
        loop {
            let group = &mut self.groups[number as usize];
            group.cpus[usize::from(from.0)].count(from.1, -1);
            group.cpus[usize::from(to.0)].count(to.1, 1);
            group.cpus[usize::from(from.0)].settle(now);
            if from.0 != to.0 {
                group.cpus[usize::from(to.0)].settle(now);
            }
            if group.due == FOREVER {
                group.due = now + group.averages.period();
                self.due = self.due.min(group.due);
            }
            if number == 0 {
                return;
            }
            number = group.parent;
        }
    }

    /// Moves averages that were due up to `now` (`psi_avgs_work`).
    #[cold]
    fn catch_up(&mut self, now: u64) {
        self.due = FOREVER;
        for group in &mut self.groups {
            while group.due <= now {
                let due = group.due;
                let active = group.fold(due, self.tick);
                group.due = if active { group.averages.next_update() + self.tick } else { FOREVER };
            }
            self.due = self.due.min(group.due);
        }
    }

    /// What is read of a group at `now`: by a program, which folds times as reading the file does, or by the monitor,
    /// whose own totals change nothing for programs.
    pub(crate) fn read(&mut self, now: u64, group: u32, looks: bool) -> Pressure {
        self.catch_up(now);
        let tick = self.tick;
        let group = &mut self.groups[group as usize];
        if looks {
            group.fold(now, tick);
            return group.averages.read();
        }
        let (times, _) = group.collect(now, tick, MONITOR);
        group.told.iter_mut().zip(times).for_each(|(told, time)| *told += time);
        let [some, full] = group.told.map(Nanos);
        let Pressure { some: of_some, full: of_full } = group.averages.read();
        Pressure { some: Stalled { total: some, ..of_some }, full: Stalled { total: full, ..of_full } }
    }

    /// Panics when the counts are not those of the tasks.
    pub(crate) fn check(&self, tasks: &[OfTask]) {
        for (number, group) in (0_u32..).zip(&self.groups) {
            for (cpu, on_cpu) in (0_u16..).zip(&group.cpus) {
                let mut wanted = OnCpu::default();
                for task in tasks.iter().filter(|task| task.cpu == cpu) {
                    let mut of = task.group;
                    while of != number && of != 0 {
                        of = self.groups[of as usize].parent;
                    }
                    if of == number {
                        wanted.count(task.role, 1);
                    }
                }
                let counts = |on: &OnCpu| (on.ready, on.waiting_for_io, on.stalled, on.stalled_ready);
                assert!(counts(on_cpu) == counts(&wanted), "group {number} on cpu{cpu} counts wrong");
                assert!(on_cpu.states == wanted.states(), "group {number} on cpu{cpu} has wrong states");
            }
        }
    }
}

#[cfg(test)]
mod tests;
