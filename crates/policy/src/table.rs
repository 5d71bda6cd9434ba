//! Which policies there are, by name, and how a person writes one with its parameters.
//!
//! ```text
//! s3fifo                       with its defaults
//! s3fifo:small=0.2:batch=32    with these values
//! ```
//!
//! Every policy has `batch` and `readahead`: how a replay deals with it, not how it decides.

use std::fmt;
use std::str::FromStr;
use std::sync;

use crate::{
    Arc, Belady, Capacity, Clock, ClockPro, Fed, Fifo, Future, Lirs, Lru, Pace, PolicyError, S3Fifo, Sieve,
    TwoQ,
};
use language::names::UnknownName;
use language::params::{ParamError, ParamKind, ParamSpec, Params, Share, split_pair};

/// All policies.
pub const POLICIES: &[PolicyInfo] = &[
    policy("lru", "evicts what was requested least recently", PLAIN, |of| Box::new(Lru::new(of.capacity))),
    policy("fifo", "evicts what was admitted first", PLAIN, |of| Box::new(Fifo::new(of.capacity))),
    policy("clock", "FIFO, with another round for what was requested again", PLAIN, |of| {
        Box::new(Clock::new(of.capacity))
    }),
    policy("s3fifo", "a small FIFO on trial before the main one", S3FIFO, |of| {
        Box::new(S3Fifo::new(of.capacity, of.share("small"), of.share("ghost"), of.count("promote") as u8))
    }),
    policy("sieve", "FIFO with a hand that evicts what was not visited", PLAIN, |of| {
        Box::new(Sieve::new(of.capacity))
    }),
    policy("arc", "LRU of once and of again requested, adaptive", PLAIN, |of| {
        Box::new(Arc::new(of.capacity))
    }),
    policy("2q", "FIFO on trial before LRU", TWO_Q, |of| {
        Box::new(TwoQ::new(of.capacity, of.share("kin"), of.share("kout")))
    }),
    policy("lirs", "keeps what was requested again soon", LIRS, |of| {
        Box::new(Lirs::new(of.capacity, of.share("lir")))
    }),
    policy("clock-pro", "LIRS' idea with one bit an access", PLAIN, |of| {
        Box::new(ClockPro::new(of.capacity))
    }),
    PolicyInfo {
        needs_future: true,
        ..policy("belady", "knows the future: the bound of all others", PLAIN, |of| {
            Box::new(Belady::new(of.capacity, sync::Arc::clone(of.future)))
        })
    },
];

/// How many objects are evicted when there is no room.
pub const BATCH: ParamSpec =
    ParamSpec::count("batch", 1..=4096, "objects evicted when there is no room").by_default("1");

/// How many objects are admitted behind one that was missed.
pub const READAHEAD: ParamSpec = ParamSpec::count(
    "readahead",
    0..=4096,
    "objects with the next numbers admitted behind one that was missed",
)
.by_default("0");

const PLAIN: &[ParamSpec] = &[BATCH, READAHEAD];

const S3FIFO: &[ParamSpec] = &[
    share("small", "0.1", "share of the small queue"),
    share("ghost", "0.9", "names of evicted objects, per object of the capacity"),
    ParamSpec::count(
        "promote",
        1..=3,
        "requests after which an object of the small queue goes to the main one",
    )
    .by_default("2"),
    BATCH,
    READAHEAD,
];

const TWO_Q: &[ParamSpec] = &[
    share("kin", "0.25", "share of the FIFO"),
    share("kout", "0.5", "names of evicted objects, per object of the capacity"),
    BATCH,
    READAHEAD,
];

const LIRS: &[ParamSpec] = &[share("lir", "0.99", "share of objects with low recency"), BATCH, READAHEAD];

const fn share(name: &'static str, default: &'static str, help: &'static str) -> ParamSpec {
    ParamSpec {
        name,
        kind: ParamKind::Share { min: Share::ZERO, max: Share::ALL },
        default: Some(default),
        help,
    }
}

