//! A replay in full, as text: what its recording keeps as `scenario.toml`, and the command that makes
//! it again.
//!
//! Not a workload's scenario: it names a trace by its path, length and hash, and a kernel's page
//! cache or a plain policy. Left out: the trace itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use policy::{Capacity, PolicySpec};
use serde::Deserialize;
use units::{Bytes, Nanos, parse_size};
use workload::KernelSpec;
use workload::amount::Warmup;
use workload::limits::Limits;
use workload::replay::{ReplayOptions, Timing};
use workload::scenario::{SEED_DEFAULT, ScenarioProblem, Swap, interval_text, parse_interval, parse_mem};

use crate::error::LabError;
use crate::keep::folders::is_replay;
use crate::name::names::Names;
use crate::resolve::defaults::first_machine;
use crate::resolve::texts::{shell_quoted, sysctl_pairs};

/// The name of standard input.
pub const STDIN: &str = "-";

/// The version of the text form.
const SCHEMA: u32 = 1;
/// The filesystem below the page cache of a replay.
const FILESYSTEM: &str = "ext4";

/// What a trace is replayed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheSpec {
    /// A plain policy that holds so many objects.
    Policy {
        /// Whom it evicts.
        policy: PolicySpec,
        /// How many objects it holds.
        capacity: Capacity,
    },
    /// The page cache of a simulated machine.
    Kernel {
        /// The kernel.
        kernel: KernelSpec,
        /// The machine, by name.
        machine: String,
        /// Its memory.
        mem: Bytes,
        /// What it swaps to.
        swap: Swap,
        /// Sysctls that differ from the kernel's own.
        sysctls: BTreeMap<String, String>,
        /// Limits of the cgroup that the requests are made in; nothing where there is no group.
        limits: Option<Limits>,
        /// From which all randomness follows.
        seed: u64,
    },
}

/// What a limit is written as that is none.
const NO_LIMIT: &str = "none";

impl CacheSpec {
    /// What its recording is called: the policy or kernel, and its size, also that of its cgroup.
    pub fn label(&self) -> String {
        match self {
            Self::Policy { policy, capacity } => format!("{policy} {}", capacity.get()),
            Self::Kernel { kernel, mem, limits: None, .. } => format!("{kernel} {mem}"),
            Self::Kernel { kernel, mem, limits: Some(limits), .. } => {
                let given = limit_keys(*limits).into_iter();
                given.fold(format!("{kernel} {mem}"), |label, (key, size)| format!("{label} {key} {size}"))
            }
        }
    }
}

/// Limits as they are written, with their keys, which are options, too: `limit` always, so that a group shows.
fn limit_keys(limits: Limits) -> Vec<(&'static str, String)> {
    let Limits { max, high, low } = limits;
    let more =
        [("high", high), ("low", low)].into_iter().filter_map(|(key, size)| Some((key, size?.to_string())));
    let max = max.map_or(NO_LIMIT.to_owned(), |max| max.to_string());
    [("limit", max)].into_iter().chain(more).collect()
}

/// What is written as limits: a group, if there is anything.
pub(super) fn limits_of(
    max: Option<&str>,
    high: Option<&str>,
    low: Option<&str>,
) -> Result<Option<Limits>, LabError> {
    let given = max.or(high).or(low).is_some();
    let max = max.filter(|text| *text != NO_LIMIT);
    let size = |key, text: Option<&str>| {
        let size =
            text.map(|text| parse_size(text).map_err(|source| ScenarioProblem::NotASize { key, source }));
        size.transpose()
    };
    let limits = Limits { max: size("limit", max)?, high: size("high", high)?, low: size("low", low)? };
    Ok(given.then_some(limits))
}

/// Which bytes a trace has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId {
    /// How many, as they are in the file.
    pub bytes: u64,
    /// Their xxh3-128.
    pub hash: u128,
}

