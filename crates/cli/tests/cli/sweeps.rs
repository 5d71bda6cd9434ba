//! `pagetide sweep`: plans, tables, and going on where one was stopped.

use crate::support::Scene;

const SMALL: &str = "sweep hot-and-stream --param hot=2M --param stream=60M --kernel linux-6.1";

/// Two rounds over 24 MiB in strides that readahead does not follow.
fn blocks() -> String {
    (0..8_192).map(|i| format!("1,{i},28,4096,{}\n", 8 * (i * 2_741 % 6_144))).collect()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn each_combination_is_a_row_with_counters_and_stalls() {
    let scene = Scene::new();
    let arguments = format!("{SMALL} --set vm.watermark_scale_factor=10,100 --mem 32M..64M");
    let shown = scene.data(&arguments);
    assert!(
        shown.starts_with("hot-and-stream, hot=2M, stream=60M, kernel=linux-6.1: 4 of 4 runs\n"),
        "{shown}"
    );
    for heading in ["vm.watermark_", "mem", "allocstall", "refaults", "stalled"] {
        assert!(shown.contains(heading), "{heading}: {shown}");
    }
    let told = String::from_utf8(scene.output(&arguments).stderr).unwrap();
    assert!(told.starts_with("4 runs: vm.watermark_scale_factor (2) x mem (2)\n"), "{told}");
    let csv = scene.data(&format!("{arguments} --format csv"));
    assert!(csv.starts_with("vm.watermark_scale_factor,mem,"), "{csv}");
    let begins: Vec<&str> = csv.lines().skip(1).map(|line| &line[..6]).collect();
    assert_eq!(begins, ["10,32M", "10,64M", "100,32", "100,64"], "the first axis is the slowest");
    let runs = json(&scene.data(&format!("{arguments} --format json")))["runs"].clone();
    assert_eq!(runs[3]["axes"]["vm.watermark_scale_factor"], "100");
    assert!(runs[0]["stall_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_sweep_that_was_stopped_goes_on_and_ends_in_the_same_bytes() {
    let scene = Scene::new();
    let arguments = format!("{SMALL} --mem 32M..128M -q --out");
    let whole = scene.data(&format!("{arguments} whole --jobs 1"));
    assert_eq!(scene.data(&format!("{arguments} again --jobs 2")), whole);
    let folders: Vec<String> = scene.names().into_iter().filter(|name| name.starts_with("again/2")).collect();
    std::fs::remove_dir_all(scene.path().join(&folders[0])).unwrap();
    let finished = scene.path().join("again/1-mem=32M/MANIFEST");
    let written = std::fs::metadata(&finished).unwrap().modified().unwrap();
    assert_eq!(scene.data(&format!("{arguments} again --resume")), whole);
    assert_eq!(std::fs::metadata(&finished).unwrap().modified().unwrap(), written, "not run again");
    for name in scene.names().iter().filter_map(|name| name.strip_prefix("whole/")) {
        let read = |folder: &str| std::fs::read(scene.path().join(folder).join(name)).ok();
        assert_eq!(read("whole"), read("again"), "{name}");
    }
    assert!(scene.shown("compare again").ends_with("exit 0"), "other commands read it, too");
}

#[test]
fn a_folder_of_another_plan_is_refused_with_what_differs() {
    let scene = Scene::new();
    scene.data(&format!("{SMALL} --mem 32M,64M --out kept"));
    scene.data("run hot-and-stream --param hot=2M --param stream=60M --out run");
    let said: String = [
        format!("{SMALL} --mem 32M,64M --out kept"),
        format!("{SMALL} --mem 32M..128M --out kept --resume"),
        format!("{SMALL} --mem 32M,64M --set vm.swappiness=10 --out kept --resume"),
        format!("{SMALL} --mem 32M,64M --out run --resume"),
        format!("{SMALL} --mem 32M,64M --out run"),
        format!("{SMALL} --mem 32M,64M --resume"),
    ]
    .map(|arguments| format!("{}\n\n", scene.shown(&arguments)))
    .concat();
    insta::assert_snapshot!(said, @r#"
    error: `kept` has a sweep already
    hint: add `--resume` to go on with it, or name a new folder
    exit 1

    error: `kept` has a sweep of another plan: runs: `2` there, `3` here; axis mem: `32M, 64M` there, `32M, 64M, 128M` here
    hint: give the options that it was begun with, or name a new folder
    exit 1

    error: `kept` has a sweep of another plan: first run's "vm.swappiness": nothing there, `10` here
    hint: give the options that it was begun with, or name a new folder
    exit 1

    error: `run` is no folder of a sweep
    hint: leave `--resume` out and name a new folder
    exit 1

    error: `run` exists already
    hint: name a new folder, or remove this one first
    exit 1

    error: the following required arguments were not provided:
      --out <DIR>

    Usage: pagetide sweep --out <DIR> --param <NAME=VALUES> --kernel <VALUES> --mem <VALUES> --resume <WORKLOAD|FILE|TRACE>

    For more information, try '--help'.
    exit 2
    "#);
}

#[test]
fn a_trace_is_swept_over_policies_and_over_kernels() {
    let scene = Scene::new();
    scene.file("trace.csv", blocks());
    let policies = "sweep trace.csv --policy lru,clock --capacity 1k,10k";
    insta::assert_snapshot!(scene.shown(&format!("{policies} -q")), @"
    replay trace.csv: 4 of 4 runs

     policy  capacity  miss_ratio  byte_miss_ratio  misses
     lru     1k              1                1       8192
     lru     10k             0.75             0.75    6144
     clock   1k              1                1       8192
     clock   10k             0.75             0.75    6144
    exit 0
    ");
    let kernels =
        "sweep trace.csv --mem 24M..48M --kernel linux-5.5 --kernel linux-6.12 --format csv -q --out";
    let csv = scene.data(&format!("{kernels} kept"));
    assert!(csv.starts_with("mem,kernel,"), "{csv}");
    assert_eq!(csv.lines().count(), 5);
    std::fs::remove_dir_all(scene.path().join("kept/2-mem=24M-kernel=linux-6.12")).unwrap();
    assert_eq!(scene.data(&format!("{kernels} kept --resume --jobs 1")), csv);
    scene.file("trace.csv", blocks() + "1,9000,28,4096,8\n");
    let shown = scene.shown(&format!("{kernels} kept --resume"));
    assert!(shown.contains("first run's trace_bytes"), "{shown}");
    // What was made in a sweep is made again by itself.
    scene.file("trace.csv", blocks());
    let again = scene.data("replay kept/1-mem=24M-kernel=linux-5.5/scenario.toml --format json");
    assert_eq!(json(&again)["runs"][0]["label"], "linux-5.5 24M");
}

#[test]
fn runs_that_fail_have_a_row_that_says_why_and_an_exit_code() {
    let scene = Scene::new();
    let shown =
        scene.shown(&format!("{SMALL} --on vm:9.99 --mem 64M,96M -q").replace(" --kernel linux-6.1", ""));
    insta::assert_snapshot!(shown, @"
    hot-and-stream, hot=2M, stream=60M: 2 of 2 runs

     mem  how it ended
     64M  mem=64M, seed 1: a virtual machine needs at least 128M of memory, not 64M
     96M  mem=96M, seed 1: a virtual machine needs at least 128M of memory, not 96M
    error: 2 of 2 runs failed
    hint: their rows say why; with `--out DIR`, `--resume` runs them again
    exit 1
    ");
}

#[test]
fn what_is_no_sweep_is_told_with_its_remedy() {
    let scene = Scene::new();
    scene.file("trace.csv", blocks());
    let said: String = [
        "sweep hot-and-stream --mem 64M",
        "sweep hot-and-stream --mem 64M..16M",
        "sweep hot-and-stream --param hott=1M,2M",
        "sweep hot-and-stream --mem 64M,128M --warmup 10%",
        "sweep hot-and-stream --mem 64M,128M --seeds 2 --seed 1..3",
        "sweep trace.csv --policy lru,clock --capacity 0",
        "sweep trace.csv --policy lru,clock --capacity 10 --interval 1s",
        "sweep trace.csv --mem 64M,128M --on host",
        "sweep nothing.csv --mem 64M,128M -q",
        "sweep nothing --mem 64M,128M",
    ]
    .map(|arguments| format!("$ {arguments}\n{}\n\n", scene.shown(arguments)))
    .concat();
    insta::assert_snapshot!(said, @"
    $ sweep hot-and-stream --mem 64M
    error: there is nothing to sweep over: no option has several values
    hint: give one option several values, as in `--mem 256M..2G` or `--set vm.swappiness=10,60`
    exit 1

    $ sweep hot-and-stream --mem 64M..16M
    error: `mem`: `64M..16M` is an empty range: its end is before its beginning
    hint: write values as `10,100,1000`, numbers also as `0..11` or `0..100+10`, sizes as `256M..2G` (doubling) or `256M..512M+32M`; what has commas or `..` itself goes in double quotes
    exit 1

    $ sweep hot-and-stream --param hott=1M,2M
    error: unknown parameter `hott`
    hint: did you mean `hot`?
    exit 1

    $ sweep hot-and-stream --mem 64M,128M --warmup 10%
    error: `--warmup` is for traces, and `hot-and-stream` is none
    exit 2

    $ sweep hot-and-stream --mem 64M,128M --seeds 2 --seed 1..3
    error: `--seeds` counts from one `--seed`, and several are given
    hint: give `--seeds N`, or list them: `--seed 1..N`
    exit 1

    $ sweep trace.csv --policy lru,clock --capacity 0
    error: a cache needs room for at least one object
    hint: write it as in `--capacity 10000`
    exit 1

    $ sweep trace.csv --policy lru,clock --capacity 10 --interval 1s
    error: `--interval` is for kernels: policies have no counters to sample
    exit 2

    $ sweep trace.csv --mem 64M,128M --on host
    error: `--on` is for workloads, and `trace.csv` is none
    exit 2

    $ sweep nothing.csv --mem 64M,128M -q
    error: cannot read the trace `nothing.csv`
      caused by: cannot open `nothing.csv`: No such file or directory (os error 2)
    hint: check the path and the permissions of the file and its folders
    exit 1

    $ sweep nothing --mem 64M,128M
    error: unknown workload `nothing`
    hint: known names: `anon-and-file`, `containers`, `hot-and-stream`, `huge-faults`, `inode-storm`, `mapped-and-stream`, `random-calls`, `sequential-readers`, `simoop`, `small-files`
    exit 1
    ");
}

/// Python is whatever `PAGETIDE_PYTHON` names: here a script that keeps what it is handed and says how it ended.
#[test]
fn a_cluster_is_handed_the_whole_plan_and_says_how_it_ended() {
    use std::os::unix::fs::PermissionsExt;

    let scene = Scene::new();
    scene.file("python", "#!/bin/sh\n/bin/cat > handed.json\necho a table\necho half way >&2\nexit 3\n");
    let python = scene.path().join("python");
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = format!("{SMALL} --mem 32M..128M --dask tcp://there:8786 --out s3://bucket/mem --resume");
    let output = scene.command(&arguments).env("PAGETIDE_PYTHON", &python).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("a table\n".to_owned(), "half way\n".to_owned())
    );
    assert_eq!(output.status.code(), Some(3));
    let handed = json(&std::fs::read_to_string(scene.path().join("handed.json")).unwrap());
    assert_eq!(
        (&handed["scheduler"], &handed["out"]),
        (&json("\"tcp://there:8786\""), &json("\"s3://bucket/mem\""))
    );
    let runs = handed["plan"]["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &handed["resume"]), (3, &json("true")));
    let dry = scene.data(&format!("{SMALL} --mem 32M..128M --dry-run"));
    let scenarios: Vec<&str> = runs.iter().map(|run| run["scenario"].as_str().unwrap()).collect();
    assert_eq!(scenarios.join("\n"), dry);

    let missing = scene.command(&arguments).env("PAGETIDE_PYTHON", "no-such-python").output().unwrap();
    let told = text(&missing.stderr);
    assert!(
        told.contains("`no-such-python` cannot be started") && told.contains("PAGETIDE_PYTHON"),
        "{told}"
    );
    let real = scene.shown("sweep hot-and-stream --mem 64M..128M --on vm:6.12 --dask tcp://there:8786");
    assert!(real.contains("runs the model, and this one runs on `vm:6.12`"), "{real}");
}
