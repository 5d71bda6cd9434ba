//! What came of limits on a comparison. Next: [`crate::limits`], which judges them.

use crate::document::number::{plain, signed_percent};

/// What came of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Kept,
    /// It does not.
    Crossed,
    /// It would not, were the change clear from noise.
    Unclear,
    /// There is no number to judge by.
    Missing,
}

impl Outcome {
    /// In one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Crossed => "crossed",
            Self::Unclear => "not clear",
            Self::Missing => "no number",
        }
    }

    /// Whether it fails whoever set the limit.
    pub const fn fails(self) -> bool {
        matches!(self, Self::Crossed | Self::Missing)
    }
}

/// One limit on one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The limit, as it was written.
    pub limit: String,
    /// The column.
    pub label: String,
    /// Mean of the baseline and of the column.
    pub values: [Option<f64>; 2],
    /// The change with its interval, as text.
    pub change: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Why, where the numbers do not say it.
    pub why: &'static str,
}

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
