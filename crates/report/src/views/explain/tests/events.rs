//! What events say, in worlds of a few of them.

use recording::{Chunk, Event, Names};

use super::*;

/// Events as they are told, one by one.
#[derive(Default)]
struct World {
    names: Names,
    events: Vec<Event>,
}

impl World {
    /// `name` at `ms` milliseconds, by `task`.
    fn tell(&mut self, ms: u64, name: &str, task: &str) -> &mut Self {
        let task = (!task.is_empty()).then(|| self.names.intern(task));
        let event = Event::new(ms * MS, self.names.intern(name));
        self.events.push(Event { task, node: Some(0), ..event });
        self
    }

    fn last(&mut self) -> &mut Event {
        self.events.last_mut().expect("something was told")
    }

    /// It is about a page of a file that is charged to this cgroup.
    fn page(&mut self, file: &str, page: u64, cgroup: &str) -> &mut Self {
        let (file, cgroup) = (self.names.intern(file), self.names.intern(cgroup));
        let event = self.last();
        (event.file, event.cgroup, event.page, event.pages) = (Some(file), Some(cgroup), Some(page), 1);
        self
    }

    fn why(&mut self, reason: &str) -> &mut Self {
        self.last().reason = Some(self.names.intern(reason));
        self
    }

    /// Reclaim for the sake of this cgroup, empty for the machine.
    fn by(&mut self, target: &str, priority: u8) -> &mut Self {
        let target = self.names.intern(target);
        let event = self.last();
        (event.by_cgroup, event.priority) = (Some(target), Some(priority));
        self
    }

    fn value(&mut self, value: i64) -> &mut Self {
        self.last().value = Some(value);
        self
    }

    fn lasts(&mut self, ms: u64) -> &mut Self {
        self.last().duration_ns = ms * MS;
        self
    }

    /// What is made of it when it comes in chunks of so many events.
    fn digest(&self, chunk: usize, question: Question) -> Digest {
        let mut digest = Digest::new(question);
        for events in self.events.chunks(chunk) {
            digest.take(&self.names, &Chunk { events: events.to_vec() });
        }
        digest
    }
}

fn asked(file: &str, pages: std::ops::RangeInclusive<u64>) -> Question {
    Question { file: Some(file.to_owned()), pages: Some(pages) }
}

/// `hot` reads a page of `A` twice; `stream` of `B` has kswapd take it; `reread` wants it back.
fn evicted_once() -> World {
    let mut world = World::default();
    let add = "mm_filemap_add_to_page_cache";
    world.tell(10, "page_accessed", "hot").page("hot", 16, "A").why("referenced");
    world.tell(10, add, "hot").page("hot", 17, "A");
    world.tell(11, "mm_lru_insertion", "hot").page("hot", 17, "A").why("inactive");
    world.tell(11, "page_accessed", "hot").page("hot", 17, "A").why("referenced");
    world.tell(20, "page_accessed", "hot").page("hot", 17, "A").why("activated");
    world.tell(21, "mm_lru_activate", "hot").page("hot", 17, "A").why("activated");
    world.tell(500, add, "stream").page("stream", 0, "B");
    world.tell(500, "mm_vmscan_kswapd_wake", "kswapd0");
    world.tell(510, "page_deactivated", "kswapd0").page("hot", 17, "A").by("", 11);
    world.tell(560, "page_reclaimed", "kswapd0").page("hot", 17, "A").by("", 10).why("not referenced");
    world.tell(560, "mm_filemap_delete_from_page_cache", "kswapd0").page("hot", 17, "A").why("reclaimed");
    world.tell(600, "mm_vmscan_kswapd_sleep", "kswapd0");
    world
        .tell(900, "page_refaulted", "reread")
        .page("hot", 17, "A")
        .value(1234)
        .why("activated: distance short");
    world.tell(900, add, "reread").page("hot", 17, "A");
    world
}

