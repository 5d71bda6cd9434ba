//! Axes: which range, where ticks stand, what they say.

use crate::document::number::plain;

/// An axis of a panel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) is_log: bool,
    /// Values with what stands at them.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis from exactly `low` to `high`.
    pub(crate) fn exact(low: f64, high: f64, ticks: usize) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = step(high - low, ticks);
        let first = (low / step).ceil();
        let values = (0..=2 * ticks).map(|index| (first + index as f64) * step);
        let ticks = values.take_while(|value| *value <= high + step * 1e-9).map(|v| (v, text(v, step)));
        Self { low, high, is_log: false, ticks: ticks.collect() }
    }

    /// A linear axis from 0 to a round value that is not below `high`: bars and areas are never cut.
    pub(crate) fn from_zero(high: f64, ticks: usize) -> Self {
        if !high.is_finite() || high <= 0.0 {
            return Self { low: 0.0, high: 1.0, is_log: false, ticks: vec![(0.0, "0".to_owned())] };
        }
        let step = step(high, ticks);
        let top = (high / step - 1e-9).ceil() * step;
        Self::exact(0.0, top, ticks)
    }

    /// A logarithmic axis over positive values, from one power of ten to another.
    pub(crate) fn logarithmic(low: f64, high: f64) -> Self {
        let low = if low > 0.0 { low } else { 1.0 };
        let from = low.log10().floor() as i32;
        let to = (high.max(low).log10().ceil() as i32).max(from + 1);
        let every = ((to - from) / 6 + 1) as usize;
        let powers = (from..=to).step_by(every).map(|power| (10_f64.powi(power), power_text(power)));
        Self { low: 10_f64.powi(from), high: 10_f64.powi(to), is_log: true, ticks: powers.collect() }
    }

    /// An axis of places 0, 1, 2 and so on, each with its text in its middle.
    pub(crate) fn places(texts: Vec<String>) -> Self {
        let high = texts.len().max(1) as f64;
        let ticks = texts.into_iter().enumerate().map(|(index, text)| (index as f64 + 0.5, text));
        Self { low: 0.0, high, is_log: false, ticks: ticks.collect() }
    }

    /// Where `value` stands, as a share of the axis; outside of 0 to 1 where it does not fit.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let (low, high, value) = if self.is_log {
            (self.low.log10(), self.high.log10(), value.max(self.low / 10.0).log10())
        } else {
            (self.low, self.high, value)
        };
        (value - low) / (high - low)
    }

    /// Without ticks: a place, not an amount.
    pub(crate) fn bare(mut self) -> Self {
        self.ticks.clear();
        self
    }

    /// Without texts at its ticks: the panel below has them.
    pub(crate) fn silent(mut self) -> Self {
        self.ticks.iter_mut().for_each(|(_, text)| text.clear());
        self
    }
}

/// 1, 2 or 5 times a power of ten, so that about `ticks` of them make `span`.
fn step(span: f64, ticks: usize) -> f64 {
    let rough = span / ticks.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

fn text(value: f64, step: f64) -> String {
    let places = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    short(value, places)
}

/// Large numbers in thousands and millions, as ticks have little room.
fn short(value: f64, places: usize) -> String {
    match value.abs() {
        large if large >= 1e15 => format!("{value:.0e}"),
        large if large >= 1e9 => format!("{} G", plain(value / 1e9)),
        large if large >= 1e6 => format!("{} M", plain(value / 1e6)),
        large if large >= 1e4 => format!("{} k", plain(value / 1e3)),
        _ => format!("{value:.places$}"),
    }
}

fn power_text(power: i32) -> String {
    match power {
        -4..=3 => plain(10_f64.powi(power)),
        4..=14 => short(10_f64.powi(power), 0),
        _ => format!("1e{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> String {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_and_fit_their_axis() {
        for (axis, wanted) in [
            (Axis::from_zero(2.93, 4), "0 1 2 3"),
            (Axis::from_zero(0.42, 4), "0.0 0.2 0.4 0.6"),
            (Axis::exact(0.0, 2.93, 4), "0 1 2"),
            (Axis::exact(120.0, 190.0, 4), "120 140 160 180"),
            (Axis::from_zero(2_500_000.0, 4), "0 1 M 2 M 3 M"),
            (Axis::from_zero(0.0, 4), "0"),
            (Axis::logarithmic(3.0, 4_000.0), "1 10 100 1000 10 k"),
            (Axis::logarithmic(0.0, 0.0), "1 10"),
        ] {
            assert_eq!(texts(&axis), wanted, "{axis:?}");
            assert!(axis.ticks.iter().all(|(value, _)| (-1e-9..=1.0 + 1e-9).contains(&axis.share(*value))));
        }
    }

    #[test]
    fn a_logarithmic_axis_has_equal_steps() {
        let axis = Axis::logarithmic(1.0, 100.0);
        assert!((axis.share(10.0) - 0.5).abs() < 1e-9);
        assert!(axis.share(0.0) < 0.0, "zero is left of it");
    }
}
