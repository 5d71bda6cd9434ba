//! A workload file with its parameters on one machine: all that its tasks go by.
//!
//! Next: [`super::play`] makes it, [`super::act`] goes by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Bytes, Nanos};

use crate::parts::chance;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::system::Gate;
use crate::system::outcome::WorkloadError;
use crate::written::definition::{
    Again, Bound, Counted, Deed, Definition, LAST, Measured, Much, Place, Setting, Span, Step, Work,
    each_made, each_step,
};
use crate::written::expression::Expression;
use crate::written::layout::{FILES_MAX, LaidSet};
use crate::written::walk::PLACES_MAX;

/// Tasks of one workload, at most.
const TASKS_MAX: u64 = 10_000;
/// Steps that one task makes, at most: a day of real time and more.
const STEPS_MAX: f64 = 1e10;
/// Bytes of one call, at most.
const CALL_MAX: u64 = 1 << 40;
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
    pub(super) watched: BTreeMap<String, Watched>,
    /// The phases that there are with these parameters, in the order in which they end.
    pub(super) order: Vec<usize>,
}

/// What metrics ask of the steps of a label.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watched {
    /// Each operation: how many, how long.
    pub(super) operations: bool,
    /// How long each pass takes.
    pub(super) passes: bool,
    /// Rates along a pass, in so many parts.
    pub(super) parts: Option<u64>,
}

impl Plan {
    /// How long one waits for others before it looks whether they still live.
    pub(super) const PATIENCE: Nanos = Nanos::from_secs(1);

    /// A plan of these files and gates.
    pub(super) fn new(
        definition: &Arc<Definition>,
        bound: Bound,
        files: BTreeMap<String, LaidSet>,
        gates: Vec<PhaseGates>,
    ) -> Self {
        let writes = definition.writes(&bound);
        let mut watched: BTreeMap<String, Watched> = BTreeMap::new();
        for metric in &definition.metrics {
            let (Measured::Latency { label, .. }
            | Measured::Rate(label)
            | Measured::Operations(label)
            | Measured::Took { label, .. }
            | Measured::Rates { label, .. }) = &metric.what
            else {
                continue;
            };
            let own = watched.entry(label.clone()).or_default();
            match &metric.what {
                Measured::Took { .. } => own.passes = true,
                Measured::Rates { parts, .. } => own.parts = Some(*parts),
                _ => own.operations = true,
            }
        }
        let order = definition.phases_with(&bound);
        Self { definition: Arc::clone(definition), bound, files, gates, writes, watched, order }
    }

    /// How many phases have ended when this one does, counted from 1; none where it is not there.
    pub(super) fn position(&self, phase: usize) -> Option<usize> {
        match phase {
            0 => Some(0),
            LAST => Some(self.order.len()),
            _ => self.order.iter().position(|own| own + 1 == phase).map(|before| before + 1),
        }
    }

    /// Between which readings a span lies; only one where it is a moment.
    pub(super) fn span(&self, span: Span) -> Option<(Option<usize>, usize)> {
        Some(match span {
            Span::At(at) => (None, self.position(at)?),
            Span::Between(from, to) => (Some(self.position(from)?), self.position(to)?),
            Span::Over(phase) => {
                let to = self.position(phase)?;
                (Some(to - 1), to)
            }
        })
    }

    /// Whether a span is about this reading.
    pub(super) fn needs(&self, span: Span, number: usize) -> bool {
        self.span(span).is_some_and(|(from, to)| from == Some(number) || to == number)
    }

    /// Which files a number is read from: `/proc/vmstat`, or one of each group that is there.
    pub(super) fn places(&self, of: &Counted) -> Vec<(Option<usize>, &'static str)> {
        let Counted::Groups(names, file) = of else { return vec![(None, "")] };
        let there = self.definition.groups.iter().enumerate();
        let there = there.filter(|(_, group)| names.contains(&group.name) && group.when.holds(&self.bound));
        there.map(|(number, _)| (Some(number), *file)).collect()
    }

    /// The path of the group called `name`, if it is there.
    pub(super) fn path_of(&self, name: &str) -> Option<&str> {
        self.definition.group_there(name, &self.bound)
    }

    /// Whether a kind of tasks is there.
    pub(super) fn is_there(&self, kind: usize) -> bool {
        self.definition.tasks_of(kind, &self.bound) > 0
    }

    /// The group of a kind of tasks.
    pub(super) fn group_of(&self, kind: usize) -> Option<&str> {
        let mut words = self.definition.tasks[kind].groups.iter().map(|word| word.of(&self.bound.words));
        words.find_map(|name| self.definition.group_there(name, &self.bound))
    }

    /// The files called `name`.
    ///
    /// # Errors
    /// They are not there with these parameters.
    pub(super) fn set(&self, name: &str) -> Result<&LaidSet, WorkloadError> {
        let told = || WorkloadError::Amount(format!("file `{name}` is not there with these parameters"));
        self.files.get(name).ok_or_else(told)
    }

