//! One line of a log of `strace`, taken apart: who, when, and which call or end of a call.
//!
//! ```text
//! 1234  12:00:00.000100 openat(AT_FDCWD</srv>, "a", O_RDONLY) = 3</srv/a> <0.000012>
//! [pid  1234] 12:00:00.000200 read(3</srv/a>,  <unfinished ...>
//! [pid  1234] 12:00:00.000300 <... read resumed>"x", 4096) = 1 <0.000100>
//! 1234  12:00:00.000400 --- SIGCHLD {si_signo=SIGCHLD, ...} ---
//! 1234  12:00:00.000500 +++ exited with 0 +++
//! ```
//! The text of an error (`ENOENT (...)`) may be in any language: its name is not.

use super::super::builder::seconds;

/// When something happened, as the log says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Since midnight (`-t`, `-tt`), in nanoseconds.
    OfDay(u64),
    /// Since 1970 (`-ttt`), in nanoseconds.
    Epoch(u64),
    /// Since the line before (`-r`), in nanoseconds.
    SinceLast(u64),
}

/// A line that has a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The task; `None` where only one is followed.
    pub(super) tid: Option<u32>,
    pub(super) stamp: Stamp,
    pub(super) what: What<'a>,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What<'a> {
    /// A call, from its name on.
    Call(&'a str),
    /// A call that had not ended when the next line was written; without the remark that says so.
    Unfinished(&'a str),
    /// The end of such a call: its name, and what comes behind the remark.
    Resumed(&'a str, &'a str),
    /// The task is gone.
    Gone,
    /// The task goes on under this number: another thread of its process began a program.
    Superseded(u32),
    /// A signal, or a remark.
    Else,
}

const UNFINISHED: &str = "<unfinished ...>";

/// A line's parts; `None` if it is none of a call, a signal or an end.
pub(super) fn parse(line: &str) -> Option<Line<'_>> {
    let (tid, rest) = task(line.trim_start())?;
    let (word, rest) = rest.split_once(' ')?;
    let stamp = stamp(word)?;
    Some(Line { tid, stamp, what: what(rest.trim())? })
}

/// `[pid 1234] `, `1234 `, or nothing; a name may follow the number (`--decode-pids=comm`).
fn task(line: &str) -> Option<(Option<u32>, &str)> {
    let number = |text: &str| text.trim().split('<').next().and_then(|text| text.parse().ok());
    if let Some(rest) = line.strip_prefix("[pid ") {
        let (tid, rest) = rest.split_once("] ")?;
        return Some((Some(number(tid)?), rest.trim_start()));
    }
    let word = line.split(' ').next()?;
    match number(word) {
        Some(tid) if !word.contains(['.', ',', ':']) => Some((Some(tid), line[word.len()..].trim_start())),
        _ => Some((None, line)),
    }
}

fn stamp(word: &str) -> Option<Stamp> {
    /// What is larger is no time between two lines: nine years.
    const EPOCH_MIN: u64 = 300_000_000 * 1_000_000_000;
    let mut parts = word.split(':');
    match (parts.next()?, parts.next(), parts.next(), parts.next()) {
        (hours, Some(minutes), Some(rest), None) => {
            let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
            let (seconds, is_one) = (seconds(rest)?, hours < 24 && minutes < 60);
            // Leap seconds.
            let is_one = is_one && seconds < 62_000_000_000;
            is_one.then(|| Stamp::OfDay((hours * 60 + minutes) * 60_000_000_000 + seconds))
        }
        (number, None, ..) if number.contains(['.', ',']) => {
            let ns = seconds(number)?;
            Some(if ns >= EPOCH_MIN { Stamp::Epoch(ns) } else { Stamp::SinceLast(ns) })
        }
        _ => None,
    }
}

fn what(text: &str) -> Option<What<'_>> {
    if let Some(end) = text.strip_prefix("+++ ") {
        let by = end.strip_prefix("superseded by execve in pid ");
        let by = by.and_then(|by| by.trim_end_matches(" +++").parse().ok());
        return Some(by.map_or(What::Gone, What::Superseded));
    }
    if text.starts_with("--- ") {
        return Some(What::Else);
    }
    if let Some(resumed) = text.strip_prefix("<... ") {
        let (name, rest) = resumed.split_once(" resumed")?;
        return Some(What::Resumed(name, rest.strip_prefix('>').or_else(|| rest.strip_prefix("> "))?));
    }
    let name = text.split('(').next()?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name || !text[name.len()..].starts_with('(') {
        return None;
    }
    match text.strip_suffix(UNFINISHED) {
        Some(begun) => Some(What::Unfinished(begun.trim_end())),
        None => Some(What::Call(text)),
    }
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) struct Call<'a> {
    pub(in crate::import) name: &'a str,
    pub(in crate::import) arguments: Vec<&'a str>,
    /// What it returned; `None` where it did not return, as `exit_group` does not.
    pub(in crate::import) returned: Option<Returned<'a>>,
    /// How long it took (`-T`), in nanoseconds.
    pub(in crate::import) took_ns: Option<u64>,
}

