//! What each event is on a Perfetto trace.
//!
//! - Tracepoints that come in twos (`mm_vmscan_direct_reclaim_begin` and `_end`) are one slice on the task's track,
//!   with what happened meanwhile inside; kswapd's is from `_wake` to `_sleep`.
//! - A wait is a slice there, too: a task that waits does nothing else.
//! - What else lasts and is told at its end has a track of its own below the task's, as one cannot know what has
//!   happened inside it that began at the same time.
//! - A request to a disk is a slice on one of the disk's lines, with an arrow from whoever sent it.
//! - What happens to single pages is on a track below the task's, as there is so much of it.
//! - All else is an instant. What no task did, such as an interrupt, has a track of its own.
//!
//! Memory is that of tasks, names and requests under way. Left out: which task a wait waited for.

use std::collections::BTreeMap;

use recording::{Event, NameId, Names};

use super::packets::{Annotations, Category, Happens, Key, Kind, Name, Packets, Text, Track};
use super::perfetto::Tasks;

/// What waits are that nobody suffers from: threads without work, programs that sleep by choice.
const IDLE: [&str; 5] = ["asleep", "dozing", "nanosleep", "wait4", "delayed work"];

/// How one kind of event is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Something of this name begins.
    Begin,
    /// It ends.
    End,
    /// A wait, named by its reason.
    Wait,
    /// A request to a disk is sent.
    Issue,
    /// It is done.
    Complete,
    /// Somebody wakes kswapd.
    Waker,
    /// Something about a page.
    Page,
    /// Lasts, or does not.
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Style {
    shape: Shape,
    name: Name,
    category: Category,
    /// What [`Event::pages`] and [`Event::value`] count.
    pages: Key,
    value: Key,
}

/// A task as it is drawn.
#[derive(Debug)]
struct Drawn {
    track: Track,
    /// What has begun and not ended, innermost last.
    open: Vec<Name>,
    /// Tracks below, by the name of what is on them.
    below: BTreeMap<NameId, Track>,
    pages: Option<Track>,
}

/// Where a request is drawn.
#[derive(Debug, Clone, Copy)]
struct Line {
    track: Track,
    busy_until: u64,
}

/// What is known of events so far.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    styles: BTreeMap<NameId, Style>,
    /// Names of waits and what they are within, by their reason.
    waits: BTreeMap<NameId, (Name, Option<Text>, Category)>,
    texts: BTreeMap<NameId, Text>,
    tasks: BTreeMap<NameId, Drawn>,
    no_task: Option<Track>,
    disk: Option<Track>,
    lines: Vec<Line>,
    /// Arrows that have begun, by what was sent and whom it wakes.
    sent: BTreeMap<(Option<NameId>, Option<u64>), u64>,
    wakes: BTreeMap<Option<u8>, u64>,
    arrows: u64,
}

impl Drawing {
    /// Draws one event.
    pub(super) fn draw(&mut self, event: &Event, names: &Names, tasks: &mut Tasks, packets: &mut Packets) {
        let style = self.style(event.event, names, packets);
        match style.shape {
            Shape::Begin => self.begin(event, style, names, tasks, packets),
            Shape::End => self.end(event, style, names, tasks, packets),
            Shape::Wait => self.wait(event, names, tasks, packets),
            Shape::Complete => self.request(event, style, names, packets),
            Shape::Issue | Shape::Waker => self.arrow(event, style, names, tasks, packets),
            Shape::Page | Shape::Other => self.other(event, style, names, tasks, packets),
        }
    }

    fn begin(
        &mut self,
        event: &Event,
        style: Style,
        names: &Names,
        tasks: &mut Tasks,
        packets: &mut Packets,
    ) {
        let texts = self.texts(event, names, packets);
        let woken = if style.name == packets.name(AWAKE) { self.wakes.remove(&event.node) } else { None };
        let Some(task) = self.task(event, names, tasks, packets) else {
            return self.other(event, style, names, tasks, packets);
        };
        task.open.push(style.name);
        let track = task.track;
        packets.event(event.time_ns, track, Happens::Begin(style.name, style.category), |annotations| {
            annotate(event, style, texts, annotations);
            if let Some(arrow) = woken {
                annotations.flow_end(arrow);
            }
        });
    }

    fn end(&mut self, event: &Event, style: Style, names: &Names, tasks: &mut Tasks, packets: &mut Packets) {
        let texts = self.texts(event, names, packets);
        let open = self.task(event, names, tasks, packets);
        let depth = open.as_ref().and_then(|task| task.open.iter().rposition(|name| *name == style.name));
        let (Some(task), Some(depth)) = (open, depth) else {
            return self.other(event, style, names, tasks, packets);
        };
        // What is inside has ended, too, if nobody said so.
        let inside = task.open.len() - depth - 1;
        task.open.truncate(depth);
        let (at, track) = (end_of(event), task.track);
        for _ in 0..inside {
            packets.event(at, track, Happens::End, |_| {});
        }
        packets.event(at, track, Happens::End, |annotations| annotate(event, style, texts, annotations));
    }

