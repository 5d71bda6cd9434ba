//! Texts of runs and comparisons as a person sees them, at several widths of the terminal.

use super::{group, run};
use crate::views::{compare, metrics, run as run_view};
use crate::{Direction, Format, Group, Headline, View};
use recording::Recording;

/// The headlines of the example workload.
const HEADLINES: [Headline; 3] = [
    Headline {
        name: "hot_pages_cached",
        unit: "pages",
        direction: Direction::Higher,
        of: Some("hot_pages_total"),
        resolution: 0.0,
        help: "in memory after the stream",
    },
    Headline {
        name: "reread_ms",
        unit: "ms",
        direction: Direction::Lower,
        of: None,
        resolution: 0.005,
        help: "reading the hot file again",
    },
    Headline {
        name: "read_latency_us",
        unit: "µs",
        direction: Direction::Lower,
        of: None,
        resolution: 5.0,
        help: "of one read",
    },
];

pub(crate) fn view() -> View {
    View { headlines: HEADLINES.to_vec(), ..View::default() }
}

/// Runs of one kernel with seeds from 1 on, of 6400 hot pages.
pub(crate) fn runs(label: &str, kept: &[f64]) -> Vec<Recording> {
    let one = |(seed, &kept): (u64, &f64)| {
        let mut run = run(label, seed, kept);
        run.metrics.insert("hot_pages_total".into(), 6400.0);
        run.metrics.insert("b_inactive_file_pages".into(), 91_654.0);
        run
    };
    (1..).zip(kept).map(one).collect()
}

/// Four kernels, two of them with long names.
fn kernels() -> Vec<(&'static str, Vec<Recording>)> {
    [
        ("linux-4.20-rc1", 126.0),
        ("linux-4.20-rc1+nofragment+watermark-boost-v2", 1710.0),
        ("linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall", 6399.0),
        ("linux-6.12", 6400.0),
    ]
    .map(|(label, kept)| (label, runs(label, &[kept])))
    .into()
}

fn groups<'a>(kernels: &'a [(&str, Vec<Recording>)]) -> Vec<Group<'a>> {
    kernels.iter().map(|(label, runs)| group(label, runs)).collect()
}

