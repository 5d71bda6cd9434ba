//! Stories of files and of pages: read, activated, deactivated, reclaimed by whom at which priority and why,
//! back after how much.
//!
//! Of every file figures are kept; of the pages that were asked for, every event. A story tells each event of
//! its pages in its order, nothing added and nothing left out, and sums up what they say before. Left out:
//! whatever was not recorded as an event. Neighbour: `digest.rs`, which hands the events over.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use recording::events::ANONYMOUS;
use recording::{Event, NameId, Names};
use serde_json::{Value, json};

use super::kind::{Kind, Texts, is_anonymous};
use super::words::{for_whom, listed, so_often};
use crate::document::number::duration;
use crate::document::{Cell, Section, Table, row};

/// Rows of the table of files, and of a story, when nobody asks for all.
const ROWS_MAX: usize = 12;
const STORY_MAX: usize = 200;
/// Files of which figures are kept one by one, and anonymous memory.
const FILES_MAX: usize = 1 << 16;
/// Events that are kept for a story; those beyond are counted.
const KEPT_MAX: usize = 1 << 20;
/// Pages of the asked file whose evictions are counted one by one: 64 GiB of a file.
const PAGES_MAX: u64 = 1 << 24;

/// The file or the pages of which everything is to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The file, by its path; without one nothing is asked.
    pub file: Option<String>,
    /// Its pages; all without.
    pub pages: Option<RangeInclusive<u64>>,
}

/// What became of the pages of a file, in pages.
#[derive(Debug, Default)]
struct Life {
    counts: [u64; Kind::OF_A_PAGE],
    /// A page that was evicted, or better: that came back.
    example: Option<(bool, u64)>,
}

impl Life {
    fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }
}

/// What happened, why, who did it, for whose sake.
type Deed = (Kind, Option<NameId>, Option<NameId>, Option<NameId>);

/// Pages to which a deed was done, and at which priorities: the gentlest and the hardest.
#[derive(Debug, Default)]
struct Done {
    pages: u64,
    priorities: Option<(u8, u8)>,
}

/// What is gathered of the file that is asked for.
#[derive(Debug, Default)]
struct Asked {
    deeds: BTreeMap<Deed, Done>,
    /// How often each page was evicted.
    evicted: Vec<u16>,
    /// Distances of refaults by power of two.
    distances: BTreeMap<u32, u64>,
    kept: Vec<(Kind, Event)>,
    not_kept: u64,
}

/// Stories of a run.
#[derive(Debug)]
pub(super) struct Stories {
    question: Question,
    texts: Texts,
    /// By file; anonymous memory has none.
    lives: BTreeMap<Option<NameId>, Life>,
    /// Of files beyond [`FILES_MAX`] together.
    others: Life,
    asked: Asked,
}

