//! In the middle of what a task is, whether that stalls it on memory, and what it is to its groups.
//!
//! Who enters an allocation stall is in a section, whose time is summed up (`accounts/sections.rs`), and stalled
//! (`accounts/pressure.rs`). What a task is to its groups also changes with the place where it is, so whoever moves
//! one notes its role.

use kernel::machine::{GroupId, Pressure};
use kernel::section::{Section, Site, Whom};

use crate::accounts::pressure::{OfTask, Role, is_io, is_stall};
use crate::accounts::sections::SectionTotal;
use crate::machine::state::State;
use crate::machine::task::{NONE, Place, SWAPPER, Task};

/// What a task counts as where it is now.
fn role_of(task: &Task) -> Role {
    let place = match task.place {
        Place::Done => return Role::default(),
        Place::OnCpu => Role::READY | Role::ON_CPU,
        Place::Queued => Role::READY,
        Place::Blocked if is_io(task.reason) => Role::WAITS_FOR_IO,
        Place::Blocked => 0,
    };
    Role(place | if task.pressure.stalls > 0 { Role::STALLED } else { 0 })
}

impl State {
    pub(crate) fn enter_section(&mut self, now: u64, task: u32, section: Section) {
        self.tasks[task as usize].inside.enter(now, section);
    }

    pub(crate) fn leave_section(&mut self, now: u64, task: u32, section: Section) {
        let (within, stay) = self.tasks[task as usize].inside.leave(section);
        let one = SectionTotal::of(within, stay, now);
        let sections = &mut self.records[task as usize].sections;
        match sections.iter_mut().find(|total| total.within == within) {
            Some(total) => total.add(one),
            None => sections.push(one),
        }
    }

    pub(crate) fn blame(&mut self, task: u32, whom: Option<Whom>) {
        self.tasks[task as usize].inside.within.whom = whom;
    }

    /// A task may be something else to its groups now.
    #[inline]
    pub(crate) fn note_role(&mut self, now: u64, index: u32) {
        let task = &mut self.tasks[index as usize];
        let before = task.pressure;
        let role = role_of(task);
        let same_cpu = before.cpu == task.cpu;
        let changed = before.role.0 ^ role.0;
        // Which of two tasks that are ready runs is of no account unless one is stalled.
        let counts = changed & !Role::ON_CPU != 0 || (changed != 0 && role.has(Role::STALLED));
        (task.pressure.role, task.pressure.cpu) = (role, task.cpu);
        if counts || !same_cpu {
            self.groups.change(now, before.group, (before.cpu, before.role), (task.cpu, role));
        }
    }

    /// The running task begins or ends a stall on memory.
    pub(crate) fn stall(&mut self, now: u64, index: u32, begins: bool) {
        if index == SWAPPER {
            return;
        }
        let stalls = &mut self.tasks[index as usize].pressure.stalls;
        *stalls = if begins { *stalls + 1 } else { *stalls - 1 };
        self.note_role(now, index);
    }

    /// The same by the site that it enters or leaves.
    pub(crate) fn stall_at(&mut self, now: u64, index: u32, site: Site, begins: bool) {
        if is_stall(site) {
            self.stall(now, index, begins);
        }
    }

    pub(crate) fn add_group(&mut self, now: u64, GroupId(group): GroupId, GroupId(parent): GroupId) {
        self.groups.add(now, group, parent);
    }

    /// A task is of `group` from now on.
    pub(crate) fn join_group(&mut self, now: u64, index: u32, GroupId(group): GroupId) {
        let OfTask { group: left, role, cpu, .. } = self.tasks[index as usize].pressure;
        self.groups.change(now, left, (cpu, role), (cpu, Role::default()));
        self.tasks[index as usize].pressure.group = group;
        self.groups.change(now, group, (cpu, Role::default()), (cpu, role));
    }

    pub(crate) fn pressure(&mut self, now: u64, GroupId(group): GroupId, looks: bool) -> Pressure {
        self.groups.read(now, group, looks)
    }

    /// Panics when the counts of groups are not those of the tasks.
    pub(crate) fn check_pressure(&self) {
        let counted: Vec<OfTask> = self.tasks.iter().map(|task| task.pressure).collect();
        self.groups.check(&counted);
        for (index, task) in self.tasks.iter().enumerate().skip(1) {
            let (is, counted) = (role_of(task), task.pressure);
            assert!(is == counted.role, "task {index} is {is:?} and counts as {:?}", counted.role);
            assert!(is == Role::default() || counted.cpu == task.cpu, "task {index} counts elsewhere");
            let runs = self.cpus[usize::from(task.cpu)].current;
            assert!(!is.has(Role::ON_CPU) || (runs != NONE && runs as usize == index), "task {index} runs");
        }
    }
}
