//! What the memory of a run looked like, moment by moment: as many looks as a person steps through, at even distances
//! of simulated time, although nobody knows before how long a run takes.
//!
//! Looks begin close together. When there are [`LOOKS_MAX`] of them, every second one goes and the distance doubles, so
//! that the rest lies even. Looking changes nothing, so a run that is watched leaves the same recording as any other.
//!
//! Frames are looked at in [`PLACES`] places: what a map shows is a sample of one frame in each stretch of memory.
//! Left out: what a frame was between two looks.

use std::collections::BTreeMap;

use lab::LabError;
use lab::stepping::{FrameLook, Home, Look, Stepping, Use};
use serde_json::{Value, json};
use units::{Nanos, Pfn};

/// Places of a map.
pub const PLACES: usize = 4096;

/// Looks that are kept at most.
const LOOKS_MAX: usize = 240;

/// Simulated time between the first looks.
const FIRST_DISTANCE: Nanos = Nanos(4_000_000);

/// Counters whose growth is shown: a name, and what the counters of the kernel that add up to it begin with.
const COUNTED: [(&str, &[&str]); 4] = [
    ("scanned", &["pgscan_kswapd", "pgscan_direct"]),
    ("reclaimed", &["pgsteal_kswapd", "pgsteal_direct"]),
    ("refaults", &["workingset_refault"]),
    ("stalls", &["allocstall"]),
];

/// One moment of a run.
struct Moment {
    at: Nanos,
    look: Look,
    counted: [u64; COUNTED.len()],
    /// What each task does that is not idle.
    tasks: Vec<[String; 3]>,
}

/// All moments of a run that are kept.
pub struct Walk {
    places: Vec<Pfn>,
    distance: Nanos,
    next: Nanos,
    moments: Vec<Moment>,
    cgroups: Vec<String>,
}

impl Walk {
    /// Of a run that was booted.
    ///
    /// # Errors
    /// As [`Stepping::look`].
    pub fn begin(run: &Stepping) -> Result<Self, LabError> {
        let places = run.places(PLACES)?;
        let distance = FIRST_DISTANCE;
        let mut walk = Self { places, distance, next: Nanos(0), moments: Vec::new(), cgroups: Vec::new() };
        walk.take(run)?;
        Ok(walk)
    }

    /// When the next look is due.
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Looks at a run that has come to [`Walk::next`], or to its end.
    ///
    /// # Errors
    /// As [`Stepping::look`].
    pub fn take(&mut self, run: &Stepping) -> Result<(), LabError> {
        if self.moments.len() == LOOKS_MAX {
            let mut index = 0;
            self.moments.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.distance = Nanos(self.distance.get() * 2);
        }
        let vmstat = run.vmstat()?;
        let sum = |begins: &[&str]| {
            let counts = |name: &str| {
                begins.iter().any(|begin| name.starts_with(begin)) && !name.ends_with("_throttle")
            };
            vmstat.iter().filter(|(name, _)| counts(name)).map(|(_, value)| value).sum()
        };
        let tasks = run.tasks()?;
        let columns = ["task", "doing", "what"].map(|column| tasks.column(column));
        let [names, doing, what] = columns;
        let tasks = names.into_iter().zip(doing).zip(what).map(|((task, doing), what)| [task, doing, what]);
        self.moments.push(Moment {
            at: run.now()?,
            look: run.look(&self.places)?,
            counted: COUNTED.map(|(_, begins)| sum(begins)),
            tasks: tasks.collect(),
        });
        self.cgroups = run.cgroups()?;
        // The last event was before the time that was due.
        let since = self.next.max(run.now()?).get() / self.distance.get();
        self.next = Nanos((since + 1) * self.distance.get());
        Ok(())
    }

    /// Everything but the frames.
    pub(crate) fn shown(&self, label: &str) -> Value {
        let moments = self.moments.iter().map(|moment| {
            let zones = moment.look.zones.iter().map(|zone| json!([zone.free, zone.marks]));
            let lists = moment.look.lists.iter();
            let lists = lists.map(|list| json!([list.cgroup, list.list, list.generation, list.pages]));
            json!({
                "ns": moment.at.get(),
                "zones": zones.collect::<Vec<_>>(),
                "lists": lists.collect::<Vec<_>>(),
                "files": moment.look.files.iter().map(|file| json!([file.path, file.pages])).collect::<Vec<_>>(),
                "counted": moment.counted,
                "tasks": moment.tasks,
            })
        });
        let zones = self.moments.first().map(|moment| {
            let zones = moment.look.zones.iter();
            zones.map(|zone| json!([zone.node, zone.name, zone.managed])).collect::<Vec<_>>()
        });
        json!({
            "label": label,
            "zones": zones,
            "counters": COUNTED.map(|(name, _)| name),
            "uses": Use::ALL.map(|(_, name)| name),
            "places": self.places.iter().map(|pfn| pfn.0).collect::<Vec<_>>(),
            "moments": moments.collect::<Vec<_>>(),
        })
    }

    /// What the frames were used for, moment by moment: a byte for each, whose bit 4 says dirty and bit 5 isolated.
    pub(crate) fn map(&self) -> Vec<u8> {
        let byte = |frame: &FrameLook| {
            (frame.used as u8) | (u8::from(frame.dirty) << 4) | (u8::from(frame.isolated) << 5)
        };
        self.moments.iter().flat_map(|moment| moment.look.frames.iter().map(byte)).collect()
    }

    /// What became of one frame: a line for each change, with the time at which it was first seen.
    pub(crate) fn frame(&self, place: usize) -> Value {
        let mut lines: Vec<(u64, String)> = Vec::new();
        // Files without a name by their numbers, in the order in which they came to this frame.
        let mut files: BTreeMap<u32, usize> = BTreeMap::new();
        for moment in &self.moments {
            let Some(frame) = moment.look.frames.get(place) else { break };
            let told = self.told(frame, &moment.look, &mut files);
            if lines.last().is_none_or(|(_, last)| *last != told) {
                lines.push((moment.at.get(), told));
            }
        }
        let pfn = self.places.get(place).map(|pfn| pfn.0);
        json!({ "pfn": pfn, "lines": lines })
    }

    fn told(&self, frame: &FrameLook, look: &Look, files: &mut BTreeMap<u32, usize>) -> String {
        let name = Use::ALL.iter().find(|(used, _)| *used == frame.used).map_or("", |(_, name)| name);
        let Some((home, index)) = frame.page else { return name.to_owned() };
        let page = match home {
            Home::File(number) => {
                let next = files.len() + 1;
                match look.files.iter().find(|file| file.number == number) {
                    Some(file) => format!("page {index} of {}", file.path),
                    None => format!("page {index} of file {}", files.entry(number).or_insert(next)),
                }
            }
            Home::Anon => format!("page {index} of anonymous memory"),
        };
        let cgroup = match self.cgroups.get(usize::from(frame.cgroup)).map(String::as_str) {
            None | Some("") => "the root cgroup".to_owned(),
            Some(path) => format!("cgroup {path}"),
        };
        let dirty = if frame.dirty { ", dirty" } else { "" };
        let isolated = if frame.isolated { ", taken off its list" } else { "" };
        format!("{page}, {cgroup}: {name}{dirty}{isolated}")
    }
}
