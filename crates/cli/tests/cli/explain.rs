//! `pagetide explain`: what a person reads first, of runs and of recordings; and what it cannot answer.

use crate::support::{Scene, refused};

/// Vanilla readers in little memory: the waits that source 1 is about.
const READERS: &str = "sequential-readers --kernel linux-2.6.32 --mem 64M --param file=16M --param readers=8";
/// A hot file that is protected in part, and a stream that takes the rest of it.
const PART: &str =
    "hot-and-stream --kernel linux-5.4 --mem 128M --param hot=16M --param stream=400M --param low=4M";

/// The paragraph in one line, without the line breaks of a terminal.
fn paragraph(text: &str) -> String {
    let (_, below) = text.split_once("\n\n").expect("a title");
    below.split("\n\n").next().expect("a paragraph").replace('\n', " ")
}

#[test]
fn the_first_lines_say_how_many_seconds_were_spent_in_waits_that_nothing_could_end() {
    let scene = Scene::new();
    let text = scene.data(&format!("-q explain {READERS}"));
    let first = paragraph(&text);
    assert!(first.starts_with("Tasks spent "), "{first}");
    insta::assert_snapshot!(first, @"Tasks spent 218.4 ms in waits that nothing could end: 55 % of 398.1 ms that the allocator and reclaim made tasks wait. They were 4 tasks `reader*` in phase `read_done`: 8 times in `congestion_wait` until its timeout, 14.94 ms each, while nothing was under way that could have woken them; another kind is below. All waiting of all tasks, disks included, was 5.506 s: 3.713 s of 8 tasks `writer*` in `balance_dirty_pages` and 1.341 s of 8 tasks `reader*` in `folio_wait_locked`. Reclaim freed 39706 pages (155 MiB), 86 % of them by tasks themselves in 538 allocation stalls of 28.57 ms altogether and pauses between them of 119.7 ms.");
}

