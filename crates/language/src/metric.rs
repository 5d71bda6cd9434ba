//! The metrics of a workload that a person looks at first: which way is the good one, and what
//! each of them says.
//!
//! A workload lists its [`MetricSpec`]s as a constant beside its parameters, most telling first.
//! Left out: all else that a run measures, which is shown on demand.

/// One metric, or the mean of a kind of sample, that heads the report of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricSpec {
    /// The name in recordings, of a metric or of samples.
    pub name: &'static str,
    /// The unit of its numbers, in the form in which tables show it: `pages`, `s`, `MiB/s`;
    /// empty for a bare count.
    pub unit: &'static str,
    /// Which way is the good one.
    pub better: Better,
    /// The metric that this one is a part of: so many of so many.
    pub of: Option<&'static str>,
    /// The smallest difference that the model can tell, in the same unit; 0 where it counts.
    pub resolution: f64,
    /// One line about it, without a full stop.
    pub help: &'static str,
}

/// A metric that is no part of another one, and that the model counts.
pub const fn metric(
    name: &'static str,
    unit: &'static str,
    better: Better,
    help: &'static str,
) -> MetricSpec {
    MetricSpec { name, unit, better, of: None, resolution: 0.0, help }
}

impl MetricSpec {
    /// The same as a part of the metric `whole`.
    pub const fn of(self, whole: &'static str) -> Self {
        Self { of: Some(whole), ..self }
    }

    /// The same where the model can tell no smaller difference.
    pub const fn resolved_to(self, resolution: f64) -> Self {
        Self { resolution, ..self }
    }
}

/// Which way of a metric is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// Neither.
    Neither,
}

/// What the model's times resolve: the time from waking a task to its first instruction, of which
/// the cost table knows no more than that it takes 5 to 50 us.
pub const TIME_RESOLUTION_SECONDS: f64 = 5e-6;
/// [`TIME_RESOLUTION_SECONDS`] for metrics in microseconds.
pub const TIME_RESOLUTION_US: f64 = 5.0;
