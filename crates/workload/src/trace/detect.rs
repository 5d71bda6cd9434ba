//! Which format a trace has, by its first bytes.
//!
//! Text is what has no control bytes but tab, carriage return and line feed; its columns decide.
//! Anything else is `oracleGeneral` if its first records make sense as such: time does not run
//! backwards, and next accesses are request numbers.

use super::csv::{self, Line};
use super::input::LINE_LEN_MAX;
use super::oracle::{self, RECORD_LEN};
use super::{Place, TraceError, TraceFormat, TraceProblem};

/// The format of a trace that begins with `head`, which is not empty.
pub(super) fn detect(head: &[u8]) -> Result<TraceFormat, TraceError> {
    let fail = |problem| Err(TraceError::at(Place::Byte(0), problem));
    if head.starts_with(&[0x1f, 0x8b]) {
        return fail(TraceProblem::Compressed("gzip"));
    }
    if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return fail(TraceProblem::Compressed("zstd"));
    }
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return fail(TraceProblem::NotUtf8); // UTF-16 with a byte order mark.
    }
    let text = &head[..head.len().min(LINE_LEN_MAX)];
    if text.iter().any(|&byte| csv::is_control(byte)) { detect_binary(head) } else { detect_text(text) }
}

fn detect_binary(head: &[u8]) -> Result<TraceFormat, TraceError> {
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
    Ok(TraceFormat::OracleGeneral)
}

fn detect_text(text: &[u8]) -> Result<TraceFormat, TraceError> {
    let mut lines = text.split(|&byte| byte == b'\n').zip(1..);
    let first = lines.find_map(|(line, number)| match csv::trim(line, number == 1) {
        Line::Skipped => None,
        Line::Content(content) => Some((content, number)),
    });
    let Some((line, number)) = first else {
        return Err(TraceError::at(Place::Byte(0), TraceProblem::Empty));
    };
    let fail = |problem| Err(TraceError::at(Place::Line(number), problem));
    if std::str::from_utf8(line).is_err() {
        return fail(TraceProblem::NotUtf8);
    }
    match line.split(|&byte| byte == b',').count() {
        5 => Ok(TraceFormat::BlockCsv),
        3 => Ok(TraceFormat::ObjectCsv),
        _ => fail(TraceProblem::UnknownFormat(
            "text, but neither `version,time,op,size,lbn` nor `time,object,size`",
        )),
    }
}
