//! Events on disk: the folder `events` of a recording, a Parquet file for each chunk.
//!
//! A run writes chunk after chunk while it goes. Each file is complete by itself and gets its name when it is,
//! so that whoever is killed leaves all but the last chunk. The first chunks are small, so that little is lost
//! even of a short run; how long they are depends on nothing but the number of events before, so that the
//! same events give the same files. The writer holds one chunk in memory, the reader, too.
//!
//! Neighbours: [`crate::folder`], whose `MANIFEST` lists the files; `event_columns.rs`, what is in them;
//! `table.rs`, the files as bytes.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use parquet::data_type::ByteArray;

use crate::disk::{read_file, write_whole};
use crate::event_columns::{Gathered, events};
use crate::layout::{EVENTS, event_file};
use crate::manifest::{Listed, Manifest};
use crate::table;
use crate::{Chunk, Event, Names, RecordingError};

/// Events of the first file; each further file has twice as many as the one before.
const FIRST_CHUNK: usize = 4096;
/// Events of a file at most: some ten megabytes of memory.
const LARGEST_CHUNK: usize = 1 << 17;

/// Pages of an event, on the average of a run: what foreign events cost whoever takes them page by page is bounded by
/// how many there are.
const EVENT_PAGES_MAX: u64 = 4096;
/// By so many events pages may be ahead of the average: 64 GiB at one instant.
const EVENTS_AHEAD: u64 = 1 << 12;

/// Writes events of a run as they come.
#[derive(Debug)]
pub struct EventWriter {
    /// The folder of the recording.
    folder: PathBuf,
    /// Events that are in no file yet.
    pending: Gathered,
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
        let (pending, texts, listed) = (Gathered::default(), Vec::new(), Vec::new());
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
            let (now, later) = events.split_at(events.len().min(self.room - self.pending.rows()));
            self.pending.take(now);
            if self.pending.rows() == self.room {
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
        if self.pending.rows() > 0 || self.listed.is_empty() {
            self.write_chunk()?;
        }
        Ok(self.listed)
    }

    fn write_chunk(&mut self) -> Result<(), RecordingError> {
        let name = event_file(self.listed.len());
        let bytes = table::encode(&self.pending.columns(&self.texts));
        write_whole(&self.folder.join(&name), &bytes)?;
        self.listed.push((name, Listed::of(&bytes)));
        Ok(())
    }
}

/// Reads the events of a recording, chunk by chunk.
#[derive(Debug)]
pub struct EventReader {
    folder: PathBuf,
    /// Files that were not read yet, with what `MANIFEST` says of them if there is one.
    files: VecDeque<(String, Option<Listed>)>,
    names: Names,
    bound: Bound,
}

/// Events so far, and of how many pages they were.
#[derive(Debug, Default)]
struct Bound {
    events: u64,
    pages: u64,
}

impl Bound {
    /// Takes events of a file; an error is the place of one that is of more pages than any of a run.
    fn take(&mut self, events: &[Event]) -> Result<(), usize> {
        for (row, event) in events.iter().enumerate() {
            self.events += 1;
            self.pages += u64::from(event.pages);
            if self.pages / EVENT_PAGES_MAX > self.events + EVENTS_AHEAD {
                return Err(row);
            }
        }
        Ok(())
    }
}

impl EventReader {
    /// The events of the recording in `folder`; `None` if it has none. Of a run that did not end, those of
    /// all complete chunks.
    ///
    /// # Errors
    /// No recording, or `MANIFEST` cannot be read.
    pub fn open(folder: &Path) -> Result<Option<Self>, RecordingError> {
        let files: VecDeque<(String, Option<Listed>)> = match Manifest::of(folder)? {
            Some(manifest) => {
                manifest.events.into_iter().map(|(name, listed)| (name, Some(listed))).collect()
            }
            None => {
                let names = (0..).map(event_file);
                names.take_while(|name| folder.join(name).is_file()).map(|name| (name, None)).collect()
            }
        };
        let found = !files.is_empty();
        Ok(found.then(|| Self {
            folder: folder.to_owned(),
            files,
            names: Names::default(),
            bound: Bound::default(),
        }))
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
        let bytes = read_file(&path)?;
        if let Some(listed) = listed {
            listed.check(&bytes, path.clone())?;
        }
        let columns = table::decode(bytes, &path)?;
        let damaged = |problem| RecordingError::Damaged { path, problem };
        let events = match events(columns, &mut self.names) {
            Ok(events) => events,
            Err(column) => {
                return Err(damaged(format!("`{column}` is missing, of another type or out of range")));
            }
        };
        match self.bound.take(&events) {
            Ok(()) => Ok(Chunk { events }),
            Err(row) => {
                let (number, pages) = (row + 1, events[row].pages);
                Err(damaged(format!("row {number} is of {pages} pages, and no run has so many at once")))
            }
        }
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
