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
use crate::system::{OpenMode, System, SystemError};
use crate::written::definition::{Bound, Definition, FileState, Step, each_step};
use crate::written::direct::direct;
use crate::written::layout::{Directory, LaidSet, lay_out};
use crate::written::measure::Readings;
use crate::written::order::{Point, points};
use crate::written::plan::{PhaseGates, Plan, check_places};
use crate::written::start::{join_all, join_dead, spawn};
use crate::written::tally::Tally;

/// Bytes of a call that writes a file before tasks begin.
const WRITE_SIZE: u64 = 1 << 20;

/// Runs it to its end.
pub(super) async fn run<S: System>(
    sys: S,
    definition: &Arc<Definition>,
    bound: impl FnOnce(u64) -> Bound,
) -> Result<Outcome, WorkloadError> {
    let machine = MachineSize::of(&sys);
    let bound = bound(machine.memory.get().saturating_mul(PAGE_SIZE));
    definition.check(&bound).map_err(WorkloadError::Amount)?;
    let files = lay_out(&definition.files, &bound, machine.disks, sys.seed());
    check_places(definition, &files, &bound).map_err(WorkloadError::Amount)?;
    make(&sys, definition, &files, &bound).await?;
    if !definition.main.is_empty() {
        return direct(sys, Plan::new(definition, bound, files, Vec::new())).await;
    }
    let gates = (definition.phases.iter())
        .map(|_| Ok(PhaseGates { done: sys.make_gate()?, go: sys.make_gate()? }))
        .collect::<Result<Vec<PhaseGates>, SystemError>>()?;
    let plan = Arc::new(Plan::new(definition, bound, files, gates));
    let mut readings = Readings::new();
    readings.take(&sys, &plan).await?;
    let mut running = Vec::new();
    for kind in 0..definition.tasks.len() {
        spawn(&sys, &plan, kind, &mut running).await?;
    }
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
        readings.take(&sys, &plan).await?;
        for _ in 0..tasks_with(&plan, Point::Wait(phase)) {
            sys.open_gate(plan.gates[number].go).await?;
        }
    }
    join_all(&sys, &mut running, &mut tally).await?;
    Ok(readings.outcome(&plan, &tally))
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
    let lays_out = definition.lays_out(bound);
    if lays_out {
        chance::place_files(sys, &definition.name).await?;
    }
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
    for steps in definition.all_steps() {
        each_step(steps, &mut |step| {
            if let Step::Create { directory, .. } = step {
                created.insert(directory);
            }
        });
    }
    for directory in created {
        sys.make_dir(directory).await?;
    }
    // In the order of the file: where they lie on the disk hangs on it.
    for set in definition.files.iter().filter_map(|set| files.get(&set.name)) {
        if set.state == FileState::LaidOut {
            let laid: Vec<(String, Bytes)> =
                set.files.iter().map(|file| (file.path.clone(), Bytes(file.on_disk))).collect();
            sys.lay_out_files(&laid).await?;
        }
    }
    if lays_out && !definition.keeps_caches {
        sys.begin_cold().await?;
    }
    for group in definition.groups.iter().filter(|group| group.when.holds(bound)) {
        sys.cgroup_create(&group.path).await?;
        for (file, setting) in &group.settings {
            if let Some(value) = bound.setting(setting) {
                sys.cgroup_write(&group.path, file, &value).await?;
            }
        }
    }
    for set in definition.files.iter().filter_map(|set| files.get(&set.name)) {
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
