//! What protected what: `memory.low` and `memory.min` of each cgroup, and why they did or did not.
//!
//! Counters tell how far it came: how much a cgroup used, whether reclaim looked at it, whether its protection
//! was overridden. Of a run with events the walks themselves are counted (`memcg_low`). A protection holds
//! reclaim off up to its size, only from reclaim that begins above the cgroup, and only as far as the cgroups
//! above have some to share out (MECHANISMS 8.3). Left out: recursive protection of parents.

use std::collections::BTreeMap;

use recording::Recording;
use serde_json::{Value, json};

use super::digest::{Digest, Turns};
use super::words::{bytes, so_often};
use crate::document::{Section, Table, row};

/// What became of a cgroup that is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Nobody reclaimed anything.
    NoReclaim,
    /// Reclaim had to take protected memory, there being nothing else.
    Overridden,
    /// It was reclaimed for its own limit, from which nothing protects.
    OwnLimit,
    /// A cgroup above has nothing to share out.
    NothingAbove,
    /// A cgroup above has less to share out than it used.
    TooLittleAbove,
    /// It stayed below and was passed by.
    Held,
    /// It was above, and reclaim took nothing of it.
    NotNeeded,
    /// It was above, and reclaim took some of what was above.
    Above,
    /// Reclaim took something, and counters do not tell why.
    Unknown,
}

/// A cgroup and its figures.
#[derive(Debug, Clone)]
struct Protected<'a> {
    path: &'a str,
    low: u64,
    min: u64,
    /// The most that it was seen to use, in bytes.
    most: Option<u64>,
    /// The least after that.
    least: Option<u64>,
    scanned: u64,
    taken: u64,
    deactivated: u64,
    refaulted: u64,
    overridden: Option<u64>,
    /// The cgroup above that shares out least, and how much, if reclaim from above that one came and had pages of it.
    least_above: Option<(&'a str, u64)>,
    own_limit: bool,
    /// Pages that reclaim freed anywhere.
    taken_anywhere: u64,
    /// Pages that were looked at on active lists anywhere.
    refilled_anywhere: u64,
    /// What events say: how often reclaim came and the protection decided.
    turns: Option<Turns>,
    /// What events say: pages of it that went at its own limit.
    taken_at_own_limit: Option<u64>,
}

