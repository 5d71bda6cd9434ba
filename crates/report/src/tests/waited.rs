//! Who waited for what, and for nothing.

use recording::{Wait, WaitEnd, WaitKind};

use super::*;
use crate::views::{by_phase, who_waited};

fn wait(task: &str, wait: &str, kind: WaitKind, ended: WaitEnd, futile: Option<bool>, ms: [u64; 2]) -> Wait {
    let [count, each] = ms;
    Wait {
        phase: "hot_ready".into(),
        task: task.into(),
        wait: wait.into(),
        kind,
        ended,
        futile,
        count,
        spent_ns: count * each * 1_000_000,
        longest_ns: each * 1_000_000,
        ..Wait::default()
    }
}

/// `congested` of 500 waits of 20 ms ran to their timeout.
fn waited(label: &str, congested: u64) -> Recording {
    use WaitEnd::{Run, Timeout, Wake};
    use WaitKind::{Idle, Io, Pause, Reclaim, Writes};
    let waits = vec![
        wait("reader-0", "congestion_wait", Writes, Timeout, Some(true), [congested, 20]),
        wait("reader-1", "congestion_wait", Writes, Timeout, Some(false), [3, 20]),
        wait("reader-1", "congestion_wait", Writes, Wake, Some(false), [2, 5]),
        wait("reader-1", "folio_wait_locked", Io, Wake, Some(false), [900, 2]),
        Wait {
            phase: "stream_done".into(),
            ..wait("kswapd0", "zonepressure_wait", Reclaim, Timeout, Some(true), [1, 100])
        },
        wait("writer-0", "balance_dirty_pages", Pause, Timeout, Some(false), [4, 10]),
        wait("kswapd0", "kswapd asleep", Idle, Run, Some(false), [1, 9000]),
    ];
    Recording { stalls: Vec::new(), ..run(label, 1, 1710.0) }.waited(waits)
}

