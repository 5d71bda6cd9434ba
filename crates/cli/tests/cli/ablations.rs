//! `pagetide ablate`: every subset of some features, what each comes to, and what is refused.

use crate::support::{Scene, refused};

const SMALL: &str = "hot-and-stream --param hot=1M --param stream=64M --mem 32M";
const TWO: &str = "--features root-aging,shared-memcg-walk";

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn each_kernel_is_a_row_and_each_feature_has_its_effects() {
    let scene = Scene::new();
    insta::assert_snapshot!(scene.shown(&format!("ablate {SMALL} {TWO} -q")), @r"
    hot-and-stream: linux-5.4 with +root-aging, -shared-memcg-walk or not: 4 of 4
      runs

     changed                         hot_pages_      reread_  stream_mib_   memcg_
                                        cached,  seconds, µs  per_second,  pgscan,
                                          pages                     MiB/s    pages
     nothing                                250        63.43         5606     8986
     +root-aging                            256        39.6          5763     9028
     -shared-memcg-walk                     249        61.16         5828     8947
     +root-aging -shared-memcg-walk         256        39.6          5758     8927

    effects on hot_pages_cached, which is 250 pages with nothing changed
     of                                effect, pages  % of that  verdict
     +root-aging                                +6.5     +2.6 %  better
     -shared-memcg-walk                         -0.5     -0.2 %  worse
     +root-aging x -shared-memcg-walk           +0.5     +0.2 %  more together

    effects on reread_seconds, which is 63.43 µs with nothing changed
     of                                effect, µs  % of that  verdict
     +root-aging                           -22.7     -35.8 %  better
     -shared-memcg-walk                     -1.13     -1.8 %  below resolution
     +root-aging x -shared-memcg-walk       +1.13     +1.8 %  below resolution

    effects on stream_mib_per_second, which is 5606 MiB/s with nothing changed
     of                                effect, MiB/s  % of that  verdict
     +root-aging                               +43.5     +0.8 %  better
     -shared-memcg-walk                       +109       +1.9 %  better
     +root-aging x -shared-memcg-walk         -114       -2.0 %  less together

    effects on memcg_pgscan, which is 8986 pages with nothing changed
     of                                effect, pages  % of that  verdict
     +root-aging                                 +11     +0.1 %  worse
     -shared-memcg-walk                          -70     -0.8 %  better
     +root-aging x -shared-memcg-walk            -31     -0.3 %  less together

    effect of a feature: mean of the 2 kernels with the change minus mean of the 2
      kernels without it
    a x b: half of what a does where b is changed, minus half of what it does
      where b is not; 0 where each does what it does alone
    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread
    a seed decides: when each task begins, up to 20 ms after it was started: the
      distance to the kernel's ticks; where on the disk the files lie, within 1 MiB;
      simulated: the phase of the kernel's periodic workers (vmstat each second,
      memory.stat every 2 s)
    13 more metrics with `--all`

    made by
      pagetide run hot-and-stream --kernel linux-5.4 --mem 32M --param hot=1M \
        --param stream=64M
      pagetide run hot-and-stream --kernel linux-5.4+root-aging --mem 32M \
        --param hot=1M --param stream=64M
      pagetide run hot-and-stream --kernel linux-5.4-shared-memcg-walk --mem 32M \
        --param hot=1M --param stream=64M
      pagetide run hot-and-stream --kernel linux-5.4+root-aging-shared-memcg-walk \
        --mem 32M --param hot=1M --param stream=64M
    exit 0
    ");
    let told = String::from_utf8(scene.output(&format!("ablate {SMALL} {TWO}")).stderr).unwrap();
    let size = "4 runs: 4 kernels (linux-5.4 with +root-aging, -shared-memcg-walk or not) x 1 seed\n";
    assert!(told.starts_with(size), "{told}");
}

