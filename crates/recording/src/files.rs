//! A recording as the bytes of its files, and back. No disk: see [`crate::folder`].
//!
//! | file | what is in it |
//! |---|---|
//! | `recording.json` | everything but the others; keys in a fixed order, floats read back equal |
//! | `scenario.toml` | the resolved scenario |
//! | `series.parquet` | `time_ns` and the counters that change, integers |
//! | `samples.parquet` | `name` and `value`, in the order in which they were taken, if there are any |
//! | `waits.parquet` | who waited for what, if that is known |
//! | `events/NNNNN.parquet` | what happened, if that was recorded; see [`crate::event_files`] |
//! | `MANIFEST` | version of the format, length and hash of each file |
//!
//! Versions 1 to 4 had text instead of Parquet: `old.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::disk::utf8;
use crate::layout::{JSON, OLD_SERIES, OLD_WAITS, SAMPLES, SCENARIO, SERIES, WAITS};
use crate::manifest::{ContentHash, Manifest};
use crate::table::{self, Cells, Column};
use crate::{Recording, RecordingError, SCHEMA, SCHEMA_OLDEST, Series, old, waits};

const TIME: &str = "time_ns";

/// The bytes of a recording's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// What is in each file, in the order of `MANIFEST`.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) manifest: Manifest,
}

impl Files {
    /// The bytes of `recording` in the newest version.
    ///
    /// # Panics
    /// When a row of the series does not have one value for each column.
    pub fn encode(recording: &Recording) -> Self {
        let mut files = vec![
            (JSON, encode_json(recording)),
            (SCENARIO, recording.scenario_toml.clone().into_bytes()),
            (SERIES, table::encode(&series_columns(&recording.series))),
        ];
        if recording.samples.values().any(|samples| !samples.is_empty()) {
            files.push((SAMPLES, table::encode(&sample_columns(&recording.samples))));
        }
        if !recording.waits.is_empty() {
            files.push((WAITS, table::encode(&waits::columns(&recording.waits))));
        }
        let manifest = Manifest::new(files.iter().map(|(name, bytes)| (*name, bytes.as_slice())));
        Self { files: files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect(), manifest }
    }

    /// The recording in these bytes; `folder` is where they came from, for messages only.
    ///
    /// # Errors
    /// A file that is not what its name promises, a file that was changed.
    pub fn decode(&self, folder: &Path) -> Result<Recording, RecordingError> {
        let mut recording = Recording::new("", "", "", "", 0);
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            // A place in a text helps more than "it differs"; in a table there is none to tell.
            if name.ends_with(".parquet") {
                self.check(name, bytes, folder)?;
            }
            match name.as_str() {
                JSON => recording = decode_json(bytes, &path)?,
                SCENARIO => utf8(bytes, &path)?.clone_into(&mut recording.scenario_toml),
                SERIES => decode_series(bytes, &path, &mut recording.series)?,
                SAMPLES => recording.samples.append(&mut decode_samples(bytes, &path)?),
                WAITS => recording.waits = waits::of_columns(table::decode(bytes.clone(), &path)?, &path)?,
                OLD_SERIES => {
                    let constant = std::mem::take(&mut recording.series.constant); // from recording.json
                    recording.series = Series { constant, ..old::decode_series(bytes, &path)? };
                }
                OLD_WAITS => recording.waits = old::decode_waits(bytes, &path)?,
                _ => unreachable!("`MANIFEST` has names of the format"),
            }
        }
        let mut texts = self.files.iter().filter(|(name, _)| !name.ends_with(".parquet"));
        texts.try_for_each(|(name, bytes)| self.check(name, bytes, folder))?;
        Ok(recording)
    }

    fn check(&self, name: &str, bytes: &[u8], folder: &Path) -> Result<(), RecordingError> {
        let listed = self.manifest.listed(name).expect("files are those of the manifest");
        listed.check(bytes, folder.join(name))
    }

    /// The hash over all of it, as `MANIFEST` has it.
    pub fn content_hash(&self) -> ContentHash {
        self.manifest.content_hash()
    }
}