#[test]
fn a_run_says_who_waited_for_what_and_how_much_of_it_was_futile() {
    let table = text_of(who_waited(&waited("linux-2.6.32", 500), false), 100);
    insta::assert_snapshot!(table, @r"
    who                 waited for           times   in all      mean  longest  timed out  futile
    reader-* (2 tasks)  congestion_wait        505  10.07 s  19.94 ms    20 ms      >99 %    99 %
    reader-1            folio_wait_locked      900    1.8 s      2 ms     2 ms        0 %       -
    kswapd0             zonepressure_wait        1   100 ms    100 ms   100 ms      100 %   100 %
    writer-0            balance_dirty_pages      4    40 ms     10 ms    10 ms      100 %       -
    ");
    insta::assert_snapshot!(text_of(Section::untitled().with(by_phase(&waited("linux-2.6.32", 500))), 100), @r"
    phase        waited for           times   in all  timed out  futile
    hot_ready    congestion_wait        505  10.07 s      >99 %    99 %
    hot_ready    folio_wait_locked      900    1.8 s        0 %       -
    hot_ready    balance_dirty_pages      4    40 ms      100 %       -
    stream_done  zonepressure_wait        1   100 ms      100 %   100 %
    ");
}

#[test]
fn what_is_not_known_to_be_futile_is_neither_nothing_nor_all() {
    let told = |known: Option<bool>, unknown: u64| {
        let waits = vec![
            wait("t", "congestion_wait", WaitKind::Writes, WaitEnd::Timeout, known, [30, 100]),
            wait("t", "congestion_wait", WaitKind::Writes, WaitEnd::Timeout, None, [unknown, 100]),
        ];
        let recording = run("5.10.0", 1, 1.0).waited(waits);
        let table = text_of(who_waited(&recording, false), 100);
        table.lines().nth(1).and_then(|row| row.rsplit("  ").next()).unwrap_or_default().to_owned()
    };
    assert_eq!(told(None, 3), "not known");
    assert_eq!(told(Some(true), 10), "75 % to 100 %");
    assert_eq!(told(Some(false), 10), "0 % to 25 %");
}

#[test]
fn a_comparison_has_the_time_of_each_wait_and_what_of_it_was_futile() {
    let (base, new) = ([waited("linux-2.6.32", 500)], [waited("linux-2.6.32+pressure-wait", 0)]);
    let groups = [group("linux-2.6.32", &base), group("linux-2.6.32+pressure-wait", &new)];
    let text = compare(&groups, &View::default()).unwrap().render(Format::Text, 100);
    let (_, waits) = text.split_once(" time waited for").unwrap();
    insta::assert_snapshot!(format!("time waited for{waits}"), @r"
    time waited for            linux-2.6.32  linux-2.6.32+pressure-    change
                                                                wait
     congestion_wait                 10.07 s                   70 ms   -99.3 %
     congestion_wait, futile            10 s                    0 ns  -100 %
     folio_wait_locked                 1.8 s                   1.8 s     0 %
     zonepressure_wait                100 ms                  100 ms     0 %
     zonepressure_wait, futile        100 ms                  100 ms     0 %
     balance_dirty_pages               40 ms                   40 ms     0 %
    all 9 counters with `--all`

    made by
      linux-2.6.32: pagetide run hot-and-stream --kernel linux-2.6.32
      linux-2.6.32+pressure-wait: pagetide run hot-and-stream --kernel linux-2.6.32+pressure-wait
    ");
    let markdown = compare(&groups, &View::default()).unwrap().render(Format::Markdown, 100);
    assert!(markdown.contains("| congestion_wait, futile | 10 s | 0 ns | -100 % |"), "{markdown}");
}

/// A real kernel tells of some waits only: of the others nothing is known, and of those that it tells
/// of none means 0.
#[test]
fn waits_without_a_tracepoint_are_not_counted_on_a_real_kernel() {
    let model = [waited("linux-6.1", 500)];
    let mut guest = Recording { backend: "vm:6.1".into(), stalls: Vec::new(), ..run("6.1.0", 1, 1710.0) };
    guest.metrics.insert("wait_seconds".into(), 0.0);
    let guest = [guest];
    let text = compare(&[group("model", &model), group("guest", &guest)], &View::default())
        .unwrap()
        .render(Format::Text, 100);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("folio_wait_locked"), "1.8 s not counted -");
    assert_eq!(row("congestion_wait "), "10.07 s 0 ns -100 %");
}

#[test]
fn programs_get_all_of_it() {
    let recording = waited("linux-2.6.32", 500);
    let json: serde_json::Value =
        serde_json::from_str(&metrics(&[&recording], &View::default()).unwrap().render(Format::Json, 80))
            .unwrap();
    let first = &json["runs"][0]["waits"][0];
    let told = ["task", "wait", "kind", "ended", "futile", "count", "spent_seconds"]
        .map(|key| first[key].to_string());
    assert_eq!(told.join(" "), r#""reader-0" "congestion_wait" "writes" "timeout" true 500 10.0"#);
    let csv = metrics(&[&recording], &View::default()).unwrap().render(Format::Csv, 80);
    let rows: Vec<&str> = csv.lines().filter(|line| line.contains(",wait:congestion_wait,")).collect();
    insta::assert_snapshot!(rows.join("\n"), @r"
    hot-and-stream,linux-2.6.32,sim,linux-2.6.32,1,wait:congestion_wait,reader-0,times,500
    hot-and-stream,linux-2.6.32,sim,linux-2.6.32,1,wait:congestion_wait,reader-0,seconds,10
    hot-and-stream,linux-2.6.32,sim,linux-2.6.32,1,wait:congestion_wait,reader-0,futile_seconds,10
    hot-and-stream,linux-2.6.32,sim,linux-2.6.32,1,wait:congestion_wait,reader-1,times,5
    hot-and-stream,linux-2.6.32,sim,linux-2.6.32,1,wait:congestion_wait,reader-1,seconds,0.07
    hot-and-stream,linux-2.6.32,sim,linux-2.6.32,1,wait:congestion_wait,reader-1,futile_seconds,0
    ");
}
