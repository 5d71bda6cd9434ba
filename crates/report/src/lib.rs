//! Recordings to what people and programs read: text, Markdown, JSON, CSV, HTML and SVG.
//!
//! Start with [`views`]: each makes one [`Document`] of what it is given, such as [`views::run`] of one recording and
//! [`views::compare`] of several, the first of which is the baseline. [`Document::render`] writes any of them in any
//! [`Format`]. A [`View`] says how much is shown and which measures matter most, a [`Style`] how wide.
//!
//! | room | what is there | uses |
//! |---|---|---|
//! | `document` | sections, blocks, tables with typed cells, figures as data, numbers as text | |
//! | `render` | one renderer a format, over any document | `document` |
//! | `judge` | measures, sides, changes, verdicts, effects, limits | `document` (numbers as text) |
//! | `views` | one file a view | all above |
//! | `trace` | a run for other programs: Perfetto, ftrace, `trace.dat` | |
//!
//! Deliberately absent: I/O, colour, clocks, and any knowledge of how a recording was made. The same recordings give
//! the same text.

mod document;
mod judge;
mod render;
mod trace;
pub mod views;

pub use document::{Cell, Document, number};
pub use judge::effects::{Ablated, AblatedRun, Subset};
pub use judge::group::{Group, ReportError, common_workload};
pub use judge::known::{Known, KnownOff};
pub use judge::limits::{Amount, Condition, Limit, LimitError, LimitOn, Order, Way, judge_limits};
pub use judge::measure::{self, Direction, direction, unit};
pub use judge::outcome::{Judged, Outcome};
pub use judge::view::{Headline, View};
pub use render::{Format, MARKS_OF_OURS, Style};
pub use stats::mmtests::{Better, RowSet, Rules};
pub use stats::mmtests_table::{Run, comparison, operations};
pub use trace::{RunTrace, TraceFormat};
pub use views::{
    Advice, BrokenWorld, CheckedPoint, CheckedWorlds, Digest, Ended, EvidenceCounter, Explained, Grid,
    GridKernel, GridLayout, GridRow, List, OtherDisk, OwnCache, OwnCaches, Parting, Patch, PatchKind, Place,
    Practice, ProgramCheck, Question, SampleCheck, Sized, SizedKnee, SizedPoint, Spread, SweepRow, SweepRows,
    VerifiedPoint, Watched, WatchedRule, WorldEvidence, WorldsCounter, WorldsHeadline, WorldsShares,
    WorldsSummary, better, better_in, heat, mmtests_notes, mmtests_tables, ops_text, page, pooled_samples,
    usual_rows,
};

#[cfg(test)]
mod tests;
