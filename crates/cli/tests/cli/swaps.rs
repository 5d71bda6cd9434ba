//! What machines swap to, from the command line and from files: what is taken, what is refused, and what is said
//! of it afterwards.

use crate::support::Scene;

#[test]
fn a_machine_swaps_to_what_is_asked_for_and_its_scenario_says_so() {
    let scene = Scene::new();
    let said = |arguments: &str| {
        let shown = scene.data(&format!("run {arguments} --dry-run"));
        shown.lines().find(|line| line.starts_with("swap")).unwrap_or("nothing").to_owned()
    };
    assert_eq!(said("hot-and-stream"), "nothing");
    assert_eq!(said("hot-and-stream --swap none"), "nothing", "it is what it has anyway");
    assert_eq!(said("hot-and-stream --swap zram:256M,disk:1G"), "swap = \"zram:256M,disk:1G\"");
    assert_eq!(said("anon-and-file"), "swap = \"zram:512M\"", "as the measured guests");
    assert_eq!(said("anon-and-file --swap none"), "swap = \"none\"");
    assert_eq!(said("anon-and-file --on vm:6.12 --swap disk:64M"), "swap = \"disk:64M\"");
    let file = scene.data("run anon-and-file --swap disk:2M --dry-run");
    scene.file("own.toml", &file);
    assert_eq!(scene.data("run own.toml --dry-run"), file);
    assert_eq!(said("own.toml --swap zram:1M"), "swap = \"zram:1M\"");
}

/// What has no room on the machine is refused before anything runs: a device that is larger than the disk, memory
/// that could not be compressed into that which is there.
#[test]
fn what_no_machine_can_swap_to_is_refused_in_words() {
    let scene = Scene::new();
    scene.file("zero.toml", "schema = 1\nworkload = \"hot-and-stream\"\nkernel = \"linux-6.1\"\nmachine = \"vm-2cpu\"\nmem = \"64M\"\nswap = \"disk:0\"\n");
    let refused = [
        "run anon-and-file --swap tape:1G",
        "run anon-and-file --swap disk:0",
        "run anon-and-file --swap zram",
        "run anon-and-file --swap zram:-1G",
        "run anon-and-file --swap disk:1G,disk:1G",
        "run anon-and-file --swap disk:100G,disk:101G",
        "run hot-and-stream --mem 64M --swap zram:256M",
        "run hot-and-stream --on vm:6.12 --mem 256M --swap zram:2G",
        "run anon-and-file --on host --swap zram:64M",
        "run zero.toml",
        "sweep hot-and-stream --swap none,zram:64G",
        "run anon-and-file --param topology=global --param swap_max=1M",
        "run anon-and-file --param topology=global --param steps=reclaim",
    ];
    let shown = refused.map(|arguments| format!("$ {arguments}\n{}\n", scene.shown(arguments)));
    insta::assert_snapshot!(shown.concat(), @"");
}