/// What a call returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum Returned<'a> {
    /// A number, and the path behind it if it is a descriptor (`-y`).
    Number(u64, Option<&'a str>),
    /// An error, by its name.
    Error(&'a str),
}

/// The parts of a call, from its name on.
pub(in crate::import) fn call(text: &str) -> Option<Call<'_>> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, rest) = arguments(rest)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim();
    let (rest, took_ns) = match rest.rsplit_once('<') {
        Some((before, took)) if before.ends_with(' ') && seconds(took.strip_suffix('>')?).is_some() => {
            (before.trim_end(), seconds(took.strip_suffix('>')?))
        }
        _ => (rest, None),
    };
    if rest.is_empty() {
        return None;
    }
    let returned = match rest.strip_prefix('-') {
        _ if rest.starts_with('?') => None,
        Some(number) => Some(Returned::Error(number.split(' ').nth(1).unwrap_or_default())),
        None => {
            let digits = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
            let (digits, rest) = rest.split_at(digits);
            Some(Returned::Number(number(digits)?, annotation(rest)))
        }
    };
    Some(Call { name, arguments, returned, took_ns })
}

/// A number as `strace` prints it: decimal, hexadecimal or octal. Negative ones as the kernel takes them.
pub(super) fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = text.strip_prefix('-') {
        return digits.parse::<u64>().ok().map(u64::wrapping_neg);
    }
    text.parse().ok()
}

/// What stands in `<...>` at the beginning of `text`.
pub(super) fn annotation(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    Some(&inside[..annotation_len(inside)?])
}

/// Up to the `>` that ends an annotation: none of an arrow between two addresses.
fn annotation_len(inside: &str) -> Option<usize> {
    let bytes = inside.as_bytes();
    let ends = |&place: &usize| {
        let behind = bytes.get(place + 1).copied().unwrap_or(b' ');
        let is_arrow = place > 0 && bytes[place - 1] == b'-';
        bytes[place] == b'>' && !is_arrow && matches!(behind, b',' | b')' | b']' | b'}' | b' ' | b'(' | b'<')
    };
    (0..bytes.len()).find(ends)
}

