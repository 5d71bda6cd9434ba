//! A workload file with its parameters on one machine: all that its tasks go by.
//!
//! Next: [`super::play`] makes it, [`super::act`] goes by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Bytes, Nanos};

use crate::parts::footprint::{Footprint, MachineSize};
use crate::system::Gate;
use crate::written::definition::{
    Again, Bound, Deed, Definition, Much, Place, Setting, Step, Work, each_step,
};
use crate::written::expression::Expression;
use crate::written::layout::{FILES_MAX, LaidSet};
use crate::written::walk::PLACES_MAX;

/// Tasks of one workload, at most.
const TASKS_MAX: u64 = 10_000;
/// Steps that one task makes, at most: a day of real time and more.
const STEPS_MAX: f64 = 1e10;
/// The longest that a loop may last.
const TIME_MAX: u64 = 24 * 3600 * 1_000_000_000;

/// The gates of a phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhaseGates {
    /// Each task that ends it opens this one.
    pub(super) done: Gate,
    /// Whoever waits for it passes here.
    pub(super) go: Gate,
}

/// All that tasks go by.
pub(super) struct Plan {
    pub(super) definition: Arc<Definition>,
    pub(super) bound: Bound,
    pub(super) files: BTreeMap<String, LaidSet>,
    pub(super) gates: Vec<PhaseGates>,
    /// Whether any task writes to files: then all open them so.
    pub(super) writes: bool,
}

impl Plan {
    /// How long one waits for others before it looks whether they still live.
    pub(super) const PATIENCE: Nanos = Nanos::from_secs(1);

    /// The number of a phase.
    pub(super) fn phase(&self, name: &str) -> usize {
        self.definition.phases.iter().position(|phase| phase == name).expect("it was checked")
    }

    /// Bytes of the largest call that reads or writes.
    pub(super) fn largest_call(&self, steps: &[Step]) -> Option<u64> {
        let mut largest = None;
        each_step(steps, &mut |step| {
            if let Step::Work(Work { deed: Deed::Read | Deed::Write, block, .. }) = step {
                largest = largest.max(Some(self.bound.amount(block)));
            }
        });
        largest
    }
}

impl Definition {
    /// Whether any task writes to a file of the file.
    pub(super) fn writes(&self) -> bool {
        let mut writes = false;
        for task in &self.tasks {
            each_step(&task.steps, &mut |step| {
                writes |= matches!(
                    step,
                    Step::Work(Work { deed: Deed::Write, .. } | Work { writes: 1.., .. })
                        | Step::MapFile { shared: true, writable: true, .. }
                );
            });
        }
        writes
    }

    /// How many tasks of this kind there are.
    pub(super) fn tasks_of(&self, kind: usize, bound: &Bound) -> u64 {
        self.tasks[kind].count.as_ref().map_or(1, |count| bound.amount(count))
    }

    /// Whether all amounts come to something that can be run.
    ///
    /// # Errors
    /// What cannot, in words.
    pub(super) fn check(&self, bound: &Bound) -> Result<(), String> {
        let amount = |expression: &Expression| expression.value(&bound.values);
        for group in &self.groups {
            for (file, setting) in &group.settings {
                if let Setting::Amount(to) = setting {
                    amount(to).map_err(|error| format!("`{file}` of cgroup `{}`: {error}", group.path))?;
                }
            }
        }
        for set in &self.files {
            let of = |error| format!("file `{}`: {error}", set.name);
            amount(&set.smallest).map_err(of)?;
            if let Place::Disk(disk) = &set.place {
                amount(disk).map_err(of)?;
            }
            set.largest.iter().try_for_each(|largest| amount(largest).map(drop)).map_err(of)?;
            let count = set.count.as_ref().map_or(Ok(1), amount).map_err(of)?;
            if count == 0 || count > FILES_MAX {
                return Err(format!(
                    "file `{}`: there are {count}, and from 1 to {FILES_MAX} can be",
                    set.name
                ));
            }
        }
        for (kind, task) in self.tasks.iter().enumerate() {
            let of = |error| format!("task `{}`: {error}", task.name);
            task.count.iter().try_for_each(|count| amount(count).map(drop)).map_err(of)?;
            let count = self.tasks_of(kind, bound);
            if count == 0 || count > TASKS_MAX {
                return Err(format!(
                    "task `{}`: there are {count}, and from 1 to {TASKS_MAX} can be",
                    task.name
                ));
            }
            for number in [0, count - 1] {
                let own = bound.of_task(number);
                task.cpu.iter().try_for_each(|cpu| cpu.value(&own.values).map(drop)).map_err(of)?;
                check_steps(&task.steps, &own).map_err(of)?;
            }
            let steps = self.operations(&task.steps, &bound.of_task(count - 1));
            if steps > STEPS_MAX {
                return Err(format!(
                    "task `{}` makes some {steps:.0} calls; {STEPS_MAX:.0} at most can be made",
                    task.name
                ));
            }
        }
        Ok(())
    }

