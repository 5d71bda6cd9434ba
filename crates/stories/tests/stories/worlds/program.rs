//! A random program: what its tasks do, and the first task, which starts the others.
//!
//! Groups are siblings, parents and children with limits and protection of their own; tasks live in
//! them and change both while others run. Next: [`super::task`].

use units::{Bytes, Seed, random::Stream};
use workload::system::{System, SystemError, TaskSpec};
use workload::{Errno, Outcome, WorkloadError};

use super::liveness::Calls;
use super::task::Task;
use super::world::pick;

/// The outline of a program; the tasks draw the rest from the seed.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub tasks: u64,
    pub ops: u64,
    pub groups: Vec<&'static str>,
    pub files: Vec<u64>,
    /// What is written to files of cgroups at first: cgroup, file, bytes.
    limits: Vec<(&'static str, &'static str, u64)>,
    /// Sizes are cut down to this: large values make the machine run out of memory.
    pub reach: u64,
}

const GROUPS: [&str; 6] = ["A", "B", "A/x", "A/y", "B/x", "A/x/deep"];
/// The files of a cgroup that set limits and protection.
pub const LIMITS: [&str; 4] = ["memory.max", "memory.high", "memory.low", "memory.min"];

impl Plan {
    /// Draws one for a machine with so many bytes of memory.
    pub fn draw(seed: u64, memory: u64, stream: &mut Stream) -> Self {
        let groups = GROUPS[..usize::try_from(stream.below(7)).expect("small")].to_vec();
        let files = (0..1 + stream.below(4)).map(|_| stream.below(memory * 2)).collect();
        let mut limits = Vec::new();
        for &group in &groups {
            for (file, odds) in LIMITS.into_iter().zip([3, 6, 4, 8]) {
                if stream.chance(1, odds) {
                    limits.push((group, file, stream.below(memory)));
                }
            }
        }
        let reach = memory >> stream.below(8);
        Self { seed, tasks: 1 + stream.below(5), ops: 4 + stream.below(40), groups, files, limits, reach }
    }

    /// The same, all of it in the root.
    pub fn without_groups(self) -> Self {
        Self { groups: Vec::new(), limits: Vec::new(), ..self }
    }
}

pub fn file_name(number: u64) -> String {
    format!("file{number}")
}

/// The first task: makes groups and files, starts the others, and tidies up.
pub async fn main<S: System>(sys: S, plan: Plan, calls: Calls) -> Result<Outcome, WorkloadError> {
    for group in &plan.groups {
        sys.cgroup_create(group).await?;
    }
    for (group, file, limit) in &plan.limits {
        accept(sys.cgroup_write(group, file, &limit.to_string()).await)?;
    }
    for (number, &size) in (0..).zip(&plan.files) {
        sys.lay_out_file(&file_name(number), Bytes(size)).await?;
    }
    let mut tasks = Vec::new();
    let mut stream = Seed(plan.seed).stream("main");
    for number in 0..plan.tasks {
        let mut spec = TaskSpec::named(format!("task{number}"));
        if !plan.groups.is_empty() && stream.chance(3, 4) {
            spec = spec.in_cgroup(*pick(&mut stream, &plan.groups));
        }
        let (plan, of_task) = (plan.clone(), calls.clone());
        let program = move |sys: S| async move { Task::new(sys, plan, of_task, number).run().await };
        // A process has some 64 pages of its own.
        let ticket = calls.enter("workload", "fork", 64, sys.now());
        let started = sys.spawn(spec, program).await;
        calls.leave(ticket, sys.now());
        tasks.extend(accept(started)?);
    }
    let mut digest = 0_u64;
    for task in tasks {
        let done = accept(sys.join(task).await)?;
        digest = digest.rotate_left(7) ^ done.transpose()?.unwrap_or(1);
    }
    for group in plan.groups.iter().rev() {
        accept(sys.cgroup_remove(group).await)?;
    }
    let ticket = calls.enter("workload", "drop_caches", plan.files.len() as u64, sys.now());
    accept(sys.drop_caches(3).await)?;
    calls.leave(ticket, sys.now());
    let mut outcome = Outcome::default();
    outcome.metric("digest", (digest >> 12) as f64);
    Ok(outcome)
}

/// `EAGAIN`: less could be reclaimed than was asked for.
const TRY_AGAIN: Errno = Errno::Other(11);

/// Any errno that Linux could return here is fine; anything else is not.
pub fn accept<V>(answer: Result<V, SystemError>) -> Result<Option<V>, WorkloadError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.errno {
            Errno::NoMem | Errno::Killed | Errno::Busy | Errno::NoEnt | TRY_AGAIN => Ok(None),
            Errno::Exist | Errno::NoSpc | Errno::Inval | Errno::NotSup => Ok(None),
            _ => Err(error.into()),
        },
    }
}
