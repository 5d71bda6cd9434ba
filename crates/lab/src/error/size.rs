//! Why a trace cannot be sized, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;
use units::Bytes;

/// The fewest limits of a curve that is searched.
pub const POINTS_MIN: usize = 4;
/// The most.
pub const POINTS_MAX: usize = 500;

/// What is wrong with a request for a size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SizeError {
    /// A target that is no slowdown.
    #[error("`--slowdown {0}` is no part by which a run may be slower")]
    Slowdown(String),
    /// A headroom that is none.
    #[error("`--headroom {0}` is no part by which `memory.max` is above `memory.high`")]
    Headroom(String),
    /// A resolution that is none.
    #[error("`--resolution {0}` is no distance of two limits")]
    Resolution(String),
    /// A sample that is none.
    #[error("`--sample {text}` is no part of a trace")]
    Sample {
        /// As it was written.
        text: String,
    },
    /// Something that is of a sample, without one.
    #[error("`--check-sample` is for a sample, and all of the trace is run")]
    NothingToCheck,
    /// More runs or fewer than make sense.
    #[error("`--points {0}` is out of range")]
    Points(usize),
    /// A limit in which no run comes to its end.
    #[error(
        "{limit} is below {least}, the least that a run can be limited to{}",
        if *.sampled { " with this sample" } else { "" }
    )]
    LimitTooSmall {
        /// The limit.
        limit: Bytes,
        /// The least.
        least: Bytes,
        /// Whether a sample is why.
        sampled: bool,
    },
    /// All of the trace's memory is less than a run can be limited to.
    #[error("`{}` uses {held} of memory, and a run cannot be limited to less than {least}", path.display())]
    TraceTooSmall {
        /// The trace.
        path: PathBuf,
        /// What it keeps without a limit.
        held: Bytes,
        /// The least limit.
        least: Bytes,
        /// Whether a sample is why.
        sampled: bool,
    },
    /// A trace of requests that are all of no bytes.
    #[error("`{}` asks for no page: all of its requests are of 0 bytes", .0.display())]
    NoPages(PathBuf),
    /// A sample that holds nothing.
    #[error("the sample has none of the trace's requests")]
    EmptySample,
    /// A machine that would limit the trace itself.
    #[error(
        "`--mem {mem}` is too little for the trace without a limit, which asks for {footprint} of different pages"
    )]
    Mem {
        /// What was asked for.
        mem: Bytes,
        /// What the trace needs.
        footprint: Bytes,
    },
    /// A kernel that cannot limit a group.
    #[error("`{0}` has no memory cgroups, so nothing can be limited")]
    NoCgroups(String),
    /// The run without a limit, which all others are compared with, was killed.
    #[error("without a limit the OOM killer ended the run")]
    KilledUnlimited,
    /// No real kernel.
    #[error("`--verify {0}` is no real kernel")]
    Verify(String),
    /// A trace that cannot be read again.
    #[error("a trace from standard input cannot be run on a real kernel, too")]
    VerifyStdin,
    /// An option for requests alone.
    #[error("`{option}` is for traces of requests, and `{}` is that of a program", path.display())]
    NotOfPrograms {
        /// The option.
        option: &'static str,
        /// The trace.
        path: PathBuf,
    },
}

impl SizeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Slowdown(_) => "write a part from 0%, such as `--slowdown 5%`".to_owned(),
            Self::Headroom(_) => "write a part from 0% to 1000%, such as `--headroom 10%`".to_owned(),
            Self::Resolution(_) => "write a part from 0.5% to 100%, such as `--resolution 5%`".to_owned(),
            Self::Sample { .. } => format!(
                "write one in so many, from `1/1` to `1/{}`, such as `--sample 1/16`",
                workload::replay::ONE_IN_MAX
            ),
            Self::NothingToCheck => "add `--sample 1/16`, or leave it out".to_owned(),
            Self::Points(_) => format!("give from {} to {}", POINTS_MIN, POINTS_MAX),
            Self::LimitTooSmall { sampled: true, .. } | Self::TraceTooSmall { sampled: true, .. } => {
                "take a larger part with `--sample`, or leave it out".to_owned()
            }
            Self::LimitTooSmall { .. } => {
                "below that are the kernel's own batches, and a run ends in the OOM killer".to_owned()
            }
            Self::TraceTooSmall { .. } => {
                "capture more of the program, or give limits by `--limits`".to_owned()
            }
            Self::NoPages(_) => "check the trace's column of sizes".to_owned(),
            Self::EmptySample => "take a larger part with `--sample`, or leave it out".to_owned(),
            Self::Mem { .. } => {
                "leave `--mem` out, or give more: the group is to be limited, not the machine".to_owned()
            }
            Self::NoCgroups(_) => "name a kernel from linux-4.5 on with `--kernel`".to_owned(),
            Self::KilledUnlimited => "give the machine more memory with `--mem`".to_owned(),
            Self::Verify(_) => "write `--verify uml:6.12`, `--verify vm:6.12` or `--verify host`; `--verify` alone, as the last word, takes User-Mode Linux".to_owned(),
            Self::VerifyStdin => "put the trace into a file first".to_owned(),
            Self::NotOfPrograms { .. } => "leave it out".to_owned(),
        })
    }
}