// ---- recording.json

/// The recording with what only some backends write.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    recording: &'a Recording,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_ns: Option<u64>,
}

pub(crate) fn encode_json(recording: &Recording) -> Vec<u8> {
    let wall_ns = recording.wall_ns.filter(|_| !recording.is_computed());
    let document = Document { recording, wall_ns };
    let mut bytes = serde_json::to_vec_pretty(&document).expect("maps with text keys always serialise");
    bytes.push(b'\n');
    bytes
}

pub(crate) fn decode_json(bytes: &[u8], path: &Path) -> Result<Recording, RecordingError> {
    let text = utf8(bytes, path)?;
    let mut recording: Recording = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line() as u64, error.column() as u64);
        let message = error.to_string();
        let place = format!(" at line {line} column {column}");
        let problem = message.strip_suffix(&place).unwrap_or(&message).to_owned();
        RecordingError::Malformed { path: path.to_owned(), line: line.max(1), column: column.max(1), problem }
    })?;
    if !(SCHEMA_OLDEST..=SCHEMA).contains(&recording.schema) {
        return Err(RecordingError::Schema { path: path.to_owned(), found: recording.schema.into() });
    }
    if recording.is_computed() {
        recording.wall_ns = None;
    }
    Ok(recording)
}

// ---- series.parquet

pub(crate) fn series_columns(series: &Series) -> Vec<Column> {
    for (time, values) in &series.rows {
        assert_eq!(values.len(), series.columns.len(), "the row at {time} ns does not fit the columns");
    }
    let time = Column::of_u64(TIME, series.times_ns());
    let column = |(place, name): (usize, &String)| {
        Column::of_u64(name, series.rows.iter().map(|(_, values)| values[place]))
    };
    std::iter::once(time).chain(series.columns.iter().enumerate().map(column)).collect()
}

/// Fills in what is not in `recording.json`.
pub(crate) fn decode_series(bytes: &[u8], path: &Path, series: &mut Series) -> Result<(), RecordingError> {
    let damaged = |problem: String| RecordingError::Damaged { path: path.to_owned(), problem };
    let mut columns = table::decode(bytes.to_vec(), path)?.into_iter();
    let no_time = || damaged(format!("its first column is not `{TIME}`"));
    let time = columns.next().filter(|column| column.name == TIME).ok_or_else(no_time)?;
    let times = time.into_u64().ok_or_else(no_time)?;
    series.rows = times.into_iter().map(|time| (time, Vec::with_capacity(columns.len()))).collect();
    for column in columns {
        series.columns.push(column.name.clone());
        let name = column.name.clone();
        let values = column.into_u64().ok_or_else(|| damaged(format!("`{name}` has no whole numbers")))?;
        series.rows.iter_mut().zip(values).for_each(|((_, row), value)| row.push(value));
    }
    Ok(())
}

// ---- samples.parquet

pub(crate) fn sample_columns(samples: &BTreeMap<String, Vec<f64>>) -> Vec<Column> {
    let names = samples.iter().flat_map(|(name, values)| values.iter().map(|_| name.as_str()));
    let values = samples.values().flatten().copied().collect();
    vec![Column::of_texts("name", names), Column::new("value", Cells::F64(values))]
}

fn decode_samples(bytes: &[u8], path: &Path) -> Result<BTreeMap<String, Vec<f64>>, RecordingError> {
    let problem = || "expected `name`, a text, and `value`, a float".to_owned();
    let damaged = || RecordingError::Damaged { path: path.to_owned(), problem: problem() };
    let columns: [Column; 2] = table::decode(bytes.to_vec(), path)?.try_into().map_err(|_| damaged())?;
    let [names, values] = columns;
    let names = names.into_texts().ok_or_else(damaged)?;
    let Column { cells: Cells::F64(values), present: None, .. } = values else { return Err(damaged()) };
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in names.into_iter().zip(values) {
        samples.entry(name).or_default().push(value);
    }
    Ok(samples)
}
