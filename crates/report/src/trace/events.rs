//! What each event is on a Perfetto trace.
//!
//! - Tracepoints that come in twos (`mm_vmscan_direct_reclaim_begin` and `_end`) are one slice on the task's track,
//!   with what happened meanwhile inside; kswapd's is from `_wake` to when it dozes or sleeps.
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
use super::tasks::Tasks;
use super::threads::ByName;

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
    /// It is about kswapd being awake.
    is_awake: bool,
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

/// What events are drawn on, and what their numbers mean.
pub(super) struct Canvas<'a> {
    pub(super) names: &'a Names,
    pub(super) tasks: &'a mut Tasks,
    pub(super) packets: &'a mut Packets,
}

/// What is known of events so far.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    styles: ByName<Style>,
    /// Names of waits and what they are within, by their reason.
    waits: ByName<(Name, Option<Text>, Category)>,
    texts: ByName<Text>,
    tasks: ByName<Drawn>,
    no_task: Option<Track>,
    /// By name: a disk with the lines of its requests.
    disks: ByName<(Track, Vec<Line>)>,
    /// Arrows that have begun, by the request that was sent and by the node whose kswapd was woken.
    sent: BTreeMap<(Option<NameId>, Option<u64>), u64>,
    wakes: BTreeMap<Option<u8>, u64>,
    arrows: u64,
}

impl Drawing {
    /// Draws one event.
    pub(super) fn draw(&mut self, event: &Event, on: &mut Canvas<'_>) {
        let style = self.style(event.event, on);
        match style.shape {
            Shape::Begin => self.begin(event, style, on),
            Shape::End => self.end(event, style, on),
            Shape::Wait => self.wait(event, on),
            Shape::Complete => self.request(event, style, on),
            Shape::Issue | Shape::Waker => self.arrow(event, style, on),
            Shape::Page | Shape::Other => self.other(event, style, on),
        }
    }

    fn begin(&mut self, event: &Event, style: Style, on: &mut Canvas<'_>) {
        let texts = self.texts(event, on);
        let woken = if style.is_awake { self.wakes.remove(&event.node) } else { None };
        let Some(task) = self.task(event, on) else { return self.other(event, style, on) };
        let track = task.track;
        // Kswapd may be woken again before it slept.
        let again = style.is_awake && task.open.last() == Some(&style.name);
        if again {
            on.packets.event(event.time_ns, track, Happens::End, |_| {});
        } else {
            task.open.push(style.name);
        }
        on.packets.event(event.time_ns, track, Happens::Begin(style.name, style.category), |annotations| {
            annotate(event, style, &texts, annotations);
            if let Some(arrow) = woken {
                annotations.flow_end(arrow);
            }
        });
    }

    fn end(&mut self, event: &Event, style: Style, on: &mut Canvas<'_>) {
        let texts = self.texts(event, on);
        let open = self.task(event, on);
        let depth = open.as_ref().and_then(|task| task.open.iter().rposition(|name| *name == style.name));
        let (Some(task), Some(depth)) = (open, depth) else {
            let name = on.packets.name(on.names.text(event.event));
            return self.other(event, Style { name, ..style }, on);
        };
        // What is inside has ended, too, if nobody said so.
        let inside = task.open.len() - depth - 1;
        task.open.truncate(depth);
        let (at, track) = (end_of(event), task.track);
        for _ in 0..inside {
            on.packets.event(at, track, Happens::End, |_| {});
        }
        on.packets.event(at, track, Happens::End, |annotations| annotate(event, style, &texts, annotations));
    }

    fn wait(&mut self, event: &Event, on: &mut Canvas<'_>) {
        let (name, within, category) = self.wait_name(event.reason, on);
        let by = event.by_cgroup.map(|cgroup| self.text(cgroup, on));
        let track = self.track(event, on);
        if category == Category::Idle {
            self.falls_asleep(event, on);
        }
        on.packets.event(event.time_ns, track, Happens::Begin(name, category), |annotations| {
            if let Some(within) = within {
                annotations.text(Key::Within, within);
            }
            if let Some(by) = by {
                annotations.text(Key::ByCgroup, by);
            }
            if let Some(ended) = event.value {
                // 0: woken; 1: timed out; 2: and nothing could have ended it before.
                annotations.int(Key::TimedOut, i64::from(ended > 0));
                annotations.int(Key::Futile, i64::from(ended == 2));
            }
        });
        on.packets.event(end_of(event), track, Happens::End, |_| {});
    }

