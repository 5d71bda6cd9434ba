//! Logs of other programs on the command line: read, converted, counted, and refused where they are wrong.

use crate::support::{Scene, refused};

const STRACE: &str = r#"70  12:00:00.000000 execve("/bin/work", ["work"], 0x7ff /* 3 vars */) = 0 <0.000100>
70  12:00:00.001000 openat(AT_FDCWD</data>, "a", O_RDONLY) = 3</data/a> <0.000010>
70  12:00:00.001100 fstat(3</data/a>, {st_mode=S_IFREG|0644, st_size=1048576, ...}) = 0 <0.000010>
70  12:00:00.001200 read(3</data/a>, ""..., 65536) = 65536 <0.000100>
70  12:00:00.001400 read(3</data/a>, ""..., 65536) = 65536 <0.000100>
70  12:00:00.001600 pread64(3</data/a>, ""..., 65536, 0) = 65536 <0.000100>
70  12:00:00.001800 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000 <0.000010>
70  12:00:00.002000 close(3</data/a>) = 0 <0.000010>
70  12:00:00.002100 +++ exited with 0 +++
"#;

#[test]
fn a_log_says_what_is_in_it_as_it_is_and_in_our_own_format() {
    let scene = Scene::new();
    scene.file("app.log", STRACE);
    insta::assert_snapshot!(scene.shown("import strace app.log -o app.trace"), @"
    warning: which pages of mappings were touched is not in a log of strace
    `app.trace`: 8 operations, 1 task, 1 file, 0.0 s
    exit 0
    ");
    insta::assert_snapshot!(scene.shown("trace info app.log"), @"
    work (strace)
      0.0021 s; its tasks, taken together, computed or waited for 0.00167 s and
        were in these calls for 0.00043 s
      1 process: work
      1 file, 1 MiB in all; 128 KiB of files were accessed
      reads: 3 calls, 192 KiB; 33.33 % go on where the one before ended, runs of
        96 KiB on average
      mapped at most: 0 B of files (0 mappings), 8 KiB of anonymous memory (1
        mapping)

     operation  times    bytes
     open           1
     close          1
     read           3  192 KiB
     mmap           1    8 KiB
     exec           1
     exit           1

     most read   size     read  written
     /data/a    1 MiB  192 KiB      0 B

     largest   size     read  written
     /data/a  1 MiB  192 KiB      0 B

     LRU cache of  accesses again within      hits in it
     128 KiB                          16          33.3 %
     any                              32  first accesses
      48 accesses to pages of 4 KiB; a row is what a cache of half the size would
        miss

    what is missing or assumed
      - which pages of mappings were touched is not in a log of strace
    exit 0
    ");
    assert_eq!(scene.data("trace info app.log"), scene.data("trace info app.trace"));
    let json: serde_json::Value =
        serde_json::from_str(&scene.data("trace info app.trace --format json")).unwrap();
    assert_eq!(json["reuse"]["accesses"], 48);
    assert_eq!(json["reuse"]["first"], 32);
    assert_eq!(json["footprint"]["file_pages"], 32);
    assert!(scene.data("trace info app.trace --format md").contains("| operation | times |"));
}

#[test]
fn requests_are_counted_as_those_of_one_task() {
    let scene = Scene::new();
    scene.file("r.csv", "time,object,size\n1,7,100\n2,8,100\n3,7,100\n");
    let text = scene.data("trace info r.csv");
    assert!(text.contains("each object counts as one page of 4 KiB"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&scene.data("trace info r.csv --format json")).unwrap();
    assert_eq!(json["reuse"]["within"], serde_json::json!([[2, 1]]));
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_overwritten() {
    let scene = Scene::new();
    scene.file("app.log", STRACE).file("text.txt", "hello\nworld\n").file("there", "").file("empty.log", "");
    scene.file("cut.log", &STRACE[..STRACE.len() - 20]).file("fio.log", "fio version 2 iolog\n/a read 0\n");
    insta::assert_snapshot!(
        refused(&scene, &[
            "import strace app.log -o there",
            "import strace missing.log -o new",
            "import strace empty.log -o new",
            "import strace text.txt -o new",
            "import fio app.log -o new",
            "import fio fio.log -o new",
            "import blkparse text.txt -o new",
            "import mmtests app.log -o new",
            "trace info",
            "trace info missing",
            "trace info empty.log",
            "trace info text.txt",
            "trace info app.log --format csv",
            "trace info app.log --warmup 10%",
        ]),
        @r#"
    $ import strace app.log -o there
    error: `there` exists already
    hint: name a new file, or remove this one first
    exit 1

    $ import strace missing.log -o new
    error: cannot read `missing.log`
      caused by: No such file or directory (os error 2)
    hint: check the path and the permissions of the file and its folders
    exit 1

    $ import strace empty.log -o new
    error: `empty.log`, read as a log of strace: no operation on a file or on memory is in it; it is empty
    hint: write it with `strace -f -tt -T -y -o LOG COMMAND`
    exit 1

    $ import strace text.txt -o new
    error: `text.txt`, read as a log of strace: no operation on a file or on memory is in it; none of its lines is a call; there are 2
    hint: write it with `strace -f -tt -T -y -o LOG COMMAND`
    exit 1

    $ import fio app.log -o new
    error: `app.log`, line 1: `fio version 2 iolog` or `fio version 3 iolog` was expected, not `70  12:00:00.000000 execve("/bin/work", ["work"], 0x7ff /* 3...`
    hint: name a log of this form, or write it again
    exit 1

    $ import fio fio.log -o new
    error: `fio.log`, line 2: the length is missing in `/a read 0`
    hint: cut the log before that line, or write it again
    exit 1

    $ import blkparse text.txt -o new
    error: `text.txt`, line 1: an event was expected, such as `8,0 3 1 0.0 697 Q R 8 + 8 [cat]`, not `hello`
    hint: name a log of this form, or write it again
    exit 1

    $ import mmtests app.log -o new
    error: cannot read `app.log`
      caused by: Not a directory (os error 20)
    hint: name `work/log` of mmtests, or the folder of one run in it
    exit 1

    $ trace info
    error: the following required arguments were not provided:
      <TRACE>

    Usage: pagetide trace info <TRACE>

    For more information, try '--help'.
    exit 2

    $ trace info missing
    error: cannot read `missing`
      caused by: No such file or directory (os error 2)
    hint: check the path and the permissions of the file and its folders
    exit 1

    $ trace info empty.log
    error: cannot read the trace `empty.log`
      caused by: the trace is empty
    exit 1

    $ trace info text.txt
    error: cannot read the trace `text.txt`
      caused by: line 1: no column is the time: found `hello`
    hint: call one of them `time` or `timestamp`
    exit 1

    $ trace info app.log --format csv
    error: invalid value 'csv' for '--format <FORMAT>'
      [possible values: text, json, md]

    For more information, try '--help'.
    exit 2

    $ trace info app.log --warmup 10%
    error: `--warmup` is for a replay; all of the trace is counted
    exit 2
    "#
    );
    assert!(!scene.path().join("new").exists());
    let cut = scene.shown("import strace cut.log -o cut.trace");
    assert!(cut.contains("the log ends within a line, which is left out: 1, on line 9"), "{cut}");
}

/// A program with 100 MiB mapped that used 20 MiB all the time and 20 MiB each two seconds, recorded by DAMON of Linux
/// 6.12 and written by damo 3.4.3: 40 snapshots of it.
#[test]
fn a_recording_of_damon_says_what_is_assumed_of_it() {
    let scene = Scene::new();
    scene.file("damon.data", include_bytes!("traces/hot.damon"));
    insta::assert_snapshot!(scene.shown("import damon damon.data -o app.trace"), @"
    warning: DAMON does not tell anonymous memory from files: all is taken for pages of files that are only read, which a limit can take and a disk brings back
    warning: a region that was found used counts as a whole: 38 MiB at most in one interval; with as large a share of its pages as of its samples it would be 21 MiB
    warning: what was never found used is not in it: 38 MiB were, of regions with 183 MiB
    warning: how many samples an interval had is not in it: taken for 20, as by default
    `app.trace`: 48 operations, 1 task, 1 file, 4.7 s
    exit 0
    ");
    assert_eq!(scene.data("trace info damon.data"), scene.data("trace info app.trace"));
    scene.file("cut.data", &include_bytes!("traces/hot.damon")[..3000]).file("none.data", "[]");
    insta::assert_snapshot!(
        refused(&scene, &["trace info cut.data", "import damon none.data -o new"]),
        @"
        $ trace info cut.data
        error: `cut.data`, line 4206, column 21, of damo's JSON: cannot be read further: incomplete deflate stream
        hint: record it again, or have damo write it again: `damo convert_record_format`
        exit 1

        $ import damon none.data -o new
        error: `none.data`, read as a log of damon: no operation on a file or on memory is in it; it has no regions
        hint: write it with `damo record`, or print events of `perf record -a -e damon:damon_aggregated` with `perf script`
        exit 1
        "
    );
}