/// A policy, as it is listed.
#[derive(Debug, Clone, Copy)]
pub struct PolicyInfo {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for `--help`, without a full stop.
    pub help: &'static str,
    /// Its parameters, with [`BATCH`] and [`READAHEAD`].
    pub params: &'static [ParamSpec],
    /// Whether it must know the whole trace beforehand.
    pub needs_future: bool,
    /// Makes an empty cache.
    pub make: fn(&Making<'_>) -> Box<dyn Fed>,
}

const fn policy(
    name: &'static str,
    help: &'static str,
    params: &'static [ParamSpec],
    make: fn(&Making<'_>) -> Box<dyn Fed>,
) -> PolicyInfo {
    PolicyInfo { name, help, params, needs_future: false, make }
}

/// What a policy is made from.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    /// How many objects it holds.
    pub capacity: Capacity,
    /// Values of its parameters.
    pub params: &'a Params,
    /// The trace, where the policy needs it; else nothing.
    pub future: &'a sync::Arc<Future>,
}

impl Making<'_> {
    /// The value of a parameter that is a share.
    ///
    /// # Panics
    /// When it is none: a mistake in the policy, as for a count below.
    pub fn share(&self, name: &str) -> Share {
        self.params.share(name).expect("shares of policies have defaults")
    }

    /// The value of a parameter that is a whole number.
    pub fn count(&self, name: &str) -> u64 {
        self.params.count(name).expect("counts of policies have defaults")
    }
}

/// A policy with values for all of its parameters. [`fmt::Display`] writes those that differ from the defaults,
/// and it reads back equal.
#[derive(Debug, Clone)]
pub struct PolicySpec {
    info: &'static PolicyInfo,
    params: Params,
}

impl PartialEq for PolicySpec {
    fn eq(&self, other: &Self) -> bool {
        self.info.name == other.info.name && self.params == other.params
    }
}

impl Eq for PolicySpec {}

impl PolicySpec {
    /// A policy with its defaults.
    pub fn new(info: &'static PolicyInfo) -> Self {
        Self { info, params: Params::defaults(info.params) }
    }

    /// All policies with their defaults.
    pub fn all() -> impl Iterator<Item = Self> {
        POLICIES.iter().map(Self::new)
    }

    /// Which policy it is.
    pub fn info(&self) -> &'static PolicyInfo {
        self.info
    }

    /// The values of its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// In what portions it evicts and admits.
    pub fn pace(&self) -> Pace {
        let of = |name: &str| self.params.count(name).unwrap_or_default() as u32; // At most 4096.
        Pace { batch: of(BATCH.name).max(1), readahead: of(READAHEAD.name) }
    }

    /// All values that decide, for whoever reads the result; `None` where the name says all.
    pub fn values(&self) -> Option<String> {
        let plain =
            self.info.params.len() == PLAIN.len() && self.params == Params::defaults(self.info.params);
        let values: Vec<String> = (self.info.params.iter())
            .filter_map(|spec| Some(format!("{}={}", spec.name, self.params.get(spec.name)?)))
            .collect();
        (!plain).then(|| format!("{}: {}", self.info.name, values.join(", ")))
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        let defaults = Params::defaults(self.info.params);
        for spec in self.info.params {
            match self.params.get(spec.name) {
                Some(value) if defaults.get(spec.name) != Some(value) => write!(f, ":{}={value}", spec.name)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let known = POLICIES.iter().map(|info| info.name);
        let info = (POLICIES.iter().find(|info| info.name == name))
            .ok_or_else(|| UnknownName::new("policy", name, known))?;
        let wrong = |source| PolicyError::Param { policy: info.name, source };
        let mut spec = Self::new(info);
        let mut given: Vec<(&str, &str)> = Vec::new();
        for part in parts {
            let (name, value) = split_pair(part).map_err(wrong)?;
            if let Some((_, first)) = given.iter().find(|(other, _)| *other == name) {
                return Err(wrong(ParamError::twice(name, first, value)));
            }
            spec.params.set(name, value).map_err(wrong)?;
            given.push((name, value));
        }
        if info.needs_future && spec.pace().readahead > 0 {
            return Err(PolicyError::NoReadahead(info.name));
        }
        Ok(spec)
    }
}
