//! A workload file's run: files and groups are made, tasks start, phases end one after the other, counters are read.
//!
//! A phase ends when all tasks that end it have said so; the last one, where none does, when all tasks have ended. Then
//! metrics are read, the phase is marked, and whoever waits for it goes on. Next: [`super::act`], a task at work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use units::{Bytes, PAGE_SIZE};

use crate::parts::chance;
use crate::parts::footprint::MachineSize;
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{Errno, OpenMode, System, SystemError, TaskSpec};
use crate::written::act::{Actor, Who};
use crate::written::definition::{Bound, Definition, FileState, Step, each_step};
use crate::written::layout::{Directory, LaidSet, lay_out};
use crate::written::measure::Readings;
use crate::written::order::{Point, points};
use crate::written::plan::{PhaseGates, Plan, check_places};
use crate::written::tally::Tally;

/// Page cache and slab.
const ALL_CACHES: u8 = 3;
/// Bytes of a call that writes a file before tasks begin.
const WRITE_SIZE: u64 = 1 << 20;

/// A task that runs.
struct Running<S: System> {
    who: Who,
    task: Option<S::Task<Result<Tally, WorkloadError>>>,
}

/// Runs it to its end.
pub(super) async fn run<S: System>(
    sys: S,
    definition: &Arc<Definition>,
    bound: impl FnOnce(u64) -> Bound,
) -> Result<Outcome, WorkloadError> {
    let machine = MachineSize::of(&sys);
    let bound = bound(machine.memory.get() * PAGE_SIZE);
    definition.check(&bound).map_err(WorkloadError::Amount)?;
    let files = lay_out(&definition.files, &bound, machine.disks, sys.seed());
    check_places(definition, &files, &bound).map_err(WorkloadError::Amount)?;
    make(&sys, definition, &files, &bound).await?;
    let gates = (definition.phases.iter())
        .map(|_| Ok(PhaseGates { done: sys.make_gate()?, go: sys.make_gate()? }))
        .collect::<Result<Vec<PhaseGates>, SystemError>>()?;
    let paths: BTreeMap<String, Vec<String>> = (files.iter())
        .map(|(name, set)| (name.clone(), set.files.iter().map(|file| file.path.clone()).collect()))
        .collect();
    let plan = Plan { definition: Arc::clone(definition), bound, files, gates, writes: definition.writes() };
    let plan = Arc::new(plan);
    let mut readings = Readings::new();
    readings.take(&sys, definition, &paths).await?;
    let mut running = spawn_all(&sys, &plan).await?;
    let mut tally = Tally::default();
    for (number, phase) in definition.phases.iter().enumerate() {
        let ends = tasks_with(&plan, Point::End(phase));
        if ends == 0 {
            join_all(&sys, &mut running, &mut tally).await?;
        }
        for _ in 0..ends {
            while !sys.pass_gate(plan.gates[number].done, Plan::PATIENCE).await? {
                join_dead(&sys, &mut running, &mut tally).await?;
            }
        }
        sys.mark(phase);
        readings.take(&sys, definition, &paths).await?;
        for _ in 0..tasks_with(&plan, Point::Wait(phase)) {
            sys.open_gate(plan.gates[number].go).await?;
        }
    }
    join_all(&sys, &mut running, &mut tally).await?;
    Ok(readings.outcome(definition, &tally))
}

/// How many tasks come to this point.
fn tasks_with(plan: &Plan, point: Point<'_>) -> u64 {
    let kinds = plan.definition.tasks.iter().enumerate();
    let with = kinds.filter(|(_, task)| points(&task.steps).contains(&point));
    with.map(|(kind, _)| plan.definition.tasks_of(kind, &plan.bound)).sum()
}

