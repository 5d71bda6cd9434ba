//! Workloads of files: the examples run, twice the same, and again from their recordings; what is wrong is told.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

use crate::support::{Scene, below_title, refused};

fn examples(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder)
}

/// Parameters that make an example small.
fn small(name: &str) -> &'static str {
    match name {
        "hot-and-scan" => "hot=2M scan=128M",
        "web-and-backup" => "files=2000 requests=1000 limit=16M clients=2",
        "mapped-database" => "data=32M lookups=4000",
        "build-tree" => "jobs=2 sources=400",
        "batch-and-swap" => "heap=24M high=16M service=2M",
        other => panic!("no parameters for the example `{other}`"),
    }
}

#[test]
fn every_example_runs_the_same_twice_and_again_from_its_recording() {
    let scene = Scene::new();
    let mut count = 0;
    for entry in read_dir(examples("workloads")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        scene.file(&format!("{name}.toml"), read_to_string(&path).unwrap());
        let params: String = small(&name).split(' ').map(|pair| format!(" --param {pair}")).collect();
        let run = format!("run {name}.toml --mem 64M --swap zram:32M --format json{params}");
        let measured = |run: &str| {
            let is_of_the_run = |line: &&str| !line.contains("wall_seconds");
            scene.data(run).lines().filter(is_of_the_run).collect::<Vec<_>>().join("\n")
        };
        let first = measured(&format!("{run} --out {name}"));
        assert_eq!(first, measured(&run), "{name}");
        assert_eq!(first, measured(&format!("run {name}/scenario.toml --format json")), "{name}");
        count += 1;
    }
    assert_eq!(count, 5);
}

#[test]
fn a_run_on_two_backends_is_their_comparison() {
    let scene = Scene::new();
    scene.file("my.toml", read_to_string(examples("workloads").join("hot-and-scan.toml")).unwrap());
    let told =
        |command: &str| scene.shown(&format!("{command} my.toml --on sim --on uml:9.9 --seed 3 --dry-run"));
    assert_eq!(told("run"), told("compare"));
    insta::assert_snapshot!(refused(&scene, &["run my.toml --on sim --on uml:6.12 --check"]), @r#"
    $ run my.toml --on sim --on uml:6.12 --check
    error: `--check` looks at the model's own state, and `--on uml:6.12` has none
    hint: leave `--on` out, or `--check`
    exit 1
    "#);
}

#[test]
fn the_page_shows_an_example_as_it_is() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workload-files.md");
    let page = read_to_string(page).unwrap();
    let example = read_to_string(examples("workloads").join("hot-and-scan.toml")).unwrap();
    let (_, example) = example.split_once('\n').unwrap();
    assert!(page.contains(example), "docs/workload-files.md shows another hot-and-scan");
}

