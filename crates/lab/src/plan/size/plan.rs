//! What a person asks for, with all names and values checked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use mm::version::rules::Cgroups;
use report::Patch;
use sim::machines::MachineSpec;
use units::{Bytes, Nanos};
use workload::amount::WarmupEnd;
use workload::limits::Limits;
use workload::replay::{ONE_IN_MAX, ReplayOptions, Timing, warmup_is_all};
use workload::scenario::{Backend, SEED_DEFAULT, parse_interval, parse_mem_of};
use workload::{KernelSpec, Scenario};

use super::curve;
use super::measured::Target;
use crate::error::LabError;
use crate::name::machine_file;
use crate::name::names::Names;
use crate::plan::replay::{STDIN, file_name};
use crate::plan::sweep::{RUNS_MAX, sizes};
use crate::resolve::defaults::first_machine;
use crate::resolve::kernel_name::version_of;
use crate::resolve::program;
use crate::resolve::request::{Request, Subject};
use crate::resolve::setting::Setting;
use crate::resolve::texts::{first_twice, kernel_named, newest_kernel, shell_quoted, sysctl_pairs};
use crate::show::fail_if;

/// The fewest limits of a curve that is searched.
pub const POINTS_MIN: usize = 4;
/// The most.
pub const POINTS_MAX: usize = 500;
/// What to do about a sample that is too small.
pub(super) const LARGER_SAMPLE: &str = "take a larger part with `--sample`, or leave it out";
/// The least that a group is limited to: below are batches of charges and of reclaim.
pub(super) const LIMIT_LEAST: Bytes = Bytes(1 << 20);

const POINTS_DEFAULT: usize = 32;
const SLOWDOWN_DEFAULT: &str = "5%";
const HEADROOM_DEFAULT: f64 = 10.0;
const RESOLUTION_DEFAULT: f64 = 0.05;

/// A trace to be sized, as a person names everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SizeRequest {
    /// The trace file; `-` is standard input.
    pub trace: PathBuf,
    /// How it is read, and what counts.
    pub options: ReplayOptions,
    /// When requests are made, if that was said: a program's trace has think times otherwise.
    pub timing: Option<String>,
    /// The kernel; none means the newest.
    pub kernel: Option<String>,
    /// The machine; none means the first.
    pub machine: Option<String>,
    /// Its disk: `nvme`, `ssd`, `hdd`, `network`, `measured`, or several after commas, of which the first counts.
    pub disk: Option<String>,
    /// Its memory; none: as much as the trace needs.
    pub mem: Option<String>,
    /// Sysctls, each `name=value`.
    pub sysctls: Vec<String>,
    /// The first seed.
    pub seed: Option<u64>,
    /// How many seeds; none means one.
    pub seeds: Option<u64>,
    /// Limits to run, and no others: `64M,128M` or `64M..1G`.
    pub limits: Option<String>,
    /// The most limits that are run.
    pub points: Option<usize>,
    /// How near two limits are that tell something apart: `5%`.
    pub resolution: Option<String>,
    /// How much slower it may be than without a limit: `5%`.
    pub slowdown: Option<String>,
    /// What else must not be so, in the form of `--fail-if`.
    pub fail_if: Vec<String>,
    /// How far `memory.max` is above `memory.high`: `10%`.
    pub headroom: Option<String>,
    /// A part to run instead of all: `1/16`.
    pub sample: Option<String>,
    /// Whether all of it is run at the same limits, too.
    pub check_sample: bool,
    /// What says whether it is so: [`VERIFY_DEFAULT`], the program itself, or a real kernel that replays the trace,
    /// `uml:6.12`, `vm:6.12`, `host`; `uml` is that of the model's version.
    pub verify: Option<String>,
    /// The program to be run, and its arguments; none: the command of the trace.
    pub program: Vec<OsString>,
    /// Whether inodes and dentries of the whole host leave memory before each run of the program.
    pub allow_host_pressure: bool,
    /// Time between two samples of counters: `100ms`.
    pub interval: Option<String>,
}

