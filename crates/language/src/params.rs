//! Parameters of a workload: their specification, and a resolved set of values.
//!
//! A workload lists its [`ParamSpec`]s as a constant; [`Params`] holds one value for each of them
//! that has one, so whoever prints or stores a set prints all that decided the run. Texts come
//! from the command line (`--param k=v`) or a scenario file; both end in [`Params::set`].
//!
//! Left out: relations between parameters, which the workload itself checks.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use thiserror::Error;
use units::{Bytes, ParseUnitError, parse_size};

use crate::names::UnknownName;

/// One parameter of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamSpec {
    /// The name in `--param name=value` and in scenario files.
    pub name: &'static str,
    /// What values look like.
    pub kind: ParamKind,
    /// The value when none is given, in the form that a person writes; `None` leaves it unset.
    pub default: Option<&'static str>,
    /// One line for `--help`, without a full stop.
    pub help: &'static str,
}

impl ParamSpec {
    /// A number of bytes, which is unset where nobody gives one.
    pub const fn size(name: &'static str, range: RangeInclusive<Bytes>, help: &'static str) -> Self {
        let kind = ParamKind::Size { min: *range.start(), max: *range.end() };
        Self { name, kind, default: None, help }
    }

    /// A whole number, which is unset where nobody gives one.
    pub const fn count(name: &'static str, range: RangeInclusive<u64>, help: &'static str) -> Self {
        let kind = ParamKind::Count { min: *range.start(), max: *range.end() };
        Self { name, kind, default: None, help }
    }

    /// One of a few words, the first where nobody gives one.
    pub const fn choice(name: &'static str, words: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: ParamKind::Choice(words), default: Some(words[0]), help }
    }

    /// The same, with a value where nobody gives one.
    pub const fn by_default(self, value: &'static str) -> Self {
        Self { default: Some(value), ..self }
    }
}

/// What values of a parameter look like, with the smallest and the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// A number of bytes: `50M`.
    Size {
        /// The smallest allowed.
        min: Bytes,
        /// The largest allowed.
        max: Bytes,
    },
    /// A whole number.
    Count {
        /// The smallest allowed.
        min: u64,
        /// The largest allowed.
        max: u64,
    },
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// The path of a file.
    File,
    /// A part of something.
    Share {
        /// The smallest allowed.
        min: Share,
        /// The largest allowed.
        max: Share,
    },
}

/// A part of something in steps of 0.0001, written as `0.25`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// All of it.
    pub const ALL: Self = Self(Self::PARTS);
    const PARTS: u32 = 10_000;

    /// So much of a whole, rounded down.
    pub fn of(self, whole: u32) -> u32 {
        (u64::from(whole) * u64::from(self.0) / u64::from(Self::PARTS)) as u32 // At most the whole.
    }

    /// The part, for amounts that hang on it.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::PARTS)
    }

    /// Reads `0.25`; nothing for what is no number, is above 1 or has more than four decimals.
    fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 4 {
            return None;
        }
        let parts: u32 = format!("{decimals:0<4}").parse().ok()?;
        let share = Self(whole.parse::<u32>().ok()?.checked_mul(Self::PARTS)?.checked_add(parts)?);
        (share <= Self::ALL).then_some(share)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / Self::PARTS, self.0 % Self::PARTS);
        match parts {
            0 => whole.fmt(f),
            _ => f.write_str(format!("{whole}.{parts:04}").trim_end_matches('0')),
        }
    }
}

/// A value of a parameter. [`fmt::Display`] writes it so that it reads back equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamValue {
    /// A number of bytes.
    Size(Bytes),
    /// A whole number.
    Count(u64),
    /// One of the words of its specification.
    Choice(&'static str),
    /// The path of a file, which lives as long as the program: few are ever named.
    File(&'static str),
    /// A part of something.
    Share(Share),
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => bytes.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Choice(word) | Self::File(word) => f.write_str(word),
            Self::Share(share) => share.fmt(f),
        }
    }
}

