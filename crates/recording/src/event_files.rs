//! Events on disk: the folder `events` of a recording, a Parquet file for each chunk.
//!
//! A run writes chunk after chunk while it goes. Each file is complete by itself and gets its name when it is,
//! so that whoever is killed leaves all but the last chunk. The first chunks are small, so that little is lost
//! even of a short run; how long they are depends on nothing but the number of events before, so that the
//! same events give the same files. The writer holds one chunk in memory, the reader, too.
//!
//! Columns are the fields of [`Event`], texts instead of their numbers, null for what does not apply.
//! Neighbours: [`crate::folder`], whose `MANIFEST` lists the files; `table.rs`, the files as bytes.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use parquet::data_type::ByteArray;

use crate::manifest::Listed;
use crate::packed::Dictionary;
use crate::table::{self, Cells, Column, spread};
use crate::{Chunk, Event, NameId, Names, RecordingError};

/// The folder below that of the recording.
pub const EVENTS: &str = "events";
/// Events of the first file; each further file has twice as many as the one before.
const FIRST_CHUNK: usize = 4096;
/// Events of a file at most: some ten megabytes of memory.
const LARGEST_CHUNK: usize = 1 << 17;

/// Name of file `number` in the folder of a recording.
pub(crate) fn file_name(number: usize) -> String {
    format!("{EVENTS}/{number:05}.parquet")
}

/// Writes events of a run as they come.
#[derive(Debug)]
pub struct EventWriter {
    /// The folder of the recording.
    folder: PathBuf,
    /// Events that are in no file yet.
    pending: Vec<Event>,
    /// With how many there will be a file.
    room: usize,
    /// All names so far, by their numbers.
    texts: Vec<ByteArray>,
    /// What has been written.
    listed: Vec<(String, Listed)>,
}

impl EventWriter {
    /// A writer into the folder of a recording that is being made; `events` in it must not exist yet.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(folder: &Path) -> Result<Self, RecordingError> {
        let path = folder.join(EVENTS);
        fs::create_dir(&path).map_err(|source| RecordingError::Unwritable { path, source })?;
        let (pending, texts, listed) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { folder: folder.to_owned(), pending, room: FIRST_CHUNK, texts, listed })
    }

    /// Takes more events; `names` are those of all calls before and perhaps more.
    ///
    /// # Errors
    /// The system refuses to write a chunk.
    ///
    /// # Panics
    /// When an event has a name that `names` does not have.
    pub fn append(&mut self, chunk: &Chunk, names: &Names) -> Result<(), RecordingError> {
        self.texts.extend(names.texts().skip(self.texts.len()).map(ByteArray::from));
        let mut events = &chunk.events[..];
        while !events.is_empty() {
            let (now, later) = events.split_at(events.len().min(self.room - self.pending.len()));
            self.pending.extend_from_slice(now);
            if self.pending.len() == self.room {
                self.write_chunk()?;
                self.room = (self.room * 2).min(LARGEST_CHUNK);
            }
            events = later;
        }
        Ok(())
    }

    /// How many files there are so far.
    pub fn chunks(&self) -> usize {
        self.listed.len()
    }

    /// Writes what is left and returns all files.
    pub(crate) fn finish(mut self) -> Result<Vec<(String, Listed)>, RecordingError> {
        if !self.pending.is_empty() || self.listed.is_empty() {
            self.write_chunk()?;
        }
        Ok(self.listed)
    }

    fn write_chunk(&mut self) -> Result<(), RecordingError> {
        let name = file_name(self.listed.len());
        let bytes = table::encode(&columns(&self.pending, &self.texts));
        write_whole(&self.folder.join(&name), &bytes)?;
        self.listed.push((name, Listed::of(&bytes)));
        self.pending.clear();
        Ok(())
    }
}

/// Writes a file that has its name only when it is complete. It survives the end of the process; what shall
/// survive the machine's, asks for that: [`sync`].
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordingError> {
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path)).map_err(|source| {
        let _ = fs::remove_file(&partial); // What was refused may have left a part; nobody wants it.
        RecordingError::Unwritable { path: path.to_owned(), source }
    })
}

/// Brings a file to the disk.
pub(crate) fn sync(path: &Path) -> Result<(), RecordingError> {
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| RecordingError::Unwritable { path: path.to_owned(), source })
}

/// Reads the events of a recording, chunk by chunk.
#[derive(Debug)]
pub struct EventReader {
    folder: PathBuf,
    /// Files that were not read yet, with what `MANIFEST` says of them if there is one.
    files: VecDeque<(String, Option<Listed>)>,
    names: Names,
}

impl EventReader {
    /// The events of the recording in `folder`; `None` if it has none. Of a run that did not end, those of
    /// all complete chunks.
    ///
    /// # Errors
    /// No recording, or `MANIFEST` cannot be read.
    pub fn open(folder: &Path) -> Result<Option<Self>, RecordingError> {
        let files: VecDeque<(String, Option<Listed>)> = match crate::folder::manifest(folder)? {
            Some(manifest) => {
                manifest.events.into_iter().map(|(name, listed)| (name, Some(listed))).collect()
            }
            None => {
                let names = (0..).map(file_name);
                names.take_while(|name| folder.join(name).is_file()).map(|name| (name, None)).collect()
            }
        };
        let found = !files.is_empty();
        Ok(found.then(|| Self { folder: folder.to_owned(), files, names: Names::default() }))
    }

