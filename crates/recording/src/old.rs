//! Recordings of versions 1 to 4: `series.csv` and `waits.csv`, read and written no more.
//!
//! Version 2 brought what the OOM killer took, version 3 waits, version 4 in the middle of what a task waited.
//! Samples were a part of `recording.json`, and nobody wrote down which pagetide had made a recording.

use std::path::Path;

use crate::disk::utf8;
use crate::waits::{HEADER, decode_lengths, futility, named, parsed};
use crate::{RecordingError, Series, Wait, WaitEnd, WaitKind};

const TIME_COLUMN: &str = "time_ns";
/// Columns of waits in version 3.
const COLUMNS: usize = 11;

pub(crate) fn decode_series(bytes: &[u8], path: &Path) -> Result<Series, RecordingError> {
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

fn csv_problem(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the row has {len} fields, the header {expected_len}")
        }
        _ => error.to_string(),
    }
}

pub(crate) fn decode_waits(bytes: &[u8], path: &Path) -> Result<Vec<Wait>, RecordingError> {
    let text = utf8(bytes, path)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let malformed =
        |line, problem| RecordingError::Malformed { path: path.to_owned(), line, column: 1, problem };
    let broken = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        malformed(line, csv_problem(&error))
    };
    let headers = reader.headers().map_err(broken)?;
    if headers != HEADER[..] && headers != HEADER[..COLUMNS] {
        return Err(malformed(1, format!("expected the columns `{}`", HEADER[..COLUMNS].join(","))));
    }
    let mut waits = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(1, csv::Position::line);
        let wait = decode_row(&record).map_err(|column| {
            let field = record.get(column).unwrap_or_default().escape_default();
            malformed(line, format!("`{field}` is no `{}`", HEADER[column]))
        })?;
        waits.push(wait);
    }
    Ok(waits)
}

/// One row; an error is the column that cannot be read.
fn decode_row(record: &csv::StringRecord) -> Result<Wait, usize> {
    let field = |column: usize| record.get(column).ok_or(column);
    let number = |column| parsed::<u64>(field(column)?).ok_or(column);
    Ok(Wait {
        phase: field(0)?.to_owned(),
        task: field(1)?.to_owned(),
        wait: field(2)?.to_owned(),
        kind: named(&WaitKind::ALL, field(3)?).ok_or(3_usize)?,
        ended: named(&WaitEnd::ALL, field(4)?).ok_or(4_usize)?,
        futile: futility(field(5)?).ok_or(5_usize)?,
        count: number(6)?,
        requested_ns: if field(7)?.is_empty() { None } else { Some(number(7)?) },
        spent_ns: number(8)?,
        longest_ns: number(9)?,
        lengths: decode_lengths(field(10)?).ok_or(10_usize)?,
        within: record.get(11).unwrap_or_default().to_owned(),
        on: record.get(12).unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_row_is_named_with_its_place() {
        let series = |text: &str| decode_series(text.as_bytes(), Path::new("s.csv")).unwrap_err().to_string();
        let header = HEADER[..COLUMNS].join(",");
        let waits = |text: String| decode_waits(text.as_bytes(), Path::new("w.csv")).unwrap_err().to_string();
        let row = |row: &str| waits(format!("{header}\n{row}\n"));
        let errors = [
            series("time_ns,nr_free_pages\n0,900\n100"),
            series("time_ns,nr_free_pages\n0,-9\n"),
            series(""),
            waits("task,wait\n".to_owned()),
            row("p,t,w,io"),
            row("p,t,w,naps,wake,no,1,,5,5,3:1"),
            row("p,t,w,io,luck,no,1,,5,5,3:1"),
            row("p,t,w,io,wake,maybe,1,,5,5,3:1"),
            row("p,t,w,io,wake,no,-1,,5,5,3:1"),
            row("p,t,w,io,wake,no,1,0x5,5,5,3:1"),
            row("p,t,w,io,wake,no,1,,5,5,3=1"),
            row("p,t,w,io,wake,no,01,,5,5,300:1"),
        ];
        insta::assert_snapshot!(errors.join("\n"), @"
        `s.csv`, line 3, column 1: the row has 1 fields, the header 2
        `s.csv`, line 2, column 3: `-9` is not a whole number
        `s.csv`, line 1, column 1: expected the column `time_ns`
        `w.csv`, line 1, column 1: expected the columns `phase,task,wait,kind,ended,futile,count,requested_ns,spent_ns,longest_ns,lengths`
        `w.csv`, line 2, column 1: the row has 4 fields, the header 11
        `w.csv`, line 2, column 1: `naps` is no `kind`
        `w.csv`, line 2, column 1: `luck` is no `ended`
        `w.csv`, line 2, column 1: `maybe` is no `futile`
        `w.csv`, line 2, column 1: `-1` is no `count`
        `w.csv`, line 2, column 1: `0x5` is no `requested_ns`
        `w.csv`, line 2, column 1: `3=1` is no `lengths`
        `w.csv`, line 2, column 1: `01` is no `count`
        ");
    }
}
