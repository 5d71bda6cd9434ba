//! A world that disagrees made smaller while it still does.
//!
//! Each try runs both sides as often as in the folder; a smaller world disagrees if the same counter is more than 10 %
//! off on the same side, or its runs end as differently as before. Neighbours: `smaller.rs` says what is tried,
//! `evidence.rs` what is told of the smallest.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use recording::worlds::WorldRow;
use report::WorldEvidence;

use super::draw::Drawn;
use super::judge::Class;
use super::one::OneWorld;
use super::smaller::smaller;
use super::{WorldsControl, WorldsError};
use crate::error::LabError;
use crate::resolve::command::command;

/// A smaller world was tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorldTried<'a> {
    /// How many have been, this one included.
    pub tried: usize,
    /// Whether it disagrees.
    pub disagrees: bool,
    /// The command of its model.
    pub command: &'a str,
    /// Seconds since the first.
    pub seconds: f64,
}

impl OneWorld {
    /// Makes it smaller, and says what the smallest one that still disagrees shows. Who stops it has the smallest so
    /// far.
    ///
    /// # Errors
    /// It does not disagree any more; both sides cannot run.
    pub fn shrink(
        &self,
        control: &WorldsControl,
        told: &dyn Fn(WorldTried<'_>),
    ) -> Result<(WorldEvidence, Option<LabError>), LabError> {
        let begin = Instant::now();
        let Some(first) = self.disagreement(&self.drawn, control)? else {
            if control.stop.load(Ordering::Relaxed) {
                return Err(WorldsError::ShrinkInterrupted(self.name.clone()).into());
            }
            let (world, counter) = (self.name.clone(), self.wanted.counter.clone());
            return Err(WorldsError::AgreesNow { world, counter }.into());
        };
        let mut rows = first;
        let mut tried = 0;
        let found = smaller(self.drawn.clone(), |other| {
            let is_over = self.time.is_some_and(|time| begin.elapsed() > time);
            if is_over || control.stop.load(Ordering::Relaxed) {
                return None;
            }
            let Ok(world) = self.plan.sides(self.seed, other) else { return Some(false) };
            let disagreement = self.disagreement(other, control).ok().flatten();
            if control.stop.load(Ordering::Relaxed) {
                return None;
            }
            tried += 1;
            let (disagrees, seconds) = (disagreement.is_some(), begin.elapsed().as_secs_f64());
            let command = command(&world.model[0].scenario);
            told(WorldTried { tried, disagrees, command: &command, seconds });
            rows = disagreement.unwrap_or_else(|| std::mem::take(&mut rows));
            Some(disagrees)
        });
        let interrupted = control.stop.load(Ordering::Relaxed);
        let interrupted = interrupted.then(|| WorldsError::ShrinkInterrupted(self.name.clone()).into());
        // Who has waited so long shall see what came of it.
        let control = &WorldsControl { stop: Arc::default(), ..control.clone() };
        let mut evidence = self.evidence(&found.drawn, rows, control)?;
        evidence.tried = Some(tried);
        evidence.is_smallest = found.is_smallest;
        evidence.counters.clear();
        Ok((evidence, interrupted))
    }

    /// The rows of such a world if the counter disagrees there as it does here.
    fn disagreement(
        &self,
        drawn: &Drawn,
        control: &WorldsControl,
    ) -> Result<Option<Vec<WorldRow>>, LabError> {
        let world = self.plan.sides(self.seed, drawn)?;
        let Some(rows) = self.plan.rows_of(&world, control) else { return Ok(None) };
        let row = rows.iter().find(|row| self.is_wanted(row));
        let disagrees = row.is_some_and(|row| {
            let same_side = match (row.error, self.wanted.error) {
                (Some(now), Some(before)) => now.is_sign_negative() == before.is_sign_negative(),
                // How runs ended: each as before.
                (None, None) => {
                    (row.real.first(), row.model.first())
                        == (self.wanted.real.first(), self.wanted.model.first())
                }
                _ => false,
            };
            same_side && Class::named(&row.class).is_some_and(Class::disagrees)
        });
        Ok(disagrees.then_some(rows))
    }
}
