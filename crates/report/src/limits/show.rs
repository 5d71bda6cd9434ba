//! Limits and what came of them, as every format shows them.

use serde_json::{Value, json};

use super::Judged;
use crate::number::{plain, signed_percent};
use crate::table::{Align, Table};
use crate::wrap::paragraph;

impl Judged {
    /// What happened, in one line.
    pub fn told(&self) -> String {
        let [base, new] = self.values.map(|value| value.map_or("none".to_owned(), plain));
        let change = match self.values {
            [Some(base), Some(new)] if base != 0.0 => {
                format!(" ({})", signed_percent(100.0 * (new - base) / base.abs()))
            }
            _ => String::new(),
        };
        let why = if self.why.is_empty() { String::new() } else { format!("; {}", self.why) };
        format!("`{}`, {}: {base} -> {new}{change}{why}", self.limit, self.label)
    }
}

/// The limits for a terminal; empty without any.
pub(crate) fn limits_text(judged: &[Judged], width: usize) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let lines: String = reasons(judged).iter().map(|line| paragraph(line, width, 2)).collect();
    format!("limits\n{}{lines}", table(judged).to_text(width))
}

/// [`limits_text`] in Markdown.
pub(crate) fn limits_markdown(judged: &[Judged]) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let lines: String = reasons(judged).iter().map(|line| format!("\n{line}\n")).collect();
    format!("{}{lines}", table(judged).to_markdown())
}

/// `[{"limit", "label", "baseline", "value", "outcome", "fails", "why"}]`.
pub(crate) fn limits_value(judged: &[Judged]) -> Value {
    let object = |judged: &Judged| {
        json!({
            "limit": judged.limit,
            "label": judged.label,
            "baseline": judged.values[0],
            "value": judged.values[1],
            "outcome": judged.outcome.word(),
            "fails": judged.outcome.fails(),
            "why": judged.why,
        })
    };
    judged.iter().map(object).collect()
}

/// For rows of CSV: the column, the limit, and its outcome.
pub(crate) fn limits_csv(judged: &[Judged]) -> impl Iterator<Item = [&str; 3]> {
    judged.iter().map(|Judged { label, limit, outcome, .. }| [label.as_str(), limit, outcome.word()])
}

fn table(judged: &[Judged]) -> Table {
    let headings = ["limit", "run", "baseline", "value", "change", "limit is"];
    let aligned = headings.map(|heading| {
        let number = matches!(heading, "baseline" | "value");
        (heading.to_owned(), if number { Align::Number } else { Align::Left })
    });
    let mut table = Table::new(aligned).named_by(2).breaking_names();
    let value = |value: Option<f64>| value.map_or("none".to_owned(), plain);
    for Judged { limit, label, values, change, outcome, .. } in judged {
        let [base, new] = values.map(value);
        table.push([limit.clone(), label.clone(), base, new, change.clone(), outcome.word().to_owned()]);
    }
    table
}

/// Why, each reason once with the limits that it is for.
fn reasons(judged: &[Judged]) -> Vec<String> {
    let told = judged.iter().filter(|judged| !judged.why.is_empty());
    told.map(|Judged { limit, label, why, .. }| format!("{limit}, {label}: {why}")).collect()
}
