//! Which format a trace has, by its first bytes.
//!
//! Text is what has no control bytes but tab, carriage return and line feed; its heading decides, or
//! the number of its columns.
//! Anything else is `oracleGeneral` if its first records make sense as such: time does not run
//! backwards, and next accesses are request numbers.

use super::columns::Columns;
use super::csv::{self, Line};
use super::input::LINE_LEN_MAX;
use super::oracle::{self, RECORD_LEN};
use super::{Place, TraceError, TraceFormat, TraceProblem};

/// What a trace is.
pub(super) enum Detected {
    /// Lines with these columns, below a heading or not.
    Text { columns: Columns, heading: bool },
    /// Records of `oracleGeneral`.
    Records,
}

/// What the trace that begins with `head`, which is not empty, is; `wanted` overrides what it looks
/// like.
pub(super) fn detect(head: &[u8], wanted: Option<TraceFormat>) -> Result<Detected, TraceError> {
    if wanted == Some(TraceFormat::OracleGeneral) {
        return Ok(Detected::Records);
    }
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return Err(TraceError::at(Place::Byte(0), TraceProblem::NotUtf8)); // UTF-16 with a byte order mark.
    }
    let is_binary = head[..head.len().min(LINE_LEN_MAX)].iter().any(|&byte| csv::is_control(byte));
    match wanted {
        None if is_binary => detect_binary(head).map(|()| Detected::Records),
        _ => detect_text(head, wanted),
    }
}

fn detect_binary(head: &[u8]) -> Result<(), TraceError> {
    /// More records would prove no more.
    const RECORDS_MAX: usize = 64;
    /// libCacheSim writes the largest number or a negative one for "never again"; no trace has
    /// more requests than this.
    const VTIME_MAX: i64 = 1 << 48;
    let fail = |problem| Err(TraceError::at(Place::Byte(0), problem));
    if head.len() < RECORD_LEN {
        return fail(TraceProblem::UnknownFormat("binary, and shorter than one record"));
    }
    let mut time_ns = 0;
    for record in head.as_chunks().0.iter().take(RECORDS_MAX) {
        let (request, next_vtime) = oracle::decode(record);
        let vtime_fits = (-2..=VTIME_MAX).contains(&next_vtime) || next_vtime == i64::MAX;
        if request.time_ns < time_ns || !vtime_fits {
            return fail(TraceProblem::UnknownFormat("binary, but not libCacheSim's oracleGeneral"));
        }
        time_ns = request.time_ns;
    }
    Ok(())
}

fn detect_text(head: &[u8], wanted: Option<TraceFormat>) -> Result<Detected, TraceError> {
    let mut lines = head.split(|&byte| byte == b'\n').zip(1..);
    let first = lines.find_map(|(line, number)| match csv::trim(line, number == 1) {
        Line::Skipped => None,
        Line::Content(content) => Some((content, number)),
    });
    let Some((line, number)) = first else {
        return Err(TraceError::at(Place::Byte(0), TraceProblem::Empty));
    };
    let fail = |problem| Err(TraceError::at(Place::Line(number), problem));
    let line = &line[..line.len().min(LINE_LEN_MAX)]; // The reader refuses a longer one.
    if std::str::from_utf8(line).is_err() {
        return if wanted.is_some() { Ok(unnamed(wanted)) } else { fail(TraceProblem::NotUtf8) };
    }
    if let Some(names) = csv::heading(line) {
        return match Columns::named(names, wanted) {
            Ok(columns) => Ok(Detected::Text { columns, heading: true }),
            Err(problem) => fail(problem),
        };
    }
    let by_count = match csv::fields(line).map(|fields| fields.len()) {
        Ok(5) => Some(TraceFormat::BlockCsv),
        Ok(3) => Some(TraceFormat::ObjectCsv),
        Ok(7) => Some(TraceFormat::Msr),
        _ => None,
    };
    match wanted.or(by_count) {
        None => fail(TraceProblem::UnknownFormat(
            "text, but its first line neither names the columns nor has those of `version,time,op,size,lbn`, \
             `time,object,size` or `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`",
        )),
        format => Ok(unnamed(format)),
    }
}

fn unnamed(format: Option<TraceFormat>) -> Detected {
    let columns = Columns::unnamed(format.unwrap_or(TraceFormat::ObjectCsv));
    Detected::Text { columns, heading: false }
}
