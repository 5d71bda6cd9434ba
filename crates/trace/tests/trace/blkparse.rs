//! `blkparse`'s own format.

use pagetide_trace::import::ImportFormat;

use crate::scene::{files, gaps, operations, refused, trace};

pub(crate) const LOG: &str = "  \
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000006197   697  G   W 223490 + 8 [kjournald]
  8,0    3        4     0.000008350   697  P   N [kjournald]
  8,0    3        5     0.000010000   697  U   N [kjournald] 1
  8,0    3        6     0.000011500   697  D   W 223490 + 8 [kjournald]
  8,0    3        7     0.000100000     0  C   W 223490 + 8 [0]
  8,0    1        1     0.000020000  1024  Q   R 1000 + 256 [tar xf a]
  8,0    1        2     0.000030000  1024  Q FWFS [tar xf a]
  8,0    1        3     0.000040000  1024  Q  RA 1256 + 256 [tar xf a]
  8,16   1        4     0.000050000  1024  Q   D 0 + 2048 [tar xf a]
  8,0    1        5     0.000060000  1024  m   N cfq1024 insert_request
CPU0 (8,0):
 Reads Queued:           2,      256KiB\t Writes Queued:           1,        4KiB
Total (8,0):
Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,0): 11 entries
Skips: 0 forward (0 -   0.0%)
";

#[test]
fn each_request_counts_once_as_it_was_queued() {
    let trace = trace(LOG);
    insta::assert_snapshot!(operations(&trace), @"
     1    0 t0 write    /dev/block/8:0 114426880+4096 0
    20    0 t1 read     /dev/block/8:0 512000+131072 0
    30    0 t1 fsync    /dev/block/8:0 0+0 0
    40    0 t1 read     /dev/block/8:0 643072+131072 0
    ");
    insta::assert_snapshot!(files(&trace), @"/dev/block/8:0 114430976");
    insta::assert_snapshot!(gaps(&trace), @"
    requests are those that were queued (Q), before merging
    what the page cache had when the log was written is not in it: requests are what missed
    discards are left out: 1, on line 11
    ");
    let tasks: Vec<_> = trace.tasks.iter().map(|task| (task.tid, task.name.as_str())).collect();
    assert_eq!(tasks, [(697, "kjournald"), (1024, "tar xf a")]);
}

#[test]
fn a_log_without_queued_requests_has_those_that_were_sent_or_done() {
    let without = |letters: &[&str]| {
        let keeps = |line: &&str| {
            !letters.iter().any(|letter| {
                line.contains(&format!("  {letter}   "))
                    || line.contains(&format!(" {letter} FWFS"))
                    || line.contains(&format!(" {letter}  RA"))
            })
        };
        let log: String = LOG.lines().filter(keeps).map(|line| format!("{line}\n")).collect();
        let trace = trace(&log);
        (trace.operations.len(), trace.gaps[0].clone())
    };
    let (sent, gap) = without(&["Q"]);
    assert_eq!(sent, 1);
    assert!(gap.contains("sent to the disk (D)"), "{gap}");
    let (done, gap) = without(&["Q", "D"]);
    assert_eq!(done, 1);
    assert!(gap.contains("done (C)"), "{gap}");
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let refused = |log: &str| refused(ImportFormat::Blkparse, log.as_bytes());
    insta::assert_snapshot!(refused("hello\n"), @"line 1: an event was expected, such as `8,0 3 1 0.0 697 Q R 8 + 8 [cat]`, not `hello`; name a log of this form, or write it again");
    insta::assert_snapshot!(refused("8,0 3 1 0.0 697 Q W x + 8 [a]\n"), @"line 1: `x` is no number of sectors; name a log of this form, or write it again");
    insta::assert_snapshot!(refused("8,0 3 1 0.0 697 Q W 1 + 9223372036854775807 [a]\n"), @"line 1: no device has 9223372036854775807 sectors; name a log of this form, or write it again");
    insta::assert_snapshot!(refused("8,0 3 1 0.0 697 G W 1 + 8 [a]\n"), @"read as a log of blkparse: no operation on a file or on memory is in it; 1 events, none of which is Q, D or C of a read or write; write it with `blkparse -i DEVICE`, in its own format");
}
