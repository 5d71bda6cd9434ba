//! fio's logs, versions 2 and 3.

use pagetide_trace::import::ImportFormat;

use crate::scene::{files, gaps, operations, refused, trace};

pub(crate) const VERSION_2: &str = "\
fio version 2 iolog
/data/a add
/data/a open
/data/a write 0 4096
/data/a wait 250 0
/data/a read 8192 4096
/data/a datasync 0 0
/data/a trim 0 4096
/data/a close
";

pub(crate) const VERSION_3: &str = "\
fio version 3 iolog
2 b add
872 b open
878 b write 0 16384
888 b sync 0 0
891 b read 16384 4096
10001677 b close
";

#[test]
fn version_2_waits_where_it_says_so() {
    let trace = trace(VERSION_2);
    insta::assert_snapshot!(operations(&trace), @"
      0    0 t0 open     /data/a 0+0 3
      0    0 t0 write    /data/a 0+4096 0
    250    0 t0 read     /data/a 8192+4096 0
    250    0 t0 fsync    /data/a 0+0 0
    250    0 t0 close    /data/a 0+0 0
    ");
    insta::assert_snapshot!(files(&trace), @"/data/a 12288");
    insta::assert_snapshot!(gaps(&trace), @"
    files are taken to be as long as the log reads and writes them
    `trim` is left out: 1, on line 8
    ");
}

#[test]
fn version_3_has_times_in_microseconds() {
    let trace = trace(VERSION_3);
    insta::assert_snapshot!(operations(&trace), @"
       872    0 t0 open     b 0+0 3
       878    0 t0 write    b 0+16384 0
       888    0 t0 fsync    b 0+0 0
       891    0 t0 read     b 16384+4096 0
    10001677    0 t0 close    b 0+0 0
    ");
    assert_eq!(trace.length_ns, 10_001_677_000);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let refused = |log: &str| refused(ImportFormat::Fio, log.as_bytes());
    insta::assert_snapshot!(refused("fio version 1 iolog\n"), @"line 1: `fio version 2 iolog` or `fio version 3 iolog` was expected, not `fio version 1 iolog`; name a log of this form, or write it again");
    insta::assert_snapshot!(refused("fio version 3 iolog\n5 a open\n4 a close\n"), @"line 3: 4 us is before the line before it; cut the log before that line, or write it again");
    insta::assert_snapshot!(refused("fio version 2 iolog\na read 0 x\n"), @"line 2: `x` is no whole number; cut the log before that line, or write it again");
    insta::assert_snapshot!(refused("fio version 2 iolog\na read 0\n"), @"line 2: the length is missing in `a read 0`; cut the log before that line, or write it again");
    insta::assert_snapshot!(refused("fio version 2 iolog\na shout\n"), @"line 2: `shout` is no action of an iolog; cut the log before that line, or write it again");
    insta::assert_snapshot!(refused("fio version 2 iolog\na read 9223372036854775807 1\n"), @"line 2: no file has bytes 9223372036854775807 and 1 more; cut the log before that line, or write it again");
    insta::assert_snapshot!(refused("fio version 2 iolog\na add\n"), @"read as a log of fio: no operation on a file or on memory is in it; 2 lines; write it with `write_iolog=LOG` of fio");
}

#[test]
fn a_log_that_ends_within_a_line_is_read_up_to_there() {
    let cut = trace(&VERSION_3[..VERSION_3.len() - " close\n".len()]);
    assert_eq!(cut.operations.len(), 4);
    assert!(gaps(&cut).contains("the log ends within a line: 1, on line 7"), "{}", gaps(&cut));
}
