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
    insta::assert_snapshot!(shown.concat(), @"
    $ run anon-and-file --swap tape:1G
    error: swap cannot be `tape:1G`: there is no swap on `tape`; there is on `disk` and on `zram`
    hint: write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    exit 1
    $ run anon-and-file --swap disk:0
    error: swap cannot be `disk:0`: an area has 1M to 128G
    hint: write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    exit 1
    $ run anon-and-file --swap zram
    error: swap cannot be `zram`: it has no size
    hint: write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    exit 1
    $ run anon-and-file --swap zram:-1G
    error: swap cannot be `zram:-1G`: `-1G` is negative
    hint: write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    exit 1
    $ run anon-and-file --swap disk:1G,disk:1G
    error: swap cannot be `disk:1G,disk:1G`: `disk:1G` is there twice: make one area as large as both, or give them priorities
    hint: write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    exit 1
    $ run anon-and-file --swap disk:100G,disk:101G
    error: swap of 201G is larger than a disk of machine `guest-tcg`, which has 128G
    hint: give at most `--swap disk:128G`
    exit 1
    $ run hot-and-stream --mem 64M --swap zram:256M
    error: zram of 256M has no memory: full, with pages compressed to 1200 of 4096 bytes, it takes 75M of 64M
    hint: give the machine more memory with `--mem`, or at most 218M of zram
    exit 1
    $ run hot-and-stream --on vm:6.12 --mem 256M --swap zram:2G
    error: zram of 2G has no memory: full, with pages compressed to 1200 of 4096 bytes, it takes 600M of 256M
    hint: give the machine more memory with `--mem`, or at most 873M of zram
    exit 1
    $ run anon-and-file --on host --swap zram:64M
    error: `--swap` cannot be `zram:64M`: this host swaps to what it swaps to
    hint: leave it out, or boot a guest with it by `--on uml:VERSION`
    exit 1
    $ run zero.toml
    error: `zero.toml` cannot be run
      caused by: line 6, column 8: swap cannot be `disk:0`: an area has 1M to 128G
    hint: write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    exit 1
    $ sweep hot-and-stream --swap none,zram:64G
    error: zram of 64G has no memory: full, with pages compressed to 1200 of 4096 bytes, it takes 19200M of 1016336k
    hint: give the machine more memory with `--mem`, or at most 3387M of zram
    exit 1
    $ run anon-and-file --param topology=global --param swap_max=1M
    error: parameter `swap_max`: there is no parent cgroup to limit or to ask for room
    hint: add `topology=parent`, or leave `swap_max` out
    exit 1
    $ run anon-and-file --param topology=global --param steps=reclaim
    error: parameter `steps`: there is no parent cgroup to limit or to ask for room
    hint: add `topology=parent`, or leave `steps` out
    exit 1
    ");
}
