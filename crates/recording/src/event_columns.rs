//! Events to the columns of a file and back.
//!
//! Columns are the fields of [`Event`], texts instead of their numbers, null for what does not apply. An
//! event is taken apart when it comes, while the processor has it at hand: to go through all events of a file
//! for each of its columns takes three times as long. Most columns change seldom from one event to the next, so
//! they are gathered as runs of equal cells.
//!
//! Next: `event_files.rs`, which says how many events make a file; `packed.rs`, which packs the runs.

use std::collections::BTreeMap;

use parquet::data_type::ByteArray;

use crate::packed::{Chosen, Dictionary, Run};
use crate::table::{Cells, Column, spread};
use crate::{Event, NameId, Names};

/// Pages of the largest file that Linux has: 2^63 bytes.
const FILE_PAGES_MAX: u64 = 1 << 51;

/// The rows of a file that is not complete yet, by their columns.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    time_ns: Vec<u64>,
    duration_ns: Vec<u64>,
    event: Choices,
    task: Choices,
    cgroup: Choices,
    by_cgroup: Choices,
    file: Choices,
    reason: Choices,
    page: Sparse,
    pages: Vec<i32>,
    node: Choices,
    priority: Choices,
    order: Choices,
    value: Sparse,
    /// What the last rows say alike, and how many of them are not in its columns yet.
    alike: Option<Alike>,
    alike_rows: u32,
}

/// What mostly stays from one event to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Alike {
    event: NameId,
    task: Option<NameId>,
    cgroup: Option<NameId>,
    by_cgroup: Option<NameId>,
    reason: Option<NameId>,
    node: Option<u8>,
    priority: Option<u8>,
    order: Option<u8>,
}

impl Alike {
    #[inline]
    const fn of(event: &Event) -> Self {
        let &Event { event: name, task, cgroup, by_cgroup, reason, node, priority, order, .. } = event;
        Self { event: name, task, cgroup, by_cgroup, reason, node, priority, order }
    }
}

impl Gathered {
    pub(crate) const fn rows(&self) -> usize {
        self.time_ns.len()
    }

    pub(crate) fn take(&mut self, events: &[Event]) {
        for event in events {
            self.time_ns.push(event.time_ns);
            self.duration_ns.push(event.duration_ns);
            self.file.push(event.file.map(|id| id.index() as u32));
            self.page.push(event.page.map(u64::cast_signed));
            self.pages.push(event.pages.cast_signed());
            self.value.push(event.value);
            let alike = Some(Alike::of(event));
            if self.alike != alike {
                self.settle();
                self.alike = alike;
            }
            self.alike_rows += 1;
        }
    }

    /// Brings what the last rows say alike to its columns.
    fn settle(&mut self) {
        let rows = std::mem::take(&mut self.alike_rows);
        let Some(alike) = self.alike.filter(|_| rows > 0) else { return };
        let place = |id: Option<NameId>| id.map(|id| id.index() as u32);
        let small = |number: Option<u8>| number.map(u32::from);
        self.event.push_rows(place(Some(alike.event)), rows);
        self.task.push_rows(place(alike.task), rows);
        self.cgroup.push_rows(place(alike.cgroup), rows);
        self.by_cgroup.push_rows(place(alike.by_cgroup), rows);
        self.reason.push_rows(place(alike.reason), rows);
        self.node.push_rows(small(alike.node), rows);
        self.priority.push_rows(small(alike.priority), rows);
        self.order.push_rows(small(alike.order), rows);
    }

    /// The columns; no row is left. `texts`: all names by their numbers.
    pub(crate) fn columns(&mut self, texts: &[ByteArray]) -> Vec<Column> {
        self.settle();
        let text = |cells: &[u32]| {
            Dictionary::Text(cells.iter().map(|&cell| texts[cell as usize].clone()).collect())
        };
        let small = |cells: &[u32]| Dictionary::U8(cells.iter().map(|&cell| cell as i32).collect());
        let chosen = |name, cells| Column::new(name, Cells::Chosen(cells));
        let Sparse { cells: page, present: has_page } = std::mem::take(&mut self.page);
        let Sparse { cells: value, present: has_value } = std::mem::take(&mut self.value);
        vec![
            Column::of_u64("time_ns", self.time_ns.drain(..)),
            Column::of_u64("duration_ns", self.duration_ns.drain(..)),
            chosen("event", self.event.chosen(text, false)),
            chosen("task", self.task.chosen(text, true)),
            chosen("cgroup", self.cgroup.chosen(text, true)),
            chosen("by_cgroup", self.by_cgroup.chosen(text, true)),
            chosen("file", self.file.chosen(text, true)),
            chosen("reason", self.reason.chosen(text, true)),
            Column {
                present: Some(has_page),
                ..Column::of_u64("page", page.into_iter().map(i64::cast_unsigned))
            },
            Column::new("pages", Cells::U32(std::mem::take(&mut self.pages))),
            chosen("node", self.node.chosen(small, true)),
            chosen("priority", self.priority.chosen(small, true)),
            chosen("order", self.order.chosen(small, true)),
            Column::with_gaps("value", Cells::I64(value), has_value),
        ]
    }
}

/// Large numbers, of which some rows have none.
#[derive(Debug, Default)]
struct Sparse {
    cells: Vec<i64>,
    present: Vec<i16>,
}