/// A replay of which everything is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayScenario {
    /// The trace's path, as it was given; `-` is standard input.
    pub trace: PathBuf,
    /// Its bytes.
    pub id: TraceId,
    /// How it is read. The format is known.
    pub options: ReplayOptions,
    /// What it is replayed on.
    pub cache: CacheSpec,
    /// Time between two samples of a kernel's counters, where somebody said so.
    pub interval: Option<Nanos>,
}

impl ReplayScenario {
    /// As TOML: every value, always in this order.
    pub fn to_toml(&self) -> String {
        let mut toml = String::new();
        let mut line = |key: &str, value: &dyn std::fmt::Display| {
            writeln!(toml, "{key} = {value}").expect("a String takes all that is written");
        };
        let text = |value: &str| toml::Value::from(value).to_string();
        let ReplayOptions { format, unsorted, timing, warmup } = self.options;
        line("schema", &SCHEMA);
        line("replay", &text(&self.trace.to_string_lossy()));
        line("trace_bytes", &self.id.bytes);
        line("trace_hash", &text(&format!("{:032x}", self.id.hash)));
        if let Some(format) = format {
            line("format", &text(format.name()));
        }
        line("unsorted", &unsorted);
        line("warmup", &text(&warmup.to_string()));
        match &self.cache {
            CacheSpec::Policy { policy, capacity } => {
                line("policy", &text(&policy.to_string()));
                line("capacity", &capacity.get());
            }
            CacheSpec::Kernel { kernel, machine, mem, swap, sysctls, limits, seed } => {
                line("timing", &text(timing.name()));
                line("kernel", &text(&kernel.to_string()));
                line("machine", &text(machine));
                line("mem", &text(&mem.to_string()));
                if !swap.is_none() {
                    line("swap", &text(&swap.to_string()));
                }
                line("filesystem", &text(FILESYSTEM));
                for (key, size) in limits.map_or_else(Vec::new, limit_keys) {
                    line(key, &text(&size));
                }
                line("seed", &text(&seed.to_string()));
                if let Some(interval) = self.interval {
                    line("interval", &text(&interval_text(interval)));
                }
                if !sysctls.is_empty() {
                    toml.push_str("\n[sysctls]\n");
                    for (name, value) in sysctls {
                        writeln!(toml, "{} = {}", text(name), text(value)).expect("as above");
                    }
                }
            }
        }
        toml
    }

