//! `/proc/vmstat` at one moment, and what was counted between two.
//!
//! A kernel that does not have a counter has none: that is never 0. Next: the workloads that use it.

use crate::system::System;
use crate::system::errno::SystemError;

/// `/proc/vmstat` at one moment; what a kernel does not have is left out.
#[derive(Clone)]
pub(crate) struct Counters(Vec<(String, u64)>);

impl Counters {
    /// Reads it now.
    pub(crate) async fn read<S: System>(sys: &S) -> Result<Self, SystemError> {
        sys.vmstat().await.map(Self)
    }

    /// What `name` counted since `before`.
    pub(crate) fn since(&self, before: &Self, name: &str) -> Option<u64> {
        self.sum_since(before, |key| key == name)
    }

    /// What all counters whose name is `wanted` counted since `before`; `None` where there is none.
    pub(crate) fn sum_since(&self, before: &Self, wanted: impl Fn(&str) -> bool) -> Option<u64> {
        let sum = |counters: &Self| {
            let values = counters.0.iter().filter(|(key, _)| wanted(key)).map(|&(_, value)| value);
            values.fold(None, |sum: Option<u64>, value| Some(sum.unwrap_or(0).saturating_add(value)))
        };
        Some(sum(self)?.saturating_sub(sum(before)?))
    }
}
