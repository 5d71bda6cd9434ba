//! Events of small runs, as whoever explains a run meets them.

use std::collections::BTreeMap;
use std::sync::Arc;

use mm::base::event::Detail;
use recording::events::{Event, NameId, Names};

use crate::{Recording, Request, Scenario, Subject, events_of, simulate};

fn scenario(workload: &str, kernel: &str, mem: &str, params: &[&str]) -> Scenario {
    let request = Request {
        kernel: Some(kernel.to_owned()),
        mem: Some(mem.to_owned()),
        params: params.iter().map(|&pair| pair.to_owned()).collect(),
        ..Request::new(Subject::Workload(workload.to_owned()))
    };
    request.resolve().unwrap()
}

/// What was told of a run, with its names.
struct Told {
    recording: Recording,
    names: Names,
    events: Vec<Event>,
}

impl Told {
    fn of(scenario: &Scenario) -> Self {
        let (recording, names, events) = events_of(scenario, Detail::Page).unwrap();
        Self { recording, names, events }
    }

    fn text(&self, id: Option<NameId>) -> &str {
        id.map_or("-", |id| self.names.text(id))
    }

    fn called(&self, event: &str) -> impl Iterator<Item = &Event> {
        let name = self.names.find(event);
        self.events.iter().filter(move |event| Some(event.event) == name)
    }

    /// What became of a page of a file.
    fn story(&self, file: &str, page: u64) -> Vec<String> {
        let file = self.names.find(file);
        let covers = |event: &Event, first: u64| (first..first + u64::from(event.pages)).contains(&page);
        let is_it = |event: &&Event| {
            event.file.is_some() && event.file == file && event.page.is_some_and(|first| covers(event, first))
        };
        let line = |event: &Event| {
            let (name, task) = (self.names.text(event.event), self.text(event.task));
            let priority = event.priority.map_or(String::new(), |priority| format!(" at {priority}"));
            format!("{name} by {task}{priority}: {}", self.text(event.reason))
        };
        self.events.iter().filter(is_it).map(line).collect()
    }
}

const HOT: [&str; 4] = ["hot=8M", "stream=128M", "topology=parent", "limit=24M"];

#[test]
fn listening_changes_nothing_of_a_recording() {
    let scenario = scenario("hot-and-stream", "linux-6.12", "128M", &HOT);
    let told = Told::of(&scenario);
    let alone = simulate(&scenario, "events", &Arc::default(), |_| {}).unwrap();
    assert_eq!(Recording { wall_ns: None, ..alone }, Recording { wall_ns: None, ..told.recording });
}

/// Every event is of a known file, and every page comes before it goes.
#[test]
fn the_story_of_every_page_makes_sense() {
    let told = Told::of(&scenario("hot-and-stream", "linux-6.12", "128M", &HOT));
    let name = |text| told.names.find(text).unwrap();
    let (added, deleted) = (name("mm_filemap_add_to_page_cache"), name("mm_filemap_delete_from_page_cache"));
    let mut resident = BTreeMap::new();
    let device = |event: &Event| told.text(event.file).starts_with("block device");
    let is_of_page = |event: &&Event| event.file.is_some() && event.order.is_some();
    for event in told.events.iter().filter(is_of_page) {
        let (first, pages) = (event.page.unwrap(), u64::from(event.pages));
        for page in (first..first + pages).step_by(1 << event.order.unwrap()) {
            let page = (event.file.unwrap(), page);
            if event.event == added {
                assert_eq!(resident.insert(page, event.order), None, "{event:?} comes twice");
            } else {
                assert_eq!(resident.get(&page), Some(&event.order), "{event:?}: it is not there");
            }
            if event.event == deleted {
                resident.remove(&page);
            }
        }
    }
    assert!(
        told.events.iter().any(|event| device(event) && event.order.is_some()),
        "metadata is cached, too"
    );
    let left: u64 = resident.values().map(|order| 1 << order.unwrap()).sum();
    assert_eq!(left, told.recording.vmstat["nr_file_pages"]);
}

/// ```text
///   hot file of 8 MiB, limit of 24 MiB: page 17 is read, read again and activated;
///   the stream pushes pages of its own out, which go as they came
/// ```
#[test]
fn hot_pages_are_activated_and_those_of_a_stream_go_as_they_came() {
    let told = Told::of(&scenario("hot-and-stream", "linux-6.12", "128M", &HOT));
    insta::assert_snapshot!(told.story("hot", 17).join("\n"));
    insta::assert_snapshot!(told.story("stream", 17).join("\n"));
}

/// Lengths took CPU time in that a task had charged before: they added up to 332 ms where sections said 191.
#[test]
fn stays_in_reclaim_are_as_long_as_their_sections() {
    let told = Told::of(&scenario("hot-and-stream", "linux-6.12", "128M", &HOT));
    let ends = ["mm_vmscan_direct_reclaim_end", "mm_vmscan_memcg_reclaim_end"];
    let lasted: u64 = ends.iter().flat_map(|name| told.called(name)).map(|event| event.duration_ns).sum();
    let sections = told.recording.sections.iter();
    let sections = sections.filter(|time| ["allocation stall", "limit reclaim"].contains(&&*time.within));
    let stalled: u64 = sections.map(|time| time.spent_ns).sum();
    assert!(lasted > 0 && lasted <= stalled, "{lasted} ns of {stalled}");
    assert!(lasted * 100 > stalled * 95, "{lasted} ns of {stalled}: a stall is little else than reclaim");
}

#[test]
fn what_lasts_is_told_when_it_ends_and_has_begun_before() {
    let told = Told::of(&scenario("hot-and-stream", "linux-6.12", "128M", &HOT));
    let mut last = 0;
    for event in &told.events {
        let at = event.time_ns + event.duration_ns;
        assert!(at >= last, "{event:?} is told late");
        last = at;
    }
    for (begin, end) in [
        ("mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end"),
        ("mm_vmscan_memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_end"),
        ("mm_shrink_slab_start", "mm_shrink_slab_end"),
    ] {
        let tasks = |name| {
            let mut tasks: Vec<_> = told.called(name).map(|event| event.task).collect();
            tasks.sort_unstable();
            tasks
        };
        assert_eq!(tasks(begin), tasks(end));
    }
}
