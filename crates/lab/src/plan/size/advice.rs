//! What to set, from the curve and from runs with all of it set.
//!
//! - `memory.high`: the least limit that keeps the target with every seed, as does every larger one that was run.
//! - `memory.max`: so much above it that reclaim at `high` has room (`--headroom`). What a trace does not show,
//!   such as a busier day, needs room, too: how much is nothing that a trace can tell.
//! - `memory.low`: the knee of the curve, or `high` where that is less: below it a byte taken away costs more hits
//!   than one on average, so this is what others should not get.
//!
//! All three are run at once. If that does not keep the target, the next larger limit that was run takes the
//! place of `high`, a few times. Left out: which of them a system knows (`pagetide-report`).

use report::Advice;
use workload::limits::Limits;

use super::curve;
use super::measured::point;
use super::search::Search;
use crate::error::LabError;

/// Larger limits that are tried where the settings together do not keep the target.
const ATTEMPTS: usize = 3;

impl Search<'_> {
    /// Finds what to set, and runs it.
    pub(super) fn recommend(&mut self) -> Result<(), LabError> {
        let points = self.curve()?;
        let Some(first) = curve::enough(&points).filter(|_| !self.target.limits.is_empty()) else {
            return Ok(());
        };
        let knee = curve::knee(&points).map(|place| points[place].limit);
        for place in (first..points.len()).take(ATTEMPTS) {
            if self.stopped {
                break;
            }
            let high = points[place].limit;
            let headroom = self.field.plan.headroom;
            let max = curve::rounded_up(high.get() as f64 * (1.0 + headroom / 100.0));
            let low = knee.unwrap_or(high).min(high);
            let limits = Limits { max: Some(max), high: Some(high), low: Some(low) };
            let Some(runs) = self.runs(&[limits], false)?.pop().flatten() else { break };
            let run_as_set = point(Some(max), &self.base, &runs, &self.target)?;
            let keeps = run_as_set.keeps == Some(true);
            self.advice = Some(Advice {
                high: high.get(),
                max: max.get(),
                low: low.get(),
                too_small: first.checked_sub(1).map(|below| points[below].limit.get()),
                headroom,
                run_as_set: Some(run_as_set),
                low_is_knee: knee == Some(low) && low < high || knee == Some(high),
            });
            if keeps {
                break;
            }
        }
        Ok(())
    }
}