impl Stories {
    pub(super) fn new(question: Question) -> Self {
        Self {
            question,
            texts: Texts::default(),
            lives: BTreeMap::new(),
            others: Life::default(),
            asked: Asked::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    pub(super) fn is_asked(&self) -> bool {
        self.question.file.is_some()
    }

    pub(super) fn take(&mut self, names: &Names, kind: Kind, event: &Event) {
        let is_asked = |file: &String| event.file.is_some_and(|id| names.text(id) == file);
        let is_asked = self.question.file.as_ref().is_some_and(is_asked);
        let has_room = self.lives.len() < FILES_MAX || is_asked || self.lives.contains_key(&event.file);
        let life = if has_room {
            self.texts.keep(names, [event.file]);
            self.lives.entry(event.file).or_default()
        } else {
            &mut self.others
        };
        life.counts[kind as usize] += u64::from(event.pages);
        if kind == Kind::Inserted && is_anonymous(names, event) {
            // It enters no page cache.
            life.counts[Kind::Added as usize] += u64::from(event.pages);
        }
        if let (Kind::Reclaimed | Kind::Refaulted, Some(page)) = (kind, event.page) {
            let better = kind == Kind::Refaulted;
            if life.example.is_none_or(|(good, _)| better && !good) {
                life.example = Some((better, page));
            }
        }
        if is_asked {
            self.ask(names, kind, event);
        }
    }

    fn ask(&mut self, names: &Names, kind: Kind, event: &Event) {
        self.texts.keep(names, [Some(event.event), event.task, event.cgroup, event.by_cgroup, event.reason]);
        let asked = &mut self.asked;
        let key = (kind, event.reason, event.task, event.by_cgroup);
        let done = asked.deeds.entry(key).or_default();
        done.pages += u64::from(event.pages);
        if let Some(priority) = event.priority {
            let (gentlest, hardest) = done.priorities.unwrap_or((priority, priority));
            done.priorities = Some((gentlest.max(priority), hardest.min(priority)));
        }
        let first = event.page.unwrap_or(0);
        if kind == Kind::Reclaimed {
            for page in first..first.saturating_add(u64::from(event.pages)).min(PAGES_MAX) {
                let index = usize::try_from(page).expect("below PAGES_MAX");
                if asked.evicted.len() <= index {
                    asked.evicted.resize(index + 1, 0);
                }
                asked.evicted[index] = asked.evicted[index].saturating_add(1);
            }
        }
        if let (Kind::Refaulted, Some(distance)) = (kind, event.value) {
            let class = u64::try_from(distance).unwrap_or(0).checked_ilog2().map_or(0, |log| log + 1);
            *asked.distances.entry(class).or_default() += u64::from(event.pages);
        }
        let Some(wanted) = &self.question.pages else { return };
        let last = first + u64::from(event.pages.max(1)) - 1;
        if first <= *wanted.end() && last >= *wanted.start() {
            if asked.kept.len() < KEPT_MAX { asked.kept.push((kind, *event)) } else { asked.not_kept += 1 }
        }
    }

    /// The names of all files, when the one that is asked for has no event.
    pub(super) fn unknown_file(&self) -> Option<Vec<&str>> {
        let file = self.question.file.as_ref()?;
        let names: Vec<&str> =
            self.lives.keys().filter(|id| id.is_some()).map(|&id| self.texts.of(id)).collect();
        (!names.contains(&file.as_str())).then_some(names)
    }

    /// The sections: the pages that were asked for, or the file, or all files.
    pub(super) fn sections(&self, all: bool) -> Vec<Section> {
        match (&self.question.file, &self.question.pages) {
            (Some(file), Some(pages)) => vec![self.pages(file, (*pages.start(), *pages.end()), all)],
            (Some(file), None) => vec![self.file(file, all)],
            (None, _) => vec![self.files(all)],
        }
    }

    fn files(&self, all: bool) -> Section {
        let columns = [
            ("came in", Kind::Added),
            ("accessed", Kind::Accessed),
            ("activated", Kind::Activated),
            ("deactivated", Kind::Deactivated),
            ("evicted", Kind::Reclaimed),
            ("came back", Kind::Refaulted),
        ];
        let matters = |life: &Life| columns.iter().any(|(_, kind)| life.count(*kind) > 0);
        let mut rows: Vec<_> = self.lives.iter().filter(|(_, life)| matters(life)).collect();
        rows.sort_by_key(|(_, life)| {
            std::cmp::Reverse((
                life.count(Kind::Refaulted),
                life.count(Kind::Reclaimed),
                life.count(Kind::Added),
            ))
        });
        let headings = columns.iter().map(|(heading, _)| heading);
        let mut table = Table::new().texts(["file, in pages"]).numbers(headings).breaking_names();
        let shown = if all { rows.len() } else { ROWS_MAX };
        for (id, life) in rows.iter().take(shown) {
            let name =
                if id.is_some() { self.texts.of(**id).to_owned() } else { "anonymous memory".to_owned() };
            let figures = columns.iter().map(|(_, kind)| Cell::from(life.count(*kind)));
            table.push(row![name].into_iter().chain(figures));
        }
        if matters(&self.others) {
            let figures = columns.iter().map(|(_, kind)| Cell::from(self.others.count(*kind)));
            table.push(row![format!("files beyond the first {FILES_MAX}")].into_iter().chain(figures));
        }
        let left = rows.len().saturating_sub(shown);
        let more = if left > 0 { format!("{left} more files with `--all`") } else { String::new() };
        let example = rows.iter().find_map(|(id, life)| Some((self.texts.of(**id), life.example?.1)));
        let try_it = example.filter(|(file, _)| !file.is_empty()).map(|(file, page)| {
            format!("the whole story of a page that was evicted: `--file {file} --page {page}`")
        });
        Section::new("what became of files").with(table).paragraph(more).paragraph(try_it.unwrap_or_default())
    }

    fn file(&self, file: &str, all: bool) -> Section {
        let mut table =
            Table::new().texts(["what"]).numbers(["pages"]).texts(["by", "for", "at priorities", "why"]);
        let shown = if all { usize::MAX } else { 3 * ROWS_MAX };
        for ((kind, reason, task, by), Done { pages, priorities }) in self.asked.deeds.iter().take(shown) {
            let priorities = match priorities {
                Some((gentlest, hardest)) if gentlest != hardest => format!("{gentlest} to {hardest}"),
                Some((only, _)) => only.to_string(),
                None => String::new(),
            };
            table.push(row![
                word(*kind),
                *pages,
                self.texts.of(*task),
                by.map_or_else(String::new, |by| for_whom(self.texts.of(Some(by)))),
                priorities,
                self.texts.of(*reason),
            ]);
        }
        let left = self.asked.deeds.len().saturating_sub(shown);
        let more = if left > 0 { format!("{left} more rows with `--all`") } else { String::new() };
        Section::new(format!("the story of `{file}`"))
            .paragraph(self.file_in_words(file))
            .with(table)
            .paragraph(more)
    }

    fn life(&self, file: &str) -> Option<&Life> {
        let of = |(id, _): &(&Option<NameId>, &Life)| id.is_some() && self.texts.of(**id) == file;
        self.lives.iter().find(of).map(|(_, life)| life)
    }

    fn file_in_words(&self, file: &str) -> String {
        let Some(life) = self.life(file) else { return String::new() };
        let (evicted, back) = (life.count(Kind::Reclaimed), life.count(Kind::Refaulted));
        let [came, accessed, activated, deactivated] =
            [Kind::Added, Kind::Accessed, Kind::Activated, Kind::Deactivated].map(|kind| life.count(kind));
        let mut text = format!(
            "Pages of `{file}` came into memory {}, were accessed {}, activated {} and deactivated {}",
            so_often(came),
            so_often(accessed),
            so_often(activated),
            so_often(deactivated)
        );
        if evicted == 0 {
            return text + "; none was evicted.";
        }
        let mut often: BTreeMap<u16, u64> = BTreeMap::new();
        for &times in self.asked.evicted.iter().filter(|&&times| times > 0) {
            *often.entry(times).or_default() += 1;
        }
        let often: Vec<String> = often
            .iter()
            .take(5)
            .map(|(times, pages)| {
                format!(
                    "{pages} {} {}",
                    if *pages == 1 { "page" } else { "pages" },
                    so_often(u64::from(*times))
                )
            })
            .collect();
        text += &format!(
            "; pages were evicted {} ({}), and came back {}",
            so_often(evicted),
            listed(&often),
            so_often(back)
        );
        if let Some((distance, _)) = self.asked.distances.iter().max_by_key(|(_, pages)| **pages) {
            let upto = 1_u64.checked_shl(*distance).unwrap_or(u64::MAX);
            text += &format!(", most of them after a distance of {} to {upto} pages", upto / 2);
        }
        text += ".";
        if let Some((_, page)) = life.example {
            text += &format!(" One of them: `--file {file} --page {page}`.");
        }
        text
    }

    fn pages(&self, file: &str, (first, last): (u64, u64), all: bool) -> Section {
        let title = if first == last {
            format!("the story of page {first} of `{file}`")
        } else {
            format!("the story of pages {first} to {last} of `{file}`")
        };
        let one = first == last;
        let mut table = Table::new().amounts(["at"]).numbers((!one).then_some("page")).texts(["by", "what"]);
        let shown = if all { usize::MAX } else { STORY_MAX };
        for (kind, event) in self.asked.kept.iter().take(shown) {
            let at = format!("{:.6} s", event.time_ns as f64 / 1e9);
            let by = self.texts.of(event.task);
            let by = if by.is_empty() { "an interrupt" } else { by };
            let what = self.in_words(*kind, event);
            let page = (!one).then(|| Cell::from(event.page.unwrap_or(0)));
            table.push(row![at].into_iter().chain(page).chain(row![by, what]));
        }
        let left = (self.asked.kept.len().saturating_sub(shown) as u64) + self.asked.not_kept;
        let more = if left > 0 { format!("{left} more events of these pages") } else { String::new() };
        let summary = if one { self.page_in_words(file, first) } else { String::new() };
        Section::new(title).paragraph(summary).with(table).paragraph(more)
    }

    /// One event as a person says it.
    fn in_words(&self, kind: Kind, event: &Event) -> String {
        let reason = self.texts.of(event.reason);
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let charged = match self.texts.of(event.cgroup) {
            "" => "the root".to_owned(),
            path => format!("`{path}`"),
        };
        let by_reclaim = || self.by_reclaim(event);
        match kind {
            Kind::Added => format!("comes into the page cache, charged to {charged}"),
            Kind::Inserted => format!("is on the {reason} list"),
            Kind::Accessed => format!("is accessed{because}"),
            Kind::Activated if event.by_cgroup.is_some() => {
                format!("is activated by reclaim{}{because}", by_reclaim())
            }
            Kind::Activated => format!("goes to the active list{because}"),
            Kind::Deactivated => format!("goes from the active list to the inactive one{}", by_reclaim()),
            Kind::Kept => format!("is looked at and kept{}{because}", by_reclaim()),
            Kind::Reclaimed => format!("is evicted{}{because}", by_reclaim()),
            Kind::Refaulted => {
                let distance = event.value.map_or_else(String::new, |pages| format!(" after {pages} pages"));
                format!("is asked for again{distance}{because}")
            }
            Kind::SwappedIn => format!("comes back from swap, charged to {charged}{because}"),
            Kind::Left => format!("leaves the page cache{because}"),
            _ => word(kind).to_owned(),
        }
    }

    /// For whose sake reclaim looked at it, and how hard it tried.
    fn by_reclaim(&self, event: &Event) -> String {
        let priority = event.priority.map_or_else(String::new, |priority| format!(" at priority {priority}"));
        let whom = event.by_cgroup.map(|by| format!(" for {}", for_whom(self.texts.of(Some(by)))));
        whom.unwrap_or_default() + &priority
    }

    /// Whether anonymous memory is asked for, not a file.
    fn is_of_memory(&self) -> bool {
        self.question.file.as_ref().is_some_and(|file| file.starts_with(ANONYMOUS))
    }

    fn task(&self, event: &Event) -> String {
        match self.texts.of(event.task) {
            "" => "nobody known".to_owned(),
            name => format!("`{name}`"),
        }
    }

    /// The story of one page in a paragraph.
    fn page_in_words(&self, file: &str, page: u64) -> String {
        let events = &self.asked.kept;
        let Some((_, first)) = events.first() else {
            return format!("No event is about page {page} of `{file}`: it never came into memory.");
        };
        let came = duration(first.time_ns as f64);
        let mut text = format!(
            "Page {page} of `{file}` came into memory {came} into the run, for {}.",
            self.task(first)
        );
        let evictions: Vec<usize> = (0..events.len()).filter(|&at| events[at].0 == Kind::Reclaimed).collect();
        if evictions.is_empty() {
            text += " It was never evicted.";
        }
        for (number, &index) in evictions.iter().enumerate() {
            let again = if number == 0 { "It was evicted" } else { "Then it was evicted again" };
            let until = evictions.get(number + 1).copied().unwrap_or(events.len());
            text += &format!(" {again} {}", self.eviction_in_words(index, until));
        }
        let comes = |kind: Kind| matches!(kind, Kind::Added | Kind::Inserted | Kind::SwappedIn);
        let is_in = |kind: Kind| comes(kind) || matches!(kind, Kind::Left | Kind::Reclaimed);
        let last = events.iter().rev().map(|(kind, _)| *kind).find(|&kind| is_in(kind));
        let end = if last.is_none_or(comes) { "was" } else { "was not" };
        text + &format!(" At the end of the run it {end} in memory.")
    }

    /// Event `index`, an eviction: by whom, why, how long after its last use; and whether it came back before
    /// event `until`.
    fn eviction_in_words(&self, index: usize, until: usize) -> String {
        let (before, event) = (&self.asked.kept[..index], &self.asked.kept[index].1);
        let ago = |then: u64| duration((event.time_ns - then) as f64);
        let last =
            |kind: Kind| before.iter().rev().find(|(of, _)| *of == kind).map(|(_, event)| event.time_ns);
        let came = last(Kind::Added).unwrap_or(0);
        let idle = match last(Kind::Accessed) {
            Some(then) => format!(", {} after its last access", ago(then)),
            // What page tables saw is no event.
            None if self.is_of_memory() => String::new(),
            None => ", without an access before".to_owned(),
        };
        let off = last(Kind::Deactivated).filter(|&then| then >= came);
        let off = off.map(|then| format!(" and {} after it was taken off the active list", ago(then)));
        let why = match self.texts.of(event.reason) {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        let text = format!(
            "by {} {} into the run{}{why}{idle}{}.",
            self.task(event),
            duration(event.time_ns as f64),
            self.by_reclaim(event),
            off.unwrap_or_default()
        );
        let after = |kind: Kind| {
            let back = self.asked.kept[index..until].iter().find(|(of, _)| *of == kind);
            back.map(|(_, back)| (back, duration((back.time_ns - event.time_ns) as f64)))
        };
        let swapped_in = after(Kind::SwappedIn).map(|(back, later)| {
            format!(
                " {later} later {} had it back from swap ({}).",
                self.task(back),
                self.texts.of(back.reason)
            )
        });
        let refaulted = after(Kind::Refaulted).map(|(back, later)| {
            format!(
                " {later} later {} asked for it again, after a distance of {} pages ({}).",
                self.task(back),
                back.value.unwrap_or(0),
                self.texts.of(back.reason)
            )
        });
        match (swapped_in, refaulted) {
            (None, None) => text + " Nobody asked for it again.",
            (swapped_in, refaulted) => {
                text + &swapped_in.unwrap_or_default() + &refaulted.unwrap_or_default()
            }
        }
    }

    /// For programs: figures of all files, and every event of the pages that were asked for.
    pub(super) fn json(&self) -> (Value, Value) {
        let lives = self.lives.iter().map(|(id, life)| (id.map(|id| self.texts.of(Some(id))), false, life));
        let others = self.others.counts.iter().any(|&count| count > 0);
        let others = others.then_some((None, true, &self.others));
        let files = lives.chain(others).map(|(file, others, life)| {
            let of = |kind| life.count(kind);
            json!({
                "file": file,
                "others": others,
                "added": of(Kind::Added),
                "accessed": of(Kind::Accessed),
                "activated": of(Kind::Activated),
                "deactivated": of(Kind::Deactivated),
                "kept": of(Kind::Kept),
                "reclaimed": of(Kind::Reclaimed),
                "refaulted": of(Kind::Refaulted),
                "example_page": life.example.map(|(_, page)| page),
            })
        });
        let text = |id: Option<NameId>| id.map(|id| self.texts.of(Some(id)));
        let story = self.asked.kept.iter().map(|(kind, event)| {
            json!({
                "time_ns": event.time_ns,
                "event": text(Some(event.event)),
                "task": text(event.task),
                "cgroup": text(event.cgroup),
                "by_cgroup": text(event.by_cgroup),
                "page": event.page,
                "pages": event.pages,
                "priority": event.priority,
                "reason": text(event.reason),
                "value": event.value,
                "says": self.in_words(*kind, event),
            })
        });
        let asked = self.question.pages.as_ref().map(|_| story.collect::<Vec<_>>());
        (files.collect(), json!(asked))
    }
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Added => "came in",
        Kind::Inserted => "put on a list",
        Kind::Accessed => "accessed",
        Kind::Activated => "activated",
        Kind::Deactivated => "deactivated",
        Kind::Kept => "looked at and kept",
        Kind::Reclaimed => "evicted",
        Kind::Refaulted => "came back",
        Kind::SwappedIn => "came from swap",
        Kind::Left => "left the page cache",
        _ => "something else",
    }
}
