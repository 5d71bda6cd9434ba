//! Lists and ranges of values as a person writes them: `10,100,1000`, `0..11`, `256M..2G`.
//!
//! - commas separate values; each may be a range;
//! - `A..B` is a range, both ends included: numbers go up by one, sizes and capacities double;
//!   `A..B+STEP` and `A..B*FACTOR` say otherwise. A range ends at the last value that is not beyond B;
//! - a value between double quotes is taken as it is, with its commas and points: `"1,2,3"`.
//!
//! Left out: downward ranges, and ranges of names.

use units::{Bytes, parse_size};
use workload::amount::parse_count;

use crate::error::LabError;
use crate::resolve::texts::first_twice;

/// Values that one axis takes at most: more than that are a mistake.
const VALUES_MAX: usize = 1_000;

/// What the values of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names: no ranges.
    Name,
    /// Sizes of memory, which double.
    Size,
    /// Numbers of objects, which double; `k` is 1000.
    Count,
    /// Whatever they look like: numbers, or sizes where an end has a suffix.
    Any,
}

/// The values that `text` lists for `axis`.
pub(super) fn values(axis: &str, text: &str, kind: Kind) -> Result<Vec<String>, LabError> {
    let mut all = Vec::new();
    for item in items(text) {
        let bad = |problem| wrong(axis, item, problem);
        let trimmed = item.trim();
        let quoted = trimmed.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match (quoted, trimmed.split_once("..")) {
            (Some(literal), _) => all.push(literal.to_owned()),
            _ if trimmed.is_empty() => return Err(bad("is empty")),
            _ if trimmed.contains('"') => return Err(bad("has a quote in its middle")),
            (None, None) => all.push(trimmed.to_owned()),
            (None, Some(_)) if kind == Kind::Name => return Err(bad("is a range, and names have none")),
            (None, Some((first, rest))) => all.extend(range(first, rest, kind).map_err(bad)?),
        }
        if all.len() > VALUES_MAX {
            let message = format!("`{axis}` has more than {VALUES_MAX} values");
            return Err(LabError::refused(message, LARGER_STEPS));
        }
    }
    match first_twice(&all) {
        Some(value) => Err(twice(axis, value)),
        None => Ok(all),
    }
}

/// What to do about too many values.
pub(super) const LARGER_STEPS: &str = "take larger steps, as in `0..1000+100` or `1..1000*10`";

/// A text that is no value, list or range.
pub(super) fn wrong(axis: &str, text: &str, problem: &str) -> LabError {
    const SYNTAX: &str = "write values as `10,100,1000`, numbers also as `0..11` or `0..100+10`, sizes as \
                          `256M..2G` (doubling) or `256M..512M+32M`; what has commas or `..` itself goes in \
                          double quotes";
    LabError::refused(format!("`{axis}`: `{text}` {problem}"), SYNTAX)
}

/// A value that is listed twice.
pub(super) fn twice(axis: &str, value: &str) -> LabError {
    LabError::refused(format!("`{axis}` has the value `{value}` twice"), "use `--seeds N` to repeat runs")
}

/// The parts between commas, but those within quotes.
fn items(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .collect()
}

enum Step {
    Add(u64),
    Times(u64),
}