/// A cell of the table and a single run are one number, in every form.
#[test]
fn the_numbers_are_those_of_single_runs() {
    let scene = Scene::new();
    let ablated = json(&scene.data(&format!("ablate {SMALL} {TWO} --seeds 2 --format json")));
    assert_eq!(ablated["features"], serde_json::json!(["+root-aging", "-shared-memcg-walk"]));
    let runs = ablated["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 8);
    for run in runs {
        let (kernel, seed) = (run["label"].as_str().unwrap(), &run["seed"]);
        let alone = json(&scene.data(&format!("run {SMALL} --kernel {kernel} --seed {seed} --format json")));
        for key in ["label", "kernel", "seed", "metrics", "samples", "vmstat", "memcg", "events"] {
            assert_eq!(run[key], alone["runs"][0][key], "{key} of {kernel}, seed {seed}");
        }
    }
    let kept = |index: usize| runs[index]["metrics"]["hot_pages_cached"].as_f64().unwrap();
    // Runs are kernel after kernel, two seeds each: effect of the first feature, by hand.
    let by_hand = ((kept(2) - kept(0)) + (kept(6) - kept(4))) / 2.0;
    let effect = &ablated["effects"][0];
    assert_eq!(
        (&effect["metric"], &effect["of"]),
        (&"hot_pages_cached".into(), &serde_json::json!(["+root-aging"]))
    );
    assert_eq!(effect["per_seed"][0].as_f64(), Some(by_hand));
    let csv = scene.data(&format!("ablate {SMALL} {TWO} --seeds 2 --format csv"));
    let row = "hot-and-stream,+root-aging x -shared-memcg-walk,,,,effect,hot_pages_cached,verdict,";
    assert!(csv.contains(row), "{csv}");
    let markdown = scene.data(&format!("ablate {SMALL} {TWO} --format md"));
    assert!(markdown.contains("| of | effect, pages | % of that | verdict |\n"), "{markdown}");
}

#[test]
fn an_ablation_that_was_stopped_goes_on_and_ends_in_the_same_bytes() {
    let scene = Scene::new();
    let arguments = format!("ablate {SMALL} {TWO} --seeds 2 -q --out");
    let whole = scene.data(&format!("{arguments} whole --jobs 1"));
    assert_eq!(scene.data(&format!("{arguments} again --jobs 2")), whole);
    std::fs::remove_dir_all(scene.path().join("again/6-linux-5.4+root-aging-seed2")).unwrap();
    let finished = scene.path().join("again/5-linux-5.4-seed2/MANIFEST");
    let written = std::fs::metadata(&finished).unwrap().modified().unwrap();
    assert_eq!(scene.data(&format!("{arguments} again --resume")), whole);
    assert_eq!(std::fs::metadata(&finished).unwrap().modified().unwrap(), written, "not run again");
    let shown = scene.data("compare again");
    assert!(shown.contains("linux-5.4 against linux-5.4+root-aging against"), "{shown}");
    let other =
        scene.shown(&format!("ablate {SMALL} --features root-aging,nofragment -q --out again --resume"));
    assert!(
        other.starts_with("error: `again` has an ablation of another plan: runs: `8` there, `4` here"),
        "{other}"
    );
    let sweep = scene.shown("sweep hot-and-stream --mem 32M,64M --out again --resume");
    assert!(sweep.starts_with("error: `again` is no folder of a sweep\n"), "{sweep}");
}

#[test]
fn a_dry_run_is_a_scenario_for_each_kernel_and_seed() {
    let scene = Scene::new();
    let shown = scene.data(&format!("ablate {SMALL} {TWO} --seeds 3 --dry-run"));
    assert_eq!(shown.matches("schema = 1").count(), 12);
    assert_eq!(shown.matches("kernel = \"linux-5.4+root-aging-shared-memcg-walk\"").count(), 3);
    scene.file("own.toml", scene.data(&format!("run {SMALL} --kernel linux-5.5 --dry-run")));
    let shown = scene.data("ablate own.toml --features root-aging --dry-run");
    assert!(shown.contains("kernel = \"linux-5.5-root-aging\""), "the file's kernel is the base: {shown}");
}

/// A kernel that no task survives has a row, and the features no effects.
#[test]
fn runs_that_the_oom_killer_ends_are_told_and_make_no_effect() {
    let scene = Scene::new();
    let shown = scene.data("ablate huge-faults --mem 32M --param scale=300 --features nofragment -q");
    assert_eq!(shown.matches("OOM-killed after").count(), 2, "{shown}");
    assert!(!shown.contains("effects on"), "{shown}");
}

#[test]
fn what_is_no_ablation_is_refused_before_anything_runs() {
    let scene = Scene::new();
    let commands = [
        "ablate hot-and-stream",
        "ablate hot-and-stream --features ,",
        "ablate hot-and-stream --features root-agin",
        "ablate hot-and-stream --features root-aging,root-aging",
        "ablate hot-and-stream --features -root-aging",
        "ablate huge-faults --features fragment-stall,nofragment,fragment-stall-v1 --out kept",
        "ablate hot-and-stream --features a,b,c,d,e,f,g,h,i,j",
        "ablate hot-and-stream --features root-aging --seeds 900",
        "ablate hot-and-stream --features root-aging --on vm:6.12",
        "ablate hot-and-stream --features root-aging --on sim --on host",
        "ablate hot-and-stream --features root-aging --mem 1M",
        "ablate nothing --features root-aging",
        "ablate hot-and-stream --features root-aging --resume",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @"
    $ ablate hot-and-stream
    error: the following required arguments were not provided:
      --features <FEATURES>

    Usage: pagetide ablate --features <FEATURES> <WORKLOAD|FILE>

    For more information, try '--help'.
    exit 2

    $ ablate hot-and-stream --features ,
    error: there is nothing to ablate: no feature is named
    hint: name some, as in `--features root-aging,shared-memcg-walk`; `pagetide list features` has all
    exit 1

    $ ablate hot-and-stream --features root-agin
    error: unknown feature `root-agin`
    hint: did you mean `root-aging`?
    exit 1

    $ ablate hot-and-stream --features root-aging,root-aging
    error: feature `root-aging` is named twice
    hint: name it once
    exit 1

    $ ablate hot-and-stream --features -root-aging
    error: `linux-5.4` has no `root-aging`, so it is added and not taken away
    hint: write `+root-aging`, or leave the sign out
    exit 1

    $ ablate huge-faults --features fragment-stall,nofragment,fragment-stall-v1 --out kept
    error: `fragment-stall` and `fragment-stall-v1` cannot be ablated together: they are forms of one decision, the stall on fragmentation
    hint: every subset is run: leave `fragment-stall-v1` out, or another one
    exit 1

    $ ablate hot-and-stream --features a,b,c,d,e,f,g,h,i,j
    error: 10 features make 1024 kernels; an ablation takes 6 features at most
    hint: ablate some of them first, then those that matter together
    exit 1

    $ ablate hot-and-stream --features root-aging --seeds 900
    error: 2 kernels with 900 seeds make 1800 runs; an ablation takes 1000 at most
    hint: take fewer seeds or features
    exit 1

    $ ablate hot-and-stream --features root-aging --on vm:6.12
    error: features are switched on simulated kernels; `vm:6.12` is a real one
    hint: leave `--on` out; `pagetide compare --on` puts real kernels beside simulated ones
    exit 1

    $ ablate hot-and-stream --features root-aging --on sim --on host
    error: `ablate` takes one backend; `compare` takes `--on host` as a second one
    exit 2

    $ ablate hot-and-stream --features root-aging --mem 1M
    error: `--mem`: 1M is outside of 8M to 1T
    exit 1

    $ ablate nothing --features root-aging
    error: unknown workload `nothing`
    hint: known names: `anon-and-file`, `containers`, `hot-and-stream`, `huge-faults`, `inode-storm`, `mapped-and-stream`, `random-calls`, `sequential-readers`, `simoop`, `small-files`
    exit 1

    $ ablate hot-and-stream --features root-aging --resume
    error: the following required arguments were not provided:
      --out <DIR>

    Usage: pagetide ablate --features <FEATURES> --out <DIR> --resume <WORKLOAD|FILE>

    For more information, try '--help'.
    exit 2
    ");
}
