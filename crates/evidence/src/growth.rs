//! What slab took of the memory that a run used: its growth beside that of the page cache.
//!
//! What was there at the start is left out: a guest has 10 to 21 MB of slab from its boot, the simulated machine none.
//! Next: `slab_skew.rs`, whose tables show it, and [`crate::rows`], which judges by it.

use recording::{Recording, Series};

/// What slab has of the memory that a run took, in the second half of its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    /// Mean of slab / (slab + file pages on LRU lists).
    pub(crate) share: f64,
    /// Mean of slab / page cache, buffers included.
    pub(crate) ratio: f64,
}

/// The growth of slab and cache over a recording; none without samples of them.
pub(crate) fn growth(run: &Recording) -> Option<Growth> {
    let series = &run.series;
    let slab = grown(series, &["nr_slab_reclaimable", "nr_slab_unreclaimable"])?;
    let lists = grown(series, &["nr_active_file", "nr_inactive_file"])?;
    let cache = grown(series, &["nr_file_pages"])?;
    let times: Vec<u64> = series.times_ns().collect();
    let (first, last) = (*times.first()?, *times.last()?);
    let late = times.partition_point(|&time| time < first.midpoint(last));
    let mean = |values: Vec<f64>| stats::describe::mean(&values);
    let late = late..times.len();
    let share = late.clone().map(|row| slab[row] / (slab[row] + lists[row]).max(1.0)).collect();
    let ratio = late.map(|row| slab[row] / cache[row].max(1.0)).collect();
    Some(Growth { share: mean(share)?, ratio: mean(ratio)? })
}

/// The sum of some columns, row by row, less the sum at the start.
fn grown(series: &Series, names: &[&str]) -> Option<Vec<f64>> {
    let columns = names.iter().map(|name| series.column(name)).collect::<Option<Vec<_>>>()?;
    let sum = |row: usize| columns.iter().map(|column| column[row] as f64).sum::<f64>();
    let start = columns.first().filter(|column| !column.is_empty()).map(|_| sum(0))?;
    Some((0..series.rows.len()).map(|row| (sum(row) - start).max(0.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slab begins at 100 pages and cache at 50, which are not the run's; in the second half slab has grown by
    /// 300 of 400 pages, then by 100 of 400.
    #[test]
    fn growth_leaves_out_what_was_there_and_counts_the_second_half() {
        let names = ["nr_slab_reclaimable", "nr_slab_unreclaimable", "nr_active_file", "nr_inactive_file"];
        let columns = names.into_iter().chain(["nr_file_pages"]).map(str::to_owned).collect();
        let rows = vec![
            (0, vec![60, 40, 0, 0, 50]),
            (10, vec![60, 40, 0, 999, 1049]),
            (20, vec![300, 100, 40, 60, 150]),
            (30, vec![160, 40, 100, 200, 350]),
        ];
        let run = Recording {
            series: Series::new(columns, rows),
            ..Recording::new("", "small-files", "sim", "", 1)
        };
        assert_eq!(growth(&run), Some(Growth { share: 0.5, ratio: f64::midpoint(3.0, 1.0 / 3.0) }));
        let without = Recording { series: Series::default(), ..run };
        assert_eq!(growth(&without), None);
    }
}
