//! A recorded trace through a kernel's page cache and reclaim, or on plain replacement policies:
//! how much of it misses?
//!
//! A kernel is limited by memory and serves pages, with readahead and writeback; a policy is
//! limited by a number of objects, and sizes decide nothing. All policies are fed from one reading of
//! the trace; each kernel reads it for itself, several in parallel. The file is never held in memory.
//!
//! | file | what it holds |
//! |---|---|
//! | `replay/scenario.rs` | a replay in full, as text, and the command that makes it again |
//! | `replay/input.rs` | a file or standard input, and the hash of what is read |
//! | `replay/policies.rs` | one reading for all policies |

mod input;
mod policies;
mod scenario;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use kernel::Filesystem;
use policy::{Capacity, Future, PolicySpec};
use rayon::prelude::*;
use recording::Recording;
use sim::run::{Program, SimRun, Watch};
use trace::requests::{TraceError, TraceFormat, TraceReader};
use units::Nanos;
use workload::Replay;
use workload::amount::{Warmup, WarmupEnd, parse_count};
use workload::limits::Limits;
use workload::replay::{ReplayOptions, warmup_is_all};
use workload::scenario::{SEED_DEFAULT, parse_interval, parse_mem_of};

pub(crate) use scenario::file_name;
pub use scenario::{CacheSpec, ReplayScenario, STDIN, TraceId, command_of, options};

use crate::error::LabError;
use crate::name::names::Names;
use crate::resolve::defaults::first_machine;
use crate::resolve::setting::Setting;
use crate::resolve::texts::{first_twice, kernel_named, newest_kernel, sysctl_pairs};
use crate::run::batch::Ended;
use crate::run::kept::KeepRuns;
use crate::run::simulate::{run_watched, sim_run};
use input::Hashing;
pub(crate) use input::Input;

/// A trace and the caches to replay it on, as a person names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayRequest {
    /// The trace file; `-` is standard input.
    pub trace: PathBuf,
    /// How it is read, and what counts.
    pub options: ReplayOptions,
    /// Policies: each is replayed at each capacity.
    pub policies: Vec<PolicySpec>,
    /// Capacities in objects: `5000`, `10k`.
    pub capacities: Vec<String>,
    /// Memory sizes of a simulated machine: each is replayed under each kernel.
    pub mems: Vec<String>,
    /// Kernels; none means the newest.
    pub kernels: Vec<String>,
    /// The machine; none means the first.
    pub machine: Option<String>,
    /// What the machine swaps to; none means nothing.
    pub swap: Option<String>,
    /// `memory.max` of the cgroup of the requests, each of these, `none` for no limit; none means no group, unless
    /// one of the next two is given.
    pub limits: Vec<String>,
    /// `memory.high` of that group.
    pub high: Option<String>,
    /// `memory.low` of that group.
    pub low: Option<String>,
    /// Sysctls of all of these kernels, each `name=value`.
    pub sysctls: Vec<String>,
    /// The seed of the machines.
    pub seed: Option<u64>,
    /// Time between two samples of their counters: `100ms`.
    pub interval: Option<String>,
}

/// A replay that can run: all names and values are checked, the trace is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPlan {
    /// The trace file; `-` is standard input.
    pub trace: PathBuf,
    /// How it is read, and what counts.
    pub options: ReplayOptions,
    /// The caches, each with what its recording is called.
    pub caches: Vec<(String, CacheSpec)>,
    /// Time between two samples of a kernel's counters; none means as in other simulated runs.
    pub interval: Option<Nanos>,
    /// The bytes that the trace must have, where somebody said so.
    pub expected: Option<TraceId>,
}

