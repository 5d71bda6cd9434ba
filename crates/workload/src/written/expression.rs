//! Amounts as a workload file writes them: `"18G"`, `"$hot + 16M"`, `"0.25 * $memory"`, `"20 * 1ms"`.
//!
//! Numbers with the suffixes of sizes, counts or times, as the place asks for; parameters by `$name`, `$memory`,
//! the machine's, and in steps `$task`; `+ - * /` and parentheses. Worked out in 64-bit floats, which hold every size
//! that can be modelled, and rounded down. Left out: conditions and functions. Next: [`super::read`], which asks for
//! them.

use std::collections::BTreeMap;
use std::fmt;

use language::amount::parse_count;
use units::{parse_nanos, parse_size};

/// What an amount is of, which decides what suffixes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// `50M`: suffixes are powers of 1024.
    Bytes,
    /// `10k`: suffixes are powers of 1000.
    Count,
    /// `20ms`, in nanoseconds.
    Time,
}

/// The name of the machine's memory.
pub(crate) const MEMORY: &str = "memory";
/// In steps: the number of the task among those of its kind, from 0.
pub(crate) const TASK: &str = "task";

/// More than this is no amount of anything here: 2^53, up to which floats are exact.
const AMOUNT_MAX: f64 = (1_u64 << 53) as f64;

/// An amount that may hang on parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Number(f64),
    Name(String),
    Of(Box<Expression>, Operator, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    By,
}

impl Operator {
    const ALL: [(char, Self); 4] =
        [('+', Self::Plus), ('-', Self::Minus), ('*', Self::Times), ('/', Self::By)];

    fn of(sign: char) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| *own == sign).map(|&(_, operator)| operator)
    }

    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Plus => left + right,
            Self::Minus => left - right,
            Self::Times => left * right,
            Self::By => left / right,
        }
    }
}

/// Values of names.
pub(crate) type Values = BTreeMap<String, f64>;

impl Expression {
    /// Reads an amount of `unit`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse(text: &str, unit: Unit) -> Result<Self, String> {
        let mut parser = Parser { text, rest: text, unit, depth: 0, has_unit: false };
        let read = parser.sum()?;
        if !parser.rest.trim_start().is_empty() {
            return Err(format!(
                "`{text}` goes on with `{}`, which is no operator",
                parser.rest.trim_start()
            ));
        }
        if unit == Unit::Time && !parser.has_unit {
            return Err(format!("`{text}` is no time: write `20ms`, or `$pause * 1ms`"));
        }
        Ok(read)
    }

    /// The names in it.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Of(left, _, right) => left.names().into_iter().chain(right.names()).collect(),
        }
    }

    /// What it comes to, rounded down.
    ///
    /// # Errors
    /// Less than nothing, more than 2^53, a division by nothing, or a name that has no value.
    pub(crate) fn value(&self, values: &Values) -> Result<u64, String> {
        let Some(value) = self.exact(values) else {
            return Err(format!("`{self}` hangs on a parameter that is not set"));
        };
        match value {
            _ if value.is_nan() || value.is_infinite() => Err(format!("`{self}` divides by 0")),
            _ if value < 0.0 => Err(format!("`{self}` comes to less than 0")),
            _ if value > AMOUNT_MAX => Err(format!("`{self}` comes to more than 2^53")),
            _ => Ok(value as u64),
        }
    }

    fn exact(&self, values: &Values) -> Option<f64> {
        Some(match self {
            Self::Number(number) => *number,
            Self::Name(name) => *values.get(name)?,
            Self::Of(left, operator, right) => operator.apply(left.exact(values)?, right.exact(values)?),
        })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => write!(f, "${name}"),
            Self::Of(left, operator, right) => {
                let sign =
                    Operator::ALL.iter().find(|(_, own)| own == operator).map_or('?', |&(sign, _)| sign);
                let part = |part: &Self| match part {
                    Self::Of(..) => format!("({part})"),
                    _ => part.to_string(),
                };
                write!(f, "{} {sign} {}", part(left), part(right))
            }
        }
    }
}