#[test]
fn the_story_of_a_page_is_every_event_of_it_in_their_order() {
    let digest = evicted_once().digest(5, asked("hot", 17..=17));
    insta::assert_snapshot!(text_of(digest.stories.sections(false).swap_remove(0), 100), @"
    the story of page 17 of `hot`
    Page 17 of `hot` came into memory 10 ms into the run, for `hot`. It was evicted by `kswapd0` 560 ms
    into the run for the machine at priority 10 (not referenced), 540 ms after its last access and 50 ms
    after it was taken off the active list. 340 ms later `reread` asked for it again, after a distance
    of 1234 pages (activated: distance short). At the end of the run it was in memory.
             at  by       what
     0.010000 s  hot      comes into the page cache, charged to `A`
     0.011000 s  hot      is on the inactive list
     0.011000 s  hot      is accessed: referenced
     0.020000 s  hot      is accessed: activated
     0.021000 s  hot      goes to the active list: activated
     0.510000 s  kswapd0  goes from the active list to the inactive one for the machine at priority 11
     0.560000 s  kswapd0  is evicted for the machine at priority 10: not referenced
     0.560000 s  kswapd0  leaves the page cache: reclaimed
     0.900000 s  reread   is asked for again after 1234 pages: activated: distance short
     0.900000 s  reread   comes into the page cache, charged to `A`
    ");
    let (_, story) = digest.stories.json();
    let times: Vec<u64> =
        story.as_array().unwrap().iter().map(|told| told["time_ns"].as_u64().unwrap() / MS).collect();
    assert_eq!(times, [10, 11, 11, 20, 21, 510, 560, 560, 900, 900]);
}

#[test]
fn a_page_that_never_came_and_one_that_never_went_say_so() {
    let told = |page: u64| {
        let digest = evicted_once().digest(100, asked("hot", page..=page));
        text_of(digest.stories.sections(false).swap_remove(0), 200)
    };
    assert_eq!(
        told(18),
        "the story of page 18 of `hot`\nNo event is about page 18 of `hot`: it never came into memory.\n"
    );
    assert!(told(16).contains(" It was never evicted."), "{}", told(16));
}

#[test]
fn the_story_of_a_file_sums_up_its_pages() {
    let question = Question { file: Some("hot".into()), pages: None };
    let digest = evicted_once().digest(100, question);
    insta::assert_snapshot!(text_of(digest.stories.sections(false).swap_remove(0), 100), @"
    the story of `hot`
    Pages of `hot` came into memory twice, were accessed 3 times, activated once and deactivated once;
    pages were evicted once (1 page once), and came back once, most of them after a distance of 1024 to
    2048 pages. One of them: `--file hot --page 17`.
     what                 pages  by       for          at priorities  why
     came in                  1  hot
     came in                  1  reread
     put on a list            1  hot                                  inactive
     accessed                 2  hot                                  referenced
     accessed                 1  hot                                  activated
     activated                1  hot                                  activated
     deactivated              1  kswapd0  the machine  11
     evicted                  1  kswapd0  the machine  10             not referenced
     came back                1  reread                               activated: distance short
     left the page cache      1  kswapd0                              reclaimed
    ");
    assert_eq!(digest.unknown_file(), None);
    let other = evicted_once().digest(100, asked("hott", 0..=0));
    assert_eq!(other.unknown_file(), Some(vec!["hot", "stream"]));
}

#[test]
fn all_files_come_with_a_page_to_ask_for() {
    let digest = evicted_once().digest(100, Question::default());
    insta::assert_snapshot!(text_of(digest.stories.sections(false).swap_remove(0), 100), @"
    what became of files
     file, in pages  came in  accessed  activated  deactivated  evicted  came back
     hot                   2         3          1            1        1          1
     stream                1         0          0            0        0          0
    the whole story of a page that was evicted: `--file hot --page 17`
    ");
}

/// It enters no page cache, so that it "came in" 0 times.
#[test]
fn anonymous_memory_comes_in_where_it_is_put_on_a_list() {
    let mut world = World::default();
    for list in ["inactive", "active"] {
        world.tell(1, "mm_lru_insertion", "cold").page("anon:cold/1", 7, "P").why(list);
    }
    world.tell(1, "mm_lru_insertion", "hot").page("hot", 7, "P").why("inactive");
    world.tell(2, "mm_filemap_add_to_page_cache", "hot").page("hot", 8, "P");
    let (files, _) = world.digest(3, Question::default()).stories.json();
    let added = |file: &str| {
        files.as_array().unwrap().iter().find(|life| life["file"] == file).map(|life| life["added"].clone())
    };
    assert_eq!((added("anon:cold/1"), added("hot")), (Some(json!(2)), Some(json!(1))));
}

/// kswapd takes 300 pages of A while B brings in twice as many as C; a task of C reclaims for itself, and P is at
/// its limit.
fn many_reclaimers() -> World {
    let mut world = World::default();
    let evict = |world: &mut World, task: &str, cgroup: &str, target: &str, pages: u32| {
        world.tell(50, "page_reclaimed", task).page("f", 0, cgroup).by(target, 12);
        world.last().pages = pages;
    };
    evict(&mut world, "kswapd0", "A", "", 5); // Nothing has come in yet.
    world.tell(5, "mm_vmscan_kswapd_sleep", "kswapd0");
    for (task, cgroup, pages) in [("b", "B", 20), ("c", "C", 10)] {
        world.tell(10, "mm_filemap_add_to_page_cache", task).page("f", 0, cgroup);
        world.last().pages = pages;
    }
    evict(&mut world, "kswapd0", "A", "", 300);
    world.tell(20, "mm_vmscan_kswapd_sleep", "kswapd0");
    evict(&mut world, "c", "A", "", 7);
    evict(&mut world, "c", "P/D", "P", 11);
    evict(&mut world, "kswapd0", "B", "", 3); // The last that came counts on.
    world.tell(40, "page_refaulted", "a").page("f", 0, "A").value(3);
    world
}

#[test]
fn who_evicted_whom_is_a_matrix_whose_rows_are_exact() {
    let world = many_reclaimers();
    let digest = world.digest(100, Question::default());
    insta::assert_snapshot!(text_of(digest.evictions().section(false), 110), @"
    who evicted whom, in pages
     pages of  for B  for C  for C, at the limit of  for nobody known  in all  came back
                                                  P
     A           200    107                       0                 5     312          1
     B             2      1                       0                 0       3          0
     P/D           0      0                      11                 0      11          0
    kswapd evicts for those whose pages came in meanwhile; its part is split by that
     evicted by  for               pages  at priorities
     kswapd0     the machine         308  12
     c           the limit of `P`     11  12
     c           the machine           7  12
    ");
    let reclaimed = world.names.find("page_reclaimed");
    let pages: u32 =
        world.events.iter().filter(|event| Some(event.event) == reclaimed).map(|event| event.pages).sum();
    let cells = digest.evictions().json()["cells"].clone();
    let told: u64 = cells.as_array().unwrap().iter().map(|cell| cell["pages"].as_u64().unwrap()).sum();
    assert_eq!(told, u64::from(pages));
}

/// Without events of pages the batches of reclaim tell whose pages went.
#[test]
fn batches_stand_in_for_pages_that_were_not_recorded() {
    let mut world = World::default();
    world.tell(1, "mm_vmscan_lru_shrink_inactive", "kswapd0").page("f", 0, "A").by("", 12).value(30);
    let digest = world.digest(1, Question::default());
    assert!(!digest.has_pages() && !digest.is_empty());
    let json = digest.evictions().json();
    assert_eq!(json["cells"], json!([{ "of": "A", "for": "nobody known", "pages": 30 }]));
}

#[test]
fn turning_points_stand_in_their_order() {
    let mut world = evicted_once();
    world.tell(520, "mm_vmscan_direct_reclaim_end", "stream").by("", 12).value(32).lasts(4);
    world.tell(505, "mm_vmscan_direct_reclaim_end", "stream").by("", 12).value(32).lasts(9);
    world.tell(530, "mm_vmscan_memcg_reclaim_end", "stream").by("P", 12).value(40).lasts(1);
    world.tell(535, "watermark_boost", "stream").why("DMA32").value(1024);
    world.tell(540, "memcg_low", "kswapd0").page("", 0, "A").by("", 12).why("memory.low overridden");
    world.tell(950, "mm_vmscan_kswapd_wake", "kswapd0");
    world.tell(960, "oom_kill", "stream").page("", 0, "B").by("P", 12);
    let digest = world.digest(3, Question::default());
    insta::assert_snapshot!(text_of(digest.moments.section(), 110), @"
    what happened when
         at  turning point
     500 ms  kswapd0 wakes, the first of 2 runs of 110 ms in all
     500 ms  kswapd0's longest run begins: 100 ms
     505 ms  the first of 2 times that a task reclaims for the machine: `stream`; all of them take 13 ms and free
             64 pages
     505 ms  the longest time that a task reclaims for the machine: `stream`, 9 ms
     530 ms  `stream` reclaims for the limit of `P`: 1 ms, 40 pages
     535 ms  zone DMA32 of node 0 is boosted by 1024 pages
     540 ms  `memory.low` of `A` is overridden
     560 ms  page 17 of `hot` is evicted
     900 ms  page 17 of `hot` comes back
     960 ms  the OOM killer takes a task of `B` for the limit of `P`
    ");
}

#[test]
fn turns_of_protected_cgroups_are_told_with_their_protection() {
    let mut world = World::default();
    for reason in ["protected by memory.low", "protected by memory.low", "memory.low overridden"] {
        world.tell(1, "memcg_low", "kswapd0").page("", 0, "P/A").by("", 12).why(reason);
    }
    let digest = world.digest(1, Question::default());
    let low = ("memory.low", 40 << 20);
    let lost = [low, ("pgscan", 70), ("pgsteal", 60), ("events_low", 1)];
    let recording = protected(&lost, &[low], &[10, 38, 20]);
    insta::assert_snapshot!(protection::sentences(&recording, Some(&digest)).join("\n"), @"`memory.low` of 40 MiB on cgroup `P/A` did not hold: it was overridden once, when reclaim found too little elsewhere; 60 of its pages were reclaimed, 0 came back. Reclaim also passed it by twice for it.");
}

#[test]
fn it_is_the_same_in_chunks_of_any_size() {
    let worlds = [evicted_once(), many_reclaimers()];
    for world in &worlds {
        let told = |chunk| {
            let digest = world.digest(chunk, asked("hot", 0..=99));
            let stories = digest.stories.json();
            (digest.count(), digest.evictions().json(), digest.moments.json(), stories)
        };
        for chunk in 1..world.events.len() {
            assert_eq!(told(chunk), told(world.events.len()), "in chunks of {chunk}");
        }
    }
}

/// A recording with events says so in all forms, and no longer what is missing.
#[test]
fn with_events_nothing_is_missing() {
    let digest = evicted_once().digest(4, asked("hot", 17..=17));
    let recording = readers();
    let explained = Explained { events: Some(&digest), ..explained(&recording) };
    let text = explain(&explained, &View::default()).render(Format::Text, 100);
    let places =
        ["Tasks spent 40 ms", "the story of page 17", "who waited", "who evicted whom", "what happened when"];
    let found: Vec<usize> =
        places.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"))).collect();
    assert!(found.is_sorted() && !text.contains("not told"), "{text}");
    let json: Value =
        serde_json::from_str(&explain(&explained, &View::default()).render(Format::Json, 80)).unwrap();
    assert_eq!(json["story"].as_array().unwrap().len(), 10);
    assert_eq!(json["not_told"], Value::Null);
    assert!(
        explain(&explained, &View::default())
            .render(Format::Markdown, 100)
            .contains("\n### who evicted whom, in pages\n\n| pages of |")
    );
}

/// What page tables see of memory is no event, so nobody says that it was not accessed.
#[test]
fn the_story_of_an_anonymous_page_that_is_swapped_out_and_comes_back_says_from_where() {
    let mut world = World::default();
    world.tell(1, "mm_lru_insertion", "cold").page("anon:cold/1", 7, "P").why("inactive");
    world
        .tell(2, "page_rotated", "hot")
        .page("anon:cold/1", 7, "P")
        .why("referenced by page tables")
        .by("P", 5);
    world.tell(5, "page_reclaimed", "hot").page("anon:cold/1", 7, "P").why("swapped out").by("P", 5);
    world.tell(9, "page_refaulted", "cold").page("anon:cold/1", 7, "P").why("in time").value(90);
    world
        .tell(9, "page_swapped_in", "cold")
        .page("anon:cold/1", 7, "P")
        .why("read ahead from its swap device");
    world.tell(9, "mm_lru_insertion", "cold").page("anon:cold/1", 7, "P").why("active");
    world.tell(20, "page_reclaimed", "kswapd0").page("anon:cold/1", 7, "P").why("swapped out").by("", 3);
    let question = Question { file: Some("anon:cold/1".to_owned()), pages: Some(7..=7) };
    let digest = world.digest(3, question);
    insta::assert_snapshot!(text_of(digest.stories.sections(false).swap_remove(0), 100), @"
    the story of page 7 of `anon:cold/1`
    Page 7 of `anon:cold/1` came into memory 1 ms into the run, for `cold`. It was evicted by `hot` 5 ms
    into the run for the limit of `P` at priority 5 (swapped out). 4 ms later `cold` had it back from
    swap (read ahead from its swap device). 4 ms later `cold` asked for it again, after a distance of 90
    pages (in time). Then it was evicted again by `kswapd0` 20 ms into the run for the machine at
    priority 3 (swapped out). Nobody asked for it again. At the end of the run it was not in memory.
             at  by       what
     0.001000 s  cold     is on the inactive list
     0.002000 s  hot      is looked at and kept for the limit of `P` at priority 5: referenced by page
                          tables
     0.005000 s  hot      is evicted for the limit of `P` at priority 5: swapped out
     0.009000 s  cold     is asked for again after 90 pages: in time
     0.009000 s  cold     comes back from swap, charged to `P`: read ahead from its swap device
     0.009000 s  cold     is on the active list
     0.020000 s  kswapd0  is evicted for the machine at priority 3: swapped out
    ");
}
