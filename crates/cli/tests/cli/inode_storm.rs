//! `inode-storm`: a run that an OOM kill ends well, the same in the shape of the measured guests, and what is
//! refused in words.

use crate::support::{Scene, refused};

/// Three processes on a small machine, in few steps.
const TINY: &str = "inode-storm --mem 128M --kernel linux-5.7 --param processes=3 --param files=3000 \
                    --param pin_step=8M";

fn json(scene: &Scene, arguments: &str) -> serde_json::Value {
    serde_json::from_str(&scene.data(arguments)).unwrap()
}

fn metrics(json: &serde_json::Value) -> &serde_json::Value {
    &json["runs"][0]["metrics"]
}

#[test]
fn an_oom_kill_ends_a_run_well_with_what_was_pinned_and_what_memory_was() {
    let scene = Scene::new();
    let run = || json(&scene, &format!("run {TINY} --param pin_from=80M --format json -q"));
    let json = run();
    assert_eq!(metrics(&json), metrics(&run()), "the same scenario");
    let kills = json["runs"][0]["oom_kills"].as_array().unwrap();
    assert!(kills[0]["task"].as_str().unwrap().starts_with("creator"), "{kills:?}");
    let metric = |name: &str| metrics(&json)[name].as_f64().unwrap();
    let (before, at) = (metric("pinned_gib_before_oom"), metric("pinned_gib_at_oom"));
    assert!(before >= 80.0 / 1024.0 && at >= before && at <= before + 8.0 / 1024.0, "{before} {at}");
    let shares = ["free_percent_at_oom", "slab_percent_at_oom", "pinned_percent_at_oom"].map(metric);
    assert!(shares.iter().sum::<f64>() <= 100.0 && shares[2] > 50.0, "{shares:?}");
    let samples = &json["runs"][0]["samples"];
    let steps = samples["pinned_gib"].as_array().unwrap().len();
    for name in ["files_per_sec", "free_pages", "slab_pages", "file_pages", "alloc_stalls"] {
        assert_eq!(samples[name].as_array().unwrap().len(), steps, "{name}");
    }
}

#[test]
fn a_run_that_nobody_is_killed_in_goes_to_the_end_of_pinning() {
    let scene = Scene::new();
    let json = json(&scene, &format!("run {TINY} --param pin_from=8M --param pin_to=24M --format json -q"));
    assert_eq!(metrics(&json)["pinned_gib_before_oom"], 24.0 / 1024.0);
    assert_eq!(metrics(&json)["files_created"], 9000.0);
    assert!(metrics(&json)["pinned_gib_at_oom"].is_null());
}

#[test]
fn pages_of_programs_stay_in_memory_while_there_is_enough() {
    let scene = Scene::new();
    let file_pages = |programs: &str| {
        let rest = "--param pin_from=8M --param pin_to=24M --format json -q";
        let json = json(&scene, &format!("run {TINY} --param programs={programs} {rest}"));
        let samples = json["runs"][0]["samples"]["file_pages"].as_array().unwrap().clone();
        samples.iter().map(|pages| pages.as_f64().unwrap()).collect::<Vec<_>>()
    };
    let (none, some) = (file_pages("0"), file_pages("4M"));
    assert_eq!(none.len(), some.len());
    // All of its 1024 pages, but for those that a CPU's batch holds back from the lists.
    assert!(none.iter().zip(&some).all(|(none, some)| some - none >= 1024.0 - 15.0), "{none:?} {some:?}");
}

#[test]
fn the_shape_of_the_measured_guests_pins_everything_anew_in_each_step() {
    let scene = Scene::new();
    let json = json(
        &scene,
        "run inode-storm --machine guest-tcg+log=16M --kernel linux-6.1 --param processes=1 --param files=2000 \
         --param per_directory=1000 --param pinner=anew --param pin_from=40M --param pin_step=10M \
         --param pin_to=60M --format json -q",
    );
    assert_eq!(metrics(&json)["pinned_gib_before_oom"], 60.0 / 1024.0);
    // What a step pins is free again before the next: 40, 50 and 60 MiB of pages, not 60.
    let locked = json["runs"][0]["vmstat"]["unevictable_pgs_mlocked"].as_u64().unwrap();
    assert!(locked >= 150 * 256, "{locked}");
}

#[test]
fn what_cannot_be_run_is_refused_in_words() {
    let scene = Scene::new();
    insta::assert_snapshot!(
        refused(&scene, &[
            "run inode-storm --param files=15",
            "run inode-storm --param pin_from=2G --param pin_to=1G",
            "run inode-storm --param pin_step=0",
            "run inode-storm --param pinner=both",
            "run inode-storm --mem 64M --param pin_from=1G",
        ]),
        @"
    $ run inode-storm --param files=15
    error: parameter `files`: 15 files for 16 processes
    hint: give `files=16` at least, or fewer `processes`
    exit 1

    $ run inode-storm --param pin_from=2G --param pin_to=1G
    error: parameter `pin_to`: 1G is less than `pin_from`, which is 2G
    hint: give `pin_to=2G` at least, for one step
    exit 1

    $ run inode-storm --param pin_step=0
    error: parameter `pin_step`: 0 is outside of 4k to 1024T
    exit 1

    $ run inode-storm --param pinner=both
    error: parameter `pinner`: unknown choice `both`
    hint: known names: `stays`, `anew`
    exit 1

    $ run inode-storm --mem 64M --param pin_from=1G
    error: linux-6.12, seed 1: the first step would pin 1G, and the machine has 64224k
    exit 1
    "
    );
}
