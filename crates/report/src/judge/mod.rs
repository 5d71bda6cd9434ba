//! What recordings come to, before anybody says it: measures, sides, changes, verdicts.
//!
//! Rules by which two sides are judged are in [`change`]; [`compared`] and [`effects`] apply them to comparisons and
//! to ablations, [`limits`] to what a caller will not have. [`measure`] knows which way is the good one, [`view`] what
//! a reader looks at first. Left out: words and tables ([`crate::views`]).

pub(crate) mod change;
pub(crate) mod compared;
pub(crate) mod effects;
pub(crate) mod group;
pub(crate) mod known;
pub(crate) mod limits;
pub mod measure;
pub(crate) mod outcome;
pub(crate) mod view;

pub(crate) use change::{Change, LEVEL, Pairing, Side, TestsTold, is_modelled, method_name};
pub(crate) use compared::{Compared, Row, Rows, absent, by_seed, recordings_of};
pub(crate) use effects::{Ablated, AblatedRun, Effect, Effects, MeasureEffects, Subset};
pub(crate) use group::{Group, ReportError, common_workload, common_workload_of_groups};
pub(crate) use measure::{Direction, direction, unit};
pub(crate) use outcome::Judged;
pub(crate) use view::{Headline, Measure, Measures, Scale, View};