    /// The names of all events read so far.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// All events that were not read yet, and the names of all: for runs that fit into memory.
    ///
    /// # Errors
    /// Those of reading a chunk.
    pub fn read_all(mut self) -> Result<(Names, Vec<Event>), RecordingError> {
        let mut events = Vec::new();
        for chunk in &mut self {
            events.append(&mut chunk?.events);
        }
        Ok((self.names, events))
    }

    fn read(&mut self, name: &str, listed: Option<Listed>) -> Result<Chunk, RecordingError> {
        let path = self.folder.join(name);
        let bytes = crate::folder::read_file(&path)?;
        if let Some(listed) = listed {
            listed.check(&bytes, path.clone())?;
        }
        let columns = table::decode(bytes, &path)?;
        let damaged = |problem: &str| RecordingError::Damaged { path, problem: problem.to_owned() };
        let events = events(columns, &mut self.names)
            .map_err(|column| damaged(&format!("`{column}` is missing or of another type")))?;
        Ok(Chunk { events })
    }
}

impl Iterator for EventReader {
    type Item = Result<Chunk, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (name, listed) = self.files.pop_front()?;
        let read = self.read(&name, listed);
        if read.is_err() {
            self.files.clear(); // What comes after damage would be told without what came before.
        }
        Some(read)
    }
}

// ---- rows to columns and back

fn columns(events: &[Event], texts: &[ByteArray]) -> Vec<Column> {
    let rows = || events.iter();
    vec![
        Column::of_u64("time_ns", rows().map(|event| event.time_ns)),
        Column::of_u64("duration_ns", rows().map(|event| event.duration_ns)),
        Column { present: None, ..named("event", texts, rows().map(|event| Some(event.event))) },
        named("task", texts, rows().map(|event| event.task)),
        named("cgroup", texts, rows().map(|event| event.cgroup)),
        named("by_cgroup", texts, rows().map(|event| event.by_cgroup)),
        named("file", texts, rows().map(|event| event.file)),
        named("reason", texts, rows().map(|event| event.reason)),
        Column {
            present: Some(rows().map(|event| event.page.is_some().into()).collect()),
            ..Column::of_u64("page", rows().filter_map(|event| event.page))
        },
        Column::new("pages", Cells::U32(rows().map(|event| event.pages.cast_signed()).collect())),
        small("node", rows().map(|event| event.node)),
        small("priority", rows().map(|event| event.priority)),
        small("order", rows().map(|event| event.order)),
        Column::with_gaps(
            "value",
            Cells::I64(rows().filter_map(|event| event.value).collect()),
            rows().map(|event| event.value.is_some().into()).collect(),
        ),
    ]
}

/// A column of names, none of whose texts is looked at.
fn named(name: &str, texts: &[ByteArray], ids: impl Iterator<Item = Option<NameId>>) -> Column {
    let mut chosen = Chosen::new(texts.len());
    let places: Vec<usize> = ids.filter_map(|id| chosen.take(id.map(NameId::index))).collect();
    let dictionary = places.into_iter().map(|place| texts[place].clone()).collect();
    chosen.column(name, Dictionary::Text(dictionary))
}

/// A column of small numbers.
fn small(name: &str, numbers: impl Iterator<Item = Option<u8>>) -> Column {
    let mut chosen = Chosen::new(256);
    let places: Vec<usize> = numbers.filter_map(|number| chosen.take(number.map(usize::from))).collect();
    let dictionary = places.into_iter().map(|place| place as i32).collect();
    chosen.column(name, Dictionary::U8(dictionary))
}

/// Numbers into a dictionary of what came up, in the order in which it did.
struct Chosen {
    /// For each cell that there may be, its place in the dictionary.
    places: Vec<Option<u32>>,
    entries: u32,
    numbers: Vec<u32>,
    present: Vec<i16>,
}

impl Chosen {
    fn new(cells: usize) -> Self {
        Self { places: vec![None; cells], entries: 0, numbers: Vec::new(), present: Vec::new() }
    }

    /// Takes the next row's cell; returns it if it is new in the dictionary.
    fn take(&mut self, cell: Option<usize>) -> Option<usize> {
        self.present.push(cell.is_some().into());
        let place = &mut self.places[cell?];
        let is_new = place.is_none();
        let number = *place.get_or_insert(self.entries);
        self.entries += u32::from(is_new);
        self.numbers.push(number);
        cell.filter(|_| is_new)
    }

    fn column(self, name: &str, dictionary: Dictionary) -> Column {
        Column::with_gaps(name, Cells::Chosen(dictionary, self.numbers), self.present)
    }
}

/// The rows; an error is the column that cannot be read.
fn events(columns: Vec<Column>, names: &mut Names) -> Result<Vec<Event>, &'static str> {
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

#[cfg(test)]
mod tests;
