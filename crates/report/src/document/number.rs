//! Numbers as text, with as many digits as they deserve.
//!
//! Digits follow the uncertainty; a non-zero number never reads as 0; what is not a number says
//! so. Whole numbers without a known uncertainty keep all their digits.

/// Numbers of this size are written with an exponent.
pub const LARGE: f64 = 1e15;

/// A number whose uncertainty is not known: whole numbers in full, others to four digits.
///
/// From [`LARGE`] on, and below a ten-thousandth, it is written with an exponent.
pub fn plain(value: f64) -> String {
    if !value.is_finite() {
        return "undefined".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs();
    if value.fract() == 0.0 && magnitude < LARGE {
        return format!("{value:.0}");
    }
    if !(1e-4..LARGE).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    significant(value, 4)
}

/// `value` and its spread, such as `5.8 ± 0.6`: the spread to one digit (two after a leading 1),
/// the value to the same place.
pub fn with_spread(value: f64, spread: f64) -> String {
    if !value.is_finite() || !spread.is_finite() {
        return plain(value);
    }
    if spread == 0.0 {
        return format!("{} ± 0", plain(value));
    }
    if value.abs().max(spread) >= LARGE {
        return format!("{value:.3e} ± {spread:.1e}");
    }
    let places = visible_places(value, places_of_spread(spread));
    format!("{value:.places$} ± {spread:.places$}")
}

/// Below this a percentage is told as none worth a number.
pub const SMALL_PERCENT: f64 = 0.05;
/// From this on a percentage is told as a multiple.
const LARGE_PERCENT: f64 = 1000.0;

/// A change in percent with its sign, such as `+1.4 %`: one decimal, none from 100 on; `<0.1 %` for
/// one that would read as 0, and `x 102` for one that nobody reads in percent.
pub fn signed_percent(percent: f64) -> String {
    let magnitude = percent.abs();
    if !percent.is_finite() {
        return "undefined".into();
    }
    match magnitude {
        0.0 => "0 %".into(),
        _ if magnitude < SMALL_PERCENT => "<0.1 %".into(),
        _ if percent >= LARGE_PERCENT => format!("x {}", multiple(percent)),
        _ if percent.fract() == 0.0 || magnitude > 100.0 => format!("{percent:+.0} %"),
        // 99.97 % is not all of it.
        _ if magnitude >= 99.95 => format!("{percent:+.2} %"),
        _ => format!("{percent:+.1} %"),
    }
}

/// How many times as much, to three digits.
fn multiple(percent: f64) -> String {
    let times = 1.0 + percent / 100.0;
    if times >= LARGE { format!("{times:.2e}") } else { significant(times, 3) }
}

/// A change with its sign, to three digits; whole numbers in full.
pub fn signed(change: f64) -> String {
    if !change.is_finite() {
        return "undefined".into();
    }
    let text = if change.abs() >= LARGE {
        format!("{change:.2e}")
    } else if change.fract() == 0.0 {
        format!("{change:.0}")
    } else {
        significant(change, 3)
    };
    match change {
        change if change > 0.0 => format!("+{text}"),
        0.0 => "0".into(),
        _ => text,
    }
}

/// A percentage with its interval, such as `-93 % [-95, -91]`: digits follow the interval, down to
/// a tenth; as in [`signed_percent`] a large one is a multiple.
pub fn percent_with_interval(percent: f64, low: f64, high: f64) -> String {
    if ![percent, low, high].iter().all(|x| x.is_finite()) {
        return "undefined".into();
    }
    if percent >= LARGE_PERCENT {
        return format!("x {} [{}, {}]", multiple(percent), multiple(low), multiple(high));
    }
    if [percent, low, high].iter().any(|x| x.abs() >= LARGE) {
        return format!("{percent:+.1e} % [{low:+.1e}, {high:+.1e}]");
    }
    if [percent, low, high].iter().all(|x| x.abs() < SMALL_PERCENT) {
        return "<0.1 %".into();
    }
    let half_width = (high - low) / 2.0;
    if half_width <= 0.0 {
        return signed_percent(percent);
    }
    let places = places_of_spread(half_width).min(1);
    let write = |x: f64| match format!("{x:+.places$}") {
        zero if zero.trim_start_matches(['+', '-', '0', '.']).is_empty() => format!("{:.places$}", 0.0),
        text => text,
    };
    format!("{} % [{}, {}]", write(percent), write(low), write(high))
}

/// Nanoseconds as seconds, for programs.
pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// A length of time in the unit that suits it: `17 ns`, `4.6 µs`, `900 ms`, `23.14 s`.
pub fn duration(nanoseconds: f64) -> String {
    for (unit, scale) in [("s", 1e9), ("ms", 1e6), ("µs", 1e3)] {
        if nanoseconds >= scale {
            return format!("{} {unit}", significant(nanoseconds / scale, 4));
        }
    }
    format!("{} ns", plain(nanoseconds))
}

/// Decimal places so that a spread shows one digit, or two after a leading 1.
fn places_of_spread(spread: f64) -> usize {
    let exponent = spread.abs().log10().floor();
    let leading = (spread.abs() / 10_f64.powf(exponent)).round();
    let digits_after_first = if leading <= 1.0 { 1.0 } else { 0.0 };
    (digits_after_first - exponent).clamp(0.0, 12.0) as usize
}

/// At least `places`, and more where a non-zero value would read as 0.
fn visible_places(value: f64, places: usize) -> usize {
    if value == 0.0 || value.abs() < 1e-12 {
        return places;
    }
    let needed = (-value.abs().log10()).ceil().clamp(0.0, 12.0) as usize;
    places.max(if value.abs() * 10_f64.powf(places as f64) < 0.5 { needed } else { 0 })
}

/// A number to this many significant digits, without trailing zeros after the point.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let exponent = value.abs().log10().floor() as i32;
    let places = usize::try_from((digits - 1 - exponent).clamp(0, 17)).unwrap_or(0);
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_keep_what_they_know() {
        for (value, text) in [
            (45_382_917.0, "45382917"),
            (0.0, "0"),
            (-0.0, "0"),
            (5004.751, "5005"),
            (33.704, "33.7"),
            (0.012_345_6, "0.01235"),
            (0.000_001_2, "1.200e-6"),
            (f64::NAN, "undefined"),
            (1e300, "1.000e300"),
        ] {
            assert_eq!(plain(value), text);
        }
    }

    #[test]
    fn digits_follow_the_uncertainty() {
        for (value, spread, text) in [
            (89.3, 4.2, "89 ± 4"),
            (5.83, 0.61, "5.8 ± 0.6"),
            (41.27, 1.3, "41.3 ± 1.3"),
            (5004.75, 1778.7, "5005 ± 1779"),
            (1710.0, 0.0, "1710 ± 0"),
            (0.3, 4.0, "0.3 ± 4.0"), // a non-zero value never reads as 0
            (12.0, 0.96, "12.0 ± 1.0"),
        ] {
            assert_eq!(with_spread(value, spread), text);
        }
    }

    #[test]
    fn changes_carry_their_sign_and_interval() {
        for (percent, text) in [
            (1.4231, "+1.4 %"),
            (-50.0, "-50 %"),
            (0.0, "0 %"),
            (273.69, "+274 %"),
            (-99.97, "-99.97 %"),
            (10_058.7, "x 102"),
            // This was "-0.00123 %": digits that nobody can mean.
            (-0.001_234, "<0.1 %"),
        ] {
            assert_eq!(signed_percent(percent), text);
        }
        assert_eq!(percent_with_interval(-93.2, -95.3, -91.1), "-93 % [-95, -91]");
        assert_eq!(percent_with_interval(4.6, -2.9, 12.1), "+5 % [-3, +12]");
        assert_eq!(percent_with_interval(-0.362, -0.363, -0.361), "-0.4 % [-0.4, -0.4]");
        assert_eq!(percent_with_interval(0.011, -0.01, 0.03), "<0.1 %");
        assert_eq!(percent_with_interval(10_059.0, 9_950.0, 10_160.0), "x 102 [100, 103]");
    }

    #[test]
    fn durations_choose_their_unit() {
        assert_eq!(duration(17.0), "17 ns");
        assert_eq!(duration(900_000_000.0), "900 ms");
        assert_eq!(duration(23_142_000_000.0), "23.14 s");
    }
}
