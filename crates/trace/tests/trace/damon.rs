//! DAMON's regions, as perf prints them and as damo writes them. The program had 100 MiB mapped and used 20 MiB of it
//! all the time, 20 MiB each two seconds, the rest once; recorded on Linux 6.12 (`perf record -a -e
//! damon:damon_aggregated`, damo 3.4.3), and cut to a few snapshots.

use std::io::Write as _;

use pagetide_trace::import::{ImportFormat, import};
use pagetide_trace::{OperationKind, Trace};

use crate::scene::{files, gaps, operations, refused, trace};

const MIB: u64 = 1 << 20;

/// The second snapshot saw the 20 MiB in two regions, the third those that are used each two seconds, too.
pub(crate) const EVENTS: &str = "\
# comm  tid   cpu      time
       kthreadd   165 [000]    20.761120: damon:damon_aggregated: target_id=0 nr_regions=4 94411850973184-94411935289344: 0 23
       kthreadd   165 [000]    20.761133: damon:damon_aggregated: target_id=0 nr_regions=4 140422885146624-140422906118144: 20 4
       kthreadd   165 [000]    20.761135: damon:damon_aggregated: target_id=0 nr_regions=4 140422906118144-140422990004224: 0 20
       kthreadd   165 [000]    20.761140: damon:damon_aggregated: target_id=0 nr_regions=4 140729412632576-140729412767744: 0 23
       kthreadd   165 [000]    20.880201: damon:damon_aggregated: target_id=0 nr_regions=5 94411850973184-94411935289344: 0 24
       kthreadd   165 [000]    20.880210: damon:damon_aggregated: target_id=0 nr_regions=5 140422885146624-140422904020992: 19 5
       kthreadd   165 [000]    20.880212: damon:damon_aggregated: target_id=0 nr_regions=5 140422904020992-140422906118144: 20 5
       kthreadd   165 [000]    20.880214: damon:damon_aggregated: target_id=0 nr_regions=5 140422906118144-140422990004224: 0 21
       kthreadd   165 [000]    20.880219: damon:damon_aggregated: target_id=0 nr_regions=5 140729412632576-140729412767744: 0 24
       kthreadd   165 [000]    20.997801: damon:damon_aggregated: target_id=0 nr_regions=3 140422885146624-140422906118144: 20 6
       kthreadd   165 [000]    20.997809: damon:damon_aggregated: target_id=0 nr_regions=3 140422906118144-140422924992512: 1 0
       kthreadd   165 [000]    20.997811: damon:damon_aggregated: target_id=0 nr_regions=3 140422926041088-140422927089664: 1 0
";

/// What damo writes: two targets, one of them used alike in two regions side by side.
pub(crate) const JSON: &str = r#"[
  {"kdamond_idx": 0, "context_idx": 0,
   "intervals": {"sample_us": "5000", "aggr_us": "100000", "ops_update_us": "1000000"},
   "scheme_idx": null, "target_id": 0, "scheme_filters": [],
   "snapshots": [
    {"start_time": "137372157573", "end_time": "137498731000", "regions": [
      {"start": "94,590,110,748,672", "end": "94,590,203,113,472",
       "nr_accesses": {"samples": 0, "percent": null}, "age": {"usec": null, "aggr_intervals": "0"}},
      {"start": "139,867,008,143,360", "end": "139,867,010,240,512",
       "nr_accesses": {"samples": 7, "percent": null}, "age": {"usec": null, "aggr_intervals": "0"}},
      {"start": "139,867,010,240,512", "end": "139,867,014,434,816",
       "nr_accesses": {"samples": 7, "percent": null}, "age": {"usec": null, "aggr_intervals": "0"}}],
     "total_bytes": "98656256", "damos_stats": null, "sample_interval_us": null},
    {"start_time": "137498731000", "end_time": "137606024000", "regions": [
      {"start": "139,867,008,143,360", "end": "139,867,014,434,816",
       "nr_accesses": {"samples": 20, "percent": null}, "age": {"usec": null, "aggr_intervals": "1"}}]}],
   "data_source": "unknown"},
  {"intervals": {"sample_us": "5 ms", "aggr_us": "100 ms", "ops_update_us": "1 s"}, "target_id": 1,
   "snapshots": [
    {"start_time": 137400000000, "end_time": 137500000000, "regions": [
      {"start": 4194304, "end": 8388608, "nr_accesses": {"samples": 2}}]}]}
]
"#;

pub(crate) fn compressed(text: &[u8]) -> Vec<u8> {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(text).expect("it fits");
    zlib.finish().expect("it fits")
}

