//! All forms of a split that is known: what a person reads, and what programs get.

use super::*;
use crate::views::size::Advice;
use crate::{Format, Style};

const STYLE: Style<'_> = Style { width: 80, made_by: "pagetide 1" };
const MIB: u64 = 1 << 20;

fn point(limit: Option<u64>, slowdown: Option<f64>) -> SizedPoint {
    let spread = |value| Some(Spread { least: value, mean: value, most: value });
    SizedPoint {
        limit: limit.map(|limit| limit * MIB),
        hit_ratio: spread(0.5),
        refaults: spread(0.0),
        in_reclaim: spread(0.0),
        stalled: None,
        read: spread(0.0),
        written: spread(0.0),
        run: slowdown.and_then(|slowdown| spread(2.0 * (1.0 + slowdown / 100.0))),
        slowdown: slowdown.and_then(spread),
        keeps: Some(slowdown.is_some_and(|slowdown| slowdown <= 5.0)),
        killed: usize::from(slowdown.is_none()),
    }
}

fn cache(mebibytes: u64, own: u64, points: &[(u64, Option<f64>)], free: f64) -> OwnCache {
    let enough = points.iter().find(|(_, slowdown)| slowdown.is_some_and(|slowdown| slowdown <= 5.0));
    let limited = points.iter().map(|&(limit, slowdown)| point(Some(limit), slowdown));
    OwnCache {
        bytes: mebibytes * MIB,
        command: format!("serve {mebibytes}M"),
        held: 400 * MIB,
        own: own * MIB,
        is_filled: own >= mebibytes,
        enough: enough.map(|(limit, _)| limit * MIB),
        points: limited.chain([point(None, Some(free))]).collect(),
    }
}

fn found() -> OwnCaches {
    let advice = Advice {
        high: 200 * MIB,
        max: 220 * MIB,
        low: 200 * MIB,
        too_small: Some(100 * MIB),
        headroom: 10.0,
        run_as_set: None,
        low_is_knee: false,
    };
    let sized = Sized {
        trace: "own-cache-64M.trace".to_owned(),
        holds: Vec::new(),
        kernel: "linux-6.12".to_owned(),
        machine: "vm-2cpu, 2G of memory".to_owned(),
        seeds: vec![1],
        one_in: None,
        held: 400 * MIB,
        targets: vec!["replay_seconds > +5%".to_owned()],
        slowdown_of: None,
        points: Vec::new(),
        resolution: None,
        knee: None,
        advice: Some(advice),
        checked: Vec::new(),
        verified: None,
        program: None,
        practices: Vec::new(),
        other_disks: Vec::new(),
        patches: Vec::new(),
        notes: vec!["One seed.".to_owned()],
        known: None,
        command: "pagetide size --own-cache 64M,256M -- serve {}".to_owned(),
        runs: 9,
    };
    OwnCaches {
        command: "serve {}".to_owned(),
        caches: vec![
            cache(64, 70, &[(100, Some(30.0)), (200, Some(4.0)), (400, Some(2.0))], 1.5),
            cache(256, 240, &[(200, None), (400, Some(0.25))], 0.0),
        ],
        of: 64 * MIB,
        fastest: 256 * MIB,
        limits: [100, 200, 400].map(|limit| limit * MIB).to_vec(),
        notes: vec!["Each size is another capture.".to_owned()],
        sized,
    }
}

#[test]
fn a_split_reads_from_what_to_set_to_what_it_rests_on() {
    let text = own_cache(&found()).render(Format::Text, 80);
    insta::assert_snapshot!(text, @"
    `serve {}` with 2 own caches on linux-6.12 (vm-2cpu, 2G of memory, seed 1), 9
      runs

    own cache 64M: memory.high 200 MiB, memory.max 220 MiB, memory.low 200 MiB
      an own cache of 64M keeps the target with the least memory of all that were
        run; slowdowns are from the fastest without a limit: an own cache of 256M
      memory.high is the least limit run that keeps the target (not
        `replay_seconds > +5%`), as does every larger one; 100 MiB does not
      memory.max is 10 % above it (--headroom): room for reclaim, and for what the
        trace does not show; a group that uses all of it is killed
      memory.low is memory.high: the curve has no knee below it
      not checked: the model alone says so (`--verify` checks it)

    without a limit, by own cache
     own cache  holds, MiB  of no file, MiB  run, s  slower, %   enough
           64M         400               70    2.03        1.5  200 MiB  recommended
          256M         400              240    2.00          0  400 MiB  fastest,
                                                                         not filled

    slower than the fastest without a limit, in percent, by limit and own cache
       limit   64M    256M  best own cache
     100 MiB  30.0                     64M
     200 MiB   4.0  killed             64M
     400 MiB   2.0     0.2            256M
        none   1.5       0            256M
      a limit is split best with the own cache at the end of its row
      nothing was run where nothing stands: below a limit at which it was killed
        or took four times as long

    to paste
      systemd, in the [Service] section of the unit
        MemoryMax=220M
        MemoryHigh=200M
        MemoryLow=200M
        (MemoryLow protects only as far as the slices above it do, too)
      Docker, options of `docker run`
        --memory=220m --memory-swap=220m --memory-reservation=200m
        (Docker has no option for memory.high: the group is first limited at
         memory.max. --memory-swap equal to --memory means no swap, as was
         simulated)
      Kubernetes, of the container
        resources:
          requests:
            memory: 200Mi
          limits:
            memory: 220Mi
        (the request decides where a pod goes, and protects nothing unless the
         feature gate MemoryQoS is on: then it is memory.min, and memory.high
         follows from request and limit by a formula of its own. Without it
         memory.high is not set)

    what it rests on
      - Each size is another capture.
      - One seed.

    made by
      pagetide size --own-cache 64M,256M -- serve {}
    ");
}

#[test]
fn programs_get_every_point_and_the_best_of_each_limit() {
    let found = found();
    let value: Value = serde_json::from_str(&own_cache(&found).render(Format::Json, 80)).unwrap();
    let best: Vec<Option<u64>> = value["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| limit["best_own_cache_bytes"].as_u64().map(|bytes| bytes / MIB))
        .collect();
    assert_eq!(best, [Some(64), Some(64), Some(256), Some(256)]);
    assert_eq!(value["own_cache_bytes"], 64 * MIB);
    assert_eq!(value["own_caches"][1]["is_filled"], false);
    assert_eq!(value["size"]["advice"]["memory_high_bytes"], 200 * MIB);
    let csv = own_cache(&found).render(Format::Csv, 80);
    assert_eq!(csv.lines().count(), 1 + 4 + 3, "{csv}");
    assert!(csv.starts_with("own_cache_bytes,limit_bytes,keeps_target,killed,hit_ratio,"), "{csv}");
    assert!(csv.contains("\n268435456,209715200,false,1,"), "{csv}");
}

#[test]
fn a_page_has_a_curve_for_each_own_cache_and_no_recommendation_is_said() {
    let mut found = found();
    let page = own_cache_page(&found).render(Format::Html, STYLE);
    for wanted in
        ["own cache 64M: memory.high 200 MiB", "id=\"own-cache\"", "own cache 256M", "MemoryHigh=200M"]
    {
        assert!(page.contains(wanted), "no `{wanted}`");
    }
    found.sized.advice = None;
    let text = own_cache(&found).render(Format::Text, 80);
    assert!(text.contains("\nno recommendation\n") && !text.contains("recommended"), "{text}");
}
