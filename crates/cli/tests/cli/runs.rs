//! Commands that succeed: what they print, what they keep, and that it is the same each time.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Scene, below_title};

/// A run of a fraction of a second, with reclaim.
const SMALL: &str = "hot-and-stream --param hot=1M --param stream=64M --mem 32M";

#[test]
fn the_reference_is_the_help_of_each_command() {
    let scene = Scene::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let mut told = Vec::new();
    for part in page.split("<!-- begin: pagetide ").skip(1) {
        let (command, rest) = part.split_once(" -->\n```text\n").expect("a command");
        let (help, _) = rest.split_once("```\n<!-- end -->").expect("an end");
        assert_eq!(scene.data(command), help, "`cargo xtask docs` writes the page");
        told.push(command);
    }
    let help = scene.data("--help");
    assert_eq!(help, scene.data("-h"));
    let (_, commands) = help.split_once("Commands:\n").expect("its commands");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names = commands
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    let left_out: Vec<&str> = names.filter(|name| !told.contains(&format!("{name} -h").as_str())).collect();
    assert!(left_out.is_empty(), "the page leaves out {left_out:?} of {}", told.len());
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
