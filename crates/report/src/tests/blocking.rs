//! Who blocks on whom, in a small world: two creators stall on inodes, kswapd does, too.

use recording::{SectionTime, Wait, WaitKind};

use super::*;
use crate::views::who_blocks;

const STALL: &str = "allocation stall";
const SHRINKER: &str = "allocation stall > super-block shrinker";

fn time(task: &str, within: &str, count: u64, ms: u64) -> SectionTime {
    SectionTime {
        phase: String::new(),
        task: task.into(),
        within: within.into(),
        count,
        spent_ns: ms * 1_000_000,
        longest_ns: ms * 1_000_000,
        waited: count / 2,
    }
}

fn wait(task: &str, within: &str, wait: &str, on: &str, count: u64, ms: u64) -> Wait {
    Wait {
        task: task.into(),
        wait: wait.into(),
        within: within.into(),
        on: on.into(),
        kind: WaitKind::Io,
        futile: Some(false),
        count,
        spent_ns: ms * 1_000_000,
        longest_ns: ms * 1_000_000,
        ..Wait::default()
    }
}

fn told(label: &str, sections: Vec<SectionTime>, waits: Vec<Wait>) -> Recording {
    Recording { stalls: Vec::new(), ..run(label, 1, 1710.0) }.waited(waits).within(sections)
}

/// Of 10 s in allocation stalls 8 s were waits for inodes, 7 of them for a lock that kswapd had.
fn vanilla() -> Recording {
    let inode = "xfs_reclaim_inode";
    let own = "own inode write";
    let lock = "group lock held by kswapd";
    told(
        "linux-5.7",
        vec![
            time("creator-0", STALL, 30, 6000),
            time("creator-1", STALL, 20, 4000),
            time("creator-0", SHRINKER, 300, 5000),
            time("creator-1", SHRINKER, 200, 3500),
            time("kswapd0", "kswapd", 2, 9000),
            time("kswapd0", "kswapd > super-block shrinker", 20, 8000),
        ],
        vec![
            wait("creator-0", SHRINKER, inode, own, 10, 1000),
            wait("creator-0", SHRINKER, inode, lock, 5, 3900),
            wait("creator-1", SHRINKER, inode, lock, 5, 3100),
            wait("creator-1", STALL, "congestion_wait", "any write to a disk", 3, 300),
            wait("creator-1", STALL, "folio_wait_locked", "read of a page", 1, 1),
            wait("creator-1", "", "xlog_grant_head_wait", "", 7, 2000),
            wait("kswapd0", "kswapd > super-block shrinker", inode, own, 900, 7900),
        ],
    )
}

fn changed() -> Recording {
    let sections = vec![time("kswapd0", "kswapd", 2, 900), time("creator-1", "allocation pause", 3, 300)];
    let pause = wait("creator-1", "allocation pause", "congestion_wait", "any write to a disk", 3, 300);
    told("linux-5.7+async-inode-reclaim", sections, vec![pause])
}