#[test]
fn a_file_has_the_report_of_a_built_in_workload() {
    let scene = Scene::new();
    let text = read_to_string(examples("workloads").join("hot-and-scan.toml")).unwrap();
    scene.file("my.toml", text);
    let report = scene.data("run my.toml --mem 64M --param hot=2M --param scan=128M");
    let report = below_title(&report).split("\n\n").next().unwrap();
    insta::assert_snapshot!(report, @"
    metric                  value  unit   what it is
    hot_pages_cached       512     pages  of the hot file in memory after the scan
    reread_seconds          93.85  µs     reading the hot file again
    scan_mib_per_second   5768     MiB/s  pace of the backup
    pages_scanned        13566            that kswapd looked at during the scan
    ");
}

#[test]
fn a_task_knows_its_number() {
    let scene = Scene::new();
    let file = "name = \"x\"\n[tasks.maker]\ncount = 3\nsteps = [{ create = \"new\", count = \"$task + 1\", label = \"new\" }]\n\
        [metrics]\nmade = { operations = \"new\" }\n";
    scene.file("x.toml", file);
    let report = scene.data("run x.toml --mem 64M --format csv");
    assert!(report.lines().any(|line| line.contains("made,,6")), "1 and 2 and 3: {report}");
}

#[test]
fn jobs_of_fio_run_and_say_what_they_ignore() {
    let scene = Scene::new();
    for name in ["scan", "lookup", "create"] {
        scene.file(
            &format!("{name}.fio"),
            read_to_string(examples("fio").join(format!("{name}.fio"))).unwrap(),
        );
        let shown = scene.shown(&format!("run {name}.fio --dry-run"));
        assert!(shown.contains("exit 0") && shown.contains(&format!("workload = \"fio-{name}\"")), "{shown}");
    }
    scene.file(
        "small.fio",
        "[global]\nsize=4m\nbs=64k\nunlink=1\n[a]\nrw=write\n[b]\nstonewall\nrw=randrw\nloops=2\n",
    );
    let shown = scene.shown("run small.fio --mem 64M --dry-run");
    insta::assert_snapshot!(shown, @r#"
    schema = 1
    workload = "fio-small"
    program = '''
    # The fio jobs of small, translated.
    # Ignored, as they change nothing here: unlink.
    name = "fio-small"
    help = "fio: a, b"
    phases = ["stage1", "stage2"]

    [files]
    a-files = { size = 4194304, state = "empty" }
    b-files = { size = 4194304, state = "laid-out" }

    [tasks.a]
    steps = [
      { write = "a-files", order = "sequential", block = 65536, count = 64, label = "a" },
      { end = "stage1" },
    ]

    [tasks.b]
    steps = [
      { wait = "stage1" },
      { repeat = 2, steps = [{ advise = "b-files", as = "dont-need" }, { advise = "b-files", as = "random" }, { read = "b-files", order = "shuffled", block = 65536, count = 64, label = "b", writes = 0.5 }] },
      { end = "stage2" },
    ]

    [metrics]
    stage1_seconds = { seconds = "stage1", help = "all jobs of stage 1" }
    stage2_seconds = { seconds = "stage2", help = "all jobs of stage 2" }
    a_mib_per_second = { rate = "a", help = "all clones of a" }
    a_p99_us = { latency = "a", percentile = 99, help = "slowest hundredth of its calls" }
    b_mib_per_second = { rate = "b", help = "all clones of b" }
    b_p99_us = { latency = "b", percentile = 99, help = "slowest hundredth of its calls" }
    '''
    kernel = "linux-6.12"
    machine = "vm-2cpu"
    mem = "64M"
    seed = 1
    backend = "sim"

    [params]
    filesystem = "ext4"
    options of fio that change nothing here: unlink
    exit 0
    "#);
    let report = scene.data("run small.fio --mem 64M");
    assert!(below_title(&report).contains("b_p99_us"), "{report}");
}

#[test]
fn what_is_wrong_with_a_file_is_told_at_its_line() {
    let scene = Scene::new();
    scene.file(
        "typo.toml",
        "name = \"x\"\n[files]\nhot = { size = \"1M\" }\n[tasks.t]\nsteps = [{ raed = \"hot\" }]\n",
    );
    scene.file(
        "disk.toml",
        "name = \"x\"\n[files]\nhot = { size = \"1M\", disk = 3 }\n[tasks.t]\nsteps = [{ read = \"hot\" }]\n",
    );
    scene.file(
        "less.toml",
        "name = \"x\"\n[files]\nhot = { size = \"$memory - 2G\" }\n[tasks.t]\nsteps = [{ read = \"hot\" }]\n",
    );
    scene.file("job.fio", "[a]\nrw=read\nsize=1m\ndirect=1\n");
    insta::assert_snapshot!(
        refused(&scene, &[
            "run typo.toml",
            "run none.toml",
            "run none.fio",
            "run job.fio",
            "run disk.toml",
            "run less.toml --mem 64M",
            "run typo.toml --param hot=5M",
        ]),
        @"
        $ run typo.toml
        error: `typo.toml` cannot be run
          caused by: line 5, column 12: unknown step `raed`
        hint: did you mean `read`?
        exit 1

        $ run none.toml
        error: cannot read `none.toml`
          caused by: No such file or directory (os error 2)
        hint: check the path; `pagetide run WORKLOAD --dry-run > FILE.toml` writes a scenario
        exit 1

        $ run none.fio
        error: cannot read `none.fio`
          caused by: No such file or directory (os error 2)
        hint: check the path; `pagetide run WORKLOAD --dry-run > FILE.toml` writes a scenario
        exit 1

        $ run job.fio
        error: `job.fio` cannot be run
          caused by: line 4, column 1: option `direct`: direct I/O goes past the page cache, which is all that this is about
        hint: leave it out
        exit 1

        $ run disk.toml
        error: `x` puts its files on 4 disks, and machine `vm-2cpu` has 1 disk
        hint: take a machine with more, as `--machine vm-2cpu+disks=4`
        exit 1

        $ run less.toml --mem 64M
        error: linux-6.12, seed 1: file `hot`: `$memory - 2147483648` comes to less than 0
        exit 1

        $ run typo.toml --param hot=5M
        error: `typo.toml` cannot be run
          caused by: line 5, column 12: unknown step `raed`
        hint: did you mean `read`?
        exit 1
        "
    );
}

/// The places of the first size were kept, and lay outside of the smaller mapping.
#[test]
fn a_mapping_may_have_another_size_when_a_loop_comes_again() {
    let scene = Scene::new();
    let steps = |steps: &str| format!("name = \"x\"\n[tasks.t]\nsteps = [{steps}]\n");
    let touch = "{ touch = \"heap\", order = \"random\", count = 100 }";
    scene.file(
        "smaller.toml",
        steps(&format!("{{ map = \"heap\", size = \"4M\" }}, {{ repeat = 3, steps = [{touch}, {{ map = \"heap\", size = \"64k\" }}] }}")),
    );
    scene.file(
        "gone.toml",
        steps(&format!(
            "{{ map = \"heap\", size = \"4M\" }}, {{ repeat = 2, steps = [{touch}, {{ unmap = \"heap\" }}] }}"
        )),
    );
    scene.data("run smaller.toml --mem 64M");
    let gone = scene.shown("run gone.toml --mem 64M");
    assert!(
        gone.contains("task `t` touches `heap`, which it has unmapped") && gone.ends_with("exit 1"),
        "{gone}"
    );
}
