//! Events of small runs, as whoever explains a run meets them.

use mm::base::event::Detail;
use recording::events::{Event, Names};

use crate::{Recording, Request, Subject, events_of, simulate};

fn request(workload: &str, kernel: &str, mem: &str, params: &[&str]) -> crate::Scenario {
    let request = Request {
        kernel: Some(kernel.to_owned()),
        mem: Some(mem.to_owned()),
        params: params.iter().map(|&pair| pair.to_owned()).collect(),
        ..Request::new(Subject::Workload(workload.to_owned()))
    };
    request.resolve().unwrap()
}

fn told(scenario: &crate::Scenario, detail: Detail) -> (Recording, Names, Vec<Event>) {
    events_of(scenario, detail).unwrap()
}

const HOT: [&str; 2] = ["hot=10M", "stream=300M"];

/// What became of page 17 of the hot file, line by line, from its first read to its last reclaim.
fn story(names: &Names, events: &[Event], file: &str, page: u64) -> Vec<String> {
    let text = |id: Option<recording::events::NameId>| id.map_or("-", |id| names.text(id)).to_owned();
    let is_it = |event: &&Event| {
        let covers = event.page.is_some_and(|first| (first..first + u64::from(event.pages)).contains(&page));
        event.file.is_some() && event.file == names.find(file) && covers
    };
    let line = |event: &Event| {
        let name = names.text(event.event);
        format!("{name} of {} by {}: {}", text(event.cgroup), text(event.task), text(event.reason))
    };
    events.iter().filter(is_it).map(line).collect()
}

#[test]
fn a_page_is_read_in_activated_deactivated_reclaimed_and_refaults() {
    let scenario = request("hot-and-stream", "linux-6.12", "256M", &HOT);
    let (recording, names, events) = told(&scenario, Detail::Page);
    let files: std::collections::BTreeSet<&str> =
        events.iter().filter_map(|event| event.file).map(|id| names.text(id)).collect();
    println!("{files:?}");
    println!("{} events, {} bytes", events.len(), size_of::<Event>());
    for (name, count) in count(&names, &events) {
        println!("{count:9} {name}");
    }
    for line in story(&names, &events, "hot", 17).iter().take(40) {
        println!("{line}");
    }
    let stop = std::sync::Arc::default();
    let alone = simulate(&scenario, &recording.label, &stop, |_| {}).unwrap();
    assert_eq!(Recording { wall_ns: None, ..alone }, Recording { wall_ns: None, ..recording });
}

fn count(names: &Names, events: &[Event]) -> std::collections::BTreeMap<String, u64> {
    let mut counts = std::collections::BTreeMap::new();
    for event in events {
        *counts.entry(names.text(event.event).to_owned()).or_default() += 1;
    }
    counts
}