/// What verifies where nobody names a kernel: the program itself. A trace of requests has none, and is replayed on
/// User-Mode Linux.
pub const VERIFY_DEFAULT: &str = "program";
/// What asks for this host's.
pub(super) const MEASURED: &str = "measured";
/// User-Mode Linux of the model's version.
const VERIFY_UML: &str = "uml";

/// Which disks a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Disks {
    /// That of the machine, which was named, too.
    OfMachine,
    /// This host's where the trace is that of a captured program, else the machine's.
    Unsaid,
    /// These; the first is what the size is for.
    Named(Vec<String>),
}

/// Who says whether a recommendation holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verify {
    /// The program itself, in a memory cgroup of this host.
    Program,
    /// Three replays on a real kernel.
    Replay(String),
}

/// A trace that can be sized: all names and values are checked, the trace is not.
#[derive(Debug, Clone)]
pub struct SizePlan {
    pub(super) trace: PathBuf,
    pub(super) options: ReplayOptions,
    pub(super) kernel: KernelSpec,
    pub(super) machine: String,
    pub(super) disks: Disks,
    pub(super) mem: Option<Bytes>,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) seeds: Vec<u64>,
    pub(super) limits: Option<Vec<Bytes>>,
    pub(super) points: usize,
    /// As a part: 0.05.
    pub(super) resolution: f64,
    /// In percent.
    pub(super) headroom: f64,
    pub(super) target: Target,
    /// The target as written.
    pub(super) targets: Vec<String>,
    pub(super) sample: Option<u32>,
    pub(super) check_sample: bool,
    pub(super) verify: Option<Verify>,
    pub(super) program: Vec<OsString>,
    pub(super) allow_host_pressure: bool,
    pub(super) interval: Option<Nanos>,
    /// What is wanted of the recommendation.
    pub(super) patches: Vec<Patch>,
    /// Options of the command, as they were given, but limits, seeds and what is made of the runs.
    given: Vec<(&'static str, String)>,
    request: SizeRequest,
}

impl SizeRequest {
    /// One in how many files or pages is looked at, where it is not all.
    fn sampled(&self) -> Result<Option<u32>, LabError> {
        let sample = self.sample.as_deref().map(one_in).transpose()?.filter(|&one_in| one_in > 1);
        if self.check_sample && sample.is_none() {
            return Err(LabError::refused(
                "`--check-sample` is for a sample, and all of the trace is run",
                "add `--sample 1/16`, or leave it out",
            ));
        }
        Ok(sample)
    }

    /// The same with what its machine file says, if its machine is one.
    fn with_machine_file(&self) -> Result<Option<Self>, LabError> {
        let Some(file) = machine_file::of_option(self.machine.as_deref())? else { return Ok(None) };
        let sysctls = [file.sysctls, self.sysctls.clone()].concat();
        let mem = self.mem.clone().or(file.memory);
        Ok(Some(Self { machine: Some(file.machine), mem, sysctls, ..self.clone() }))
    }