    /// Reads the file `path`, which [`ReplayScenario::to_toml`] wrote.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or lacks or has what a replay has not.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = std::fs::read_to_string(path).map_err(|source| LabError::unreadable(path, source))?;
        Self::of_text(&text, path)
    }

    /// Reads what [`ReplayScenario::to_toml`] wrote; `path` is where it came from.
    ///
    /// # Errors
    /// It is no TOML, or lacks or has what a replay has not.
    pub fn of_text(text: &str, path: &Path) -> Result<Self, LabError> {
        Self::parse(text).map_err(|error| match error {
            Problem::Text(problem) => LabError::refused(
                format!("`{}` is no scenario of a replay: {problem}", path.display()),
                "a replay's recording has one, as `scenario.toml`",
            ),
            Problem::Lab(error) => *error,
        })
    }

    fn parse(text: &str) -> Result<Self, Problem> {
        let written: Written = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            Problem::Text(format!("line {line}: {}", error.message().trim_end()))
        })?;
        let say = |problem: &str| Problem::Text(problem.to_owned());
        if written.schema != SCHEMA {
            return Err(say(&format!("it has schema {}, and this program reads {SCHEMA}", written.schema)));
        }
        let options = options(
            written.format.as_deref(),
            written.timing.as_deref(),
            written.warmup.as_deref(),
            written.unsorted,
        )?;
        let interval = written.interval.as_deref().map(|text| parse_interval("interval", text));
        let hash =
            u128::from_str_radix(&written.trace_hash, 16).map_err(|_| say("`trace_hash` is no hash"))?;
        let cache = match (&written.policy, written.capacity, &written.kernel, &written.mem) {
            (Some(policy), Some(capacity), None, None) => CacheSpec::Policy {
                policy: policy.parse().map_err(LabError::from)?,
                capacity: Capacity::new(capacity).map_err(LabError::from)?,
            },
            (None, None, Some(kernel), Some(mem)) => {
                let names = Names::default();
                let pairs: Vec<String> =
                    written.sysctls.iter().map(|(name, value)| format!("{name}={value}")).collect();
                if written.filesystem.as_deref().is_some_and(|name| name != FILESYSTEM) {
                    return Err(say(&format!("`filesystem` is `{FILESYSTEM}` in replays")));
                }
                let machine = written.machine.as_deref().ok_or_else(|| say("key `machine` is missing"))?;
                let seed = written.seed.as_deref().map_or(Ok(SEED_DEFAULT.0), str::parse);
                CacheSpec::Kernel {
                    kernel: names.vocabulary().kernel(kernel).map_err(LabError::from)?,
                    machine: names.vocabulary().machine(machine).map_err(LabError::from)?,
                    mem: parse_mem(mem).map_err(LabError::from)?,
                    swap: swap_of(written.swap.as_deref())?,
                    sysctls: sysctl_pairs(&pairs, &names)?,
                    limits: limits_of(
                        written.limit.as_deref(),
                        written.high.as_deref(),
                        written.low.as_deref(),
                    )?,
                    seed: seed.map_err(|_| say("`seed` is no whole number"))?,
                }
            }
            _ => {
                return Err(say("it takes either `policy` and `capacity`, or `kernel`, `machine` and `mem`"));
            }
        };
        Ok(Self {
            trace: PathBuf::from(written.replay),
            id: TraceId { bytes: written.trace_bytes, hash },
            options,
            cache,
            interval: interval.transpose().map_err(LabError::from)?,
        })
    }

    /// The command that makes it again.
    pub fn command(&self) -> String {
        command(&self.trace, &self.options, &self.cache, self.interval)
    }
}

/// The command that makes a replay again, from the scenario in its recording; `None` for anything
/// else.
pub fn command_of(scenario_toml: &str) -> Option<String> {
    is_replay(scenario_toml).then_some(())?;
    ReplayScenario::parse(scenario_toml).ok().map(|scenario| scenario.command())
}

/// How a trace is read, by what is written of it.
///
/// # Errors
/// A format or timing that there is not, no amount to warm up.
pub fn options(
    format: Option<&str>,
    timing: Option<&str>,
    warmup: Option<&str>,
    unsorted: bool,
) -> Result<ReplayOptions, LabError> {
    let format = format.map(str::parse).transpose()?;
    let timing = timing.map_or(Ok(Timing::default()), str::parse)?;
    let warmup = warmup.map_or(Ok(Warmup::default()), str::parse)?;
    Ok(ReplayOptions { format, unsorted, timing, warmup })
}

/// What is written of swap; nothing is none.
pub(super) fn swap_of(text: Option<&str>) -> Result<Swap, LabError> {
    Ok(text.map_or(Ok(Swap::NONE), str::parse)?)
}

/// The command that replays `trace` on `cache`, with all that differs from the defaults.
pub(super) fn command(
    trace: &Path,
    options: &ReplayOptions,
    cache: &CacheSpec,
    interval: Option<Nanos>,
) -> String {
    let mut command = format!("pagetide replay {}", shell_quoted(&trace.to_string_lossy()));
    let mut add = |option: &str, value: &str| {
        command.push_str(&format!(" --{option} {}", shell_quoted(value)));
    };
    match cache {
        CacheSpec::Policy { policy, capacity } => {
            add("policy", &policy.to_string());
            add("capacity", &capacity.get().to_string());
        }
        CacheSpec::Kernel { kernel, machine, mem, swap, sysctls, limits, seed } => {
            add("mem", &mem.to_string());
            if !swap.is_none() {
                add("swap", &swap.to_string());
            }
            for (key, size) in limits.map_or_else(Vec::new, limit_keys) {
                add(key, &size);
            }
            add("kernel", &kernel.to_string());
            if machine != first_machine().name {
                add("machine", machine);
            }
            for (name, value) in sysctls {
                add("set", &format!("{name}={value}"));
            }
            add("timing", options.timing.name());
            if *seed != SEED_DEFAULT.0 {
                add("seed", &seed.to_string());
            }
            if let Some(interval) = interval {
                add("interval", &interval_text(interval));
            }
        }
    }
    if options.warmup != Warmup::None {
        add("warmup", &options.warmup.to_string());
    }
    if let Some(format) = options.format {
        add("trace-format", format.name());
    }
    if options.unsorted {
        command.push_str(" --unsorted");
    }
    if trace == Path::new(STDIN) {
        command.push_str(" < TRACE");
    }
    command
}

