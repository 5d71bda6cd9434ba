//! How a person writes how many: `5000`, `10k`, and a part of a trace: `10%`, `10k` requests, `30s`.
//!
//! Suffixes of numbers are decimal, `k` is 1000: unlike sizes, nobody counts objects in powers of
//! two. Left out: fractions.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use units::{Nanos, parse_nanos};

/// Why a text is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AmountError {
    /// It is no number of things.
    #[error("`{0}` is not a number of objects or requests")]
    Count(String),
    /// It is no part of a trace.
    #[error("`{0}` is no warm-up")]
    Warmup(String),
}

impl AmountError {
    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Count(_) => "write a whole number, such as `5000`, `10k` (10000) or `2M`",
            Self::Warmup(_) => {
                "write a part (`10%`), a number of requests (`5000`, `10k`) or a time of the trace (`30s`)"
            }
        }
    }
}

/// Reads a number with an optional decimal suffix: `5000`, `10k`, `2M`, `1G`.
///
/// # Errors
/// Anything else, or more than 2^64 - 1.
pub fn parse_count(text: &str) -> Result<u64, AmountError> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(digits_end);
    let factor = match suffix {
        "" => Some(1_u64),
        "k" | "K" => Some(1_000),
        "m" | "M" => Some(1_000_000),
        "g" | "G" => Some(1_000_000_000),
        _ => None,
    };
    let count = || digits.parse::<u64>().ok()?.checked_mul(factor?);
    count().ok_or_else(|| AmountError::Count(text.to_owned()))
}

/// The beginning of a trace, which fills a cache and is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Warmup {
    /// All is counted.
    #[default]
    None,
    /// This part of all requests, rounded down.
    Percent(u8),
    /// The first requests.
    Requests(u64),
    /// The requests of this time from the first one on, by the trace's own clock.
    Time(Nanos),
}

impl FromStr for Warmup {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let bad = || AmountError::Warmup(text.to_owned());
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent = percent.trim_end().parse().ok().filter(|percent| *percent < 100).ok_or_else(bad)?;
            return Ok(if percent == 0 { Self::None } else { Self::Percent(percent) });
        }
        match (parse_count(text), parse_nanos(text)) {
            (Ok(0), _) | (_, Ok(Nanos::ZERO)) => Ok(Self::None),
            (Ok(count), _) => Ok(Self::Requests(count)),
            (_, Ok(time)) => Ok(Self::Time(time)),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Warmup {
    /// Reads back equal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Requests(count) => count.fmt(f),
            Self::Time(time) if time.get().is_multiple_of(1_000_000_000) => {
                write!(f, "{}s", time.get() / 1_000_000_000)
            }
            Self::Time(time) => write!(f, "{}ns", time.get()),
        }
    }
}

impl Warmup {
    /// In a trace of so many requests.
    pub fn of(self, requests: u64) -> WarmupEnd {
        match self {
            Self::None => WarmupEnd::Requests(0),
            Self::Percent(percent) => {
                WarmupEnd::Requests((u128::from(requests) * u128::from(percent) / 100) as u64) // Below `requests`.
            }
            Self::Requests(count) => WarmupEnd::Requests(count.min(requests)),
            Self::Time(time) => WarmupEnd::Time(time),
        }
    }
}

/// When a warm-up ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmupEnd {
    /// After this many requests.
    Requests(u64),
    /// This long after the first request.
    Time(Nanos),
}

impl WarmupEnd {
    /// Whether the request with this number, from 0, so long after the first one, is part of it.
    #[inline]
    pub fn covers(self, number: u64, since_first: Nanos) -> bool {
        match self {
            Self::Requests(count) => number < count,
            Self::Time(time) => since_first < time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_decimal_suffixes() {
        assert_eq!(parse_count("10k"), Ok(10_000));
        assert_eq!(parse_count(" 2M "), Ok(2_000_000));
        for bad in ["", "k", "-1", "1.5k", "10kB", "99999999999999999999", "99999999999999999G"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_warm_up_is_a_part_a_number_or_a_time_and_reads_back() {
        for (text, warmup) in [
            ("10%", Warmup::Percent(10)),
            ("5k", Warmup::Requests(5000)),
            ("30s", Warmup::Time(Nanos::from_secs(30))),
            ("20ms", Warmup::Time(Nanos::from_millis(20))),
            ("0", Warmup::None),
        ] {
            assert_eq!(text.parse(), Ok(warmup));
            assert_eq!(warmup.to_string().parse(), Ok(warmup));
        }
        for bad in ["100%", "ten", "-5", "%", "5x"] {
            assert!(bad.parse::<Warmup>().is_err(), "{bad}");
        }
        assert!(Warmup::Percent(10).of(50).covers(4, Nanos::ZERO));
        assert!(!Warmup::Percent(10).of(50).covers(5, Nanos::ZERO));
    }
}