    /// Checks all names and values.
    ///
    /// # Errors
    /// The first that cannot be, with what to write instead.
    pub fn plan(&self) -> Result<SizePlan, LabError> {
        if let Some(asked) = self.with_machine_file()? {
            return asked.plan();
        }
        let names = Names::default();
        let kernel = kernel_named(self.kernel.as_deref().unwrap_or(newest_kernel()), &names)?;
        let version = version_of(&kernel);
        if version.rules.cgroups == Cgroups::Off {
            return Err(LabError::refused(
                format!("`{kernel}` has no memory cgroups, so nothing can be limited"),
                "name a kernel from linux-4.5 on with `--kernel`",
            ));
        }
        let machine = names.vocabulary().machine(self.machine.as_deref().unwrap_or(first_machine().name))?;
        let disks = self.disks(&machine)?;
        let sysctls = sysctl_pairs(&self.sysctls, &names)?;
        let mem = self.mem.as_deref().map(|mem| parse_mem_of("--mem", mem)).transpose()?;
        if let Some(mem) = mem {
            Setting::new(&kernel, &machine, mem, &sysctls)?;
        }
        let sample = self.sampled()?;
        let verify = self.verified_by(&kernel.base)?;
        self.check_host_pressure(verify.as_ref())?;
        let (target, targets) = self.target()?;
        let points = self.points.unwrap_or(POINTS_DEFAULT);
        if !(POINTS_MIN..=POINTS_MAX).contains(&points) {
            let message = format!("`--points {points}` is out of range");
            return Err(LabError::refused(message, format!("give from {POINTS_MIN} to {POINTS_MAX}")));
        }
        let interval = self.interval.as_deref().map(|text| parse_interval("--interval", text)).transpose()?;
        Ok(SizePlan {
            trace: self.trace.clone(),
            options: self.options,
            seeds: self.seeds()?,
            limits: self.limits(sample.unwrap_or(1))?,
            points,
            resolution: match &self.resolution {
                None => RESOLUTION_DEFAULT,
                Some(text) => {
                    let hint = "write a part from 0.5% to 100%, such as `--resolution 5%`";
                    part(text, 0.5..=100.0, "--resolution", "distance of two limits", hint)? / 100.0
                }
            },
            headroom: headroom(self.headroom.as_deref())?,
            check_sample: self.check_sample,
            verify,
            program: self.program.clone(),
            allow_host_pressure: self.allow_host_pressure,
            given: self.given(&kernel, &machine),
            request: self.clone(),
            kernel,
            machine,
            disks,
            mem,
            sysctls,
            target,
            targets,
            sample,
            interval,
            patches: Vec::new(),
        })
    }

    /// Refuses to drop anything of the host where no program runs.
    pub(super) fn check_host_pressure(&self, verify: Option<&Verify>) -> Result<(), LabError> {
        if self.allow_host_pressure && verify != Some(&Verify::Program) {
            return Err(LabError::refused(
                "`--allow-host-pressure` is for a check with the program itself, and there is none",
                "add `--verify`, or leave it out",
            ));
        }
        Ok(())
    }

    /// Who is to say whether it is so.
    fn verified_by(&self, base: &str) -> Result<Option<Verify>, LabError> {
        let text = match (self.verify.as_deref(), &self.program[..]) {
            (None, []) => return Ok(None),
            (None | Some(VERIFY_DEFAULT), [_, ..]) => return Ok(Some(Verify::Program)),
            (Some(VERIFY_DEFAULT), []) if program::is_one(&self.trace) => return Ok(Some(Verify::Program)),
            (Some(text), []) => text,
            (Some(text), [_, ..]) => {
                let message = format!("`--verify {text}` replays the trace, and a command is named, too");
                return Err(LabError::refused(message, "leave one of them out"));
            }
        };
        let backend = match text {
            VERIFY_DEFAULT | VERIFY_UML => format!("{VERIFY_UML}:{}", base.trim_start_matches("linux-")),
            named => named.to_owned(),
        };
        match backend.parse::<Backend>() {
            Ok(Backend::Sim) | Err(_) => {
                let hint = "write `--verify program`, `--verify uml:6.12`, `--verify vm:6.12` or `--verify host`; \
                            `--verify` alone, as the last word, runs the program";
                Err(LabError::refused(
                    format!("`--verify {backend}` is neither the program nor a real kernel"),
                    hint,
                ))
            }
            Ok(_) if self.check_stdin() => {
                let message = "a trace from standard input cannot be run on a real kernel, too";
                Err(LabError::refused(message, "put the trace into a file first"))
            }
            Ok(_) => Ok(Some(Verify::Replay(backend))),
        }
    }

    /// The disks that were named, each of which a machine can have.
    fn disks(&self, machine: &str) -> Result<Disks, LabError> {
        let Some(text) = &self.disk else {
            return Ok(if self.machine.is_some() { Disks::OfMachine } else { Disks::Unsaid });
        };
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        for name in names.iter().filter(|name| *name != MEASURED) {
            MachineSpec::parse(&with_disk(machine, name)).map_err(|error| {
                let hint = format!("{}; `measured` is this host's", error.hint());
                LabError::refused(format!("`--disk {name}`: {error}"), hint)
            })?;
        }
        match first_twice(&names) {
            Some(name) => Err(LabError::twice("--disk", name)),
            None => Ok(Disks::Named(names)),
        }
    }

