//! Tables that are wider than the terminal.

use super::golden::runs;
use super::group;
use crate::views::compare;
use crate::{Format, View};

/// The first column is repeated, and nothing is cut.
#[test]
fn a_table_that_does_not_fit_goes_on_below_itself() {
    let base = runs("linux-5.3", &[1700.0, 1710.0, 1720.0, 1700.0]);
    let label = "linux-5.3+shrink-slab-when-boosted";
    let new = runs(label, &[2500.0, 2513.0, 2500.0, 2513.0]);
    let groups = [group("linux-5.3", &base), group(label, &new)];
    insta::assert_snapshot!(compare(&groups, &View::default()).unwrap().render(Format::Text, 60), @r"
    hot-and-stream: linux-5.3 against
      linux-5.3+shrink-slab-when-boosted

     metric                 unit        linux-5.3     linux-5.3+
                                                    shrink-slab-
                                                    when-boosted
     b_inactive_file_pages  pages  91654           91654
     hot_pages_cached       pages   1708   ± 10     2506   ± 8
     hot_pages_total        pages   6400            6400
     reread_ms              ms       390.6 ±  0.5    350.7 ± 0.4
     read_latency_us        µs        99.4 ±  0.4     99.4 ± 0.4
     (mean)

     metric                          change [95 %]  verdict
     b_inactive_file_pages     0 %                  same
     hot_pages_cached        +47 % [+45, +48]       better
     hot_pages_total           0 %                  same
     reread_ms               -10.2 % [-10.6, -9.9]  better
     read_latency_us (mean)    0 %                  same
    4 paired seeds: mean ± standard deviation; paired t test;
      intervals and verdicts hold at 95 % over all 2 rows
      together (Bonferroni)
    a t test takes the mean over runs for normal; 7 runs a
      side are enough to test without that
    without an interval: the difference is the same in all 4
      seeds, so judged by size

    what the runs say
     counter (/proc/vmstat)   linux-5.3    linux-5.3+   change
                                         shrink-slab-
                                         when-boosted
     workingset_refault_file       4692          3894  -17.0 %
    all 9 counters with `--all`

    made by
      linux-5.3: pagetide run hot-and-stream --kernel linux-5.3
      linux-5.3+shrink-slab-when-boosted:
        pagetide run hot-and-stream \
          --kernel linux-5.3+shrink-slab-when-boosted
    ");
}