    /// The number of a phase.
    pub(super) fn phase(&self, name: &str) -> usize {
        self.definition.phases.iter().position(|phase| phase == name).expect("it was checked")
    }

    /// Bytes of the largest call that reads or writes; none where steps say how large the buffer is.
    pub(super) fn largest_call(&self, steps: &[Step]) -> Option<u64> {
        let mut largest = None;
        let mut says = false;
        each_step(steps, &mut |step| match step {
            Step::Work(work) if matches!(work.deed, Deed::Read | Deed::Write) => {
                let Work { block, on, .. } = &**work;
                let file = self.files.get(on).and_then(|set| set.files.iter().map(|file| file.size).max());
                largest = largest.max(Some(self.bound.amount(block).min(file.unwrap_or(u64::MAX))));
            }
            Step::Buffer(_) => says = true,
            _ => {}
        });
        largest.filter(|_| !says)
    }
}

/// Whether these steps do more than to wait for others and to tell them.
pub(super) fn works(steps: &[Step]) -> bool {
    let mut works = false;
    each_step(steps, &mut |step| {
        works |= !matches!(step, Step::Wait(_) | Step::End(_) | Step::Sleep(_) | Step::Again { .. });
    });
    works
}

impl Definition {
    /// Whether any task writes to a file of the file.
    pub(super) fn writes(&self, bound: &Bound) -> bool {
        let mut writes = false;
        for steps in self.all_steps() {
            each_made(steps, bound, &mut |step| {
                writes |= match step {
                    Step::Work(work) => work.deed == Deed::Write || work.writes > 0,
                    Step::MapFile { shared, writable, .. } => shared.holds(bound) && writable.holds(bound),
                    _ => false,
                };
            });
        }
        writes
    }

    /// The numbers of the phases that there are with these parameters: of those that `main` ends.
    pub(super) fn phases_with(&self, bound: &Bound) -> Vec<usize> {
        let mut ended = Vec::new();
        each_made(&self.main, bound, &mut |step| {
            if let Step::End(phase) = step {
                ended.extend(self.phases.iter().position(|own| own == phase));
            }
        });
        if self.main.is_empty() { (0..self.phases.len()).collect() } else { ended }
    }

    /// The path of the group called `name`, if it is there.
    pub(super) fn group_there(&self, name: &str, bound: &Bound) -> Option<&str> {
        let group = self.groups.iter().find(|group| group.name == name && group.when.holds(bound));
        group.map(|group| &*group.path)
    }

    /// How many tasks of this kind there are.
    pub(super) fn tasks_of(&self, kind: usize, bound: &Bound) -> u64 {
        let task = &self.tasks[kind];
        let count = task.count.as_ref().map_or(1, |count| bound.amount(count));
        if task.when.holds(bound) { count } else { 0 }
    }

