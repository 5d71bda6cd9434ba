//! Workers that take turns: each does its next step when it is told to, and all others wait. So a program of several
//! tasks in several cgroups has one order of accesses, on one CPU, and is measured with little noise on a real kernel.
//!
//! Left out: what the steps are, which the file of a workload says. Neighbours: [`crate::written`], whose workers these
//! are; [`crate::system`] for tasks and gates.

use units::Nanos;

use crate::system::errno::{Errno, SystemError};
use crate::system::outcome::WorkloadError;
use crate::system::{Gate, Portable, System, TaskSpec};

/// The CPU that all workers stay on: one order of accesses, and one stock of charges.
const CPU: u16 = 0;
/// How long one waits for another before it looks whether that one still lives.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// What a worker waits for before each step, and opens behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    go: Gate,
    done: Gate,
}

impl Turn {
    /// Waits until the next step is due. After the last one it is the end of the program: memory stays until then.
    pub(crate) async fn wait<S: System>(self, sys: &S) -> Result<(), SystemError> {
        while !sys.pass_gate(self.go, PATIENCE).await? {}
        Ok(())
    }

    /// Says that the step is done.
    pub(crate) async fn end<S: System>(self, sys: &S) -> Result<(), SystemError> {
        sys.open_gate(self.done).await
    }
}

/// A worker at work: its name, its gate, and what it has to say in the end.
struct Member<S: System, T: Portable> {
    name: String,
    go: Gate,
    task: S::Task<Result<T, WorkloadError>>,
}

/// The workers, each with a gate to start its next step, and one gate that says that it is done.
pub(crate) struct Crew<S: System, T: Portable> {
    members: Vec<Member<S, T>>,
    done: Gate,
}

impl<S: System, T: Portable> Crew<S, T> {
    /// Starts a worker for each `(name, group, own)`: `work` is its life, in the turns that it is given.
    ///
    /// # Errors
    /// The first failing call.
    pub(crate) async fn hire<W, F, Fut>(
        sys: &S,
        workers: Vec<(String, Option<String>, W)>,
        work: F,
    ) -> Result<Self, SystemError>
    where
        W: Send + 'static,
        F: Fn(S, W, Turn) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<T, WorkloadError>> + 'static,
    {
        let done = sys.make_gate()?;
        let gates = workers.iter().map(|_| sys.make_gate()).collect::<Result<Vec<Gate>, SystemError>>()?;
        let mut members = Vec::new();
        for ((name, group, own), go) in workers.into_iter().zip(gates) {
            let spec = TaskSpec::named(name.clone()).on_cpu(CPU);
            let spec = if let Some(group) = group { spec.in_cgroup(group).moved() } else { spec };
            let work = work.clone();
            let task = sys.spawn(spec, move |sys: S| work(sys, own, Turn { go, done })).await?;
            members.push(Member { name, go, task });
        }
        Ok(Self { members, done })
    }

    /// Lets `name` do its next step and waits until it is done, or dead: then its error comes when it is joined.
    pub(crate) async fn work(&mut self, sys: &S, name: &str) -> Result<(), WorkloadError> {
        let at = self.members.iter().position(|member| member.name == name).expect("it was hired");
        sys.open_gate(self.members[at].go).await?;
        while !sys.pass_gate(self.done, PATIENCE).await? {
            if sys.has_ended(&self.members[at].task) {
                sys.join(self.members.remove(at).task).await??;
                return Err(SystemError::new("join", name, Errno::Killed).into());
            }
        }
        Ok(())
    }

    /// Joins all; returns what each has to say, in the order in which they were hired.
    pub(crate) async fn leave(self, sys: &S) -> Result<Vec<(String, T)>, WorkloadError> {
        for member in &self.members {
            sys.open_gate(member.go).await?;
        }
        let mut said = Vec::new();
        for member in self.members {
            said.push((member.name, sys.join(member.task).await??));
        }
        Ok(said)
    }
}
