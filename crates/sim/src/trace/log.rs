//! Events of a run for whoever wants them: what the kernel tells ([`TraceEvent`]) with time and task, and
//! waits and requests, which the machine knows.
//!
//! Rows are handed out in chunks of [`CHUNK_ROWS`] by a callback, so that a run needs no memory for its past.
//! A row is small: tasks, cgroups and files are numbers, whose names [`EventNames`] has. Files have a
//! number for each path; which mapping a path has at the moment is told by a row of its own
//! ([`What::HomeIs`]), as mappings are used again; so are the names of anonymous memory.
//!
//! What becomes of many pages at one instant is one row, where they lie one behind the other: a readahead
//! window, a chunk of reclaim. What becomes of one page is told in the order in which it did; of different
//! pages at one instant the order may be another.
//!
//! The time of a row is that of the machine's total order, so that rows are in order: CPU time that a task has
//! charged and that has not passed is told apart ([`EventRow::owed`]). A run with and without rows is the same.
//!
//! Left out: files that no program opened, such as directories, which have no pages. Next:
//! [`crate::run::run_watched`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use kernel::machine::{IoKind, IoRequest, TaskId, WaitReason};
use mm::MemcgId;
use mm::base::event::{Home, PageId, TraceEvent};
use mm::base::ids::AnonId;
use units::{Nanos, NodeId, Order};

use crate::accounts::sections::Within;
use crate::accounts::waits::{Ended, Finished};

/// Rows of a chunk at most: few enough that they are still in a processor's cache when they are handed out.
pub const CHUNK_ROWS: usize = 1 << 9;

/// Rows that a further page may belong to: what is told of a page in turn are few kinds of events.
const ROWS_LOOKED_AT: usize = 4;

/// An event with its time and task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    /// When it happened; of what lasted, when it ended.
    pub at: Nanos,
    /// Who did it; task 0 is no task: an interrupt, or boot.
    pub task: TaskId,
    /// CPU time in nanoseconds that the task has charged and that has not passed: by so much later it thinks it is.
    pub owed: u32,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The kernel hit a tracepoint.
    Kernel(TraceEvent),
    /// The same became of so many folios of one size, one behind the other in their file, at one instant.
    Pages {
        /// What, of the first of them.
        event: TraceEvent,
        /// How many.
        folios: u32,
    },
    /// No event: from now on pages of this home are those of the file with this number, or of the anonymous memory
    /// that is called so.
    HomeIs {
        /// The home.
        home: Home,
        /// The name, for [`EventNames::file`]; none: it has none yet.
        file: Option<u32>,
    },
    /// The task's wait is over.
    Wait {
        /// What for.
        reason: WaitReason,
        /// In the middle of what.
        within: Within,
        /// How long.
        spent: Nanos,
        /// By its timeout.
        timed_out: bool,
        /// Nothing could have ended it before.
        futile: bool,
    },
    /// The task sent a request to a device.
    IoIssued {
        /// Which one.
        device: u16,
        /// Its direction.
        kind: IoKind,
        /// Byte on the device.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// A request, or several that were merged, is complete.
    IoDone {
        /// Of which device.
        device: u16,
        /// Its direction.
        kind: IoKind,
        /// Byte on the device.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Time from when the first part of it was sent.
        spent: Nanos,
    },
}

impl What {
    pub(crate) fn wait(wait: Finished) -> Self {
        let timed_out = wait.ended == Ended::TimedOut;
        let (spent, futile) = (Nanos(wait.spent), wait.is_futile());
        Self::Wait { reason: wait.reason, within: wait.within, spent, timed_out, futile }
    }
}

/// Names of what rows have numbers for.
#[derive(Debug, Clone, Default)]
pub struct EventNames {
    tasks: Vec<String>,
    cgroups: BTreeMap<MemcgId, String>,
    files: Vec<String>,
}

impl EventNames {
    /// The name of a task.
    ///
    /// # Panics
    /// When it was never started.
    pub fn task(&self, task: TaskId) -> &str {
        &self.tasks[task.0 as usize]
    }

    /// The path of a cgroup; empty for the root.
    pub fn cgroup(&self, memcg: MemcgId) -> &str {
        self.cgroups.get(&memcg).map_or("", String::as_str)
    }

