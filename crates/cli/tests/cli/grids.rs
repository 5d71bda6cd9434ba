//! Comparisons of a workload whose source measured at several points.

use crate::support::Scene;

/// Small files: what is counted does not matter here.
const TWO: &str = "compare sequential-readers --param file=256k -q --kernel linux-2.6.32 \
                   --kernel linux-2.6.32+pressure-wait";

#[test]
fn every_point_is_run_once_shown_and_kept() {
    let scene = Scene::new();
    let shown = scene.data(&format!("{TWO} --out kept"));
    for part in [
        "linux-2.6.32\n                                    4 readers  8 readers  16 readers  % portions\n",
        "throughput_kb_per_sec by memory: deviation from the same kernel's at 256M, %\n",
        " %                                 160M   192M   224M  256M   288M   320M   356M\n",
        "\nsequential-readers: linux-2.6.32 against linux-2.6.32+pressure-wait\n",
    ] {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&shown).contains(&squeezed(part)), "no `{part}` in\n{shown}");
    }
    let recordings = scene.names().iter().filter(|name| name.ends_with("/MANIFEST")).count();
    assert_eq!(recordings, 2 * 9);
    let json: serde_json::Value = serde_json::from_str(&scene.data(&format!("{TWO} --format json"))).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 2 * 9);
    assert_eq!(json["grid"]["memory"].as_array().unwrap().len(), 2 * 7);
    assert_eq!(json["comparison"]["baseline"], "linux-2.6.32");
}

/// Below the tables stands what who asks for that point alone gets.
#[test]
fn who_names_a_point_gets_the_plain_comparison_that_stands_below_the_tables() {
    let scene = Scene::new();
    let plain = scene.data(&format!("{TWO} --mem 256M"));
    assert!(plain.starts_with("throughput_kb_per_sec: "), "{plain}");
    assert!(scene.data(TWO).ends_with(&plain), "{plain}");
    assert_eq!(scene.data(&format!("{TWO} --param readers=16")), plain);
    assert_eq!(scene.data(&format!("{TWO} --dry-run")).matches("schema = 1").count(), 2 * 9);
    assert_eq!(scene.data(&format!("{TWO} --dry-run --mem 64M")).matches("schema = 1").count(), 2);
}
