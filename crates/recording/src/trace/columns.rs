//! Rows of a trace to columns and back.

use std::collections::BTreeMap;

use parquet::data_type::ByteArray;
use trace::{ActsOn, NONE, Operation, OperationKind, Trace, TraceFile, TraceMapping, TraceTask};

use crate::event_columns::Choices;
use crate::packed::Dictionary;
use crate::table::{Cells, Column, spread};

/// Rows of tables, as `operation` calls them; after them come the kinds of operations.
const TABLES: [&str; 3] = ["task", "file", "mapping"];

fn spelt(kind: u32) -> &'static str {
    let kind = kind as usize;
    TABLES.get(kind).copied().unwrap_or_else(|| OperationKind::ALL[kind - TABLES.len()].name())
}

/// How much of the tables is written.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tasks: Vec<TraceTask>,
    files: usize,
    mappings: usize,
}

/// A row; what is `None` has no cell.
#[derive(Debug, Default)]
struct Row {
    at_ns: u64,
    task: Option<u32>,
    kind: u32,
    file: Option<u32>,
    mapping: Option<u32>,
    other_task: Option<u32>,
    offset: u64,
    len: u64,
    think_ns: u64,
    took_ns: u64,
    detail: u32,
}

fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

impl Rows {
    /// Whether there are rows of tables that are not written.
    pub(super) fn has_news(&self, trace: &Trace) -> bool {
        self.files < trace.files.len() || self.mappings < trace.mappings.len() || self.tasks != trace.tasks
    }

    pub(super) fn wrote(&mut self, trace: &Trace) {
        self.tasks.clone_from(&trace.tasks);
        self.files = trace.files.len();
        self.mappings = trace.mappings.len();
    }

    /// Rows of tables that are not written.
    fn introductions(&self, trace: &Trace, at_ns: u64) -> Vec<Row> {
        let tasks =
            trace.tasks.iter().enumerate().filter(|(number, task)| self.tasks.get(*number) != Some(task));
        let tasks = tasks.map(|(number, task)| Row {
            at_ns,
            task: Some(number as u32),
            kind: 0,
            other_task: some(task.parent),
            detail: task.tid,
            ..Row::default()
        });
        let files = trace.files.iter().enumerate().skip(self.files).map(|(number, file)| Row {
            at_ns,
            kind: 1,
            file: Some(number as u32),
            len: file.size_bytes,
            detail: file.in_memory.into(),
            ..Row::default()
        });
        let mappings = trace.mappings.iter().enumerate().skip(self.mappings).map(|(number, mapping)| Row {
            at_ns,
            kind: 2,
            file: some(mapping.file),
            mapping: Some(number as u32),
            offset: mapping.file_offset,
            len: mapping.len,
            detail: bits(*mapping),
            ..Row::default()
        });
        tasks.chain(files).chain(mappings).collect()
    }

    /// The columns of a group: rows of tables that are not written, then these operations.
    pub(super) fn columns(&self, trace: &Trace, operations: &[Operation]) -> Vec<Column> {
        let at_ns = operations.first().map_or(0, |operation| operation.at_ns);
        let rows = self.introductions(trace, at_ns).into_iter();
        let rows: Vec<Row> = rows.chain(operations.iter().map(|operation| row(operation, trace))).collect();
        columns(&rows, trace)
    }
}

fn row(operation: &Operation, trace: &Trace) -> Row {
    let Operation { at_ns, think_ns, took_ns, task, kind, object, offset, len, detail } = *operation;
    let kinds = OperationKind::ALL.iter().position(|&other| other == kind).expect("all kinds are there");
    let acts_on = |what| (kind.acts_on() == what).then_some(object);
    let mapping = acts_on(ActsOn::Mapping);
    let mapped = mapping.and_then(|number| some(trace.mappings[number as usize].file));
    Row {
        at_ns,
        task: Some(task),
        kind: (kinds + TABLES.len()) as u32,
        file: acts_on(ActsOn::File).or(mapped),
        mapping,
        other_task: acts_on(ActsOn::Task),
        offset,
        len,
        think_ns,
        took_ns,
        detail,
    }
}

/// Microseconds, to the nearest.
const fn to_us(ns: u64) -> u64 {
    ns / 1000 + (ns % 1000 / 500)
}

const fn to_ns(us: u64) -> u64 {
    us.saturating_mul(1000)
}

