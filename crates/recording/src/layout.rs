//! What is called how in the folder of a recording.

use std::path::Path;

use crate::SCHEMA_OLDEST;

/// Says what a recording consists of; written last.
pub const MANIFEST: &str = "MANIFEST";
/// Files that every recording has.
pub(crate) const JSON: &str = "recording.json";
pub(crate) const SCENARIO: &str = "scenario.toml";
pub(crate) const SERIES: &str = "series.parquet";
/// Those that it has if there is something to put there.
pub(crate) const SAMPLES: &str = "samples.parquet";
pub(crate) const WAITS: &str = "waits.parquet";
/// The folder of events.
pub const EVENTS: &str = "events";
/// Where a recording that grows has its counters over time.
pub(crate) const CHUNKS: &str = "series";

/// The version of the last recordings of texts, and what they had in place of tables.
const LAST_OF_TEXTS: u32 = 4;
pub(crate) const OLD_SERIES: &str = "series.csv";
pub(crate) const OLD_WAITS: &str = "waits.csv";

/// The files of a version: those that there always are, and those that there may be behind them.
pub(crate) const fn files_of(schema: u32) -> ([&'static str; 3], &'static [&'static str]) {
    match schema {
        SCHEMA_OLDEST..=LAST_OF_TEXTS => ([JSON, SCENARIO, OLD_SERIES], &[OLD_WAITS]),
        _ => ([JSON, SCENARIO, SERIES], &[SAMPLES, WAITS]),
    }
}

/// File `number` of events.
pub(crate) fn event_file(number: usize) -> String {
    format!("{EVENTS}/{number:05}.parquet")
}

/// File `number` of counters over time, of a recording that grows.
pub(crate) fn chunk_file(number: usize) -> String {
    format!("{CHUNKS}/{number:05}.parquet")
}

/// Whether a folder without `MANIFEST` is of a run that did not end.
pub(crate) fn is_growing(folder: &Path) -> bool {
    folder.join(CHUNKS).is_dir() && folder.join(JSON).is_file()
}