impl Sparse {
    fn push(&mut self, cell: Option<i64>) {
        self.present.push(cell.is_some().into());
        self.cells.extend(cell);
    }
}

/// A column of names or small numbers: places in a dictionary of what came up, in the order in which it did.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// By cell that came up in any file: its place in the dictionary of this one and 1, or 0.
    places: Vec<u32>,
    dictionary: Vec<u32>,
    runs: Vec<Run>,
    /// The run that is not over, which has no rows before the first one.
    last: Option<u32>,
    rows: u32,
}

impl Choices {
    #[inline]
    pub(crate) fn push(&mut self, cell: Option<u32>) {
        self.push_rows(cell, 1);
    }

    #[inline]
    fn push_rows(&mut self, cell: Option<u32>, rows: u32) {
        if cell != self.last {
            self.end_run();
            self.last = cell;
        }
        self.rows += rows;
    }

    fn end_run(&mut self) {
        if self.rows > 0 {
            let place = self.last.map(|cell| self.place(cell as usize));
            self.runs.push(Run { place, rows: self.rows });
            self.rows = 0;
        }
    }

    fn place(&mut self, cell: usize) -> u32 {
        if self.places.len() <= cell {
            self.places.resize(cell + 1, 0);
        }
        let place = &mut self.places[cell];
        if *place == 0 {
            self.dictionary.push(cell as u32);
            *place = self.dictionary.len() as u32;
        }
        *place - 1
    }

    /// What was gathered; nothing of it is left. `dictionary`: of these cells.
    pub(crate) fn chosen(&mut self, dictionary: impl FnOnce(&[u32]) -> Dictionary, has_gaps: bool) -> Chosen {
        self.end_run();
        let chosen = dictionary(&self.dictionary);
        for cell in self.dictionary.drain(..) {
            self.places[cell as usize] = 0;
        }
        Chosen { dictionary: chosen, runs: std::mem::take(&mut self.runs), has_gaps }
    }
}

/// The rows; an error is the column that cannot be read.
pub(crate) fn events(columns: Vec<Column>, names: &mut Names) -> Result<Vec<Event>, &'static str> {
    let mut columns: BTreeMap<String, Column> =
        columns.into_iter().map(|column| (column.name.clone(), column)).collect();
    let mut column = |name: &'static str| columns.remove(name).ok_or(name);
    let whole = |column: Column, name| column.into_u64().ok_or(name);
    let times = whole(column("time_ns")?, "time_ns")?;
    let durations = whole(column("duration_ns")?, "duration_ns")?;
    let Cells::U32(pages) = column("pages")?.cells else { return Err("pages") };
    let event = ids(column("event")?, names).ok_or("event")?;
    let mut text = |name| ids(column(name)?, names).ok_or(name);
    let (task, cgroup, by_cgroup) = (text("task")?, text("cgroup")?, text("by_cgroup")?);
    let (file, reason) = (text("file")?, text("reason")?);
    let small = |column: Column, name| match column {
        Column { cells: Cells::U8(cells), present, .. } => {
            spread(cells.into_iter().map(|cell| cell as u8), present).ok_or(name)
        }
        _ => Err(name),
    };
    let wide = |column: Column, name| match column {
        Column { cells: Cells::I64(cells) | Cells::U64(cells), present, .. } => {
            spread(cells.into_iter(), present).ok_or(name)
        }
        _ => Err(name),
    };
    let (node, priority) = (small(column("node")?, "node")?, small(column("priority")?, "priority")?);
    let order = small(column("order")?, "order")?;
    let (page, value) = (wide(column("page")?, "page")?, wide(column("value")?, "value")?);
    let is_of_a_file = |(page, pages): (&Option<i64>, &i32)| {
        let first = page.unwrap_or(0).cast_unsigned();
        first.checked_add(pages.cast_unsigned().into()).is_some_and(|end| end <= FILE_PAGES_MAX)
    };
    if !page.iter().zip(&pages).all(is_of_a_file) {
        return Err("page");
    }
    let row = |row: usize| {
        Some(Event {
            time_ns: times[row],
            duration_ns: durations[row],
            event: event[row]?,
            task: task[row],
            cgroup: cgroup[row],
            by_cgroup: by_cgroup[row],
            file: file[row],
            reason: reason[row],
            page: page[row].map(i64::cast_unsigned),
            pages: pages[row].cast_unsigned(),
            node: node[row],
            priority: priority[row],
            order: order[row],
            value: value[row],
        })
    };
    (0..times.len()).map(|index| row(index).ok_or("event")).collect()
}

/// The numbers of a column's texts; `None` where it has no texts.
fn ids(column: Column, names: &mut Names) -> Option<Vec<Option<NameId>>> {
    let Cells::Text(cells) = column.cells else { return None };
    // Cells of one entry of the dictionary are one place in memory, so that each text is looked up once.
    let mut known: BTreeMap<(*const u8, usize), NameId> = BTreeMap::new();
    let mut id = |cell: &ByteArray| {
        let key = (cell.data().as_ptr(), cell.len());
        if let Some(&id) = known.get(&key) {
            return Some(id);
        }
        let id = names.intern(cell.as_utf8().ok()?);
        known.insert(key, id);
        Some(id)
    };
    let ids = cells.iter().map(&mut id).collect::<Option<Vec<NameId>>>()?;
    spread(ids.into_iter(), column.present)
}
