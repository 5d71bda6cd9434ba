//! Workers that take turns: each does its next step when it is told to, and all others wait. So a program of several
//! tasks in several cgroups has one order of accesses, on one CPU, and is measured with little noise on a real kernel.
//!
//! Left out: what the steps are, which is each program's own. Neighbours: [`crate::programs::anon_and_file`] and
//! files with turns ([`crate::written`]), whose workers these are; [`crate::system`] for tasks and gates.

use units::{Bytes, Nanos};

use crate::system::errno::{Errno, SystemError};
use crate::system::outcome::WorkloadError;
use crate::system::{Gate, OpenMode, Portable, System, TaskSpec};
use language::params::Params;

/// The CPU that all workers stay on: one order of accesses, and one stock of charges.
const CPU: u16 = 0;
/// How long one waits for another before it looks whether that one still lives.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// The cgroups that the workers live in: each is called by a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    /// Each in a group of its own below P, which has a limit.
    Parent,
    /// Each in a group of its own at the root.
    Global,
    /// All in P.
    Same,
}

impl Topology {
    /// What the parameter `topology` says.
    pub(crate) fn from_params(params: &Params) -> Self {
        match params.choice("topology").expect("it has a default") {
            "parent" => Self::Parent,
            "global" => Self::Global,
            _ => Self::Same,
        }
    }

    /// The path of the group that is called `letter`.
    pub(crate) fn group(self, letter: &str) -> String {
        match self {
            Self::Parent => format!("P/{letter}"),
            Self::Global => letter.to_owned(),
            Self::Same => "P".to_owned(),
        }
    }

    /// The group with a limit, if there is one.
    pub(crate) fn parent(self) -> Option<&'static str> {
        (self != Self::Global).then_some("P")
    }

    /// Makes P with `settings`, then the groups of `letters`, in that order, which is the one that reclaim walks.
    ///
    /// # Errors
    /// The first failing call.
    pub(crate) async fn make<S: System>(
        self,
        sys: &S,
        settings: &[(&str, Bytes)],
        letters: &[&str],
    ) -> Result<(), SystemError> {
        if let Some(parent) = self.parent() {
            sys.cgroup_create(parent).await?;
            for (file, bytes) in settings {
                sys.cgroup_write(parent, file, &bytes.get().to_string()).await?;
            }
        }
        if self != Self::Same {
            for letter in letters {
                sys.cgroup_create(&self.group(letter)).await?;
            }
        }
        Ok(())
    }

    /// Reclaims of P because it was at its limit: `max` of its `memory.events`. Reading it flushes no statistics.
    ///
    /// # Errors
    /// That of the read.
    pub(crate) async fn limit_reclaims<S: System>(self, sys: &S) -> Result<Option<u64>, SystemError> {
        let Some(parent) = self.parent() else { return Ok(None) };
        let events = sys.cgroup_read(parent, "memory.events").await?;
        let max = events.lines().find_map(|line| line.strip_prefix("max "));
        Ok(max.and_then(|count| count.trim().parse().ok()))
    }
}

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

/// A file that is read round and round: where it ends, reading goes on at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Round {
    /// Its name.
    pub(crate) path: &'static str,
    /// As much of it as is read.
    pub(crate) size: Bytes,
    /// Bytes of one read call.
    pub(crate) read_size: Bytes,
}

impl Round {
    /// It goes on behind what is read, as in the measured runs: readahead reaches one window further.
    pub(crate) const READAHEAD_BEYOND: Bytes = Bytes(1 << 20);

    /// Bytes of the whole file.
    pub(crate) fn len_on_disk(&self) -> Bytes {
        Bytes(self.size.get() + Self::READAHEAD_BEYOND.get())
    }

    /// Reads `len` bytes from `offset` on; opens the file at the first time.
    ///
    /// # Errors
    /// The first failing call; [`WorkloadError::ShortRead`] where the file is shorter.
    pub(crate) async fn read<S: System>(
        &self,
        sys: &S,
        open: &mut Option<S::File>,
        offset: u64,
        len: u64,
    ) -> Result<u64, WorkloadError> {
        if open.is_none() {
            sys.use_buffer(self.read_size).await?;
            *open = Some(sys.open(self.path, OpenMode::Read).await?);
        }
        let file = open.as_ref().expect("it is open");
        let size = self.size.get();
        let mut done = 0;
        while done < len {
            let at = (offset + done) % size;
            let part = self.read_size.get().min(len - done).min(size - at);
            let read = sys.read(file, at, part).await?;
            if read == 0 {
                let path = self.path.to_owned();
                return Err(WorkloadError::ShortRead { path, read_bytes: at, size_bytes: size });
            }
            done += read;
        }
        Ok(done)
    }
}

/// The numbers below `count` in an order drawn from the stream `name` of the run's seed.
pub(crate) fn shuffled<S: System>(sys: &S, name: &str, count: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    let mut stream = sys.seed().stream(name);
    for left in (1..count).rev() {
        order.swap(left as usize, stream.below(left + 1) as usize);
    }
    order
}