/// Parentheses in one another, at most.
const DEPTH_MAX: u32 = 16;

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    unit: Unit,
    depth: u32,
    has_unit: bool,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        while let Some(operator) = self.operator(&[Operator::Plus, Operator::Minus]) {
            left = Expression::Of(Box::new(left), operator, Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.part()?;
        while let Some(operator) = self.operator(&[Operator::Times, Operator::By]) {
            left = Expression::Of(Box::new(left), operator, Box::new(self.part()?));
        }
        Ok(left)
    }

    fn operator(&mut self, of: &[Operator]) -> Option<Operator> {
        let rest = self.rest.trim_start();
        let sign = rest.chars().next()?;
        let operator = Operator::of(sign).filter(|operator| of.contains(operator))?;
        self.rest = &rest[1..];
        Some(operator)
    }

    fn part(&mut self) -> Result<Expression, String> {
        let rest = self.rest.trim_start();
        if let Some(inner) = rest.strip_prefix('(') {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(format!("`{}` has more than {DEPTH_MAX} parentheses in one another", self.text));
            }
            self.rest = inner;
            let read = self.sum()?;
            self.rest = (self.rest.trim_start().strip_prefix(')'))
                .ok_or_else(|| format!("a `)` is missing in `{}`", self.text))?;
            self.depth -= 1;
            return Ok(read);
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(name) = rest.strip_prefix('$') {
            let end = name.find(|c| !is_word(c)).unwrap_or(name.len());
            let (name, rest) = name.split_at(end);
            if name.is_empty() {
                return Err(format!("a name is missing behind `$` in `{}`", self.text));
            }
            self.rest = rest;
            return Ok(Expression::Name(name.to_owned()));
        }
        let end = rest.find(|c| !is_word(c) && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        if number.is_empty() {
            return Err(match rest.chars().next() {
                None => format!("an amount is missing at the end of `{}`", self.text),
                Some(found) => format!("`{}` has `{found}` where an amount should be", self.text),
            });
        }
        self.rest = behind;
        self.number(number)
    }

    fn number(&mut self, text: &str) -> Result<Expression, String> {
        if let Ok(plain) = text.parse::<f64>()
            && plain.is_finite()
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            return Ok(Expression::Number(plain));
        }
        self.has_unit = true;
        let read = match self.unit {
            Unit::Bytes => parse_size(text).map(|bytes| bytes.get()).map_err(|error| error.to_string()),
            Unit::Count => parse_count(text).map_err(|error| error.to_string()),
            Unit::Time => parse_nanos(text).map(|time| time.get()).map_err(|error| error.to_string()),
        };
        read.map(|number| Expression::Number(number as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, unit: Unit) -> Result<u64, String> {
        let values = Values::from([("hot".to_owned(), 1024.0), ("memory".to_owned(), 4096.0)]);
        Expression::parse(text, unit)?.value(&values)
    }

    #[test]
    fn amounts_are_worked_out_in_the_units_of_their_place() {
        for (text, unit, amount) in [
            ("50M", Unit::Bytes, 50 << 20),
            ("10k", Unit::Count, 10_000),
            ("20ms", Unit::Time, 20_000_000),
            ("$hot + 16M", Unit::Bytes, 1024 + (16 << 20)),
            ("0.25 * $memory", Unit::Bytes, 1024),
            ("2 * ($hot - 24) / 3", Unit::Count, 666),
            ("3 * 1ms", Unit::Time, 3_000_000),
            ("1 - 1 - 0", Unit::Count, 0),
        ] {
            assert_eq!(value(text, unit), Ok(amount), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_told_in_words() {
        let told = |text, unit| value(text, unit).unwrap_err();
        insta::assert_snapshot!(
            [
                told("", Unit::Bytes),
                told("5x", Unit::Bytes),
                told("2 *", Unit::Count),
                told("(2", Unit::Count),
                told("2 3", Unit::Count),
                told("20", Unit::Time),
                told("$", Unit::Count),
                told("-5", Unit::Count),
                told("1 - 2", Unit::Count),
                told("1 / 0", Unit::Count),
                told("99999999999G * 99999", Unit::Bytes),
                told(&"(".repeat(40), Unit::Bytes),
            ]
            .join("\n"),
            @"
            an amount is missing at the end of ``
            `5x` is not a size
            an amount is missing at the end of `2 *`
            a `)` is missing in `(2`
            `2 3` goes on with `3`, which is no operator
            `20` is no time: write `20ms`, or `$pause * 1ms`
            a name is missing behind `$` in `$`
            `-5` has `-` where an amount should be
            `1 - 2` comes to less than 0
            `1 / 0` divides by 0
            `99999999999G` is too large
            `((((((((((((((((((((((((((((((((((((((((` has more than 16 parentheses in one another
            "
        );
    }
}
