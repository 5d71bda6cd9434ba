//! Limits as a person writes them: `--fail-if 'files_per_sec < -5%'`.
//!
//! | form | crossed when |
//! |---|---|
//! | `NAME < -5%` | the change from the baseline is below -5 %; also `<=`, `>`, `>=` |
//! | `NAME change > 100` | the change is above 100, in the unit of the number or in one that is named |
//! | `NAME > 100`, `NAME > 2ms` | the number itself is |
//! | `NAME worse`, `NAME worse by 5%` | it went the way that is worse, by more than so much; also `better`, `changed` |
//!
//! Left out: how a limit is judged, which is `pagetide-report`'s.

use report::{Amount, Condition, Group, Judged, Limit, LimitError, LimitOn, Order, View, Way};
use workload::UnknownName;
use workload::names::nearest;

use crate::error::LabError;
use crate::resolve::texts::first_twice;
use crate::show::view::headlines;

/// Reads limits.
///
/// # Errors
/// One that cannot be read, or that is given twice.
pub fn parse(texts: &[String]) -> Result<Vec<Limit>, LabError> {
    let limits: Vec<Limit> = texts.iter().map(|text| limit(text)).collect::<Result<_, _>>()?;
    match first_twice(&limits) {
        Some(limit) => Err(LabError::twice("--fail-if", &limit.text)),
        None => Ok(limits),
    }
}

/// Names that `workload` is not known to have, with what may be meant: a sentence each. It may have them all the
/// same: which metrics there are is known after the first run.
pub fn doubtful(limits: &[Limit], workload: &str) -> Vec<String> {
    let counters = crate::name::counters::list().column("counter");
    let headlines = headlines(workload);
    let known = || headlines.iter().map(|headline| headline.name).chain(counters.iter().map(String::as_str));
    let doubt = |limit: &Limit| {
        let name = limit.name.as_str();
        let is_known =
            known().any(|known| name.strip_prefix(known).is_some_and(|rest| !rest.starts_with('_')));
        let near = nearest(name, known()).filter(|_| !is_known && !name.contains(':'))?;
        Some(format!("`{}`: no headline or counter is called `{name}`; did you mean `{near}`?", limit.text))
    };
    limits.iter().filter_map(doubt).collect()
}

/// Judges `limits` on every column but the first.
///
/// # Errors
/// A limit on what no run has, or that does not suit it.
pub fn judge(groups: &[Group<'_>], view: &View, limits: &[Limit]) -> Result<Vec<Judged>, LabError> {
    report::judge_limits(groups, view, limits).map_err(|error| match error {
        LimitError::Unknown { limit, name, known } => {
            let unknown = UnknownName::new("metric", &name, known.iter().map(String::as_str));
            let message =
                format!("`--fail-if '{limit}'`: no run has a metric, samples or a counter `{name}`");
            LabError::refused(message, unknown.hint())
        }
        error => {
            let hint = match &error {
                LimitError::NoDirection { name, .. } => {
                    format!("say it with a sign, as in `{name} > +5%`, or `{name} changed by 5%`")
                }
                _ => "give the amount without a unit, or in percent".to_owned(),
            };
            LabError::refused(format!("`--fail-if`: {error}"), hint)
        }
    })
}

/// That limits were not kept, if so.
pub fn failure(judged: &[Judged]) -> Option<LabError> {
    let failed = judged.iter().filter(|judged| judged.outcome.fails());
    let told: Vec<String> = failed.map(Judged::told).collect();
    (!told.is_empty()).then_some(LabError::Crossed { failed: told.len(), total: judged.len(), told })
}

fn limit(text: &str) -> Result<Limit, LabError> {
    const FORMS: &str = "write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number \
                         itself, `METRIC change > 100`, or `METRIC worse by 5%`";
    let text = text.trim();
    let wrong = |problem: &str, hint: Option<&str>| {
        LabError::refused(format!("`--fail-if '{text}'`: {problem}"), hint.unwrap_or(FORMS))
    };
    let (name, condition) = match text.find(['<', '>']) {
        Some(at) => compared(&text[..at], &text[at..]),
        None => went(text),
    }
    .map_err(|Wrong { problem, hint }| wrong(&problem, hint.as_deref()))?;
    if name.is_empty() {
        return Err(wrong("there is no name of a metric before the condition", None));
    }
    Ok(Limit { text: text.to_owned(), name: name.to_owned(), condition })
}

/// What is wrong with a part of a limit.
struct Wrong {
    problem: String,
    hint: Option<String>,
}

impl Wrong {
    fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: None }
    }

    fn with(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// `NAME [change]`, then an order and an amount.
fn compared<'a>(name: &'a str, rest: &str) -> Result<(&'a str, Condition), Wrong> {
    const ORDERS: [(&str, Order); 4] = [
        ("<=", Order::LessOrEqual),
        (">=", Order::GreaterOrEqual),
        ("<", Order::Less),
        (">", Order::Greater),
    ];
    let (sign, order) = ORDERS.into_iter().find(|(sign, _)| rest.starts_with(sign)).expect("it was found");
    let written = rest[sign.len()..].trim();
    let (signed, amount) = amount(written)?;
    let name = name.trim();
    let asked = name.strip_suffix(" change").map(str::trim_end);
    let name = asked.unwrap_or(name);
    if signed && asked.is_none() && !matches!(amount, Amount::Percent(_)) {
        let unsigned = written.trim_start_matches(['+', '-']).trim_start();
        return Err(Wrong::new(format!("`{written}` has a sign, so it is no value of a metric")).with(format!(
            "write `{name} change {sign} {written}` for the change, or `{name} {sign} {unsigned}` for the number itself"
        )));
    }
    let of = match amount {
        Amount::Percent(_) => LimitOn::Change,
        _ if asked.is_some() => LimitOn::Change,
        _ => LimitOn::Value,
    };
    Ok((name, Condition::Compared { of, order, amount }))
}

