//! `pagetide stats`: numbers in, tables out, and what is no number refused with its place.

use crate::support::{Scene, refused};

/// Samples from which every row of the table below follows, in no order.
pub(crate) const VANILLA: &str =
    "11421.5 5047.8 5005.1 5003.7 4925.8 4918.7 4917.8 4901.8 4837.3 4667.4 4658.4 4649.6 4491.0 4444.8";
pub(crate) const SHRINKER: &str =
    "4765.6 9999.3 5107.5 5091.7 5049.9 4960.3 4927.2 4855.6 4846.3 4841.3 4831.2 4790.3 4780.7 4768.2";

/// The table in the change log of "mm, vmscan: do not special-case slab reclaim when watermarks are boosted"
/// (August 2019).
pub(crate) const PUBLISHED: &str = "                                   5.3.0-rc3              5.3.0-rc3
                                     vanilla          shrinker-v1r1
Min       1-files/sec     4444.80 (   0.00%)     4765.60 (   7.22%)
1st-qrtle 1-files/sec     5005.10 (   0.00%)     5091.70 (   1.73%)
2nd-qrtle 1-files/sec     4917.80 (   0.00%)     4855.60 (  -1.26%)
3rd-qrtle 1-files/sec     4667.40 (   0.00%)     4831.20 (   3.51%)
Max-1     1-files/sec    11421.50 (   0.00%)     9999.30 ( -12.45%)
Max-5     1-files/sec    11421.50 (   0.00%)     9999.30 ( -12.45%)
Max-10    1-files/sec    11421.50 (   0.00%)     9999.30 ( -12.45%)
Max-90    1-files/sec     4649.60 (   0.00%)     4780.70 (   2.82%)
Max-95    1-files/sec     4491.00 (   0.00%)     4768.20 (   6.17%)
Max-99    1-files/sec     4491.00 (   0.00%)     4768.20 (   6.17%)
Max       1-files/sec    11421.50 (   0.00%)     9999.30 ( -12.45%)
Hmean     1-files/sec     5004.75 (   0.00%)     5075.96 (   1.42%)
Stddev    1-files/sec     1778.70 (   0.00%)     1369.66 (  23.00%)
CoeffVar  1-files/sec       33.70 (   0.00%)       26.05 (  22.71%)
BHmean-99 1-files/sec     5053.72 (   0.00%)     5101.52 (   0.95%)
BHmean-95 1-files/sec     5053.72 (   0.00%)     5101.52 (   0.95%)
BHmean-90 1-files/sec     5107.05 (   0.00%)     5131.41 (   0.48%)
BHmean-75 1-files/sec     5208.45 (   0.00%)     5206.68 (  -0.03%)
BHmean-50 1-files/sec     5405.53 (   0.00%)     5381.62 (  -0.44%)
BHmean-25 1-files/sec     6179.75 (   0.00%)     6095.14 (  -1.37%)
";

pub(crate) fn lines(numbers: &str) -> String {
    numbers.split(' ').map(|number| format!("{number}\n")).collect()
}

fn scene() -> Scene {
    let scene = Scene::new();
    scene.file("vanilla.txt", lines(VANILLA)).file("shrinker.txt", lines(SHRINKER));
    scene
}

const FILES: &str =
    "5.3.0-rc3-vanilla=vanilla.txt 5.3.0-rc3-shrinker-v1r1=shrinker.txt --operation 1-files/sec";

#[test]
fn the_published_table_comes_out_byte_for_byte() {
    assert_eq!(scene().data(&format!("stats {FILES} --style mmtests")), PUBLISHED);
}

#[test]
fn all_forms_of_input_give_the_same_table() {
    let scene = scene();
    let (names, all) = (["5.3.0-rc3-vanilla", "5.3.0-rc3-shrinker-v1r1"], [VANILLA, SHRINKER]);
    let by_run = |(name, numbers): (&&str, &&str)| {
        numbers.split(' ').map(|number| format!("{name},1-files/sec,{number}\n")).collect::<String>()
    };
    let rows: String = names.iter().zip(&all).map(by_run).collect();
    let lists: Vec<String> = all.iter().map(|numbers| format!("[{}]", numbers.replace(' ', ","))).collect();
    let object = |index: usize| format!("\"{}\": {{\"1-files/sec\": {}}}", names[index], lists[index]);
    scene
        .file("long.csv", format!("run,operation,value\n{rows}"))
        .file("all.json", format!("{{{}}}", object(0)))
        .file("list.json", &lists[1])
        .file("wide.csv", format!("1-files/sec\n{}", lines(VANILLA)));
    let second = format!("{}={}", names[1], SHRINKER.replace(' ', ","));
    for inputs in [
        "long.csv".to_owned(),
        format!("all.json {}=list.json --operation 1-files/sec", names[1]),
        format!("{}=wide.csv {second} --operation 1-files/sec", names[0]),
    ] {
        assert_eq!(scene.data(&format!("stats {inputs} --style mmtests")), PUBLISHED, "{inputs}");
    }
}

