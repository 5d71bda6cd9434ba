//! What happened, event by event, under the names of the kernel's tracepoints.
//!
//! Events are many, so a recording does not hold them in memory: they lie beside it in chunks, each
//! of which can be read by itself. Whoever needs them (`explain`, `trace`, a heatmap of the report) reads
//! chunk after chunk. A name is written once and then meant by its number ([`Names`]).
//!
//! Left out: accesses that reclaim does not see. Times are the run's own clock.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// What the name of anonymous memory begins with, where an event has that in place of a file: `anon:TASK/N`.
pub const ANONYMOUS: &str = "anon:";

/// A text that events share: a task, a tracepoint, a cgroup, a file, a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(NonZeroU32);

impl NameId {
    /// The place among [`Names::texts`], from 0.
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// All texts of a run's events, numbered in the order in which they came up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    texts: Vec<String>,
    numbers: BTreeMap<String, NameId>,
}

impl Names {
    /// The number of `text`, a new one if it has none yet.
    ///
    /// # Panics
    /// After four billion texts.
    pub fn intern(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.numbers.get(text) {
            return id;
        }
        self.texts.push(text.to_owned());
        let number = u32::try_from(self.texts.len()).ok().and_then(NonZeroU32::new);
        let id = NameId(number.expect("four billion names"));
        self.numbers.insert(text.to_owned(), id);
        id
    }

    /// The number of `text`, if an event has it.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.numbers.get(text).copied()
    }

    /// The text that `id` means.
    ///
    /// # Panics
    /// When `id` is of other names.
    pub fn text(&self, id: NameId) -> &str {
        &self.texts[id.index()]
    }

    /// All texts, in the order of their numbers.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }
}

/// One event. What does not apply is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When it happened; when it began, if it lasted.
    pub time_ns: u64,
    /// How long it lasted; 0 for what has no length.
    pub duration_ns: u64,
    /// The tracepoint, or a name of our own where the kernel has none.
    pub event: NameId,
    /// Who did it, such as `kswapd0`; `None` for what no task did, such as an interrupt.
    pub task: Option<NameId>,
    /// Whose pages: the cgroup that they are charged to; empty path for the root.
    pub cgroup: Option<NameId>,
    /// For whose sake: the cgroup whose limit or need it served; the root for global reclaim.
    pub by_cgroup: Option<NameId>,
    /// The file, by its path.
    pub file: Option<NameId>,
    /// Why, in the words of the kernel's documentation.
    pub reason: Option<NameId>,
    /// First page of the file that is meant.
    pub page: Option<u64>,
    /// How many pages.
    pub pages: u32,
    /// NUMA node.
    pub node: Option<u8>,
    /// Priority of the scan, 12 to 0.
    pub priority: Option<u8>,
    /// Order of the request or of the folio.
    pub order: Option<u8>,
    /// What else the tracepoint counts, such as `nr_reclaimed`, a refault's distance in pages, or bytes of a request.
    pub value: Option<i64>,
}

impl Event {
    /// Nothing of it is known but what happened, and when.
    pub const fn new(time_ns: u64, event: NameId) -> Self {
        Self {
            time_ns,
            duration_ns: 0,
            event,
            task: None,
            cgroup: None,
            by_cgroup: None,
            file: None,
            reason: None,
            page: None,
            pages: 0,
            node: None,
            priority: None,
            order: None,
            value: None,
        }
    }
}

/// Consecutive events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Events by the time at which they were recorded, which for what lasted is its end.
    pub events: Vec<Event>,
}
