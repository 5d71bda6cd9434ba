//! What can be wrong with a scenario file, where, and what to write instead.

use std::fmt;

use thiserror::Error;
use units::{Bytes, ParseUnitError};

use crate::catalog::InputError;
use crate::language::table::Position;
use crate::language::vocabulary::KernelError;
use crate::scenario::bounds::{INTERVAL_MAX, INTERVAL_MIN, MEM_MAX, MEM_MIN, SCHEMA, interval_text};
use language::names::UnknownName;

/// A mistake in a scenario file and its place, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// Where; `None` for something that is missing.
    pub position: Option<Position>,
    /// What.
    pub problem: ScenarioProblem,
}

impl ScenarioError {
    /// What to write instead; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "{position}: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// A mistake in a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioProblem {
    /// It is not TOML.
    #[error("{0}")]
    NotToml(String),
    /// A key, workload, machine, sysctl or backend that does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A kernel or feature that does not exist.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A workload or parameter that is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A key that must be there.
    #[error("key `{0}` is missing")]
    MissingKey(&'static str),
    /// A kernel or a machine for a run that has its own.
    #[error("`{what}` cannot be `{value}`: {why}")]
    NotChosen {
        /// The key or option.
        what: String,
        /// Its value.
        value: String,
        /// What the run has instead.
        why: String,
        /// What to do other than to leave it out.
        or: &'static str,
    },
    /// A value that the model does not take.
    #[error("{message}")]
    Model {
        /// What is wrong with it.
        message: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// A value of the wrong kind.
    #[error("`{key}` is {found}, not {expected}")]
    WrongKind {
        /// The key.
        key: String,
        /// What the value is.
        found: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A value that is not a duration.
    #[error("`{key}`: {source}")]
    NotADuration {
        /// The key.
        key: &'static str,
        /// What is wrong with the text.
        source: ParseUnitError,
    },
    /// A time between samples that is too short or too long.
    #[error(
        "`{key}`: {interval} is not from {} to {}",
        interval_text(INTERVAL_MIN),
        interval_text(INTERVAL_MAX)
    )]
    IntervalOutOfRange {
        /// The key.
        key: &'static str,
        /// The time.
        interval: String,
    },
    /// A value that is not a size.
    #[error("`{key}`: {source}")]
    NotASize {
        /// The key.
        key: &'static str,
        /// What is wrong with the text.
        source: ParseUnitError,
    },
    /// Memory that no machine has.
    #[error("`{key}`: {mem} is outside of {MEM_MIN} to {MEM_MAX}")]
    MemOutOfRange {
        /// The key or option.
        key: &'static str,
        /// The size.
        mem: Bytes,
    },
    /// A seed that is no seed.
    #[error("`seed`: `{0}` is not a whole number from 0 to 2^64 - 1")]
    NotASeed(String),
    /// A sysctl's value that no sysctl can have.
    #[error("sysctl `{name}`: `{}` is not a value", .value.escape_debug())]
    NotASysctlValue {
        /// The sysctl.
        name: String,
        /// The text that was given.
        value: String,
    },
    /// One sysctl twice, perhaps in two spellings.
    #[error("sysctl `{name}` is set twice, to `{first}` and to `{second}`")]
    SysctlTwice {
        /// The sysctl.
        name: String,
        /// The value that comes first.
        first: String,
        /// The value that comes then.
        second: String,
    },
    /// Something is said of a virtual machine, and there is none.
    #[error("`{what}` is for guests, and this runs on `{backend}`")]
    NoGuest {
        /// The option or table.
        what: &'static str,
        /// Where it runs.
        backend: String,
    },
    /// A virtual machine that makes no sense.
    #[error("`{key}` of a virtual machine cannot be `{value}`: {why}")]
    Guest {
        /// The key in `[vm]`.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something to swap to that no machine has.
    #[error("swap cannot be `{value}`: {why}")]
    Swap {
        /// As asked for.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file of another version.
    #[error("the file has schema `{0}`, and this program reads {SCHEMA}")]
    Schema(String),
}

impl ScenarioProblem {
    /// What to write instead; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(unknown) => Some(unknown.hint()),
            Self::Kernel(error) => error.hint(),
            Self::Input(error) => error.hint(),
            Self::NotASize { source, .. } | Self::NotADuration { source, .. } => {
                Some(source.hint().to_owned())
            }
            Self::NotChosen { or, .. } => Some(format!("leave it out, or {or}")),
            Self::Model { hint, .. } => hint.clone(),
            Self::MissingKey(key) => Some(format!("add a line `{key} = ...` at the top of the file")),
            Self::SysctlTwice { .. } => Some("leave one of them out".to_owned()),
            Self::NoGuest { what: "--lru-gen", backend } if backend == "sim" => {
                Some("a simulated kernel has it as a feature: `--kernel linux-6.12+lru-gen`".to_owned())
            }
            Self::NoGuest { .. } => {
                Some("add `--on uml:VERSION` or `--on vm:VERSION`, such as `--on uml:6.12`, or leave it out".to_owned())
            }
            Self::NotASysctlValue { .. } => Some("write a number, or words between blanks".to_owned()),
            Self::Guest { key, .. } => Some(match *key {
                "cpus" => "write it as in `--vm-cpus 4`, or `cpus = 4` below `[vm]`".to_owned(),
                "xfs_log" => {
                    "write it in MiB, as in `--vm-xfs-log 16`, or `xfs_log = 16` below `[vm]`".to_owned()
                }
                "lru_gen" => "write it as in `--lru-gen on`, or `lru_gen = \"on\"` below `[vm]`".to_owned(),
                _ => "give it more CPUs or fewer nodes: `--vm-cpus 4 --vm-nodes 2`".to_owned(),
            }),
            Self::Swap { .. } => {
                Some("write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`".to_owned())
            }
            Self::Schema(_) => Some("use the version of this program that wrote the file".to_owned()),
            Self::NotToml(_) => {
                Some("a line is `key = 5` or `key = \"text\"`; `--dry-run` prints a whole file".to_owned())
            }
            Self::IntervalOutOfRange { .. } => Some("write a time with its unit, such as `100ms`".to_owned()),
            // A number without a unit is bytes, and what was meant hardly so.
            Self::MemOutOfRange { mem, .. } => (MEM_MIN.0 >> 20..1 << 20)
                .contains(&mem.0)
                .then(|| format!("a number without a unit is bytes: write `{}M`", mem.0)),
            Self::WrongKind { .. } | Self::NotASeed(_) => None,
        }
    }
}
