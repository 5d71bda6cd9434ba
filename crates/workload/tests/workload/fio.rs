//! Jobs as workload files, and what is refused.

use pagetide_workload::WorkloadSpec;
use pagetide_workload::written::fio::translate;

#[test]
fn jobs_become_tasks_with_files_of_their_own_and_stages() {
    let job = "[global]\nioengine=psync\nsize=64m\nbs=64k\ngroup_reporting\n\n[fill]\nrw=write\nnumjobs=2\nend_fsync=1\n\n\
               [scan]\nstonewall\nrw=randread\nnrfiles=4\nrandom_distribution=zipf:1.1\nrate=1m\n";
    let translated = translate("two stages", job).unwrap();
    assert_eq!(translated.ignored, ["group_reporting"]);
    insta::assert_snapshot!(translated.text, @r#"
    # The fio jobs of two stages, translated.
    # Ignored, as they change nothing here: group_reporting.
    name = "fio-two-stages"
    help = "fio: fill, scan"
    phases = ["stage1", "stage2"]

    [files]
    fill-0-files = { size = 67108864, state = "empty" }
    fill-1-files = { size = 67108864, state = "empty" }
    scan-files = { size = 16777216, count = 4, state = "laid-out" }

    [tasks.fill-0]
    steps = [
      { write = "fill-0-files", order = "sequential", block = 65536, count = 1024, label = "fill" },
      { fsync = "fill-0-files" },
      { end = "stage1" },
    ]

    [tasks.fill-1]
    steps = [
      { write = "fill-1-files", order = "sequential", block = 65536, count = 1024, label = "fill" },
      { fsync = "fill-1-files" },
      { end = "stage1" },
    ]

    [tasks.scan]
    steps = [
      { wait = "stage1" },
      { advise = "scan-files", as = "dont-need" },
      { advise = "scan-files", as = "random" },
      { read = "scan-files", order = "zipf:1.1", block = 65536, count = 1024, label = "scan", every = "62500000ns", in_turn = true },
      { end = "stage2" },
    ]

    [metrics]
    stage1_seconds = { seconds = "stage1", help = "all jobs of stage 1" }
    stage2_seconds = { seconds = "stage2", help = "all jobs of stage 2" }
    fill_mib_per_second = { rate = "fill", help = "all clones of fill" }
    fill_p99_us = { latency = "fill", percentile = 99, help = "slowest hundredth of its calls" }
    scan_mib_per_second = { rate = "scan", help = "all clones of scan" }
    scan_p99_us = { latency = "scan", percentile = 99, help = "slowest hundredth of its calls" }
    "#);
    WorkloadSpec::of_file(&translated.text).unwrap();
}

#[test]
fn what_changes_the_result_and_is_not_supported_is_refused_by_name() {
    let told = |job: &str| {
        let mistake = translate("job", job).unwrap_err();
        format!("{mistake}; {}", mistake.hint.clone().unwrap_or_default())
    };
    insta::assert_snapshot!(
        [
            "[a]\nrw=read\nsize=1m\ndirect=1",
            "[a]\nrw=read\nsize=1m\nioengine=rdma",
            "[a]\nrw=read\nsize=1m\nioengine=io_uring\niodepth=32",
            "[a]\nrw=read\nsize=1m\nverify=md5",
            "[a]\nrw=read\nsize=50%",
            "[a]\nrw=read\nsize=1GiB", // Was read as 1024 MiB.
            "[a]\nrw=trim\nsize=1m",
            "[a]\nrw=read",
            "rw=read",
            "[a",
            "[global]\nrw=read",
            "[a]\nrw=read\nsize=1m\nnumjobs=0",
            "[a]\nrw=read\nsize=1m\ntime_based",
            "[a]\nrw=read\nsize=1m\nruntime=5x",
            "[a]\nrw=randread\nsize=1m\nrandom_distribution=pareto:0.2",
            "[a]\nrw=read\nsize=1m\nblok=4k",
        ]
        .map(told)
        .join("\n"),
        @"
    line 4, column 1: option `direct`: direct I/O goes past the page cache, which is all that this is about; leave it out
    line 4, column 1: option `ioengine`: `rdma` is none of sync, psync, vsync, pvsync, pvsync2, libaio, io_uring, posixaio, mmap; leave it out
    line 5, column 1: option `iodepth`: several requests in flight are not modelled; leave it out
    line 4, column 1: option `verify` is not supported; known names: `bs`, `blocksize`, `buffered`, `create_on_open`, `direct`, `end_fsync`, `fadvise_hint`, `fdatasync`, `file_service_type`, `filename`, `filesize`, `fsync` and 26 more; or leave it out
    line 3, column 1: `size` cannot be `50%`; a size without range, list or share, such as `64k` or `4g`
    line 3, column 1: `size` cannot be `1GiB`; to fio `Ki` and `KiB` are 1000 bytes, and 1024 are `k`: write `64k` or `4g`, or bytes
    line 2, column 1: `rw` cannot be `trim`; known names: `read`, `write`, `randread`, `randwrite`, `rw`, `randrw`
    line 1, column 1: job `a` has no `size`; add `size=1g`
    line 1, column 1: `rw=read` stands before any section; write `[global]` or `[job]` above it
    line 1, column 1: `[a` is no section; write `[name]`
    there is no job; write a section, such as `[reader]`
    line 1, column 1: job `a` has 0 clones of 1 files; 1 to 1024 clones, and a file at least
    line 1, column 1: job `a` is time_based and has no `runtime`; add `runtime=60`
    line 4, column 1: `runtime`: `5x` is no time; 
    line 4, column 1: option `random_distribution`: `pareto:0.2` is neither `random` nor `zipf:EXPONENT`; leave it out
    line 4, column 1: option `blok` is not supported; known names: `bs`, `blocksize`, `buffered`, `create_on_open`, `direct`, `end_fsync`, `fadvise_hint`, `fdatasync`, `file_service_type`, `filename`, `filesize`, `fsync` and 26 more; or leave it out
    "
    );
}
