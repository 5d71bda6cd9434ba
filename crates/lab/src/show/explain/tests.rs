//! Explanations of real runs: what they tell is what the events and counters of the run say.

use recording::{Event, Names};
use serde_json::Value;

use report::{Format, View};

use super::*;
use crate::resolve::request::{Request, Subject};
use crate::run::simulate::{events_of, simulate};

/// A hot file that a stream evicts, in a cgroup that is protected in part.
fn scenario() -> Scenario {
    let request = Request {
        kernel: Some("linux-5.4".to_owned()),
        mem: Some("128M".to_owned()),
        params: ["hot=16M", "stream=400M", "low=4M"].map(String::from).to_vec(),
        ..Request::new(Subject::Workload("hot-and-stream".to_owned()))
    };
    request.resolve().unwrap()
}

fn explained(question: Question) -> With {
    let plan = PlannedRun { label: "a run".to_owned(), scenario: scenario() };
    run(&plan, question, &Control::default()).unwrap()
}

fn asked(file: &str, pages: Option<std::ops::RangeInclusive<u64>>) -> Question {
    Question { file: Some(file.to_owned()), pages }
}

fn json(with: &With) -> Value {
    let With { recording, events, .. } = with;
    let explained = report::Explained { recording, events: events.as_ref(), with_events: None };
    serde_json::from_str(&report::views::explain(&explained, &View::default()).render(Format::Json, 80))
        .unwrap()
}

/// The events of a run that are about these pages of a file, in a form that the story has, too.
fn told_of(names: &Names, events: &[Event], file: &str, first: u64, last: u64) -> Vec<Value> {
    let text = |id: Option<recording::NameId>| id.map(|id| names.text(id));
    let is_it = |event: &&Event| {
        let begins = event.page.unwrap_or(u64::MAX);
        text(event.file) == Some(file) && begins <= last && begins + u64::from(event.pages) > first
    };
    let told = |event: &Event| {
        serde_json::json!({
            "time_ns": event.time_ns,
            "event": names.text(event.event),
            "task": text(event.task),
            "cgroup": text(event.cgroup),
            "by_cgroup": text(event.by_cgroup),
            "page": event.page,
            "pages": event.pages,
            "priority": event.priority,
            "reason": text(event.reason),
            "value": event.value,
        })
    };
    events.iter().filter(is_it).map(told).collect()
}

/// The whole story of pages equals what the events of the run say, for pages that were evicted, too.
#[test]
fn stories_of_pages_are_the_events_of_the_run_no_more_and_no_less() {
    let (_, names, events) = events_of(&scenario(), Detail::Page).unwrap();
    let with = explained(asked("hot", Some(0..=4095)));
    let mut story = json(&with)["story"].as_array().unwrap().clone();
    for told in &mut story {
        let told = told.as_object_mut().unwrap();
        let says = told.remove("says").unwrap();
        assert!(!says.as_str().unwrap().is_empty());
    }
    let of_events = told_of(&names, &events, "hot", 0, 4095);
    let pages: u64 = of_events.iter().map(|told| told["pages"].as_u64().unwrap()).sum();
    assert!(pages > 4 * 4096, "{pages} pages in events of the hot file");
    assert_eq!(story.len(), of_events.len());
    assert!(story == of_events, "a story differs from the events of the run");

    // One page that went and came back, by itself and in words.
    let refaulted = names.find("page_refaulted").expect("pages come back");
    let page = events.iter().find(|event| event.event == refaulted).and_then(|event| event.page).unwrap();
    let with = explained(asked("hot", Some(page..=page)));
    let story = json(&with)["story"].as_array().unwrap().clone();
    let wanted = told_of(&names, &events, "hot", page, page);
    assert_eq!(story.len(), wanted.len());
    let text = {
        let With { recording, events, .. } = &with;
        let explained = report::Explained { recording, events: events.as_ref(), with_events: None };
        report::views::explain(&explained, &View { all: true, ..View::default() }).render(Format::Text, 200)
    };
    let evictions = wanted.iter().filter(|told| told["event"] == "page_reclaimed").count();
    assert!(evictions > 0, "page {page} was evicted");
    for (what, count) in
        [("is evicted for the machine at priority", evictions), ("is asked for again after", 1)]
    {
        assert!(text.matches(what).count() >= count, "{what}: {text}");
    }
    assert_eq!(text.matches(" was evicted").count(), evictions, "the paragraph tells each eviction: {text}");
}

