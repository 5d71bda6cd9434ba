//! Changes of one candidate against the baseline, each with a bar: what a summary shows.
//!
//! All bars stand on one axis from 0 at its left to 1 at its right, whose middle is no change. Left out: how a change
//! becomes a place on it (`views/page/summary.rs`).

/// Rows of metrics with bars.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    pub(crate) base: String,
    pub(crate) candidate: String,
    /// What heads the changes.
    pub(crate) heading: &'static str,
    /// Places on the axis that have a text.
    pub(crate) ticks: Vec<(f64, &'static str)>,
    /// Places on the axis that have a line.
    pub(crate) grid: Vec<f64>,
    pub(crate) rows: Vec<ChangeRow>,
}

/// One metric.
#[derive(Debug, Clone)]
pub(crate) struct ChangeRow {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) help: &'static str,
    pub(crate) base: String,
    pub(crate) candidate: String,
    pub(crate) change: String,
    pub(crate) verdict: &'static str,
    pub(crate) bar: Option<ChangeBar>,
}

/// From no change to a place.
#[derive(Debug, Clone)]
pub(crate) struct ChangeBar {
    pub(crate) end: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// Whether it goes on beyond the axis.
    pub(crate) is_beyond: bool,
    /// In words, for who does not see it.
    pub(crate) said: String,
}

/// How a verdict looks, as a class.
pub(crate) fn look_of(verdict: &str) -> &str {
    match verdict {
        "better" | "worse" => verdict,
        _ => "plain",
    }
}