#[test]
fn memory_low_did_or_did_not_protect_and_the_paragraph_says_why() {
    let scene = Scene::new();
    let why = |kernel: &str, low: &str, more: &str| {
        let run = format!("hot-and-stream --kernel {kernel} --mem 128M --param hot=16M --param stream=400M");
        let text = scene.data(&format!("-q explain {run} --param low={low} {more}"));
        let first = paragraph(&text);
        let (_, why) = first.split_once("`memory.low` of ").expect("it is set");
        format!("{kernel} low={low} {more}: {why}")
    };
    const PARENT: &str = "--param topology=parent --param limit=48M";
    let told = [
        why("linux-5.4", "4M", ""),
        why("linux-5.4", "20M", ""),
        why("linux-6.12", "4M", ""),
        why("linux-6.12", "4M", PARENT),
        why("linux-6.12", "20M", PARENT),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    linux-5.4 low=4M : 4 MiB on cgroup `A` protected a part: it used 16.1 MiB at most, and what is above its protection reclaim may take, since Linux 5.4 the less the nearer it is: it went down to 10 MiB; 1599 of its pages were reclaimed, 1598 came back. No walk of reclaim found it below its protection.
    linux-5.4 low=20M : 20 MiB on cgroup `A` protected it: it used 16.3 MiB at most, so every walk of reclaim could pass it by; it lost nothing while 75433 pages were taken elsewhere. Reclaim passed it by 2053 times for it.
    linux-6.12 low=4M : 4 MiB on cgroup `A` was not what kept its pages: it used 16.3 MiB at most, more than is protected, and yet reclaim took none of it: no active list was opened in the whole run, so inactive pages of others were enough. No walk of reclaim found it below its protection.
    linux-6.12 low=4M --param topology=parent --param limit=48M: 4 MiB on cgroup `P/A` protected a part: it used 16.2 MiB at most, and what is above its protection reclaim may take, since Linux 5.4 the less the nearer it is: it went down to 7.66 MiB; 2393 of its pages were reclaimed, 2392 came back. No walk of reclaim found it below its protection.
    linux-6.12 low=20M --param topology=parent --param limit=48M: 20 MiB on cgroup `P/A` protected it: it used 16.2 MiB at most, so every walk of reclaim could pass it by; it lost nothing while 94572 pages were taken elsewhere. Reclaim passed it by 8355 times for it.
    ");
}

/// Every line of the story is an event, and recorded events tell the same as those of the run itself.
#[test]
fn a_page_has_the_same_story_in_a_run_and_in_its_recording() {
    let scene = Scene::new();
    scene.data(&format!("-q run {PART} --events pages --out rec"));
    let of_run = scene.data(&format!("-q explain {PART} --file hot --page 5"));
    let of_recording = scene.data("-q explain rec --file hot --page 5");
    assert_eq!(of_run, of_recording);
    let story = of_recording.split("\n\n").nth(2).expect("the story stands below the paragraph");
    insta::assert_snapshot!(story, @"
    the story of page 5 of `hot`
    Page 5 of `hot` came into memory 6.54 ms into the run, for `hot`. It was evicted
    by `kswapd0` 40.74 ms into the run for the machine at priority 6 (not
    referenced), 31.67 ms after its last access and 6.158 ms after it was taken off
    the active list. 61.32 ms later `reread` asked for it again, after a distance of
    1570 pages (not activated: distance beyond the active list). At the end of the
    run it was in memory.
             at  by       what
     0.006540 s  hot      comes into the page cache, charged to `A`
     0.006540 s  hot      is on the inactive list
     0.006574 s  hot      is accessed: referenced
     0.009071 s  hot      is accessed: activated
     0.009071 s  hot      goes to the active list: activated
     0.034582 s  kswapd0  goes from the active list to the inactive one for the
                          machine at priority 10
     0.040741 s  kswapd0  is evicted for the machine at priority 6: not referenced
     0.040741 s  kswapd0  leaves the page cache: reclaimed
     0.102063 s  reread   comes into the page cache, charged to `A`
     0.102063 s  reread   is asked for again after 1570 pages: not activated:
                          distance beyond the active list
     0.102063 s  reread   is on the inactive list
     0.102097 s  reread   is accessed: referenced
    ");
}

#[test]
fn stacks_are_lines_of_frames_and_nanoseconds() {
    let scene = Scene::new();
    let folded = scene.data(&format!("-q explain {READERS} --folded"));
    for line in folded.lines() {
        let (stack, ns) = line.rsplit_once(' ').expect("a blank before the number");
        assert!(ns.parse::<u64>().is_ok_and(|ns| ns > 0), "{line}");
        assert!(stack.split(';').all(|frame| !frame.is_empty()), "{line}");
    }
    assert!(folded.contains("reader*;allocation pause;congestion_wait;any write to a disk "), "{folded}");
}

#[test]
fn a_recording_without_events_says_what_is_missing_and_which_command_records_it() {
    let scene = Scene::new();
    scene.data(&format!("-q run {PART} --out rec"));
    let text = scene.data("explain rec").replace('\n', " ");
    assert!(
        text.contains("record them with `pagetide run rec/scenario.toml --events pages --out DIR`"),
        "{text}"
    );
    let markdown = scene.data("explain rec --format md");
    assert!(markdown.contains("\n### who waited, where, on whom\n"), "{markdown}");
}

#[test]
fn what_it_cannot_answer_is_refused_with_what_can() {
    let scene = Scene::new();
    scene.data(&format!("-q run {PART} --out rec"));
    scene.data("-q compare hot-and-stream --mem 32M --param hot=1M --param stream=32M --out two");
    let told = refused(
        &scene,
        &[
            "explain rec --file hot",
            "explain rec --kernel linux-5.4",
            "explain rec --interval 20ms",
            "explain rec --page 3",
            "explain rec --file hot --page 9-3",
            "explain nowhere",
            "explain two",
            "-q explain hot-and-stream --mem 64M --param hot=1M --param stream=70M --file hut",
        ],
    );
    insta::assert_snapshot!(told, @"
    $ explain rec --file hot
    error: `linux-5.4` was recorded without events of pages
    hint: record them with `pagetide run rec/scenario.toml --events pages --out DIR`
    exit 1

    $ explain rec --kernel linux-5.4
    error: `--kernel` is for a run, and `rec` is one that was made already
    exit 2

    $ explain rec --interval 20ms
    error: `--interval` is for a run, and `rec` is one that was made already
    exit 2

    $ explain rec --page 3
    error: the following required arguments were not provided:
      --file <NAME>

    Usage: pagetide explain --file <NAME> --page <N|N-M> <RECORDING|WORKLOAD|FILE>

    For more information, try '--help'.
    exit 2

    $ explain rec --file hot --page 9-3
    error: invalid value '9-3' for '--page <N|N-M>': it takes the number of a page, such as 17, or of several, such as 17-31

    For more information, try '--help'.
    exit 2

    $ explain nowhere
    error: unknown workload `nowhere`
    hint: known names: `anon-and-file`, `containers`, `hot-and-stream`, `huge-faults`, `inode-storm`, `mapped-and-stream`, `random-calls`, `sequential-readers`, `simoop`, `small-files`
    exit 1

    $ explain two
    error: `two` has 2 recordings, and this is about one
    hint: name one, such as `two/1-linux-5.4-seed1`
    exit 1

    $ -q explain hot-and-stream --mem 64M --param hot=1M --param stream=70M --file hut
    error: unknown file with events `hut`
    hint: did you mean `hot`?
    exit 1
    ");
}