    fn wait(&mut self, event: &Event, names: &Names, tasks: &mut Tasks, packets: &mut Packets) {
        let (name, within, category) = self.wait_name(event.reason, names, packets);
        let by = event.by_cgroup.map(|cgroup| self.text(cgroup, names, packets));
        let track = self.track(event, names, tasks, packets);
        packets.event(event.time_ns, track, Happens::Begin(name, category), |annotations| {
            if let Some(within) = within {
                annotations.text(Key::Within, within);
            }
            if let Some(by) = by {
                annotations.text(Key::ByCgroup, by);
            }
        });
        packets.event(end_of(event), track, Happens::End, |_| {});
    }

    fn request(&mut self, event: &Event, style: Style, names: &Names, packets: &mut Packets) {
        let texts = self.texts(event, names, packets);
        let sender = event.task.map(|task| self.text(task, names, packets));
        let arrow = self.sent.remove(&(event.file, event.page));
        let track = self.line(event, packets);
        packets.event(event.time_ns, track, Happens::Begin(style.name, style.category), |annotations| {
            annotate(event, style, texts, annotations);
            if let Some(sender) = sender {
                annotations.text(Key::Task, sender);
            }
            if let Some(arrow) = arrow {
                annotations.flow_end(arrow);
            }
        });
        packets.event(end_of(event), track, Happens::End, |_| {});
    }

    /// The first line of the disk on which nothing is drawn while `event` lasts: requests come in the order
    /// in which they end.
    fn line(&mut self, event: &Event, packets: &mut Packets) -> Track {
        let busy_until = end_of(event);
        if let Some(line) = self.lines.iter_mut().find(|line| line.busy_until <= event.time_ns) {
            line.busy_until = busy_until;
            return line.track;
        }
        let disk = *self.disk.get_or_insert_with(|| packets.track("disk", None, 4, Kind::Plain));
        let track = packets.track("requests", Some(disk), self.lines.len() as i64, Kind::Plain);
        self.lines.push(Line { track, busy_until });
        track
    }

    /// An instant from which an arrow leads on.
    fn arrow(
        &mut self,
        event: &Event,
        style: Style,
        names: &Names,
        tasks: &mut Tasks,
        packets: &mut Packets,
    ) {
        let texts = self.texts(event, names, packets);
        let track = self.track(event, names, tasks, packets);
        self.arrows += 1;
        let arrow = self.arrows;
        if style.shape == Shape::Waker {
            self.wakes.entry(event.node).or_insert(arrow);
        } else {
            self.sent.insert((event.file, event.page), arrow);
        }
        packets.event(event.time_ns, track, Happens::Instant(style.name, style.category), |annotations| {
            annotate(event, style, texts, annotations);
            annotations.flow(arrow);
        });
    }

    fn other(
        &mut self,
        event: &Event,
        style: Style,
        names: &Names,
        tasks: &mut Tasks,
        packets: &mut Packets,
    ) {
        let texts = self.texts(event, names, packets);
        let track = self.track(event, names, tasks, packets);
        if event.duration_ns == 0 {
            let track = match (style.shape, self.task(event, names, tasks, packets)) {
                (Shape::Page, Some(task)) => {
                    let below = || packets.track("pages", Some(task.track), 9, Kind::Plain);
                    *task.pages.get_or_insert_with(below)
                }
                _ => track,
            };
            let happens = Happens::Instant(style.name, style.category);
            return packets.event(event.time_ns, track, happens, |annotations| {
                annotate(event, style, texts, annotations);
            });
        }
        let track = match self.task(event, names, tasks, packets) {
            Some(task) => {
                let name = names.text(event.event);
                let below = || packets.track(name, Some(task.track), 1, Kind::Plain);
                *task.below.entry(event.event).or_insert_with(below)
            }
            None => track,
        };
        packets.event(event.time_ns, track, Happens::Begin(style.name, style.category), |annotations| {
            annotate(event, style, texts, annotations);
        });
        packets.event(end_of(event), track, Happens::End, |_| {});
    }

    fn task(
        &mut self,
        event: &Event,
        names: &Names,
        tasks: &mut Tasks,
        packets: &mut Packets,
    ) -> Option<&mut Drawn> {
        let mut drawn = |task| {
            let track = tasks.track(names.text(task), packets);
            Drawn { track, open: Vec::new(), below: BTreeMap::new(), pages: None }
        };
        event.task.map(|task| self.tasks.entry(task).or_insert_with(|| drawn(task)))
    }

    /// Where events of the task stand, or those of none.
    fn track(&mut self, event: &Event, names: &Names, tasks: &mut Tasks, packets: &mut Packets) -> Track {
        if let Some(task) = self.task(event, names, tasks, packets) {
            return task.track;
        }
        let about = "What no task did, such as the end of a request.";
        *self.no_task.get_or_insert_with(|| packets.described("no task", None, 5, Kind::Plain, about))
    }

    fn style(&mut self, event: NameId, names: &Names, packets: &mut Packets) -> Style {
        *self.styles.entry(event).or_insert_with(|| Style::of(names.text(event), packets))
    }

