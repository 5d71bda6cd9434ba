//! The text formats: one request a line, columns with commas between them. `columns` knows which
//! column is what.
//!
//! Lines in one of three orders and without quotes, which is nearly all that there is, are parsed by
//! hand in one go: `version,time,op,size,lbn` (block traces of CloudPhysics, as published with
//! libCacheSim), `time,object,size`, and the columns of MSR Cambridge's block traces (`columns`). What
//! these do not read, for whatever reason, is read field by field, with quotes; that way also finds the
//! words for what is wrong.
//!
//! - time is in **seconds** unless the heading says otherwise, and may have decimals. Nothing says
//!   so of CloudPhysics' traces; inferred from a published part of 113872 requests whose times span
//!   7200: two hours at 16 requests/s, where microseconds would make it a disk of 16 million
//!   requests/s;
//! - MSR Cambridge's times are Windows filetimes (ticks of 100 ns), its operations `Read` and `Write`, its offsets and
//!   sizes in bytes, and each file is of one disk (the README of these traces at SNIA; Narayanan, Donnelly, Rowstron:
//!   Write Off-Loading, FAST 2008). Response times, in ticks, are what the disk of then took, and passed over;
//! - operations are SCSI codes in hexadecimal, or words: `08`, `28`, `a8`, `88` (6, 10, 12 and
//!   16-byte commands), `r`, `read`, `get` and `gets` read; `0a`, `2a`, `aa`, `8a`, `w`, `write`,
//!   `set`, `put`, `add` and `replace` write; other codes, `delete`, `flush` and `trim` move no data
//!   that matters here, and are skipped and counted;
//! - sizes are in bytes, block numbers count blocks of 512 bytes, and a device's offset makes the
//!   object of the block that it is in.
//!
//! Empty lines and lines that start with `#` do not count. Left out: fields with line feeds in them.

use std::io::Read;

use super::columns::{Address, Columns, Plain};
use super::error::Expected;
use super::input::Input;
use super::{Request, RequestKind, TraceError, TraceProblem};

/// Bytes of the logical block that SCSI disks count in.
const BLOCK_LEN: u64 = 512;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

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

/// What was seen of the text so far.
#[derive(Debug)]
pub(super) struct Seen {
    /// Whether a heading is still to come.
    pub(super) heading: bool,
    /// Lines that neither read nor write.
    pub(super) skipped: u64,
    /// Host and disk of MSR Cambridge's traces, as `usr,0`; empty before the first.
    disk: Vec<u8>,
}

impl Seen {
    /// Nothing yet, of text with a heading or without.
    pub(super) fn nothing(heading: bool) -> Self {
        Self { heading, skipped: 0, disk: Vec::new() }
    }
}

/// The next request.
#[inline]
pub(super) fn next<R: Read>(
    input: &mut Input<R>,
    columns: &Columns,
    seen: &mut Seen,
) -> Result<Option<Request>, TraceError> {
    loop {
        let is_first = input.position() == 0;
        let Some(line) = input.line()? else { return Ok(None) };
        let Line::Content(line) = trim(line, is_first) else { continue };
        if std::mem::replace(&mut seen.heading, false) {
            continue;
        }
        let fast = match columns.plain {
            Plain::Block => block(line),
            Plain::Object => object(line),
            Plain::Msr => msr(line, &seen.disk),
            Plain::No => Err(NotPlain),
        };
        let parsed = match fast {
            Ok(request) => Ok(request),
            Err(NotPlain) => any(line, columns, &mut seen.disk),
        };
        match parsed {
            Ok(Some(request)) => return Ok(Some(request)),
            Ok(None) => seen.skipped += 1,
            Err(problem) => return Err(TraceError::at(input.line_place(), problem)),
        }
    }
}

// ---- the fast orders

/// The line is to be read field by field.
struct NotPlain;

/// A line of `version,time,op,size,lbn`; nothing for an operation that is skipped.
#[inline]
fn block(line: &[u8]) -> Result<Option<Request>, NotPlain> {
    let mut fields = Fields { line, at: 0 };
    let _version = fields.number()?;
    fields.comma()?;
    let time_ns = fields.seconds()?;
    fields.comma()?;
    let op = fields.hex_byte()?;
    fields.comma()?;
    let size_bytes = u32::try_from(fields.number()?).map_err(|_| NotPlain)?;
    fields.comma()?;
    let lbn = fields.number()?;
    fields.end()?;
    let Some(kind) = scsi(op) else { return Ok(None) };
    let offset_bytes = lbn.checked_mul(BLOCK_LEN).ok_or(NotPlain)?;
    Ok(Some(Request { time_ns, kind, object: lbn, offset_bytes, size_bytes }))
}