fn of_bytes(log: &[u8]) -> Trace {
    assert_eq!(ImportFormat::of(log), Some(ImportFormat::Damon));
    import(ImportFormat::Damon, "a.log", log).unwrap_or_else(|error| panic!("{error}"))
}

/// ```text
///  region     heap 80 MiB   |20 MiB hot | each 2 s 18 | 1 MiB not | 1 | stack
///  samples         0        |    20     |      1      |     0     | 1 |   0
///  file                     0          20            38          39
/// ```
#[test]
fn what_was_used_is_touched_as_often_as_samples_found_it() {
    let trace = trace(EVENTS);
    insta::assert_snapshot!(operations(&trace), @"
         0    0 t0 mmap     mapping 0 0+40894464 0
    118340    0 t0 touch    mapping 0 0+20971520 20
    237421    0 t0 touch    mapping 0 0+18874368 19
    237421    0 t0 touch    mapping 0 18874368+2097152 20
    355021    0 t0 touch    mapping 0 0+20971520 20
    355021    0 t0 touch    mapping 0 20971520+18874368 0
    355021    0 t0 touch    mapping 0 39845888+1048576 0
    ");
    insta::assert_snapshot!(files(&trace), @"target 0 40894464");
    insta::assert_snapshot!(gaps(&trace), @"
    DAMON does not tell anonymous memory from files: all is taken for pages of files that are only read, which a limit can take and a disk brings back
    a region that was found used counts as a whole: 39 MiB at most in one interval; with as large a share of its pages as of its samples it would be 21 MiB
    what was never found used is not in it: 39 MiB were, of regions with 181 MiB
    how many samples an interval had is not in it: taken for 20, as by default
    ");
    assert_eq!((trace.length_ns / 1_000_000, trace.sampled_every_ns / 1_000_000), (355, 118));
}

#[test]
fn damo_s_file_is_the_same_with_and_without_compression() {
    let trace = of_bytes(JSON.as_bytes());
    assert_eq!(of_bytes(&compressed(JSON.as_bytes())), trace);
    insta::assert_snapshot!(operations(&trace), @"
         0    0 t0 mmap     mapping 0 0+6291456 0
         0    0 t1 mmap     mapping 1 0+4194304 0
    126573    0 t0 touch    mapping 0 0+6291456 7
    127842    0 t1 touch    mapping 1 0+4194304 2
    233866    0 t0 touch    mapping 0 0+6291456 20
    ");
    insta::assert_snapshot!(files(&trace), @"
    target 0 6291456
    target 1 4194304
    ");
    insta::assert_snapshot!(gaps(&trace), @"
    DAMON does not tell anonymous memory from files: all is taken for pages of files that are only read, which a limit can take and a disk brings back
    a region that was found used counts as a whole: 10 MiB at most in one interval; with as large a share of its pages as of its samples it would be 7 MiB
    what was never found used is not in it: 10 MiB were, of regions with 99 MiB
    ");
    assert_eq!(trace.tasks.len(), 2, "one for each target");
}

/// perf lost two lines of the first snapshot: the second begins where addresses fall.
#[test]
fn a_snapshot_that_lost_regions_ends_where_the_next_begins() {
    let lines: Vec<&str> = EVENTS.lines().collect();
    let lossy = [&lines[..3], &lines[5..]].concat().join("\n") + "\nperf: 2 events were lost\n";
    let trace = trace(&lossy);
    let times: Vec<u64> = trace.operations.iter().map(|operation| operation.at_ns / 1000).collect();
    assert_eq!(times, [0, 118_340, 237_421, 237_421, 355_021, 355_021, 355_021]);
    let gaps = gaps(&trace);
    assert!(gaps.contains("snapshots that lack regions, which were lost or cut off: 1, on line 4"), "{gaps}");
    assert!(gaps.contains("lines that are no `damon_aggregated` are left out: 1, on line 12"), "{gaps}");
}

#[test]
fn a_log_that_is_cut_within_a_line_is_read_up_to_there() {
    let cut = trace(&EVENTS[..EVENTS.len() - 40]);
    assert_eq!(cut.operations.len(), trace(EVENTS).operations.len() - 1);
    assert!(gaps(&cut).contains("the log ends within a line: 1, on line 13"), "{}", gaps(&cut));
}

/// `damo record --snapshot 5s 2` looks for one interval, then for none.
#[test]
fn time_in_which_nobody_looked_is_told() {
    let later = JSON.replace("\"start_time\": \"137498731000\", \"end_time\": \"137606024000\"", {
        "\"start_time\": \"142498731000\", \"end_time\": \"142606024000\""
    });
    assert!(gaps(&of_bytes(later.as_bytes())).contains("nobody looked between snapshots: 5.0 of 5.2 s"));
}

/// A reservation of 100 TiB of which one sample found a page used is not 2^35 pages that are touched.
#[test]
fn a_region_that_samples_say_nothing_of_is_left_out() {
    let line = |start: u64, end: u64, samples: u32| {
        format!("k 1 [0] 1.0: damon:damon_aggregated: target_id=0 nr_regions=2 {start}-{end}: {samples} 0\n")
    };
    let trace = trace(&(line(0, 4 * MIB, 3) + &line(8 * MIB, 100 << 40, 1)));
    assert_eq!(files(&trace), "target 0 4194304\n");
    assert!(gaps(&trace).contains("regions of more than a terabyte that were found used are left out: 1\n"));
    let many: String = (0..100).map(|at| line(at << 41, (at << 41) + (1 << 40), 1)).collect();
    insta::assert_snapshot!(refused(ImportFormat::Damon, many.as_bytes()), @"in all: the regions that were found used have 102400 GiB together; record a part of the memory, or for longer, until regions fit what is used");
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_what_to_do() {
    let refused = |log: &str| refused(ImportFormat::Damon, log.as_bytes());
    let line = |fields: &str| format!("k 1 [0] 1.0: damon:damon_aggregated: {fields}\n");
    let lines = [
        "target=0 nr_regions=2 0-4096: 1 0",
        "target_id=0 0-4096: 1 0",
        "target_id=0 nr_regions=2 0-4096 1 0",
        "target_id=0 nr_regions=2 0x0-0x1000: 1 0",
        "target_id=0 nr_regions=2 8192-4096: 1 0",
        "target_id=0 nr_regions=2 0-99999999999999999999: 1 0",
        "target_id=0 nr_regions=2 0-4096: many 0",
        "target_id=0 nr_regions=2 0-4096: 0 0",
    ];
    let said: String = lines.iter().map(|fields| refused(&line(fields)) + "\n").collect();
    insta::assert_snapshot!(said, @"
    line 1: a target such as `target_id=0` is expected in `target=0 nr_regions=2 0-4096: 1 0`; name a log of this form, or write it again
    line 1: a number of regions such as `nr_regions=10` is expected in `target_id=0 0-4096: 1 0`; name a log of this form, or write it again
    line 1: a region such as `4096-8192:` is expected in `target_id=0 nr_regions=2 0-4096 1 0`; name a log of this form, or write it again
    line 1: a region such as `4096-8192:` is expected in `target_id=0 nr_regions=2 0x0-0x1000: 1 0`; name a log of this form, or write it again
    line 1: a region cannot begin at 8192 and end at 4096; name a log of this form, or write it again
    line 1: a region such as `4096-8192:` is expected in `target_id=0 nr_regions=2 0-99999999999999999999: 1 0`; name a log of this form, or write it again
    line 1: a number of samples such as `19` is expected in `target_id=0 nr_regions=2 0-4096: many 0`; name a log of this form, or write it again
    read as a log of damon: no operation on a file or on memory is in it; of its regions, 1 in all, none was found used; write it with `damo record`, or print events of `perf record -a -e damon:damon_aggregated` with `perf script`
    ");
    let fields = "target_id=0 nr_regions=1 0-4096: 1 0";
    let back = line(fields) + &line(fields).replace("1.0:", "0.9:");
    insta::assert_snapshot!(refused(&back), @"line 2: the snapshot of 900000000 ns comes after that of 1000000000 ns; cut the log before that line, or write it again");
    insta::assert_snapshot!(refused(&line(fields).replace("1.0:", "")), @"line 1: a time such as `82877.315633:` is expected before the event, not `k 1 [0]`; name a log of this form, or write it again");
    insta::assert_snapshot!(refused(""), @"read as a log of damon: no operation on a file or on memory is in it; it is empty; write it with `damo record`, or print events of `perf record -a -e damon:damon_aggregated` with `perf script`");
    insta::assert_snapshot!(refused("perf: nothing\n"), @"read as a log of damon: no operation on a file or on memory is in it; of its lines, 1 in all, none is a `damon_aggregated`; write it with `damo record`, or print events of `perf record -a -e damon:damon_aggregated` with `perf script`");
    insta::assert_snapshot!(refused("damon_recfmt_ver\0\0"), @"its beginning: it is damo's format `record`, of its versions 1 and older; have the damo that wrote it write JSON: `damo convert_record_format`");
    insta::assert_snapshot!(refused("PERFILE2\0\0"), @"its beginning: it is a file of `perf record`; print it with `perf script -i FILE` and read that");
}

#[test]
fn a_broken_file_of_damo_is_told_with_its_line() {
    let refused = |log: &[u8]| refused(ImportFormat::Damon, log);
    let changed = |from: &str, to: &str| {
        assert!(JSON.contains(from));
        refused(JSON.replacen(from, to, 1).as_bytes())
    };
    let said = [
        refused(b"[]"),
        refused(b"{\"damo_records\": 1}"),
        refused(b"[{\"target_id\": 0}]"),
        refused(&JSON.as_bytes()[..900]),
        changed("\"end\": \"94,590,203,113,472\"", "\"end\": \"94,590\""),
        changed("\"end\": \"94,590,203,113,472\"", "\"end\": [1]"),
        changed("\"end_time\": \"137498731000\"", "\"end_time\": \"137\""),
        changed("\"end_time\": \"137498731000\"", "\"end_time\": \"soon\""),
        changed(
            "\"start_time\": \"137498731000\", \"end_time\": \"137606024000\"",
            "\"start_time\": null, \"end_time\": \"137498730000\"",
        ),
        changed("\"samples\": 7, \"percent\": null", "\"samples\": null, \"percent\": 35"),
        refused(&compressed(JSON.as_bytes())[..300]),
        refused(&[&compressed(JSON.as_bytes())[..300], &[0xff; 300]].concat()),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    read as a log of damon: no operation on a file or on memory is in it; it has no regions; write it with `damo record`, or print events of `perf record -a -e damon:damon_aggregated` with `perf script`
    line 1, column 1, of damo's JSON: it is not as damo writes it: invalid type: map, expected a sequence; record it again, or have damo write it again: `damo convert_record_format`
    line 1, column 17, of damo's JSON: it is not as damo writes it: missing field `snapshots`; record it again, or have damo write it again: `damo convert_record_format`
    line 14, column 22, of damo's JSON: it ends here: EOF while parsing a string; record it again, or have damo write it again: `damo convert_record_format`
    line 9, column 7, of damo's JSON: it is not as damo writes it: a region cannot begin at 94590110748672 and end at 94590; record it again, or have damo write it again: `damo convert_record_format`
    line 7, column 49, of damo's JSON: it is not as damo writes it: a number was expected; record it again, or have damo write it again: `damo convert_record_format`
    line 18, column 3, of damo's JSON: it is not as damo writes it: a snapshot cannot end at 137 ns, before its beginning; record it again, or have damo write it again: `damo convert_record_format`
    line 14, column 5, of damo's JSON: it is not as damo writes it: `soon` is no number; record it again, or have damo write it again: `damo convert_record_format`
    line 18, column 3, of damo's JSON: it is not as damo writes it: the snapshot of 137498730000 ns comes after that of 137498731000 ns; record it again, or have damo write it again: `damo convert_record_format`
    line 10, column 39, of damo's JSON: it is not as damo writes it: a number was expected; record it again, or have damo write it again: `damo convert_record_format`
    line 12, column 101, of damo's JSON: cannot be read further: incomplete deflate stream; record it again, or have damo write it again: `damo convert_record_format`
    line 12, column 102, of damo's JSON: it is not as damo writes it: expected `,` or `}`; record it again, or have damo write it again: `damo convert_record_format`
    ");
}

/// Some kilobytes of zlib that unpack to 64 MiB of one text.
#[test]
fn what_unpacks_to_a_text_without_end_is_an_error() {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(b"[{\"target_id\": 0, \"snapshots\": [], \"what\": \"").expect("it fits");
    for _ in 0..64 {
        zlib.write_all(&[b'a'; MIB as usize]).expect("it fits");
    }
    let said = refused(ImportFormat::Damon, &zlib.finish().expect("it fits"));
    assert!(
        said.contains("of damo's JSON: cannot be read further: a word in it has more than 4194304 bytes"),
        "{said}"
    );
}

#[test]
fn what_a_monitor_s_targets_share_is_only_their_number() {
    let twice = JSON.replace("\"target_id\": 1", "\"target_id\": 0");
    let trace = of_bytes(twice.as_bytes());
    assert_eq!(files(&trace), "target 0 6291456\ntarget 0, record 2 4194304\n");
    let maps = trace.operations.iter().filter(|operation| operation.kind == OperationKind::Map);
    assert_eq!(maps.map(|operation| operation.object).collect::<Vec<_>>(), [0, 1]);
}