    fn text(&mut self, text: NameId, names: &Names, packets: &mut Packets) -> Text {
        *self.texts.entry(text).or_insert_with(|| packets.text(names.text(text)))
    }

    fn texts(&mut self, event: &Event, names: &Names, packets: &mut Packets) -> [(Key, Option<Text>); 4] {
        let Event { cgroup, by_cgroup, file, reason, .. } = *event;
        let keyed =
            [(Key::Cgroup, cgroup), (Key::ByCgroup, by_cgroup), (Key::File, file), (Key::Reason, reason)];
        keyed.map(|(key, text)| (key, text.map(|text| self.text(text, names, packets))))
    }

    /// `WAIT in WITHIN`, taken apart.
    fn wait_name(
        &mut self,
        reason: Option<NameId>,
        names: &Names,
        packets: &mut Packets,
    ) -> (Name, Option<Text>, Category) {
        let Some(reason) = reason else { return (packets.name("wait"), None, Category::Wait) };
        *self.waits.entry(reason).or_insert_with(|| {
            let text = names.text(reason);
            let (wait, within) = text.split_once(" in ").map_or((text, None), |(w, i)| (w, Some(i)));
            let is_idle = IDLE.iter().any(|idle| wait.ends_with(idle));
            let category = if is_idle { Category::Idle } else { Category::Wait };
            (packets.name(wait), within.map(|within| packets.text(within)), category)
        })
    }
}

/// What kswapd's work is called, as its tracepoints name its ends only.
const AWAKE: &str = "kswapd awake";

impl Style {
    fn of(event: &str, packets: &mut Packets) -> Self {
        let (shape, name) = match event {
            "mm_vmscan_kswapd_wake" => (Shape::Begin, AWAKE),
            "mm_vmscan_kswapd_sleep" => (Shape::End, AWAKE),
            "mm_vmscan_wakeup_kswapd" => (Shape::Waker, event),
            "block_rq_issue" => (Shape::Issue, event),
            "block_rq_complete" => (Shape::Complete, "request"),
            "wait" => (Shape::Wait, event),
            _ if event.starts_with("mm_filemap_")
                || event.starts_with("mm_lru_")
                || event.starts_with("page_") =>
            {
                (Shape::Page, event)
            }
            _ => match event.strip_suffix("_begin").or_else(|| event.strip_suffix("_start")) {
                Some(name) => (Shape::Begin, name),
                None => event.strip_suffix("_end").map_or((Shape::Other, event), |name| (Shape::End, name)),
            },
        };
        let (pages, value) = counted(event);
        Self { shape, name: packets.name(name), category: category(event), pages, value }
    }
}

fn category(event: &str) -> Category {
    let begins = [
        ("mm_vmscan", Category::Reclaim),
        ("mm_shrink_slab", Category::Reclaim),
        ("mm_compaction", Category::Compaction),
        ("mm_page_alloc_extfrag", Category::Compaction),
        ("watermark", Category::Reclaim),
        ("memcg", Category::Reclaim),
        ("block_", Category::Io),
        ("wait", Category::Wait),
        ("oom", Category::Oom),
        ("mm_filemap_", Category::Page),
        ("mm_lru_", Category::Page),
        ("page_", Category::Page),
    ];
    let found = begins.iter().find(|(begin, _)| event.starts_with(begin));
    found.map_or(Category::Other, |(_, category)| *category)
}

/// What an event's pages and its value count.
fn counted(event: &str) -> (Key, Key) {
    match event {
        "mm_vmscan_direct_reclaim_end" | "mm_vmscan_memcg_reclaim_end" => (Key::NrScanned, Key::NrReclaimed),
        "mm_vmscan_lru_shrink_inactive" => (Key::NrScanned, Key::NrReclaimed),
        "mm_vmscan_lru_shrink_active" => (Key::NrTaken, Key::NrDeactivated),
        "mm_shrink_slab_start" | "mm_shrink_slab_end" => (Key::Pages, Key::Objects),
        "block_rq_issue" | "block_rq_complete" => (Key::Pages, Key::Bytes),
        "page_refaulted" => (Key::Pages, Key::Distance),
        _ => (Key::Pages, Key::Value),
    }
}

fn annotate(
    event: &Event,
    style: Style,
    texts: [(Key, Option<Text>); 4],
    annotations: &mut Annotations<'_, '_>,
) {
    for (key, text) in texts {
        if let Some(text) = text {
            annotations.text(key, text);
        }
    }
    let pages = (event.pages > 0).then_some(i64::from(event.pages));
    let numbers = [
        (Key::Page, event.page.map(|page| i64::try_from(page).unwrap_or(i64::MAX))),
        (style.pages, pages),
        (Key::Node, event.node.map(i64::from)),
        (Key::Priority, event.priority.map(i64::from)),
        (Key::Order, event.order.map(i64::from)),
        (style.value, event.value),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            annotations.int(key, number);
        }
    }
}

const fn end_of(event: &Event) -> u64 {
    event.time_ns.saturating_add(event.duration_ns)
}