impl Protected<'_> {
    fn protection(&self) -> u64 {
        self.low.max(self.min)
    }

    /// What of it counts for reclaim that began furthest above.
    fn effective(&self) -> u64 {
        self.least_above.map_or(self.protection(), |(_, size)| size)
    }

    fn file(&self) -> &'static str {
        if self.min >= self.low { "memory.min" } else { "memory.low" }
    }

    /// Whether what was reclaimed was so for its own limit; counters tell no more than that it was reached.
    fn at_own_limit(&self) -> bool {
        self.taken_at_own_limit.map_or(self.own_limit, |pages| 2 * pages > self.taken)
    }

    /// How often reclaim came to it and its protection decided, if events tell.
    fn turns_in_words(&self) -> String {
        match self.turns {
            None => String::new(),
            Some(Turns { passed: 0, overridden: 0 }) => {
                " No walk of reclaim found it below its protection.".to_owned()
            }
            Some(Turns { passed, overridden: 0 }) => {
                format!(" Reclaim passed it by {} for it.", so_often(passed))
            }
            // How often it was overridden counters have told.
            Some(Turns { passed, .. }) => format!(" Reclaim also passed it by {} for it.", so_often(passed)),
        }
    }

    fn verdict(&self) -> Verdict {
        let used_more_than = |size| self.most.is_some_and(|most| most > size);
        let above = used_more_than(self.protection());
        let touched = self.scanned > 0 || self.deactivated > 0;
        match self.overridden {
            _ if self.taken_anywhere == 0 && !touched => Verdict::NoReclaim,
            Some(1..) => Verdict::Overridden,
            _ if touched && self.at_own_limit() => Verdict::OwnLimit,
            _ if touched && self.least_above.is_some_and(|(_, size)| size == 0) => Verdict::NothingAbove,
            _ if touched && above => Verdict::Above,
            _ if touched && self.least_above.is_some_and(|(_, size)| used_more_than(size)) => {
                Verdict::TooLittleAbove
            }
            _ if touched => Verdict::Unknown,
            _ if used_more_than(self.effective()) => Verdict::NotNeeded,
            _ => Verdict::Held,
        }
    }

    /// Did it protect, and why.
    fn sentence(&self) -> String {
        self.why() + &self.turns_in_words()
    }

    fn why(&self) -> String {
        let (file, size) = (self.file(), bytes(self.protection()));
        let most = self.most.map_or_else(
            || "what it used is not known".to_owned(),
            |most| format!("it used {} at most", bytes(most)),
        );
        let lost = match self.taken {
            0 => format!("{} of its pages were deactivated, and none reclaimed", self.deactivated),
            taken => format!("{taken} of its pages were reclaimed, {} came back", self.refaulted),
        };
        let head = format!("`{file}` of {size} on cgroup `{}`", self.path);
        match self.verdict() {
            Verdict::NoReclaim => format!("{head} had nothing to do: nobody reclaimed anything."),
            Verdict::Held => format!(
                "{head} protected it: {most}, so every walk of reclaim could pass it by; it lost nothing while \
                 {} pages were taken elsewhere.",
                self.taken_anywhere
            ),
            Verdict::NotNeeded => {
                let why = if self.refilled_anywhere == 0 {
                    "no active list was opened in the whole run, so inactive pages of others were enough"
                } else {
                    "its pages were active, and reclaim found enough elsewhere"
                };
                let protected = match self.least_above {
                    None => "more than is protected".to_owned(),
                    Some((path, size)) => {
                        let size =
                            if size == 0 { "none".to_owned() } else { format!("only {}", bytes(size)) };
                        format!("and cgroup `{path}` above it has {size} to share out")
                    }
                };
                format!(
                    "{head} was not what kept its pages: {most}, {protected}, and yet reclaim took \
                         none of it: {why}."
                )
            }
            Verdict::Above => {
                let least = self
                    .least
                    .filter(|&least| self.most.is_some_and(|most| least < most))
                    .map_or_else(String::new, |least| format!(": it went down to {}", bytes(least)));
                format!(
                    "{head} protected a part: {most}, and what is above its protection reclaim may \
                         take, since Linux 5.4 the less the nearer it is{least}; {lost}."
                )
            }
            Verdict::Overridden => format!(
                "{head} did not hold: it was overridden {}, when reclaim found too little elsewhere; {lost}.",
                so_often(self.overridden.unwrap_or(0))
            ),
            Verdict::OwnLimit => format!(
                "{head} did not protect it from its own `memory.max`: protection counts for reclaim from above \
                 only; {lost}."
            ),
            Verdict::NothingAbove => format!(
                "{head} did not protect it: cgroup `{}` above it has none to share out, so for reclaim that begins \
                 above that one it counts for nothing; {lost}.",
                self.least_above.unwrap_or_default().0
            ),
            Verdict::TooLittleAbove => {
                let (path, size) = self.least_above.unwrap_or_default();
                format!(
                    "{head} protected a part: cgroup `{path}` above it has only {} to share out for reclaim that \
                     begins above that one, and {most}; {lost}.",
                    bytes(size)
                )
            }
            Verdict::Unknown => format!("{head} did not hold, and counters do not tell why: {most}; {lost}."),
        }
    }

    const fn word(&self, verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::NoReclaim => "no reclaim",
            Verdict::Overridden => "overridden",
            Verdict::OwnLimit => "own limit",
            Verdict::NothingAbove => "nothing above",
            Verdict::TooLittleAbove => "too little above",
            Verdict::Held => "protected",
            Verdict::NotNeeded => "not needed",
            Verdict::Above => "in part",
            Verdict::Unknown => "not known why",
        }
    }
}

fn value(stats: &BTreeMap<String, u64>, name: &str) -> u64 {
    stats.get(name).copied().unwrap_or(0)
}

/// The cgroups above `path`, nearest first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/'), |(above, _)| above.rsplit_once('/')).map(|(above, _)| above)
}

/// What a cgroup used over time, in bytes: its `memory.current`, or what older recordings have of it.
fn usage(recording: &Recording, path: &str) -> Option<Vec<u64>> {
    let column = |name: &str| recording.series.column(&format!("cg_{}_{name}", path.replace('/', "_")));
    column("current").or_else(|| {
        let (file, anon) = (column("file")?, column("anon")?);
        Some(file.iter().zip(anon).map(|(file, anon)| file + anon).collect())
    })
}

/// Of the cgroups above that one that has least to share out, and less than `protection`; of several the nearest. Only
/// where reclaim began above it: for reclaim at its own limit it is where sharing begins.
fn least_above<'a>(recording: &'a Recording, path: &'a str, protection: u64) -> Option<(&'a str, u64)> {
    let groups = &recording.memcg;
    let of_machine = ["pgsteal_kswapd", "pgsteal_direct"].map(|name| value(&recording.vmstat, name));
    let limits = |path: &str| groups.get(path).map_or(0, |stats| value(stats, "events_max"));
    // A limit that was reached counts in all cgroups above, too.
    let below = |path: &str| {
        let children = groups.keys().filter(|child| above(child).next() == Some(path));
        children.map(|child| limits(child)).sum::<u64>()
    };
    let comes_from = |path: &str| limits(path) > below(path);
    let shares = |above: &'a str| {
        let stats = groups.get(above)?;
        Some((above, value(stats, "memory.low").max(value(stats, "memory.min"))))
    };
    let is_short = |&(path, size): &(&str, u64)| {
        size < protection && (of_machine.iter().any(|&pages| pages > 0) || above(path).any(comes_from))
    };
    above(path).filter_map(shares).filter(is_short).min_by_key(|&(_, size)| size)
}

