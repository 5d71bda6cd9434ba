//! Quantities over time as lines of small bars.
//!
//! A bar's height is its share of the line's largest value, a dot means none, and a blank that nothing was read: the
//! axis ends with the run, not with the last reading.

use crate::document::number::plain;
use crate::document::timeline::{Kind, Timeline};
use crate::document::{Table, row};

/// Columns of the terminal that names and figures take.
const BESIDE_BARS: usize = 50;

impl Timeline {
    /// In lines of at most `width` columns; empty where nothing happened.
    pub(super) fn to_text(&self, width: usize) -> String {
        if self.is_empty() {
            return String::new();
        }
        let bars = self.bars(width.saturating_sub(BESIDE_BARS).clamp(10, 60));
        let mut table = Table::new().texts(["", "", "least to most", ""]);
        let mut has_blanks = false;
        for line in &self.lines {
            let shown = self.shown(line, bars);
            let known = || shown.iter().flatten().copied();
            let (least, most) = known().fold((f64::MAX, 0.0_f64), |(l, m), x| (l.min(x), m.max(x)));
            if line.kind == Kind::Share {
                let range = format!("{least:.2} to {most:.2}");
                table.push(row![&line.name, drawn(&shown, 1.0), range, line.unit]);
            } else if most > 0.0 {
                has_blanks |= shown.contains(&None);
                let range = format!("{} to {}", plain(least), plain(most));
                table.push(row![&line.name, drawn(&shown, most), range, line.unit]);
            }
        }
        if table.is_empty() {
            return String::new();
        }
        format!(
            "over time, {bars} {} of {} s{}\n{}",
            if bars == 1 { "part" } else { "parts" },
            plain(self.seconds_of_bar(bars)),
            if has_blanks { "; blank: not read" } else { "" },
            table.to_text(width)
        )
    }
}

fn drawn(values: &[Option<f64>], most: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: &Option<f64>| match *value {
        None => ' ',
        Some(value) if value <= 0.0 => '·',
        Some(value) => BARS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.iter().map(bar).collect()
}
