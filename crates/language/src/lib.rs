//! How people and files say what runs: names, parameters, amounts, metrics.
//!
//! Start with [`names`], the source of every "did you mean". [`params`] are values with a name, a range and a default;
//! [`amount`] is how many, and how much of a trace; [`metric`] is a number of a result and which way it is good.
//!
//! Left out: what any of them means, which each crate knows for itself.

pub mod amount;
pub mod metric;
pub mod names;
pub mod params;

pub use metric::{Better, MetricSpec};
pub use names::UnknownName;
pub use params::{ParamError, ParamKind, ParamSpec, ParamValue, Params, Share};
