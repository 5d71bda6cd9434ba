//! How a person writes a size or a duration: `256M`, `1016336 kB`, `18GiB`, `20ms`.
//!
//! Suffixes are binary, as in the kernel's own command line: `k`, `M`, `G`, `T` mean powers of
//! 1024, with `B`, `i` or `iB` after them allowed. A bare number is bytes. Signs, fractions and
//! overflow are errors that say what was expected.

use alloc::string::{String, ToString};
use core::fmt;

use crate::{Bytes, Nanos};

/// Why a text is not a size or a duration. The message names the text and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseUnitError {
    text: String,
    problem: &'static str,
    hint: &'static str,
}

impl ParseUnitError {
    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        self.hint
    }
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.text, self.problem)
    }
}

impl core::error::Error for ParseUnitError {}

const SIZE_HINT: &str = "write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`";
const TIME_HINT: &str = "write a whole number with `ns`, `us`, `ms`, `s`, `m` or `h`, such as `20ms`";

/// Reads a size: digits, optional blanks, optional binary suffix.
///
/// # Errors
/// A sign, a fraction, an unknown suffix, no digits, or more than 2^64 - 1 bytes.
pub fn parse_size(text: &str) -> Result<Bytes, ParseUnitError> {
    let scale = |suffix: &str| {
        let shift = match suffix.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "ki" | "kb" | "kib" => 10,
            "m" | "mi" | "mb" | "mib" => 20,
            "g" | "gi" | "gb" | "gib" => 30,
            "t" | "ti" | "tb" | "tib" => 40,
            _ => return None,
        };
        Some(1_u64 << shift)
    };
    parse_scaled(text, scale, "is not a size", SIZE_HINT).map(Bytes)
}

/// Reads a duration: digits and one of `ns`, `us`, `ms`, `s`, `m` (or `min`), `h`.
///
/// # Errors
/// A sign, a fraction, a missing or unknown suffix, no digits, or more than 2^64 - 1 ns.
pub fn parse_nanos(text: &str) -> Result<Nanos, ParseUnitError> {
    let scale = |suffix: &str| match suffix {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" | "min" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        _ => None,
    };
    parse_scaled(text, scale, "is not a duration", TIME_HINT).map(Nanos)
}

fn parse_scaled(
    text: &str,
    scale: impl Fn(&str) -> Option<u64>,
    problem: &'static str,
    hint: &'static str,
) -> Result<u64, ParseUnitError> {
    let fail = |problem| ParseUnitError { text: text.to_string(), problem, hint };
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(fail("is negative"));
    }
    let digits_end = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (digits, suffix) = trimmed.split_at(digits_end);
    if digits.is_empty() {
        return Err(fail(problem));
    }
    let factor = scale(suffix.trim_start()).ok_or_else(|| fail(problem))?;
    let number: u64 = digits.parse().map_err(|_| fail("is too large"))?;
    number.checked_mul(factor).ok_or_else(|| fail("is too large"))
}

impl fmt::Display for Bytes {
    /// The largest binary unit that divides exactly: `256M`, `1016336k`, `4097`. It reads back
    /// through [`parse_size`] to the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, suffix) in [(40, "T"), (30, "G"), (20, "M"), (10, "k")] {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{suffix}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Nanos {
    /// Seconds with millisecond digits, as in a kernel log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1_000_000_000, self.0 / 1_000_000 % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("256M", 256 << 20),
            ("1016336 kB", 1016336 << 10),
            ("18GiB", 18 << 30),
            ("128Mi", 128 << 20),
            ("1t", 1 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn wrong_sizes_say_what_is_wrong() {
        for (text, message) in [
            ("-5M", "`-5M` is negative"),
            ("much", "`much` is not a size"),
            ("1.5G", "`1.5G` is not a size"),
            ("12X", "`12X` is not a size"),
            ("99999999999999999999", "`99999999999999999999` is too large"),
            ("99999999T", "`99999999T` is too large"),
        ] {
            assert_eq!(format!("{}", parse_size(text).unwrap_err()), message);
        }
    }

    #[test]
    fn sizes_survive_a_round_trip() {
        for bytes in [0, 1, 4096, 4097, 1016336 << 10, 3 << 40] {
            assert_eq!(parse_size(&format!("{}", Bytes(bytes))), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_nanos("20ms"), Ok(Nanos::from_millis(20)));
        assert_eq!(parse_nanos("10m"), Ok(Nanos::from_millis(600_000)));
        assert_eq!(parse_nanos("2h"), parse_nanos("120min"));
        assert!(parse_nanos("20").is_err());
    }
}
