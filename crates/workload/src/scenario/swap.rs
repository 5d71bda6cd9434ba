//! What a machine can swap to: a list such as `zram:256M,disk:1G`, in the order of `swapon`; in front of it perhaps
//! `zswap+` or `zswap:20%+`, with what its pool may take of memory: `zswap:20%+disk:1G`.
//!
//! The first area is filled first, unless some have priorities: `disk:1G,zram:256M,prio=100`, as `swapon -p 100` would
//! give it. The higher is filled first, before all without one; areas of equal priority take turns. In a scenario
//! file it can be a list, too: `swap = ["disk:1G", "zram:256M,prio=100"]`.
//!
//! Left out: swap files. Whether the machine has room for it is checked where
//! machines are built.

use std::fmt;
use std::str::FromStr;

use units::{Bytes, PAGE_SIZE, parse_size};

use crate::scenario::backend::Backend;
use crate::scenario::error::ScenarioProblem;

/// The smallest area: below, the header and the slots that CPUs keep would be most of it.
pub const SWAP_MIN: Bytes = Bytes(1 << 20);
/// The largest one: slots are numbered in 26 bits.
pub const SWAP_MAX: Bytes = Bytes(128 << 30);
/// Areas that a machine has at most.
const AREAS_MAX: usize = 8;
/// What nothing is called.
const NONE: &str = "none";
/// What stands before the priority of the area before it.
const PRIORITY: &str = "prio=";
/// The highest priority that `swapon` takes.
pub const PRIORITY_MAX: i16 = 32767;
/// What stands between zswap and the areas.
const IN_FRONT: char = '+';

/// What an area is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwapDevice {
    /// A disk of its own, of the kind that the machine has for files.
    Disk,
    /// Compressed memory.
    Zram,
}

impl SwapDevice {
    const ALL: [Self; 2] = [Self::Disk, Self::Zram];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Zram => "zram",
        }
    }
}

/// One area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapArea {
    /// What it is on.
    pub device: SwapDevice,
    /// Its size with its header, in whole pages.
    pub size: Bytes,
    /// The higher is filled first; none: below all that were switched on before it.
    pub priority: Option<i16>,
}

impl SwapArea {
    /// Pages that it holds: all but that of its header.
    pub fn slots(self) -> u64 {
        self.size.get() / PAGE_SIZE - 1
    }
}

impl fmt::Display for SwapArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device.name(), self.size)?;
        match self.priority {
            Some(priority) => write!(f, ",{PRIORITY}{priority}"),
            None => Ok(()),
        }
    }
}

/// Compressed pages in memory in front of all areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zswap {
    /// What its pool may take, in percent of memory; none: as `zswap.max_pool_percent` has it.
    pub max_pool_percent: Option<u8>,
}

impl fmt::Display for Zswap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max_pool_percent {
            Some(percent) => write!(f, "zswap:{percent}%"),
            None => f.write_str("zswap"),
        }
    }
}

impl FromStr for Zswap {
    type Err = ScenarioProblem;

    fn from_str(text: &str) -> Result<Self, ScenarioProblem> {
        match text.split_once(':') {
            None if text == "zswap" => Ok(Self { max_pool_percent: None }),
            Some(("zswap", share)) => {
                let percent = share.strip_suffix('%').and_then(|number| number.parse().ok());
                let percent = percent.filter(|percent| (1..=100).contains(percent));
                let wrong = || wrong(text, "its pool has 1% to 100% of memory".to_owned());
                Ok(Self { max_pool_percent: Some(percent.ok_or_else(wrong)?) })
            }
            _ => Err(wrong(text, format!("only `zswap` stands before a `{IN_FRONT}`"))),
        }
    }
}

/// All areas of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swap {
    /// In the order in which they are switched on: the first one is filled first, unless some have priorities.
    pub areas: Vec<SwapArea>,
    /// What stands in front of them.
    pub zswap: Option<Zswap>,
}

impl Swap {
    /// No area at all.
    pub const NONE: Self = Self { areas: Vec::new(), zswap: None };

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.areas.is_empty()
    }

    /// Bytes of all areas on this kind of device.
    pub fn size_on(&self, device: SwapDevice) -> Bytes {
        Bytes(self.areas.iter().filter(|area| area.device == device).map(|area| area.size.get()).sum())
    }
}