fn bits(mapping: TraceMapping) -> u32 {
    u32::from(mapping.shared) | u32::from(mapping.writable) << 1 | u32::from(mapping.executable) << 2
}

fn columns(rows: &[Row], trace: &Trace) -> Vec<Column> {
    // Names by their first task, so that one name is one entry.
    let mut firsts: BTreeMap<&str, u32> = BTreeMap::new();
    let named: Vec<u32> =
        (0..).zip(&trace.tasks).map(|(number, task)| *firsts.entry(&task.name).or_insert(number)).collect();
    let task = |row: &Row| row.task.map(|task| &trace.tasks[task as usize]);
    let program = texts(
        "program",
        true,
        rows,
        |row| row.task.map(|task| named[task as usize]),
        |cell| &trace.tasks[cell].name,
    );
    vec![
        whole("time_us", rows, |row| to_us(row.at_ns)),
        numbers("task", rows, |row| row.task),
        numbers("process", rows, |row| task(row).map(|task| task.process)),
        program,
        texts("operation", false, rows, |row| Some(row.kind), |cell| spelt(cell as u32)),
        numbers("file", rows, |row| row.file),
        texts("path", true, rows, |row| row.file, |cell| &trace.files[cell].path),
        numbers("mapping", rows, |row| row.mapping),
        numbers("other_task", rows, |row| row.other_task),
        whole("offset", rows, |row| row.offset),
        whole("length", rows, |row| row.len),
        whole("think_us", rows, |row| to_us(row.think_ns)),
        whole("took_us", rows, |row| to_us(row.took_ns)),
        Column::new("detail", Cells::U32(rows.iter().map(|row| row.detail.cast_signed()).collect())),
    ]
}

/// Numbers that fit into what is signed: [`Trace::check`] knows none of offsets that do not, and times are those
/// of this century.
fn whole(name: &str, rows: &[Row], cell: impl Fn(&Row) -> u64) -> Column {
    let cells = rows.iter().map(|row| i64::try_from(cell(row)).unwrap_or(i64::MAX)).collect();
    Column::new(name, Cells::I64(cells))
}

fn numbers(name: &str, rows: &[Row], cell: impl Fn(&Row) -> Option<u32>) -> Column {
    let cells = rows.iter().filter_map(&cell).map(u32::cast_signed).collect();
    Column::with_gaps(name, Cells::U32(cells), rows.iter().map(|row| cell(row).is_some().into()).collect())
}

fn texts<'a>(
    name: &str,
    has_gaps: bool,
    rows: &[Row],
    cell: impl Fn(&Row) -> Option<u32>,
    text: impl Fn(usize) -> &'a str,
) -> Column {
    let mut choices = Choices::default();
    rows.iter().for_each(|row| choices.push(cell(row)));
    let dictionary = |cells: &[u32]| {
        Dictionary::Text(cells.iter().map(|&cell| ByteArray::from(text(cell as usize))).collect())
    };
    Column::new(name, Cells::Chosen(choices.chosen(dictionary, has_gaps)))
}