/// The values of `first..rest`, where `rest` is `last`, `last+step` or `last*factor`.
fn range(first: &str, rest: &str, kind: Kind) -> Result<Vec<String>, &'static str> {
    let (last, step) = match rest.find(['+', '*']) {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    };
    let digits = |text: &str| text.trim().bytes().all(|byte| byte.is_ascii_digit());
    let is_size = kind == Kind::Size || (kind == Kind::Any && !(digits(first) && digits(last)));
    let read = |text: &str| match kind {
        Kind::Count => parse_count(text).ok(),
        _ if is_size => parse_size(text).ok().map(Bytes::get),
        _ => text.trim().parse().ok(),
    };
    let number = |text: &str| read(text).ok_or("is a range whose ends are no numbers or sizes");
    let (first, last) = (number(first)?, number(last)?);
    let step = match step.map(|step| step.split_at(1)) {
        Some(("+", step)) => Step::Add(read(step).ok_or("is a range with a step that is no number or size")?),
        Some((_, factor)) => Step::Times(
            factor.trim().parse().map_err(|_| "is a range with a factor that is no whole number")?,
        ),
        None if is_size || kind == Kind::Count => Step::Times(2),
        None => Step::Add(1),
    };
    match step {
        _ if first > last => return Err("is an empty range: its end is before its beginning"),
        Step::Add(0) | Step::Times(0 | 1) => return Err("is a range that never gets to its end"),
        Step::Times(_) if first == 0 => return Err("is a range that never gets beyond 0"),
        _ => {}
    }
    let next = |value: &u64| match step {
        Step::Add(step) => value.checked_add(step),
        Step::Times(factor) => value.checked_mul(factor),
    };
    let all = std::iter::successors(Some(first), next).take_while(|&value| value <= last);
    let text = |value: u64| if is_size { Bytes(value).to_string() } else { value.to_string() };
    Ok(all.take(VALUES_MAX + 1).map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str, kind: Kind) -> String {
        values("x", text, kind).map_or_else(|error| error.to_string(), |values| values.join(" "))
    }

    #[test]
    fn lists_and_ranges_of_numbers_and_sizes() {
        for (text, kind, expected) in [
            ("0..3", Kind::Any, "0 1 2 3"),
            ("0,4..6, 10", Kind::Any, "0 4 5 6 10"),
            ("0..11+5", Kind::Any, "0 5 10"),
            ("1..100*10", Kind::Any, "1 10 100"),
            ("256M..2G", Kind::Size, "256M 512M 1G 2G"),
            ("256M..600M", Kind::Any, "256M 512M"),
            ("256M..320M+32M", Kind::Size, "256M 288M 320M"),
            ("1k..4k", Kind::Count, "1000 2000 4000"),
            ("7..7", Kind::Any, "7"),
        ] {
            assert_eq!(listed(text, kind), expected, "{text}");
        }
    }

    #[test]
    fn values_with_commas_and_points_of_their_own_stand_in_quotes() {
        assert_eq!(
            values("x", "\"256,256,32\",\"a..b\",c.d", Kind::Any).unwrap(),
            ["256,256,32", "a..b", "c.d"]
        );
        assert_eq!(listed("linux-5.4+root-aging,linux-6.12", Kind::Name), "linux-5.4+root-aging linux-6.12");
        assert_eq!(listed("256 256 32", Kind::Any), "256 256 32");
    }

    #[test]
    fn ranges_that_are_none_say_why() {
        let kinds = [
            ("3..1", Kind::Any),
            ("1..x", Kind::Any),
            ("..", Kind::Any),
            ("0..1G", Kind::Any),
            ("1..9+0", Kind::Any),
            ("1..9*1", Kind::Any),
            ("1..9*x", Kind::Any),
            ("1,,2", Kind::Any),
            ("1,1", Kind::Any),
            ("0..99999999999", Kind::Any),
            ("linux-5.4..linux-6.1", Kind::Name),
            ("\"a,b", Kind::Any),
        ];
        let said = kinds.map(|(text, kind)| listed(text, kind)).join("\n");
        insta::assert_snapshot!(said, @r#"
        `x`: `3..1` is an empty range: its end is before its beginning
        `x`: `1..x` is a range whose ends are no numbers or sizes
        `x`: `..` is a range whose ends are no numbers or sizes
        `x`: `0..1G` is a range that never gets beyond 0
        `x`: `1..9+0` is a range that never gets to its end
        `x`: `1..9*1` is a range that never gets to its end
        `x`: `1..9*x` is a range with a factor that is no whole number
        `x`: `` is empty
        `x` has the value `1` twice
        `x` has more than 1000 values
        `x`: `linux-5.4..linux-6.1` is a range, and names have none
        `x`: `"a,b` has a quote in its middle
        "#);
    }
}