    /// Kswapd is awake until it has nothing to do; its tracepoint is only for when it sleeps for long.
    fn falls_asleep(&mut self, event: &Event, on: &mut Canvas<'_>) {
        let awake = on.packets.name(AWAKE);
        let Some(task) = self.task(event, on) else { return };
        if task.open.last() == Some(&awake) {
            task.open.pop();
            on.packets.event(event.time_ns, task.track, Happens::End, |_| {});
        }
    }

    fn request(&mut self, event: &Event, style: Style, on: &mut Canvas<'_>) {
        let (name, ..) = self.wait_name(event.reason, on);
        let sender = event.task.map(|task| self.text(task, on));
        let arrows = self.arrived(event);
        let track = self.line(event, on);
        on.packets.event(event.time_ns, track, Happens::Begin(name, style.category), |annotations| {
            annotate(event, style, &[], annotations);
            if let Some(sender) = sender {
                annotations.text(Key::Task, sender);
            }
            for arrow in arrows {
                annotations.flow_end(arrow);
            }
        });
        on.packets.event(end_of(event), track, Happens::End, |_| {});
    }

    /// Arrows of what was sent and is done with this request: several if they were merged.
    fn arrived(&mut self, event: &Event) -> Vec<u64> {
        let Some(first) = event.page else { return Vec::new() };
        let range = (event.file, Some(first))..(event.file, Some(first.saturating_add(event.pages.into())));
        let sent: Vec<_> = self.sent.range(range).map(|(place, arrow)| (*place, *arrow)).collect();
        for (place, _) in &sent {
            self.sent.remove(place);
        }
        sent.into_iter().map(|(_, arrow)| arrow).collect()
    }

    /// The first line of the disk on which nothing is drawn while `event` lasts: requests come in the order
    /// in which they end.
    fn line(&mut self, event: &Event, on: &mut Canvas<'_>) -> Track {
        let Some(file) = event.file else { return self.track(event, on) };
        let (disk, lines) = self.disks.place(file).get_or_insert_with(|| {
            let name = on.names.text(file);
            (on.packets.track(name, None, 4, Kind::Plain), Vec::new())
        });
        let busy_until = end_of(event);
        if let Some(line) = lines.iter_mut().find(|line| line.busy_until <= event.time_ns) {
            line.busy_until = busy_until;
            return line.track;
        }
        let track = on.packets.track("requests", Some(*disk), lines.len() as i64, Kind::Plain);
        lines.push(Line { track, busy_until });
        track
    }

    /// An instant from which an arrow leads on.
    fn arrow(&mut self, event: &Event, style: Style, on: &mut Canvas<'_>) {
        let texts = self.texts(event, on);
        let track = self.track(event, on);
        self.arrows += 1;
        let arrow = self.arrows;
        if style.shape == Shape::Waker {
            self.wakes.entry(event.node).or_insert(arrow);
        } else {
            self.sent.insert((event.file, event.page), arrow);
        }
        on.packets.event(event.time_ns, track, Happens::Instant(style.name, style.category), |annotations| {
            annotate(event, style, &texts, annotations);
            annotations.flow(arrow);
        });
    }

