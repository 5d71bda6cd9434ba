//! Runs of one trace at several limits: what they share, and what each is.
//!
//! The trace is read once and held in memory. Runs share nothing else and go in parallel; which limits are run
//! does not depend on how many at a time. A run of a sample has a machine, limits, readahead and times of writeback in
//! proportion to it ([`Field::setting`]), and its figures are scaled back ([`scaled`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kernel::Filesystem;
use rayon::prelude::*;
use recording::Recording;
use sim::machines::MachineSpec;
use sim::run::{Program, SimRun, Watch};
use trace::Trace;
use trace::info::TraceInfo;
use trace::requests::TraceFormat;
use units::{Bytes, Nanos, PAGE_SIZE, Seed};
use workload::Scenario;
use workload::amount::Warmup;
use workload::limits::Limits;
use workload::replay::{Held, Replay, ReplayOptions, Whole};
use workload::scenario::{MEM_MAX, Swap};

use super::control::{SizeControl, SizeProgress};
use super::plan::SizePlan;
use crate::error::LabError;
use crate::plan::replay::{CacheSpec, ReplayScenario, TraceId};
use crate::resolve::program;
use crate::resolve::setting::Setting;
use crate::run::kept::KeepRuns;
use crate::run::simulate::{self, run_watched, sim_run};

/// What is run.
pub(super) enum Source {
    /// A trace of requests.
    Requests {
        /// All of it, where it is run.
        whole: Option<Arc<Held>>,
        /// A sample for each seed, where samples are run.
        samples: Vec<Arc<Held>>,
        format: TraceFormat,
        id: TraceId,
    },
    /// A program's trace, as a scenario of which each run has its own limits and seed.
    Program { trace: Arc<Trace>, info: Box<TraceInfo>, like: Box<Scenario> },
}

impl Source {
    /// Different bytes that it asks for.
    pub(super) fn footprint(&self) -> Bytes {
        match self {
            Self::Requests { .. } => {
                Bytes(self.held().map_or(0, |held| held.whole.footprint_pages) * PAGE_SIZE)
            }
            Self::Program { info, .. } => {
                let anonymous =
                    info.memory.anonymous_bytes_most.max(info.footprint.anonymous_pages * PAGE_SIZE);
                Bytes(info.footprint.file_pages * PAGE_SIZE + anonymous)
            }
        }
    }

    /// The first sample of a trace of requests, if samples are run.
    pub(super) fn sample(&self) -> Option<&Held> {
        match self {
            Self::Requests { samples, .. } => samples.first().map(|held| &**held),
            Self::Program { .. } => None,
        }
    }

    /// What is known of a trace of requests.
    pub(super) fn held(&self) -> Option<&Held> {
        match self {
            Self::Requests { whole, samples, .. } => whole.as_deref().or(samples.first().map(|held| &**held)),
            Self::Program { .. } => None,
        }
    }
}

/// What all runs share.
pub(super) struct Field<'a> {
    pub(super) plan: &'a SizePlan,
    pub(super) control: &'a SizeControl,
    pub(super) source: Source,
    /// Memory of the machine that runs all of it.
    pub(super) mem: Bytes,
    /// Where recordings are kept.
    pub(super) out: Option<PathBuf>,
    /// Runs that are over.
    pub(super) finished: AtomicUsize,
    /// Why a recording could not be kept, the first of several. Its run counts all the same.
    pub(super) not_kept: Mutex<Option<LabError>>,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// Of all of the trace, whatever part is run.
    pub(super) limits: Limits,
    /// The seed's place in the plan.
    pub(super) seed: usize,
    /// Whether all of the trace is run though a sample was asked for.
    pub(super) whole: bool,
}

/// Different pages of the trace times this fit into the machine beside all that the kernel has.
const ROOM: (u64, u64) = (3, 2);
/// Memory beside that.
const ROOM_MORE: u64 = 1 << 30;

