//! A scenario: everything that decides a run, and its one text form in TOML.
//!
//! [`Scenario::read`] reads what a person wrote and fills in the workload's defaults;
//! [`Scenario::to_toml`] writes every value, in one order, so that equal scenarios have equal
//! bytes and the file reads back equal. Names of kernels, machines and sysctls are checked
//! against a [`Vocabulary`] that the caller supplies.
//!
//! Map: `read` finds the values and their places; `guest` is the table `[vm]`; `swap` what a machine swaps to;
//! `error` says what is wrong where; `real` what a real kernel leaves to say. Left out: whether a machine can run a
//! workload, which the backend finds out.

mod error;
mod guest;
mod read;
mod real;
mod swap;

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use units::{Bytes, Nanos, Seed, parse_nanos, parse_size};

pub use error::{Position, ScenarioError, ScenarioProblem};
pub use guest::{GUEST_CPUS_MAX, GUEST_NODES_MAX, Guest, LruGen, XFS_LOG_MIB};
pub use read::Written;
pub use real::{
    GUEST_MACHINE, UML_MACHINE, check_kernel, check_lru_gen, check_machine, check_mem, is_guest_machine,
    lru_gen_of,
};
pub use swap::{Swap, SwapArea, SwapDevice, Zswap, check_swap};

use crate::catalog::Workload;
use crate::names::UnknownName;
use crate::params::ParamValue;
use crate::vocabulary::{KernelSpec, Vocabulary};

/// The version of the file form; it changes when an older reader would misread a newer file.
pub const SCHEMA: u64 = 1;
/// The smallest memory that a kernel boots in: its own image, reserves of a few MiB, one process.
pub const MEM_MIN: Bytes = Bytes(16 << 20);
/// The largest memory: 2^28 page frames. The frame table of a simulated run takes a hundredth of it.
pub const MEM_MAX: Bytes = Bytes(1 << 40);
/// The shortest time between samples: below, a real machine would do little else.
pub const INTERVAL_MIN: Nanos = Nanos::from_millis(1);
/// The longest one.
pub const INTERVAL_MAX: Nanos = Nanos::from_secs(3600);
/// The seed when none is given.
pub const SEED_DEFAULT: Seed = Seed(1);

/// A run, fully resolved. A simulated one has a kernel, a machine and memory; a guest has memory and
/// is a machine of its own; this host has nothing to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// What runs, with all its parameters.
    pub workload: Workload,
    /// The simulated kernel. A real one is what it is.
    pub kernel: Option<KernelSpec>,
    /// The machine that the kernel runs on, by name; a guest has [one](Backend::guest_machine).
    pub machine: Option<String>,
    /// The machine's memory, from [`MEM_MIN`] to [`MEM_MAX`].
    pub mem: Option<Bytes>,
    /// What the machine swaps to; `None` where nobody says, and the workload has nothing of its own.
    pub swap: Option<Swap>,
    /// Sysctls that differ from the kernel's own, by dotted name; values in single blanks.
    pub sysctls: BTreeMap<String, String>,
    /// Where all randomness comes from.
    pub seed: Seed,
    /// Time between two samples of all counters, from [`INTERVAL_MIN`] to [`INTERVAL_MAX`]; the backend's own where
    /// nobody says. Reading counters of cgroups is not free of effect (MECHANISMS-6X 4.3).
    pub interval: Option<Nanos>,
    /// Where it runs.
    pub backend: Backend,
    /// The virtual machine, where the file says something of it. Other backends do not look at it.
    pub guest: Option<Guest>,
}

/// Where a scenario runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Backend {
    /// The simulated machine: `sim`.
    #[default]
    Sim,
    /// This Linux: `host`.
    Host,
    /// A real kernel in a virtual machine, by version or by the path of its image: `vm:6.12`,
    /// `vm:./vmlinuz`.
    Vm(String),
    /// A real kernel that runs as a program (User-Mode Linux), by version or by its path: `uml:6.12`, `uml:./linux`.
    Uml(String),
}

impl Backend {
    /// What a guest boots: a version or a path. `None` where nothing boots.
    pub fn guest_kernel(&self) -> Option<&str> {
        match self {
            Self::Sim | Self::Host => None,
            Self::Vm(kernel) | Self::Uml(kernel) => Some(kernel),
        }
    }

    /// Whether a kernel of its own boots for each run.
    pub fn is_guest(&self) -> bool {
        self.guest_kernel().is_some()
    }

    /// The machine that a guest is: its model for simulations, and the only one that it can be.
    pub fn guest_machine(&self) -> Option<&'static str> {
        match self {
            Self::Sim | Self::Host => None,
            Self::Vm(_) => Some(GUEST_MACHINE),
            Self::Uml(_) => Some(UML_MACHINE),
        }
    }

    /// The shape of a guest of which nobody says more.
    pub fn default_guest(&self) -> Guest {
        let cpus = if matches!(self, Self::Uml(_)) { 1 } else { Guest::default().cpus };
        Guest { cpus, ..Guest::default() }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim => f.write_str("sim"),
            Self::Host => f.write_str("host"),
            Self::Vm(version) => write!(f, "vm:{version}"),
            Self::Uml(version) => write!(f, "uml:{version}"),
        }
    }
}

