//! Small histories of few pages, whose maps can be drawn.

use super::*;

/// A history of page events, in milliseconds: what happened to which page.
struct History {
    names: Names,
    events: Vec<Event>,
}

impl History {
    fn new() -> Self {
        Self { names: Names::default(), events: Vec::new() }
    }

    fn add(&mut self, millis: u64, event: &str, file: &str, page: u64, cgroup: &str) {
        let mut name = |text: &str| self.names.intern(text);
        let (event, file, cgroup) = (name(event), name(file), name(cgroup));
        self.events.push(Event {
            cgroup: Some(cgroup),
            file: Some(file),
            page: Some(page),
            pages: 1,
            ..Event::new(millis * 1_000_000, event)
        });
    }

    fn heat(&self, millis: u64) -> Heat {
        let mut builder = HeatBuilder::new(millis * 1_000_000);
        self.events.iter().for_each(|event| builder.take(&self.names, event));
        builder.finish(&self.names)
    }
}

const ADD: &str = "mm_filemap_add_to_page_cache";
const DELETE: &str = "mm_filemap_delete_from_page_cache";
const READ: &str = "page_accessed";

/// Rows of a map as digits, one for each slice.
fn drawn(rows: &[Vec<u64>]) -> Vec<String> {
    rows.iter().map(|row| row.iter().map(u64::to_string).collect()).collect()
}

fn transposed(rows: &[Vec<u64>]) -> Vec<Vec<u64>> {
    (0..rows[0].len()).map(|column| rows.iter().map(|row| row[column]).collect()).collect()
}

/// ```text
///   slices of 1 ms   0 1 2 3 4 5 6 7 8 9
///   page 0           + r . . . . . . r .
///   page 1           . + . . . - . . . .
/// ```
#[test]
fn pages_age_until_they_are_read_or_go() {
    let mut history = History::new();
    history.add(0, ADD, "f", 0, "A");
    history.add(1, READ, "f", 0, "A");
    history.add(1, ADD, "f", 1, "A");
    history.add(5, DELETE, "f", 1, "A");
    history.add(8, READ, "f", 0, "A");
    history.add(8, READ, "g", 0, "A"); // It was there before the first event.
    let mut builder = HeatBuilder::new(100_000_000);
    history.events.iter().for_each(|event| builder.take(&history.names, event));
    let heat = builder.finish(&history.names);
    assert_eq!((heat.slice_ns, heat.slices), (1_000_000, 100));
    let milli = |from: u64, to: Option<u64>| (from * 1_000_000, to.map(|to| to * 1_000_000));
    assert_eq!(
        heat.age_classes,
        [milli(0, Some(1)), milli(1, Some(3)), milli(3, Some(10)), milli(10, Some(30)), milli(30, None)]
    );
    let ages: Vec<String> =
        drawn(&transposed(&heat.ages[0].pages)).iter().map(|row| row[..20].to_owned()).collect();
    assert_eq!(
        ages,
        [
            "12000000200000000000",
            "00220000022000000000",
            "00002111000222222200",
            "00000000000000000022",
            "00000000000000000000",
        ]
    );
}

#[test]
fn a_page_counts_for_whom_it_is_charged_to() {
    let mut history = History::new();
    history.add(0, ADD, "f", 0, "A");
    history.add(0, ADD, "f", 1, "B");
    history.add(1, DELETE, "f", 0, "A");
    history.add(2, ADD, "f", 0, "B");
    let heat = history.heat(3);
    let sums = |map: &AgeMap| map.pages.iter().map(|row| row.iter().sum()).collect::<Vec<u64>>();
    let at =
        |slices: Vec<u64>, milli: usize| slices[(milli * slices.len()).div_ceil(3).min(slices.len() - 1)];
    let told: Vec<(&str, Vec<u64>)> = heat
        .ages
        .iter()
        .map(|map| (map.cgroup.as_str(), (0..3).map(|milli| at(sums(map), milli)).collect()))
        .collect();
    assert_eq!(told, [("A", vec![1, 0, 0]), ("B", vec![1, 1, 2])]);
}

#[test]
fn regions_double_as_a_file_turns_out_to_be_longer_and_nothing_is_lost() {
    let mut history = History::new();
    for page in [0, 1, 31] {
        history.add(0, ADD, "f", page, "");
        history.add(0, READ, "f", page, "");
    }
    assert_eq!(history.heat(1).files[0].region_pages, 1);
    history.add(0, ADD, "f", 100, "");
    history.add(0, READ, "f", 100, "");
    let heat = history.heat(1);
    let file = &heat.files[0];
    assert_eq!(file.region_pages, 4, "101 pages in 26 regions");
    let first = |rows: &[Vec<u64>]| rows.iter().map(|row| row[0]).collect::<Vec<u64>>();
    for rows in [&file.accessed, &file.resident] {
        let regions = first(rows);
        assert_eq!((regions[0], regions[7], regions[25]), (2, 1, 1));
        assert_eq!(regions.iter().sum::<u64>(), 4);
    }
}

#[test]
fn the_most_accessed_files_are_told_and_the_others_counted() {
    let mut history = History::new();
    for file in 0..FILES_TRACKED + 3 {
        history.add(0, ADD, &format!("f{file:03}"), 0, "");
        for _ in 0..1 + usize::from(file < 2) {
            history.add(0, READ, &format!("f{file:03}"), 0, "");
        }
    }
    history.add(0, READ, "block device 0", 7, "");
    let heat = history.heat(10);
    let names: Vec<&str> = heat.files.iter().map(|file| file.file.as_str()).collect();
    assert_eq!(names, ["f000", "f001", "f002", "f003", "f004", "f005"]);
    assert_eq!(heat.other_files, FILES_TRACKED + 3 - FILES_TOLD);
}