fn protected<'a>(recording: &'a Recording, events: Option<&'a Digest>) -> Vec<Protected<'a>> {
    let anywhere = |names: &[&str]| names.iter().map(|&name| value(&recording.vmstat, name)).sum::<u64>();
    let groups = &recording.memcg;
    // Those at the top count for all below.
    let tops = groups.iter().filter(|(path, _)| !path.contains('/'));
    let steals = tops.map(|(_, stats)| value(stats, "pgsteal")).sum::<u64>();
    let of = |(path, stats): (&'_ String, &BTreeMap<String, u64>)| {
        let (low, min) = (value(stats, "memory.low"), value(stats, "memory.min"));
        let is_leaf = !groups.keys().any(|other| above(other).any(|above| above == path));
        if low.max(min) == 0 || !is_leaf {
            return None;
        }
        let usage = usage(recording, path);
        let peak = usage.as_ref().and_then(|usage| {
            usage.iter().enumerate().max_by_key(|&(at, &bytes)| (bytes, std::cmp::Reverse(at)))
        });
        let current = stats.get("current").copied();
        let (path, _) = groups.get_key_value(path).expect("it is one of these");
        Some(Protected {
            path,
            low,
            min,
            most: peak.map(|(_, &most)| most).max(current),
            least: peak
                .and_then(|(at, _)| usage.as_ref()?[at..].iter().copied().chain(current).min())
                .or(current),
            scanned: value(stats, "pgscan"),
            taken: value(stats, "pgsteal"),
            deactivated: value(stats, "pgdeactivate"),
            refaulted: value(stats, "workingset_refault_file") + value(stats, "workingset_refault_anon"),
            overridden: stats.get("events_low").copied(),
            least_above: least_above(recording, path, low.max(min)),
            own_limit: value(stats, "events_max") > 0,
            taken_anywhere: anywhere(&["pgsteal_kswapd", "pgsteal_direct"]).max(steals),
            refilled_anywhere: anywhere(&["pgrefill"]),
            turns: events.map(|events| events.turns(path).unwrap_or_default()),
            taken_at_own_limit: events.map(|events| {
                let (_, limits) = events.evictions().lost(path);
                limits.get(path.as_str()).copied().unwrap_or(0)
            }),
        })
    };
    groups.iter().filter_map(of).collect()
}

/// One sentence for each cgroup that is protected.
pub(super) fn sentences(recording: &Recording, events: Option<&Digest>) -> Vec<String> {
    protected(recording, events).iter().map(Protected::sentence).collect()
}

/// The table; empty where no cgroup is protected.
pub(super) fn section(recording: &Recording, events: Option<&Digest>) -> Section {
    let mut table = Table::new()
        .texts(["cgroup"])
        .amounts(["low", "min", "used at most", "at least after"])
        .numbers(["scanned", "reclaimed", "came back", "overridden"])
        .texts(["protected?"]);
    let set = |size: u64| (size > 0).then(|| bytes(size));
    for group in protected(recording, events) {
        table.push(row![
            group.path,
            set(group.low),
            set(group.min),
            group.most.map(bytes),
            group.least.map(bytes),
            group.scanned,
            group.taken,
            group.refaulted,
            group.overridden,
            group.word(group.verdict()),
        ]);
    }
    Section::new("what was protected (pages unless a unit stands there)").with(table)
}

/// One object for each cgroup that is protected.
pub(super) fn json(recording: &Recording, events: Option<&Digest>) -> Value {
    let group = |group: &Protected<'_>| {
        json!({
            "cgroup": group.path,
            "low_bytes": group.low,
            "min_bytes": group.min,
            "most_bytes": group.most,
            "least_after_bytes": group.least,
            "scanned": group.scanned,
            "reclaimed": group.taken,
            "deactivated": group.deactivated,
            "refaulted": group.refaulted,
            "overridden": group.overridden,
            "turns_passed": group.turns.map(|turns| turns.passed),
            "turns_overridden": group.turns.map(|turns| turns.overridden),
            "verdict": group.word(group.verdict()),
            "sentence": group.sentence(),
        })
    };
    protected(recording, events).iter().map(group).collect()
}