    /// When a program's operations are made; none: with the think times of the trace.
    fn pace(&self) -> Option<&str> {
        self.timing.as_deref()
    }

    fn check_stdin(&self) -> bool {
        self.trace == Path::new(STDIN)
    }

    fn seeds(&self) -> Result<Vec<u64>, LabError> {
        let (first, count) = (self.seed.unwrap_or(SEED_DEFAULT.0), self.seeds.unwrap_or(1));
        if !(1..=RUNS_MAX as u64).contains(&count) {
            return Err(LabError::seeds(count, RUNS_MAX as u64));
        }
        Ok((0..count).map(|offset| first.wrapping_add(offset)).collect())
    }

    fn limits(&self, one_in: u32) -> Result<Option<Vec<Bytes>>, LabError> {
        let Some(text) = &self.limits else { return Ok(None) };
        let mut limits = sizes("--limits", text)?;
        limits.sort_unstable();
        if let Some(pair) = limits.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(LabError::twice("--limits", pair[0]));
        }
        let least = Bytes(LIMIT_LEAST.get() * u64::from(one_in));
        match limits.first() {
            Some(&limit) if limit < least => {
                let (of_sample, hint) = match limit >= LIMIT_LEAST {
                    true => (" with this sample", LARGER_SAMPLE),
                    false => {
                        ("", "below that are the kernel's own batches, and a run ends in the OOM killer")
                    }
                };
                let message =
                    format!("{limit} is below {least}, the least that a run can be limited to{of_sample}");
                Err(LabError::refused(message, hint))
            }
            _ => Ok(Some(limits)),
        }
    }

    /// What must not be so: a slowdown, and what else was said; without either a slowdown of 5 %.
    fn target(&self) -> Result<(Target, Vec<String>), LabError> {
        let metric = match self.options.timing {
            Timing::Asap => "replay_seconds",
            Timing::Recorded => "in_requests_seconds",
        };
        let slowdown = match (&self.slowdown, self.fail_if.is_empty()) {
            (Some(text), _) => Some(text.as_str()),
            (None, true) => Some(SLOWDOWN_DEFAULT),
            (None, false) => None,
        };
        let mut targets = Vec::new();
        if let Some(text) = slowdown {
            let hint = "write a part from 0%, such as `--slowdown 5%`";
            let percent = part(text, 0.0..=1e6, "--slowdown", "part by which a run may be slower", hint)?;
            targets.push(format!("{metric} > +{percent}%"));
        }
        targets.extend(self.fail_if.iter().cloned());
        let limits = fail_if::parse(&targets)?;
        Ok((Target { limits, slowdown_of: metric.to_owned() }, targets))
    }

    /// Options that decide what a run is.
    fn given(&self, kernel: &KernelSpec, machine: &str) -> Vec<(&'static str, String)> {
        let mut given = vec![("--kernel", kernel.to_string())];
        if self.machine.is_some() {
            given.push(("--machine", machine.to_owned()));
        }
        given.extend(self.mem.iter().map(|mem| ("--mem", mem.clone())));
        given.extend(self.sysctls.iter().map(|pair| ("--set", pair.clone())));
        if self.options.timing != Timing::default() {
            given.push(("--timing", self.options.timing.name().to_owned()));
        }
        if self.options.warmup != workload::amount::Warmup::None {
            given.push(("--warmup", self.options.warmup.to_string()));
        }
        given.extend(self.options.format.map(|format| ("--trace-format", format.name().to_owned())));
        given.extend(self.sample.iter().map(|part| ("--sample", part.clone())));
        given.extend(self.interval.iter().map(|interval| ("--interval", interval.clone())));
        given
    }
}

fn with_disk(machine: &str, disk: &str) -> String {
    let base = machine.split("+disk=").next().unwrap_or(machine);
    format!("{base}+disk={disk}")
}