impl fmt::Display for Swap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str(NONE);
        }
        if let Some(zswap) = self.zswap {
            write!(f, "{zswap}{IN_FRONT}")?;
        }
        for (index, area) in self.areas.iter().enumerate() {
            write!(f, "{}{area}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

fn wrong(value: &str, why: String) -> ScenarioProblem {
    ScenarioProblem::Swap { value: value.to_owned(), why }
}

impl FromStr for SwapArea {
    type Err = ScenarioProblem;

    fn from_str(text: &str) -> Result<Self, ScenarioProblem> {
        let (name, size) = text.split_once(':').unwrap_or((text, ""));
        let device = SwapDevice::ALL.into_iter().find(|device| device.name() == name);
        let device = device.ok_or_else(|| {
            if name == "zswap" {
                let why = format!("zswap stands in front of an area, as in `{name}:20%{IN_FRONT}disk:1G`");
                return wrong(text, why);
            }
            wrong(text, format!("there is no swap on `{name}`; there is on `disk` and on `zram`"))
        })?;
        if size.is_empty() {
            return Err(wrong(text, "it has no size".to_owned()));
        }
        let size = parse_size(size).map_err(|error| wrong(text, error.to_string()))?;
        if size < SWAP_MIN || size > SWAP_MAX {
            return Err(wrong(text, format!("an area has {SWAP_MIN} to {SWAP_MAX}")));
        }
        if size.get() % PAGE_SIZE != 0 {
            return Err(wrong(text, "an area has whole pages of 4k".to_owned()));
        }
        Ok(Self { device, size, priority: None })
    }
}

/// Gives the area before it the priority that `part` says.
fn set_priority(area: Option<&mut SwapArea>, part: &str, number: &str) -> Result<(), ScenarioProblem> {
    let priority: i16 = number
        .parse()
        .ok()
        .filter(|number| (0..=PRIORITY_MAX).contains(number))
        .ok_or_else(|| wrong(part, format!("a priority is a whole number from 0 to {PRIORITY_MAX}")))?;
    let area = area.ok_or_else(|| wrong(part, "a priority stands behind its area".to_owned()))?;
    if area.priority.is_some() {
        return Err(wrong(part, format!("`{area}` has a priority already")));
    }
    area.priority = Some(priority);
    Ok(())
}

impl FromStr for Swap {
    type Err = ScenarioProblem;

    fn from_str(text: &str) -> Result<Self, ScenarioProblem> {
        if text.trim() == NONE {
            return Ok(Self::NONE);
        }
        let (zswap, text) = match text.split_once(IN_FRONT) {
            Some((zswap, areas)) => (Some(zswap.trim().parse::<Zswap>()?), areas),
            None => (None, text),
        };
        let mut areas: Vec<SwapArea> = Vec::new();
        for part in text.split(',').map(str::trim) {
            match part.strip_prefix(PRIORITY) {
                Some(number) => set_priority(areas.last_mut(), part, number)?,
                None => areas.push(part.parse()?),
            }
        }
        let is_again =
            |(place, area): &(usize, &SwapArea)| area.priority.is_none() && areas[..*place].contains(area);
        if let Some((_, area)) = areas.iter().enumerate().find(is_again) {
            let why =
                format!("`{area}` is there twice: make one area as large as both, or give them priorities");
            return Err(wrong(text, why));
        }
        if areas.len() > AREAS_MAX {
            return Err(wrong(text, format!("a machine has at most {AREAS_MAX} areas")));
        }
        Ok(Self { areas, zswap })
    }
}

/// Checks that `backend` can have `swap`; `what` is the key or option that says so.
///
/// # Errors
/// [`ScenarioProblem::NotChosen`] on this host.
pub fn check_swap(what: &str, swap: &Swap, backend: &Backend) -> Result<(), ScenarioProblem> {
    match backend {
        Backend::Sim | Backend::Vm(_) | Backend::Uml(_) => Ok(()),
        Backend::Host => Err(ScenarioProblem::NotChosen {
            what: what.to_owned(),
            value: swap.to_string(),
            why: "this host swaps to what it swaps to".to_owned(),
            or: "boot a guest with it by `--on uml:VERSION`",
        }),
    }
}