/// How far a replay is: told every few thousand requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplayProgress {
    /// Standard input is read more than once, so it was put into a temporary file of this length.
    Kept {
        /// Its length.
        bytes: u64,
    },
    /// More of the trace was replayed.
    Read {
        /// Bytes since the last report, by all caches together.
        bytes: u64,
        /// Bytes to read, by all caches together; 0 when not known.
        total: u64,
    },
    /// All policies have come to the end of the trace, which was read once.
    Fed {
        /// How many policies at how many capacities.
        caches: usize,
        /// Requests in the trace.
        requests: u64,
        /// How long it took on a clock.
        seconds: f64,
    },
    /// A kernel has come to the end of the trace.
    Finished {
        /// How many did so far, with this one.
        done: usize,
        /// How many there are.
        total: usize,
        /// Requests in the trace.
        requests: u64,
        /// How long it took on a clock.
        seconds: f64,
    },
}

/// Who watches, and how to stop.
#[derive(Clone)]
pub struct ReplayControl {
    /// Set to end all replays soon.
    pub stop: Arc<AtomicBool>,
    /// Called from the threads that replay; must not block for long.
    pub observer: Arc<dyn Fn(ReplayProgress) + Send + Sync>,
    /// Kernels write their recordings while they run, with events; none: whoever called keeps them.
    pub kept: Option<KeepRuns>,
}

/// What became of each cache of a plan.
pub type Outcomes = Vec<Ended>;

/// What finished, with its place in the plan, and the first failure, or the interruption.
pub fn results(outcomes: Outcomes, stopped: bool) -> (Vec<(usize, Recording)>, Option<LabError>) {
    let total = outcomes.len();
    let (mut results, mut error) = (Vec::new(), None);
    for (index, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ended::Recorded(recording) => results.push((index, recording)),
            Ended::NotKept(recording, failure) => {
                results.push((index, recording));
                error = error.or(Some(failure));
            }
            Ended::Failed(failure) => error = error.or(Some(failure)),
            Ended::NotRun => {}
        }
    }
    if error.is_none() && stopped && results.len() < total {
        error = Some(LabError::Interrupted { finished: results.len(), total });
    }
    (results, error)
}

impl ReplayRequest {
    /// Every policy at every capacity, then every kernel with every size of memory; names vary slowest.
    ///
    /// # Errors
    /// A name, capacity or size that cannot be, or no cache at all.
    pub fn plan(&self) -> Result<ReplayPlan, LabError> {
        let mut caches = policy_caches(self)?;
        caches.extend(kernel_caches(self)?);
        if caches.is_empty() {
            return Err(LabError::refused(
                "there is no cache to replay the trace on",
                "`--mem 256M` is a kernel's page cache, `--policy lru --capacity 10k` a plain policy",
            ));
        }
        let caches = caches.into_iter().map(|cache| (cache.label(), cache)).collect();
        let interval = self.interval.as_deref();
        let interval = interval.map(|text| parse_interval("--interval", text)).transpose()?;
        let trace = self.trace.clone();
        Ok(ReplayPlan { trace, options: self.options, caches, interval, expected: None })
    }
}

fn policy_caches(request: &ReplayRequest) -> Result<Vec<CacheSpec>, LabError> {
    let capacity = |text: &String| Ok(Capacity::new(parse_count(text)?)?);
    let capacities: Vec<Capacity> =
        request.capacities.iter().map(capacity).collect::<Result<_, LabError>>()?;
    if let Some(value) = first_twice(&capacities) {
        return Err(LabError::twice("--capacity", value.get()));
    }
    if let Some(policy) = first_twice(&request.policies) {
        return Err(LabError::twice("--policy", policy));
    }
    let cache = |policy: &PolicySpec, &capacity| CacheSpec::Policy { policy: policy.clone(), capacity };
    let caches_of = |policy| capacities.iter().map(move |capacity| cache(policy, capacity));
    Ok(request.policies.iter().flat_map(caches_of).collect())
}

