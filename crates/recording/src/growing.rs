//! Recordings that grow while their run goes: chunk after chunk, each complete by itself.
//!
//! The folder has `recording.json` and `scenario.toml` from the beginning, the former as it was known with the
//! last chunk; counters over time in `series/NNNNN.parquet`; events as [`crate::event_files`] says. When the
//! run has ended, [`RecordingWriter::finish`] puts the counters into one file, writes `MANIFEST` and gives the
//! folder its name. Whoever is killed before leaves a folder without `MANIFEST` that is read up to its last
//! chunk.
//!
//! Left out: waits, metrics and samples, which come at the end of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::disk::{read_file, sync, utf8, write_whole};
use crate::files::{self, Files};
use crate::layout::{CHUNKS, JSON, MANIFEST, SCENARIO, chunk_file, event_file};
use crate::partial::PartialFolder;
use crate::{ContentHash, EventWriter, Recording, RecordingError, Series, table};

/// Writes a recording while its run goes. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct RecordingWriter {
    folder: PartialFolder,
    target: PathBuf,
    /// Chunks of the counters that were written.
    chunks: usize,
    events: Option<EventWriter>,
}

impl RecordingWriter {
    /// A recording that will be the new folder `path`, of a run of which nothing is known but what `identity`
    /// says.
    ///
    /// # Errors
    /// Something is there already, the system refuses.
    pub fn begin(path: &Path, identity: &Recording) -> Result<Self, RecordingError> {
        let folder = PartialFolder::create_for(path)?;
        folder.write(SCENARIO, identity.scenario_toml.as_bytes())?;
        folder.write(JSON, &files::encode_json(identity))?;
        let chunks = folder.path.join(CHUNKS);
        fs::create_dir(&chunks).map_err(|source| RecordingError::Unwritable { path: chunks, source })?;
        Ok(Self { folder, target: path.to_owned(), chunks: 0, events: None })
    }

    /// The folder while it grows.
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// Takes the next rows of the counters over time, which are written at once, and what is known of the run by
    /// then, all but its series.
    ///
    /// # Errors
    /// The system refuses; [`RecordingWriter::refused`] then keeps what was written before.
    pub fn sampled(&mut self, known: &Recording, rows: &Series) -> Result<(), RecordingError> {
        let chunk = table::encode(&files::series_columns(rows));
        write_whole(&self.folder.path.join(chunk_file(self.chunks)), &chunk)?;
        self.chunks += 1;
        write_whole(&self.folder.path.join(JSON), &files::encode_json(known))
    }

    /// The writer of events; made with the first call.
    ///
    /// # Errors
    /// The system refuses.
    pub fn events(&mut self) -> Result<&mut EventWriter, RecordingError> {
        let events = match self.events.take() {
            Some(events) => events,
            None => EventWriter::create(&self.folder.path)?,
        };
        Ok(self.events.insert(events))
    }

    /// Completes the recording and gives the folder its name; returns the hash of all but the events.
    ///
    /// # Errors
    /// The system refuses; what was written before stays in a folder `NAME.partial`, if that is more than nothing.
    pub fn finish(mut self, recording: &Recording) -> Result<ContentHash, RecordingError> {
        let worth = self.is_worth_keeping(); // Also where only events are: their writer goes with what follows.
        let events = self.events.take();
        let finished = self.complete(events, recording);
        let files = self.kept_on_error(worth, finished)?;
        let renamed = self.folder.rename_to(&self.target);
        self.kept_on_error(true, renamed)?; // All is there, only the name is not to be had.
        Ok(files.content_hash())
    }

