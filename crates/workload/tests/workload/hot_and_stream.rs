//! What `hot-and-stream` asks of a kernel, call by call, on a fake with unlimited memory.

use std::collections::BTreeSet;

use crate::fake::{Fake, block_on};
use pagetide_workload::{Errno, Outcome, System, Workload, WorkloadError};

fn run_on(fake: &Fake, params: &[(&'static str, &'static str)]) -> Result<Outcome, WorkloadError> {
    let workload = Workload::new("hot-and-stream", params.iter().copied()).unwrap();
    block_on(workload.run(fake.clone()))
}

/// The calls of a run, then its metrics.
fn story(params: &[(&'static str, &'static str)]) -> String {
    let fake = Fake::new();
    let outcome = run_on(&fake, params).unwrap();
    let metrics: Vec<String> =
        outcome.metrics.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{}\n\n{}", fake.log().join("\n"), metrics.join("\n"))
}

#[test]
fn siblings_by_default_and_memory_stat_is_read_at_phase_ends_only() {
    insta::assert_snapshot!(story(&[("hot", "1M"), ("stream", "4M")]), @r"
    lay_out_file gap 328k
    lay_out_file hot 1M
    lay_out_file stream 20M
    drop_caches 3
    cgroup_create A
    cgroup_create B
    cgroup_create P
    spawn hot in A
      open hot Read
      read hot 131072 x 16
    join
    open hot Read
    resident_pages hot 0 1048576
    mark hot_ready
    spawn stream in B
      open stream Read
      read stream 131072 x 32
    join
    mark stream_done
    open hot Read
    resident_pages hot 0 1048576
    cgroup_read A memory.stat
    cgroup_read B memory.stat
    spawn reread in A
      open hot Read
      read hot 131072 x 8
    join
    mark reread_done
    cgroup_read A memory.stat
    cgroup_read B memory.stat

    a_active_file_pages = 256
    a_inactive_file_pages = 0
    b_inactive_file_pages = 1024
    hot_pages_before = 256
    hot_pages_cached = 256
    hot_pages_total = 256
    memcg_pgdeactivate = 4
    memcg_pgrefill = 6
    memcg_pgscan = 10
    memcg_pgsteal = 8
    reread_memcg_pgscan = 0
    reread_seconds = 0.000256
    stream_seconds = 0.001024
    ");
}

#[test]
fn a_parent_carries_the_limit_and_counts_for_both() {
    insta::assert_snapshot!(story(&[
        ("topology", "parent"),
        ("limit", "256M"),
        ("low", "8M"),
        ("hot", "1M"),
        ("hot_reads", "1"),
        ("stream", "130k"),
        ("read_size", "64k"),
    ]), @r"
    lay_out_file gap 328k
    lay_out_file hot 1M
    lay_out_file stream 16514k
    drop_caches 3
    cgroup_create P
    cgroup_write P memory.max 268435456
    cgroup_write P memory.low 8388608
    cgroup_create P/A
    cgroup_write P/A memory.low 8388608
    cgroup_create P/B
    spawn hot in P/A
      open hot Read
      read hot 65536 x 16
    join
    open hot Read
    resident_pages hot 0 1048576
    mark hot_ready
    spawn stream in P/B
      open stream Read
      read stream 65536 x 2
      read stream 2048 x 1
    join
    mark stream_done
    open hot Read
    resident_pages hot 0 1048576
    cgroup_read P memory.stat
    cgroup_read P/A memory.stat
    cgroup_read P/B memory.stat
    spawn reread in P/A
      open hot Read
      read hot 65536 x 16
    join
    mark reread_done
    cgroup_read P memory.stat
    cgroup_read P/A memory.stat
    cgroup_read P/B memory.stat

    a_active_file_pages = 0
    a_inactive_file_pages = 256
    b_inactive_file_pages = 33
    hot_pages_before = 256
    hot_pages_cached = 256
    hot_pages_total = 256
    memcg_pgdeactivate = 2
    memcg_pgrefill = 3
    memcg_pgscan = 5
    memcg_pgsteal = 4
    reread_memcg_pgscan = 0
    reread_seconds = 0.000256
    stream_seconds = 0.000033
    ");
}

#[test]
fn the_same_group_holds_both_tasks_and_empty_files_are_no_trouble() {
    insta::assert_snapshot!(story(&[("topology", "same"), ("hot", "0"), ("stream", "0"), ("hot_reads", "0")]), @r"
    lay_out_file gap 328k
    lay_out_file hot 0
    lay_out_file stream 16M
    drop_caches 3
    cgroup_create A
    cgroup_create P
    spawn hot in A
      open hot Read
    join
    mark hot_ready
    spawn stream in A
      open stream Read
    join
    mark stream_done
    cgroup_read A memory.stat
    spawn reread in A
      open hot Read
    join
    mark reread_done
    cgroup_read A memory.stat

    a_active_file_pages = 0
    a_inactive_file_pages = 0
    hot_pages_before = 0
    hot_pages_cached = 0
    hot_pages_total = 0
    memcg_pgdeactivate = 2
    memcg_pgrefill = 3
    memcg_pgscan = 5
    memcg_pgsteal = 4
    reread_memcg_pgscan = 0
    reread_seconds = 0
    stream_seconds = 0
    ");
}

#[test]
fn a_limit_needs_a_parent_and_room_for_two_readers() {
    for (params, message) in [
        (
            vec![("limit", "256M")],
            "parameter `limit`: there is no parent cgroup to limit; add `topology=parent`, or leave `limit` out",
        ),
        (vec![("topology", "parent"), ("limit", "64k")], "parameter `limit`: 64k is outside of 1M to 16T; "),
        (vec![("stream", "17T")], "parameter `stream`: 17T is outside of 0 to 16T; "),
    ] {
        let error = Workload::new("hot-and-stream", params).unwrap_err();
        assert_eq!(format!("{error}; {}", error.hint().unwrap_or_default()), message);
    }
}

#[test]
fn the_first_failing_call_ends_the_run_and_is_named() {
    for (call, message) in [
        ("read", "read `hot`: input/output error"),
        ("join", "join ``: input/output error"),
        ("cgroup_read", "cgroup_read `A`: input/output error"),
        ("lay_out_file", "lay_out_file `gap`: input/output error"),
    ] {
        let error = run_on(&Fake::failing(call, Errno::Io), &[("stream", "1M")]).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn samples_tell_each_hot_pass_and_the_rate_along_the_stream() {
    let outcome = run_on(&Fake::new(), &[("hot", "1M"), ("hot_reads", "3"), ("stream", "256M")]).unwrap();
    let pages_per_mib = 256.0;
    let page_seconds = 1e-6;
    assert_eq!(outcome.samples["hot_pass_seconds"], [pages_per_mib * page_seconds; 3]);
    assert_eq!(outcome.samples["stream_mib_per_second"], [1.0 / (pages_per_mib * page_seconds); 64]);
}

#[test]
fn a_kernel_that_counts_no_reclaim_per_group_leaves_these_metrics_out() {
    let names = |fake: Fake| {
        let outcome = run_on(&fake, &[("hot", "1M"), ("stream", "1M")]).unwrap();
        outcome.metrics.into_keys().collect::<std::collections::BTreeSet<_>>()
    };
    let (all, without) = (names(Fake::new()), names(Fake::without_reclaim_counters()));
    let missing: Vec<_> = all.difference(&without).map(String::as_str).collect();
    assert_eq!(
        missing,
        ["memcg_pgdeactivate", "memcg_pgrefill", "memcg_pgscan", "memcg_pgsteal", "reread_memcg_pgscan"]
    );
}

/// A seed decided nothing of this program: every distance to the kernel's ticks was the same in all
/// runs, and ten seeds were one run ten times.
#[test]
fn a_seed_decides_when_tasks_begin_and_where_files_lie_and_nothing_of_what_is_measured() {
    let told = |seed: u64| {
        let fake = Fake::with_seed(seed);
        let outcome = run_on(&fake, &[("hot", "1M"), ("stream", "4M")]).unwrap();
        let place = fake.log()[0].clone();
        (outcome, fake.now(), place)
    };
    let runs: Vec<_> = (0..20).map(told).collect();
    assert_eq!(told(7), runs[7], "a seed repeats");
    for (outcome, ended, _) in &runs {
        assert_eq!(outcome, &runs[0].0);
        assert!(ended.get() < 3 * 20_000_000 + 3_000_000, "three tasks, each at most 20 ms late: {ended}");
    }
    let ends: BTreeSet<u64> = runs.iter().map(|(_, ended, _)| ended.get()).collect();
    let places: BTreeSet<&str> = runs.iter().map(|(_, _, place)| place.as_str()).collect();
    assert_eq!(ends.len(), 20);
    assert!(places.len() > 15, "{places:?}");
}