/// Why a parameter cannot be set as asked. [`ParamError::hint`] says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParamError {
    /// The workload has no such parameter.
    #[error(transparent)]
    UnknownParam(UnknownName),
    /// Not of the form `name=value`.
    #[error("`{0}` is not of the form `name=value`")]
    NotAPair(String),
    /// The value is not a size.
    #[error("parameter `{name}`: {source}")]
    NotASize {
        /// The parameter.
        name: &'static str,
        /// What is wrong with the text.
        source: ParseUnitError,
    },
    /// The value is not a whole number.
    #[error("parameter `{name}`: `{value}` is not a whole number from 0 to 2^64 - 1")]
    NotACount {
        /// The parameter.
        name: &'static str,
        /// The text that was given.
        value: String,
    },
    /// The value is no path that a scenario file can hold.
    #[error("parameter `{name}`: `{}` is no path without control characters", value.escape_debug())]
    NotAPath {
        /// The parameter.
        name: &'static str,
        /// The text that was given.
        value: String,
    },
    /// The value is not a share.
    #[error("parameter `{name}`: `{value}` is not a share from 0 to 1, such as 0.25")]
    NotAShare {
        /// The parameter.
        name: &'static str,
        /// The text that was given.
        value: String,
    },
    /// The value is none of the allowed words.
    #[error("parameter `{name}`: {source}")]
    NotAChoice {
        /// The parameter.
        name: &'static str,
        /// The word and its neighbours.
        source: UnknownName,
    },
    /// The value is outside of what the workload can run with.
    #[error("parameter `{name}`: {value} is outside of {min} to {max}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The value that was given.
        value: ParamValue,
        /// The smallest allowed.
        min: ParamValue,
        /// The largest allowed.
        max: ParamValue,
    },
    /// One parameter is given twice.
    #[error("parameter `{name}` is given twice, as `{first}` and as `{second}`")]
    Twice {
        /// The parameter.
        name: String,
        /// The value that comes first.
        first: String,
        /// The value that comes then.
        second: String,
    },
    /// An amount that hangs on parameters comes to nothing that can be.
    #[error("{problem}")]
    Amount {
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        hint: String,
    },
    /// Two parameters do not go together.
    #[error("parameter `{name}`: {problem}")]
    Conflict {
        /// The parameter to change.
        name: &'static str,
        /// What is wrong with it, given the others.
        problem: String,
        /// What to write instead.
        hint: String,
    },
}

impl ParamError {
    /// Parameter `name` with two values.
    pub fn twice(name: &str, first: &str, second: &str) -> Self {
        let [name, first, second] = [name, first, second].map(str::to_owned);
        Self::Twice { name, first, second }
    }

    /// What to do about it; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownParam(unknown) | Self::NotAChoice { source: unknown, .. } => Some(unknown.hint()),
            Self::NotAPair(_) => Some("write it as in `--param hot=50M`".to_owned()),
            Self::NotASize { source, .. } => Some(source.hint().to_owned()),
            Self::Conflict { hint, .. } | Self::Amount { hint, .. } => Some(hint.clone()),
            Self::Twice { .. } => Some("leave one of them out".to_owned()),
            Self::NotACount { .. }
            | Self::NotAPath { .. }
            | Self::NotAShare { .. }
            | Self::OutOfRange { .. } => None,
        }
    }
}

/// Splits `name=value` of the command line; blanks around either side do not count.
///
/// # Errors
/// [`ParamError::NotAPair`] when there is no `=` or nothing before it.
pub fn split_pair(text: &str) -> Result<(&str, &str), ParamError> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim(), value.trim())),
        _ => Err(ParamError::NotAPair(text.to_owned())),
    }
}

/// Values for the parameters of one workload: defaults, then what was set. Every value satisfies
/// its specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    specs: &'static [ParamSpec],
    values: BTreeMap<&'static str, ParamValue>,
}