impl SizePlan {
    /// With patches of what will be recommended.
    #[must_use]
    pub fn patched(self, patches: Vec<Patch>) -> Self {
        Self { patches, ..self }
    }

    /// The same on a disk that a machine can have.
    pub(super) fn on_disk(&self, disk: &str) -> Self {
        let mut given = self.given.clone();
        given.retain(|(name, _)| *name != "--disk");
        given.push(("--disk", disk.to_owned()));
        Self { machine: with_disk(&self.machine, disk), given, ..self.clone() }
    }

    /// The same on a machine with so much memory.
    pub(super) fn with_memory(&self, mem: Bytes) -> Self {
        let mut given = self.given.clone();
        given.retain(|(name, _)| *name != "--mem");
        given.push(("--mem", mem.to_string()));
        Self { mem: Some(mem), given, ..self.clone() }
    }

    /// The trace's name.
    pub(super) fn name(&self) -> String {
        file_name(&self.trace)
    }

    /// What recordings say that they are of.
    pub(super) fn workload(&self) -> String {
        format!("replay {}", self.name())
    }

    /// The command that finds all of it again.
    pub(super) fn command(&self) -> String {
        let request = &self.request;
        let mut command = self.spelled(&self.subject(), &self.asked(&request.verify));
        if request.check_sample {
            command += " --check-sample";
        }
        for patch in &self.patches {
            command += &format!(" --patch {}", shell_quoted(&patch.to_string()));
        }
        if !request.program.is_empty() {
            let words = request.program.iter().map(|word| shell_quoted(&word.to_string_lossy()));
            command += &format!(" -- {}", words.collect::<Vec<_>>().join(" "));
        }
        command
    }

    /// The command that captures another one with own caches of these sizes, and finds all of it again.
    pub(super) fn command_with_own_cache(&self, own_caches: &str, command: &str) -> String {
        let subject = format!("--own-cache {}", shell_quoted(own_caches));
        let verify = self.verify.is_some().then(|| VERIFY_DEFAULT.to_owned());
        let more = self.asked(&verify);
        format!("{} -- {command}", self.spelled(&subject, &more))
    }

    /// The command that makes one run again; a run with all three limits is part of the whole search only.
    pub(super) fn command_of(&self, limits: Limits, seed: u64) -> String {
        match limits {
            Limits { max: Some(max), high: None, .. } => {
                let more = [("--limits", max.to_string()), ("--seed", seed.to_string())];
                self.spelled(&self.subject(), &more)
            }
            _ => self.command(),
        }
    }

    fn subject(&self) -> String {
        shell_quoted(&self.trace.to_string_lossy())
    }

    /// Options of the search, and who checks it.
    fn asked(&self, verify: &Option<String>) -> Vec<(&'static str, String)> {
        let request = &self.request;
        let mut asked: Vec<(&'static str, String)> = Vec::new();
        let mut add = |name: &'static str, value: &Option<String>| {
            asked.extend(value.iter().map(|value| (name, value.clone())));
        };
        add("--limits", &request.limits);
        add("--points", &request.points.map(|points| points.to_string()));
        add("--resolution", &request.resolution);
        add("--slowdown", &request.slowdown);
        request.fail_if.iter().for_each(|text| add("--fail-if", &Some(text.clone())));
        add("--headroom", &request.headroom);
        add("--verify", verify);
        add("--seed", &request.seed.map(|seed| seed.to_string()));
        add("--seeds", &request.seeds.map(|seeds| seeds.to_string()));
        asked
    }

