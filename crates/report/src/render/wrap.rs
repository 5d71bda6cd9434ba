//! Text in lines of at most so many columns: nothing is cut, and no line is longer.
//!
//! Lines break at blanks; a word that is too long for a line of its own breaks behind `-`, `_`,
//! `+`, `/`, `=` or `,`, and only then anywhere. Commands break so that a shell still reads them.
//! Left out: characters that are two columns wide, of which no name here has one.

/// Columns that a text takes.
pub(crate) fn display_width(text: &str) -> usize {
    text.chars().count()
}

/// `text` in lines of at most `limit` columns, at least one of them, all indented as it is.
pub(crate) fn lines(text: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(1);
    if display_width(text) <= limit {
        return vec![text.to_owned()];
    }
    let indent = indent_of(text);
    if (1..limit).contains(&indent) {
        let indented = |line: String| text[..indent].to_owned() + &line;
        return lines(&text[indent..], limit - indent).into_iter().map(indented).collect();
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words(text, limit) {
        match lines.last_mut() {
            Some(last) if display_width(last) + 1 + display_width(word) <= limit => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.extend(pieces(word, limit)),
        }
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// Units that stay with their number.
const UNITS: [&str; 11] = ["%", "ns", "µs", "ms", "s", "B", "kB", "KiB", "MiB", "GiB", "MiB/s"];

/// The words of `text`; a number and its unit are one, unless they take more than `limit` columns.
fn words(text: &str, limit: usize) -> Vec<&str> {
    let mut words: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for word in text.split(' ') {
        let end = at + word.len();
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
        match words.last_mut() {
            Some((begin, last))
                if is_unit
                    && *last + 1 == at
                    && text[..*last].ends_with(|c: char| c.is_ascii_digit())
                    && display_width(&text[*begin..end]) <= limit =>
            {
                *last = end;
            }
            _ if word.is_empty() => {}
            _ => words.push((at, end)),
        }
        at = end + 1;
    }
    words.into_iter().map(|(begin, end)| &text[begin..end]).collect()
}

fn indent_of(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Where words may break: behind each of these.
const JOINTS: [char; 6] = ['-', '_', '+', '/', '=', ','];

/// Columns of the longest part of `text` that has no place to break.
pub(crate) fn longest_part(text: &str) -> usize {
    let parts = text.split(' ').flat_map(|word| word.split_inclusive(JOINTS));
    indent_of(text) + parts.map(display_width).max().unwrap_or(0)
}

/// One word in pieces of at most `limit` columns.
fn pieces(word: &str, limit: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for part in word.split_inclusive(JOINTS) {
        let last = pieces.last_mut().expect("starts with one");
        if display_width(last) + display_width(part) <= limit {
            last.push_str(part);
            continue;
        }
        if !last.is_empty() {
            pieces.push(String::new());
        }
        for c in part.chars() {
            if display_width(pieces.last().expect("starts with one")) == limit {
                pieces.push(String::new());
            }
            pieces.last_mut().expect("starts with one").push(c);
        }
    }
    pieces
}

/// A paragraph: `text` in lines of at most `width` columns, those after the first indented, each
/// with a newline.
pub(crate) fn paragraph(text: &str, width: usize, indent: usize) -> String {
    if display_width(text) <= width {
        return format!("{text}\n");
    }
    let blank = " ".repeat(indent);
    let line = |(at, line): (usize, String)| format!("{}{line}\n", if at > 0 { &blank } else { "" });
    lines(text, width.saturating_sub(indent)).into_iter().enumerate().map(line).collect()
}

/// A shell command in lines of at most `width` columns, each with a newline. Lines end in a
/// backslash where the command goes on. An option stays with its value where a line holds both; a
/// word in quotes is never broken.
pub(crate) fn command(text: &str, width: usize, indent: usize) -> String {
    const GOES_ON: &str = " \\";
    let mut lines = vec![" ".repeat(indent)];
    let mut fresh = true;
    for word in options_with_values(text, width.saturating_sub(indent + 2 + GOES_ON.len())) {
        let last = lines.last_mut().expect("starts with one");
        let blank = if fresh { "" } else { " " };
        if display_width(last) + blank.len() + display_width(word) + GOES_ON.len() <= width {
            *last += &format!("{blank}{word}");
        } else {
            if !fresh {
                *last += GOES_ON;
                lines.push(" ".repeat(indent + 2));
            }
            push_long(&mut lines, word, width);
        }
        fresh = false;
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The words of a command, options together with their values where both take at most `room`.
fn options_with_values(text: &str, room: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = |from: usize| rest[from..].find(' ').map_or(rest.len(), |at| from + at);
        let word_end = end(0);
        let both_end = end((word_end + 1).min(rest.len()));
        let is_option = rest.starts_with("--") && !rest[word_end..].trim_start().starts_with('-');
        let both = is_option && display_width(&rest[..both_end]) <= room;
        let (word, others) = rest.split_at(if both { both_end } else { word_end });
        words.push(word);
        rest = others.trim_start();
    }
    words
}

/// A word at the end of the last line; what does not fit goes to the beginning of the next, as
/// blanks there would end the word.
fn push_long(lines: &mut Vec<String>, word: &str, width: usize) {
    let last = lines.last_mut().expect("starts with one");
    if display_width(last) + display_width(word) + 2 <= width || word.contains('\'') {
        *last += word;
        return;
    }
    let mut left = word;
    while !left.is_empty() {
        let last = lines.last_mut().expect("starts with one");
        let room = width.saturating_sub(display_width(last) + 2).max(1);
        let first = pieces(left, room).swap_remove(0);
        *last += &first;
        left = &left[first.len()..];
        if !left.is_empty() {
            *last += "\\";
            lines.push(String::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_where_a_line_holds_them() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
        assert_eq!(lines("linux-5.3+shrink-slab", 10), ["linux-5.3+", "shrink-", "slab"]);
        assert_eq!(lines("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(lines("", 3), [""]);
        assert_eq!(lines("  one two", 6), ["  one", "  two"], "a part of something stays one");
        assert_eq!((longest_part("  one two"), longest_part("   ")), (5, 3));
        assert_eq!(paragraph("one two three four", 10, 2), "one two\n  three\n  four\n");
        assert_eq!(lines("stalled of the run: 1.1 % and 1 s", 24), ["stalled of the run:", "1.1 % and 1 s"]);
        assert_eq!(lines("of 16 MiB/s", 5), ["of 16", "MiB/s"], "too long for a line");
    }

    /// A broken command was no command any more.
    #[test]
    fn a_shell_reads_a_broken_command_as_the_whole_one() {
        let text = "pagetide run hot-and-stream --kernel linux-4.20-rc1+fragment-stall+nofragment --seed 7";
        for width in [30, 40, 60] {
            let broken = command(text, width, 2);
            assert!(broken.lines().all(|line| display_width(line) <= width), "{broken}");
            // What a shell does: a backslash takes the newline away, blanks separate words.
            let read = broken.replace("\\\n", "");
            assert_eq!(read.split_whitespace().collect::<Vec<_>>().join(" "), text);
        }
        assert_eq!(command("run w --mem 300M --seed 7", 16, 0), "run w \\\n  --mem 300M \\\n  --seed 7\n");
    }
}