impl Params {
    /// The defaults of `specs`.
    ///
    /// # Panics
    /// When a default does not satisfy its own specification: a mistake in the workload.
    pub fn defaults(specs: &'static [ParamSpec]) -> Self {
        let mut params = Self { specs, values: BTreeMap::new() };
        for spec in specs {
            let default = spec.default.unwrap_or("none");
            let set = params.set(spec.name, default);
            assert!(set.is_ok(), "default `{default}` of `{}` is not allowed: {set:?}", spec.name);
        }
        params
    }

    /// Sets one parameter from its text. `none` unsets a parameter that has no default.
    ///
    /// # Errors
    /// An unknown name, a text that is no value of this kind, or a value out of range.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        let known = self.specs.iter().map(|spec| spec.name);
        let spec = (self.specs.iter().find(|spec| spec.name == name))
            .ok_or_else(|| ParamError::UnknownParam(UnknownName::new("parameter", name, known)))?;
        if spec.default.is_none() && text == "none" {
            self.values.remove(spec.name);
        } else {
            self.values.insert(spec.name, spec.parse(text)?);
        }
        Ok(())
    }

    /// What parameters there are.
    pub fn specs(&self) -> impl Iterator<Item = &'static ParamSpec> {
        self.specs.iter()
    }

    /// All values that are set, by name: defaults included.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, ParamValue)> {
        self.values.iter().map(|(&name, &value)| (name, value))
    }

    /// The value of a parameter, if it has one.
    pub fn get(&self, name: &str) -> Option<ParamValue> {
        self.values.get(name).copied()
    }

    /// The value of a size parameter, if it has one.
    ///
    /// # Panics
    /// When `name` is not a size: a mistake in the workload, as for the getters below.
    pub fn size(&self, name: &str) -> Option<Bytes> {
        match self.get(name)? {
            ParamValue::Size(bytes) => Some(bytes),
            other => panic!("parameter `{name}` is not a size but {other:?}"),
        }
    }

    /// The value of a count parameter, if it has one.
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            ParamValue::Count(count) => Some(count),
            other => panic!("parameter `{name}` is not a count but {other:?}"),
        }
    }

    /// The value of a choice parameter, if it has one.
    pub fn choice(&self, name: &str) -> Option<&'static str> {
        match self.get(name)? {
            ParamValue::Choice(word) => Some(word),
            other => panic!("parameter `{name}` is not a choice but {other:?}"),
        }
    }

    /// The value of a file parameter, if it has one.
    pub fn file(&self, name: &str) -> Option<&'static str> {
        match self.get(name)? {
            ParamValue::File(path) => Some(path),
            other => panic!("parameter `{name}` is not a file but {other:?}"),
        }
    }

    /// The value of a share parameter, if it has one.
    pub fn share(&self, name: &str) -> Option<Share> {
        match self.get(name)? {
            ParamValue::Share(share) => Some(share),
            other => panic!("parameter `{name}` is not a share but {other:?}"),
        }
    }
}

impl ParamSpec {
    /// Whether its default is a value of it.
    pub fn check_default(&self) -> Result<(), String> {
        self.default
            .map_or(Ok(()), |default| self.parse(default).map(drop))
            .map_err(|error| error.to_string())
    }

    /// Reads a value of this parameter.
    ///
    /// # Errors
    /// A text that is no value of this kind, or a value out of range.
    pub fn parse(&self, text: &str) -> Result<ParamValue, ParamError> {
        let name = self.name;
        let (value, range) = match self.kind {
            ParamKind::Size { min, max } => {
                let bytes = parse_size(text).map_err(|source| ParamError::NotASize { name, source })?;
                (ParamValue::Size(bytes), Some((ParamValue::Size(min), ParamValue::Size(max))))
            }
            ParamKind::Count { min, max } => {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let count = (text.parse().ok().filter(|_| digits))
                    .ok_or_else(|| ParamError::NotACount { name, value: text.to_owned() })?;
                (ParamValue::Count(count), Some((ParamValue::Count(min), ParamValue::Count(max))))
            }
            ParamKind::Choice(words) => {
                let word = words.iter().find(|&&word| word == text).ok_or_else(|| {
                    let source = UnknownName::new("choice", text, words.iter().copied());
                    ParamError::NotAChoice { name, source }
                })?;
                (ParamValue::Choice(word), None)
            }
            ParamKind::File => {
                if text.is_empty() || text.chars().any(char::is_control) {
                    return Err(ParamError::NotAPath { name, value: text.to_owned() });
                }
                (ParamValue::File(text.to_owned().leak()), None)
            }
            ParamKind::Share { min, max } => {
                let share = Share::parse(text)
                    .ok_or_else(|| ParamError::NotAShare { name, value: text.to_owned() })?;
                (ParamValue::Share(share), Some((ParamValue::Share(min), ParamValue::Share(max))))
            }
        };
        match range {
            Some((min, max)) if value.amount() < min.amount() || value.amount() > max.amount() => {
                Err(ParamError::OutOfRange { name, value, min, max })
            }
            _ => Ok(value),
        }
    }
}

