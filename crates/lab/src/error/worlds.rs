//! Why there are no worlds, or not all of them, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::class::Class;

/// Worlds that one folder takes at most.
pub const WORLDS_MAX: u64 = 1_000_000;

/// Why worlds cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorldsError {
    /// A text that is no range of seeds.
    #[error("`--seeds {0}` is no range of seeds")]
    Seeds(String),
    /// A number, which for other commands is how many seeds.
    #[error("`--seeds {0}` does not tell whether it is that seed or so many")]
    SeedOrCount(u64),
    /// More worlds than anybody means.
    #[error("`--seeds {text}` makes {count} worlds; at most {WORLDS_MAX} are run")]
    TooMany {
        /// As written.
        text: String,
        /// How many that is.
        count: u64,
    },
    /// A text that is no time to run for.
    #[error("`--time {0}` is no time to work for")]
    Time(String),
    /// A number of runs of each world that makes no sense.
    #[error("`{option}` takes 1 to 16, not {given}")]
    Runs {
        /// The option.
        option: &'static str,
        /// As given.
        given: u64,
    },
    /// A workload twice.
    #[error("`--workload {0}` is given twice")]
    WorkloadTwice(String),
    /// A place where worlds do not run.
    #[error("worlds do not run on `{0}`, which has the memory that it has")]
    NotThere(String),
    /// Guests of several hosts.
    #[error("worlds {first} and {second} of that folder were judged on different machines")]
    Machines {
        /// The first of the worlds asked for.
        first: u64,
        /// One of another machine.
        second: u64,
    },
    /// A kernel by its path, and no model named beside it.
    #[error("`{0}` does not tell which kernel of the model stands beside it")]
    NoModel(String),
    /// A second model beside a real kernel.
    #[error("`--against` stands in for a real kernel, and `--on {0}` is one")]
    Against(String),
    /// Checks on a real kernel.
    #[error("`--check` looks at the model's own state, and `--on {0}` has none")]
    CheckOn(String),
    /// Checks of two models.
    #[error("`--check` takes one kernel of the model, and `--against` is a second one")]
    CheckAgainst,
    /// Worlds with which something is wrong.
    #[error("something is wrong with {failed} of {total} worlds")]
    Broken {
        /// With how many.
        failed: usize,
        /// How many have run.
        total: usize,
    },
    /// Not all of the worlds were checked.
    #[error("interrupted: {finished} of {total} worlds checked")]
    CheckInterrupted {
        /// How many were.
        finished: usize,
        /// How many were asked for.
        total: usize,
    },
    /// Somebody else is at it.
    #[error("another pagetide runs worlds in `{}`", .0.display())]
    Busy(PathBuf),
    /// Not all of the worlds have run.
    #[error("interrupted: {finished} of {total} worlds finished")]
    Interrupted {
        /// How many have.
        finished: usize,
        /// How many were asked for.
        total: usize,
    },
    /// A folder that is not there.
    #[error("`{}` is no folder", .0.display())]
    NoFolder(PathBuf),
    /// A world of the model alone.
    #[error("world `{0}` ran on the model alone: nothing is beside it")]
    ModelAlone(String),
    /// A world whose commands are not in the table, or cannot be read.
    #[error("the table does not say how world `{0}` ran")]
    NoCommand(String),
    /// A world in which no counter is far off.
    #[error("no counter of world `{0}` is more than 10 % off")]
    Agrees(String),
    /// A counter that is not far off.
    #[error("`{counter}` of world `{world}` is not more than 10 % off: {class}")]
    CounterAgrees {
        /// The world.
        world: String,
        /// The counter.
        counter: String,
        /// How near it is.
        class: String,
        /// One that is far off.
        other: Option<String>,
    },
    /// A world that disagreed once.
    #[error("`{counter}` of world `{world}` is no longer more than 10 % off")]
    AgreesNow {
        /// The world.
        world: String,
        /// The counter.
        counter: String,
    },
    /// Nothing smaller was tried any more.
    #[error("interrupted: a smaller world than the last one of `{0}` may be found")]
    ShrinkInterrupted(String),
    /// A world that is not there.
    #[error("there is no world `{world}` in `{}`", folder.display())]
    NoWorld {
        /// As written.
        world: String,
        /// The folder.
        folder: PathBuf,
    },
}

impl WorldsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Seeds(_) | Self::TooMany { .. } => {
                "write the first and the last one, as in `--seeds 1..500`".to_owned()
            }
            Self::SeedOrCount(seed @ 0..=1) => format!("write `--seeds {seed}..{seed}`"),
            Self::SeedOrCount(n) => {
                format!("`--seeds 1..{n}` are {n} seeds, `--seeds {n}..{n}` is the one")
            }
            Self::Time(_) => "write a whole number with `s`, `m` or `h`, such as `10m`, not 0".to_owned(),
            Self::Runs { .. } => return None,
            Self::WorkloadTwice(_) => "leave one of them out".to_owned(),
            Self::NotThere(_) => {
                "boot a guest by `--on uml:6.12`, or run the model alone by `--on sim`".to_owned()
            }
            Self::Machines { first, second } => {
                format!("ask for them apart, `--seeds {first}..{}`, or name one by `--machine`", second - 1)
            }
            Self::NoModel(_) => "name it, as in `--kernel linux-6.12`".to_owned(),
            Self::Against(_) => "leave one of them out".to_owned(),
            Self::CheckOn(_) => "leave `--on` out, or `--check`".to_owned(),
            Self::CheckAgainst => "name it by `--kernel`".to_owned(),
            Self::Broken { .. } => {
                "these are bugs of pagetide: please report them with the commands above".to_owned()
            }
            Self::CheckInterrupted { finished, .. } => {
                format!("go on with the seeds behind them: the first {finished} or so were checked")
            }
            Self::Busy(_) => "wait until it has ended, or name another folder".to_owned(),
            Self::Interrupted { .. } => "the same command goes on where it ended".to_owned(),
            Self::NoFolder(_) => "name the folder that `pagetide worlds --out DIR` made".to_owned(),
            Self::ModelAlone(_) => {
                "run it beside a real kernel, `--on uml:6.12`, or a second model, `--against`".to_owned()
            }
            Self::NoCommand(_) => "run it again, in a new folder".to_owned(),
            Self::Agrees(_) => {
                "name one that disagrees: `pagetide worlds` shows one of each counter as `example`".to_owned()
            }
            Self::CounterAgrees { other: Some(other), .. } => {
                format!("name another one, such as `--counter {other}`, which is off by the most")
            }
            Self::CounterAgrees { other: None, .. } => "name a world that disagrees".to_owned(),
            Self::AgreesNow { .. } => {
                "model or kernel have changed: run the worlds again, in a new folder".to_owned()
            }
            Self::ShrinkInterrupted(_) => return None,
            Self::NoWorld { .. } => {
                "name it by its seed; the column `seed` of worlds.parquet has them".to_owned()
            }
        })
    }

    /// Whose fault it is.
    pub const fn class(&self) -> Class {
        match self {
            Self::Interrupted { .. } | Self::CheckInterrupted { .. } | Self::ShrinkInterrupted(_) => {
                Class::Interrupted
            }
            Self::Broken { .. } => Class::Invariant,
            _ => Class::Input,
        }
    }
}
