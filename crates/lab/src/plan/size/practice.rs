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
use units::{Bytes, PAGE_SIZE};
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

/// Each rule with its limit, of a run without one; none of what no sample shows.
fn rules(base: &Recording) -> Vec<(&'static str, Bytes)> {
    let Some((anonymous, mut working)) = levels(base) else { return Vec::new() };
    working.sort_unstable();
    let most = |values: &[u64]| values.iter().copied().max().unwrap_or(0);
    let percentile = working.get((working.len() as f64 * VPA_PERCENTILE) as usize).copied().unwrap_or(0);
    let with_margin = |bytes: u64, least: Bytes| rounded_up(bytes as f64 * MARGIN).max(least);
    vec![
        ("peak RSS without files", rounded_up(most(&anonymous) as f64)),
        ("peak working set (cAdvisor)", rounded_up(most(&working) as f64)),
        ("VPA: its 90th percentile + 15 %", with_margin(percentile, VPA_LEAST)),
        ("KRR: its maximum + 15 %", with_margin(most(&working), KRR_LEAST)),
    ]
}

/// Bytes of the group in each sample: of its anonymous memory, and of its working set.
///
/// Between its flushes `memory.stat` is up to a second old, which is all of a short run. Gauges of the machine are not:
/// what it has beside the group does not change in a run, and the last sample, just flushed, tells it.
fn levels(base: &Recording) -> Option<(Vec<u64>, Vec<u64>)> {
    let of_group =
        |name: &str| base.series.column(&format!("cg_{group}_{name}", group = workload::limits::GROUP));
    let live = |gauge: &str, name: &str| {
        let all = base.series.column(gauge)?.into_iter().map(|pages| pages * PAGE_SIZE);
        let beside = all.clone().next_back()?.saturating_sub(*of_group(name)?.last()?);
        Some(all.map(move |bytes| bytes.saturating_sub(beside)))
    };
    let inactive = live("nr_inactive_file", "inactive_file")?;
    let anonymous: Vec<u64> = live("nr_anon_pages", "anon")?.collect();
    // A process has some as long as it lives: no sample saw one.
    anonymous.iter().find(|bytes| **bytes > 0)?;
    let working =
        of_group("current")?.into_iter().zip(inactive).map(|(all, inactive)| all.saturating_sub(inactive));
    Some((anonymous, working.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::Series;

    const MIB: u64 = 1 << 20;

    /// A run by its samples: usage, what of it is anonymous, and inactive files, in MiB. The machine has 1 and 2 MiB
    /// more, and `memory.stat` is flushed in the last sample alone.
    fn run(samples: &[[u64; 3]]) -> Recording {
        let names =
            ["cg_app_current", "cg_app_anon", "cg_app_inactive_file", "nr_anon_pages", "nr_inactive_file"];
        let row = |(at, &[all, anonymous, inactive]): (usize, &[u64; 3])| {
            let flushed = if at + 1 == samples.len() { MIB } else { 0 };
            let pages = |mib| mib * MIB / PAGE_SIZE;
            let of_group = [all * MIB, anonymous * flushed, inactive * flushed];
            (at as u64, [&of_group[..], &[pages(anonymous + 1), pages(inactive + 2)]].concat())
        };
        let series =
            Series::new(names.map(str::to_owned).into(), samples.iter().enumerate().map(row).collect());
        Recording { series, ..Recording::new("", "program", "sim", "linux-6.12", 1) }
    }

    fn said(base: &Recording) -> Vec<u64> {
        rules(base).into_iter().map(|(_, limit)| limit.get() / MIB).collect()
    }

    /// 40 MiB of heap all the time, and a cache of which 100 MiB are inactive; usage has a peak.
    #[test]
    fn rules_say_what_their_tools_would() {
        let samples: Vec<[u64; 3]> = (0..20).map(|at| [if at == 7 { 700 } else { 300 }, 40, 100]).collect();
        assert_eq!(said(&run(&samples)), [40, 600, 250, 696]);
    }

    #[test]
    fn rules_look_at_what_was_there_and_not_at_what_memory_stat_said_last() {
        let samples = [[0, 0, 0], [240, 40, 190], [200, 32, 160], [120, 0, 120]];
        assert_eq!(said(&run(&samples)), [40, 50, 250, 100]);
        for unseen in [
            run(&[[0, 0, 0], [0, 0, 0], [2, 0, 2]]),
            Recording { series: Series::default(), ..run(&samples) },
        ] {
            assert!(said(&unseen).is_empty());
        }
    }
}