impl ParamValue {
    /// The number to hold against a range; words have none.
    fn amount(self) -> u64 {
        match self {
            Self::Size(bytes) => bytes.get(),
            Self::Count(count) => count,
            Self::Choice(_) | Self::File(_) => 0,
            Self::Share(share) => share.0.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[ParamSpec] = &[
        ParamSpec {
            name: "size",
            kind: ParamKind::Size { min: Bytes(4096), max: Bytes(1 << 30) },
            default: Some("50M"),
            help: "",
        },
        ParamSpec { name: "reads", kind: ParamKind::Count { min: 0, max: 9 }, default: Some("2"), help: "" },
        ParamSpec { name: "disk", kind: ParamKind::Choice(&["hdd", "ssd"]), default: None, help: "" },
    ];

    fn shown(params: &Params) -> String {
        params.iter().map(|(name, value)| format!("{name}={value} ")).collect()
    }

    #[test]
    fn defaults_stand_until_they_are_set_and_none_unsets_only_the_optional() {
        let mut params = Params::defaults(SPECS);
        assert_eq!(shown(&params), "reads=2 size=50M ");
        params.set("disk", "ssd").unwrap();
        params.set("size", "8 KiB").unwrap();
        assert_eq!(shown(&params), "disk=ssd reads=2 size=8k ");
        params.set("disk", "none").unwrap();
        assert!(params.set("size", "none").is_err());
        assert_eq!(shown(&params), "reads=2 size=8k ");
    }

    #[test]
    fn every_mistake_names_the_parameter_and_the_remedy() {
        let mut params = Params::defaults(SPECS);
        let mut report = String::new();
        for (name, value) in [
            ("raeds", "3"),
            ("reads", "ten"),
            ("reads", "+1"),
            ("reads", "10"),
            ("reads", "99999999999999999999"),
            ("size", "-5M"),
            ("size", "1"),
            ("size", "2G"),
            ("disk", "sdd"),
        ] {
            let error = params.set(name, value).unwrap_err();
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            report += &format!("{error}{hint}\n");
        }
        insta::assert_snapshot!(report, @"
        unknown parameter `raeds`; did you mean `reads`?
        parameter `reads`: `ten` is not a whole number from 0 to 2^64 - 1
        parameter `reads`: `+1` is not a whole number from 0 to 2^64 - 1
        parameter `reads`: 10 is outside of 0 to 9
        parameter `reads`: `99999999999999999999` is not a whole number from 0 to 2^64 - 1
        parameter `size`: `-5M` is negative; write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
        parameter `size`: 1 is outside of 4k to 1G
        parameter `size`: 2G is outside of 4k to 1G
        parameter `disk`: unknown choice `sdd`; did you mean `hdd` or `ssd`?
    ");
        assert_eq!(params, Params::defaults(SPECS), "a mistake changes nothing");
    }

    #[test]
    fn pairs_are_split_at_the_first_equals_sign() {
        assert_eq!(split_pair(" a = b=c "), Ok(("a", "b=c")));
        assert_eq!(split_pair("a="), Ok(("a", "")));
        assert!(split_pair("hot").is_err() && split_pair("=5").is_err());
    }
}
