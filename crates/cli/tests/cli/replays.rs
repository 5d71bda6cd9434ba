//! `pagetide replay`: what is read of a trace, what is counted, and what is kept of it.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Scene, below_title};

/// 400 requests for 40 objects, of which every other one is the same.
fn requests() -> String {
    (0..400).map(|i| format!("{i},{},4096\n", if i % 2 == 0 { 7 } else { i % 40 })).collect()
}

/// Writes over 8 MiB in strides that readahead does not follow.
fn blocks() -> String {
    let lines = (0..4096).map(|i| format!("{i},28,4096,{}\n", 8 * (i * 2_741 % 6_144)));
    format!("time,op,size,lba\n{}", lines.collect::<String>())
}

/// Standard output with `input` on standard input.
fn piped(scene: &Scene, arguments: &str, input: &[u8]) -> String {
    let mut command = scene.command(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn several_capacities_of_several_policies_are_one_reading() {
    let scene = Scene::new();
    scene.file("trace.csv", requests());
    let together = "replay trace.csv --policy lru,clock --capacity 5,1k --format json";
    let both = json(&scene.data(together));
    let labels: Vec<_> = both["runs"].as_array().unwrap().iter().map(|run| run["label"].clone()).collect();
    assert_eq!(labels, ["lru 5", "lru 1000", "clock 5", "clock 1000"]);
    for (run, (policy, capacity)) in
        [("lru", "5"), ("lru", "1k"), ("clock", "5"), ("clock", "1k")].into_iter().enumerate()
    {
        let alone = format!("replay trace.csv --policy {policy} --capacity {capacity} --format json");
        assert_eq!(json(&scene.data(&alone))["runs"][0]["metrics"], both["runs"][run]["metrics"]);
        assert!(both["runs"][run]["wall_seconds"].as_f64().unwrap() > 0.0);
    }
    let told = String::from_utf8(scene.output(together).stderr).unwrap();
    assert!(told.starts_with("4 policies from one reading: 400 requests in "), "{told}");
    assert!(told.ends_with(" requests/s)\n"), "{told}");
}

#[test]
fn bytes_miss_apart_from_requests_and_a_warm_up_is_said() {
    let scene = Scene::new();
    scene.file("trace.csv", "0,1,1000\n1,2,100\n2,1,1000\n3,3,100\n9,2,100\n");
    insta::assert_snapshot!(scene.shown("replay trace.csv --policy lru --capacity 10 -q --warmup 40%"), @"
    replay trace.csv

     run     miss_ratio  byte_miss_ratio  misses
     lru 10      0.3333          0.08333       1
    5 more metrics with `--all`

    note: the first 40% of the requests are warm-up and not counted
    exit 0
    ");
    let ratio = |warmup: &str| {
        let text = scene
            .data(&format!("replay trace.csv --policy lru --capacity 10 --format json --warmup {warmup}"));
        json(&text)["runs"][0]["metrics"]["requests"].as_f64()
    };
    assert_eq!([ratio("0"), ratio("2"), ratio("3s")], [Some(5.0), Some(3.0), Some(2.0)]);
}

#[test]
fn a_replay_through_reclaim_counts_after_its_warm_up_too() {
    let scene = Scene::new();
    scene.file("trace.csv", blocks());
    let run =
        |options: &str| json(&scene.data(&format!("replay trace.csv --mem 64M --format json {options}")));
    let (all, warm) = (run(""), run("--warmup 1k"));
    let metric = |run: &serde_json::Value, name: &str| run["runs"][0]["metrics"][name].as_f64().unwrap();
    assert_eq!((metric(&all, "requests"), metric(&warm, "requests")), (4096.0, 3096.0));
    assert_eq!(metric(&warm, "warmup_requests"), 1000.0);
    assert!(metric(&all, "byte_miss_ratio") > 0.0);
    assert_eq!(metric(&all, "byte_miss_ratio"), metric(&all, "page_miss_ratio"), "requests are whole pages");
    let phases: Vec<_> =
        warm["runs"][0]["phases"].as_array().unwrap().iter().map(|p| p["name"].clone()).collect();
    assert_eq!(phases, ["warm-up", "replayed"]);
    assert!(warm["runs"][0]["notes"][0].as_str().unwrap().contains("warm-up"));
    assert_eq!(all["runs"][0]["vmstat"], warm["runs"][0]["vmstat"], "the same run, counted from later on");
}

#[test]
fn standard_input_is_read_once_by_policies_and_kept_for_kernels() {
    let scene = Scene::new();
    scene.file("trace.csv", blocks());
    let input = blocks();
    for options in
        ["--policy lru --capacity 9 --policy fifo", "--policy lru --capacity 9 --warmup 10%", "--mem 20M,64M"]
    {
        let metrics = |text: &str| -> Vec<_> {
            let runs = json(text)["runs"].clone();
            runs.as_array().unwrap().iter().map(|run| run["metrics"].clone()).collect()
        };
        let piped = piped(&scene, &format!("replay - {options} --format json"), input.as_bytes());
        let read = scene.data(&format!("replay trace.csv {options} --format json"));
        assert_eq!(metrics(&piped), metrics(&read), "{options}");
    }
    assert_eq!(scene.names(), ["trace.csv"], "nothing is left behind");
}

#[test]
fn a_recording_of_a_replay_says_how_to_make_it_again_sysctls_included() {
    let scene = Scene::new();
    scene.file("trace.csv", blocks());
    let options = "--mem 24M --kernel linux-6.1 --set vm.swappiness=10 --warmup 10% --seed 7";
    let made = scene.data(&format!("replay trace.csv {options} --out first"));
    assert_eq!(below_title(&scene.data("report first")), below_title(&made));
    let scenario = std::fs::read_to_string(scene.path().join("first/scenario.toml")).unwrap();
    insta::assert_snapshot!(scenario, @r#"
    schema = 1
    replay = "trace.csv"
    trace_bytes = 75807
    trace_hash = "cbeb49858fa1ca98b7d61e8313d95672"
    format = "block-csv"
    unsorted = false
    warmup = "10%"
    timing = "asap"
    kernel = "linux-6.1"
    machine = "vm-2cpu"
    mem = "24M"
    filesystem = "ext4"
    seed = "7"

    [sysctls]
    "vm.swappiness" = "10"
    "#);
    let (_, command) = made.split_once("\nmade by\n  pagetide ").unwrap();
    let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "\\").collect();
    let command = words.join(" ");
    insta::assert_snapshot!(command, @"replay trace.csv --mem 24M --kernel linux-6.1 --set vm.swappiness=10 --timing asap --seed 7 --warmup 10% --trace-format block-csv");
    scene.data(&format!("{command} --out second"));
    scene.data("replay first/scenario.toml --out third");
    for folder in ["second", "third"] {
        let manifest = |folder: &str| std::fs::read(scene.path().join(folder).join("MANIFEST")).unwrap();
        assert_eq!(manifest(folder), manifest("first"), "{folder}");
    }
}

#[test]
fn recordings_of_policies_have_the_same_bytes_however_long_they_took() {
    let scene = Scene::new();
    scene.file("trace.csv", requests());
    for folder in ["one", "two"] {
        scene.data(&format!("replay trace.csv --policy lru --capacity 5 --out {folder}"));
    }
    let read = |folder: &str| std::fs::read(scene.path().join(folder).join("recording.json")).unwrap();
    assert_eq!(read("one"), read("two"));
    assert!(!String::from_utf8(read("one")).unwrap().contains("wall"));
}

#[test]
fn what_is_wrong_with_a_replay_is_told_with_its_remedy() {
    let scene = Scene::new();
    scene
        .file("trace.csv", "1,2,3\n")
        .file("far.csv", "1,5,28,512,99999999999\n")
        .file("back.csv", "2,1,1\n1,1,1\n");
    scene.data("replay trace.csv --policy lru --capacity 1 --out kept");
    let scenario = std::fs::read_to_string(scene.path().join("kept/scenario.toml")).unwrap();
    scene.file("odd.toml", format!("{scenario}frequency = 3\n")).file("trace.csv", "1,2,3\n2,2,3\n");
    let said: String = [
        "replay far.csv --mem 64M",
        "replay back.csv --policy lru --capacity 1",
        "replay trace.csv",
        "replay trace.csv --policy lru --capacity 1kB",
        "replay trace.csv --policy lru --capacity 1 --timing asap",
        "replay trace.csv --policy lru --capacity 1 --warmup 2",
        "replay trace.csv --mem 64M --warmup 2",
        "replay trace.csv --mem 64M --machine laptop",
        "replay - --policy lru --capacity 1",
        "replay kept/scenario.toml",
        "replay kept/scenario.toml --warmup 1",
        "replay odd.toml",
    ]
    .map(|arguments| format!("$ {arguments}\n{}\n\n", scene.shown(arguments)))
    .concat();
    insta::assert_snapshot!(said, @"
    $ replay far.csv --mem 64M
    error: cannot read the trace `far.csv`
      caused by: line 1: the request ends at byte 51200000000000 of its file, which cannot have more than 16383G
    hint: blocks are of 512 bytes; is the column of blocks the right one?
    exit 1

    $ replay back.csv --policy lru --capacity 1
    error: cannot read the trace `back.csv`
      caused by: line 2: time runs backwards: 1 s after 2 s
    hint: sort the trace by time, or take its order as it is with `--unsorted`
    exit 1

    $ replay trace.csv
    error: there is no cache to replay the trace on
    hint: `--mem 256M` is a kernel's page cache, `--policy lru --capacity 10k` a plain policy
    exit 1

    $ replay trace.csv --policy lru --capacity 1kB
    error: `1kB` is not a number of objects or requests
    hint: write a whole number, such as `5000`, `10k` (10000) or `2M`
    exit 1

    $ replay trace.csv --policy lru --capacity 1 --timing asap
    error: `--timing` is for kernels (`--mem`): a policy takes one request after the other
    exit 2

    $ replay trace.csv --policy lru --capacity 1 --warmup 2
    error: a warm-up of `2` leaves none of the trace's 2 requests to count
    hint: give a shorter `--warmup`
    exit 1

    $ replay trace.csv --mem 64M --warmup 2
    error: a warm-up of `2` leaves none of the trace's 2 requests to count
    hint: give a shorter `--warmup`
    exit 1

    $ replay trace.csv --mem 64M --machine laptop
    error: unknown machine `laptop`
    hint: known names: `vm-2cpu`, `guest-tcg`, `guest-uml`, `x86-64`, `skylake-1s`, `haswell-2s`, `evo-ssd`, `quad-node-16g`, `s390-fcp`
    exit 1

    $ replay - --policy lru --capacity 1
    error: cannot read the trace `-`
      caused by: the trace is empty
    exit 1

    $ replay kept/scenario.toml
    error: `trace.csv` has 12 bytes and is not the trace of this scenario, which had 6
    hint: get the trace that it was made with, or replay this one by its own name
    exit 1

    $ replay kept/scenario.toml --warmup 1
    error: `--warmup` is for a trace; `kept/scenario.toml` says all of its replay
    exit 2

    $ replay odd.toml
    error: `odd.toml` is no scenario of a replay: line 10: unknown field `frequency`, expected one of `schema`, `replay`, `trace_bytes`, `trace_hash`, `format`, `unsorted`, `warmup`, `timing`, `policy`, `capacity`, `kernel`, `machine`, `mem`, `swap`, `filesystem`, `limit`, `high`, `low`, `seed`, `interval`, `sysctls`
    hint: a replay's recording has one, as `scenario.toml`
    exit 1
    ");
}