/// Puts the rows of tables of a group into `trace` and its operations behind those that it has.
///
/// # Errors
/// What the matter is.
pub(super) fn take(columns: Vec<Column>, trace: &mut Trace) -> Result<(), String> {
    let mut columns: BTreeMap<String, Column> =
        columns.into_iter().map(|column| (column.name.clone(), column)).collect();
    let mut column = |name: &str| columns.remove(name).ok_or_else(|| format!("it has no column `{name}`"));
    let mut whole = |name: &str| match column(name)? {
        Column { cells: Cells::I64(cells), present: None, .. } if cells.iter().all(|&cell| cell >= 0) => {
            Ok(cells)
        }
        _ => Err(format!("`{name}` is no column of whole numbers")),
    };
    let [at, offset, len] = [whole("time_us")?, whole("offset")?, whole("length")?];
    let [think, took] = [whole("think_us")?, whole("took_us")?];
    let mut numbers = |name: &str| match column(name)? {
        Column { cells: Cells::U32(cells), present, .. } => {
            spread(cells.into_iter().map(i32::cast_unsigned), present)
                .ok_or_else(|| format!("`{name}` has gaps that it does not tell of"))
        }
        _ => Err(format!("`{name}` is no column of numbers")),
    };
    let [task, process, detail] = [numbers("task")?, numbers("process")?, numbers("detail")?];
    let [file, mapping, other] = [numbers("file")?, numbers("mapping")?, numbers("other_task")?];
    let mut texts = |name: &str| match column(name)? {
        Column { cells: Cells::Text(cells), present, .. } => spread(cells.into_iter(), present)
            .ok_or_else(|| format!("`{name}` has gaps that it does not tell of")),
        _ => Err(format!("`{name}` is no column of texts")),
    };
    let [program, operation, path] = [texts("program")?, texts("operation")?, texts("path")?];
    let kinds = kinds();
    let mut known: BTreeMap<*const u8, u32> = BTreeMap::new();
    for row in 0..at.len() {
        let kind = operation[row].as_ref().ok_or("a row has no `operation`")?;
        // Cells of one entry of the dictionary are one place in memory, so that each text is looked up once.
        let number = match known.get(&kind.data().as_ptr()) {
            Some(&number) => number,
            None => {
                let text = kind.as_utf8().unwrap_or("");
                let &number = kinds.get(text).ok_or_else(|| format!("`{text}` is no operation"))?;
                *known.entry(kind.data().as_ptr()).or_insert(number)
            }
        };
        let unsigned = |cells: &[i64]| cells[row].cast_unsigned();
        let read = Row {
            at_ns: to_ns(unsigned(&at)),
            task: task[row],
            kind: number,
            file: file[row],
            mapping: mapping[row],
            other_task: other[row],
            offset: unsigned(&offset),
            len: unsigned(&len),
            think_ns: to_ns(unsigned(&think)),
            took_ns: to_ns(unsigned(&took)),
            detail: detail[row].unwrap_or(0),
        };
        let text = |cell: &Option<ByteArray>| {
            cell.as_ref().and_then(|cell| cell.as_utf8().ok()).unwrap_or_default().to_owned()
        };
        match number {
            0 => put(&mut trace.tasks, read.task, task_of(&read, process[row], text(&program[row])))?,
            1 => put(&mut trace.files, read.file, file_of(&read, text(&path[row])))?,
            2 => put(&mut trace.mappings, read.mapping, mapping_of(&read))?,
            _ => trace.operations.push(operation_of(&read)?),
        }
    }
    Ok(())
}

/// What an `operation` is, by its text.
fn kinds() -> BTreeMap<&'static str, u32> {
    let all = TABLES.len() + OperationKind::ALL.len();
    (0..all as u32).map(|kind| (spelt(kind), kind)).collect()
}

/// The row `number` of a table is `row`: a new one, or one that changed.
fn put<T>(table: &mut Vec<T>, number: Option<u32>, row: T) -> Result<(), String> {
    match number.map(|number| number as usize) {
        Some(number) if number < table.len() => table[number] = row,
        Some(number) if number == table.len() => table.push(row),
        _ => return Err("a row of its tables does not follow those before it".to_owned()),
    }
    Ok(())
}

fn task_of(row: &Row, process: Option<u32>, name: String) -> TraceTask {
    let process = process.unwrap_or(NONE);
    TraceTask { tid: row.detail, parent: row.other_task.unwrap_or(NONE), process, name }
}

fn file_of(row: &Row, path: String) -> TraceFile {
    TraceFile { path, size_bytes: row.len, in_memory: row.detail & 1 != 0 }
}

fn mapping_of(row: &Row) -> TraceMapping {
    let has = |bit| row.detail & bit != 0;
    TraceMapping {
        file: row.file.unwrap_or(NONE),
        file_offset: row.offset,
        len: row.len,
        shared: has(1),
        writable: has(2),
        executable: has(4),
    }
}

fn operation_of(row: &Row) -> Result<Operation, String> {
    let kind = OperationKind::ALL[row.kind as usize - TABLES.len()];
    let object = match kind.acts_on() {
        ActsOn::File => row.file,
        ActsOn::Mapping => row.mapping,
        ActsOn::Task => row.other_task,
        ActsOn::Nothing => Some(NONE),
    };
    let missing = |what: &str| format!("a `{}` does not say {what}", kind.name());
    Ok(Operation {
        at_ns: row.at_ns,
        think_ns: row.think_ns,
        took_ns: row.took_ns,
        task: row.task.ok_or_else(|| missing("by which task"))?,
        kind,
        object: object.ok_or_else(|| missing("on what"))?,
        offset: row.offset,
        len: row.len,
        detail: row.detail,
    })
}
