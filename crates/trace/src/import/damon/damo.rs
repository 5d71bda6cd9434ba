//! What `damo record` writes: JSON, by itself or compressed by zlib, which is its default (damo 2.0 to 3.4;
//! `--output_type json` and `json_compressed`).
//!
//! ```text
//! [{"intervals": {"sample_us": "5000", "aggr_us": "100000", ...} or null, "target_id": 0, ...,
//!   "snapshots": [{"start_time": "18408559490", "end_time": "18525803000",          nanoseconds
//!     "regions": [{"start": "94,411,850,973,184", "end": "94,411,872,051,200",      bytes
//!       "nr_accesses": {"samples": 19, "percent": null}, ...}, ...]}, ...]}, ...]   a record for each target
//! ```
//! Numbers may be numbers, texts with commas, or times with units (`5 ms`, `1 s 500 ms`). What else is there is passed
//! over: ages, statistics of schemes. It is read as it is unpacked, so that only what was used is in memory.

use std::fmt;
use std::io::{self, BufReader, Read};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use super::recording::{Recording, Snapshot, Target};
use crate::import::ImportError;

/// Two hours of a hundred regions at ten snapshots a second.
const TEXT_LEN_MAX: u64 = 4 << 30;
/// A text between two quotes that is longer is no number and no name.
const WORD_LEN_MAX: u64 = 4 << 20;
const REMEDY: &str = "record it again, or have damo write it again: `damo convert_record_format`";

/// A number, as damo may write one.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a number was expected")]
enum Amount {
    Whole(u64),
    Real(f64),
    Text(String),
}

impl Amount {
    /// So many, or so many of a unit that has `unit` of the smallest.
    fn of(&self, unit: u64) -> Result<u64, String> {
        let wrong = || match self {
            Self::Whole(number) => format!("{number} is too much"),
            Self::Real(number) => format!("{number} is no amount"),
            Self::Text(text) => format!("`{text}` is no number"),
        };
        match self {
            Self::Whole(number) => number.checked_mul(unit),
            Self::Real(number) => rounded(*number * unit as f64),
            Self::Text(text) => {
                let text: String = text.chars().filter(|char| *char != ',' && *char != ' ').collect();
                match text.parse::<u64>() {
                    Ok(number) => number.checked_mul(unit),
                    Err(_) => time_ns(&text),
                }
            }
        }
        .ok_or_else(wrong)
    }
}

fn rounded(number: f64) -> Option<u64> {
    // Beyond 2^63 is nothing that is counted here.
    (number >= 0.0 && number < (1_u64 << 63) as f64).then(|| number.round() as u64)
}

/// Nanoseconds of `1s500.25ms`.
fn time_ns(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 7] =
        [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9), ("d", 86_400e9)];
    let (mut rest, mut sum_ns) = (text, 0.0);
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|char: char| char.is_ascii_alphabetic())?);
        let end = behind.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name)?;
        sum_ns += number.parse::<f64>().ok()? * unit;
        rest = behind;
    }
    rounded(sum_ns)
}

#[derive(Debug, Deserialize)]
struct IntervalsForm {
    sample_us: Amount,
    aggr_us: Amount,
}

#[derive(Debug, Deserialize)]
struct AccessesForm {
    samples: Amount,
}

#[derive(Debug, Deserialize)]
struct RegionForm {
    start: Amount,
    end: Amount,
    nr_accesses: AccessesForm,
}

/// Regions of a snapshot, each taken as it is read: what was not used is not kept.
#[derive(Debug, Default)]
struct Regions {
    snapshot: Snapshot,
    count: u64,
}

impl<'de> Deserialize<'de> for Regions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Regions;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("regions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Regions, A::Error> {
                let mut regions = Regions::default();
                while let Some(form) = sequence.next_element()? {
                    regions.take(&form).map_err(A::Error::custom)?;
                }
                Ok(regions)
            }
        }
        deserializer.deserialize_seq(Each)
    }
}

impl Regions {
    fn take(&mut self, form: &RegionForm) -> Result<(), String> {
        self.count += 1;
        let (start, end) = (form.start.of(1)?, form.end.of(1)?);
        match (start, end) {
            (0, 0) => Ok(()),
            _ => self.snapshot.region(start, end, form.nr_accesses.samples.of(1)?),
        }
    }
}

#[derive(Debug, Deserialize)]
struct SnapshotForm {
    start_time: Option<Amount>,
    end_time: Amount,
    regions: Regions,
}