impl<'a> Field<'a> {
    /// With what was read of the trace.
    pub(super) fn new(
        plan: &'a SizePlan,
        control: &'a SizeControl,
        source: Source,
        out: Option<&Path>,
    ) -> Result<Self, LabError> {
        if source.held().is_some_and(|held| held.whole.footprint_pages == 0) {
            let trace = plan.trace.display();
            return Err(LabError::refused(
                format!("`{trace}` asks for no page: all of its requests are of 0 bytes"),
                "check the trace's column of sizes",
            ));
        }
        let mem = memory(plan, source.footprint())?;
        let out = out.map(Path::to_owned);
        Ok(Self {
            plan,
            control,
            source,
            mem,
            out,
            finished: AtomicUsize::new(0),
            not_kept: Mutex::default(),
        })
    }

    /// What is run, of those that are not stopped; in their order.
    ///
    /// # Errors
    /// The first run that failed; not those that a signal ended.
    pub(super) fn run(&self, runs: &[Run]) -> Result<Vec<Option<Recording>>, LabError> {
        let stopped = || self.control.stop.load(Ordering::Relaxed);
        let one = |run: &Run| {
            if stopped() {
                return Ok(None);
            }
            match self.run_one(run) {
                Ok(recording) => Ok(Some(recording)),
                Err(LabError::Interrupted { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let ended: Vec<Result<Option<Recording>, LabError>> =
            runs.par_iter().with_max_len(1).map(one).collect();
        ended.into_iter().collect()
    }

    fn run_one(&self, run: &Run) -> Result<Recording, LabError> {
        match &self.source {
            Source::Program { trace, like, .. } => {
                let seed = self.plan.seeds[run.seed];
                let scenario = Scenario { seed: Seed(seed), mem: Some(self.mem), ..(**like).clone() };
                let scenario = program::scenario(&scenario, &self.plan.trace, trace, run.limits)?;
                let (spec, identity) = simulate::plan(&scenario, &self.label(run))?;
                self.recorded(run, &spec, identity)
            }
            Source::Requests { whole, samples, .. } => {
                let sampled = self.plan.sample.filter(|_| !run.whole);
                let held = match sampled {
                    Some(_) => &samples[run.seed],
                    None => whole.as_ref().expect("read where it is run"),
                };
                let (spec, identity) = self.requests(run, sampled.map_or(1, u64::from), held)?;
                let recording = self.recorded(run, &spec, identity)?;
                Ok(if sampled.is_some() { scaled(recording, held) } else { recording })
            }
        }
    }

    /// One part in `one_in` of a trace of requests.
    fn requests(&self, run: &Run, one_in: u64, held: &Arc<Held>) -> Result<(SimRun, Recording), LabError> {
        let times = held.times();
        let part = |limit: Option<Bytes>| {
            limit.map(|limit| Bytes(((limit.get() as f64 / times) as u64).next_multiple_of(PAGE_SIZE)))
        };
        let Limits { max, high, low } = run.limits;
        let limits = Limits { max: part(max), high: part(high), low: part(low) };
        let setting = self.setting(one_in, held)?;
        let seed = self.plan.seeds[run.seed];
        let warmup = part_of(self.plan.options.warmup, held);
        let options = ReplayOptions { warmup, ..self.plan.options };
        let program = Program::Replay(Replay::of_held(Arc::clone(held), options).limited(limits));
        let whole = (one_in == 1).then(|| self.replay(run)).flatten();
        let identity = Recording {
            machine: format!("{}, {} of memory", self.plan.machine, self.mem),
            command: whole
                .as_ref()
                .map_or_else(|| self.plan.command_of(run.limits, seed), ReplayScenario::command),
            scenario_toml: whole.as_ref().map_or_else(String::new, ReplayScenario::to_toml),
            notes: setting.notes.clone(),
            ..Recording::new(self.label(run), self.plan.workload(), "sim", self.plan.kernel.to_string(), seed)
        };
        Ok((sim_run(program, setting, Filesystem::Ext4, seed, self.plan.interval), identity))
    }

    /// A run of a whole trace of requests as a replay, which gives the same recording. A sample's has none: its
    /// machine is none that has a name.
    fn replay(&self, run: &Run) -> Option<ReplayScenario> {
        let Source::Requests { format, id, .. } = self.source else { return None };
        let plan = self.plan;
        let cache = CacheSpec::Kernel {
            kernel: plan.kernel.clone(),
            machine: plan.machine.clone(),
            mem: self.mem,
            swap: Swap::NONE,
            sysctls: plan.sysctls.clone(),
            limits: Some(run.limits),
            seed: plan.seeds[run.seed],
        };
        let options = ReplayOptions { format: Some(format), ..plan.options };
        Some(ReplayScenario { trace: plan.trace.clone(), id, options, cache, interval: plan.interval })
    }

    /// Runs it, keeps its recording, and tells that it is over.
    fn recorded(&self, run: &Run, spec: &SimRun, identity: Recording) -> Result<Recording, LabError> {
        let (label, seed) = (identity.label.clone(), identity.seed);
        let stop = &self.control.stop;
        let recording = match &self.out {
            None => run_watched(spec, identity, stop, |_| {}, Watch::default())?,
            Some(out) => {
                let folder = out.join(folder_of(&label, seed));
                let keep = KeepRuns { detail: None, folder: Arc::new(move |_| folder.clone()) };
                match keep.run(run.seed, spec, identity, stop, |_| {}) {
                    Err(LabError::NotKept(recording, error)) => {
                        self.not_kept.lock().expect("no panic holds it").get_or_insert(error.into());
                        *recording
                    }
                    other => other?,
                }
            }
        };
        let finished = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        let seconds = recording.wall_ns.unwrap_or(0) as f64 / 1e9;
        (self.control.observer)(SizeProgress::Finished { finished, label: &label, seed, seconds });
        Ok(recording)
    }

    /// Kernel and machine for one part in `one_in`.
    fn setting(&self, one_in: u64, held: &Held) -> Result<Setting, LabError> {
        let plan = self.plan;
        let mut sysctls = plan.sysctls.clone();
        let mut mem = self.mem;
        if one_in > 1 {
            let least = MachineSpec::find(&plan.machine).map_or(Bytes(0), |spec| spec.least_mem);
            let needed =
                Bytes((held.footprint_pages * PAGE_SIZE * ROOM.0 / ROOM.1).next_multiple_of(16 << 20));
            let in_proportion = Bytes((mem.get() / one_in).next_multiple_of(1 << 20));
            mem = in_proportion.max(least).max(Bytes(needed.get() + (64 << 20)));
            for (name, default) in TIMES {
                let value = sysctls.entry(name.to_owned()).or_insert_with(|| default.to_string());
                if let Ok(time) = value.parse::<u64>() {
                    *value = time.div_ceil(one_in).to_string();
                }
            }
            for name in AMOUNTS {
                if let Some(value) = sysctls.get_mut(name)
                    && let Ok(amount) = value.parse::<u64>()
                {
                    *value = amount.div_ceil(one_in).to_string();
                }
            }
        }
        let mut setting = Setting::new(&plan.kernel, &plan.machine, mem, &sysctls)?;
        thin(&mut setting, held);
        Ok(setting)
    }

    fn label(&self, run: &Run) -> String {
        let Limits { max, high, .. } = run.limits;
        let size = match (max, high) {
            (None, _) => "unlimited".to_owned(),
            (Some(max), None) => max.to_string(),
            (Some(max), Some(high)) => format!("{high} high {max}"),
        };
        let part = match self.plan.sample {
            Some(one_in) if !run.whole => format!(" 1in{one_in}"),
            _ => String::new(),
        };
        format!("{}{part} {size}", self.plan.kernel)
    }
}

/// Times by which dirty pages are written, in hundredths of a second, and what they are unless set.
const TIMES: [(&str, u64); 2] = [("vm.dirty_writeback_centisecs", 500), ("vm.dirty_expire_centisecs", 3000)];
/// Amounts of dirty memory that scale with it.
const AMOUNTS: [&str; 2] = ["vm.dirty_bytes", "vm.dirty_background_bytes"];

/// Memory of the machine: what was asked for, or enough that only the group's limit counts.
pub(super) fn memory(plan: &SizePlan, footprint: Bytes) -> Result<Bytes, LabError> {
    match plan.mem {
        Some(mem) if mem.get() < footprint.get() + footprint.get() / 16 => Err(LabError::refused(
            format!(
                "`--mem {mem}` is too little for the trace without a limit, which asks for {footprint} of \
                     different pages"
            ),
            "leave `--mem` out, or give more: the group is to be limited, not the machine",
        )),
        Some(mem) => Ok(mem),
        None => {
            let needed = footprint.get().saturating_mul(ROOM.0) / ROOM.1 + ROOM_MORE;
            Ok(Bytes(needed.next_multiple_of(1 << 30)).min(MEM_MAX))
        }
    }
}

/// The folder of a run's recording.
fn folder_of(label: &str, seed: u64) -> String {
    format!("{}-seed{seed}", label.replace(['/', ' '], "-"))
}

/// A number of requests is one of the whole trace.
fn part_of(warmup: Warmup, held: &Held) -> Warmup {
    match warmup {
        Warmup::Requests(requests) => {
            let part =
                u128::from(requests) * u128::from(held.requests()) / u128::from(held.whole.requests.max(1));
            Warmup::Requests(u64::try_from(part).unwrap_or(u64::MAX))
        }
        other => other,
    }
}

/// Pages of the readahead window on the machine of a plan.
pub(super) fn window(plan: &SizePlan) -> Result<u32, LabError> {
    let least = MachineSpec::find(&plan.machine).map_or(Bytes(0), |spec| spec.least_mem);
    let mem = plan.mem.unwrap_or(Bytes(ROOM_MORE)).max(least);
    Ok(Setting::new(&plan.kernel, &plan.machine, mem, &plan.sysctls)?.hardware.readahead_pages)
}

/// Makes the machine's I/O that of a thinned sample: windows are as much shorter as runs are, and what a request costs
/// beside its bytes is divided among as many requests as the sample has for one of the whole.
fn thin(setting: &mut Setting, held: &Held) {
    let hardware = &mut setting.hardware;
    let one_of = held.one_of();
    if one_of == 1 {
        return;
    }
    if hardware.readahead_pages > 0 {
        hardware.readahead_pages = (hardware.readahead_pages + (one_of / 2)).div_euclid(one_of).max(1);
    }
    let parts = held.request_parts().max(1.0);
    for disk in &mut hardware.devices {
        for speed in [&mut disk.read, &mut disk.write] {
            for time in [&mut speed.latency, &mut speed.op, &mut speed.random_op] {
                *time = Nanos((time.0 as f64 / parts) as u64);
            }
        }
    }
}

/// Figures of all of the trace from those of a sample: what was counted and how long it took is multiplied. Misses
/// are multiplied and set against all pages that the whole trace asks for, which is known, and not against those
/// that the sample happens to ask for: a few hot pages more or less in it change the hits, and hardly the misses.
fn scaled(mut recording: Recording, held: &Held) -> Recording {
    let factor = held.times();
    // With a warm-up only the sample knows how many of them count.
    let counts_all = !recording.metrics.contains_key("warmup_requests");
    for (name, value) in &mut recording.metrics {
        if !name.ends_with("_ratio") {
            *value *= factor;
        }
    }
    if let (true, Some(&misses)) = (counts_all, recording.metrics.get("page_misses")) {
        let Whole { accesses, requests, writes, .. } = held.whole;
        let accesses = accesses as f64;
        let misses = misses.min(accesses);
        for (name, value) in [
            ("pages_accessed", accesses),
            ("page_misses", misses),
            ("page_hits", accesses - misses),
            ("page_miss_ratio", misses / accesses),
            ("requests", requests as f64),
            ("requests_read", (requests - writes) as f64),
            ("requests_write", writes as f64),
        ] {
            recording.metrics.insert(name.to_owned(), value);
        }
    }
    let times = |value: &mut u64| *value = (*value as f64 * factor).round() as u64;
    recording.vmstat.values_mut().for_each(times);
    recording.phases.iter_mut().flat_map(|phase| phase.vmstat.values_mut()).for_each(times);
    recording.sections.iter_mut().for_each(|section| times(&mut section.spent_ns));
    recording
}
