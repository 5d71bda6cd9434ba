//! Swap as a scenario writes it, and what is said of mistakes.

use pagetide_workload::scenario::{Backend, Swap, SwapArea, SwapDevice, check_swap};
use units::Bytes;

#[test]
fn areas_are_read_as_they_are_written() {
    let zswap = [
        "zswap+disk:1G",
        "zswap:20%+disk:1G",
        "zswap:100%+zram:1M,disk:1G",
        "disk:1G,zram:256M,prio=100",
        "disk:1G,prio=5,disk:1G,prio=5,zram:1M",
    ];
    for text in ["zram:256M", "disk:1G", "zram:256M,disk:1G", "none", "zram:1M,zram:2M"].iter().chain(&zswap)
    {
        assert_eq!(text.parse::<Swap>().unwrap().to_string(), *text);
    }
    assert_eq!("zram:512M".parse::<SwapArea>().unwrap().slots(), 524_284 / 4, "as /proc/swaps has it");
    let swap: Swap = "disk:1G, zram:1M, zram:2M".parse().unwrap();
    assert_eq!(
        (swap.size_on(SwapDevice::Disk), swap.size_on(SwapDevice::Zram)),
        (Bytes(1 << 30), Bytes(3 << 20))
    );
}

#[test]
fn every_mistake_says_what_is_wrong() {
    let wrong = [
        "tape:1G",
        "zram",
        "disk:0",
        "disk:-1G",
        "zram:4097k",
        "zram:6000001",
        "disk:2T",
        "disk:1G,disk:1G",
        "",
        "zswap:20%",
        "zswap:0%+disk:1G",
        "zswap:20+disk:1G",
        "zram:1G+disk:1G",
        "zswap+none",
        "prio=5",
        "zram:1M,prio=-1",
        "zram:1M,prio=32768",
        "zram:1M,prio=5,prio=6",
        "zram:1M,prio",
    ];
    let told = wrong.map(|text| {
        let problem = text.parse::<Swap>().unwrap_err();
        format!("{problem}; {}", problem.hint().unwrap())
    });
    insta::assert_snapshot!(told.join("\n"), @"
    swap cannot be `tape:1G`: there is no swap on `tape`; there is on `disk` and on `zram`; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `zram`: it has no size; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `disk:0`: an area has 1M to 128G; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `disk:-1G`: `-1G` is negative; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `zram:4097k`: an area has whole pages of 4k; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `zram:6000001`: an area has whole pages of 4k; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `disk:2T`: an area has 1M to 128G; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `disk:1G,disk:1G`: `disk:1G` is there twice: make one area as large as both, or give them priorities; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be ``: there is no swap on ``; there is on `disk` and on `zram`; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `zswap:20%`: zswap stands in front of an area, as in `zswap:20%+disk:1G`; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `zswap:0%`: its pool has 1% to 100% of memory; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `zswap:20`: its pool has 1% to 100% of memory; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `zram:1G`: only `zswap` stands before a `+`; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `none`: there is no swap on `none`; there is on `disk` and on `zram`; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `prio=5`: a priority stands behind its area; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `prio=-1`: a priority is a whole number from 0 to 32767; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `prio=32768`: a priority is a whole number from 0 to 32767; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `prio=6`: `zram:1M,prio=5` has a priority already; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    swap cannot be `prio`: there is no swap on `prio`; there is on `disk` and on `zram`; write it as `zram:256M`, `disk:1G`, both with a comma between, `disk:1G,zram:256M,prio=100`, `zswap:20%+disk:1G`, or `none`
    ");
    let host = check_swap("--swap", &"zram:1M".parse().unwrap(), &Backend::Host).unwrap_err();
    assert_eq!(host.to_string(), "`--swap` cannot be `zram:1M`: this host swaps to what it swaps to");
}
