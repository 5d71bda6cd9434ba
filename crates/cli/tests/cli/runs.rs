//! Commands that succeed: what they print, what they keep, and that it is the same each time.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Scene, below_title};

/// A run of a fraction of a second, with reclaim.
const SMALL: &str = "hot-and-stream --param hot=1M --param stream=64M --mem 32M";

#[test]
fn help_of_each_command() {
    let scene = Scene::new();
    insta::assert_snapshot!(scene.shown("--help"), @"
    Run Linux memory management: the effect of a change to reclaim on a workload, in seconds

    Usage: pagetide [OPTIONS] <COMMAND>

    Commands:
      list     Show the names that other commands take, and the zones of a machine
      run      Run one workload on one kernel
      compare  Put kernels, or recordings made earlier, side by side
      sweep    Run one workload, or replay a trace, with every combination of several values
      ablate   Switch features of a kernel, every subset of them: what each does, and each pair together
      replay   Replay a recorded trace through page cache and reclaim, or on plain policies
      size     Say how much memory a trace needs: its curve, the knee, and what to set
      worlds   Hold the model to real kernels: random scenarios on both, judged counter by counter
      explain  Say why a run went as it went: who waited on whom, what evicted which page
      capture  Follow a program: what it and its children do to files and memory, as a trace to replay
      record   Monitor this host while a command runs
      report   Show recordings made earlier, each by itself
      stats    Compare numbers or samples of recordings: means, intervals, percentiles, tables of
               mmtests
      export   Write recordings in the form of another suite
      import   Read runs of another suite as recordings
      trace    Write a run as a trace that other programs show, such as the Perfetto user interface
      machine  Write this host, or a built-in machine, as a machine file
      uml      Get kernels that run as programs (User-Mode Linux)
      vm       Get kernels for virtual machines

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Output:
      -q, --quiet    Say less: no progress
      -v, --verbose  Say more: the start of each run, too

    Exit codes:
      0    done; a difference between kernels is no failure, nor is a run that the OOM killer ended
      1    the plan or an input is wrong
      2    wrong usage, or an internal error
      3    an invariant of the model is violated
      5    `compare --fail-if`: a limit is not kept
      126  `record`, `capture`: the command cannot be run
      127  `record`, `capture`: the command is not found
      130  interrupted; 143 by SIGTERM, 129 by SIGHUP
    exit 0
    ");
    insta::assert_snapshot!(scene.shown("run -h"), @"
    Run one workload on one kernel

    Usage: pagetide run [OPTIONS] <WORKLOAD|FILE>

    Arguments:
      <WORKLOAD|FILE>  Workload by name, or a file: your own or a scenario (*.toml), fio jobs (*.fio)
                       [example: hot-and-stream]

    Options:
      -h, --help  Print help (see more with '--help')

    Run:
          --param <NAME=VALUE>  Parameter of the workload; may be repeated [default: see `list workloads
                                NAME`] [example: hot=50M]
          --seed <N>            Seed of all randomness in the run [default: 1] [example: 7]
          --interval <TIME>     Time between two samples of all counters, from 1ms to 3600s [default:
                                100ms simulated, 1s of real kernels] [example: 20ms]
          --on <BACKEND>        Where to run: sim, host, uml:VERSION, vm:VERSION or a PATH of either;
                                comparisons take several [default: sim] [example: uml:6.12]
          --dry-run             Print the resolved scenario instead of running it
          --max-time <TIME>     Stop a run that takes longer than this on the clock; it leaves nothing
                                [default: none] [example: 60s]
          --check               Check all of the model's state after every event, which takes long; what
                                is wrong is a bug of pagetide

    Machine:
          --machine <NAME|FILE>  Simulated machine to run on, by name or a machine file (*.toml)
                                 [default: the workload's own] [example: vm-2cpu]
          --mem <SIZE>           Memory of a simulated or virtual machine [default: the workload's own]
                                 [example: 1016336kB]
          --swap <AREAS>         What a simulated or virtual machine swaps to: zram:SIZE, disk:SIZE,
                                 several with commas, each perhaps with ,prio=N behind it, or none
                                 [default: the workload's own] [example: zram:256M]
          --set <SYSCTL=VALUE>   Sysctl to set; may be repeated [default: the kernel's own] [example:
                                 vm.swappiness=10]
          --kernel <KERNEL>      Simulated kernel, with features added (+) or taken away (-) [default:
                                 linux-6.12] [example: linux-5.4+root-aging]

    Guest:
          --vm-cpus <N>       With `--on uml:` or `vm:`: CPUs [default: 2; of `uml:` 1] [example: 4]
          --vm-nodes <N>      With `--on vm:`: NUMA nodes, which share CPUs and memory evenly [default:
                              1] [example: 2]
          --lru-gen <on|off>  With `--on uml:` or `vm:`: multi-gen LRU, on, off or bits of its `enabled`
                              [default: off] [example: on]
          --vm-xfs-log <MIB>  With `--on uml:` or `vm:` and XFS: MiB of its log [default: what mkfs.xfs
                              chooses] [example: 16]

    Host:
          --host-limit <SIZE>    With `--on host`: memory of all that the run does [default: 256M]
                                 [example: 512M]
          --host-dir <DIR>       With `--on host`: where its files are made [default: for temporary
                                 files] [example: /data]
          --host-disk <SHARE>    With `--on host`, `uml:` or `vm:`: what its files may take of the free
                                 disk, such as 80% or 20G [default: 50%] [example: 20G]
          --allow-host-pressure  With `--on host`: let it drop all caches of this host and write its
                                 sysctls

    Output:
      -q, --quiet            Say less: no progress
      -v, --verbose          Say more: the start of each run, too
          --out <DIR>        Keep the recording in this new folder [default: not kept] [example:
                             recordings/first]
          --events <WHICH>   Events to keep with the recording, for `explain`, `trace` and heatmaps:
                             those of reclaim, or of all pages [default: none] [possible values: none,
                             reclaim, pages]
          --format <FORMAT>  Form of the result on standard output [example: json] [default: text]
                             [possible values: text, json, csv, md]
          --all              Show all metrics, counters and cgroups, as JSON and CSV always do
          --plot <FILE>      Write one figure as SVG, too [example: story.svg]
          --figure <NAME>    Which figure `--plot` writes, as those of `report`; the first without it
                             [example: story]

    Examples:
      pagetide run hot-and-stream --kernel linux-5.4+root-aging
      pagetide run hot-and-stream --param stream=2G --mem 512M --format json
      pagetide run scenario.toml --out recordings/first
      pagetide run my-server.toml --on sim --on uml:6.12     the same as `compare`
    exit 0
    ");
    insta::assert_snapshot!(scene.shown("compare -h"), @"
    Put kernels, or recordings made earlier, side by side

    Usage: pagetide compare [OPTIONS] <WORKLOAD|FILE|DIR>...

    Arguments:
      <WORKLOAD|FILE|DIR>...  Workload by name, a file (*.toml, *.fio), or folders with recordings
                              [example: hot-and-stream]

    Options:
      -h, --help  Print help (see more with '--help')

    Run:
          --param <NAME=VALUE>  Parameter of the workload; may be repeated [default: see `list workloads
                                NAME`] [example: hot=50M]
          --seed <N>            Seed of all randomness in the run [default: 1] [example: 7]
          --interval <TIME>     Time between two samples of all counters, from 1ms to 3600s [default:
                                100ms simulated, 1s of real kernels] [example: 20ms]
          --on <BACKEND>        Where to run: sim, host, uml:VERSION, vm:VERSION or a PATH of either;
                                comparisons take several [default: sim] [example: uml:6.12]
          --dry-run             Print the resolved scenario instead of running it
          --max-time <TIME>     Stop a run that takes longer than this on the clock; it leaves nothing
                                [default: none] [example: 60s]
          --seeds <N>           Runs of each kernel, with this many seeds [default: 1] [example: 10]
          --jobs <N>            Runs at a time; results do not depend on it [default: one for each CPU]
                                [example: 2]

    Machine:
          --machine <NAME|FILE>  Simulated machine to run on, by name or a machine file (*.toml)
                                 [default: the workload's own] [example: vm-2cpu]
          --mem <SIZE>           Memory of a simulated or virtual machine [default: the workload's own]
                                 [example: 1016336kB]
          --swap <AREAS>         What a simulated or virtual machine swaps to: zram:SIZE, disk:SIZE,
                                 several with commas, each perhaps with ,prio=N behind it, or none
                                 [default: the workload's own] [example: zram:256M]
          --set <SYSCTL=VALUE>   Sysctl to set; may be repeated [default: the kernel's own] [example:
                                 vm.swappiness=10]
          --kernel <KERNEL>      Simulated kernel to compare; a list, or repeated [default: the source's
                                 own before and after] [example: linux-6.1,linux-6.12]

    Guest:
          --vm-cpus <N>       With `--on uml:` or `vm:`: CPUs [default: 2; of `uml:` 1] [example: 4]
          --vm-nodes <N>      With `--on vm:`: NUMA nodes, which share CPUs and memory evenly [default:
                              1] [example: 2]
          --lru-gen <on|off>  With `--on uml:` or `vm:`: multi-gen LRU, on, off or bits of its `enabled`
                              [default: off] [example: on]
          --vm-xfs-log <MIB>  With `--on uml:` or `vm:` and XFS: MiB of its log [default: what mkfs.xfs
                              chooses] [example: 16]

    Host:
          --host-limit <SIZE>    With `--on host`: memory of all that the run does [default: 256M]
                                 [example: 512M]
          --host-dir <DIR>       With `--on host`: where its files are made [default: for temporary
                                 files] [example: /data]
          --host-disk <SHARE>    With `--on host`, `uml:` or `vm:`: what its files may take of the free
                                 disk, such as 80% or 20G [default: 50%] [example: 20G]
          --allow-host-pressure  With `--on host`: let it drop all caches of this host and write its
                                 sysctls

    Output:
      -q, --quiet            Say less: no progress
      -v, --verbose          Say more: the start of each run, too
          --out <DIR>        Keep all recordings in this new folder [default: not kept] [example:
                             recordings/aging]
          --resume           Go on with the comparison in that folder: what has finished is not run
                             again
          --fail-if <LIMIT>  End with code 5 if this is so for any run beside the baseline; may be
                             repeated [example: 'files_per_sec < -5%']
          --junit <FILE>     Write the limits, and what came of them, to this new file as JUnit's XML,
                             for CI [example: limits.xml]
          --sarif <FILE>     Write limits that are not kept to this new file as SARIF 2.1.0, for
                             GitHub's code scanning [example: limits.sarif]
          --events <WHICH>   Events to keep with the recording, for `explain`, `trace` and heatmaps:
                             those of reclaim, or of all pages [default: none] [possible values: none,
                             reclaim, pages]
          --format <FORMAT>  Form of the result on standard output [example: json] [default: text]
                             [possible values: text, json, csv, md]
          --style <STYLE>    Tables as text: its own, or mmtests' with all rows of samples, durations
                             and Ops [default: own] [possible values: own, mmtests, mmtests-head]
          --all              Show all metrics, counters and cgroups, as JSON and CSV always do
          --plot <FILE>      Write one figure as SVG, too [example: story.svg]
          --figure <NAME>    Which figure `--plot` writes, as those of `report`; the first without it
                             [example: story]

    Without --kernel, kernels are those of the workload's source before and after its change.
    The first kernel or folder is the baseline. A folder takes precedence over a workload's name.
    JSON has a key `comparison`, CSV rows of that kind: change, interval, p and verdict of each metric.

    Limits for --fail-if; NAME is a metric, samples (their mean, or NAME.p99, .min, .median, .max), a
    counter, or CGROUP:COUNTER:
      NAME < -5%          the change from the baseline, in percent; also <=, >, >=
      NAME change > 100   the change in the number's own unit, or in one that is named, such as 2ms
      NAME > 100          the number itself, the mean of all runs
      NAME worse by 5%    by more than that in the way that is worse; also better, changed
      NAME worse          a clear change that way, of any size
    A change that is not clear from noise, by the test that the table shows, counts as none, and that is
    said; one run of a real kernel is taken as measured. A limit is not kept either where runs lack what
    the baseline has, as after an OOM kill; a name that no run has is an error. The grid of an
    experiment is not looked at.

    Examples:
      pagetide compare hot-and-stream
      pagetide compare hot-and-stream --kernel linux-6.1 --kernel linux-6.12 --seeds 10
      pagetide compare recordings/first recordings/second --format md
      pagetide compare small-files --seeds 5 --out kept --resume --fail-if 'files_per_sec worse by 5%'
    exit 0
    ");
    insta::assert_snapshot!(scene.shown("replay -h"), @"
    Replay a recorded trace through page cache and reclaim, or on plain policies

    Usage: pagetide replay [OPTIONS] <TRACE|SCENARIO.toml>

    Arguments:
      <TRACE|SCENARIO.toml>  Trace file, `-` for standard input, or the scenario of a replay made
                             earlier (*.toml) [example: trace.csv]

    Options:
      -h, --help  Print help (see more with '--help')

    Cache:
          --policy <POLICY>     Replacement policy, by name and parameters (`list policies`); a list, or
                                repeated [example: lru,s3fifo:small=0.2:batch=32]
          --capacity <OBJECTS>  Objects that fit into the cache, k is 1000; a list, or repeated
                                [example: 1k,10k,100k]
          --mem <SIZE>          Memory of a simulated machine whose page cache it is; a list, or
                                repeated [example: 256M,512M]
          --kernel <KERNEL>     Kernel of that machine; a list, or repeated [default: linux-6.12]
                                [example: linux-6.1,linux-6.12]
          --machine <NAME>      That machine, by name [default: vm-2cpu] [example: vm-2cpu]
          --swap <AREAS>        What that machine swaps to: zram:SIZE, disk:SIZE, several with commas
                                [default: none] [example: zram:64M]
          --set <SYSCTL=VALUE>  Sysctl of that kernel; may be repeated [default: the kernel's own]
                                [example: vm.swappiness=10]

    Cgroup:
          --limit <SIZE>  memory.max of the cgroup that it runs in; of requests also `none`; a list, or
                          repeated [default: no limit] [example: 128M,256M]
          --high <SIZE>   memory.high of that cgroup [default: no limit] [example: 200M]
          --low <SIZE>    memory.low of that cgroup [default: none] [example: 100M]

    Program:
          --pace <WHEN>   Of a program's trace: when operations are made, as long after the task's
                          previous one as captured (think), at the captured times (recorded), or at once
                          (asap) [default: think] [example: recorded]
          --on <BACKEND>  Of a program's trace: where to run, sim, host, uml:VERSION, vm:VERSION or a
                          PATH of either; may be repeated [default: sim] [example: uml:6.12]

    Guest:
          --vm-cpus <N>       With `--on uml:` or `vm:`: CPUs [default: 2; of `uml:` 1] [example: 4]
          --vm-nodes <N>      With `--on vm:`: NUMA nodes, which share CPUs and memory evenly [default:
                              1] [example: 2]
          --lru-gen <on|off>  With `--on uml:` or `vm:`: multi-gen LRU, on, off or bits of its `enabled`
                              [default: off] [example: on]
          --vm-xfs-log <MIB>  With `--on uml:` or `vm:` and XFS: MiB of its log [default: what mkfs.xfs
                              chooses] [example: 16]

    Host:
          --host-limit <SIZE>    With `--on host`: memory of all that the run does [default: 256M]
                                 [example: 512M]
          --host-dir <DIR>       With `--on host`: where its files are made [default: for temporary
                                 files] [example: /data]
          --host-disk <SHARE>    With `--on host`, `uml:` or `vm:`: what its files may take of the free
                                 disk, such as 80% or 20G [default: 50%] [example: 20G]
          --allow-host-pressure  With `--on host`: let it drop all caches of this host and write its
                                 sysctls

    Run:
          --max-time <TIME>  Stop a run that takes longer than this on the clock; it leaves nothing
                             [default: none] [example: 60s]
          --seed <N>         Seed of all randomness in that machine [default: 1] [example: 7]
          --interval <TIME>  Time between two samples of that machine's counters, from 1ms to 3600s
                             [default: 100ms] [example: 20ms]

    Trace:
          --timing <WHEN>          When requests are made of a kernel: asap or recorded [default: asap]
                                   [example: recorded]
          --warmup <HOW MUCH>      Beginning that is not counted: a part (10%), requests (5k), or a time
                                   of the trace (30s) [default: 0] [example: 10%]
          --trace-format <FORMAT>  Format of the trace: block-csv, msr, object-csv or oracle-general
                                   [default: by content] [example: block-csv]
          --unsorted               Take requests in the order of the trace though its times decrease

    Output:
      -q, --quiet            Say less: no progress
      -v, --verbose          Say more: the start of each run, too
          --out <DIR>        Keep the recording, or those of several caches, in this new folder
                             [default: not kept] [example: recordings/trace]
          --events <WHICH>   Events to keep with the recording, for `explain`, `trace` and heatmaps:
                             those of reclaim, or of all pages [default: none] [possible values: none,
                             reclaim, pages]
          --format <FORMAT>  Form of the result on standard output [example: json] [default: text]
                             [possible values: text, json, csv, md]
          --all              Show all metrics, counters and cgroups, as JSON and CSV always do
          --plot <FILE>      Write one figure as SVG, too [example: story.svg]
          --figure <NAME>    Which figure `--plot` writes, as those of `report`; the first without it
                             [example: story]

    The trace may be compressed (gzip, zstd) and have quotes. A first line that names columns tells
    their order: time, object (or key, id), size; or time, op, size, lbn (or lba, offset).
    All policies are fed from one reading of the trace, also of standard input (`-`); each kernel
    reads it for itself, so standard input is then kept in a temporary file.

    The trace of a program (`pagetide capture`) is made again by as many tasks as it had, with their
    files and memory in one cgroup: on a simulated machine, on this host or in a virtual machine.
    Requests that kernels replay are in a cgroup where `--limit`, `--high` or `--low` is given.

    Examples:
      pagetide replay app.trace --mem 2G --limit 128M,256M
      pagetide replay app.trace --limit 256M --on sim --on uml:6.12
      pagetide replay trace.csv --mem 256M,512M --kernel linux-6.12 --warmup 10%
      pagetide replay trace.csv.zst --policy lru,clock --capacity 1k,10k,100k
      zcat trace.gz | pagetide replay - --policy lru --capacity 10k
      pagetide replay recordings/first/scenario.toml
    exit 0
    ");
}

#[test]
fn a_dry_run_prints_a_scenario_that_runs_the_same() {
    let scene = Scene::new();
    let arguments = format!("{SMALL} --kernel linux-5.4+root-aging --set vm.swappiness=10 --seed 7");
    let toml = scene.data(&format!("run {arguments} --dry-run"));
    insta::assert_snapshot!(toml, @r#"
    schema = 1
    workload = "hot-and-stream"
    kernel = "linux-5.4+root-aging"
    machine = "vm-2cpu"
    mem = "32M"
    seed = 7
    backend = "sim"

    [params]
    filesystem = "ext4"
    hot = "1M"
    hot_reads = 2
    read_size = "128k"
    stream = "64M"
    topology = "siblings"

    [sysctls]
    "vm.swappiness" = 10
    "#);
    scene.file("small.toml", &toml);
    assert_eq!(scene.data("run small.toml --dry-run"), toml);
    let direct = scene.data(&format!("run {arguments}"));
    assert_eq!(below_title(&scene.data("run small.toml")), below_title(&direct));
    assert!(direct.contains("hot_pages_cached"), "{direct}");
}

#[test]
fn json_has_the_keys_of_the_contract() {
    let scene = Scene::new();
    let json = scene.data(&format!("compare {SMALL} --format json"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["workload"]), (&1.into(), &"hot-and-stream".into()));
    let runs = json["runs"].as_array().unwrap();
    let labels: Vec<_> = runs.iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["linux-5.4", "linux-5.4+root-aging"]);
    for run in runs {
        for key in ["backend", "kernel", "seed", "wall_seconds", "simulated_seconds", "events"] {
            assert!(!run[key].is_null(), "{key}");
        }
        for key in ["metrics", "samples", "vmstat"] {
            assert!(!run[key].as_object().unwrap().is_empty(), "{key}");
        }
    }
}

#[test]
fn recordings_compare_as_their_runs_did_whatever_the_number_of_jobs() {
    let scene = Scene::new();
    let compare = |jobs: usize, out: &str| {
        scene.data(&format!("compare {SMALL} --seeds 2 --jobs {jobs} --out {out} --format csv"))
    };
    let (one, two) = (compare(1, "one"), compare(2, "two"));
    assert!(one == two, "the number of jobs changes a result");
    let files: Vec<String> =
        scene.names().into_iter().filter_map(|name| name.strip_prefix("one/").map(str::to_owned)).collect();
    assert_eq!(files.iter().filter(|name| name.ends_with("MANIFEST")).count(), 4, "{files:?}");
    for name in files.iter().filter(|name| scene.path().join("one").join(name).is_file()) {
        let read = |folder: &str| std::fs::read(scene.path().join(folder).join(name)).unwrap();
        assert_eq!(read("one"), read("two"), "{name}");
    }
    assert!(scene.data("compare one --format csv") == one, "reading back changes a result");
    let text = scene.data("compare one/1-linux-5.4-seed1 two/1-linux-5.4-seed1");
    assert!(text.contains("one/1-linux-5.4-seed1/scenario.toml"), "{text}");
}

#[test]
fn a_replay_counts_misses_of_each_policy_at_each_capacity() {
    let scene = Scene::new();
    let requests: String =
        (0..40).map(|i| format!("{i},{},4096\n", if i % 2 == 0 { 7 } else { i })).collect();
    scene.file("trace.csv", requests);
    let arguments = "replay trace.csv --policy lru --policy fifo --capacity 2 --capacity 100";
    insta::assert_snapshot!(scene.shown(&format!("{arguments} -q")), @"
    replay trace.csv

     run       miss_ratio  byte_miss_ratio  misses
     lru 2          0.5              0.5        20
     lru 100        0.5              0.5        20
     fifo 2         0.725            0.725      29
     fifo 100       0.5              0.5        20
    4 more metrics with `--all`
    exit 0
    ");
}

#[test]
fn a_replay_through_reclaim_misses_less_with_more_memory() {
    let scene = Scene::new();
    // Two rounds over 24 MiB in strides that readahead does not follow.
    let requests: String =
        (0..12_288).map(|i| format!("1,{i},28,4096,{}\n", 8 * (i * 2_741 % 6_144))).collect();
    scene.file("trace.csv", format!("version,time,op,size,lbn\n{requests}"));
    let json = scene.data("replay trace.csv --mem 20M --mem 64M --kernel linux-6.1 --format json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let metric = |run: usize, name: &str| json["runs"][run]["metrics"][name].as_f64().unwrap();
    assert_eq!(json["runs"][0]["label"], "linux-6.1 20M");
    assert_eq!((metric(0, "requests"), metric(1, "requests")), (12_288.0, 12_288.0));
    let misses = (metric(0, "page_misses"), metric(1, "page_misses"));
    assert!(misses.0 > 1.5 * misses.1, "{misses:?}");
    assert_eq!(json["runs"][1]["vmstat"]["pgscan_direct"], 0, "64 MiB hold the trace");
}

#[test]
fn quiet_says_nothing_and_a_file_gets_one_line_a_run() {
    let scene = Scene::new();
    let said = |options: &str| {
        let output = scene.output(&format!("compare {SMALL} {options}"));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(said("-q"), "");
    let lines = said("");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(
        lines.contains("linux-5.4+root-aging, seed 1: ") && lines.contains(" ms simulated in "),
        "{lines}"
    );
    assert_eq!(said("-v").lines().count(), 4);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scene = Scene::new();
    let mut child =
        scene.command("list counters").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn an_interruption_keeps_the_runs_that_finished_and_no_half_ones() {
    let scene = Scene::new();
    let child = scene
        .command(&format!("compare {SMALL} --seeds 10000 --jobs 2 --out kept --format json -q"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let finished = || scene.names().iter().filter(|name| name.ends_with("/MANIFEST")).count();
    let deadline = Instant::now() + Duration::from_secs(120);
    while finished() < 3 {
        assert!(Instant::now() < deadline, "no run finished");
        sleep(Duration::from_millis(20));
    }
    let interrupt = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.starts_with("error: interrupted: "), "{said}");
    let half: Vec<String> = scene.names().into_iter().filter(|name| name.contains("partial")).collect();
    assert_eq!(half, Vec::<String>::new());
    let json: serde_json::Value = serde_json::from_str(&scene.data("compare kept --format json")).unwrap();
    assert!(json["runs"].as_array().unwrap().len() >= 3);
}

#[test]
fn a_guest_is_part_of_its_scenario_and_the_model_beside_it_has_its_memory() {
    let scene = Scene::new();
    let told = scene
        .data("compare hot-and-stream --on sim --on vm:6.12 --vm-cpus 4 --vm-nodes 2 --lru-gen y --dry-run");
    let (model, guest) = told.split_at(told.rfind("schema = 1").unwrap());
    assert!(model.contains("backend = \"sim\"") && !model.contains("[vm]"), "{model}");
    assert!(guest.contains("backend = \"vm:6.12\""), "{guest}");
    assert!(guest.ends_with("\n[vm]\ncpus = 4\nnuma_nodes = 2\nlru_gen = \"on\"\n"), "{guest}");
    for scenario in [model, guest] {
        assert!(scenario.contains("machine = \"guest-tcg\"\nmem = \"512M\""), "{scenario}");
    }
    scene.file("guest.toml", guest);
    assert_eq!(scene.data("run guest.toml --dry-run"), guest);
}

#[test]
fn a_replay_leaves_one_recording_or_a_folder_of_them() {
    let scene = Scene::new();
    scene.file("trace.csv", "1,10,4096\n2,11,4096\n3,10,4096\n");
    let one = scene.data("replay trace.csv --policy lru --capacity 1 --out one");
    assert_eq!(one, scene.data("replay trace.csv --policy lru --capacity 1"));
    scene.data("replay trace.csv --policy lru --policy fifo --capacity 1 --out both");
    let names = scene.names();
    let manifests: Vec<&String> = names.iter().filter(|name| name.ends_with("MANIFEST")).collect();
    assert_eq!(manifests, ["both/1-lru-1/MANIFEST", "both/2-fifo-1/MANIFEST", "one/MANIFEST"]);
    let shown = scene.shown("compare both");
    assert!(shown.contains("lru 1") && shown.ends_with("exit 0"), "{shown}");
    assert!(shown.contains("pagetide replay both/1-lru-1/scenario.toml"), "{shown}");
    let shown = scene.shown("replay trace.csv --policy lru --capacity 1 --out one");
    insta::assert_snapshot!(shown, @"
    error: `one` exists already
    hint: name a new folder, or remove this one first
    exit 1
    ");
}

#[test]
fn a_recording_is_shown_again_as_it_was_when_it_was_made() {
    let scene = Scene::new();
    for format in ["text", "csv"] {
        let made = scene.data(&format!("run {SMALL} --out {format} --format {format}"));
        let again = scene.data(&format!("report {format} --format {format}"));
        assert_eq!(below_title(&again), below_title(&made), "{format}");
    }
    assert!(scene.data("report text --format md").contains("pagetide run text/scenario.toml"));
    let both = scene.data("report text csv --format csv");
    assert!(both.lines().count() > 2 * 100, "two recordings, each with its counters");
    let shown = scene.shown("report nowhere");
    assert!(shown.contains("nowhere") && shown.contains("hint:"), "{shown}");
}

/// A run that thrashes goes on for an hour, and could only be interrupted.
#[test]
fn a_run_that_takes_too_long_is_stopped() {
    let scene = Scene::new();
    for command in
        ["run simoop", "explain simoop", "run simoop --out kept", "ablate simoop --features root-aging"]
    {
        let shown = scene.shown(&format!("{command} -q --mem 128M --max-time 100ms"));
        assert!(
            shown.contains(", seed 1: stopped after 100 ms, as `--max-time` says\nhint: give it"),
            "{shown}"
        );
        assert!(shown.ends_with("exit 1"), "{shown}");
    }
    assert!(scene.shown("run simoop --max-time 0s").starts_with("error: `--max-time` of 0 would stop"));
    let names = scene.names();
    assert!(!names.contains(&"kept".to_owned()), "{names:?}");
}