    /// The path of a file.
    ///
    /// # Panics
    /// When no row has named it.
    pub fn file(&self, file: u32) -> &str {
        &self.files[file as usize]
    }
}

/// Takes chunks of rows.
pub type Sink = Box<dyn FnMut(&[EventRow], &EventNames)>;

/// The rows of a run that were not handed out.
pub(crate) struct EventLog(RefCell<Log>);

struct Log {
    is_open: bool,
    rows: Vec<EventRow>,
    recent: Recent,
    names: EventNames,
    numbers: BTreeMap<String, u32>,
    /// By mapping: the file that was last told; and by anonymous mapping its name.
    told: [Vec<u32>; 2],
    sink: Sink,
}

/// What the names of anonymous memory begin with.
pub const ANONYMOUS: &str = "anon:";
const UNTOLD: u32 = u32::MAX;

fn owed(debt: u64) -> u32 {
    u32::try_from(debt).unwrap_or(u32::MAX)
}

impl EventLog {
    pub(crate) fn new(sink: Sink) -> Rc<Self> {
        let names = EventNames { tasks: vec!["swapper".to_owned()], ..EventNames::default() };
        Rc::new(Self(RefCell::new(Log {
            is_open: true,
            rows: Vec::with_capacity(CHUNK_ROWS),
            recent: Recent { of: (Nanos(0), TaskId(0)), spans: [Span::NONE; ROWS_LOOKED_AT] },
            names,
            numbers: BTreeMap::new(),
            told: [Vec::new(), Vec::new()],
            sink,
        })))
    }

    #[inline]
    pub(crate) fn push(&self, at: u64, task: u32, what: What) {
        self.push_owing(at, task, 0, what);
    }

    #[inline]
    pub(crate) fn push_owing(&self, at: u64, task: u32, debt: u64, what: What) {
        let row = EventRow { at: Nanos(at), task: TaskId(task), owed: owed(debt), what };
        self.0.borrow_mut().push(row, Span::NONE);
    }

    #[inline]
    pub(crate) fn push_page(&self, at: u64, task: u32, event: &TraceEvent, page: PageId) {
        let log = &mut *self.0.borrow_mut();
        let (at, task) = (Nanos(at), TaskId(task));
        if !log.joins(at, task, event, page) {
            let what = What::Pages { event: *event, folios: 1 };
            log.push(EventRow { at, task, owed: 0, what }, Span::of(page));
        }
    }

    /// Anonymous memory is mapped, and is not called as what had its number before.
    pub(crate) fn forget(&self, at: u64, task: u32, anon: AnonId) {
        let log = &mut *self.0.borrow_mut();
        let told = log.told[1].get_mut(anon.0 as usize);
        if told.is_some_and(|told| std::mem::replace(told, UNTOLD) != UNTOLD) {
            let what = What::HomeIs { home: Home::Anon(anon), file: None };
            log.push(EventRow { at: Nanos(at), task: TaskId(task), owed: 0, what }, Span::NONE);
        }
    }

    /// From now on pages of `home`, whose number is `number`, are those of `path`.
    pub(crate) fn name_home(&self, at: u64, task: u32, (home, number): (Home, u32), path: &str) {
        let log = &mut *self.0.borrow_mut();
        let file = match log.numbers.get(path) {
            Some(&file) => file,
            None => {
                let file = u32::try_from(log.names.files.len()).expect("fewer files than 2^32");
                log.names.files.push(path.to_owned());
                log.numbers.insert(path.to_owned(), file);
                file
            }
        };
        let index = number as usize;
        let told = &mut log.told[usize::from(matches!(home, Home::Anon(_)))];
        if told.len() <= index {
            told.resize(index + 1, UNTOLD);
        }
        if std::mem::replace(&mut told[index], file) != file {
            let what = What::HomeIs { home, file: Some(file) };
            log.push(EventRow { at: Nanos(at), task: TaskId(task), owed: 0, what }, Span::NONE);
        }
    }

    /// A request is sent.
    pub(crate) fn request(&self, now: u64, task: u32, request: IoRequest) {
        let IoRequest { device, kind, offset, len, .. } = request;
        self.push(now, task, What::IoIssued { device, kind, offset, len: len.0 });
    }

