//! Sentences with numbers: what findings and verdicts are made of.

use crate::document::number::plain;

/// A number to three digits with its unit.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    let text = short(value);
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// Three digits, and what is not nothing never reads as 0.
pub(crate) fn short(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || !value.is_finite() {
        return plain(value);
    }
    if magnitude >= 100.0 {
        return plain(value.round());
    }
    let places = (2.0 - magnitude.log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.places$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) {
        plain(value)
    } else {
        text.to_owned()
    }
}

/// What a kernel came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) label: String,
    pub(crate) value: f64,
    /// The value with its unit.
    pub(crate) text: String,
}

/// `what`: so much on the first kernel, so much on the second; of many the first, the least and the most.
/// In the order of kernels.
pub(crate) fn by_kernel(what: &str, values: &[Told]) -> String {
    const ALL_MAX: usize = 3;
    let said = |told: &Told| format!("{} on {}", told.text, told.label);
    match values {
        [] => capital(what),
        all if all.iter().all(|told| told.text == all[0].text) && all.len() > 1 => {
            let all_of = if all.len() == 2 { "both".to_owned() } else { format!("all {}", all.len()) };
            format!("{}: {} on {all_of}", capital(what), all[0].text)
        }
        all if all.len() <= ALL_MAX => {
            format!("{}: {}", capital(what), all.iter().map(said).collect::<Vec<_>>().join(", "))
        }
        [first, rest @ ..] => {
            let by_value = |a: &&Told, b: &&Told| a.value.total_cmp(&b.value);
            let least = rest.iter().min_by(by_value).unwrap_or(first);
            let most = rest.iter().max_by(by_value).unwrap_or(first);
            if least.text == most.text {
                return format!(
                    "{}: {}, {} on the {} others",
                    capital(what),
                    said(first),
                    least.text,
                    rest.len()
                );
            }
            format!(
                "{}: {}; of {} others {} to {}",
                capital(what),
                said(first),
                rest.len(),
                said(least),
                said(most)
            )
        }
    }
}

/// With a capital letter, unless it is a name.
pub(crate) fn capital(text: &str) -> String {
    let is_name = text.split(' ').next().is_some_and(|word| word.contains('_'));
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !is_name => first.to_uppercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_kernels_are_told_by_their_extremes() {
        let values = |pairs: &[(&str, f64)]| -> Vec<Told> {
            let told = |&(label, value): &(&str, f64)| Told {
                label: label.to_owned(),
                value,
                text: amount(value, "MiB"),
            };
            pairs.iter().map(told).collect()
        };
        for (given, wanted) in [
            (values(&[("a", 1.0), ("b", 50.0)]), "Page cache: 1 MiB on a, 50 MiB on b"),
            (values(&[("a", 50.0), ("b", 50.0)]), "Page cache: 50 MiB on both"),
            (
                values(&[("a", 1.0), ("b", 50.0), ("c", 7.0), ("d", 9.0)]),
                "Page cache: 1 MiB on a; of 3 others 7 MiB on c to 50 MiB on b",
            ),
        ] {
            assert_eq!(by_kernel("page cache", &given), wanted);
        }
    }

    #[test]
    fn amounts_have_three_digits_and_never_read_as_nothing() {
        assert_eq!(
            [0.0, 0.246_09, 50.0, 12.345, 6414.3, 0.000_123_4].map(short),
            ["0", "0.246", "50", "12.3", "6414", "0.000123"]
        );
        assert_eq!(short(1e-12), "1.000e-12");
    }
}
