//! What real kernels are known to differ from the model by, for runs like one: a sentence, and numbers for programs.
//!
//! The caller knows which worlds are like a run, and hands them in with how it is shown (`view.rs`). Left out: how
//! worlds were judged (`pagetide-lab`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// By how much the model was off, over many worlds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownOff {
    /// In how many worlds.
    pub worlds: usize,
    /// The median error, as a part of the real value; infinite where that is 0.
    pub median: f64,
    /// Nine of ten are at most this.
    pub p90: f64,
    /// Which part of them is within a tenth.
    pub within_10: f64,
}

/// What is known of runs like one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Worlds of what: the kernel, its workload, whose room is short.
    pub of: String,
    /// Whether they are of its workload, and not of all.
    pub is_own: bool,
    /// Worlds that are near it; 0 is that nobody held this kernel to a real one.
    pub worlds: usize,
    /// What is counted.
    pub counts: Option<KnownOff>,
    /// Times and rates.
    pub times: Option<KnownOff>,
    /// Metrics and counters of `/proc/vmstat`, by name.
    pub measures: BTreeMap<String, KnownOff>,
    /// Why no world was like it, a phrase each; empty where some were.
    pub outside: Vec<String>,
}

/// What is nearer than this is not told apart.
const LEAST: f64 = 0.001;
/// Reasons that a sentence has.
const REASONS: usize = 3;

impl Known {
    /// In one sentence.
    pub(crate) fn told(&self) -> String {
        let worlds = if self.worlds == 1 { "1 world".to_owned() } else { format!("{} worlds", self.worlds) };
        let (counts, times) = (self.counts.map(told), self.times.map(told));
        let found = match (counts, times) {
            (Some(counts), Some(times)) => format!("{counts}; times: {times}"),
            (Some(counts), None) => counts,
            (None, Some(times)) => format!("times: {times}"),
            (None, None) => "nothing was judged".to_owned(),
        };
        match (self.worlds, self.outside.is_empty()) {
            (0, _) => format!("not held to real kernels: there are no worlds of {}", self.of),
            (_, true) if self.is_own => format!("real kernels in {worlds} like this: {found}"),
            (_, true) => format!("real kernels in {worlds} of {}: {found}", self.of),
            (_, false) => {
                let more = self.outside.len().saturating_sub(REASONS);
                let more = if more > 0 { format!(", and {more} more") } else { String::new() };
                let reasons = self.outside.iter().take(REASONS).cloned().collect::<Vec<_>>().join(", ");
                format!(
                    "outside of what was held to real kernels ({reasons}{more}); {worlds} of {}: {found}",
                    self.of
                )
            }
        }
    }

    /// For programs; an error from 0 is `null`.
    pub(crate) fn value(&self) -> Value {
        let measures: serde_json::Map<_, _> =
            self.measures.iter().map(|(name, off)| (name.clone(), value(*off))).collect();
        json!({
            "of": self.of, "worlds": self.worlds, "counts": self.counts.map(value), "times": self.times.map(value),
            "measures": measures, "outside": self.outside,
        })
    }
}

fn told(off: KnownOff) -> String {
    let median = if off.median.is_finite() { percent(off.median) } else { "from 0".to_owned() };
    // What one side does not do at all is off by all of it, and says nothing of the others.
    let most = if off.p90 >= 1.0 {
        format!("{:.0} % of them within 10 %", off.within_10 * 100.0)
    } else {
        format!("9 in 10 within {}", percent(off.p90.max(LEAST)))
    };
    format!("median {median}, {most}")
}

/// A part in percent, in few digits.
pub(crate) fn percent(part: f64) -> String {
    match part * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.1 => "<0.1 %".to_owned(),
        percent if percent < 10.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

fn value(off: KnownOff) -> Value {
    json!({ "worlds": off.worlds, "median_error": off.median, "p90_error": off.p90, "within_10_percent": off.within_10 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(median: f64, p90: f64) -> Option<KnownOff> {
        Some(KnownOff { worlds: 7, median, p90, within_10: 0.75 })
    }

    fn known() -> Known {
        let of = "linux-6.12, hot-and-stream, under a limit".to_owned();
        Known { of, is_own: true, worlds: 214, counts: off(0.004, 0.03), ..Known::default() }
    }

    #[test]
    fn a_run_is_told_what_real_kernels_differ_by() {
        assert_eq!(
            known().told(),
            "real kernels in 214 worlds like this: median 0.4 %, 9 in 10 within 3.0 %"
        );
        let far = Known { counts: off(0.0, f64::INFINITY), times: off(f64::INFINITY, 0.5), ..known() };
        assert_eq!(
            far.told(),
            "real kernels in 214 worlds like this: median 0 %, 75 % of them within 10 %; times: median from 0, \
             9 in 10 within 50 %"
        );
    }

    #[test]
    fn what_no_world_is_like_is_said() {
        let outside = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(
            Known { outside, ..known() }.told(),
            "outside of what was held to real kernels (a, b, c, and 1 more); 214 worlds of linux-6.12, \
             hot-and-stream, under a limit: median 0.4 %, 9 in 10 within 3.0 %"
        );
        let few = Known { is_own: false, ..known() };
        assert!(few.told().starts_with("real kernels in 214 worlds of linux-6.12, hot-and-stream"));
        let none = Known { of: "linux-5.4".to_owned(), ..Known::default() };
        assert_eq!(none.told(), "not held to real kernels: there are no worlds of linux-5.4");
        assert_eq!(none.value()["counts"], Value::Null);
    }
}