    fn spelled(&self, subject: &str, more: &[(&'static str, String)]) -> String {
        let mut command = format!("pagetide size {subject}");
        for (name, value) in self.given.iter().chain(more) {
            command += &format!(" {name} {}", shell_quoted(value));
        }
        let flags =
            [("--unsorted", self.options.unsorted), ("--allow-host-pressure", self.allow_host_pressure)];
        for (flag, _) in flags.into_iter().filter(|(_, given)| *given) {
            command += &format!(" {flag}");
        }
        command
    }

    /// Refuses a warm-up that leaves nothing to count.
    pub(super) fn check_warmup(&self, requests: impl Iterator<Item = u64>) -> Result<(), LabError> {
        for requests in requests {
            if requests > 0 && self.options.warmup.of(requests) == WarmupEnd::Requests(requests) {
                return Err(LabError::all_warmup(warmup_is_all(self.options.warmup, requests)));
            }
        }
        Ok(())
    }

    /// Refuses what is for traces of requests.
    pub(super) fn check_program(&self) -> Result<(), LabError> {
        let options = &self.options;
        let given = [
            ("--sample", self.request.sample.is_some()),
            ("--warmup", options.warmup != workload::amount::Warmup::None),
            ("--trace-format", options.format.is_some()),
            ("--unsorted", options.unsorted),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                let trace = self.trace.display();
                let message =
                    format!("`{option}` is for traces of requests, and `{trace}` is that of a program");
                Err(LabError::refused(message, "leave it out"))
            }
            None => Ok(()),
        }
    }

    /// The replay of a program as it is when limits, seed and memory are not said.
    pub(super) fn program_scenario(&self) -> Result<Scenario, LabError> {
        let mut params = vec![format!("trace={}", self.trace.display())];
        params.extend(self.request.pace().map(|pace| format!("pace={pace}")));
        let request = Request {
            kernel: Some(self.kernel.to_string()),
            machine: Some(self.machine.clone()),
            mem: self.request.mem.clone(),
            params,
            sysctls: self.request.sysctls.clone(),
            interval: self.request.interval.clone(),
            ..Request::new(Subject::Workload(workload::captured::NAME.to_owned()))
        };
        request.resolve()
    }

    /// The same on a real kernel, a guest with so much memory.
    pub(super) fn real_scenario(&self, backend: &str, mem: Bytes) -> Result<Scenario, LabError> {
        let pace = self.request.pace().unwrap_or(if program::is_one(&self.trace) { "think" } else { "asap" });
        let request = Request {
            backend: Some(backend.to_owned()),
            mem: backend.starts_with("vm").then(|| mem.to_string()),
            params: vec![format!("trace={}", self.trace.display()), format!("pace={pace}")],
            seed: self.request.seed,
            interval: self.request.interval.clone(),
            ..Request::new(Subject::Workload(workload::captured::NAME.to_owned()))
        };
        request.resolve()
    }

    /// Whether the trace comes from standard input.
    pub fn reads_stdin(&self) -> bool {
        self.trace == Path::new(STDIN)
    }
}

/// In percent, how far `memory.max` is above what is enough.
pub(super) fn headroom(text: Option<&str>) -> Result<f64, LabError> {
    let Some(text) = text else { return Ok(HEADROOM_DEFAULT) };
    let hint = "write a part from 0% to 1000%, such as `--headroom 10%`";
    part(text, 0.0..=1000.0, "--headroom", "part by which `memory.max` is above `memory.high`", hint)
}

/// `5%`, in percent, if it is in a range; else that `option` takes a `what`.
fn part(
    text: &str,
    range: RangeInclusive<f64>,
    option: &str,
    what: &str,
    hint: &str,
) -> Result<f64, LabError> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
    let value = number.filter(|value| range.contains(value));
    value.ok_or_else(|| LabError::refused(format!("`{option} {text}` is no {what}"), hint))
}

/// `1/16`.
fn one_in(text: &str) -> Result<u32, LabError> {
    let wrong = || {
        let hint = format!("write one in so many, from `1/1` to `1/{ONE_IN_MAX}`, such as `--sample 1/16`");
        LabError::refused(format!("`--sample {text}` is no part of a trace"), hint)
    };
    let (one, many) = text.trim().split_once('/').ok_or_else(wrong)?;
    let many: u32 = many.trim().parse().map_err(|_| wrong())?;
    if one.trim() != "1" || !(1..=ONE_IN_MAX).contains(&many) {
        return Err(wrong());
    }
    Ok(many)
}

/// Nothing of the search is random, and a coarse curve comes before a fine one.
const _: () = assert!(POINTS_MIN > 1 && curve::COARSE_MAX < POINTS_DEFAULT);
