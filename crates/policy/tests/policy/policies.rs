//! Replacement policies by their stories, and as others measured them on a real trace. Against naive ones:
//! `naive`.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc as Shared;

use language::{ParamKind, Share};
use pagetide_policy::{
    Access, Cache, Capacity, Clock, Counted, Fifo, Future, Lru, POLICIES, Policy, PolicyError, PolicySpec,
    S3Fifo, Sieve, TwoQ, Wanted,
};
use trace::requests::TraceReader;
use trace::requests::zipf::Zipf;
use units::Seed;

pub(crate) fn capacity(objects: u64) -> Capacity {
    Capacity::new(objects).unwrap()
}

pub(crate) fn spec(text: &str) -> PolicySpec {
    text.parse().unwrap()
}

pub(crate) fn future(requests: &[u64]) -> Shared<Future> {
    let mut future = Future::default();
    requests.iter().for_each(|&object| future.push(object).unwrap());
    Shared::new(future)
}

fn replay_all(policy: &PolicySpec, objects: u64, requests: &[u64]) -> Counted {
    let wanted: Vec<Wanted> = requests.iter().map(|&object| Wanted { object, bytes: 1 }).collect();
    let mut cache = Cache::new(policy, capacity(objects), &future(requests));
    cache.feed(&wanted, true);
    cache.counted()
}

