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
    insta::assert_snapshot!(first, @"");
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
    insta::assert_snapshot!(told.join("\n"), @"");
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
    insta::assert_snapshot!(story, @"");
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
    assert!(markdown.contains("\n## who waited, where, on whom\n"), "{markdown}");
}

#[test]
fn what_it_cannot_answer_is_refused_with_what_can() {
    let scene = Scene::new();
    scene.data(&format!("-q run {PART} --out rec"));
    let told = refused(
        &scene,
        &[
            "explain rec --file hot",
            "explain rec --kernel linux-5.4",
            "explain rec --page 3",
            "explain rec --file hot --page 9-3",
            "explain nowhere",
            "-q explain hot-and-stream --mem 64M --param hot=1M --param stream=70M --file hut",
        ],
    );
    insta::assert_snapshot!(told, @"");
}