    fn complete(&self, events: Option<EventWriter>, recording: &Recording) -> Result<Files, RecordingError> {
        let mut files = Files::encode(recording);
        if let Some(events) = events {
            files.manifest.events = events.finish()?;
        }
        for (name, bytes) in &files.files {
            write_whole(&self.folder.path.join(name), bytes)?;
        }
        let mut written = files.manifest.files.iter().chain(&files.manifest.events);
        written.try_for_each(|(name, _)| sync(&self.folder.path.join(name)))?;
        self.folder.write(MANIFEST, &files.manifest.encode())?;
        let chunks = self.folder.path.join(CHUNKS);
        fs::remove_dir_all(&chunks).map_err(|source| RecordingError::Unwritable { path: chunks, source })?;
        Ok(files)
    }

    /// Ends the recording after a write that the system refused: what was written before stays in a folder
    /// `NAME.partial`, if that is more than nothing. Returns the error that says so.
    pub fn refused(mut self, error: RecordingError) -> RecordingError {
        let worth = self.is_worth_keeping();
        self.kept_on_error::<()>(worth, Err(error)).expect_err("it was one")
    }

    /// Whether a chunk of anything was written.
    fn is_worth_keeping(&self) -> bool {
        self.chunks > 0 || self.events.as_ref().is_some_and(|events| events.chunks() > 0)
    }

    /// A full disk shall not take what was recorded before it was full.
    fn kept_on_error<T>(
        &mut self,
        worth: bool,
        result: Result<T, RecordingError>,
    ) -> Result<T, RecordingError> {
        match result {
            Err(error) if worth => {
                let path = std::mem::take(&mut self.folder.path);
                self.folder.keep();
                Err(RecordingError::Partial { path, source: Box::new(error) })
            }
            other => other,
        }
    }
}

/// What there is of a run that did not end.
pub(crate) fn read(folder: &Path) -> Result<Recording, RecordingError> {
    let path = folder.join(JSON);
    let mut recording = files::decode_json(&read_file(&path)?, &path)?;
    let path = folder.join(SCENARIO);
    utf8(&read_file(&path)?, &path)?.clone_into(&mut recording.scenario_toml);
    recording.series = joined(chunks(folder));
    let ended = recording.series.times_ns().last();
    if recording.simulated_ns == 0 && recording.is_simulated() {
        recording.simulated_ns = ended.unwrap_or(0);
    }
    recording.incomplete = true;
    let so_far = match ended {
        Some(at) => format!("this goes up to {:.3} s, where its last complete chunk ends", at as f64 / 1e9),
        None if folder.join(event_file(0)).is_file() => {
            "events had reached the disk, and no counters".to_owned()
        }
        None => "nothing but its scenario had reached the disk".to_owned(),
    };
    let missing = "metrics, samples and waits come at the end of a run and are missing";
    recording.notes.insert(0, format!("the run did not end: {so_far}; {missing}"));
    Ok(recording)
}

/// The chunks up to the first one that is missing or damaged, as by a machine that lost power.
fn chunks(folder: &Path) -> Vec<Series> {
    let read = |name: String| {
        let path = folder.join(name);
        let mut series = Series::default();
        files::decode_series(&read_file(&path).ok()?, &path, &mut series).ok()?;
        Some(series)
    };
    (0..).map(chunk_file).map_while(read).collect()
}

/// One series of chunks that may have more and more columns; 0 before a column was there.
fn joined(chunks: Vec<Series>) -> Series {
    let names: BTreeSet<&String> = chunks.iter().flat_map(|chunk| &chunk.columns).collect();
    let columns: Vec<String> = names.into_iter().cloned().collect();
    let mut rows = Vec::new();
    for chunk in &chunks {
        let places: BTreeMap<&String, usize> = chunk.columns.iter().zip(0..).collect();
        let places: Vec<Option<usize>> = columns.iter().map(|name| places.get(name).copied()).collect();
        let row =
            |values: &[u64]| places.iter().map(|place| place.map_or(0, |place| values[place])).collect();
        rows.extend(chunk.rows.iter().map(|(time, values)| (*time, row(values))));
    }
    // A phase may end in the instant of a sample; the later reading stands.
    rows.reverse();
    rows.dedup_by_key(|(time, _)| *time);
    rows.reverse();
    Series::new(columns, rows)
}