fn kernel_caches(request: &ReplayRequest) -> Result<Vec<CacheSpec>, LabError> {
    let names = Names::default();
    let sysctls = sysctl_pairs(&request.sysctls, &names)?;
    let machine = request.machine.as_deref().unwrap_or(first_machine().name);
    let machine = names.vocabulary().machine(machine)?;
    let swap = scenario::swap_of(request.swap.as_deref())?;
    let kernels = match &request.kernels[..] {
        [] => vec![newest_kernel().to_owned()],
        named => named.to_vec(),
    };
    let groups = groups(request)?;
    let mut caches = Vec::new();
    let mut earlier = Vec::new();
    for kernel in &kernels {
        let kernel = kernel_named(kernel, &names)?;
        if earlier.contains(&kernel) {
            return Err(LabError::twice("--kernel", kernel));
        }
        earlier.push(kernel.clone());
        for (index, mem) in request.mems.iter().enumerate() {
            let mem = parse_mem_of("--mem", mem)?;
            let twice = |given: &String| parse_mem_of("--mem", given) == Ok(mem);
            if request.mems[..index].iter().any(twice) {
                return Err(LabError::twice("--mem", mem));
            }
            Setting::new(&kernel, &machine, mem, &sysctls)?.with_swap(&machine, mem, swap.clone())?;
            let seed = request.seed.unwrap_or(SEED_DEFAULT.0);
            for &limits in &groups {
                let (kernel, machine, sysctls) = (kernel.clone(), machine.clone(), sysctls.clone());
                let swap = swap.clone();
                caches.push(CacheSpec::Kernel { kernel, machine, mem, swap, sysctls, limits, seed });
            }
        }
    }
    Ok(caches)
}

/// The cgroups that the requests are made in, one at a time.
fn groups(request: &ReplayRequest) -> Result<Vec<Option<Limits>>, LabError> {
    let (high, low) = (request.high.as_deref(), request.low.as_deref());
    if request.limits.is_empty() {
        return Ok(vec![scenario::limits_of(None, high, low)?]);
    }
    let group = |max: &String| scenario::limits_of(Some(max), high, low);
    let groups: Vec<Option<Limits>> = request.limits.iter().map(group).collect::<Result<_, _>>()?;
    match first_twice(&groups) {
        Some(twice) => {
            let max = twice.and_then(|limits| limits.max);
            let value = max.map_or("none".to_owned(), |max| max.to_string());
            Err(LabError::twice("--limit", value))
        }
        None => Ok(groups),
    }
}

/// A scenario that a recording kept, to be run again.
impl From<ReplayScenario> for ReplayPlan {
    fn from(scenario: ReplayScenario) -> Self {
        let ReplayScenario { trace, id, options, cache, interval } = scenario;
        Self { trace, options, caches: vec![(cache.label(), cache)], interval, expected: Some(id) }
    }
}

impl ReplayPlan {
    /// The same plan with only those caches for which `wanted` is set.
    #[must_use]
    pub fn only(&self, wanted: &[bool]) -> Self {
        let kept = self.caches.iter().zip(wanted).filter(|&(_, &wanted)| wanted);
        Self { caches: kept.map(|(cache, _)| cache.clone()).collect(), ..self.clone() }
    }

    /// Whether what counts depends on how many requests there are.
    fn counts_first(&self) -> bool {
        matches!(self.options.warmup, Warmup::Percent(_))
    }

    /// Whether a policy must know the trace beforehand.
    fn needs_future(&self) -> bool {
        let needs = |cache: &CacheSpec| matches!(cache, CacheSpec::Policy { policy, .. } if policy.info().needs_future);
        self.caches.iter().any(|(_, cache)| needs(cache))
    }

    /// What the trace's bytes are: reads it once.
    ///
    /// # Errors
    /// It cannot be read, or is standard input, which cannot be read again afterwards.
    pub fn trace_id(&self) -> Result<TraceId, LabError> {
        if self.trace == Path::new(STDIN) {
            let message = "a sweep that is kept cannot read its trace from standard input";
            return Err(LabError::refused(message, "put the trace into a file first, or leave `--out` away"));
        }
        let mut source = Input::new(&self.trace, true)?.open()?;
        std::io::copy(&mut source, &mut std::io::sink())
            .map_err(|source| LabError::unreadable_trace(&self.trace, source))?;
        Ok(source.id())
    }