/// A line of `time,object,size`.
#[inline]
fn object(line: &[u8]) -> Result<Option<Request>, NotPlain> {
    let mut fields = Fields { line, at: 0 };
    let time_ns = fields.seconds()?;
    fields.comma()?;
    let object = fields.number()?;
    fields.comma()?;
    let size_bytes = u32::try_from(fields.number()?).map_err(|_| NotPlain)?;
    fields.end()?;
    Ok(Some(Request { time_ns, kind: RequestKind::Read, object, offset_bytes: 0, size_bytes }))
}

/// A line of MSR Cambridge's that reads or writes that disk.
#[inline]
fn msr(line: &[u8], disk: &[u8]) -> Result<Option<Request>, NotPlain> {
    let mut fields = Fields { line, at: 0 };
    let ticks = fields.number()?;
    let time_ns = ticks.checked_mul(100).filter(|_| ticks <= time_max(100)).ok_or(NotPlain)?;
    fields.comma()?;
    if disk.is_empty() {
        return Err(NotPlain);
    }
    fields.word(disk)?;
    fields.comma()?;
    let kind = if fields.word(b"Read").is_ok() {
        RequestKind::Read
    } else {
        fields.word(b"Write")?;
        RequestKind::Write
    };
    fields.comma()?;
    let offset_bytes = fields.number()?;
    fields.comma()?;
    let size_bytes = u32::try_from(fields.number()?).map_err(|_| NotPlain)?;
    fields.comma()?;
    fields.number()?;
    fields.end()?;
    Ok(Some(Request { time_ns, kind, object: offset_bytes / BLOCK_LEN, offset_bytes, size_bytes }))
}

/// What a SCSI operation code does; `None` when it moves no data that matters here.
#[inline]
fn scsi(code: u8) -> Option<RequestKind> {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(RequestKind::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(RequestKind::Write),
        _ => None,
    }
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

    /// The digits of a whole number.
    #[inline(always)]
    fn digits(&mut self) -> Result<u64, NotPlain> {
        self.skip_blanks();
        let start = self.at;
        let mut value = 0_u64;
        while let Some(digit) = self.digit() {
            value = value.checked_mul(10).and_then(|tens| tens.checked_add(digit)).ok_or(NotPlain)?;
        }
        if self.at == start { Err(NotPlain) } else { Ok(value) }
    }

    /// A whole number and nothing after it.
    #[inline(always)]
    fn number(&mut self) -> Result<u64, NotPlain> {
        let value = self.digits()?;
        self.field_ends()?;
        Ok(value)
    }

    /// Seconds as nanoseconds; decimals beyond the ninth do not count.
    #[inline(always)]
    fn seconds(&mut self) -> Result<u64, NotPlain> {
        let whole = self.digits()?;
        if whole > time_max(NANOS_PER_SECOND) {
            return Err(NotPlain);
        }
        let mut nanos = whole * NANOS_PER_SECOND;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let mut unit = NANOS_PER_SECOND / 10;
            while let Some(digit) = self.digit() {
                nanos += digit * unit;
                unit /= 10;
            }
        }
        self.field_ends()?;
        Ok(nanos)
    }

    /// One or two hexadecimal digits, with or without `0x`.
    #[inline(always)]
    fn hex_byte(&mut self) -> Result<u8, NotPlain> {
        self.skip_blanks();
        if matches!(self.line.get(self.at..), Some([b'0', b'x' | b'X', ..])) {
            self.at += 2;
        }
        let start = self.at;
        let mut value = 0_u8;
        while let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) {
            if self.at - start == 2 {
                return Err(NotPlain);
            }
            value = (value << 4) | (digit as u8); // A digit is below 16.
            self.at += 1;
        }
        if self.at == start {
            return Err(NotPlain);
        }
        self.field_ends()?;
        Ok(value)
    }

    /// These bytes.
    #[inline(always)]
    fn word(&mut self, word: &[u8]) -> Result<(), NotPlain> {
        if !self.line[self.at..].starts_with(word) {
            return Err(NotPlain);
        }
        self.at += word.len();
        Ok(())
    }

    /// Only blanks may stand between a value and the next comma or the end.
    #[inline(always)]
    fn field_ends(&mut self) -> Result<(), NotPlain> {
        self.skip_blanks();
        if matches!(self.peek(), None | Some(b',')) { Ok(()) } else { Err(NotPlain) }
    }

    #[inline(always)]
    fn comma(&mut self) -> Result<(), NotPlain> {
        if self.peek() != Some(b',') {
            return Err(NotPlain);
        }
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn end(&self) -> Result<(), NotPlain> {
        if self.at == self.line.len() { Ok(()) } else { Err(NotPlain) }
    }
}