impl std::str::FromStr for Backend {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let is_version = |version: &&str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
            let is_path = version.contains('/') && !version.contains(char::is_control);
            is_path || (!version.is_empty() && version.chars().all(allowed))
        };
        let kernel = |kind| text.strip_prefix(kind).filter(is_version).map(str::to_owned);
        let guest = kernel("vm:").map(Self::Vm).or_else(|| kernel("uml:").map(Self::Uml));
        match (text, guest) {
            ("sim", _) => Ok(Self::Sim),
            ("host", _) => Ok(Self::Host),
            (_, Some(guest)) => Ok(guest),
            _ => Err(UnknownName::new("backend", text, ["sim", "host", "uml:VERSION", "vm:VERSION"])),
        }
    }
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// The first mistake, with its line and column where it has one.
    pub fn read(text: &str, vocabulary: &Vocabulary<'_>) -> Result<Self, ScenarioError> {
        read::read(text, vocabulary, None).map(|written| written.scenario)
    }

    /// Reads a scenario file that may run elsewhere than it says, and keeps where it says what, for
    /// checks that come later.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn read_to_run_on(
        text: &str,
        vocabulary: &Vocabulary<'_>,
        moved_to: Option<&Backend>,
    ) -> Result<Written, ScenarioError> {
        read::read(text, vocabulary, moved_to)
    }

    /// The scenario as TOML: every value, always in this order, ending in a line feed. A table
    /// without entries is left out, and so is what a real kernel does not leave to choose.
    pub fn to_toml(&self) -> String {
        let mut toml = String::new();
        let head = [
            ("schema", Some(SCHEMA.to_string())),
            ("workload", Some(quoted(self.workload.name()))),
            ("kernel", self.kernel.as_ref().map(|kernel| quoted(&kernel.to_string()))),
            ("machine", self.machine.as_deref().map(quoted)),
            ("mem", self.mem.map(|mem| quoted(&mem.to_string()))),
            ("swap", self.swap.as_ref().map(|swap| quoted(&swap.to_string()))),
            ("seed", Some(number_or_quoted(&self.seed.0.to_string()))),
            ("interval", self.interval.map(|interval| quoted(&interval_text(interval)))),
            ("backend", Some(quoted(&self.backend.to_string()))),
        ];
        let said = head.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        write_pairs(&mut toml, said);
        let params = self.workload.params().iter().map(|(name, value)| match value {
            ParamValue::Count(count) => (name.to_owned(), number_or_quoted(&count.to_string())),
            other => (name.to_owned(), quoted(&other.to_string())),
        });
        toml.push_str("\n[params]\n");
        write_pairs(&mut toml, params);
        if !self.sysctls.is_empty() {
            toml.push_str("\n[sysctls]\n");
            let pairs = self.sysctls.iter().map(|(name, value)| (quoted(name), number_or_quoted(value)));
            write_pairs(&mut toml, pairs);
        }
        if let Some(Guest { cpus, numa_nodes, lru_gen, xfs_log }) = &self.guest {
            toml.push_str("\n[vm]\n");
            let pairs = [
                ("cpus", cpus.to_string()),
                ("numa_nodes", numa_nodes.to_string()),
                ("lru_gen", quoted(&lru_gen.to_string())),
            ];
            let log = xfs_log.map(|mib| ("xfs_log", mib.to_string()));
            let pairs = pairs.into_iter().chain(log);
            write_pairs(&mut toml, pairs.map(|(key, value)| (key.to_owned(), value)));
        }
        toml
    }
}

/// Reads the size of a machine's memory.
///
/// # Errors
/// No size, or one outside of [`MEM_MIN`] to [`MEM_MAX`].
pub fn parse_mem(text: &str) -> Result<Bytes, ScenarioProblem> {
    parse_mem_of("mem", text)
}

/// Reads a size of memory that is called `key`.
///
/// # Errors
/// As [`parse_mem`].
pub fn parse_mem_of(key: &'static str, text: &str) -> Result<Bytes, ScenarioProblem> {
    let mem = parse_size(text).map_err(|source| ScenarioProblem::NotASize { key, source })?;
    if mem < MEM_MIN || mem > MEM_MAX { Err(ScenarioProblem::MemOutOfRange { key, mem }) } else { Ok(mem) }
}

/// Reads the time between two samples: `100ms`.
///
/// # Errors
/// No duration, or one outside of [`INTERVAL_MIN`] to [`INTERVAL_MAX`].
pub fn parse_interval(key: &'static str, text: &str) -> Result<Nanos, ScenarioProblem> {
    let interval = parse_nanos(text).map_err(|source| ScenarioProblem::NotADuration { key, source })?;
    if interval < INTERVAL_MIN || interval > INTERVAL_MAX {
        let interval = interval_text(interval);
        return Err(ScenarioProblem::IntervalOutOfRange { key, interval });
    }
    Ok(interval)
}

/// The time between two samples as [`parse_interval`] reads it.
pub fn interval_text(interval: Nanos) -> String {
    let ns = interval.get();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let whole = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

/// Reads a sysctl's value: words, put between single blanks.
///
/// # Errors
/// It is empty, or has characters that no sysctl has.
pub fn parse_sysctl_value(name: &str, text: &str) -> Result<String, ScenarioProblem> {
    let value = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    if value.is_empty() || value.chars().any(|c| !c.is_ascii() || c.is_ascii_control()) {
        return Err(ScenarioProblem::NotASysctlValue { name: name.to_owned(), value: text.to_owned() });
    }
    Ok(value)
}

fn write_pairs(toml: &mut String, pairs: impl IntoIterator<Item = (String, String)>) {
    for (key, value) in pairs {
        writeln!(toml, "{key} = {value}").expect("a String takes all that is written");
    }
}

/// A TOML string. Texts here have no control characters: names, and values that were checked.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A TOML integer where that keeps the text as it is and every reader of TOML can hold it.
fn number_or_quoted(text: &str) -> String {
    let as_number = text.parse::<i64>().map(|number| number.to_string());
    if as_number.as_deref() == Ok(text) { text.to_owned() } else { quoted(text) }
}
