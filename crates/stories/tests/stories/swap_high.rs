//! `memory.swap.high`: tasks of a cgroup that uses more swap are slowed down, told of, and not stopped (SWAP 3.4).

use mm::version::rules::SwapHigh;
use sim::SimResult;

use crate::anon_and_file::play;

/// P may use so much swap before its tasks sleep.
fn run(kernel: &str, high: Option<&str>) -> SimResult {
    let params: Vec<(&str, &str)> = high.map(|high| ("swap_high", high)).into_iter().collect();
    play(kernel, "100", "zram:64M", &params)
}

fn slept(result: &SimResult) -> (u64, u64) {
    let of = |stall: &&sim::Stall| stall.reason == kernel::WaitReason::OverHigh;
    let stalls = || result.stalls.iter().filter(of);
    (stalls().map(|stall| stall.count).sum(), stalls().map(|stall| stall.total.0).sum())
}

#[test]
fn the_less_swap_a_cgroup_should_use_the_longer_its_tasks_sleep_and_they_end_all_the_same() {
    for (kernel, rule) in [("linux-5.10", SwapHigh::Sleep), ("linux-6.12+lru-gen", SwapHigh::Sleep)] {
        assert_eq!(mm::Version::parse(kernel).expect("a kernel").rules.swap_high, rule);
    }
    assert_eq!(mm::Version::parse("linux-5.7").expect("a preset").rules.swap_high, SwapHigh::None);
    let [free, loose, tight] = [None, Some("15M"), Some("8M")].map(|high| run("linux-6.12", high));
    assert_eq!(slept(&free), (0, 0));
    let (loose_count, loose_time) = slept(&loose);
    let (tight_count, tight_time) = slept(&tight);
    assert!(loose_count > 0 && loose_time > 10_000_000, "{loose_count} sleeps of {loose_time} ns");
    assert!(tight_count >= loose_count && tight_time > 2 * loose_time, "{tight_count}, {tight_time} ns");
    assert!(tight_time / tight_count <= 2_000_000_000, "2 s at the most");
    assert!(tight.simulated.0 >= free.simulated.0 + tight_time / 2, "that is how long they take");
    let swapped = [&free, &tight].map(|result| result.vmstat["pswpout"]);
    assert!(swapped[1] * 2 > swapped[0], "nothing is reclaimed or refused for it: {swapped:?}");
}
