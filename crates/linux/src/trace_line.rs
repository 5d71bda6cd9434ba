//! Lines of `trace_pipe`: of the events that tell of a timed wait, who waited, until when, how long he
//! wanted to and did.
//!
//! ```text
//!         kswapd0-52      [000] d..1.   123.456789: writeback_congestion_wait: usec_timeout=100000 usec_delayed=96000
//! ```
//!
//! Names of tasks may hold anything, so a line is read from the event on to both sides. What is not
//! understood is left out. Sources: include/trace/events/writeback.h (up to 5.15) and vmscan.h (since
//! 5.16). Next: [`crate::waits`], which sums them up.

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A wait that is over.
    Wait(TracedWait<'a>),
    /// So many events found no room in the buffer.
    Lost(u64),
    /// Nothing that matters.
    Other,
}

/// A wait that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TracedWait<'a> {
    /// The task's name, cut by the kernel to 15 bytes.
    pub(crate) task: &'a str,
    /// When it was over, in microseconds of the trace's clock.
    pub(crate) at_us: u64,
    /// In which function, and why.
    pub(crate) place: Place,
    pub(crate) timeout_us: u64,
    /// In whole ticks of the kernel.
    pub(crate) delayed_us: u64,
}

/// Where a task waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    CongestionWait,
    WaitIffCongested,
    ThrottleWriteback,
    ThrottleNoProgress,
    ThrottleIsolated,
    ThrottleCongested,
}

/// System and name of the events that tell of waits.
pub(crate) const EVENTS: [(&str, &str); 3] = [
    ("writeback", "writeback_congestion_wait"),
    ("writeback", "writeback_wait_iff_congested"),
    ("vmscan", "mm_vmscan_throttled"),
];

impl Place {
    /// The kernel's function, as recordings call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CongestionWait => "congestion_wait",
            Self::WaitIffCongested => "wait_iff_congested",
            Self::ThrottleWriteback => "reclaim_throttle: writeback",
            Self::ThrottleNoProgress => "reclaim_throttle: no progress",
            Self::ThrottleIsolated => "reclaim_throttle: isolated",
            Self::ThrottleCongested => "reclaim_throttle: congested",
        }
    }

    fn of(event: &str, fields: &str) -> Option<Self> {
        match event {
            "writeback_congestion_wait" => Some(Self::CongestionWait),
            "writeback_wait_iff_congested" => Some(Self::WaitIffCongested),
            _ => match word_of(fields, "reason=")?.rsplit_once('_')?.1 {
                "WRITEBACK" => Some(Self::ThrottleWriteback),
                "NOPROGRESS" => Some(Self::ThrottleNoProgress),
                "ISOLATED" => Some(Self::ThrottleIsolated),
                "CONGESTED" => Some(Self::ThrottleCongested),
                _ => None,
            },
        }
    }
}

/// Reads one line.
pub(crate) fn line(line: &str) -> Line<'_> {
    let found = EVENTS.iter().find_map(|(_, event)| {
        let (head, rest) = line.split_once(event)?;
        Some((head.strip_suffix(": ")?, *event, rest.strip_prefix(": ")?))
    });
    match found {
        Some((head, event, fields)) => wait(head, event, fields).map_or(Line::Other, Line::Wait),
        None => lost(line).map_or(Line::Other, Line::Lost),
    }
}

fn wait<'a>(head: &'a str, event: &str, fields: &str) -> Option<TracedWait<'a>> {
    let (head, time) = head.trim_end().rsplit_once(' ')?;
    let (seconds, micros) = time.split_once('.').filter(|(_, micros)| micros.len() == 6)?;
    let at_us = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
    let (task, _) = head.rsplit_once(" [")?;
    let (task, pid) = task.trim_end().rsplit_once('-')?;
    pid.parse::<u32>().ok()?;
    Some(TracedWait {
        task: task.trim_start(),
        at_us,
        place: Place::of(event, fields)?,
        timeout_us: word_of(fields, "usec_timeout=")?.parse().ok()?,
        delayed_us: word_of(fields, "usec_delayed=")?.parse().ok()?,
    })
}

/// The value behind `key` in fields that blanks separate.
fn word_of<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    fields.split_ascii_whitespace().find_map(|field| field.strip_prefix(key))
}

