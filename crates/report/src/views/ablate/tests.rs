//! Ablations as a person and a program see them, with effects that can be taken by hand.

use recording::Recording;

use super::*;
use crate::Format;
use crate::judge::{Direction, Headline, View};

const HEADLINES: [Headline; 2] = [
    Headline {
        name: "throughput_kb_per_sec",
        unit: "kB/s",
        direction: Direction::Higher,
        of: None,
        resolution: 0.0,
        help: "of all readers",
    },
    Headline {
        name: "waits_seconds",
        unit: "s",
        direction: Direction::Lower,
        of: None,
        resolution: 0.0,
        help: "in the slow path",
    },
];

/// Throughputs of each kernel with seeds from 1 on; nothing for a run that failed. A wait is a second for each
/// unit that the throughput is below 200.
fn recordings(kernels: &[&[f64]]) -> Vec<Vec<Recording>> {
    let run = |kernel: usize, (seed, &value): (u64, &f64)| {
        let mut run =
            Recording::new(format!("k{kernel}"), "sequential-readers", "sim", format!("k{kernel}"), seed);
        run.metrics.insert("throughput_kb_per_sec".to_owned(), value);
        run.metrics.insert("waits_seconds".to_owned(), 200.0 - value);
        run.metrics.insert("other".to_owned(), 1.0);
        run
    };
    let kernel = |(kernel, values): (usize, &&[f64])| (1..).zip(*values).map(|of| run(kernel, of)).collect();
    kernels.iter().enumerate().map(kernel).collect()
}

fn ablated<'a>(factors: &[&str], kernels: &'a [Vec<Recording>]) -> Ablated<'a> {
    let subset = |(kernel, runs): (usize, &'a Vec<Recording>)| Subset {
        label: format!("k{kernel}"),
        command: format!("pagetide run sequential-readers --kernel k{kernel}"),
        runs: runs
            .iter()
            .map(|run| match run.metrics["throughput_kb_per_sec"] {
                value if value.is_nan() => AblatedRun::Failed("the disk was full".to_owned()),
                _ => AblatedRun::Recorded(run),
            })
            .collect(),
    };
    Ablated {
        workload: "sequential-readers".to_owned(),
        factors: factors.iter().map(|&name| name.to_owned()).collect(),
        seeds: (1..=kernels[0].len() as u64).collect(),
        subsets: kernels.iter().enumerate().map(subset).collect(),
        varies: vec!["where the files lie".to_owned()],
        view: View { headlines: HEADLINES.to_vec(), ..View::default() },
    }
}

const TWO: [&str; 2] = ["-pcp-cold-order", "-pcp-per-migratetype"];