#[derive(Debug, Deserialize)]
struct RecordForm {
    intervals: Option<IntervalsForm>,
    target_id: Option<u64>,
    snapshots: Vec<Told>,
}

/// A snapshot, and how many regions it has.
#[derive(Debug, Deserialize)]
#[serde(try_from = "SnapshotForm")]
struct Told(Snapshot, u64);

impl TryFrom<SnapshotForm> for Told {
    type Error = String;

    fn try_from(form: SnapshotForm) -> Result<Self, String> {
        let start_ns = form.start_time.map(|time| time.of(1)).transpose()?;
        let Regions { snapshot, count } = form.regions;
        Ok(Self(Snapshot { start_ns, end_ns: form.end_time.of(1)?, ..snapshot }, count))
    }
}

/// A target, and how many regions its snapshots have.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RecordForm")]
struct Record(Target, u64);

impl TryFrom<RecordForm> for Record {
    type Error = String;

    fn try_from(form: RecordForm) -> Result<Self, String> {
        let mut samples = None;
        if let Some(IntervalsForm { sample_us, aggr_us }) = form.intervals {
            let (sample_ns, aggr_ns) = (sample_us.of(1000)?, aggr_us.of(1000)?);
            samples = aggr_ns.checked_div(sample_ns).and_then(|samples| u32::try_from(samples).ok());
        }
        let mut target = Target { id: form.target_id.unwrap_or(0), samples, ..Target::default() };
        let mut regions = 0;
        for Told(snapshot, count) in form.snapshots {
            target.push(snapshot)?;
            regions += count;
        }
        Ok(Self(target, regions))
    }
}

/// Whether an unpacked file that begins so is one of damo's.
pub(super) fn looks_like(head: &str) -> bool {
    let head = head.trim_start();
    head.starts_with('[') && head.contains("\"target_id\"") && head.contains("\"snapshots\"")
}

/// A source that is no longer than [`TEXT_LEN_MAX`], nor a word in it than [`WORD_LEN_MAX`]: some kilobytes of zlib may
/// be gigabytes of one name.
struct Bounded<R> {
    source: R,
    read: u64,
    /// Bytes since the last quote.
    word: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.read += count as u64;
        for byte in &buffer[..count] {
            self.word = if *byte == b'"' { 0 } else { self.word + 1 };
        }
        match (self.read > TEXT_LEN_MAX, self.word > WORD_LEN_MAX) {
            (true, _) => Err(io::Error::other(format!("it is longer than {} GiB", TEXT_LEN_MAX >> 30))),
            (_, true) => Err(io::Error::other(format!("a word in it has more than {WORD_LEN_MAX} bytes"))),
            _ => Ok(count),
        }
    }
}

/// Reads a file, unpacked.
pub(super) fn read(source: impl Read) -> Result<Recording, ImportError> {
    let source = BufReader::new(Bounded { source, read: 0, word: 0 });
    let records: Vec<Record> = serde_json::from_reader(source).map_err(|error| wrong(&error))?;
    let mut recording = Recording::default();
    for Record(target, regions) in records {
        recording.regions += regions;
        recording.targets.push(target);
    }
    Ok(recording)
}

fn wrong(error: &serde_json::Error) -> ImportError {
    let place = format!("line {}, column {}, of damo's JSON", error.line(), error.column());
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    let problem = match error.classify() {
        serde_json::error::Category::Io => format!("cannot be read further: {text}"),
        serde_json::error::Category::Eof => format!("it ends here: {text}"),
        _ => format!("it is not as damo writes it: {text}"),
    };
    ImportError::Document { place, problem, remedy: REMEDY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_texts_with_commas_and_times_with_units() {
        let amount = |text: &str, unit| Amount::Text(text.to_owned()).of(unit);
        assert_eq!(amount("94,411,850,973,184", 1), Ok(94_411_850_973_184));
        assert_eq!(amount("5000", 1000), Ok(5_000_000));
        assert_eq!(amount("5 ms", 1000), Ok(5_000_000));
        assert_eq!(amount("1 m 1.500 s", 1), Ok(61_500_000_000));
        assert_eq!(Amount::Real(1.5).of(1000), Ok(1500));
        let wrong = ["", "-1", "x", "5 parsecs", "1 s 5", "99999999999999999999", "NaN s"];
        assert!(wrong.iter().all(|text| amount(text, 1).is_err()));
        assert!(Amount::Whole(u64::MAX).of(1000).is_err() && Amount::Real(-1.0).of(1).is_err());
    }
}