#[test]
fn what_came_out_is_the_first_line_and_the_rest_is_counted() {
    let (base, new) = (runs("linux-6.1", &[126.0]), runs("linux-6.1+root-aging", &[6400.0]));
    let groups = [group("linux-6.1", &base), group("linux-6.1+root-aging", &new)];
    insta::assert_snapshot!(compare(&groups, &view()).unwrap().render(Format::Text, 80), @r"
    hot_pages_cached: 126 -> 6400 of 6400 pages, better
    hot-and-stream: linux-6.1 against linux-6.1+root-aging

     metric            unit   linux-6.1  linux-6.1+root-aging   change  verdict
     hot_pages_cached  pages     126                  6400      x 50.8  better
     reread_ms         ms        469.7                 156     -66.8 %  better
     read_latency_us   µs         98.92                 98.92    0 %    same
    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread

    what the runs say
     counter (/proc/vmstat)   linux-6.1  linux-6.1+root-aging  change
     workingset_refault_file       6274                     0  -100 %
    2 more metrics and all 9 counters with `--all`

    made by
      linux-6.1: pagetide run hot-and-stream --kernel linux-6.1
      linux-6.1+root-aging:
        pagetide run hot-and-stream --kernel linux-6.1+root-aging
    ");
}

/// There were three tables, each with the first kernel's values again.
#[test]
fn four_kernels_are_one_table_with_a_column_each() {
    let short = ["linux-5.4", "linux-5.5", "linux-6.1", "linux-6.12"]
        .into_iter()
        .zip([126.0, 6400.0, 6400.0, 6100.0])
        .map(|(label, kept)| (label, runs(label, &[kept])))
        .collect::<Vec<_>>();
    insta::assert_snapshot!(compare(&groups(&short), &view()).unwrap().render(Format::Text, 120), @r"
    hot_pages_cached of 6400 pages: 126 -> 6400 (better), 6400 (better), 6100 (better)
    hot-and-stream: linux-5.4 against linux-5.5 against linux-6.1 against linux-6.12

     metric            unit   linux-   linux-   change  verdict   linux-   change  verdict   linux-   change  verdict
                                 5.4      5.5                        6.1                       6.12
     hot_pages_cached  pages  126     6400      x 50.8  better   6400      x 50.8  better   6100      x 48.4  better
     reread_ms         ms     469.7    156     -66.8 %  better    156     -66.8 %  better    171     -63.6 %  better
     read_latency_us   µs      98.92    98.92    0 %    same       98.92    0 %    same       98.92    0 %    same
    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread

    what the runs say
     counter (/proc/vmstat)   linux-5.4  linux-5.5  change  linux-6.1  change  linux-6.12   change
     workingset_refault_file       6274          0  -100 %          0  -100 %         300  -95.2 %
    2 more metrics and all 9 counters with `--all`

    made by
      linux-5.4: pagetide run hot-and-stream --kernel linux-5.4
      linux-5.5: pagetide run hot-and-stream --kernel linux-5.5
      linux-6.1: pagetide run hot-and-stream --kernel linux-6.1
      linux-6.12: pagetide run hot-and-stream --kernel linux-6.12
    ");
    insta::assert_snapshot!(compare(&groups(&short), &view()).unwrap().render(Format::Text, 80), @r"
    hot_pages_cached of 6400 pages: 126 -> 6400 (better), 6400 (better), 6100
      (better)
    hot-and-stream: linux-5.4 against linux-5.5 against linux-6.1 against linux-6.12

     metric            unit   linux-5.4  linux-5.5   change  verdict
     hot_pages_cached  pages     126       6400      x 50.8  better
     reread_ms         ms        469.7      156     -66.8 %  better
     read_latency_us   µs         98.92      98.92    0 %    same

     metric            linux-6.1   change  verdict  linux-6.12   change  verdict
     hot_pages_cached    6400      x 50.8  better      6100      x 48.4  better
     reread_ms            156     -66.8 %  better       171     -63.6 %  better
     read_latency_us       98.92    0 %    same          98.92    0 %    same
    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread

    what the runs say
     counter (/proc/vmstat)   linux-5.4  linux-5.5  change  linux-6.1  change
     workingset_refault_file       6274          0  -100 %          0  -100 %

     counter (/proc/vmstat)   linux-6.12   change
     workingset_refault_file         300  -95.2 %
    2 more metrics and all 9 counters with `--all`

    made by
      linux-5.4: pagetide run hot-and-stream --kernel linux-5.4
      linux-5.5: pagetide run hot-and-stream --kernel linux-5.5
      linux-6.1: pagetide run hot-and-stream --kernel linux-6.1
      linux-6.12: pagetide run hot-and-stream --kernel linux-6.12
    ");
}

#[test]
fn a_run_shows_what_matters_most_and_all_on_demand() {
    let run = &runs("linux-6.12", &[1710.0])[0];
    insta::assert_snapshot!(run_view(run, None, &view()).render(Format::Text, 80), @"
    hot-and-stream on linux-6.12 (sim, seed 1), 23.14 s simulated

     metric              value  unit           what it is
     hot_pages_cached  1710     of 6400 pages  in memory after the stream
     reread_ms          390.5   ms             reading the hot file again
     read_latency_us     98.92  µs             of one read

     counter (/proc/vmstat)              total
     allocstall_movable                 147
     allocstall_normal                    3
     pgscan_kswapd                   157037
     pgscan_direct                     4881
     pgsteal_kswapd                  150000
     pgsteal_direct                    4881
     workingset_refault_file           4690
     kswapd reclaimed of scanned, %      95.52
     direct reclaimed of scanned, %     100.00

     phase               ends at     took   kswapd   direct  refaults  alloc stalls
                                           scanned  scanned
     hot_ready           0.703 s   703 ms        0        -         -             -
     stream_done        22.666 s  21.96 s   157036        -         -           147
     after stream_done  23.142 s   476 ms        1     4881      4690             3

    over time, 20 parts of 1.157 s; blank: not read
                                         least to most
     free          ███▇▇▇▆▆▅▅▅▄▄▃▃▃▂▂    10000 to 48000  pages
     kswapd scans  ····▆█████████████    0 to 7850       per s
     refaults      ················▅█    0 to 4690       per s

     who                 waited for               times  in all      mean  longest
     reader-* (2 tasks)  page read                   78  1.78 s  22.82 ms   450 ms
     stream              direct reclaim throttle      2  3.1 ms   1.55 ms  1.55 ms

    2 more metrics, 2 more counters, 2 cgroups with `--all`
    ");
    insta::assert_snapshot!(run_view(run, None, &View { all: true, ..view() }).render(Format::Text, 80), @"
    hot-and-stream on linux-6.12 (sim, seed 1), 23.14 s simulated

     metric              value  unit           what it is
     hot_pages_cached  1710     of 6400 pages  in memory after the stream
     reread_ms          390.5   ms             reading the hot file again
     read_latency_us     98.92  µs             of one read

     metric                 value  unit
     b_inactive_file_pages  91654  pages
     hot_pages_total         6400  pages

     samples          unit  n   min  median    max
     read_latency_us  µs    3  80.5      96  120.2

     counter (/proc/vmstat)              total
     allocstall_movable                 147
     allocstall_normal                    3
     pgscan_kswapd                   157037
     pgscan_direct                     4881
     pgsteal_kswapd                  150000
     pgsteal_direct                    4881
     workingset_refault_file           4690
     kswapd reclaimed of scanned, %      95.52
     direct reclaimed of scanned, %     100.00

     phase               ends at     took   kswapd   direct  refaults  alloc stalls
                                           scanned  scanned
     hot_ready           0.703 s   703 ms        0        -         -             -
     stream_done        22.666 s  21.96 s   157036        -         -           147
     after stream_done  23.142 s   476 ms        1     4881      4690             3

    over time, 20 parts of 1.157 s; blank: not read
                                         least to most
     free          ███▇▇▇▆▆▅▅▅▄▄▃▃▃▂▂    10000 to 48000  pages
     kswapd scans  ····▆█████████████    0 to 7850       per s
     refaults      ················▅█    0 to 4690       per s

     who                 waited for               times  in all      mean  longest
     reader-* (2 tasks)  page read                   78  1.78 s  22.82 ms   450 ms
     stream              direct reclaim throttle      2  3.1 ms   1.55 ms  1.55 ms

     all that are not zero     total
     allocstall_movable          147
     allocstall_normal             3
     nr_free_pages              5000
     pgscan_direct              4881
     pgscan_direct_throttle        2
     pgscan_kswapd            157037
     pgsteal_direct             4881
     pgsteal_kswapd           150000
     workingset_refault_file    4690

     cgroup (memory.stat)  unit      P/A        P/B
     inactive_file         MiB      6.68     409.96
     pgscan                      4690     157227
    ");
}

/// Long names of kernels made lines of more than a hundred columns.
#[test]
fn no_line_is_longer_than_the_terminal_is_wide() {
    let kernels = kernels();
    let seeds = [("linux-5.3", runs("linux-5.3", &[17.0, 1730.0, 1690.0])), {
        let label = "linux-5.3+shrink-slab-when-boosted";
        (label, runs(label, &[2500.0, 2513.0, 2490.0]))
    }];
    let warnings = vec!["beside the kernel the scenarios differ in mem (300M, 512M), seed (1, 2)".to_owned()];
    for width in [60, 80, 120] {
        for all in [false, true] {
            let view = View { all, warnings: warnings.clone(), ..view() };
            let mut noted = kernels[2].1[0].clone();
            noted.notes = vec![
                "the CPU was emulated, and the machine was busy with other work: trust counters, not times"
                    .into(),
            ];
            let all_runs: Vec<&Recording> = kernels.iter().flat_map(|(_, runs)| runs).collect();
            for text in [
                run_view(&noted, None, &view).render(Format::Text, width),
                compare(&groups(&kernels), &view).unwrap().render(Format::Text, width),
                compare(&groups(&seeds), &view).unwrap().render(Format::Text, width),
                metrics(&all_runs, &view).unwrap().render(Format::Text, width),
            ] {
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{width} columns: {line:?} in\n{text}");
                }
            }
        }
    }
}

/// A title told how much was simulated, and nobody saw how fast.
#[test]
fn a_title_tells_how_fast_a_simulation_was() {
    let mut run = run("linux-6.12", 1, 0.0);
    let title = |run: &Recording| {
        run_view(run, None, &View::default()).render(Format::Text, 200).lines().next().unwrap().to_owned()
    };
    run.wall_ns = Some(57_800_000_000);
    assert!(title(&run).ends_with(", 23.14 s simulated in 57.8 s, 0.40 times real time"), "{}", title(&run));
    run.wall_ns = None;
    assert!(title(&run).ends_with(", 23.14 s simulated"), "a recording does not keep it");
    run.backend = "vm:6.12".into();
    run.wall_ns = Some(7_745_000_000);
    assert!(title(&run).ends_with(", 7.745 s on the clock"));
}
