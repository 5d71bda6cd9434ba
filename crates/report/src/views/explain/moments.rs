//! When pressure came and what it did: turning points of a run, to the nanosecond, and how long kswapd and
//! reclaiming tasks were at work.
//!
//! Left out: levels between readings, which [`super::pressure`] draws from the series.

use std::collections::BTreeMap;

use recording::{Event, NameId, Names};
use serde_json::{Value, json};

use super::kind::Kind;
use super::words::for_whom;
use crate::document::number::duration;
use crate::document::{Cell, Section, Table, row};

/// Kills that are told one by one.
const KILLS_MAX: usize = 8;

/// Stays of one kind.
#[derive(Debug, Clone, Default)]
struct Runs {
    count: u64,
    total_ns: u64,
    pages: u64,
    /// When the first began, and who it was.
    first: Option<(u64, String)>,
    /// When the longest began, how long it was, who it was.
    longest: Option<(u64, u64, String)>,
}

impl Runs {
    fn add(&mut self, begin_ns: u64, length_ns: u64, who: &str, pages: u64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(length_ns);
        self.pages = self.pages.saturating_add(pages);
        // Told when they end: an earlier one may begin before one that was told first.
        if self.first.as_ref().is_none_or(|(at, _)| begin_ns < *at) {
            self.first = Some((begin_ns, who.to_owned()));
        }
        if self.longest.as_ref().is_none_or(|(_, length, _)| length_ns > *length) {
            self.longest = Some((begin_ns, length_ns, who.to_owned()));
        }
    }
}

/// What happened when.
#[derive(Debug, Default)]
pub(super) struct Moments {
    /// By node: since when kswapd is awake.
    awake: BTreeMap<u8, u64>,
    kswapd: BTreeMap<u8, Runs>,
    direct: Runs,
    /// By the cgroup at its limit.
    limits: BTreeMap<String, Runs>,
    boosts: u64,
    first_boost: Option<(u64, String, i64)>,
    highest_boost: Option<(u64, String, i64)>,
    evictions: u64,
    first_eviction: Option<(u64, String)>,
    refaults: u64,
    first_refault: Option<(u64, String)>,
    overrides: u64,
    first_override: Option<(u64, String)>,
    kills: Vec<(u64, String)>,
    /// When the last event was recorded.
    last_ns: u64,
}

fn text(names: &Names, id: Option<NameId>) -> &str {
    id.map_or("", |id| names.text(id))
}

/// `, the first of 3 runs`; nothing for the only one.
fn of_all(count: u64, what: &str) -> String {
    of_all_or(count, what, "")
}

/// [`of_all`], and of the only one something else.
fn of_all_or(count: u64, what: &str, only: &str) -> String {
    if count == 1 { only.to_owned() } else { format!(", the first of {count} {what}") }
}

/// Which page, in words.
fn page(names: &Names, event: &Event) -> String {
    match (event.file, event.page) {
        (Some(file), Some(page)) => format!("page {page} of `{}`", names.text(file)),
        _ => "an anonymous page".to_owned(),
    }
}

impl Moments {
    pub(super) fn take(&mut self, names: &Names, kind: Kind, event: &Event) {
        let task = || text(names, event.task);
        let end = event.time_ns.saturating_add(event.duration_ns);
        self.last_ns = self.last_ns.max(end);
        let pages = event.value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
        match kind {
            Kind::KswapdWakes => {
                self.awake.entry(event.node.unwrap_or(0)).or_insert(event.time_ns);
            }
            Kind::KswapdSleeps => {
                let node = event.node.unwrap_or(0);
                if let Some(since) = self.awake.remove(&node) {
                    self.kswapd.entry(node).or_default().add(since, end.saturating_sub(since), task(), 0);
                }
            }
            Kind::DirectReclaim => self.direct.add(event.time_ns, event.duration_ns, task(), pages),
            Kind::LimitReclaim => {
                let runs = self.limits.entry(text(names, event.by_cgroup).to_owned()).or_default();
                runs.add(event.time_ns, event.duration_ns, task(), pages);
            }
            Kind::Boost => {
                self.boosts += 1;
                let boost = event.value.unwrap_or(0);
                let zone = format!("{} of node {}", text(names, event.reason), event.node.unwrap_or(0));
                if self.highest_boost.as_ref().is_none_or(|(_, _, highest)| boost > *highest) {
                    self.highest_boost = Some((event.time_ns, zone.clone(), boost));
                }
                self.first_boost.get_or_insert((event.time_ns, zone, boost));
            }
            Kind::Reclaimed => {
                self.evictions += u64::from(event.pages);
                self.first_eviction.get_or_insert_with(|| (event.time_ns, page(names, event)));
            }
            Kind::Refaulted => {
                self.refaults += u64::from(event.pages);
                self.first_refault.get_or_insert_with(|| (event.time_ns, page(names, event)));
            }
            Kind::OomKill if self.kills.len() < KILLS_MAX => {
                let whom = for_whom(text(names, event.by_cgroup));
                self.kills.push((event.time_ns, format!("`{}` for {whom}", text(names, event.cgroup))));
            }
            _ => {}
        }
    }

