//! `--events`: what is kept beside a recording, that it changes nothing else, and of what there is nothing to keep.

use recording::{EventReader, Names};

use crate::support::{Scene, refused};

const RUN: &str = "run hot-and-stream --mem 64M --param hot=4M --param stream=64M -q";

/// How often each event is in a recording.
fn counted(scene: &Scene, folder: &str) -> std::collections::BTreeMap<String, usize> {
    let reader = EventReader::open(&scene.path().join(folder)).unwrap();
    let (names, events) = reader.map_or((Names::default(), Vec::new()), |reader| reader.read_all().unwrap());
    let mut counts = std::collections::BTreeMap::new();
    for event in events {
        *counts.entry(names.text(event.event).to_owned()).or_default() += 1;
    }
    counts
}

/// All files of a recording but its events and the list of its files.
fn rest(scene: &Scene, folder: &str) -> Vec<(String, Vec<u8>)> {
    let below = |name: &&String| name.starts_with(&format!("{folder}/")) && !name.contains("/events");
    let names = scene.names();
    let files = names.iter().filter(below).filter(|name| !name.ends_with("/MANIFEST"));
    files
        .map(|name| (name[folder.len()..].to_owned(), std::fs::read(scene.path().join(name)).unwrap()))
        .collect()
}

#[test]
fn a_recording_with_events_is_the_recording_without_and_the_events() {
    let scene = Scene::new();
    for (folder, events) in [("none", ""), ("reclaim", "--events reclaim"), ("pages", "--events pages")] {
        scene.data(&format!("{RUN} --out {folder} {events}"));
        assert_eq!(rest(&scene, folder), rest(&scene, "none"), "{folder}");
    }
    assert!(counted(&scene, "none").is_empty());
    let (reclaim, pages) = (counted(&scene, "reclaim"), counted(&scene, "pages"));
    assert!(!reclaim.contains_key("page_reclaimed") && pages["page_reclaimed"] > 100);
    for (event, count) in reclaim {
        assert_eq!(pages[&event], count, "{event}");
    }
}

#[test]
fn a_comparison_and_a_replay_keep_events_of_each_run() {
    let scene = Scene::new();
    let kernels = "--kernel linux-6.1 --kernel linux-6.12";
    scene.data(&RUN.replace("run", &format!("compare {kernels} --events reclaim --out both")));
    let trace = (0..4096).map(|i| format!("{i},28,4096,{}\n", 8 * (i * 2_741 % 6_144)));
    scene.file("trace.csv", format!("time,op,size,lba\n{}", trace.collect::<String>()));
    scene.data("replay trace.csv --mem 32M --policy lru --capacity 10 --events pages --out caches -q");
    scene.data("replay trace.csv --mem 32M --events pages --out one -q");
    for folder in ["both/1-linux-6.1-seed1", "both/2-linux-6.12-seed1"] {
        assert!(counted(&scene, folder)["mm_vmscan_kswapd_wake"] > 0);
    }
    let (of_policy, of_kernel) = (counted(&scene, "caches/1-lru-10"), counted(&scene, "one"));
    assert!(of_policy.is_empty());
    assert!(of_kernel["page_accessed"] >= 4096, "{of_kernel:?}");
    let kernel =
        scene.names().into_iter().find(|name| name.starts_with("caches/2-") && name.ends_with("MANIFEST"));
    let kernel = kernel.expect("a recording of the kernel");
    assert_eq!(counted(&scene, kernel.trim_end_matches("/MANIFEST")), of_kernel);
}

#[test]
fn what_has_no_events_or_no_place_for_them_is_refused_before_anything_runs() {
    let scene = Scene::new();
    scene.file("trace.csv", "0,1,1000\n1,2,100\n");
    let commands = [
        "run hot-and-stream --events pages",
        "run hot-and-stream --on host --events pages --out kept",
        "replay trace.csv --policy lru --capacity 10 --events pages --out kept",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @"
    $ run hot-and-stream --events pages
    error: the following required arguments were not provided:
      --out <DIR>

    Usage: pagetide run --out <DIR> --events <WHICH> <WORKLOAD|FILE>

    For more information, try '--help'.
    exit 2

    $ run hot-and-stream --on host --events pages --out kept
    error: `host` has no events to keep: they are the simulator's
    hint: leave `--events` out, or `--on`
    exit 1

    $ replay trace.csv --policy lru --capacity 10 --events pages --out kept
    error: a replacement policy has no events to keep: they are a kernel's
    hint: name memory for a kernel with `--mem`
    exit 1
    ");
}
