//! A run over time: quantities between two moments, each with its readings.
//!
//! A level is what was last read; of events the rate is known from the readings around a moment, between two of which
//! it counts as even. Left out: into how many bars they go (`render/timeline.rs`), which is a matter of room.

/// How readings become bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// How much there is.
    Level,
    /// What has happened, as a rate.
    Events,
    /// A share of 1, whose bars are parts of 1.
    Share,
}

/// One quantity.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) kind: Kind,
    /// A value for each reading.
    pub(crate) values: Vec<f64>,
}

/// Quantities over the same readings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    /// When was read, in nanoseconds, in order.
    pub(crate) times_ns: Vec<u64>,
    /// When the run ended, which is not before the last reading.
    pub(crate) end_ns: u64,
    pub(crate) lines: Vec<Line>,
}

impl Timeline {
    /// Whether there is nothing to draw: less than two readings, or quantities that are 0 throughout.
    pub(crate) fn is_empty(&self) -> bool {
        let spans = self.times_ns.first() < self.times_ns.last() && self.times_ns.is_sorted();
        !spans
            || self
                .lines
                .iter()
                .all(|line| line.kind != Kind::Share && line.values.iter().all(|&value| value <= 0.0))
    }

    /// Into how many parts of the run `most` bars can go: more than readings would look like more than is known.
    pub(crate) fn bars(&self, most: usize) -> usize {
        most.min(self.times_ns.len() - 1)
    }

    /// Length of one of so many parts, in seconds.
    pub(crate) fn seconds_of_bar(&self, bars: usize) -> f64 {
        (self.end_ns - self.times_ns[0]) as f64 / 1e9 / bars as f64
    }

    /// What a line shows in each of so many parts: a level at the end of it, or events of a second in it; nothing
    /// where nothing was read any more.
    pub(crate) fn shown(&self, line: &Line, bars: usize) -> Vec<Option<f64>> {
        let (start, length) = (self.times_ns[0] as f64, (self.end_ns - self.times_ns[0]) as f64);
        let at = |number: usize| start + length * number as f64 / bars as f64;
        (0..bars).map(|bar| self.value(line, at(bar), at(bar + 1))).collect()
    }

    fn value(&self, line: &Line, from: f64, to: f64) -> Option<f64> {
        let last = *self.times_ns.last()? as f64;
        if from >= last {
            return None;
        }
        let to = to.min(last);
        Some(match line.kind {
            Kind::Level | Kind::Share => line.values[self.last_reading(to)],
            Kind::Events => {
                let events = self.counted(line, to) - self.counted(line, from);
                events.max(0.0) / ((to - from) / 1e9)
            }
        })
    }

    /// The last reading at or before `at`, which is not before the first.
    fn last_reading(&self, at: f64) -> usize {
        self.times_ns.partition_point(|&time| time as f64 <= at).saturating_sub(1)
    }

    /// What a counter had counted by `at`, if it went evenly between two readings.
    fn counted(&self, Line { values, .. }: &Line, at: f64) -> f64 {
        let times = &self.times_ns;
        let before = self.last_reading(at);
        let Some(&next) = times.get(before + 1) else { return values[before] };
        let past = (at - times[before] as f64) / (next - times[before]) as f64;
        values[before] + (values[before + 1] - values[before]) * past
    }
}
