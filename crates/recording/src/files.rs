//! A recording as the bytes of its files, and back. No disk: see [`crate::folder`].
//!
//! - `recording.json`: everything but the three below; keys in a fixed order, floats read back equal.
//! - `scenario.toml`: the resolved scenario.
//! - `series.csv`: `time_ns` and the columns that change, integers.
//! - `waits.csv`: who waited for what, if that is known.
//! - `MANIFEST`: format version, length and xxh3-128 of each file, and a hash over those lines.
//!
//! The hashes find damage and careless edits; they are no signature.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::{Recording, RecordingError, SCHEMA, SCHEMA_OLDEST, SCHEMA_WAITED, Series, waits};

/// Name of the file with lengths and hashes.
pub const MANIFEST: &str = "MANIFEST";
/// Names of the files that `MANIFEST` always covers, in its order.
pub const COVERED: [&str; 3] = ["recording.json", "scenario.toml", "series.csv"];
/// Name of the file that it covers behind these if there is one.
pub const WAITS: &str = "waits.csv";
/// First line of `MANIFEST`.
const TITLE: &str = "pagetide recording";
/// What its last line begins with, and the end of the line before.
const CONTENT: &str = "\ncontent ";

/// 128 bits that name the bytes of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub u128);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The bytes of a recording's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Contents in the order of [`COVERED`].
    pub covered: [Vec<u8>; 3],
    /// Contents of [`WAITS`].
    pub waits: Option<Vec<u8>>,
    /// Contents of `MANIFEST`.
    pub manifest: Vec<u8>,
}

impl Files {
    /// The bytes of `recording`.
    ///
    /// # Panics
    /// When a row of the series does not have one value for each column, or there are waits in a
    /// recording of a version that has none.
    pub fn encode(recording: &Recording) -> Self {
        let covered = [
            encode_json(recording),
            recording.scenario_toml.clone().into_bytes(),
            encode_series(&recording.series),
        ];
        let waits = (!recording.waits.is_empty()).then(|| waits::encode(&recording.waits));
        assert!(waits.is_none() || recording.schema >= SCHEMA_WAITED, "waits are set by `waited`");
        let manifest = encode_manifest(recording.schema, &covered, waits.as_deref());
        Self { covered, waits, manifest }
    }

    /// Whether `MANIFEST` says that there is a file of waits.
    pub(crate) fn lists_waits(manifest: &[u8]) -> bool {
        let line = format!("\nfile {WAITS} ");
        manifest.windows(line.len()).any(|bytes| bytes == line.as_bytes())
    }

    /// The recording in these bytes; `folder` is where they came from, for messages only.
    ///
    /// # Errors
    /// Another schema, a file that is not what its name promises, a file that was changed.
    pub fn decode(&self, folder: &Path) -> Result<Recording, RecordingError> {
        let manifest_path = folder.join(MANIFEST);
        let (listed, listed_waits) = decode_manifest(&self.manifest, &manifest_path)?;
        let [json_path, scenario_path, series_path] = COVERED.map(|name| folder.join(name));
        let [json, scenario, series] = &self.covered;

        // Parse before comparing hashes: a place in a file helps more than "it differs".
        let mut recording = decode_json(json, &json_path)?;
        recording.scenario_toml = utf8(scenario, &scenario_path)?.to_owned();
        let constant = recording.series.constant; // from recording.json
        recording.series = Series { constant, ..decode_series(series, &series_path)? };
        for (path, (bytes, listed)) in
            [json_path, scenario_path, series_path].into_iter().zip(self.covered.iter().zip(listed))
        {
            listed.check(bytes, path)?;
        }
        if let (Some(listed), Some(bytes)) = (listed_waits, &self.waits) {
            let path = folder.join(WAITS);
            recording = recording.waited(waits::decode(bytes, &path)?);
            listed.check(bytes, path)?;
        }
        Ok(recording)
    }

    /// The hash over all of it, as the last line of `MANIFEST` has it.
    pub fn content_hash(&self) -> ContentHash {
        let end = self.manifest.windows(CONTENT.len()).position(|bytes| bytes == CONTENT.as_bytes());
        ContentHash(xxh3_128(&self.manifest[..end.map_or(self.manifest.len(), |end| end + 1)]))
    }
}

// ---- MANIFEST

/// What `MANIFEST` says about one file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Listed {
    length: u64,
    hash: u128,
}

impl Listed {
    fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, hash: xxh3_128(bytes) }
    }

    fn check(self, bytes: &[u8], path: PathBuf) -> Result<(), RecordingError> {
        let found = Self::of(bytes);
        let problem = if found.length != self.length {
            format!("it has {} bytes, `{MANIFEST}` says {}", found.length, self.length)
        } else if found.hash != self.hash {
            format!("its hash is {:032x}, `{MANIFEST}` says {:032x}", found.hash, self.hash)
        } else {
            return Ok(());
        };
        Err(RecordingError::Changed { path, problem })
    }
}

/// All of `MANIFEST` but its last line.
fn manifest_lines(schema: u32, covered: &[Vec<u8>; 3], waits: Option<&[u8]>) -> String {
    let mut text = format!("{TITLE}\nschema {schema}\n");
    let always = COVERED.into_iter().zip(covered.iter().map(Vec::as_slice));
    for (name, bytes) in always.chain(waits.map(|bytes| (WAITS, bytes))) {
        let Listed { length, hash } = Listed::of(bytes);
        text.push_str(&format!("file {name} {length} {hash:032x}\n"));
    }
    text
}

fn encode_manifest(schema: u32, covered: &[Vec<u8>; 3], waits: Option<&[u8]>) -> Vec<u8> {
    let lines = manifest_lines(schema, covered, waits);
    let hash = ContentHash(xxh3_128(lines.as_bytes()));
    format!("{lines}content {hash}\n").into_bytes()
}