    fn other(&mut self, event: &Event, style: Style, on: &mut Canvas<'_>) {
        let texts = self.texts(event, on);
        let track = self.track(event, on);
        if event.duration_ns == 0 {
            let track = match (style.shape, self.task(event, on)) {
                (Shape::Page, Some(task)) => {
                    let below = || on.packets.track("pages", Some(task.track), 9, Kind::Plain);
                    *task.pages.get_or_insert_with(below)
                }
                _ => track,
            };
            let happens = Happens::Instant(style.name, style.category);
            return on.packets.event(event.time_ns, track, happens, |annotations| {
                annotate(event, style, &texts, annotations);
            });
        }
        let track = match self.task(event, on) {
            Some(task) => {
                let name = on.names.text(event.event);
                let below = || on.packets.track(name, Some(task.track), 1, Kind::Plain);
                *task.below.entry(event.event).or_insert_with(below)
            }
            None => track,
        };
        on.packets.event(event.time_ns, track, Happens::Begin(style.name, style.category), |annotations| {
            annotate(event, style, &texts, annotations);
        });
        on.packets.event(end_of(event), track, Happens::End, |_| {});
    }

    fn task(&mut self, event: &Event, on: &mut Canvas<'_>) -> Option<&mut Drawn> {
        let mut drawn = |task| {
            let track = on.tasks.track(on.names.text(task), on.packets);
            Drawn { track, open: Vec::new(), below: BTreeMap::new(), pages: None }
        };
        event.task.map(|task| self.tasks.place(task).get_or_insert_with(|| drawn(task)))
    }

    /// Where events of the task stand, or those of none.
    fn track(&mut self, event: &Event, on: &mut Canvas<'_>) -> Track {
        if let Some(task) = self.task(event, on) {
            return task.track;
        }
        let about = "What no task did, such as the end of a request.";
        *self.no_task.get_or_insert_with(|| on.packets.described("no task", None, 5, Kind::Plain, about))
    }

    fn style(&mut self, event: NameId, on: &mut Canvas<'_>) -> Style {
        *self.styles.place(event).get_or_insert_with(|| Style::of(on.names.text(event), on.packets))
    }

    fn text(&mut self, text: NameId, on: &mut Canvas<'_>) -> Text {
        *self.texts.place(text).get_or_insert_with(|| on.packets.text(on.names.text(text)))
    }

    fn texts(&mut self, event: &Event, on: &mut Canvas<'_>) -> [(Key, Option<Text>); 4] {
        let Event { cgroup, by_cgroup, file, reason, .. } = *event;
        let keyed =
            [(Key::Cgroup, cgroup), (Key::ByCgroup, by_cgroup), (Key::File, file), (Key::Reason, reason)];
        keyed.map(|(key, text)| (key, text.map(|text| self.text(text, on))))
    }

    /// `WAIT in WITHIN`, taken apart.
    fn wait_name(&mut self, reason: Option<NameId>, on: &mut Canvas<'_>) -> (Name, Option<Text>, Category) {
        let Some(reason) = reason else { return (on.packets.name("wait"), None, Category::Wait) };
        *self.waits.place(reason).get_or_insert_with(|| {
            let text = on.names.text(reason);
            let (wait, within) = text.split_once(" in ").map_or((text, None), |(w, i)| (w, Some(i)));
            let is_idle = IDLE.iter().any(|idle| wait.ends_with(idle));
            let category = if is_idle { Category::Idle } else { Category::Wait };
            (on.packets.name(wait), within.map(|within| on.packets.text(within)), category)
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
            "block_rq_complete" => (Shape::Complete, event),
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
        let is_awake = name == AWAKE;
        Self { shape, is_awake, name: packets.name(name), category: category(event), pages, value }
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
        "mm_vmscan_lru_shrink_active" => (Key::NrScanned, Key::NrDeactivated),
        "mm_shrink_slab_start" | "mm_shrink_slab_end" => (Key::Pages, Key::Objects),
        "block_rq_issue" | "block_rq_complete" => (Key::Pages, Key::Bytes),
        "page_refaulted" => (Key::Pages, Key::Distance),
        _ => (Key::Pages, Key::Value),
    }
}

fn annotate(
    event: &Event,
    style: Style,
    texts: &[(Key, Option<Text>)],
    annotations: &mut Annotations<'_, '_>,
) {
    for (key, text) in texts {
        if let Some(text) = text {
            annotations.text(*key, *text);
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
