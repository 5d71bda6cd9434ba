//! Who evicted whom: pages of which cgroup went for whose sake.
//!
//! Theory of operation: an eviction serves whoever needs memory. A task that reclaims for itself evicts for its
//! own cgroup, at the limit of a cgroup or for the machine. kswapd has no need of its own: it works for those
//! whose pages come in. What it evicts is split by whose pages have come in since it went to sleep, or since
//! [`WINDOW`] evictions, so that old growth is not blamed for new eviction; rows and sums are exact, the split of
//! kswapd's part among columns is this rule's. A task's cgroup is the one that its page cache is charged to.
//!
//! Left out: whose growth let the slab shrinkers run.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Event, NameId, Names};
use serde_json::{Value, json};

use super::kind::{Kind, Texts, is_anonymous};
use super::words::for_whom;
use crate::document::{Cell, Section, Table, row};
use crate::views::waits::without_number;

/// kswapd's evictions that are split together, in pages.
const WINDOW: u64 = 1024;
/// Rows of the table of those who evicted.
const ROWS_MAX: usize = 12;

/// Whose need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    /// A task's own.
    Task(NameId),
    /// That of a cgroup whose pages came in while kswapd worked.
    Growth(NameId),
    /// Not known: kswapd, and nothing was seen to come in.
    Kswapd,
}

/// Pages that one reclaimer evicted, by priority.
#[derive(Debug, Default)]
struct By {
    tasks: BTreeSet<NameId>,
    pages: u64,
    priorities: BTreeMap<u8, u64>,
}

/// Evictions by victim and by whose sake.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    texts: Texts,
    /// The cgroup of each task.
    homes: BTreeMap<NameId, NameId>,
    /// Pages that came in, by cgroup, since kswapd's evictions were last split.
    came: BTreeMap<NameId, u64>,
    /// As `came` when they were last split: for evictions between which nothing came.
    came_before: BTreeMap<NameId, u64>,
    /// Evicted by kswapd and not yet split, by victim.
    pending: BTreeMap<NameId, u64>,
    /// Pages by victim, whose need, at whose limit.
    cells: BTreeMap<(NameId, Whose, Option<NameId>), u64>,
    refaulted: BTreeMap<NameId, u64>,
    by: BTreeMap<(String, Option<NameId>), By>,
}

impl Evictions {
    pub(super) fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    pub(super) fn take(&mut self, names: &Names, kind: Kind, event: &Event) {
        match (kind, event.cgroup) {
            (Kind::Added, Some(cgroup)) => {
                self.came(names, event, cgroup);
                if let Some(task) = event.task {
                    self.homes.insert(task, cgroup);
                }
            }
            // Anonymous memory enters no page cache.
            (Kind::Inserted, Some(cgroup)) if is_anonymous(names, event) => self.came(names, event, cgroup),
            (Kind::Reclaimed, _) => self.evicted(names, event, u64::from(event.pages)),
            (Kind::Refaulted, Some(cgroup)) => {
                *self.refaulted.entry(cgroup).or_default() += u64::from(event.pages);
            }
            (Kind::KswapdSleeps, _) => self.split(),
            _ => {}
        }
    }

    fn came(&mut self, names: &Names, event: &Event, cgroup: NameId) {
        self.texts.keep(names, [Some(cgroup)]);
        *self.came.entry(cgroup).or_default() += u64::from(event.pages);
    }

    /// `pages` of a cgroup went.
    pub(super) fn evicted(&mut self, names: &Names, event: &Event, pages: u64) {
        let (Some(victim), true) = (event.cgroup, pages > 0) else { return };
        self.texts.keep(names, [Some(victim), event.task, event.by_cgroup]);
        let limit = event.by_cgroup.filter(|&id| !names.text(id).is_empty());
        let task = event.task.map_or("nobody", |task| names.text(task));
        let by = self.by.entry((without_number(task), limit)).or_default();
        by.tasks.extend(event.task);
        by.pages += pages;
        if let Some(priority) = event.priority {
            *by.priorities.entry(priority).or_default() += pages;
        }
        match event.task {
            Some(task) if limit.is_some() || !names.text(task).starts_with("kswapd") => {
                *self.cells.entry((victim, Whose::Task(task), limit)).or_default() += pages;
            }
            _ => {
                *self.pending.entry(victim).or_default() += pages;
                if self.pending.values().sum::<u64>() >= WINDOW {
                    self.split();
                }
            }
        }
    }

    /// Splits what kswapd evicted by whose pages came in meanwhile.
    fn split(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        if !self.came.is_empty() {
            self.came_before = std::mem::take(&mut self.came);
        }
        for (victim, pages) in std::mem::take(&mut self.pending) {
            for (whose, part) in split(pages, &self.came_before) {
                *self.cells.entry((victim, whose, None)).or_default() += part;
            }
        }
    }

    /// Every cell as `(victim, column, pages)`, what is not split yet included.
    fn told(&self) -> BTreeMap<(&str, String), u64> {
        let mut cells = self.cells.clone();
        let came = if self.came.is_empty() { &self.came_before } else { &self.came };
        for (&victim, &pages) in &self.pending {
            for (whose, part) in split(pages, came) {
                *cells.entry((victim, whose, None)).or_default() += part;
            }
        }
        let mut told: BTreeMap<(&str, String), u64> = BTreeMap::new();
        for ((victim, whose, limit), pages) in cells {
            *told.entry((self.texts.of(Some(victim)), self.column(whose, limit))).or_default() += pages;
        }
        told
    }