/// Makes files, directories and groups.
async fn make<S: System>(
    sys: &S,
    definition: &Definition,
    files: &BTreeMap<String, LaidSet>,
    bound: &Bound,
) -> Result<(), WorkloadError> {
    chance::place_files(sys, &definition.name).await?;
    let mut there: Vec<&Directory> = Vec::new();
    for directory in files.values().flat_map(|set| &set.directories) {
        if there.contains(&directory) {
            continue;
        }
        there.push(directory);
        match directory {
            Directory::Plain(path) => sys.make_dir(path).await?,
            Directory::OnDisk(path, disk) => sys.make_dir_on(path, *disk).await?,
            Directory::InMemory(path) => sys.make_dir_in_memory(path).await?,
        }
    }
    let mut created = BTreeSet::new();
    for task in &definition.tasks {
        each_step(&task.steps, &mut |step| {
            if let Step::Create { directory, .. } = step {
                created.insert(directory);
            }
        });
    }
    for directory in created {
        sys.make_dir(directory).await?;
    }
    // In the order of the file: where they lie on the disk hangs on it.
    for set in definition.files.iter().map(|set| &files[&set.name]) {
        if set.state == FileState::LaidOut {
            let laid: Vec<(String, Bytes)> =
                set.files.iter().map(|file| (file.path.clone(), Bytes(file.size))).collect();
            sys.lay_out_files(&laid).await?;
        }
    }
    if !definition.keeps_caches {
        sys.drop_caches(ALL_CACHES).await?;
    }
    for group in &definition.groups {
        sys.cgroup_create(&group.path).await?;
        for (file, setting) in &group.settings {
            sys.cgroup_write(&group.path, file, &bound.setting(setting)).await?;
        }
    }
    for set in definition.files.iter().map(|set| &files[&set.name]) {
        if matches!(set.state, FileState::Written | FileState::Empty) {
            write_files(sys, set).await?;
        }
    }
    Ok(())
}

/// Makes the files of a set by writing them, or empty.
async fn write_files<S: System>(sys: &S, set: &LaidSet) -> Result<(), WorkloadError> {
    for laid in &set.files {
        let file = sys.open(&laid.path, OpenMode::Create).await?;
        let size = if set.state == FileState::Empty { 0 } else { laid.size };
        let mut at = 0;
        while at < size {
            at += sys.write(&file, at, WRITE_SIZE.min(size - at)).await?;
        }
    }
    Ok(())
}

/// Starts all tasks.
async fn spawn_all<S: System>(sys: &S, plan: &Arc<Plan>) -> Result<Vec<Running<S>>, WorkloadError> {
    let mut running = Vec::new();
    for (kind, task) in plan.definition.tasks.iter().enumerate() {
        let of = plan.definition.tasks_of(kind, &plan.bound);
        for number in 0..of {
            let name =
                if task.count.is_some() { format!("{}-{number}", task.name) } else { task.name.clone() };
            let mut spec = TaskSpec::named(name.clone());
            if let Some(group) = &task.group {
                spec = spec.in_cgroup(group.of(&plan.bound.words));
            }
            if let Some(cpu) = &task.cpu {
                let cpu = plan.bound.of_task(number).amount(cpu) % u64::from(sys.cpus_online().max(1));
                spec = spec.on_cpu(u16::try_from(cpu).expect("it is below the number of CPUs"));
            }
            let who = Who { kind, number, of, name };
            let (own, shared) = (who.clone(), Arc::clone(plan));
            let task = sys.spawn(spec, move |sys: S| Actor::new(sys, shared, own).run()).await?;
            running.push(Running { who, task: Some(task) });
        }
    }
    Ok(running)
}

/// Joins all that still run.
async fn join_all<S: System>(
    sys: &S,
    running: &mut Vec<Running<S>>,
    tally: &mut Tally,
) -> Result<(), WorkloadError> {
    for one in running.drain(..) {
        if let Some(task) = one.task {
            tally.add(sys.join(task).await??);
        }
    }
    Ok(())
}

/// Joins those that have ended: whoever was to end a phase and is dead ends the run.
async fn join_dead<S: System>(
    sys: &S,
    running: &mut [Running<S>],
    tally: &mut Tally,
) -> Result<(), WorkloadError> {
    for one in running.iter_mut() {
        if let Some(task) = one.task.take_if(|task| sys.has_ended(task)) {
            let joined = sys.join(task).await.map_err(|error| match error.errno {
                Errno::Killed => SystemError::new("join", one.who.name.as_str(), Errno::Killed),
                _ => error,
            })?;
            tally.add(joined?);
        }
    }
    Ok(())
}
