//! One file a view: what it says of what, as one [`crate::Document`] for all formats.
//!
//! [`crate::document`] tells how to write one. Files that make no document of their own are sections that several
//! views have: who waited, who blocks on whom, what the OOM killer took, notes.

mod ablate;
mod blocked;
mod checked;
mod compare;
mod explain;
mod findings;
mod grid;
pub mod heat;
mod histogram;
mod latency;
mod limits;
mod list;
mod metrics;
mod mmtests;
mod notes;
mod oom;
pub mod page;
mod pressure;
mod printed;
mod recordings;
mod run;
mod samples;
mod size;
mod sweep;
mod trace_info;
mod waits;
mod world;
mod worlds;

#[cfg(test)]
pub(crate) use blocked::who_blocks;
#[cfg(test)]
pub(crate) use histogram::histogram;
#[cfg(test)]
pub(crate) use run::timeline;
#[cfg(test)]
pub(crate) use waits::{by_phase, who_waited};

pub use ablate::ablate;
pub use checked::{BrokenWorld, CheckedWorlds, checked};
pub use compare::compare;
pub use explain::{Digest, Explained, Question, explain, folded_stacks};
pub use grid::{Grid, GridKernel, GridLayout, GridRow, grid};
pub use limits::{junit, sarif};
pub use list::{List, list};
pub use metrics::metrics;
pub use mmtests::{
    Place, better, better_in, mmtests_notes, mmtests_tables, mmtests_text, ops_text, pooled_samples,
    usual_rows,
};
pub use run::{run, runs};
pub use samples::samples;
pub use size::{
    Advice, CheckedPoint, Ended, OtherDisk, OwnCache, OwnCaches, Patch, PatchKind, Practice, ProgramCheck,
    SampleCheck, Sized, SizedKnee, SizedPoint, Spread, VerifiedPoint, Watched, WatchedRule, own_cache,
    own_cache_page, size, size_page, watched,
};
pub use sweep::{SweepRow, SweepRows, sweep};
pub use trace_info::trace_info;
pub use world::{EvidenceCounter, Parting, WorldEvidence, world};
pub use worlds::{WorldsCounter, WorldsHeadline, WorldsShares, WorldsSummary, worlds};