#[test]
fn our_own_table_says_what_was_tested_and_how_sure_it_is() {
    insta::assert_snapshot!(scene().data(&format!("stats {FILES}")), @"
     metric       run                       n  mean    sd   min   p50    max
     1-files/sec  5.3.0-rc3-vanilla        14  5005  1779  4445  4902  11422
     1-files/sec  5.3.0-rc3-shrinker-v1r1  14  5076  1370  4766  4846   9999

     metric       run                        change [95 %]  verdict
     1-files/sec  5.3.0-rc3-vanilla
     1-files/sec  5.3.0-rc3-shrinker-v1r1  +1 % [-11, +16]  no clear change
    1-files/sec: harmonic mean, as of rates; more is better
    sd: standard deviation of samples; bootstrap; interval and verdict hold at 95 %
    samples are taken to be independent, which those of one run seldom are: repeat
      whole runs to know how much they vary
    ");
}

#[test]
fn todays_rules_of_the_reference_suite_are_another_style() {
    insta::assert_snapshot!(scene().data(&format!("stats {FILES} --style mmtests-head")), @"
                                             5.3.0-rc3                    5.3.0-rc3
                                               vanilla                shrinker-v1r1
    Min       1-files/sec           4444.80 (   0.00%)           4765.60 (   7.22%)
    Hmean     1-files/sec           5004.75 (   0.00%)           5075.96 (   1.42%)
    HStddev   1-files/sec            806.73 (   0.00%)            703.55 (  12.79%)
    HCoeffVar 1-files/sec             16.12 (   0.00%)             13.86 (  14.01%)
    Max       1-files/sec          11421.50 (   0.00%)           9999.30 ( -12.45%)
    BHmean.95 1-files/sec           5053.72 (   0.00%)           5101.52 (   0.95%)
    ");
    insta::assert_snapshot!(
        scene().data("stats a=10,11,12,10 b=8,7,8,9 --better lower --style mmtests --rows few"), @"
                                         a                      b
                                                                 
    Min       value       10.00 (   0.00%)        7.00 (  30.00%)
    Amean     value       10.75 (   0.00%)        8.00 *  25.58%*
    Stddev    value        0.96 (   0.00%)        0.82 (  14.72%)
    CoeffVar  value        8.91 (   0.00%)       10.21 ( -14.60%)
    Max       value       12.00 (   0.00%)        9.00 (  25.00%)
    BAmean-50 value       10.00 (   0.00%)        7.50 (  25.00%)
    BAmean-95 value       10.33 (   0.00%)        7.67 (  25.81%)
    BAmean-99 value       10.33 (   0.00%)        7.67 (  25.81%)
    ");
}

#[test]
fn a_measure_that_nobody_knows_the_good_side_of_is_told() {
    insta::assert_snapshot!(Scene::new().shown("stats a=10,11,12,10 b=8,7,8,9"), @"
     metric  run  n   mean      sd  min  p50  max    change [95 %]  verdict
     value   a    4  10.75  0.9574   10   10   12
     value   b    4   8     0.8165    7    8    9  -26 % [-47, -9]  better
    value: arithmetic mean; less is better
    sd: standard deviation of samples; exact permutation test; interval and
      verdict hold at 95 %
    samples are taken to be independent, which those of one run seldom are: repeat
      whole runs to know how much they vary
    warning: `value` is taken for a time, less of which is better; `--better higher` if not
    exit 0
    ");
}

#[test]
fn recordings_are_compared_by_their_samples() {
    let scene = Scene::new();
    scene.data("compare small-files --mem 128M --param loops=3 -q --out kept");
    let text = scene.data("stats kept");
    assert!(text.contains("files_per_sec  linux-5.3 "), "{text}");
    assert!(text.contains("harmonic mean, as of rates"), "{text}");
    let table = scene.data("stats kept --style mmtests-head");
    for label in ["HStddev", "Duration Elapsed", "Ops NUMA PMD updates", "Ops Page rescued immediate"] {
        assert!(table.contains(label), "{table}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let scene = scene();
    scene.file("words.txt", "1\ntwo\n").file("empty.txt", "").file("pairs.csv", "1,2\n3,4\n");
    let shown = refused(
        &scene,
        &[
            "stats missing.txt",
            "stats a=words.txt",
            "stats a=empty.txt",
            "stats pairs.csv",
            "stats a=1,2,x",
            "stats a=1,2 --style mmtests --format json",
            "stats a=1,2 --rows few",
            "stats",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ stats missing.txt
    error: cannot read `missing.txt`
      caused by: No such file or directory (os error 2)
    hint: name a file of numbers, `NAME=FILE`, `NAME=1.5,2.5`, or folders with recordings
    exit 1

    $ stats a=words.txt
    error: cannot compare `words.txt`
      caused by: line 2: `two` is not a finite number
    hint: write numbers, one a line or with blanks between them; lines that begin with `#` are left out
    exit 1

    $ stats a=empty.txt
    error: cannot compare `empty.txt`
      caused by: there is no number in it
    hint: write one number a line
    exit 1

    $ stats pairs.csv
    error: cannot compare `pairs.csv`
      caused by: line 1: 2 numbers in a row, and no header that names them
    hint: begin with a header: a name for each column, or `run,operation,value`
    exit 1

    $ stats a=1,2,x
    error: `1,2,x` is neither finite numbers nor a file
    hint: name a file of numbers, `NAME=FILE`, `NAME=1.5,2.5`, or folders with recordings
    exit 1

    $ stats a=1,2 --style mmtests --format json
    error: mmtests' tables are text; leave `--format` out
    exit 2

    $ stats a=1,2 --rows few
    error: `--rows` is for `--style mmtests` and `mmtests-head`
    exit 2

    $ stats
    error: the following required arguments were not provided:
      <NUMBERS|FILE|DIR>...

    Usage: pagetide stats <NUMBERS|FILE|DIR>...

    For more information, try '--help'.
    exit 2
    ");
}