    /// Replays the trace on all caches, up to `jobs` at a time (0: one for each CPU). The same trace
    /// gives the same recordings, whatever the jobs: those of policies are of backend `policy`, those
    /// of kernels of backend `sim` and count pages, too. `keep` is called with each as soon as it is
    /// there, and with its place in the plan.
    ///
    /// # Errors
    /// A trace that cannot be read to its end, is not the expected one, or has nothing to count. What
    /// goes wrong on one kernel is part of the outcomes.
    pub fn run(
        &self,
        jobs: usize,
        control: &ReplayControl,
        keep: impl Fn(usize, &Recording) -> Result<(), LabError> + Sync,
    ) -> Result<Outcomes, LabError> {
        let is_kernel = |(_, cache): &&(String, CacheSpec)| matches!(cache, CacheSpec::Kernel { .. });
        let kernels = self.caches.iter().filter(is_kernel).count();
        let policies = self.caches.len() - kernels;
        let reads_first = policies > 0 && (self.counts_first() || self.needs_future());
        let input = Input::new(&self.trace, kernels > 0 || reads_first)?;
        if input.is_kept() {
            (control.observer)(ReplayProgress::Kept { bytes: input.length() });
        }
        let readings = kernels as u64 + u64::from(policies > 0);
        let length = input.length();
        let job = Job { plan: self, input, length, total: length.saturating_mul(readings), control };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
        pool.install(|| {
            let mut outcomes: Outcomes = self.caches.iter().map(|_| Ended::NotRun).collect();
            if policies > 0 {
                job.policies(&mut outcomes)?;
                for (index, outcome) in outcomes.iter().enumerate() {
                    if let Some(recording) = outcome.recording() {
                        keep(index, recording)?;
                    }
                }
            }
            if kernels > 0 && !control.stop.load(Ordering::Relaxed) {
                job.kernels(kernels, &mut outcomes, &keep)?;
            }
            Ok(outcomes)
        })
    }
}

/// A plan while it runs.
struct Job<'a> {
    plan: &'a ReplayPlan,
    input: Input,
    /// Of the trace.
    length: u64,
    /// To read in all.
    total: u64,
    control: &'a ReplayControl,
}

