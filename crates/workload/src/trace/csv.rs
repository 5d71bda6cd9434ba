//! The two text formats, parsed by hand: a general CSV reader would spend more time on quotes,
//! which neither has, than all else takes.
//!
//! `version,time,op,size,lbn` (block traces of CloudPhysics, as published with libCacheSim):
//! - `version` changes nothing here;
//! - `time` is in **seconds**. Nothing says so; inferred from a published part of 113872 requests
//!   whose times span 7200: two hours at 16 requests/s, where microseconds would make it a disk of
//!   16 million requests/s;
//! - `op` is a SCSI operation code in hexadecimal: `08`, `28`, `a8`, `88` read (6, 10, 12 and
//!   16-byte commands), `0a`, `2a`, `aa`, `8a` write; all others move no data that matters here,
//!   and are skipped and counted;
//! - `size` is in bytes;
//! - `lbn` is a logical block of 512 bytes.
//!
//! `time,object,size`: seconds, a number, bytes; all are reads. Seconds may have decimals in both.
//!
//! A first line with letters in place of all its numbers is a heading; empty lines and lines that
//! start with `#` do not count.

use std::io::Read;

use super::input::Input;
use super::{Request, RequestKind, TraceError, TraceFormat, TraceProblem};

/// Bytes of the logical block that SCSI disks count in.
const BLOCK_LEN: u64 = 512;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_MAX: u64 = u64::MAX / NANOS_PER_SECOND - 1;

/// What the columns of a text trace mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    Block,
    Object,
    /// It is not a text trace.
    None,
}

/// A line without its line feed.
pub(super) enum Line<'a> {
    /// Empty, or a remark.
    Skipped,
    /// Something to parse.
    Content(&'a [u8]),
}

/// Takes the carriage return off a line, and the byte order mark off the first.
#[inline]
pub(super) fn trim(line: &[u8], is_first: bool) -> Line<'_> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = if is_first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
    if line.is_empty() || line[0] == b'#' { Line::Skipped } else { Line::Content(line) }
}

/// Whether text has no such byte.
#[inline]
pub(super) fn is_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\r' | b'\n')
}

/// The next request. `heading_allowed` until the first line that counts was read.
#[inline]
pub(super) fn next<R: Read>(
    input: &mut Input<R>,
    columns: Columns,
    heading_allowed: &mut bool,
    skipped: &mut u64,
) -> Result<Option<Request>, TraceError> {
    loop {
        let is_first = input.position() == 0;
        let Some(line) = input.line()? else { return Ok(None) };
        let Line::Content(line) = trim(line, is_first) else { continue };
        let may_be_heading = std::mem::replace(heading_allowed, false);
        let parsed = match columns {
            Columns::Block => block(line),
            Columns::Object | Columns::None => object(line),
        };
        match parsed {
            Ok(Some(request)) => return Ok(Some(request)),
            Ok(None) => *skipped += 1,
            Err(_) if may_be_heading && is_heading(line) => {}
            Err(fault) => {
                let problem = explain(line, columns, fault);
                return Err(TraceError::at(input.line_place(), problem));
            }
        }
    }
}

/// A line of `version,time,op,size,lbn`; nothing for an operation that is skipped.
#[inline]
fn block(line: &[u8]) -> Result<Option<Request>, Fault> {
    let mut fields = Fields { line, at: 0 };
    let _version = fields.number("version", u64::MAX)?;
    fields.comma()?;
    let time_ns = fields.seconds("time")?;
    fields.comma()?;
    let op = fields.hex_byte("op")?;
    fields.comma()?;
    let size = fields.number("size", u64::from(u32::MAX))?;
    fields.comma()?;
    let lbn = fields.number("lbn", u64::MAX / BLOCK_LEN)?;
    fields.end()?;
    let kind = match op {
        0x08 | 0x28 | 0xa8 | 0x88 => RequestKind::Read,
        0x0a | 0x2a | 0xaa | 0x8a => RequestKind::Write,
        _ => return Ok(None),
    };
    Ok(Some(Request {
        time_ns,
        kind,
        object: lbn,
        offset_bytes: lbn * BLOCK_LEN,
        size_bytes: size as u32, // At most u32::MAX, checked above.
    }))
}

/// A line of `time,object,size`.
#[inline]
fn object(line: &[u8]) -> Result<Option<Request>, Fault> {
    let mut fields = Fields { line, at: 0 };
    let time_ns = fields.seconds("time")?;
    fields.comma()?;
    let object = fields.number("object", u64::MAX)?;
    fields.comma()?;
    let size = fields.number("size", u64::from(u32::MAX))?;
    fields.end()?;
    Ok(Some(Request {
        time_ns,
        kind: RequestKind::Read,
        object,
        offset_bytes: 0,
        size_bytes: size as u32, // At most u32::MAX, checked above.
    }))
}

