//! Pure statistics of comparison: what a set of samples says, and whether two sets differ.
//!
//! Start with [`describe`] (means and spread), then [`mod@shift`] (the difference of two means by what the samples
//! allow), which stands on [`difference`] (Welch's and the paired t test). [`percentile`] has tails of latencies,
//! [`factorial`] effects and interactions from runs of every combination. [`multiple`] corrects p values of many
//! questions asked at once.
//! [`mmtests`] computes the rows, percentages and stars of the field's reference suite, as two labelled
//! compatibility modes; [`mmtests_table`] lays them out, and [`ops`] derives that suite's "Ops" rows
//! from `/proc/vmstat` totals.
//!
//! Deliberately absent: I/O, clocks, global state and hidden randomness (seeds are fixed). A value that cannot be
//! computed is `None`, never 0: missing is not zero.

pub mod describe;
pub mod difference;
pub mod factorial;
pub mod mmtests;
pub mod mmtests_table;
pub mod multiple;
pub mod ops;
pub mod percentile;
pub mod shift;

pub use describe::Summary;
pub use difference::{Difference, Method, Test, paired_t_test, welch_t_test};
pub use factorial::Halves;
pub use mmtests::{Better, Rules};
pub use shift::{shift, shift_of_rates};