/// Every page that the counters say was reclaimed or came back is in the matrix, and in the table of files.
#[test]
fn evictions_and_files_add_up_to_the_counters() {
    let with = explained(Question::default());
    let json = json(&with);
    let vmstat = |name: &str| with.recording.vmstat.get(name).copied().unwrap_or(0);
    let sum = |list: &Value, key: &str| -> u64 {
        list.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
    };
    let reclaimed = vmstat("pgsteal_kswapd") + vmstat("pgsteal_direct");
    assert!(reclaimed > 50_000, "{reclaimed} pages");
    assert_eq!(sum(&json["evictions"]["cells"], "pages"), reclaimed);
    assert_eq!(sum(&json["evictions"]["by"], "pages"), reclaimed);
    assert_eq!(sum(&json["files"], "reclaimed"), reclaimed);
    assert_eq!(sum(&json["files"], "refaulted"), vmstat("workingset_refault_file"));
    let refaults = json["evictions"]["came_back"].as_object().unwrap();
    let refaults: u64 = refaults.values().map(|pages| pages.as_u64().unwrap()).sum();
    assert_eq!(refaults, vmstat("workingset_refault_file"));
    // What A lost it lost for B's stream.
    let cell = |of: &str, whose: &str| {
        let cells = json["evictions"]["cells"].as_array().unwrap();
        let is_it = |cell: &&Value| cell["of"] == of && cell["for"] == whose;
        cells.iter().find(is_it).map_or(0, |cell| cell["pages"].as_u64().unwrap())
    };
    let lost = with.recording.memcg["A"]["pgsteal"];
    assert!(lost > 0 && cell("A", "B") * 10 >= lost * 9, "{lost} pages of A, {} for B", cell("A", "B"));
}

/// The run is the same one whether it is explained or not.
#[test]
fn explaining_a_run_does_not_change_it() {
    let with = explained(Question::default());
    let alone = simulate(&scenario(), "a run", &Arc::default(), |_| {}).unwrap();
    assert_eq!(Recording { wall_ns: None, ..alone }, Recording { wall_ns: None, ..with.recording });
}

#[test]
fn a_file_without_events_is_refused_with_the_nearest_name() {
    let plan = PlannedRun { label: "a run".to_owned(), scenario: scenario() };
    let error = run(&plan, asked("hott", None), &Control::default()).unwrap_err();
    assert_eq!(error.to_string(), "unknown file with events `hott`");
    assert_eq!(error.hint().unwrap(), "did you mean `hot`?");
}

/// A recording on disk answers what it can; for the rest it names the command that records more.
#[test]
fn a_recording_without_events_names_the_command_that_records_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let alone = simulate(&scenario(), "a run", &Arc::default(), |_| {}).unwrap();
    alone.write(&path).unwrap();
    let subject = path.to_str().unwrap();
    let told = recorded(subject, &Question::default()).unwrap().unwrap();
    assert!(told.events.is_none());
    let error = recorded(subject, &asked("hot", None)).unwrap_err();
    let command = format!("pagetide run {subject}/scenario.toml --events pages --out DIR");
    assert_eq!(error.to_string(), "`a run` was recorded without events of pages");
    assert_eq!(error.hint().unwrap(), format!("record them with `{command}`"));
    assert!(recorded("hot-and-stream", &Question::default()).unwrap().is_none());
}