/// What is wrong with a line; small, so that the good case stays fast. `start` is where the field
/// begins.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Columns,
    NotANumber { column: &'static str, start: usize },
    NotHex { column: &'static str, start: usize },
    TooLarge { column: &'static str, start: usize, max: u64 },
}

/// A cursor over the fields of a line.
struct Fields<'a> {
    line: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    #[inline(always)]
    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn digit(&mut self) -> Option<u64> {
        let digit = self.peek()?.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        self.at += 1;
        Some(u64::from(digit))
    }

    /// The digits of a whole number of at most `max`.
    #[inline(always)]
    fn digits(&mut self, column: &'static str, max: u64) -> Result<u64, Fault> {
        self.skip_blanks();
        let start = self.at;
        let mut value = 0_u64;
        while let Some(digit) = self.digit() {
            value = (value.checked_mul(10))
                .and_then(|tens| tens.checked_add(digit))
                .ok_or(Fault::TooLarge { column, start, max })?;
        }
        if self.at == start {
            return Err(Fault::NotANumber { column, start });
        }
        if value > max {
            return Err(Fault::TooLarge { column, start, max });
        }
        Ok(value)
    }

    /// A whole number of at most `max`, and nothing after it.
    #[inline(always)]
    fn number(&mut self, column: &'static str, max: u64) -> Result<u64, Fault> {
        let start = self.at;
        let value = self.digits(column, max)?;
        self.field_ends(Fault::NotANumber { column, start })?;
        Ok(value)
    }

    /// Seconds as nanoseconds; decimals beyond the ninth do not count.
    #[inline(always)]
    fn seconds(&mut self, column: &'static str) -> Result<u64, Fault> {
        let start = self.at;
        let mut nanos = self.digits(column, SECONDS_MAX)? * NANOS_PER_SECOND;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let mut unit = NANOS_PER_SECOND / 10;
            while let Some(digit) = self.digit() {
                nanos += digit * unit;
                unit /= 10;
            }
        }
        self.field_ends(Fault::NotANumber { column, start })?;
        Ok(nanos)
    }

    /// One or two hexadecimal digits, with or without `0x`.
    #[inline(always)]
    fn hex_byte(&mut self, column: &'static str) -> Result<u8, Fault> {
        self.skip_blanks();
        if matches!(self.line.get(self.at..), Some([b'0', b'x' | b'X', ..])) {
            self.at += 2;
        }
        let start = self.at;
        let mut value = 0_u8;
        while let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) {
            if self.at - start == 2 {
                return Err(Fault::NotHex { column, start });
            }
            value = (value << 4) | (digit as u8); // A digit is below 16.
            self.at += 1;
        }
        if self.at == start {
            return Err(Fault::NotHex { column, start });
        }
        self.field_ends(Fault::NotHex { column, start })?;
        Ok(value)
    }

    /// Only blanks may stand between a value and the next comma or the end.
    #[inline(always)]
    fn field_ends(&mut self, fault: Fault) -> Result<(), Fault> {
        self.skip_blanks();
        if matches!(self.peek(), None | Some(b',')) { Ok(()) } else { Err(fault) }
    }

    #[inline(always)]
    fn comma(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b',') {
            return Err(Fault::Columns);
        }
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn end(&self) -> Result<(), Fault> {
        if self.at == self.line.len() { Ok(()) } else { Err(Fault::Columns) }
    }
}

/// A heading has a letter or a quote where a request has numbers, in every column.
fn is_heading(line: &[u8]) -> bool {
    line.split(|&byte| byte == b',').all(|field| {
        let first = field.trim_ascii().first();
        first.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'"' | b'_'))
    })
}

/// The fault of a line in words.
#[cold]
fn explain(line: &[u8], columns: Columns, fault: Fault) -> TraceProblem {
    let (format, expected) = match columns {
        Columns::Block => (TraceFormat::BlockCsv, "version,time,op,size,lbn"),
        Columns::Object | Columns::None => (TraceFormat::ObjectCsv, "time,object,size"),
    };
    if line.iter().any(|&byte| is_control(byte)) {
        return TraceProblem::BinaryData(format);
    }
    if std::str::from_utf8(line).is_err() {
        return TraceProblem::NotUtf8;
    }
    let found = line.split(|&byte| byte == b',').count();
    if found != expected.split(',').count() {
        return TraceProblem::Columns { found, expected };
    }
    let text = |start: usize| shortened_field(&line[start..]);
    match fault {
        Fault::Columns => TraceProblem::Columns { found, expected },
        Fault::NotANumber { column, start } => {
            TraceProblem::Field { column, text: text(start), expected: "a number" }
        }
        Fault::NotHex { column, start } => {
            TraceProblem::Field { column, text: text(start), expected: "a hexadecimal byte" }
        }
        Fault::TooLarge { column, start, max } => TraceProblem::TooLarge { column, text: text(start), max },
    }
}

/// The field that `bytes` begin with, short enough for a message.
fn shortened_field(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 40;
    let field = bytes.split(|&byte| byte == b',').next().unwrap_or_default();
    let text = String::from_utf8_lossy(field);
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() { format!("{shown}...") } else { shown }
}
