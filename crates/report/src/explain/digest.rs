//! What an explanation takes from the events of a run, chunk by chunk, in memory that does not grow with them.
//!
//! [`Digest::take`] is called with each chunk in order; what the parts have gathered is asked for afterwards.
//! Only for the pages of one question ([`Question`]) are events kept. Neighbours: `evictions.rs` (who evicted
//! whom), `story.rs` (files and pages), `moments.rs` (when what began, and how long it went on).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use recording::events::ANONYMOUS;
use recording::{Chunk, Event, NameId, Names};

use super::evictions::Evictions;
use super::moments::Moments;
use super::story::Stories;

/// The file or the pages of which everything is to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The file, by its path; without one nothing is asked.
    pub file: Option<String>,
    /// Its pages; all without.
    pub pages: Option<RangeInclusive<u64>>,
}

/// What kind of thing an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Added,
    Inserted,
    Accessed,
    Activated,
    Deactivated,
    Kept,
    Reclaimed,
    Refaulted,
    SwappedIn,
    Left,
    ShrunkInactive,
    KswapdWakes,
    KswapdSleeps,
    DirectReclaim,
    LimitReclaim,
    Boost,
    Protection,
    OomKill,
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "mm_filemap_add_to_page_cache" => Self::Added,
            "mm_lru_insertion" => Self::Inserted,
            "page_accessed" => Self::Accessed,
            "mm_lru_activate" => Self::Activated,
            "page_deactivated" => Self::Deactivated,
            "page_rotated" => Self::Kept,
            "page_reclaimed" => Self::Reclaimed,
            "page_refaulted" => Self::Refaulted,
            "page_swapped_in" => Self::SwappedIn,
            "mm_filemap_delete_from_page_cache" => Self::Left,
            "mm_vmscan_lru_shrink_inactive" => Self::ShrunkInactive,
            "mm_vmscan_kswapd_wake" => Self::KswapdWakes,
            "mm_vmscan_kswapd_sleep" => Self::KswapdSleeps,
            "mm_vmscan_direct_reclaim_end" => Self::DirectReclaim,
            "mm_vmscan_memcg_reclaim_end" => Self::LimitReclaim,
            "watermark_boost" => Self::Boost,
            "memcg_low" => Self::Protection,
            "oom_kill" => Self::OomKill,
            _ => Self::Other,
        }
    }

    /// How many of the kinds, the first ones, are steps in the life of a page.
    pub(super) const OF_A_PAGE: usize = Self::Left as usize + 1;

    /// Whether it is a step in the life of a page.
    pub(super) const fn is_of_a_page(self) -> bool {
        (self as usize) < Self::OF_A_PAGE
    }
}

/// Whether an event of pages is about anonymous memory, named or not.
pub(super) fn is_anonymous(names: &Names, event: &Event) -> bool {
    event.file.is_none_or(|file| names.text(file).starts_with(ANONYMOUS))
}

/// Names that outlive the chunk that they came with.
#[derive(Debug, Default)]
pub(super) struct Texts(BTreeMap<NameId, String>);

impl Texts {
    pub(super) fn keep(&mut self, names: &Names, ids: impl IntoIterator<Item = Option<NameId>>) {
        for id in ids.into_iter().flatten() {
            self.0.entry(id).or_insert_with(|| names.text(id).to_owned());
        }
    }

    /// The text; empty for none.
    pub(super) fn of(&self, id: Option<NameId>) -> &str {
        id.and_then(|id| self.0.get(&id)).map_or("", String::as_str)
    }
}

/// How often reclaim came to a cgroup and its protection decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Turns {
    /// It was passed by.
    pub(super) passed: u64,
    /// It was reclaimed even so.
    pub(super) overridden: u64,
}

/// What the events of a run say.
#[derive(Debug)]
pub struct Digest {
    kinds: BTreeMap<NameId, Kind>,
    /// How many events there were.
    count: u64,
    pub(super) stories: Stories,
    pub(super) moments: Moments,
    by_page: Evictions,
    by_batch: Evictions,
    turns: BTreeMap<String, Turns>,
}

impl Digest {
    /// Nothing yet, and to be asked `question`.
    pub fn new(question: Question) -> Self {
        Self {
            kinds: BTreeMap::new(),
            count: 0,
            stories: Stories::new(question),
            moments: Moments::default(),
            by_page: Evictions::default(),
            by_batch: Evictions::default(),
            turns: BTreeMap::new(),
        }
    }

    /// Takes the next chunk; `names` has all of its names, numbered as in those before.
    pub fn take(&mut self, names: &Names, chunk: &Chunk) {
        self.count += chunk.events.len() as u64;
        for event in &chunk.events {
            let kind = *self.kinds.entry(event.event).or_insert_with(|| Kind::of(names.text(event.event)));
            match kind {
                Kind::Other => {}
                Kind::ShrunkInactive => {
                    let freed = event.value.and_then(|freed| u64::try_from(freed).ok()).unwrap_or(0);
                    self.by_batch.evicted(names, event, freed);
                }
                Kind::Protection => self.turn(names, event),
                _ => {
                    self.by_page.take(names, kind, event);
                    self.moments.take(names, kind, event);
                    if kind.is_of_a_page() {
                        self.stories.take(names, kind, event);
                    }
                }
            }
        }
    }

    fn turn(&mut self, names: &Names, event: &Event) {
        let text = |id: Option<NameId>| id.map_or("", |id| names.text(id));
        let overridden = text(event.reason).contains("overridden");
        if overridden {
            self.moments.overridden(names, event);
        }
        let cgroup = text(event.cgroup);
        if !self.turns.contains_key(cgroup) {
            self.turns.insert(cgroup.to_owned(), Turns::default());
        }
        let turns = self.turns.get_mut(cgroup).expect("it is there now");
        turns.passed += u64::from(!overridden);
        turns.overridden += u64::from(overridden);
    }

    /// Whether there was no event at all.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many events there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the life of pages was recorded, not only what reclaim did.
    pub fn has_pages(&self) -> bool {
        !self.stories.is_empty()
    }

    /// Whether somebody asked for a file.
    pub(super) fn is_asked(&self) -> bool {
        self.stories.is_asked()
    }

    /// The files that events name, when one was asked for and is none of them.
    pub fn unknown_file(&self) -> Option<Vec<&str>> {
        self.stories.unknown_file()
    }

    /// Who evicted whom: page by page, or where that was not recorded, batch by batch.
    pub(super) fn evictions(&self) -> &Evictions {
        if self.by_page.is_empty() { &self.by_batch } else { &self.by_page }
    }

    pub(super) fn turns(&self, cgroup: &str) -> Option<Turns> {
        self.turns.get(cgroup).copied()
    }
}
