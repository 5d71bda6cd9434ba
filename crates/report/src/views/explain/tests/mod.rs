//! Explanations of small worlds, made by hand.

use std::collections::BTreeMap;

use recording::{Recording, SectionTime, Series, Wait, WaitEnd, WaitKind};

use super::*;
use crate::Format;
use crate::tests::text_of;

mod events;

const MS: u64 = 1_000_000;

fn wait(task: &str, within: &str, name: &str, kind: WaitKind, futile: Option<bool>, ms: u64) -> Wait {
    Wait {
        phase: "read".into(),
        task: task.into(),
        wait: name.into(),
        within: within.into(),
        kind,
        ended: if futile == Some(true) { WaitEnd::Timeout } else { WaitEnd::Wake },
        futile,
        count: 2,
        spent_ns: ms * MS,
        longest_ns: ms * MS,
        ..Wait::default()
    }
}

fn time(task: &str, within: &str, ms: u64) -> SectionTime {
    let (phase, task, within) = ("read".into(), task.into(), within.into());
    SectionTime { phase, task, within, count: 3, spent_ns: ms * MS, longest_ns: ms * MS, waited: 1 }
}

/// Two readers, one of which waits in vain; kswapd writes.
fn readers() -> Recording {
    use WaitKind::{Idle, Io, Writes};
    let mut recording = Recording::new("linux-2.6.32", "sequential-readers", "sim", "linux-2.6.32", 1);
    recording.vmstat = [("pgsteal_kswapd", 900), ("pgsteal_direct", 100), ("allocstall_movable", 7)]
        .map(|(name, count)| (name.to_owned(), count))
        .into();
    recording
        .waited(vec![
            wait("reader-1", "allocation pause", "congestion_wait", Writes, Some(true), 40),
            wait("reader-2", "allocation pause", "congestion_wait", Writes, Some(false), 10),
            wait("reader-1", "", "folio_wait_locked", Io, Some(false), 300),
            wait("reader-2", "", "folio_wait_locked", Io, Some(false), 200),
            wait("kswapd0", "kswapd", "congestion_wait", Writes, Some(false), 30),
            wait("kswapd0", "", "kswapd asleep", Idle, Some(false), 9_000),
        ])
        .within(vec![
            time("reader-1", "allocation pause", 45),
            time("reader-2", "allocation pause", 10),
            time("reader-1", "allocation stall", 20),
            time("reader-1", "allocation stall > super-block shrinker", 15),
            time("kswapd0", "kswapd", 100),
        ])
}

fn told(explained: &Explained<'_>) -> String {
    summary::sentences(explained.recording, explained.events).join(" ")
}

fn explained(recording: &Recording) -> Explained<'_> {
    Explained {
        recording,
        events: None,
        with_events: Some("pagetide run DIR/scenario.toml --events pages --out NEW"),
    }
}