impl Job<'_> {
    fn failed(&self, source: TraceError) -> LabError {
        self.input.failed(source)
    }

    fn reader<'s>(&self, source: &'s mut Hashing) -> Result<TraceReader<&'s mut Hashing>, LabError> {
        let ReplayOptions { format, unsorted, .. } = self.plan.options;
        let reader = TraceReader::new(source, format).map_err(|error| self.failed(error))?;
        Ok(reader.unsorted(unsorted))
    }

    fn check(&self, found: TraceId) -> Result<(), LabError> {
        match self.plan.expected {
            Some(expected) if expected != found => Err(LabError::refused(
                format!(
                    "`{}` has {} bytes and is not the trace of this scenario, which had {}",
                    self.plan.trace.display(),
                    found.bytes,
                    expected.bytes
                ),
                "get the trace that it was made with, or replay this one by its own name",
            )),
            _ => Ok(()),
        }
    }

    fn identity(&self, index: usize, format: TraceFormat, id: TraceId) -> Recording {
        let (label, cache) = &self.plan.caches[index];
        let options = ReplayOptions { format: Some(format), ..self.plan.options };
        let (trace, interval) = (self.plan.trace.clone(), self.plan.interval);
        let scenario = ReplayScenario { trace, id, options, cache: cache.clone(), interval };
        let workload = format!("replay {}", file_name(&self.plan.trace));
        let recording = match cache {
            CacheSpec::Policy { policy, .. } => {
                Recording::new(label, workload, "policy", policy.to_string(), 0)
            }
            CacheSpec::Kernel { kernel, seed, .. } => {
                Recording::new(label, workload, "sim", kernel.to_string(), *seed)
            }
        };
        let machine = match cache {
            CacheSpec::Policy { .. } => String::new(),
            CacheSpec::Kernel { machine, mem, .. } => format!("{machine}, {mem} of memory"),
        };
        let (scenario_toml, command) = (scenario.to_toml(), scenario.command());
        Recording { scenario_toml, machine, command, ..recording }
    }

    /// Goes through the trace for what must be known beforehand: how many requests there are, where that
    /// decides, and which, where a policy knows the future.
    fn look_ahead(&self) -> Result<(u64, Future), LabError> {
        let mut future = Future::default();
        let needs_future = self.plan.needs_future();
        if !needs_future && !self.plan.counts_first() {
            return Ok((u64::MAX, future)); // Only a part of the requests asks for it.
        }
        let mut requests = 0;
        let mut source = self.input.open()?;
        for request in self.reader(&mut source)? {
            let request = request.map_err(|error| self.failed(error))?;
            requests += 1;
            if needs_future {
                future.push(request.object)?;
            }
        }
        Ok((requests, future))
    }

    /// Fills in the outcomes of policies, unless stopped.
    fn policies(&self, outcomes: &mut Outcomes) -> Result<(), LabError> {
        let options = self.plan.options;
        let kinds: Vec<(usize, PolicySpec, Capacity)> = (self.plan.caches.iter().enumerate())
            .filter_map(|(index, (_, cache))| match cache {
                CacheSpec::Policy { policy, capacity } => Some((index, policy.clone(), *capacity)),
                CacheSpec::Kernel { .. } => None,
            })
            .collect();
        let begin = Instant::now();
        let (requests, future) = self.look_ahead()?;
        let future = Arc::new(future);
        let mut source = self.input.open()?;
        let mut reader = self.reader(&mut source)?;
        let watch = policies::Watch {
            stop: &self.control.stop,
            report: &|bytes| (self.control.observer)(ReplayProgress::Read { bytes, total: self.total }),
        };
        let caches = kinds.iter().map(|(_, policy, capacity)| (policy.clone(), *capacity));
        let fed = policies::feed(&mut reader, options.warmup.of(requests), caches, &future, &watch);
        let Some(fed) = fed.map_err(|error| self.failed(error))? else { return Ok(()) };
        let format = reader.format();
        drop(reader);
        let wall = begin.elapsed();
        self.check(source.id())?;
        if fed.warmup == fed.requests {
            return Err(LabError::all_warmup(warmup_is_all(options.warmup, fed.requests)));
        }
        let (caches, seconds) = (kinds.len(), wall.as_secs_f64());
        (self.control.observer)(ReplayProgress::Fed { caches, requests: fed.requests, seconds });
        for ((index, policy, _), counted) in kinds.into_iter().zip(&fed.counted) {
            let recording = Recording {
                metrics: policies::metrics(counted, options.warmup, fed.warmup),
                notes: warmup_note(options.warmup, "").into_iter().chain(policy.values()).collect(),
                wall_ns: u64::try_from(wall.as_nanos()).ok(),
                ..self.identity(index, format, source.id())
            };
            outcomes[index] = Ended::Recorded(recording);
        }
        Ok(())
    }

    /// Fills in the outcomes of `count` kernels.
    fn kernels(
        &self,
        count: usize,
        outcomes: &mut Outcomes,
        keep: &(impl Fn(usize, &Recording) -> Result<(), LabError> + Sync),
    ) -> Result<(), LabError> {
        let mut source = self.input.open()?;
        let trace = Replay::new(self.input.path(), &mut source, self.plan.options)
            .map_err(|error| self.failed(error))?;
        let id = source.id();
        self.check(id)?;
        let (requests, format) = (trace.layout().requests, trace.format());
        if self.plan.options.warmup.of(requests) == WarmupEnd::Requests(requests) {
            return Err(LabError::all_warmup(warmup_is_all(self.plan.options.warmup, requests)));
        }
        let finished = AtomicUsize::new(0);
        let run = |(index, outcome): (usize, &mut Ended)| {
            let cache = &self.plan.caches[index].1;
            let CacheSpec::Kernel { kernel, machine, mem, swap, sysctls, limits, seed } = cache else {
                return;
            };
            if self.control.stop.load(Ordering::Relaxed) {
                return;
            }
            let mut identity = self.identity(index, format, id);
            let of_all = "counters are of the whole run, those of phase `replayed` of what was counted";
            identity.notes.extend(warmup_note(self.plan.options.warmup, of_all));
            let interval = self.plan.interval;
            let setting = Setting::new(kernel, machine, *mem, sysctls);
            let setting = setting.and_then(|setting| setting.with_swap(machine, *mem, swap.clone()));
            let result = setting.and_then(|setting| {
                identity.notes.extend(setting.notes.iter().cloned());
                let program = |done| {
                    let trace = trace.watched(done);
                    Program::Replay(limits.iter().fold(trace, |trace, limits| trace.limited(*limits)))
                };
                let build = |done| sim_run(program(done), setting, Filesystem::Ext4, *seed, interval);
                self.simulated(build, requests, index, identity)
            });
            let result = result.and_then(|recording| keep(index, &recording).map(|()| recording));
            if let Ok(recording) = &result {
                let done = finished.fetch_add(1, Ordering::Relaxed) + 1;
                let seconds = recording.wall_ns.unwrap_or(0) as f64 / 1e9;
                (self.control.observer)(ReplayProgress::Finished { done, total: count, requests, seconds });
            }
            *outcome = match result {
                Err(LabError::Interrupted { .. }) => Ended::NotRun,
                result => Ended::from(result),
            };
        };
        outcomes.par_iter_mut().enumerate().with_max_len(1).for_each(run);
        Ok(())
    }

    /// One kernel's run, whose progress is told as bytes of the trace.
    fn simulated(
        &self,
        build: impl FnOnce(Arc<AtomicU64>) -> SimRun,
        requests: u64,
        index: usize,
        identity: Recording,
    ) -> Result<Recording, LabError> {
        let done = Arc::new(AtomicU64::new(0));
        let told = Arc::new(AtomicU64::new(0));
        let (length, total) = (self.length, self.total);
        let observer = Arc::clone(&self.control.observer);
        let tell = {
            let (done, told) = (Arc::clone(&done), Arc::clone(&told));
            move || {
                let part = u128::from(length) * u128::from(done.load(Ordering::Relaxed));
                let bytes = (part / u128::from(requests.max(1))) as u64; // At most `length`.
                let before = told.swap(bytes, Ordering::Relaxed);
                observer(ReplayProgress::Read { bytes: bytes.saturating_sub(before), total });
            }
        };
        let (spec, stop) = (build(done), &self.control.stop);
        let result = match &self.control.kept {
            None => run_watched(&spec, identity, stop, move |_| tell(), Watch::default()),
            Some(keep) => keep.run(index, &spec, identity, stop, move |_| tell()),
        };
        let rest = length.saturating_sub(told.load(Ordering::Relaxed));
        (self.control.observer)(ReplayProgress::Read { bytes: rest, total });
        result
    }
}

/// What a reader must know of a warm-up.
fn warmup_note(warmup: Warmup, more: &str) -> Option<String> {
    let first = match warmup {
        Warmup::None => return None,
        Warmup::Percent(_) => format!("the first {warmup} of the requests are"),
        Warmup::Requests(_) => format!("the first {warmup} requests are"),
        Warmup::Time(_) => format!("the first {warmup} of the trace are"),
    };
    let more = if more.is_empty() { String::new() } else { format!("; {more}") };
    Some(format!("{first} warm-up and not counted{more}"))
}