/// Neither alone changes anything, both together give 40 % more: half of that is the effect of each, half of
/// it their interaction.
#[test]
fn two_changes_that_matter_together_only() {
    let kernels = recordings(&[&[100.0], &[100.0], &[100.0], &[140.0]]);
    insta::assert_snapshot!(ablate(&ablated(&TWO, &kernels)).unwrap().render(Format::Text, 80), @"
    sequential-readers: k0 with -pcp-cold-order, -pcp-per-migratetype or not: 4 of
      4 runs

     changed                               throughput_kb_per_sec,  waits_seconds
                                                             kB/s
     nothing                                                  100            100
     -pcp-cold-order                                          100            100
     -pcp-per-migratetype                                     100            100
     -pcp-cold-order -pcp-per-migratetype                     140             60

    effects on throughput_kb_per_sec, which is 100 kB/s with nothing changed
     of                                      effect, kB/s  % of that  verdict
     -pcp-cold-order                                  +20      +20 %  better
     -pcp-per-migratetype                             +20      +20 %  better
     -pcp-cold-order x -pcp-per-migratetype           +20      +20 %  more together

    effects on waits_seconds, which is 100 s with nothing changed
     of                                      effect, s  % of that  verdict
     -pcp-cold-order                               -20      -20 %  better
     -pcp-per-migratetype                          -20      -20 %  better
     -pcp-cold-order x -pcp-per-migratetype        -20      -20 %  less together

    effect of a feature: mean of the 2 kernels with the change minus mean of the 2
      kernels without it
    a x b: half of what a does where b is changed, minus half of what it does
      where b is not; 0 where each does what it does alone
    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread
    a seed decides: where the files lie
    1 more metric with `--all`

    made by
      pagetide run sequential-readers --kernel k0
      pagetide run sequential-readers --kernel k1
      pagetide run sequential-readers --kernel k2
      pagetide run sequential-readers --kernel k3
    ");
}

/// Effects of a for each seed: ((11 - 10) + (24 - 20)) / 2 = 2.5, ((14 - 11) + (25 - 22)) / 2 = 3,
/// ((12 - 10) + (27 - 20)) / 2 = 4.5.
#[test]
fn several_seeds_have_a_spread_and_are_tested_pair_by_pair() {
    let kernels =
        recordings(&[&[10.0, 11.0, 10.0], &[11.0, 14.0, 12.0], &[20.0, 22.0, 20.0], &[24.0, 25.0, 27.0]]);
    let ablated = ablated(&["+a", "+b"], &kernels);
    insta::assert_snapshot!(ablate(&ablated).unwrap().render(Format::Text, 100), @"
    sequential-readers: k0 with +a, +b or not: 12 of 12 runs

     changed  throughput_kb_per_sec,  waits_seconds
                                kB/s
     nothing              10.3 ± 0.6    189.7 ± 0.6
     +a                   12   ± 2      188   ± 2
     +b                   20.7 ± 1.2    179.3 ± 1.2
     +a +b                25   ± 2      175   ± 2

    effects on throughput_kb_per_sec, which is 10.33 kB/s with nothing changed
     of       effect, kB/s    % of that [95 %]  verdict
     +a          3.3 ± 1.0   +32 % [-31, +96]   no clear change
     +b         11.7 ± 0.8  +113 % [+66, +159]  better
     +a x +b     1.3 ± 1.3   +13 % [-64, +89]   none clear

    effects on waits_seconds, which is 189.7 s with nothing changed
     of         effect, s  % of that [95 %]  verdict
     +a        -3.3 ± 1.0     -2 % [-5, +2]  no clear change
     +b       -11.7 ± 0.8     -6 % [-9, -4]  better
     +a x +b   -1.3 ± 1.3     -1 % [-5, +3]  none clear

    effect of a feature: mean of the 2 kernels with the change minus mean of the 2 kernels without it
    a x b: half of what a does where b is changed, minus half of what it does where b is not; 0 where
      each does what it does alone
    3 seeds, each on every kernel: mean ± standard deviation of the effect over seeds; paired t test;
      intervals and verdicts hold at 95 % over all 6 effects together (Bonferroni)
    a t test takes the mean over runs for normal; 8 runs a side are enough to test without that
    a seed decides: where the files lie
    1 more metric with `--all`

    made by
      pagetide run sequential-readers --kernel k0
      pagetide run sequential-readers --kernel k1
      pagetide run sequential-readers --kernel k2
      pagetide run sequential-readers --kernel k3
    ");
    let json: Value = serde_json::from_str(&ablate(&ablated).unwrap().render(Format::Json, 80)).unwrap();
    let effect = &json["effects"][0];
    assert_eq!(effect["of"], json!(["+a"]));
    assert_eq!(effect["per_seed"], json!([2.5, 3.0, 4.5]));
    assert_eq!(effect["tests"], 6);
    assert_eq!(json["runs"][3]["changed"], json!(["+a"]));
    assert_eq!(json["runs"].as_array().unwrap().len(), 12);
}

/// A seed that one kernel lacks has no effect; it was an effect of fewer kernels.
#[test]
fn a_run_that_failed_takes_its_seed_out_of_all_effects_and_says_why() {
    let kernels = recordings(&[&[100.0, 100.0], &[100.0, f64::NAN], &[100.0, 100.0], &[140.0, 150.0]]);
    insta::assert_snapshot!(ablate(&ablated(&TWO, &kernels)).unwrap().render(Format::Text, 80), @"
    sequential-readers: k0 with -pcp-cold-order, -pcp-per-migratetype or not: 7 of
      8 runs

     changed                  throughput_kb_  waits_seconds  how it ended
                               per_sec, kB/s
     nothing                         100            100
     -pcp-cold-order                 100            100      1 of 2: the disk was
                                                             full
     -pcp-per-migratetype            100            100
     -pcp-cold-order                 145 ± 7         55 ± 7
     -pcp-per-migratetype

    effects on throughput_kb_per_sec, which is 100 kB/s with nothing changed
     of                                      effect, kB/s  % of that  verdict
     -pcp-cold-order                                  +20      +20 %  better
     -pcp-per-migratetype                             +20      +20 %  better
     -pcp-cold-order x -pcp-per-migratetype           +20      +20 %  more together
    from 1 of 2 seeds, those that every kernel has it for

    effects on waits_seconds, which is 100 s with nothing changed
     of                                      effect, s  % of that  verdict
     -pcp-cold-order                               -20      -20 %  better
     -pcp-per-migratetype                          -20      -20 %  better
     -pcp-cold-order x -pcp-per-migratetype        -20      -20 %  less together
    from 1 of 2 seeds, those that every kernel has it for

    effect of a feature: mean of the 2 kernels with the change minus mean of the 2
      kernels without it
    a x b: half of what a does where b is changed, minus half of what it does
      where b is not; 0 where each does what it does alone
    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread
    a seed decides: where the files lie
    1 more metric with `--all`

    made by
      pagetide run sequential-readers --kernel k0
      pagetide run sequential-readers --kernel k1
      pagetide run sequential-readers --kernel k2
      pagetide run sequential-readers --kernel k3
    ");
    let json: Value =
        serde_json::from_str(&ablate(&ablated(&TWO, &kernels)).unwrap().render(Format::Json, 80)).unwrap();
    assert_eq!(
        json["runs"][3],
        json!({ "label": "k1", "seed": 2, "error": "the disk was full", "changed": ["-pcp-cold-order"] })
    );
}

/// The pilot plant of Box, Hunter and Hunter: T 23, C -5, K 1.5, TC 1.5, TK 10, CK 0, TCK 0.5.
#[test]
fn three_changes_have_pairs_and_what_pairs_leave_out() {
    let kernels = recordings(&[&[60.0], &[72.0], &[54.0], &[68.0], &[52.0], &[83.0], &[45.0], &[80.0]]);
    let ablated = ablated(&["+t", "+c", "+k"], &kernels);
    insta::assert_snapshot!(ablate(&ablated).unwrap().render(Format::Markdown, 80), @"
    ## sequential-readers: k0 with +t, +c, +k or not: 8 of 8 runs

    | changed | throughput_kb_per_sec, kB/s | waits_seconds |
    | --- | ---: | ---: |
    | nothing | 60 | 140 |
    | +t | 72 | 128 |
    | +c | 54 | 146 |
    | +t +c | 68 | 132 |
    | +k | 52 | 148 |
    | +t +k | 83 | 117 |
    | +c +k | 45 | 155 |
    | +t +c +k | 80 | 120 |

    effects on throughput_kb_per_sec, which is 60 kB/s with nothing changed

    | of | effect, kB/s | % of that | verdict |
    | --- | ---: | ---: | --- |
    | +t | +23 | +38.3 % | better |
    | +c | -5 | -8.3 % | worse |
    | +k | +1.5 | +2.5 % | better |
    | +t x +c | +1.5 | +2.5 % | more together |
    | +t x +k | +10 | +16.7 % | more together |
    | +c x +k | 0 | 0 % | none |

    of all three: +0.5 (+0.8 %)

    effects on waits_seconds, which is 140 s with nothing changed

    | of | effect, s | % of that | verdict |
    | --- | ---: | ---: | --- |
    | +t | -23 | -16.4 % | better |
    | +c | +5 | +3.6 % | worse |
    | +k | -1.5 | -1.1 % | better |
    | +t x +c | -1.5 | -1.1 % | less together |
    | +t x +k | -10 | -7.1 % | less together |
    | +c x +k | 0 | 0 % | none |

    of all three: -0.5 (-0.4 %)

    effect of a feature: mean of the 4 kernels with the change minus mean of the 4 kernels without it

    a x b: half of what a does where b is changed, minus half of what it does where b is not; 0 where each does what it does alone

    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread

    a seed decides: where the files lie

    1 more metric with `--all`

    ```sh
    pagetide run sequential-readers --kernel k0
    pagetide run sequential-readers --kernel k1
    pagetide run sequential-readers --kernel k2
    pagetide run sequential-readers --kernel k3
    pagetide run sequential-readers --kernel k4
    pagetide run sequential-readers --kernel k5
    pagetide run sequential-readers --kernel k6
    pagetide run sequential-readers --kernel k7
    ```
    ");
    let csv = ablate(&ablated).unwrap().render(Format::Csv, 80);
    let effects: Vec<&str> =
        csv.lines().filter(|line| line.contains(",effect,throughput_kb_per_sec,effect,")).collect();
    insta::assert_snapshot!(effects.join("\n"), @"
    sequential-readers,+t,,,,effect,throughput_kb_per_sec,effect,23
    sequential-readers,+c,,,,effect,throughput_kb_per_sec,effect,-5
    sequential-readers,+k,,,,effect,throughput_kb_per_sec,effect,1.5
    sequential-readers,+t x +c,,,,effect,throughput_kb_per_sec,effect,1.5
    sequential-readers,+t x +k,,,,effect,throughput_kb_per_sec,effect,10
    sequential-readers,+c x +k,,,,effect,throughput_kb_per_sec,effect,0
    ");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let kernels = recordings(&[&[100.0, 1.0], &[100.0, 2.0], &[100.0, 3.0], &[140.0, 5.0]]);
    for width in [40, 60, 80, 120] {
        let text = ablate(&ablated(&TWO, &kernels)).unwrap().render(Format::Text, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn without_any_run_there_is_no_report() {
    let empty = vec![Vec::new(); 4];
    let none = ablated(&TWO, &empty);
    assert_eq!(ablate(&none).err(), Some(ReportError::NoRecordings));
}