#[test]
fn the_first_line_says_how_long_tasks_waited_for_what_could_not_come() {
    insta::assert_snapshot!(explain(&explained(&readers()), &View::default()).render(Format::Text, 120), @"
    sequential-readers on linux-2.6.32 (sim, seed 1)

    Tasks spent 40 ms in waits that nothing could end: 50 % of 80 ms that the allocator and reclaim made tasks wait. It was
    `reader-1` in phase `read`: twice in `congestion_wait` until its timeout, 20 ms each, while nothing was under way that
    could have woken them. All waiting of all tasks, disks included, was 580 ms: 500 ms of 2 tasks `reader-*` in
    `folio_wait_locked`, 50 ms of 2 tasks `reader-*` in `congestion_wait` and 30 ms of `kswapd0` in `congestion_wait`.
    Reclaim freed 1000 pages (3.91 MiB), 10 % of them by tasks themselves in 7 allocation stalls of 20 ms altogether and
    pauses between them of 55 ms.

    who waited, where, on whom
     who                 where                                    waits for             times  in all  longest    nothing
                                                                                                                could end
     reader-* (2 tasks)  folio_wait_locked                        the disk                  4  500 ms   300 ms          -
     reader-* (2 tasks)  allocation pause > congestion_wait       any write to a disk       4   50 ms    40 ms       80 %
     kswapd0             kswapd > congestion_wait                 any write to a disk       2   30 ms    30 ms        0 %
     reader-1            allocation stall > super-block shrinker  itself, or for a CPU      3   15 ms        -          -
     reader-* (2 tasks)  allocation pause                         itself, or for a CPU      6    5 ms        -          -
     reader-1            allocation stall                         itself, or for a CPU      3    5 ms        -          -

    not told, for want of events in this recording: what became of which page and file, who evicted whom, and when exactly;
    record them with `pagetide run DIR/scenario.toml --events pages --out NEW`
    ");
}

/// A column of dashes broke the table of most runs in two.
#[test]
fn waits_of_which_it_is_no_question_have_no_column_of_what_nothing_could_end() {
    let shown = |within, name, kind, futile| {
        let waits = vec![wait("t", within, name, kind, futile, 5)];
        let recording = Recording::new("", "", "vm:6.12", "", 1).waited(waits);
        text_of(stalls::section(&recording, false), 80)
    };
    let disk = shown("", "folio_wait_locked", WaitKind::Io, Some(false));
    let pause = shown("allocation pause", "congestion_wait", WaitKind::Writes, Some(true));
    assert!(disk.contains("the disk") && !disk.contains("could"), "{disk}");
    assert!(pause.contains("could"), "{pause}");
}

/// The frames of a stack are parts of each other, so a section counts without what is told within it.
#[test]
fn folded_stacks_hold_every_nanosecond_once_and_no_idle_one() {
    let folded = folded_stacks(&readers());
    insta::assert_snapshot!(folded, @"
    kswapd0;kswapd 70000000
    kswapd0;kswapd;congestion_wait;any write to a disk 30000000
    reader-*;allocation pause 5000000
    reader-*;allocation pause;congestion_wait;any write to a disk 50000000
    reader-*;allocation stall 5000000
    reader-*;allocation stall;super-block shrinker 15000000
    reader-*;folio_wait_locked;the disk 500000000
    ");
    let sum: u64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    // Waits outside of sections, and sections that are not inside of others.
    assert_eq!(sum, (300 + 200 + 45 + 10 + 20 + 100) * MS);
}

#[test]
fn names_cannot_break_a_stack() {
    let mut recording = readers();
    recording.waits[2].task = "a;b 7\n".into();
    recording.waits[3].task = " ".into();
    let folded = folded_stacks(&recording);
    let odd: Vec<&str> = folded.lines().filter(|line| !line.starts_with(['r', 'k'])).collect();
    assert_eq!(
        odd,
        ["?;folio_wait_locked;the disk 200000000", "a,b 7\\n;folio_wait_locked;the disk 300000000"]
    );
}

#[test]
fn what_is_not_known_is_neither_nothing_nor_all() {
    let first = |waits: Vec<Wait>| told(&explained(&Recording::new("", "", "vm:6.12", "", 1).waited(waits)));
    let made = |futile, ms| wait("t", "", "congestion_wait", WaitKind::Writes, futile, ms);
    let told = [
        first(vec![]),
        first(vec![made(Some(false), 5)]),
        first(vec![made(None, 5)]),
        first(vec![made(None, 5), made(Some(true), 15), made(Some(false), 80)]),
        first(vec![wait("t", "", "folio_wait_locked", WaitKind::Io, Some(false), 5)]),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    Whether anybody waited for nothing this recording does not tell.
    No task waited for what could not come: of 5 ms that the allocator and reclaim made tasks wait, none was for nothing. All waiting of all tasks, disks included, was 5 ms: 5 ms of `t` in `congestion_wait`.
    How long tasks were in waits that nothing could end is not known for 5 ms of 5 ms that the allocator and reclaim made tasks wait, and none is known to have been for nothing. All waiting of all tasks, disks included, was 5 ms: 5 ms of `t` in `congestion_wait`.
    Tasks spent 15 ms at least, and 20 ms at most, in waits that nothing could end: 15 % to 20 % of 100 ms that the allocator and reclaim made tasks wait. It was `t` in phase `read`: twice in `congestion_wait` until its timeout, 7.5 ms each, while nothing was under way that could have woken them. All waiting of all tasks, disks included, was 100 ms: 100 ms of `t` in `congestion_wait`.
    Neither the allocator nor reclaim made anybody wait. All waiting of all tasks, disks included, was 5 ms: 5 ms of `t` in `folio_wait_locked`.
    ");
}

/// "Neither the allocator nor reclaim made anybody wait", it said, and then told of thousands of stalls; and of the
/// OOM kill that came of them nothing.
#[test]
fn who_works_and_does_not_sleep_is_not_told_to_have_lost_nothing() {
    let map = |stats: &[(&str, u64)]| stats.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
    let run = |stats: &[(&str, u64)]| {
        let mut recording = Recording::new("linux-6.12", "small-files", "sim", "linux-6.12", 1);
        recording.vmstat = map(stats);
        recording.metrics.insert("wait_seconds".to_owned(), 0.0);
        recording
            .within(vec![time("creator-1", "allocation stall", 15), time("creator-2", "allocation stall", 5)])
    };
    let some = run(&[("pgsteal_kswapd", 900), ("pgsteal_direct", 100), ("allocstall_normal", 6)]);
    let mut none = run(&[
        ("pgsteal_kswapd", 0),
        ("pgsteal_direct", 0),
        ("allocstall_normal", 6),
        ("slabs_scanned", 800),
    ]);
    let kill = recording::OomKill { at_ns: 1_300 * MS, task: "creator-1".into(), ..Default::default() };
    none.oom_kills = vec![kill.clone()];
    let mut often = none.clone();
    often.oom_kills = vec![kill.clone(), kill];
    let told: Vec<String> = [&some, &none, &often].map(|run| told(&explained(run))).into();
    insta::assert_snapshot!(told.join("\n"), @"
    No task was throttled in the allocator or in reclaim: what they cost tasks is work, their own or that of others. Reclaim freed 1000 pages (3.91 MiB), 10 % of them by tasks themselves in 6 allocation stalls of 20 ms altogether.
    The OOM killer struck after 1.3 s, and the workload went on: see below. No task was throttled in the allocator or in reclaim: what they cost tasks is work, their own or that of others. Reclaim freed no page of the LRU lists, in 6 allocation stalls of 20 ms altogether; its shrinkers looked at 800 slab objects.
    The OOM killer struck twice, first after 1.3 s, and the workload went on: see below. No task was throttled in the allocator or in reclaim: what they cost tasks is work, their own or that of others. Reclaim freed no page of the LRU lists, in 6 allocation stalls of 20 ms altogether; its shrinkers looked at 800 slab objects.
    ");
}

/// "No page was reclaimed", it said of a real kernel under a limit, which tells no sections, and whose counters by
/// reclaimer leave out what cgroups reclaim.
#[test]
fn what_a_cgroup_of_a_real_kernel_reclaims_at_its_limit_is_told() {
    let map = |stats: &[(&str, u64)]| stats.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
    let run = |vmstat: &[(&str, u64)]| {
        let mut recording = Recording::new("uml:6.12", "hot-and-stream", "uml:6.12", "6.12.113", 1);
        recording.vmstat = map(vmstat);
        recording.memcg = ["", "P", "P/B"].map(|path| (path.to_owned(), map(&[("pgsteal", 480_000)]))).into();
        told(&explained(&recording))
    };
    const NONE: (&str, u64) = ("pgsteal_direct", 0);
    let told = [
        run(&[NONE, ("pgsteal_kswapd", 0), ("pgsteal_file", 479_000), ("pgsteal_anon", 1_000)]),
        run(&[
            NONE,
            ("pgsteal_kswapd", 80_000),
            ("pgsteal_file", 480_000),
            ("workingset_refault_file", 48_000),
        ]),
        run(&[NONE, ("pgsteal_kswapd", 0)]),
        run(&[("pgsteal_direct", 480_000), ("pgsteal_kswapd", 0), ("pgsteal_file", 480_000)]),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    Whether anybody waited for nothing this recording does not tell. The machine as a whole reclaimed nothing; cgroups reclaimed 480000 pages (1.83 GiB) of their own.
    Whether anybody waited for nothing this recording does not tell. kswapd reclaimed 80000 pages (312 MiB), and no task had to for itself; cgroups reclaimed 400000 pages (1.53 GiB) of their own. 48000 evicted pages were asked for again, 10 % of what was reclaimed.
    Whether anybody waited for nothing this recording does not tell. The machine as a whole reclaimed nothing; cgroups reclaimed 480000 pages (1.83 GiB) of their own.
    Whether anybody waited for nothing this recording does not tell. Reclaim freed 480000 pages (1.83 GiB), 100 % of them by tasks themselves.
    ");
}

/// A cgroup `P/A` with these figures; `used` is what it used over time, in MiB.
fn protected(stats: &[(&str, u64)], above: &[(&str, u64)], used: &[u64]) -> Recording {
    let map = |stats: &[(&str, u64)]| stats.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
    let mut recording = Recording::new("linux-6.12", "hot-and-stream", "sim", "linux-6.12", 1);
    recording.memcg = BTreeMap::from([("P".to_owned(), map(above)), ("P/A".to_owned(), map(stats))]);
    recording.vmstat = map(&[("pgsteal_kswapd", 5_000)]);
    let rows = (0..).zip(used).map(|(at, &mib)| (at * MS, vec![mib << 20])).collect();
    recording.series = Series::new(vec!["cg_P_A_current".into()], rows);
    recording
}

#[test]
fn each_way_in_which_memory_low_did_or_did_not_protect_has_its_sentence() {
    const LOW: (&str, u64) = ("memory.low", 40 << 20);
    let all = [
        protected(&[LOW], &[LOW], &[10, 38, 30]),
        protected(&[LOW], &[LOW], &[10, 50, 50]),
        protected(&[LOW, ("pgscan", 70), ("pgsteal", 60)], &[LOW], &[10, 50, 44]),
        protected(&[LOW, ("pgscan", 70), ("pgsteal", 60), ("events_low", 9)], &[LOW], &[10, 38, 20]),
        protected(&[LOW, ("pgscan", 70), ("pgsteal", 60), ("events_max", 3)], &[LOW], &[10, 38, 20]),
        protected(&[LOW, ("pgscan", 70), ("pgsteal", 60)], &[], &[10, 38, 20]),
        protected(&[LOW, ("pgscan", 70), ("pgsteal", 60)], &[LOW], &[10, 38, 20]),
        Recording { vmstat: BTreeMap::new(), ..protected(&[("memory.min", 4096)], &[LOW], &[1]) },
    ];
    let told: Vec<String> = all.iter().flat_map(|recording| protection::sentences(recording, None)).collect();
    assert_eq!(told.len(), all.len());
    insta::assert_snapshot!(told.join("\n"), @"
    `memory.low` of 40 MiB on cgroup `P/A` protected it: it used 38 MiB at most, so every walk of reclaim could pass it by; it lost nothing while 5000 pages were taken elsewhere.
    `memory.low` of 40 MiB on cgroup `P/A` was not what kept its pages: it used 50 MiB at most, more than is protected, and yet reclaim took none of it: no active list was opened in the whole run, so inactive pages of others were enough.
    `memory.low` of 40 MiB on cgroup `P/A` protected a part: it used 50 MiB at most, and what is above its protection reclaim may take, since Linux 5.4 the less the nearer it is: it went down to 44 MiB; 60 of its pages were reclaimed, 0 came back.
    `memory.low` of 40 MiB on cgroup `P/A` did not hold: it was overridden 9 times, when reclaim found too little elsewhere; 60 of its pages were reclaimed, 0 came back.
    `memory.low` of 40 MiB on cgroup `P/A` did not protect it from its own `memory.max`: protection counts for reclaim from above only; 60 of its pages were reclaimed, 0 came back.
    `memory.low` of 40 MiB on cgroup `P/A` did not protect it: cgroup `P` above it has none to share out, so for reclaim that begins above that one it counts for nothing; 60 of its pages were reclaimed, 0 came back.
    `memory.low` of 40 MiB on cgroup `P/A` did not hold, and counters do not tell why: it used 38 MiB at most; 60 of its pages were reclaimed, 0 came back.
    `memory.min` of 4 KiB on cgroup `P/A` had nothing to do: nobody reclaimed anything.
    ");
    insta::assert_snapshot!(text_of(protection::section(&all[2], None), 120), @"
    what was protected (pages unless a unit stands there)
     cgroup     low  min  used at most  at least after  scanned  reclaimed  came back  overridden  protected?
     P/A     40 MiB    -        50 MiB          44 MiB       70         60          0           -  in part
    ");
    assert_eq!(protection::json(&all[2], None)[0]["verdict"], "in part");
}

#[test]
fn who_has_no_protection_has_no_section() {
    let bare = protected(&[("pgscan", 70)], &[], &[10]);
    assert!(protection::section(&bare, None).is_empty());
    assert_eq!(protection::sentences(&bare, None), Vec::<String>::new());
}

/// A boosted zone: what is free is below a mark that the boost has raised.
#[test]
fn marks_in_force_and_the_zones_below_them_are_drawn() {
    let names = ["nr_free_pages", "z0_DMA32_free", "z0_DMA32_low", "z0_DMA32_boost", "pageoutrun"];
    let rows = (0..=10_u64)
        .map(|i| {
            let boost = if i < 5 { 0 } else { 300 };
            (i * 100 * MS, vec![900 - 50 * i, 900 - 50 * i, 400 + boost, boost, 3 * i.saturating_sub(4)])
        })
        .collect();
    let mut recording = Recording::new("", "", "sim", "", 1);
    recording.series = Series::new(names.map(String::from).to_vec(), rows);
    recording.simulated_ns = 1_000 * MS;
    insta::assert_snapshot!(text_of(pressure::section(&recording), 90), @"
    over time, 10 parts of 0.1 s
                                  least to most
     free             ███▇▇▆▆▅▅▄  400 to 850     pages
     low marks        ▅▅▅▅██████  400 to 700     pages
     boosts           ····██████  0 to 300       pages
     zones below low  ····██████  0 to 1         zones
     kswapd runs      ····██████  0 to 30        per s
    ");
}

/// The zone Movable of a guest has no page, and the least mark that there is: it was always "below min".
#[test]
fn a_zone_without_pages_is_below_no_mark() {
    let mut recording = Recording::new("", "", "uml:6.12", "", 1);
    recording.series = Series::new(
        vec!["nr_free_pages".into(), "z0_Normal_free".into()],
        (0..=10_u64).map(|i| (i * 100 * MS, vec![900 - i, 900 - i])).collect(),
    );
    let constant = [("Movable_free", 0), ("Movable_managed", 0), ("Movable_min", 32)];
    let constant = [constant, [("Normal_managed", 1_000), ("Normal_min", 400), ("Normal_low", 500)]].concat();
    recording.series.constant =
        constant.into_iter().map(|(name, value)| (format!("z0_{name}"), value)).collect();
    recording.simulated_ns = 1_000 * MS;
    insta::assert_snapshot!(text_of(pressure::section(&recording), 90), @"
    over time, 10 parts of 0.1 s
                            least to most
     free       ██████████  890 to 899     pages
     low marks  ██████████  500 to 500     pages
     min marks  ██████████  400 to 400     pages
    ");
}

#[test]
fn markdown_and_json_say_the_same_as_text() {
    let recording = readers();
    let explained = explained(&recording);
    let markdown = explain(&explained, &View::default()).render(Format::Markdown, 100);
    assert!(markdown.contains("\n\nTasks spent 40 ms in waits that nothing could end"), "{markdown}");
    assert!(markdown.contains("| reader-* (2 tasks) | allocation pause > congestion_wait |"), "{markdown}");
    let json: Value =
        serde_json::from_str(&explain(&explained, &View::default()).render(Format::Json, 80)).unwrap();
    assert_eq!(json["summary"][0], summary::sentences(&recording, None)[0]);
    let of = |stack: &[&str]| {
        let rows = json["stalls"].as_array().unwrap();
        rows.iter().find(|row| row["stack"] == json!(stack)).unwrap()["seconds"].clone()
    };
    assert_eq!(of(&["allocation stall"]), 0.005);
    assert_eq!(of(&["allocation stall", "super-block shrinker"]), 0.015);
    assert!(json["not_told"].as_str().unwrap().contains("--events pages"));
}