/// `NAME worse [by [more than] AMOUNT]`.
fn went(text: &str) -> Result<(&str, Condition), Wrong> {
    const WAYS: [(&str, Way); 3] =
        [("worse", Way::Worse), ("better", Way::Better), ("changed", Way::Changed)];
    let is_word = |at: usize, word: &str| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        (before.is_empty() || before.ends_with(char::is_whitespace))
            && (after.is_empty() || after.starts_with(char::is_whitespace))
    };
    let found = WAYS.into_iter().find_map(|(word, way)| {
        text.match_indices(word).map(|(at, _)| at).find(|&at| is_word(at, word)).map(|at| (at, word, way))
    });
    let Some((at, word, way)) = found else {
        return Err(match text.contains('=') {
            true => Wrong::new("`=` is no condition; a measured number is seldom exactly another"),
            false => Wrong::new("there is no condition in it"),
        });
    };
    let rest = text[at + word.len()..].trim();
    let by = match rest.strip_prefix("by ") {
        _ if rest.is_empty() => None,
        Some(by) => Some(by.trim_start()),
        None => {
            return Err(Wrong::new(format!("`{rest}` after `{word}`"))
                .with(format!("write `{word}`, or `{word} by 5%`")));
        }
    };
    let by = by.map(|by| amount(by.strip_prefix("more than ").unwrap_or(by)));
    let amount = match by.transpose()? {
        None => None,
        Some((true, _)) => {
            return Err(Wrong::new(format!("an amount after `{word} by` has no sign"))
                .with(format!("`{word}` says the way already: write `{word} by 5%`")));
        }
        Some((false, amount)) => Some(amount),
    };
    Ok((text[..at].trim(), Condition::Went(way, amount)))
}

/// An amount, and whether it has a sign.
fn amount(text: &str) -> Result<(bool, Amount), Wrong> {
    const TIMES: [(&str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9)];
    const SIZES: [(&str, f64); 5] =
        [("B", 1.0), ("kB", 1024.0), ("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0)];
    let signed = text.starts_with(['+', '-']);
    let number = text.trim_start_matches('+').trim_start_matches('-').trim_start();
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (digits, unit) = (&number[..end], number[end..].trim());
    let Ok(value) = digits.parse::<f64>() else {
        return Err(match text.is_empty() {
            true => Wrong::new("there is no amount after the condition"),
            false => Wrong::new(format!("`{text}` is no amount, such as 5%, 100 or 2ms")),
        });
    };
    let value = if text.starts_with('-') { -value } else { value };
    let of = |units: &[(&str, f64)]| units.iter().find(|(name, _)| *name == unit).map(|(_, of)| value * of);
    let amount = match unit {
        "" => Amount::Plain(value),
        "%" => Amount::Percent(value),
        _ => of(&TIMES).map(Amount::Nanoseconds).or_else(|| of(&SIZES).map(Amount::Bytes)).ok_or_else(
            || {
                let units = TIMES.iter().chain(&SIZES).map(|(name, _)| *name).chain(["%"]);
                let unknown = UnknownName::new("unit", unit, units);
                Wrong::new(unknown.to_string()).with(unknown.hint())
            },
        )?,
    };
    Ok((signed, amount))
}

#[cfg(test)]
mod tests;