#[test]
fn a_run_says_who_blocks_on_whom_and_what_part_of_the_stalls_that_is() {
    insta::assert_snapshot!(text_of(who_blocks(&vanilla(), false), 110), @r"
    allocation stalls: 50 of 2 tasks, 10 s in all; 25 of them waited, 8.301 s (83 %), 8 s of that in
      xfs_reclaim_inode inside the super-block shrinker
     who blocks on whom                      who                  times  in all  of it
     allocation stall                        creator-* (2 tasks)     50    10 s  100 %
       super-block shrinker                  creator-* (2 tasks)    500   8.5 s   85 %
         xfs_reclaim_inode                   creator-* (2 tasks)     20     8 s   80 %
           group lock held by kswapd         creator-* (2 tasks)     10     7 s   70 %
           own inode write                   creator-0               10     1 s   10 %
       congestion_wait: any write to a disk  creator-1                3  300 ms    3 %
     kswapd                                  kswapd0                  2     9 s  100 %
       super-block shrinker                  kswapd0                 20     8 s   89 %
         xfs_reclaim_inode: own inode write  kswapd0                900   7.9 s   88 %
    ");
    insta::assert_snapshot!(text_of(who_blocks(&changed(), true), 110), @r"
    allocation stalls: none; 3 pauses before another try, 300 ms
     who blocks on whom                      who        times  in all  of it
     kswapd                                  kswapd0        2  900 ms  100 %
     allocation pause                        creator-1      3  300 ms  100 %
       congestion_wait: any write to a disk  creator-1      3  300 ms  100 %
    ");
    let idle = told("linux-6.12", vec![time("kswapd0", "kswapd", 2, 900)], Vec::new());
    assert_eq!(text_of(who_blocks(&idle, false), 110), "", "nobody blocks on anybody");
    let all = text_of(who_blocks(&vanilla(), true), 110);
    assert!(all.contains("folio_wait_locked: read of a page"), "what is little is shown on demand: {all}");
}

#[test]
fn a_comparison_has_the_same_paths_side_by_side() {
    let (base, new) = ([vanilla()], [changed()]);
    let groups = [group("linux-5.7", &base), group("linux-5.7+async-inode-reclaim", &new)];
    let text = compare(&groups, &View::default()).unwrap().render(Format::Text, 110);
    let (_, told) = text.split_once("who blocks on whom").unwrap();
    let (told, _) = told.split_once("all 9 counters").unwrap();
    insta::assert_snapshot!(format!("who blocks on whom{told}"), @r"
    who blocks on whom                      linux-5.7  linux-5.7+async-inode-   change
                                                                       reclaim
     allocation stall                             10 s                    0 ns  -100 %
     allocation stall, times                        50                       0  -100 %
       super-block shrinker                      8.5 s                    0 ns  -100 %
         xfs_reclaim_inode                         8 s                    0 ns  -100 %
           group lock held by kswapd               7 s                    0 ns  -100 %
           own inode write                         1 s                    0 ns  -100 %
       congestion_wait: any write to a disk     300 ms                    0 ns  -100 %
     kswapd                                        9 s                  900 ms   -90 %
     kswapd, times                                   2                       2     0 %
       super-block shrinker                        8 s                    0 ns  -100 %
         xfs_reclaim_inode: own inode write      7.9 s                    0 ns  -100 %
     allocation pause                             0 ns                  300 ms  +300 ms
     allocation pause, times                         0                       3    +3
       congestion_wait: any write to a disk       0 ns                  300 ms  +300 ms
    linux-5.7: allocation stalls: 50 of 2 tasks, 10 s in all; 25 of them waited, 8.301 s (83 %), 8 s of that in
      xfs_reclaim_inode inside the super-block shrinker
    linux-5.7+async-inode-reclaim: allocation stalls: none; 3 pauses before another try, 300 ms
    ");
    let markdown = compare(&groups, &View::default()).unwrap().render(Format::Markdown, 110);
    let row = "| allocation stall > super-block shrinker > xfs_reclaim_inode | 8 s | 0 ns | -100 % |";
    assert!(markdown.contains(row), "{markdown}");
}

/// Recordings of real kernels and older ones do not tell: nothing is said, rather than 0.
#[test]
fn who_does_not_tell_has_no_section_and_no_figure() {
    let old = run("linux-5.7", 1, 1710.0);
    assert_eq!(text_of(who_blocks(&old, true), 100), "");
    let (base, new) = ([vanilla()], [old]);
    let text = compare(&[group("new", &base), group("old", &new)], &View::default())
        .unwrap()
        .render(Format::Text, 110);
    let row = text.lines().find(|line| line.trim_start().starts_with("allocation stall  ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["allocation", "stall", "10", "s", "none", "-"]);
}

#[test]
fn programs_get_sections_and_paths() {
    let recording = vanilla();
    let json: serde_json::Value =
        serde_json::from_str(&metrics(&[&recording], &View::default()).unwrap().render(Format::Json, 80))
            .unwrap();
    let run = &json["runs"][0];
    assert_eq!((&run["waits"][1]["within"], &run["sections"][0]["count"]), (&SHRINKER.into(), &30.into()));
    assert_eq!(run["waits"][1]["on"], "group lock held by kswapd");
    let csv = metrics(&[&recording], &View::default()).unwrap().render(Format::Csv, 80);
    let rows: Vec<&str> =
        csv.lines().filter(|line| line.contains("within:allocation stall")).take(4).collect();
    insta::assert_snapshot!(rows.join("\n"), @r"
    hot-and-stream,linux-5.7,sim,linux-5.7,1,within:allocation stall,creator-0,times,30
    hot-and-stream,linux-5.7,sim,linux-5.7,1,within:allocation stall,creator-0,seconds,6
    hot-and-stream,linux-5.7,sim,linux-5.7,1,within:allocation stall,creator-1,times,20
    hot-and-stream,linux-5.7,sim,linux-5.7,1,within:allocation stall,creator-1,seconds,4
    ");
}