/// The arguments of a call, without the commas between them, and what comes behind the parenthesis that ends
/// them; `None` if none does.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let bytes = text.as_bytes();
    let (mut found, mut depth, mut begin, mut at) = (Vec::new(), 0_u32, 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at += quoted_len(&bytes[at + 1..])? + 1,
            b'/' if bytes[at..].starts_with(b"/*") => at += text[at..].find("*/")? + 1,
            b'<' if at > 0 && (bytes[at - 1].is_ascii_digit() || bytes[at - 1] == b'D') => {
                if bytes.get(at + 1) == Some(&b'<') {
                    at += 1; // A shift.
                } else {
                    at += annotation_len(&text[at + 1..])? + 1;
                }
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                if !text[begin..at].trim().is_empty() || !found.is_empty() {
                    found.push(text[begin..at].trim());
                }
                return Some((found, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                found.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Up to the quote that ends a string.
fn quoted_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// The text of a string or path as the program gave it: octal and hexadecimal escapes and those of C. What is no
/// UTF-8 stays escaped.
pub(super) fn unescaped(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digits = |radix: u32, max: usize, text: &[u8]| {
            text.iter().take(max).take_while(|&&byte| char::from(byte).is_digit(radix)).count()
        };
        let (is_hex, from) = if behind.first() == Some(&b'x') { (true, 1) } else { (false, 0) };
        let (radix, max) = if is_hex { (16, 2) } else { (8, 3) };
        let count = digits(radix, max, &behind[from..]);
        let value = std::str::from_utf8(&behind[from..from + count]).ok();
        match value.and_then(|value| u8::from_str_radix(value, radix).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[from + count..];
            }
            None => {
                let Some((&letter, behind)) = behind.split_first() else { break };
                bytes.push(match letter {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    other => other,
                });
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The string that an argument is: what is between its quotes.
pub(super) fn string(argument: &str) -> Option<String> {
    let inside = argument.strip_prefix('"')?;
    Some(unescaped(&inside[..quoted_len(inside.as_bytes())?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Vec<&str>, Option<Returned<'_>>, Option<u64>) {
        let call = call(text).unwrap_or_else(|| panic!("no call: {text}"));
        (call.arguments, call.returned, call.took_ns)
    }

    #[test]
    fn a_line_says_who_and_when() {
        let line = parse("1234  12:00:01.000100 close(3) = 0").expect("a line");
        assert_eq!((line.tid, line.stamp), (Some(1234), Stamp::OfDay(43_201_000_100_000)));
        let line = parse("[pid    77] 1700000000.5 close(3) = 0").expect("a line");
        assert_eq!((line.tid, line.stamp), (Some(77), Stamp::Epoch(1_700_000_000_500_000_000)));
        let line = parse("     0.000250 close(3)   = 0").expect("a line");
        assert_eq!((line.tid, line.stamp), (None, Stamp::SinceLast(250_000)));
        let line = parse("12<bash> 12:00:01,5 +++ killed by SIGKILL +++").expect("a line");
        assert_eq!(
            (line.tid, line.stamp, line.what),
            (Some(12), Stamp::OfDay(43_201_500_000_000), What::Gone)
        );
        assert_eq!(parse("strace: Process 12 attached"), None);
        assert_eq!(parse("hello, world"), None);
    }

    #[test]
    fn arguments_are_split_where_the_call_has_its_commas() {
        let (arguments, returned, took) = parts(
            r#"openat(AT_FDCWD</srv/a, b>, "x\", y)", O_RDONLY|O_CLOEXEC) = 3</srv/a, b/x", y)> <0.000012>"#,
        );
        assert_eq!(arguments, [r"AT_FDCWD</srv/a, b>", r#""x\", y)""#, "O_RDONLY|O_CLOEXEC"]);
        assert_eq!(returned, Some(Returned::Number(3, Some(r#"/srv/a, b/x", y)"#))));
        assert_eq!(took, Some(12_000));
        let (arguments, ..) = parts(r#"execve("/bin/a", ["a", "(b"], 0x7ffd /* 35 vars, all */) = 0"#);
        assert_eq!(arguments, [r#""/bin/a""#, r#"["a", "(b"]"#, "0x7ffd /* 35 vars, all */"]);
        let (arguments, ..) =
            parts("sendto(5<TCP:[10.0.0.1:80->10.0.0.2:81]>, \"\"..., 3, 1<<4, NULL, 0) = 3");
        assert_eq!(arguments[0], "5<TCP:[10.0.0.1:80->10.0.0.2:81]>");
        assert_eq!(parts("getpid() = 7").0, Vec::<&str>::new());
    }

    #[test]
    fn errors_count_by_name_whatever_their_language() {
        let returned = |text| parts(text).1;
        assert_eq!(
            returned(r#"access("/x", R_OK) = -1 ENOENT (Datei oder Verzeichnis nicht gefunden) <0,000003>"#),
            Some(Returned::Error("ENOENT"))
        );
        assert_eq!(returned("exit_group(0)     = ?"), None);
        assert_eq!(returned("brk(NULL) = 0x55e6"), Some(Returned::Number(0x55e6, None)));
        assert_eq!(call("read(3, \"ab"), None);
        assert_eq!(call("read(3, \"ab\", 2)"), None);
    }

    #[test]
    fn escapes_become_what_the_program_gave() {
        assert_eq!(unescaped(r"\303\244 b\n\x41\\"), "ä b\nA\\");
        assert_eq!(unescaped(r"\377x"), r"\377x");
    }
}