    /// Whether all amounts come to something that can be run.
    ///
    /// # Errors
    /// What cannot, in words.
    pub(super) fn check(&self, bound: &Bound) -> Result<(), String> {
        let amount = |expression: &Expression| expression.value(&bound.values);
        for group in &self.groups {
            for (file, setting) in &group.settings {
                if let Setting::Amount(to) = setting
                    && bound.lacks(to).is_none()
                {
                    amount(to).map_err(|error| format!("`{file}` of cgroup `{}`: {error}", group.path))?;
                }
            }
        }
        for set in self.files.iter().filter(|set| set.when.holds(bound)) {
            let of = |error| format!("file `{}`: {error}", set.name);
            amount(&set.smallest).map_err(of)?;
            if let Place::Disk(disk) = &set.place {
                amount(disk).map_err(of)?;
            }
            let others = [&set.largest, &set.beyond];
            others.into_iter().flatten().try_for_each(|size| amount(size).map(drop)).map_err(of)?;
            let count = set.count.as_ref().map_or(Ok(1), amount).map_err(of)?;
            if count == 0 || count > FILES_MAX {
                return Err(format!(
                    "file `{}`: there are {count}, and from 1 to {FILES_MAX} can be",
                    set.name
                ));
            }
        }
        for (kind, task) in self.tasks.iter().enumerate().filter(|(_, task)| task.when.holds(bound)) {
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
                let amounts = [&task.cpu, &task.begins_within];
                amounts
                    .into_iter()
                    .flatten()
                    .try_for_each(|one| one.value(&own.values).map(drop))
                    .map_err(of)?;
                check_steps(&task.steps, &own).map_err(of)?;
            }
            self.check_calls(&task.name, &task.steps, &bound.of_task(count - 1))?;
        }
        for metric in &self.metrics {
            let of = |error| format!("metric `{}`: {error}", metric.name);
            let value = if let Measured::Value(value) = &metric.what { Some(value) } else { None };
            value.into_iter().chain(&metric.per).try_for_each(|one| amount(one).map(drop)).map_err(of)?;
            if metric.per.as_ref().is_some_and(|per| bound.amount(per) == 0) {
                return Err(format!("metric `{}` is divided by 0", metric.name));
            }
        }
        check_steps(&self.main, bound)?;
        self.check_calls("main", &self.main, bound)
    }

    fn check_calls(&self, name: &str, steps: &[Step], bound: &Bound) -> Result<(), String> {
        let calls = self.operations(steps, bound);
        if calls <= STEPS_MAX {
            return Ok(());
        }
        Err(format!("task `{name}` makes some {calls:.0} calls; {STEPS_MAX:.0} at most can be made"))
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
            Step::Again { again, steps } => again.times(bound) as f64 * self.operations(steps, bound),
            Step::Turn { steps, .. } => self.operations(steps, bound),
            _ => 1.0,
        };
        steps.iter().map(of).sum()
    }

    /// Whether files are made before tasks begin; where none is there with these parameters, none are.
    pub(super) fn lays_out(&self, bound: &Bound) -> bool {
        self.files.is_empty() || self.files.iter().any(|set| set.when.holds(bound))
    }

    /// What it makes at most, on a machine of this size.
    pub(super) fn footprint(&self, bound: &Bound, machine: MachineSize) -> Footprint {
        let mut made = Footprint { files: Bytes(0), file_count: 0, anonymous: Bytes(0), tasks: 0, disks: 1 };
        for set in self.files.iter().filter(|set| set.when.holds(bound)) {
            let count = set.count.as_ref().map_or(1, |count| bound.amount(count));
            let size = bound.amount(set.largest.as_ref().unwrap_or(&set.smallest));
            let beyond = set.beyond.as_ref().map_or(0, |beyond| bound.amount(beyond));
            let bytes = Bytes(count.saturating_mul(size.saturating_add(beyond)));
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
        if self.lays_out(bound) {
            // What moves them to another place of the disk.
            made.files = plus(made.files, chance::PLACED_WITHIN);
            made.file_count += 1;
        }
        for (kind, task) in self.tasks.iter().enumerate() {
            let tasks = self.tasks_of(kind, bound);
            let stays = self.main.is_empty() || task.steps.is_empty();
            made.tasks = if stays { made.tasks + tasks } else { made.tasks.max(tasks) };
            self.created(&task.steps, &bound.of_task(tasks.saturating_sub(1)), 1, tasks, &mut made);
        }
        self.created(&self.main, bound, 1, 1, &mut made);
        made
    }

    /// Adds what steps make that are made `times` times by so many tasks.
    fn created(&self, steps: &[Step], bound: &Bound, times: u64, tasks: u64, made: &mut Footprint) {
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
                // Copies of pages that are written to.
                Step::MapFile { file, shared, writable, .. }
                    if writable.holds(bound) && !shared.holds(bound) =>
                {
                    let copies = self.file_set(file).map_or(0, |set| bound.amount(&set.smallest));
                    made.anonymous = plus(made.anonymous, Bytes(copies.saturating_mul(tasks)));
                }
                Step::Again { again, steps } => {
                    self.created(steps, bound, times.saturating_mul(again.times(bound)), tasks, made);
                }
                Step::Turn { steps, .. } => self.created(steps, bound, times, tasks, made),
                _ => {}
            }
        }
    }
}

fn plus(one: Bytes, other: Bytes) -> Bytes {
    Bytes(one.get().saturating_add(other.get()))
}

/// Whether all amounts of steps come to something, and calls have a length.
fn check_steps(steps: &[Step], bound: &Bound) -> Result<(), String> {
    for step in steps {
        if matches!(step, Step::Again { again: Again::When(when), .. } if !when.holds(bound)) {
            continue;
        }
        for amount in step.amounts() {
            amount.value(&bound.values)?;
        }
        match step {
            Step::Work(work) => {
                let block = bound.amount(&work.block);
                if block == 0 || block > CALL_MAX {
                    return Err(format!(
                        "a call on `{}` has {block} bytes, and from 1 to 1T can have",
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
        if let Step::Again { steps, .. } | Step::Turn { steps, .. } = step {
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
    for steps in definition.all_steps() {
        let mut result = Ok(());
        each_step(steps, &mut |step| {
            let Step::Work(work) = step else { return };
            let Some(set) = plan.get(&work.on) else { return };
            let word = work.order.of(&bound.words);
            let block = bound.amount(&work.block).max(1);
            let places = match set.is_many {
                true => set.files.len() as u64,
                false => set.files.first().map_or(0, |file| file.size.div_ceil(block)),
            };
            if places > PLACES_MAX && word.starts_with("zipf") {
                let on = &work.on;
                result = Err(format!("order `{word}` over {places} places of `{on}`; {PLACES_MAX} at most"));
            }
        });
        result?;
    }
    Ok(())
}
