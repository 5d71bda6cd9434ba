//! Limits as they may be written, and texts that are none.

use super::*;

fn read(text: &str) -> String {
    match parse(&[text.to_owned()]) {
        Ok(limits) => format!("{}: {:?}", limits[0].name, limits[0].condition),
        Err(error) => format!("{error}\n  hint: {}", error.hint().unwrap_or_default()),
    }
}

fn all(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text}\n  {}\n", read(text))).collect()
}

#[test]
fn every_form_of_a_limit_is_read() {
    insta::assert_snapshot!(
        all(&[
            "files_per_sec < -5%",
            "files_per_sec<-5 %",
            "  allocstall>=1000",
            "read_us.p99 > 2ms",
            "allocstall change > +100",
            "cached change <= -4MiB",
            "elapsed_s > 10%",
            "files_per_sec worse",
            "files_per_sec worse by 5%",
            "A/b:pgscan changed by more than 100",
            "1-files/sec better by 0.5",
        ]),
        @"
    files_per_sec < -5%
      files_per_sec: Compared { of: Change, order: Less, amount: Percent(-5.0) }
    files_per_sec<-5 %
      files_per_sec: Compared { of: Change, order: Less, amount: Percent(-5.0) }
      allocstall>=1000
      allocstall: Compared { of: Value, order: GreaterOrEqual, amount: Plain(1000.0) }
    read_us.p99 > 2ms
      read_us.p99: Compared { of: Value, order: Greater, amount: Nanoseconds(2000000.0) }
    allocstall change > +100
      allocstall: Compared { of: Change, order: Greater, amount: Plain(100.0) }
    cached change <= -4MiB
      cached: Compared { of: Change, order: LessOrEqual, amount: Bytes(-4194304.0) }
    elapsed_s > 10%
      elapsed_s: Compared { of: Change, order: Greater, amount: Percent(10.0) }
    files_per_sec worse
      files_per_sec: Went(Worse, None)
    files_per_sec worse by 5%
      files_per_sec: Went(Worse, Some(Percent(5.0)))
    A/b:pgscan changed by more than 100
      A/b:pgscan: Went(Changed, Some(Plain(100.0)))
    1-files/sec better by 0.5
      1-files/sec: Went(Better, Some(Plain(0.5)))
    "
    );
}

#[test]
fn a_limit_that_says_nothing_or_two_things_is_refused_with_what_to_write() {
    insta::assert_snapshot!(
        all(&[
            "",
            "files_per_sec",
            "files_per_sec = 5",
            "< 5%",
            "files_per_sec <",
            "files_per_sec < fast",
            "1 < files_per_sec < 2",
            "files_per_sec < -5",
            "files_per_sec > 5 parsec",
            "read_us > 2mss",
            "files_per_sec > 1.2.3",
            "files_per_sec worse than 5%",
            "files_per_sec worse by -5%",
            "files_per_sec worse by",
            "worse",
        ]),
        @"
      `--fail-if ''`: there is no condition in it
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    files_per_sec
      `--fail-if 'files_per_sec'`: there is no condition in it
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    files_per_sec = 5
      `--fail-if 'files_per_sec = 5'`: `=` is no condition; a measured number is seldom exactly another
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    < 5%
      `--fail-if '< 5%'`: there is no name of a metric before the condition
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    files_per_sec <
      `--fail-if 'files_per_sec <'`: there is no amount after the condition
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    files_per_sec < fast
      `--fail-if 'files_per_sec < fast'`: `fast` is no amount, such as 5%, 100 or 2ms
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    1 < files_per_sec < 2
      `--fail-if '1 < files_per_sec < 2'`: `files_per_sec < 2` is no amount, such as 5%, 100 or 2ms
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    files_per_sec < -5
      `--fail-if 'files_per_sec < -5'`: `-5` has a sign, so it is no value of a metric
      hint: write `files_per_sec change < -5` for the change, or `files_per_sec < 5` for the number itself
    files_per_sec > 5 parsec
      `--fail-if 'files_per_sec > 5 parsec'`: unknown unit `parsec`
      hint: known names: `ns`, `us`, `µs`, `ms`, `s`, `min`, `B`, `kB`, `KiB`, `MiB`, `GiB`, `%`
    read_us > 2mss
      `--fail-if 'read_us > 2mss'`: unknown unit `mss`
      hint: did you mean `ms`?
    files_per_sec > 1.2.3
      `--fail-if 'files_per_sec > 1.2.3'`: `1.2.3` is no amount, such as 5%, 100 or 2ms
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    files_per_sec worse than 5%
      `--fail-if 'files_per_sec worse than 5%'`: `than 5%` after `worse`
      hint: write `worse`, or `worse by 5%`
    files_per_sec worse by -5%
      `--fail-if 'files_per_sec worse by -5%'`: an amount after `worse by` has no sign
      hint: `worse` says the way already: write `worse by 5%`
    files_per_sec worse by
      `--fail-if 'files_per_sec worse by'`: `by` after `worse`
      hint: write `worse`, or `worse by 5%`
    worse
      `--fail-if 'worse'`: there is no name of a metric before the condition
      hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    "
    );
}

#[test]
fn a_limit_twice_is_refused() {
    let twice = ["a < 1".to_owned(), "a < 1".to_owned()];
    assert_eq!(parse(&twice).unwrap_err().to_string(), "`--fail-if a < 1` is given twice");
}

#[test]
fn a_name_that_nothing_has_before_the_run_is_doubted_when_another_is_near() {
    let limits = |texts: &[&str]| parse(&texts.iter().map(|&t| t.to_owned()).collect::<Vec<_>>()).unwrap();
    let told = doubtful(&limits(&["files_per_sce < -5%", "allocstall_nromal > 1"]), "small-files");
    assert_eq!(
        told,
        [
            "`files_per_sce < -5%`: no headline or counter is called `files_per_sce`; did you mean `files_per_sec`?",
            "`allocstall_nromal > 1`: no headline or counter is called `allocstall_nromal`; did you mean \
             `allocstall_normal`?",
        ]
    );
    let known = ["files_per_sec < -5%", "files_per_sec.p99 < -5%", "pgscan_direct > 1", "something_else > 1"];
    assert_eq!(doubtful(&limits(&known), "small-files"), Vec::<String>::new());
}