/// What the file says, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: u32,
    replay: String,
    trace_bytes: u64,
    trace_hash: String,
    format: Option<String>,
    #[serde(default)]
    unsorted: bool,
    warmup: Option<String>,
    timing: Option<String>,
    policy: Option<String>,
    capacity: Option<u64>,
    kernel: Option<String>,
    machine: Option<String>,
    mem: Option<String>,
    swap: Option<String>,
    filesystem: Option<String>,
    limit: Option<String>,
    high: Option<String>,
    low: Option<String>,
    seed: Option<String>,
    interval: Option<String>,
    #[serde(default)]
    sysctls: BTreeMap<String, String>,
}

/// A problem of the text, or of a value in it.
enum Problem {
    Text(String),
    Lab(Box<LabError>),
}

impl From<LabError> for Problem {
    fn from(error: LabError) -> Self {
        Self::Lab(Box::new(error))
    }
}

pub(crate) fn file_name(path: &Path) -> String {
    if path == Path::new(STDIN) {
        return "standard input".to_owned();
    }
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use trace::requests::TraceFormat;

    use super::*;

    fn kernel() -> ReplayScenario {
        let names = Names::default();
        ReplayScenario {
            trace: PathBuf::from("my traces/a \"b\".csv"),
            id: TraceId { bytes: 77, hash: 0xabc },
            options: ReplayOptions {
                format: Some(TraceFormat::BlockCsv),
                unsorted: true,
                timing: Timing::Recorded,
                warmup: Warmup::Percent(10),
            },
            cache: CacheSpec::Kernel {
                kernel: names.vocabulary().kernel("linux-6.1").unwrap(),
                machine: "vm-2cpu".to_owned(),
                mem: Bytes(256 << 20),
                swap: "zram:64M".parse().unwrap(),
                sysctls: BTreeMap::from([("vm.swappiness".to_owned(), "10".to_owned())]),
                limits: Some(Limits { low: Some(Bytes(8 << 20)), ..Limits::default() }),
                seed: u64::MAX,
            },
            interval: Some(Nanos::from_millis(20)),
        }
    }

    #[test]
    fn a_replay_reads_back_from_what_its_recording_keeps() {
        let policy = CacheSpec::Policy {
            policy: "s3fifo:small=0.2:batch=32".parse().unwrap(),
            capacity: Capacity::new(5).unwrap(),
        };
        let options = ReplayOptions { timing: Timing::Asap, ..kernel().options };
        for scenario in [kernel(), ReplayScenario { cache: policy, options, interval: None, ..kernel() }] {
            let toml = scenario.to_toml();
            assert!(is_replay(&toml));
            let read = ReplayScenario::parse(&toml).ok();
            assert_eq!(read, Some(scenario), "{toml}");
        }
    }

    #[test]
    fn the_command_of_a_replay_names_its_sysctls_too() {
        assert_eq!(
            command_of(&kernel().to_toml()).unwrap(),
            "pagetide replay 'my traces/a \"b\".csv' --mem 256M --swap zram:64M --limit none --low 8M --kernel linux-6.1 --set vm.swappiness=10 \
             --timing recorded --seed 18446744073709551615 --interval 20ms \
             --warmup 10% --trace-format block-csv --unsorted"
        );
        assert_eq!(command_of("workload = \"hot-and-stream\"\n"), None);
    }
}