    pub(super) fn overridden(&mut self, names: &Names, event: &Event) {
        self.overrides += 1;
        self.first_override.get_or_insert_with(|| (event.time_ns, text(names, event.cgroup).to_owned()));
    }

    /// kswapd's runs by node, what lasts still up to the last event.
    fn kswapd(&self) -> BTreeMap<u8, Runs> {
        let mut kswapd = self.kswapd.clone();
        for (&node, &since) in &self.awake {
            let who = format!("kswapd{node}");
            kswapd.entry(node).or_default().add(since, self.last_ns.saturating_sub(since), &who, 0);
        }
        kswapd
    }

    fn told(&self) -> Vec<(u64, String)> {
        let mut told: Vec<(u64, String)> = Vec::new();
        let lasted = |ns: u64| duration(ns as f64);
        for (node, runs) in self.kswapd() {
            let (count, total) = (runs.count, lasted(runs.total_ns));
            if let Some((at, _)) = runs.first {
                told.push((
                    at,
                    format!(
                        "kswapd{node} wakes{}",
                        of_all_or(count, &format!("runs of {total} in all"), &format!(" for {total}"))
                    ),
                ));
            }
            if let Some((at, length, _)) = runs.longest.filter(|_| count > 1) {
                told.push((at, format!("kswapd{node}'s longest run begins: {}", lasted(length))));
            }
        }
        let direct = std::iter::once((String::new(), &self.direct));
        for (target, runs) in direct.chain(self.limits.iter().map(|(target, runs)| (target.clone(), runs))) {
            let whom = for_whom(&target);
            let (count, total, pages) = (runs.count, lasted(runs.total_ns), runs.pages);
            if let Some((at, who)) = &runs.first {
                let first = match count {
                    1 => format!("`{who}` reclaims for {whom}: {total}, {pages} pages"),
                    _ => format!(
                        "the first of {count} times that a task reclaims for {whom}: `{who}`; all of them take {total} \
                         and free {pages} pages"
                    ),
                };
                told.push((*at, first));
            }
            if let Some((at, length, who)) = runs.longest.as_ref().filter(|_| count > 1) {
                told.push((
                    *at,
                    format!("the longest time that a task reclaims for {whom}: `{who}`, {}", lasted(*length)),
                ));
            }
        }
        let boosts = self.boosts;
        if let Some((at, zone, boost)) = &self.first_boost {
            told.push((*at, format!("zone {zone} is boosted by {boost} pages{}", of_all(boosts, "boosts"))));
        }
        if let Some((at, zone, boost)) = self.highest_boost.as_ref().filter(|_| boosts > 1) {
            told.push((*at, format!("the highest boost: {boost} pages, zone {zone}")));
        }
        if let Some((at, what)) = &self.first_eviction {
            told.push((*at, format!("{what} is evicted{}", of_all(self.evictions, "pages"))));
        }
        if let Some((at, what)) = &self.first_refault {
            told.push((*at, format!("{what} comes back{}", of_all(self.refaults, "pages"))));
        }
        if let Some((at, cgroup)) = &self.first_override {
            told.push((
                *at,
                format!("`memory.low` of `{cgroup}` is overridden{}", of_all(self.overrides, "times")),
            ));
        }
        told.extend(
            self.kills.iter().map(|(at, whom)| (*at, format!("the OOM killer takes a task of {whom}"))),
        );
        told.sort_by_key(|(at, _)| *at); // stable
        told
    }

    pub(super) fn section(&self) -> Section {
        let mut table = Table::new().amounts(["at"]).texts(["turning point"]);
        for (at, what) in self.told() {
            table.push(row![Cell::Time(at as f64), what]);
        }
        Section::new("what happened when").with(table)
    }

    pub(super) fn json(&self) -> Value {
        let told = self.told();
        let moments = told.iter().map(|(at, what)| json!({ "seconds": *at as f64 / 1e9, "what": what }));
        let runs = |runs: &Runs| json!({ "count": runs.count, "seconds": runs.total_ns as f64 / 1e9, "pages": runs.pages });
        let kswapd: BTreeMap<String, Value> =
            self.kswapd().iter().map(|(node, of)| (format!("kswapd{node}"), runs(of))).collect();
        let limits: BTreeMap<&String, Value> =
            self.limits.iter().map(|(path, of)| (path, runs(of))).collect();
        json!({
            "turning_points": moments.collect::<Vec<_>>(),
            "kswapd": kswapd,
            "direct_reclaim": runs(&self.direct),
            "limit_reclaim": limits,
            "boosts": self.boosts,
        })
    }
}