/// Requests and what they did: `-` a hit, `+` a miss, `+c` a miss that evicted `c`.
fn story(mut policy: impl Policy, requests: &str) -> String {
    let step = |request: char| match policy.request(request.into()) {
        Access::Hit => format!("{request}-"),
        Access::Miss { evicted: None } => format!("{request}+"),
        Access::Miss { evicted: Some(evicted) } => {
            format!("{request}+{}", char::from_u32(evicted.try_into().unwrap()).unwrap())
        }
    };
    requests.chars().map(step).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_policy_evicts_another_object_of_the_same_requests() {
    let requests = "abcadaebfg";
    let room = capacity(3);
    assert_eq!(story(Lru::new(room), requests), "a+ b+ c+ a- d+b a- e+c b+d f+a g+e");
    assert_eq!(story(Fifo::new(room), requests), "a+ b+ c+ a- d+a a+b e+c b+d f+a g+e");
    assert_eq!(story(Clock::new(room), requests), "a+ b+ c+ a- d+b a- e+c b+d f+e g+a");
    // What CLOCK gave another round was the oldest again in the end; SIEVE's hand has long gone past it.
    assert_eq!(story(Sieve::new(room), requests), "a+ b+ c+ a- d+b a- e+c b+d f+e g+b");
}

#[test]
fn a_cache_of_one_object_holds_the_last_one() {
    for policy in PolicySpec::all() {
        let counted = replay_all(&policy, 1, &[5, 5, 6, 6, 5]);
        let expected =
            Counted { requests: 5, misses: 3, bytes: 5, missed_bytes: 3, evictions: 2, read_ahead: 0 };
        assert_eq!(counted, expected, "{policy}");
    }
}

#[test]
fn capacities_and_names_are_checked() {
    assert_eq!(Capacity::new(0), Err(PolicyError::ZeroCapacity));
    assert_eq!(Capacity::new((1 << 30) + 1), Err(PolicyError::TooLarge((1 << 30) + 1)));
    for policy in PolicySpec::all() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    assert_eq!(Counted::default().miss_ratio(), None);
}

#[test]
fn a_policy_is_written_with_the_parameters_that_differ() {
    let written = |text: &str| spec(text).to_string();
    assert_eq!(written("s3fifo:batch=32:small=0.10"), "s3fifo:batch=32");
    assert_eq!(written("2q:kin=0.5000:kout=1"), "2q:kin=0.5:kout=1");
    let values = "s3fifo: small=0.1, ghost=0.9, promote=2, batch=32, readahead=0";
    assert_eq!(spec("s3fifo:batch=32").values().as_deref(), Some(values));
    assert_eq!(spec("lru").values(), None, "the name says it all");
    let wrong = |text: &str| {
        let error = text.parse::<PolicySpec>().unwrap_err();
        format!("{error}; {}", error.hint().unwrap_or_default())
    };
    insta::assert_snapshot!(
        ["lfu", "siev:batch=2", "sieve:small=0.1", "s3fifo:small", "s3fifo:small=10%", "s3fifo:small=1.5",
         "s3fifo:promote=4", "lru:batch=0", "lru:batch=2:batch=3", "belady:readahead=8"]
            .map(wrong)
            .join("\n"),
        @"
    unknown policy `lfu`; did you mean `lru`?
    unknown policy `siev`; did you mean `sieve`?
    policy `sieve`: unknown parameter `small`; known names: `batch`, `readahead`
    policy `s3fifo`: `small` is not of the form `name=value`; write parameters as in `s3fifo:small=0.1:batch=32`
    policy `s3fifo`: parameter `small`: `10%` is not a share from 0 to 1, such as 0.25; 
    policy `s3fifo`: parameter `small`: `1.5` is not a share from 0 to 1, such as 0.25; 
    policy `s3fifo`: parameter `promote`: 4 is outside of 1 to 3; 
    policy `lru`: parameter `batch`: 0 is outside of 1 to 4096; 
    policy `lru`: parameter `batch` is given twice, as `2` and as `3`; leave one of them out
    policy `belady` knows when what was asked for is wanted next, not what is read ahead; leave `readahead` out
    "
    );
}

#[test]
fn every_policy_says_what_its_parameters_are() {
    for info in POLICIES {
        assert!(
            !info.help.is_empty() && info.params.iter().all(|spec| !spec.help.is_empty()),
            "{}",
            info.name
        );
        let has = |name: &str| info.params.iter().any(|spec| spec.name == name);
        assert!(has("batch") && has("readahead"), "{}", info.name);
        for spec in info.params {
            if let ParamKind::Share { min, max } = spec.kind {
                assert!(min == Share::ZERO && max == Share::ALL);
            }
        }
    }
}

#[test]
fn misses_are_also_counted_in_bytes_and_a_warm_up_fills_without_counting() {
    let wanted = |object, bytes| Wanted { object, bytes };
    let mut cache = Cache::new(&spec("lru"), capacity(2), &Shared::default());
    cache.feed(&[wanted(1, 100), wanted(2, 1000)], false);
    assert_eq!(cache.counted(), Counted::default());
    cache.feed(&[wanted(1, 100), wanted(3, 900)], true);
    let counted = cache.counted();
    assert_eq!((counted.miss_ratio(), counted.byte_miss_ratio()), (Some(0.5), Some(0.9)));
}

/// A scan goes through S alone: M keeps what was asked for again.
#[test]
fn a_scan_does_not_come_past_the_small_queue() {
    // Ten in M: seen three times each, then pushed through S by what follows.
    let mut requests: Vec<u64> = (0..10).flat_map(|object| [object; 3]).collect();
    requests.extend(1000..1100);
    requests.extend(0..10);
    let misses = |policy: &str| replay_all(&spec(policy), 20, &requests).misses;
    assert_eq!(misses("s3fifo"), 10 + 100, "the ten are there after the scan");
    assert_eq!(misses("lru"), 10 + 100 + 10, "and LRU has lost them");
    assert_eq!(misses("s3fifo:promote=3"), 10 + 100 + 10, "asked for three times is two hits");
}

/// Who comes back while its name is remembered has proved itself.
#[test]
fn a_remembered_object_goes_to_the_main_queue() {
    let half = spec("2q").params().share("kout").unwrap();
    let two_q = |kout| TwoQ::new(capacity(4), Share::ZERO, kout);
    assert_eq!(story(two_q(half), "abcdeafghia"), "a+ b+ c+ d+ e+a a+b f+c g+d h+e i+f a-");
    assert_eq!(story(two_q(Share::ZERO), "abcdeafghia"), "a+ b+ c+ d+ e+a a+b f+c g+d h+e i+a a+f");
    assert_eq!(story(S3Fifo::new(capacity(2), Share::ZERO, Share::ALL, 2), "aaabcb"), "a+ a- a- b+ c+b b+c");
}

/// Reclaim takes 32 at a time, so the cache is on average 16 short of full.
#[test]
fn a_batch_makes_room_for_those_that_follow() {
    let counted = |policy: &str| replay_all(&spec(policy), 100, &(0..101).collect::<Vec<u64>>());
    assert_eq!((counted("lru").evictions, counted("lru:batch=32").evictions), (1, 32));
    assert_eq!(counted("lru:batch=4096").evictions, 100, "no more than there are");
}

/// Objects behind a missed one come with it, and count for nothing until they are asked for.
#[test]
fn what_is_read_ahead_is_held_and_was_not_asked_for() {
    for policy in PolicySpec::all().filter(|policy| !policy.info().needs_future) {
        let policy = spec(&format!("{policy}:readahead=3"));
        let requests: Vec<u64> = (0..40).collect();
        let counted = replay_all(&policy, 40, &requests);
        assert_eq!((counted.misses, counted.read_ahead), (10, 30), "{policy}");
    }
    let end = replay_all(&spec("lru:readahead=3"), 20, &[u64::MAX - 1]);
    assert_eq!(end.read_ahead, 1, "there is no number behind the last");
}

#[test]
fn misses_on_a_zipf_trace_never_change() {
    let requests: Vec<u64> = Zipf::new(10_000, 100, Seed(1)).take(100_000).collect();
    let misses: Vec<String> = PolicySpec::all()
        .map(|policy| format!("{policy} {}", replay_all(&policy, 1000, &requests).misses))
        .collect();
    insta::assert_snapshot!(misses.join("\n"), @"
    lru 32756
    fifo 37156
    clock 31682
    s3fifo 27326
    sieve 27591
    arc 27827
    2q 28864
    lirs 28190
    clock-pro 27265
    belady 19275
    ");
}

/// Part of a published block trace, one object per block number. Set `PAGETIDE_TRACES` to the
/// folder that holds `cloudPhysicsIO.csv` of libCacheSim.
#[test]
fn misses_on_a_real_trace_as_others_measured() {
    let Some(folder) = std::env::var_os("PAGETIDE_TRACES").map(PathBuf::from) else {
        // Straight to the stream: the test harness hides what the macros print.
        let skipped = "SKIPPED: PAGETIDE_TRACES is not set, so no real trace was replayed";
        writeln!(std::io::stderr(), "{skipped}").unwrap();
        return;
    };
    let reader = TraceReader::open(&folder.join("cloudPhysicsIO.csv"), None).unwrap();
    let requests: Vec<u64> = reader.map(|request| request.unwrap().object).collect();
    assert_eq!(requests.len(), 113_872);
    let ratios = |policy: PolicySpec| {
        let ratio = |objects| replay_all(&policy, objects, &requests).miss_ratio().unwrap();
        format!("{policy} {:.4} {:.4} {:.4}", ratio(1000), ratio(4000), ratio(16000))
    };
    insta::assert_snapshot!(PolicySpec::all().map(ratios).collect::<Vec<_>>().join("\n"), @"
    lru 0.8327 0.8151 0.6587
    fifo 0.8388 0.8159 0.6387
    clock 0.8319 0.8145 0.6580
    s3fifo 0.8256 0.7697 0.6204
    sieve 0.8253 0.8039 0.6112
    arc 0.8257 0.7918 0.5898
    2q 0.8265 0.7853 0.6338
    lirs 0.8280 0.7533 0.5569
    clock-pro 0.8280 0.7633 0.5939
    belady 0.7642 0.6526 0.4904
    ");
}