/// What `MANIFEST` says of the files that are always there, and of the waits if there are any.
fn decode_manifest(bytes: &[u8], path: &Path) -> Result<([Listed; 3], Option<Listed>), RecordingError> {
    let text = utf8(bytes, path)?;
    let malformed = |line: u64, problem: String| {
        Err(RecordingError::Malformed { path: path.to_owned(), line, column: 1, problem })
    };
    let mut lines = text.lines().peekable();
    if lines.next() != Some(TITLE) {
        return malformed(1, format!("expected `{TITLE}`"));
    }
    match lines.next().and_then(|line| line.strip_prefix("schema ")?.parse::<u64>().ok()) {
        Some(schema) if is_known(schema) => {}
        Some(found) => return Err(RecordingError::Schema { path: path.to_owned(), found }),
        None => return malformed(2, "expected `schema` and a number".into()),
    }
    let mut listed = [Listed { length: 0, hash: 0 }; 3];
    for ((slot, name), number) in listed.iter_mut().zip(COVERED).zip(3..) {
        let Some(found) = lines.next().and_then(|line| decode_file_line(line, name)) else {
            return malformed(number, format!("expected `file {name}`, its length and its hash"));
        };
        *slot = found;
    }
    let waits = lines.peek().and_then(|line| decode_file_line(line, WAITS));
    let covered_end = text.find(CONTENT).map_or(text.len(), |end| end + 1);
    let hash = ContentHash(xxh3_128(&bytes[..covered_end]));
    if text[covered_end..] != format!("content {hash}\n") {
        let line = if waits.is_some() { 7 } else { 6 };
        return malformed(line, "expected `content` and the hash of the lines above".into());
    }
    Ok((listed, waits))
}

fn is_known(schema: u64) -> bool {
    (u64::from(SCHEMA_OLDEST)..=u64::from(SCHEMA)).contains(&schema)
}

fn decode_file_line(line: &str, name: &str) -> Option<Listed> {
    let rest = line.strip_prefix("file ")?.strip_prefix(name)?.strip_prefix(' ')?;
    let (length, hash) = rest.split_once(' ')?;
    Some(Listed { length: length.parse().ok()?, hash: u128::from_str_radix(hash, 16).ok()? })
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

fn encode_json(recording: &Recording) -> Vec<u8> {
    let wall_ns = recording.wall_ns.filter(|_| !recording.is_computed());
    let document = Document { recording, wall_ns };
    let mut bytes = serde_json::to_vec_pretty(&document).expect("maps with text keys always serialise");
    bytes.push(b'\n');
    bytes
}

fn decode_json(bytes: &[u8], path: &Path) -> Result<Recording, RecordingError> {
    let text = utf8(bytes, path)?;
    let mut recording: Recording = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line() as u64, error.column() as u64);
        let message = error.to_string();
        let place = format!(" at line {line} column {column}");
        let problem = message.strip_suffix(&place).unwrap_or(&message).to_owned();
        RecordingError::Malformed { path: path.to_owned(), line: line.max(1), column: column.max(1), problem }
    })?;
    if !is_known(recording.schema.into()) {
        return Err(RecordingError::Schema { path: path.to_owned(), found: recording.schema.into() });
    }
    if recording.is_computed() {
        recording.wall_ns = None;
    }
    Ok(recording)
}

// ---- series.csv

const TIME_COLUMN: &str = "time_ns";

fn encode_series(series: &Series) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = std::iter::once(TIME_COLUMN).chain(series.columns.iter().map(String::as_str));
    writer.write_record(names).expect("memory takes every write");
    for (time, values) in &series.rows {
        assert_eq!(values.len(), series.columns.len(), "the row at {time} ns does not fit the columns");
        let fields = std::iter::once(time).chain(values).map(u64::to_string);
        writer.write_record(fields).expect("memory takes every write");
    }
    writer.into_inner().expect("memory takes every write")
}

fn decode_series(bytes: &[u8], path: &Path) -> Result<Series, RecordingError> {
    let text = utf8(bytes, path)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let malformed =
        |line, column, problem| RecordingError::Malformed { path: path.to_owned(), line, column, problem };
    let broken = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        malformed(line, 1, csv_problem(&error))
    };
    let header = reader.headers().map_err(broken)?;
    if header.get(0) != Some(TIME_COLUMN) {
        return Err(malformed(1, 1, format!("expected the column `{TIME_COLUMN}`")));
    }
    let columns: Vec<String> = header.iter().skip(1).map(String::from).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(1, csv::Position::line);
        let mut values = Vec::with_capacity(columns.len());
        let (mut time, mut column) = (None, 1_u64);
        for field in &record {
            let number = field.parse::<u64>().map_err(|_| {
                malformed(line, column, format!("`{}` is not a whole number", field.escape_default()))
            })?;
            if time.is_none() {
                time = Some(number)
            } else {
                values.push(number)
            }
            column += field.len() as u64 + 1;
        }
        let time = time.ok_or_else(|| malformed(line, 1, "the row is empty".into()))?;
        rows.push((time, values));
    }
    Ok(Series { columns, rows, ..Series::default() })
}

pub(crate) fn csv_problem(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the row has {len} fields, the header {expected_len}")
        }
        _ => error.to_string(),
    }
}

// ---- text

pub(crate) fn utf8<'a>(bytes: &'a [u8], path: &Path) -> Result<&'a str, RecordingError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        RecordingError::Malformed {
            path: path.to_owned(),
            line: before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1,
            column: (before.len() - line_start) as u64 + 1,
            problem: format!("byte {:#04x} is not UTF-8 text", bytes[before.len()]),
        }
    })
}

#[cfg(test)]
pub(crate) mod tests;
