//! What people set today, each with what it would cost on this curve: rules over what a group used without a limit.
//!
//! | rule | what it takes |
//! |---|---|
//! | peak RSS | the most anonymous memory, without the mapped file pages that it has, too |
//! | working set | the most usage without inactive file pages (cAdvisor: `container_memory_working_set_bytes`) |
//! | VPA | the 90th percentile of that and 15 % (its recommender's defaults), at least 250 MiB |
//! | KRR | its maximum and 15 % (the strategy `simple`), at least 100 MiB |
//!
//! They look at samples of weeks; here at those of one run. Left out: their windows, decay and confidence.

use recording::Recording;
use report::Practice;
use units::Bytes;
use workload::limits::Limits;

use super::curve::rounded_up;
use super::measured::point;
use super::runs::Source;
use super::search::Search;
use crate::error::LabError;

/// What both add.
pub(super) const MARGIN: f64 = 1.15;
pub(super) const VPA_PERCENTILE: f64 = 0.9;
pub(super) const VPA_LEAST: Bytes = Bytes(250 << 20);
pub(super) const KRR_LEAST: Bytes = Bytes(100 << 20);

impl Search<'_> {
    /// Runs what the rules say of a program. A trace of requests has no memory of its own, and is left alone.
    pub(super) fn practices(&mut self) -> Result<(), LabError> {
        if self.stopped || !matches!(self.field.source, Source::Program { .. }) {
            return Ok(());
        }
        let rules = self.base.first().map_or_else(Vec::new, rules);
        let limits: Vec<Limits> =
            rules.iter().map(|(_, limit)| Limits { max: Some(*limit), ..Limits::default() }).collect();
        for ((rule, limit), runs) in rules.into_iter().zip(self.runs(&limits, false)?) {
            let Some(runs) = runs else { continue };
            let ran = point(Some(limit), &self.base, &runs, &self.target)?;
            self.practices.push(Practice {
                rule: rule.to_owned(),
                limit: limit.get(),
                slowdown: ran.slowdown.map(|slowdown| slowdown.mean),
                killed: ran.killed > 0,
                keeps: ran.keeps,
            });
        }
        Ok(())
    }
}

/// Each rule with its limit, of a run without one.
fn rules(base: &Recording) -> Vec<(&'static str, Bytes)> {
    let group = workload::limits::GROUP;
    let column = |name: &str| base.series.column(&format!("cg_{group}_{name}")).unwrap_or_default();
    let inactive = column("inactive_file");
    let mut working: Vec<u64> = column("current")
        .into_iter()
        .zip(inactive)
        .map(|(all, inactive)| all.saturating_sub(inactive))
        .collect();
    working.sort_unstable();
    let most = |values: &[u64]| values.iter().copied().max().unwrap_or(0);
    let percentile = working.get((working.len() as f64 * VPA_PERCENTILE) as usize).copied().unwrap_or(0);
    let with_margin = |bytes: u64, least: Bytes| rounded_up(bytes as f64 * MARGIN).max(least);
    vec![
        ("peak RSS without files", rounded_up(most(&column("anon")) as f64)),
        ("peak working set (cAdvisor)", rounded_up(most(&working) as f64)),
        ("VPA: its 90th percentile + 15 %", with_margin(percentile, VPA_LEAST)),
        ("KRR: its maximum + 15 %", with_margin(most(&working), KRR_LEAST)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::Series;

    /// 40 MiB of heap all the time, and a cache of which 100 MiB are inactive; usage has a peak.
    #[test]
    fn rules_say_what_their_tools_would() {
        const MIB: u64 = 1 << 20;
        let columns = ["anon", "inactive_file", "current"].map(|name| format!("cg_app_{name}"));
        let row = |at: u64| (at, [40, 100, if at == 7 { 700 } else { 300 }].map(|mib| mib * MIB).into());
        let series = Series::new(columns.into(), (0..20).map(row).collect());
        let base = Recording { series, ..Recording::new("", "program", "sim", "linux-6.12", 1) };
        let said = rules(&base).into_iter().map(|(_, limit)| limit.get() / MIB).collect::<Vec<_>>();
        assert_eq!(said, [40, 600, 250, 696]);
    }
}
