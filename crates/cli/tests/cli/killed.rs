//! Runs that the OOM killer ends are results: they are shown, kept, compared and swept.

use crate::support::{Scene, below_title};

/// Maps three times what the machine has: killed after some simulated seconds.
const TOO_LARGE: &str = "huge-faults --mem 32M --param scale=300";

/// It was an error (exit code 1), and nothing of the run was kept.
#[test]
fn a_run_that_the_oom_killer_ends_is_shown_and_kept_and_its_first_line_says_so() {
    let scene = Scene::new();
    let shown = scene.data(&format!("run {TOO_LARGE} -q --out killed"));
    let mut lines = shown.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("huge-faults on linux-6.12 (sim, seed 1), OOM-killed after "), "{first}");
    assert!(shown.replace("\n  ", " ").contains("; the machine was out of memory\n"), "{shown}");
    for part in
        ["Mem-Info:", "slab_reclaimable:", "Node 0 DMA32 free:", "Out of memory: Killed process", "over time"]
    {
        assert!(shown.contains(part), "no `{part}` in\n{shown}");
    }
    assert!(!shown.contains("metric  "), "half of a measurement is none:\n{shown}");
    let reported = scene.data("report killed");
    assert!(reported.contains(below_title(&shown)), "the recording holds it all:\n{reported}");
    let json: serde_json::Value = serde_json::from_str(&scene.data("report killed --format json")).unwrap();
    let kill = &json["runs"][0]["oom_kills"][0];
    assert!(kill["at_seconds"].as_f64().is_some_and(|at| at > 0.0), "{kill}");
    assert!(kill["memory"].as_array().is_some_and(|lines| lines.len() > 10), "{kill}");
    assert_eq!(json["runs"][0]["vmstat"]["oom_kill"], 1);
}

#[test]
fn a_comparison_and_a_sweep_go_on_with_the_runs_that_were_not_killed() {
    let scene = Scene::new();
    let shown = scene.data(&format!("sweep {TOO_LARGE} -q --set vm.min_free_kbytes=500,1000"));
    assert_eq!(shown.matches("OOM-killed after").count(), 2, "{shown}");
    let shown =
        scene.data(&format!("compare {TOO_LARGE} -q --kernel linux-5.4 --kernel linux-6.12 --seeds 2"));
    assert!(shown.contains("linux-5.4: 2 of 2 runs OOM-killed after "), "{shown}");
    assert!(shown.contains("2 of 2 OOM-killed"), "{shown}");
}
