//! `small-files`: what a tiny run and a comparison show, what is refused in words, and that little is told to be
//! little.

use crate::support::{Scene, below_title, refused};

/// Three processes, six loops, in the smallest machine.
const TINY: &str = "small-files --mem 64M --param processes=3 --param files=1500 --param loops=6";

/// The names of the first table's rows, whose figures other tests hold.
fn names(text: &str) -> String {
    let table = text.lines().take_while(|line| !line.is_empty()).skip(1);
    let names = table.filter_map(|line| line.strip_prefix(' ')?.split(' ').next());
    names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_tiny_run_shows_rates_shares_and_reclaim_and_says_that_six_samples_are_few() {
    let scene = Scene::new();
    let shown = scene.data(&format!("run {TINY} --kernel linux-5.3 -q"));
    assert_eq!(below_title(&shown), below_title(&scene.data(&format!("run {TINY} --kernel linux-5.3 -q"))));
    insta::assert_snapshot!(names(below_title(&shown)), @"
    files_per_sec
    slab_share
    slab_pagecache_ratio
    dirty_percent
    slab_idle_percent
    kswapd_pages_scanned
    kswapd_pages_reclaimed
    kswapd_efficiency_percent
    kswapd_velocity
    direct_pages_scanned
    direct_pages_reclaimed
    direct_efficiency_percent
    direct_velocity
    page_reclaim_immediate
    slabs_scanned
    kswapd_inode_steals
    direct_inode_steals
    user_seconds
    system_seconds
    elapsed_seconds
    ");
    let told = scene.shown(&format!("run {TINY} --kernel linux-5.3"));
    let few = "warning: 6 samples of files_per_sec: too few for quartiles and a spread; the source has 14";
    assert!(told.contains(few), "{told}");
}

#[test]
fn a_comparison_comes_in_the_tables_of_the_reference_suite_too() {
    let scene = Scene::new();
    let shown = scene.data(&format!("compare {TINY} --style mmtests -q"));
    let labels: Vec<String> = shown
        .lines()
        .map(|line| {
            line.split_whitespace().take_while(|word| !word.contains('.')).collect::<Vec<_>>().join(" ")
        })
        .filter(|label| !label.is_empty())
        .collect();
    insta::assert_snapshot!(labels[..50].join("\n"), @"
    small-files
    linux linux
    Min 1-files/sec
    1st-qrtle 1-files/sec
    2nd-qrtle 1-files/sec
    3rd-qrtle 1-files/sec
    Max-1 1-files/sec
    Max-5 1-files/sec
    Max-10 1-files/sec
    Max-90 1-files/sec
    Max-95 1-files/sec
    Max-99 1-files/sec
    Max 1-files/sec
    Hmean 1-files/sec
    Stddev 1-files/sec
    CoeffVar 1-files/sec
    BHmean-99 1-files/sec
    BHmean-95 1-files/sec
    BHmean-90 1-files/sec
    BHmean-75 1-files/sec
    BHmean-50 1-files/sec
    BHmean-25 1-files/sec
    linux linux
    Duration User
    Duration System
    Duration Elapsed
    linux linux
    Ops Minor Faults
    Ops Major Faults
    Ops Swap Ins - -
    Ops Swap Outs - -
    Ops Allocation stalls
    Ops Fragmentation stalls
    Ops DMA allocs
    Ops DMA32 allocs
    Ops Normal allocs
    Ops Movable allocs
    Ops Direct pages scanned
    Ops Kswapd pages scanned
    Ops Kswapd pages reclaimed
    Ops Direct pages reclaimed
    Ops Kswapd efficiency %
    Ops Kswapd velocity
    Ops Direct efficiency %
    Ops Direct velocity
    Ops Percentage direct scans
    Ops Page writes by reclaim
    Ops Page writes file - -
    Ops Page writes anon - -
    Ops Page reclaim immediate
    ");
}

#[test]
fn sizes_that_do_not_go_together_are_refused_with_their_remedy() {
    let shown = refused(
        &Scene::new(),
        &[
            "run small-files --param files=15",
            "run small-files --param loops=0",
            "run small-files --param names=yes",
            "run small-files --param scale=half",
            "run small-files --param scale=full --mem 1G",
            "run small-files --param scale=full --on host",
            "compare small-files --style mmtests --format json",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run small-files --param files=15
    error: parameter `files`: 15 files for 16 processes
    hint: give `files=16` at least, or fewer `processes`
    exit 1

    $ run small-files --param loops=0
    error: parameter `loops`: 0 is outside of 1 to 100000
    exit 1

    $ run small-files --param names=yes
    error: parameter `names`: unknown choice `yes`
    hint: known names: `on`, `off`
    exit 1

    $ run small-files --param scale=half
    error: parameter `scale`: unknown choice `half`
    hint: known names: `default`, `full`
    exit 1

    $ run small-files --param scale=full --mem 1G
    error: `scale=full` is on 16G of memory, not 1G
    hint: leave `--mem` out, or `scale`: all sizes follow from the memory
    exit 1

    $ run small-files --param scale=full --on host
    error: `scale=full` is on 16G of memory, and `host` has a limit
    hint: leave `scale` out, and say how much by `--host-limit`
    exit 1

    $ compare small-files --style mmtests --format json
    error: mmtests' tables are text; leave `--format` out
    exit 2
    ");
}

/// The command that makes a run again says no memory that follows from the scale.
#[test]
fn the_scale_decides_the_memory_whatever_the_machine() {
    let scene = Scene::new();
    let mem = |options: &str| {
        let scenario = scene.data(&format!("run small-files {options} --dry-run"));
        scenario.lines().find(|line| line.starts_with("mem")).expect("it has memory").to_owned()
    };
    assert_eq!(mem(""), "mem = \"1G\"");
    assert_eq!(mem("--param scale=full"), "mem = \"16G\"");
    assert_eq!(mem("--param scale=full --machine skylake-1s"), "mem = \"16G\"");
    assert_eq!(mem("--param scale=full --mem 16G"), "mem = \"16G\"");
    assert_eq!(mem("--mem 2G"), "mem = \"2G\"");
}