/// `CPU:1 [LOST 123 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("CPU:")?.split_once(" [LOST ")?;
    rest.strip_suffix(" EVENTS]")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(text: &str) -> String {
        match line(text) {
            Line::Other => "-".to_owned(),
            Line::Lost(count) => format!("{count} lost"),
            Line::Wait(TracedWait { task, at_us, place, timeout_us, delayed_us }) => {
                format!("{task:?} at {at_us} us: {}, {delayed_us} of {timeout_us} us", place.name())
            }
        }
    }

    #[test]
    fn waits_of_all_kernels_are_read_whatever_the_task_is_called() {
        let lines = [
            "         kswapd0-52      [000] d..1   123.456789: writeback_congestion_wait: usec_timeout=100000 usec_delayed=96000",
            "        reader-3-1234    [001] ..... 98765.000001: writeback_wait_iff_congested: usec_timeout=100000 usec_delayed=0",
            "     kworker/0:1-7       [000] .....     1.000000: mm_vmscan_throttled: nid=0 usec_timeout=100000 usec_delayed=4000 reason=VMSCAN_THROTTLE_WRITEBACK",
            "    a [b] 1.5: x-77     [012] ..... 2.000000: mm_vmscan_throttled: nid=1 usec_timeout=4000 usec_delayed=4000 reason=VMSCAN_THROTTLE_NOPROGRESS",
            "  t-1 [000] ..... 2.000000: mm_vmscan_throttled: nid=1 usec_timeout=20000 usec_delayed=0 reason=VMSCAN_THROTTLE_ISOLATED",
            "  t-1 [000] ..... 2.000000: mm_vmscan_throttled: nid=1 usec_timeout=20000 usec_delayed=0 reason=VMSCAN_THROTTLE_CONGESTED",
            "CPU:1 [LOST 123 EVENTS]",
        ];
        insta::assert_snapshot!(lines.map(told).join("\n"), @r#"
        "kswapd0" at 123456789 us: congestion_wait, 96000 of 100000 us
        "reader-3" at 98765000001 us: wait_iff_congested, 0 of 100000 us
        "kworker/0:1" at 1000000 us: reclaim_throttle: writeback, 4000 of 100000 us
        "a [b] 1.5: x" at 2000000 us: reclaim_throttle: no progress, 4000 of 4000 us
        "t" at 2000000 us: reclaim_throttle: isolated, 0 of 20000 us
        "t" at 2000000 us: reclaim_throttle: congested, 0 of 20000 us
        123 lost
        "#);
    }

    #[test]
    fn garbage_is_left_out() {
        for text in [
            "",
            "# tracer: nop",
            "writeback_congestion_wait",
            "writeback_congestion_wait: usec_timeout=1 usec_delayed=1",
            ": writeback_congestion_wait: ",
            "t-1 [000] ... 2.0: writeback_congestion_wait: usec_timeout=1 usec_delayed=1",
            "t-1 [000] ... 2.000000: writeback_congestion_wait: usec_timeout=1",
            "t-1 [000] ... 2.000000: writeback_congestion_wait: usec_timeout=-1 usec_delayed=1",
            "t-1 [000] ... 99999999999999999999.000000: writeback_congestion_wait: usec_timeout=1 usec_delayed=1",
            "t-x [000] ... 2.000000: writeback_congestion_wait: usec_timeout=1 usec_delayed=1",
            "t-1 [000] ... 2.000000: mm_vmscan_throttled: nid=0 usec_timeout=1 usec_delayed=1 reason=VMSCAN_THROTTLE_NEW",
            "t-1 [000] ... 2.000000: mm_vmscan_throttled: nid=0 usec_timeout=1 usec_delayed=1",
            "t-1 [000] ... 2.000000: mm_page_alloc: page=0 order=0",
            "CPU:1 [LOST many EVENTS]",
        ] {
            assert_eq!(line(text), Line::Other, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(head in "\\PC{0,40}", tail in "\\PC{0,60}") {
            let _ = line(&format!("{head}: writeback_congestion_wait: {tail}"));
            let _ = line(&format!("{head}{tail}"));
        }
    }
}