    /// How many calls the steps make, about; loops that last for a time count once.
    fn operations(&self, steps: &[Step], bound: &Bound) -> f64 {
        let size_of = |name: &str| {
            let set = self.file_set(name)?;
            let largest = set.largest.as_ref().unwrap_or(&set.smallest);
            Some((bound.amount(largest), set.count.as_ref().map_or(1, |count| bound.amount(count))))
        };
        let of = |step: &Step| match step {
            Step::Work(work) => {
                let block = bound.amount(&work.block).max(1);
                match &work.much {
                    Much::Count(count) => bound.amount(count) as f64,
                    Much::Bytes(bytes) => (bound.amount(bytes) / block) as f64,
                    Much::Passes(passes) => {
                        let (size, count) = size_of(&work.on).unwrap_or((0, 1));
                        bound.amount(passes) as f64 * (size.div_ceil(block) * count) as f64
                    }
                }
            }
            Step::Create { count, .. } => bound.amount(count) as f64,
            Step::Again { again, steps } => {
                let times = if let Again::Times(times) = again { bound.amount(times) } else { 1 };
                times as f64 * self.operations(steps, bound)
            }
            _ => 1.0,
        };
        steps.iter().map(of).sum()
    }

    /// What it makes at most, on a machine of this size.
    pub(super) fn footprint(&self, bound: &Bound, machine: MachineSize) -> Footprint {
        let mut made = Footprint { files: Bytes(0), file_count: 0, anonymous: Bytes(0), tasks: 0, disks: 1 };
        for set in &self.files {
            let count = set.count.as_ref().map_or(1, |count| bound.amount(count));
            let size = bound.amount(set.largest.as_ref().unwrap_or(&set.smallest));
            let bytes = Bytes(count.saturating_mul(size));
            match &set.place {
                Place::Memory => made.anonymous = plus(made.anonymous, bytes),
                place => {
                    made.files = plus(made.files, bytes);
                    made.file_count += count;
                    made.disks = made.disks.max(match place {
                        Place::AllDisks => machine.disks,
                        Place::Disk(disk) => {
                            u16::try_from(bound.amount(disk)).unwrap_or(u16::MAX).saturating_add(1)
                        }
                        Place::Memory => 1,
                    });
                }
            }
        }
        for (kind, task) in self.tasks.iter().enumerate() {
            let tasks = self.tasks_of(kind, bound);
            made.tasks += tasks;
            created(&task.steps, &bound.of_task(tasks.saturating_sub(1)), 1, tasks, &mut made);
        }
        made
    }
}

fn plus(one: Bytes, other: Bytes) -> Bytes {
    Bytes(one.get().saturating_add(other.get()))
}

/// Adds what steps make that are made `times` times by so many tasks.
fn created(steps: &[Step], bound: &Bound, times: u64, tasks: u64, made: &mut Footprint) {
    for step in steps {
        match step {
            Step::Create { count, size, .. } => {
                let count = bound.amount(count).saturating_mul(times).saturating_mul(tasks);
                made.file_count = made.file_count.saturating_add(count);
                made.files = plus(made.files, Bytes(count.saturating_mul(bound.amount(size))));
            }
            Step::Map { size, .. } => {
                made.anonymous = plus(made.anonymous, Bytes(bound.amount(size).saturating_mul(tasks)));
            }
            Step::Again { again, steps } => {
                let again = if let Again::Times(times) = again { bound.amount(times) } else { 1 };
                created(steps, bound, times.saturating_mul(again), tasks, made);
            }
            _ => {}
        }
    }
}

/// Whether all amounts of steps come to something, and calls have a length.
fn check_steps(steps: &[Step], bound: &Bound) -> Result<(), String> {
    for step in steps {
        for amount in step.amounts() {
            amount.value(&bound.values)?;
        }
        match step {
            Step::Work(work) => {
                let block = bound.amount(&work.block);
                if block == 0 || block > 1 << 30 {
                    return Err(format!(
                        "a call on `{}` has {block} bytes, and from 1 to 1G can have",
                        work.on
                    ));
                }
            }
            Step::Create { size, .. } if bound.amount(size) > 1 << 30 => {
                return Err("a file that a step creates has 1G at most".to_owned());
            }
            Step::Map { name, size } if bound.amount(size) == 0 => {
                return Err(format!("mapping `{name}` has no size"));
            }
            Step::Again { again: Again::For(time), .. } if bound.amount(time) > TIME_MAX => {
                return Err("steps are made again for a day at most".to_owned());
            }
            _ => {}
        }
        if let Step::Again { steps, .. } = step {
            check_steps(steps, bound)?;
        }
    }
    Ok(())
}

/// Whether drawn orders are over no more places than can be drawn.
pub(super) fn check_places(
    definition: &Definition,
    plan: &BTreeMap<String, LaidSet>,
    bound: &Bound,
) -> Result<(), String> {
    for task in &definition.tasks {
        let mut result = Ok(());
        each_step(&task.steps, &mut |step| {
            let Step::Work(work) = step else { return };
            let Some(set) = plan.get(&work.on) else { return };
            let word = work.order.of(&bound.words);
            let block = bound.amount(&work.block).max(1);
            let places = match set.is_many {
                true => set.files.len() as u64,
                false => set.files.first().map_or(0, |file| file.size.div_ceil(block)),
            };
            if places > PLACES_MAX && (word == "shuffled" || word.starts_with("zipf")) {
                result = Err(format!(
                    "task `{}`: order `{word}` over {places} places of `{}`; {PLACES_MAX} at most",
                    task.name, work.on
                ));
            }
        });
        result?;
    }
    Ok(())
}
