//! What an explanation takes from the events of a run, chunk by chunk, in memory that does not grow with them.
//!
//! [`Digest::take`] is called with each chunk in order; what the parts have gathered is asked for afterwards.
//! Only for the pages of one question ([`Question`]) are events kept. Neighbours: `evictions.rs` (who evicted
//! whom), `story.rs` (files and pages), `moments.rs` (when what began, and how long it went on).

use std::collections::BTreeMap;

use recording::{Chunk, Event, NameId, Names};

use super::evictions::Evictions;
use super::kind::Kind;
use super::moments::Moments;
use super::story::{Question, Stories};

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
    /// Of each event, at [`NameId::index`] of its name.
    kinds: Vec<Option<Kind>>,
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
            kinds: Vec::new(),
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
            let kind = self.kind(names, event.event);
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

    fn kind(&mut self, names: &Names, event: NameId) -> Kind {
        let index = event.index();
        if index >= self.kinds.len() {
            self.kinds.resize(index + 1, None);
        }
        *self.kinds[index].get_or_insert_with(|| Kind::of(names.text(event)))
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