    /// The next task has this name.
    pub(crate) fn name_task(&self, name: &str) {
        self.0.borrow_mut().names.tasks.push(name.to_owned());
    }

    /// A cgroup is created.
    pub(crate) fn name_cgroup(&self, memcg: MemcgId, path: &str) {
        self.0.borrow_mut().names.cgroups.insert(memcg, path.to_owned());
    }

    /// Nothing is noted from now on; hands out what is left.
    pub(crate) fn close(&self) {
        let log = &mut *self.0.borrow_mut();
        log.hand_out(0);
        log.recent.spans = [Span::NONE; ROWS_LOOKED_AT];
        log.is_open = false;
    }
}

/// Which pages the last rows are about: what a further page is held against without a look at the rows.
struct Recent {
    /// Of whom the last row is; those before it count only as far as they are of the same.
    of: (Nanos, TaskId),
    /// The last row first.
    spans: [Span; ROWS_LOOKED_AT],
}

/// Pages of a row, one behind the other.
#[derive(Clone, Copy)]
struct Span {
    /// The number of their mapping and 1, with a bit of its own for anonymous memory, or [`Span::NOBODYS`].
    mapping: u32,
    first: u32,
    behind: u32,
    memcg: MemcgId,
    node: NodeId,
    order: Order,
}

impl Span {
    const NOBODYS: u32 = u32::MAX;
    const ANON: u32 = 1 << 31;
    /// Of a row that is about no page.
    const NONE: Self =
        Self { mapping: 0, first: 0, behind: 0, memcg: MemcgId::ROOT, node: NodeId(0), order: Order(0) };

    #[inline]
    fn of(page: PageId) -> Self {
        let PageId { home, index, memcg, node, order } = page;
        let mapping = match home {
            Home::File(mapping) => mapping.0 + 1,
            Home::Anon(anon) => (anon.0 + 1) | Self::ANON,
            Home::Nobody => Self::NOBODYS,
        };
        Self { mapping, first: index, behind: index + order.pages(), memcg, node, order }
    }
}

impl Log {
    #[inline]
    fn push(&mut self, row: EventRow, span: Span) {
        if self.rows.len() == CHUNK_ROWS {
            self.hand_out(ROWS_LOOKED_AT); // All others are as they stay.
        }
        if self.is_open {
            if self.recent.of == (row.at, row.task) {
                self.recent.spans.copy_within(..ROWS_LOOKED_AT - 1, 1);
            } else {
                self.recent = Recent { of: (row.at, row.task), spans: [Span::NONE; ROWS_LOOKED_AT] };
            }
            self.recent.spans[0] = span;
            self.rows.push(row);
        }
    }

    /// Adds a page to the row of those before it, if that is among the last ones of this instant, and no row behind
    /// it is about this very page.
    #[inline]
    fn joins(&mut self, now: Nanos, by: TaskId, event: &TraceEvent, page: PageId) -> bool {
        if self.recent.of != (now, by) {
            return false;
        }
        let it = Span::of(page);
        for (back, span) in self.recent.spans.iter_mut().enumerate() {
            if span.mapping != it.mapping {
                continue;
            }
            // Nobody tells pages of nobody apart.
            let is_next = span.behind == it.first || it.mapping == Span::NOBODYS;
            let is_alike = (span.memcg, span.node, span.order) == (it.memcg, it.node, it.order);
            if is_next && is_alike {
                let last = self.rows.len() - 1;
                if let What::Pages { event: told, folios } = &mut self.rows[last - back].what
                    && told.says_what(event)
                {
                    *folios += 1;
                    span.behind += it.order.pages();
                    return true;
                }
            }
            if (span.first..span.behind).contains(&it.first) {
                return false;
            }
        }
        false
    }

    /// Hands out all but the last `kept` rows.
    #[cold]
    fn hand_out(&mut self, kept: usize) {
        let end = self.rows.len().saturating_sub(kept);
        if end > 0 {
            (self.sink)(&self.rows[..end], &self.names);
            self.rows.drain(..end);
        }
    }
}
