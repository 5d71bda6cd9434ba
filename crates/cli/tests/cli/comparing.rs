//! Comparisons that know what they compare, and results that fit where they go.

use crate::support::Scene;

/// A run of a fraction of a second, with reclaim.
const SMALL: &str = "hot-and-stream --param hot=1M --param stream=64M";

/// Both columns were called `linux-6.12`, in JSON and CSV too.
#[test]
fn recordings_with_different_memory_have_different_labels_everywhere() {
    let scene = Scene::new();
    scene.data(&format!("run {SMALL} --mem 32M --out small"));
    scene.data(&format!("run {SMALL} --mem 48M --out large"));
    let text = scene.data("compare small large");
    assert!(text.contains("hot-and-stream: mem=32M against mem=48M\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&scene.data("compare small large --format json")).unwrap();
    let labels = [0, 1].map(|run| json["runs"][run]["label"].clone());
    assert_eq!(labels, ["mem=32M", "mem=48M"]);
    assert_eq!(
        (&json["comparison"]["baseline"], &json["warnings"]),
        (&"mem=32M".into(), &serde_json::json!([]))
    );
    let csv = scene.data("compare small large --format csv");
    assert!(csv.contains("hot-and-stream,mem=48M,sim,linux-6.12,1,metric,hot_pages_cached,,"), "{csv}");
    assert!(csv.contains("hot-and-stream,mem=48M,,,,comparison,hot_pages_cached,verdict,"), "{csv}");
    assert!(scene.data("report small large").contains("mem=48M: hot-and-stream on linux-6.12"));
}

/// The effect of the memory was shown as one of the kernel.
#[test]
fn what_differs_beside_the_kernel_is_told_on_both_streams_and_in_json() {
    let scene = Scene::new();
    scene.data(&format!("run {SMALL} --mem 32M --kernel linux-6.1 --out small"));
    scene.data(&format!("run {SMALL} --mem 48M --out large"));
    let output = scene.output("compare small large");
    let [told, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let warning = "beside the kernel the scenarios differ in mem (32M, 48M)";
    assert_eq!(said, format!("warning: {warning}\n"));
    assert!(told.contains(&format!("warning: {warning}\n")), "{told}");
    assert!(told.contains("linux-6.1 mem=32M against linux-6.12 mem=48M"), "{told}");
    let json: serde_json::Value =
        serde_json::from_str(&scene.data("compare small large --format json")).unwrap();
    assert_eq!(json["warnings"][0], warning);
    assert_eq!(scene.shown("compare small large -q").matches("warning: ").count(), 1, "that of the report");
}

#[test]
fn what_makes_no_comparison_is_refused() {
    let scene = Scene::new();
    scene.data(&format!("run {SMALL} --mem 32M --out one"));
    scene.data("run huge-faults --mem 64M --out faults");
    scene.file("empty.csv", "");
    std::fs::create_dir(scene.path().join("nothing")).unwrap();
    let commands = [
        "compare one faults",
        "compare one one",
        "compare one ./one",
        "compare one",
        "compare one nothing",
        "compare one empty.csv",
    ];
    let shown = commands.map(|command| format!("$ {command}\n{}\n", scene.shown(command)));
    insta::assert_snapshot!(shown.join("\n"), @r"
    $ compare one faults
    error: recordings of `hot-and-stream` and of `huge-faults` cannot be put side by side
    hint: compare recordings of the same workload
    exit 1

    $ compare one one
    error: `one` is named twice
    hint: name another folder to put beside it
    exit 1

    $ compare one ./one
    error: `./one` is named twice
    hint: name another folder to put beside it
    exit 1

    $ compare one
    error: there is only `linux-6.12`: nothing to compare it with
    hint: name a second recording or kernel
    exit 1

    $ compare one nothing
    error: there is no recording in `nothing`
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ compare one empty.csv
    error: `empty.csv` is not a folder with recordings
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1
    ");
}

#[test]
fn a_copy_of_a_recording_is_told_apart_by_its_folder() {
    let scene = Scene::new();
    scene.data(&format!("run {SMALL} --mem 32M --out one"));
    scene.data(&format!("run {SMALL} --mem 32M --out two"));
    let shown = scene.shown("compare one two");
    assert!(shown.contains("linux-6.12 (one) against linux-6.12 (two)"), "{shown}");
    assert!(shown.contains("warning: the scenarios do not differ, nor do their seeds\n"), "{shown}");
    scene.data(&format!("run {SMALL} --mem 32M --seed 2 --out other"));
    assert!(scene.data("compare one other").contains("seed=1 against seed=2"));
}

/// `--out a/b` was refused, and what failed after the check would have left `a` behind.
#[test]
fn out_makes_parents_for_every_command_and_leaves_none_after_a_failure() {
    let scene = Scene::new();
    scene.file("trace.csv", "1,10,4096\n2,11,4096\n3,10,4096\n").file("broken.csv", "1,10,4096\nx\n");
    for (command, recording) in [
        (format!("run {SMALL} --mem 32M --out a/run/first"), "a/run/first"),
        (format!("compare {SMALL} --mem 32M --out b/aging/first"), "b/aging/first/1-linux-5.4-seed1"),
        (
            format!("sweep {SMALL} --mem 32M --set vm.swappiness=1,2 --out c/d/sweep"),
            "c/d/sweep/1-vm.swappiness=1",
        ),
        ("replay trace.csv --policy lru --capacity 1 --out e/f/lru".to_owned(), "e/f/lru"),
        ("record --out g/h/true -- true".to_owned(), "g/h/true"),
    ] {
        scene.data(&command);
        let names = scene.names();
        let made = names.iter().any(|name| name.starts_with(recording) && name.ends_with("/MANIFEST"));
        assert!(made, "{command}: {names:?}");
        // What a sweep left can be continued, so it is told as such.
        let again = scene.shown(&command);
        assert!(again.contains("exists already") || again.contains("--resume"), "{command}: {again}");
    }
    let before = scene.names();
    for command in [
        "replay broken.csv --policy lru --capacity 1 --out x/y/z",
        "record --out x/y/z -- no-such-command",
        "run hot-and-stream --mem 16M --param hot=1M --param stream=1M --out /proc/x/y",
    ] {
        assert!(!scene.output(command).status.success(), "{command}");
    }
    assert_eq!(scene.names(), before, "a failure leaves folders behind");
}

/// Long names of kernels made tables of more than a hundred columns, one for each further kernel.
#[test]
fn four_kernels_are_one_table_that_keeps_to_eighty_columns() {
    let scene = Scene::new();
    let four = "--kernel linux-5.4,linux-5.5,linux-6.1 --kernel linux-6.12";
    for command in [
        format!("compare {SMALL} --mem 32M {four} -q"),
        format!("compare {SMALL} --mem 32M {four} --all --seeds 2 -q"),
        "compare huge-faults --mem 128M -q".to_owned(),
        format!("run {SMALL} --mem 32M --all -q"),
        format!("sweep {SMALL} --mem 32M --set vm.swappiness=1,2 --all -q"),
    ] {
        let text = scene.data(&command);
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(long, [""; 0], "{command}");
    }
    let text = scene.data(&format!("compare {SMALL} --mem 32M {four} -q"));
    let with_base = |line: &&str| line.starts_with(" metric ") && line.contains("linux-5.4");
    assert_eq!(text.lines().filter(with_base).count(), 1, "{text}");
}

/// A metric of which every seed gave the same number had "p = 0", and `± 0`.
#[test]
fn seeds_that_change_nothing_claim_nothing() {
    let scene = Scene::new();
    scene.data(&format!("compare {SMALL} --mem 32M --seeds 3 --out kept"));
    let json: serde_json::Value = serde_json::from_str(&scene.data("compare kept --format json")).unwrap();
    let rows = json["comparison"]["rows"].as_array().unwrap();
    let same = |row: &&serde_json::Value| {
        row["values"].as_object().unwrap().values().all(|side| side["n"] == 3 && side["sd"] == 0.0)
    };
    let constant: Vec<_> = rows.iter().filter(same).collect();
    assert!(!constant.is_empty());
    for row in constant {
        assert_eq!(
            (&row["p"], &row["interval"]),
            (&serde_json::Value::Null, &serde_json::Value::Null),
            "{row}"
        );
    }
    let text = scene.data("compare kept --all");
    assert!(text.contains("same in all 3 seeds"), "{text}");
    assert!(!text.contains("± 0 ") && !text.contains("p = 0"), "{text}");
}

#[test]
fn everything_is_shown_on_demand_and_counted_otherwise() {
    let scene = Scene::new();
    scene.data(&format!("run {SMALL} --mem 32M --out one"));
    let (short, long) = (scene.data("report one"), scene.data("report one --all"));
    assert!(short.contains(" more metrics, ") && short.contains(" with `--all`\n"), "{short}");
    assert!(!short.contains("hot_pages_before") && !short.contains("memory.stat"), "{short}");
    assert!(long.contains("hot_pages_before") && long.contains("cgroup (memory.stat)"), "{long}");
    assert!(!long.contains("--all"), "{long}");
}
