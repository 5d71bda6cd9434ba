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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::example;

    /// What is known of [`example`]'s run with so many chunks of two rows each.
    fn known(chunks: u64) -> Recording {
        let done = chunks > 0;
        let phases = if done { example().phases } else { Vec::new() };
        Recording { phases, ..Recording::new("linux-6.12", "hot-and-stream", "sim", "linux-6.12", 7) }
    }

    fn chunk(number: u64) -> Series {
        let more = if number == 1 { vec!["cg_A_file"] } else { vec![] };
        let columns = [more, vec!["nr_free_pages", "pgscan_kswapd"]].concat();
        let row = |time: u64| (time, columns.iter().map(|name| name.len() as u64 + time).collect());
        let rows = vec![row(number * 200), row(number * 200 + 200)];
        Series { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows, ..Series::default() }
    }

    /// A recording of two chunks, left as a kill leaves it.
    fn killed(parent: &Path) -> PathBuf {
        let mut writer = RecordingWriter::begin(&parent.join("first"), &known(0)).unwrap();
        (0..2).for_each(|number| writer.sampled(&known(number + 1), &chunk(number)).unwrap());
        let folder = writer.path().to_owned();
        std::mem::forget(writer); // Nothing is dropped by a kill.
        folder
    }

    #[test]
    fn what_is_left_of_a_run_that_was_killed_reads_up_to_its_last_chunk() {
        let parent = tempfile::tempdir().unwrap();
        let folder = killed(parent.path());
        assert_eq!(folder, parent.path().join("first.partial"));
        fs::write(folder.join("series/00002.partial"), b"PAR1 half").unwrap();
        let read = Recording::read(&folder).unwrap();
        assert!(read.incomplete);
        assert_eq!(read.phases, example().phases);
        assert_eq!(read.series.columns, ["cg_A_file", "nr_free_pages", "pgscan_kswapd"]);
        let rows = [(0, [0, 13, 13]), (200, [209, 213, 213]), (400, [409, 413, 413])];
        assert_eq!(read.series.rows, rows.map(|(time, row)| (time, row.to_vec())));
        insta::assert_snapshot!(read.notes[0], @"the run did not end: this goes up to 0.000 s, where its last complete chunk ends; metrics, samples and waits come at the end of a run and are missing");
        let error = Recording::read(&parent.path().join("first")).unwrap_err();
        let told = error.to_string().replace(&parent.path().display().to_string(), "P");
        insta::assert_snapshot!(format!("{told}\n{}", error.hint()), @"
        there is no recording at `P/first`, but what a run left that did not end, in `P/first.partial`
        name what is left to read it as far as it goes, or make the run again
        ");
    }

    /// A machine that lost power may have files that are empty or half.
    #[test]
    fn a_damaged_chunk_ends_what_is_read() {
        let parent = tempfile::tempdir().unwrap();
        let folder = killed(parent.path());
        let chunk = folder.join(chunk_file(1));
        let good = fs::read(&chunk).unwrap();
        for damaged in [&good[..good.len() / 2], b""] {
            fs::write(&chunk, damaged).unwrap();
            let read = Recording::read(&folder).unwrap();
            assert_eq!(read.series.times_ns().collect::<Vec<_>>(), [0, 200]);
        }
        fs::remove_dir_all(folder.join(CHUNKS)).unwrap();
        fs::create_dir(folder.join(CHUNKS)).unwrap();
        let read = Recording::read(&folder).unwrap();
        assert!(read.notes[0].contains("nothing but its scenario"), "{:?}", read.notes);
    }

    #[test]
    fn a_recording_that_grew_is_the_one_that_is_written_at_once() {
        let parent = tempfile::tempdir().unwrap();
        let [grown, at_once] = ["grown", "at-once"].map(|name| parent.path().join(name));
        let mut writer = RecordingWriter::begin(&grown, &known(0)).unwrap();
        writer.sampled(&known(1), &chunk(0)).unwrap();
        assert_eq!(writer.finish(&example()).unwrap(), example().write(&at_once).unwrap());
        let names = |folder: &Path| {
            let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
            names.collect::<BTreeSet<_>>()
        };
        assert_eq!(names(&grown), names(&at_once));
        for name in names(&grown) {
            assert_eq!(fs::read(grown.join(&name)).unwrap(), fs::read(at_once.join(&name)).unwrap());
        }
    }

    #[test]
    fn a_run_that_failed_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let mut writer = RecordingWriter::begin(&parent.path().join("first"), &known(0)).unwrap();
        writer.sampled(&known(1), &chunk(0)).unwrap();
        drop(writer);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    /// The system refuses in the middle, at the end, and to give the folder its name.
    #[test]
    fn what_was_written_before_the_system_refused_stays() {
        let parent = tempfile::tempdir().unwrap();
        for (run, refuse) in ["middle", "end", "name"].into_iter().zip(0..) {
            let target = parent.path().join(run);
            let mut writer = RecordingWriter::begin(&target, &known(0)).unwrap();
            writer.sampled(&known(1), &chunk(0)).unwrap();
            let error = match refuse {
                0 => {
                    fs::create_dir_all(writer.path().join(chunk_file(1)).join("in the way")).unwrap();
                    let error = writer.sampled(&known(2), &chunk(1)).unwrap_err();
                    writer.refused(error)
                }
                1 => {
                    fs::create_dir_all(writer.path().join(crate::layout::SERIES).join("in the way")).unwrap();
                    writer.finish(&example()).unwrap_err()
                }
                _ => {
                    fs::create_dir_all(target.join("theirs")).unwrap();
                    writer.finish(&example()).unwrap_err()
                }
            };
            let RecordingError::Partial { path, .. } = &error else { panic!("{error}") };
            assert_eq!(*path, parent.path().join(format!("{run}.partial")));
            let read = Recording::read(path).unwrap();
            assert_eq!((read.incomplete, read.series.rows.len()), (refuse < 2, 2));
        }
    }
}