    fn column(&self, whose: Whose, limit: Option<NameId>) -> String {
        let home = |task| self.homes.get(&task).map(|&cgroup| group_name(self.texts.of(Some(cgroup))));
        let whose = match whose {
            Whose::Growth(cgroup) => group_name(self.texts.of(Some(cgroup))),
            Whose::Task(task) => home(task).unwrap_or_else(|| without_number(self.texts.of(Some(task)))),
            Whose::Kswapd => "nobody known".to_owned(),
        };
        match limit {
            Some(limit) => format!("{whose}, at the limit of {}", self.texts.of(Some(limit))),
            None => whose,
        }
    }

    /// Pages of `cgroup` that went: in all, and at whose limits.
    pub(super) fn lost(&self, cgroup: &str) -> (u64, BTreeMap<&str, u64>) {
        let (mut all, mut limits) = (0, BTreeMap::new());
        let of = self.cells.iter().filter(|((victim, ..), _)| self.texts.of(Some(*victim)) == cgroup);
        for ((_, _, limit), pages) in of {
            all += pages;
            if limit.is_some() {
                *limits.entry(self.texts.of(*limit)).or_default() += pages;
            }
        }
        let pending = self.pending.iter().filter(|(victim, _)| self.texts.of(Some(**victim)) == cgroup);
        (all + pending.map(|(_, pages)| pages).sum::<u64>(), limits)
    }

    /// The matrix and those who evicted; empty where nobody did.
    pub(super) fn section(&self, all: bool) -> Section {
        let told = self.told();
        let columns: BTreeSet<&String> = told.keys().map(|(_, column)| column).collect();
        let victims: BTreeSet<&str> = told.keys().map(|(victim, _)| *victim).collect();
        let mut matrix = Table::new()
            .texts(["pages of"])
            .numbers(columns.iter().map(|column| format!("for {column}")))
            .numbers(["in all", "came back"]);
        for victim in victims {
            let cell = |column: &&String| told.get(&(victim, (*column).clone())).copied().unwrap_or(0);
            let sum: u64 = columns.iter().map(cell).sum();
            let figures = columns.iter().map(cell).map(Cell::from);
            let sums = row![sum, self.refaulted_of(victim)];
            matrix.push(row![group_name(victim)].into_iter().chain(figures).chain(sums));
        }
        let rule = "kswapd evicts for those whose pages came in meanwhile; its part is split by that";
        Section::new("who evicted whom, in pages").with(matrix).paragraph(rule).with(self.reclaimers(all))
    }

    fn refaulted_of(&self, victim: &str) -> u64 {
        let of = self.refaulted.iter().filter(|(cgroup, _)| self.texts.of(Some(**cgroup)) == victim);
        of.map(|(_, pages)| pages).sum()
    }

    fn reclaimers(&self, all: bool) -> Table {
        let mut table = Table::new().texts(["evicted by", "for"]).numbers(["pages"]).texts(["at priorities"]);
        let mut rows: Vec<_> = self.by.iter().collect();
        rows.sort_by_key(|(_, by)| std::cmp::Reverse(by.pages)); // stable: by name where equal
        for ((task, limit), by) in rows.into_iter().take(if all { usize::MAX } else { ROWS_MAX }) {
            let who = match by.tasks.len() {
                0 | 1 => self.texts.of(by.tasks.first().copied()).to_owned(),
                tasks => format!("{task} ({tasks} tasks)"),
            };
            table.push(row![who, for_whom(self.texts.of(*limit)), by.pages, priorities(&by.priorities)]);
        }
        table
    }

    /// For programs: the cells, and those who evicted.
    pub(super) fn json(&self) -> Value {
        let cell = |((victim, column), pages): (&(&str, String), &u64)| json!({ "of": victim, "for": column, "pages": pages });
        let by = |((task, limit), by): (&(String, Option<NameId>), &By)| {
            json!({
                "task": task,
                "tasks": by.tasks.len(),
                "limit_of": limit.map(|limit| self.texts.of(Some(limit))),
                "pages": by.pages,
                "by_priority": by.priorities,
            })
        };
        let came_back: BTreeMap<&str, u64> =
            self.refaulted.iter().map(|(&cgroup, &pages)| (self.texts.of(Some(cgroup)), pages)).collect();
        json!({
            "cells": self.told().iter().map(cell).collect::<Vec<_>>(),
            "came_back": came_back,
            "by": self.by.iter().map(by).collect::<Vec<_>>(),
        })
    }
}

/// `pages` in the proportion of `came`: whole pages, the last one gets the rest.
fn split(pages: u64, came: &BTreeMap<NameId, u64>) -> Vec<(Whose, u64)> {
    let all: u64 = came.values().sum();
    if all == 0 {
        return vec![(Whose::Kswapd, pages)];
    }
    let mut until = 0;
    let mut given = 0;
    let part = |(&cgroup, &came): (&NameId, &u64)| {
        until += came;
        let upto = u128::from(pages) * u128::from(until) / u128::from(all);
        let upto = u64::try_from(upto).expect("a part of the pages");
        let part = upto - given;
        given = upto;
        (Whose::Growth(cgroup), part)
    };
    came.iter().map(part).filter(|&(_, part)| part > 0).collect()
}

/// The root cgroup has no path.
fn group_name(path: &str) -> String {
    if path.is_empty() { "the root".to_owned() } else { path.to_owned() }
}

/// `12`, or `12 to 9`: from the gentlest on.
fn priorities(priorities: &BTreeMap<u8, u64>) -> String {
    match (priorities.keys().next_back(), priorities.keys().next()) {
        (Some(gentlest), Some(hardest)) if gentlest != hardest => format!("{gentlest} to {hardest}"),
        (Some(only), _) => only.to_string(),
        _ => "-".to_owned(),
    }
}
