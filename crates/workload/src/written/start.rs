//! How tasks of a workload file start, and are joined.
//!
//! Next: [`super::act`], what they do.

use std::sync::Arc;

use crate::system::outcome::WorkloadError;
use crate::system::{Errno, System, SystemError, TaskSpec};
use crate::written::act::{Actor, Who};
use crate::written::plan::Plan;
use crate::written::tally::Tally;

/// A task that runs.
pub(super) struct Running<S: System> {
    who: Who,
    task: Option<S::Task<Result<Tally, WorkloadError>>>,
}

/// Starts all tasks of a kind.
pub(super) async fn spawn<S: System>(
    sys: &S,
    plan: &Arc<Plan>,
    kind: usize,
    running: &mut Vec<Running<S>>,
) -> Result<(), WorkloadError> {
    let task = &plan.definition.tasks[kind];
    let of = plan.definition.tasks_of(kind, &plan.bound);
    for number in 0..of {
        let name = if task.count.is_some() { format!("{}-{number}", task.name) } else { task.name.clone() };
        let mut spec = TaskSpec::named(name.clone());
        if let Some(group) = plan.group_of(kind) {
            spec = spec.in_cgroup(group);
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
    Ok(())
}

/// Joins all that still run.
pub(super) async fn join_all<S: System>(
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
pub(super) async fn join_dead<S: System>(
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