// ---- any order, with quotes, and what is wrong

/// The fields of a line without their quotes and the blanks around them. A quote within quotes stays
/// written twice.
pub(super) fn fields(line: &[u8]) -> Result<Vec<&[u8]>, TraceProblem> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let start = rest.trim_ascii_start();
        let (field, behind) = match start.strip_prefix(b"\"") {
            Some(quoted) => {
                let mut end = 0;
                while quoted.get(end) != Some(&b'"') || quoted.get(end + 1) == Some(&b'"') {
                    end += if quoted.get(end) == Some(&b'"') { 2 } else { 1 };
                    if end >= quoted.len() {
                        return Err(TraceProblem::Quotes);
                    }
                }
                (&quoted[..end], quoted[end + 1..].trim_ascii_start())
            }
            None => {
                let end = memchr::memchr(b',', start).unwrap_or(start.len());
                (&start[..end], &start[end..])
            }
        };
        fields.push(field.trim_ascii());
        match behind {
            [] => return Ok(fields),
            [b',', next @ ..] => rest = next,
            _ => return Err(TraceProblem::Quotes),
        }
    }
}

/// The names in a line, if it is a heading: letters, and nothing that begins as a number does.
pub(super) fn heading(line: &[u8]) -> Option<Vec<String>> {
    let fields = fields(line).ok()?;
    let begins = |field: &[u8], is_it: fn(&u8) -> bool| field.first().is_some_and(is_it);
    let number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.');
    if fields.iter().any(|field| begins(field, number))
        || !fields.iter().any(|field| begins(field, |byte| byte.is_ascii_alphabetic()))
    {
        return None;
    }
    Some(fields.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// A line with these columns; nothing for an operation that is skipped. `disk` is that of the lines before.
#[cold]
#[inline(never)]
fn any(line: &[u8], columns: &Columns, disk: &mut Vec<u8>) -> Result<Option<Request>, TraceProblem> {
    if line.iter().any(|&byte| is_control(byte)) {
        return Err(TraceProblem::BinaryData(columns.format()));
    }
    if std::str::from_utf8(line).is_err() {
        return Err(TraceProblem::NotUtf8);
    }
    let fields = fields(line)?;
    let found = fields.len();
    if found != columns.names.len() {
        return Err(TraceProblem::Columns { found, expected: columns.names.join(",") });
    }
    let field = |column: usize| Field { name: &columns.names[column], text: fields[column] };
    let time_ns = match columns.disk {
        Some(_) => field(columns.time).filetime(columns.time_unit_ns)?,
        None => field(columns.time).time(columns.time_unit_ns)?,
    };
    if let Some(place) = columns.disk {
        same_disk(disk, place.map(|column| fields[column]))?;
    }
    let kind = match columns.op {
        Some(op) => field(op).operation()?,
        None => Some(RequestKind::Read),
    };
    let size = field(columns.size).number(Expected::Number, u64::from(u32::MAX))?;
    let (address, place) = columns.address;
    let (object, offset_bytes) = match address {
        Address::Object => (field(place).number(Expected::Object, u64::MAX)?, 0),
        Address::Block => {
            let block = field(place).number(Expected::Number, u64::MAX / BLOCK_LEN)?;
            (block, block * BLOCK_LEN)
        }
        Address::Offset => {
            let offset = field(place).number(Expected::Number, u64::MAX)?;
            (offset / BLOCK_LEN, offset)
        }
    };
    let size_bytes = size as u32; // At most u32::MAX, checked above.
    Ok(kind.map(|kind| Request { time_ns, kind, object, offset_bytes, size_bytes }))
}

/// Notes the first disk, and refuses another.
fn same_disk(disk: &mut Vec<u8>, [host, number]: [&[u8]; 2]) -> Result<(), TraceProblem> {
    let found = [host, number].join(&b',');
    if disk.is_empty() {
        *disk = found;
    } else if *disk != found {
        let shown = |text: &[u8]| Field { name: "", text }.shown();
        return Err(TraceProblem::OtherDisk { disk: shown(&found), first: shown(disk) });
    }
    Ok(())
}

/// The largest whole number of units that nanoseconds can hold, with decimals.
const fn time_max(unit_ns: u64) -> u64 {
    u64::MAX / unit_ns - 1
}

/// A field and what its column is called.
struct Field<'a> {
    name: &'a str,
    text: &'a [u8],
}

impl Field<'_> {
    fn wrong(&self, expected: Expected) -> TraceProblem {
        TraceProblem::Field { column: self.name.to_owned(), text: self.shown(), expected }
    }

    fn too_large(&self, expected: Expected, max: u64) -> TraceProblem {
        TraceProblem::TooLarge { column: self.name.to_owned(), text: self.shown(), expected, max }
    }

    /// A whole number of at most `max`.
    fn number(&self, expected: Expected, max: u64) -> Result<u64, TraceProblem> {
        let text = self.text;
        if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
            return Err(self.wrong(expected));
        }
        let digit = |value: u64, byte: &u8| value.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
        let value = text.iter().try_fold(0_u64, digit).filter(|&value| value <= max);
        value.ok_or_else(|| self.too_large(expected, max))
    }

    /// A time in units of `unit_ns`, as nanoseconds; what is below a nanosecond does not count.
    fn time(&self, unit_ns: u64) -> Result<u64, TraceProblem> {
        let point = memchr::memchr(b'.', self.text);
        let (whole, decimals) = match point {
            Some(point) => (&self.text[..point], &self.text[point + 1..]),
            None => (self.text, &[][..]),
        };
        if !decimals.iter().all(u8::is_ascii_digit) || whole.is_empty() {
            return Err(self.wrong(Expected::Time));
        }
        let max = time_max(unit_ns);
        let number = Field { name: self.name, text: whole }.number(Expected::Time, max);
        let whole = number.map_err(|problem| match problem {
            TraceProblem::TooLarge { .. } => self.too_large(Expected::Time, max),
            _ => self.wrong(Expected::Time),
        })?;
        let mut unit = unit_ns;
        let part: u64 = (decimals.iter())
            .map(|byte| {
                unit /= 10;
                u64::from(byte - b'0') * unit
            })
            .sum();
        Ok(whole * unit_ns + part)
    }

    /// A whole number of ticks of `unit_ns`, as nanoseconds.
    fn filetime(&self, unit_ns: u64) -> Result<u64, TraceProblem> {
        Ok(self.number(Expected::Filetime, time_max(unit_ns))? * unit_ns)
    }

    /// What a request does; nothing when it moves no data that matters here.
    fn operation(&self) -> Result<Option<RequestKind>, TraceProblem> {
        let word = String::from_utf8_lossy(self.text).to_ascii_lowercase();
        match word.as_str() {
            "r" | "read" | "get" | "gets" => return Ok(Some(RequestKind::Read)),
            "w" | "write" | "set" | "put" | "add" | "replace" => return Ok(Some(RequestKind::Write)),
            "delete" | "flush" | "trim" | "discard" => return Ok(None),
            _ => {}
        }
        let hex = word.strip_prefix("0x").unwrap_or(&word);
        let is_byte = matches!(hex.len(), 1 | 2) && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u8::from_str_radix(hex, 16).ok().filter(|_| is_byte);
        code.map(scsi).ok_or_else(|| self.wrong(Expected::Operation))
    }

    /// The text, short enough for a message.
    fn shown(&self) -> String {
        const SHOWN_MAX: usize = 40;
        let text = String::from_utf8_lossy(self.text);
        let shown: String = text.chars().take(SHOWN_MAX).collect();
        if shown.len() < text.len() { format!("{shown}...") } else { shown }
    }
}
