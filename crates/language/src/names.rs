//! Unknown names and the known ones that they resemble: the source of every "did you mean".
//!
//! Left out: what the names mean. Neighbour: [`crate::params`].

use std::fmt;

use strsim::damerau_levenshtein;

/// A name that nothing carries, with what the reader may have meant.
///
/// The message is [`fmt::Display`]; the remedy is [`UnknownName::hint`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// What kind of thing was named: `kernel`, `parameter`, `key`.
    pub what: &'static str,
    /// The name as it was written.
    pub name: String,
    hint: String,
}

impl UnknownName {
    /// `name` is none of `known`; both the message and the hint follow from that.
    pub fn new<'a>(what: &'static str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let mut nearest = nearest_all(name, known.iter().copied());
        nearest.truncate(LISTED_MAX);
        let quoted: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
        let hint = match &quoted[..] {
            [] if known.is_empty() => format!("no {what} has a name here"),
            [] => listed(what, &known),
            [only] => format!("did you mean {only}?"),
            [first @ .., last] => format!("did you mean {} or {last}?", first.join(", ")),
        };
        Self { what, name: name.to_owned(), hint }
    }

    /// What to write instead: the nearest name, or else the known ones.
    pub fn hint(&self) -> String {
        self.hint.clone()
    }
}

/// More names than this are a table, not a hint; `pagetide list` prints those of [`LISTS`].
const LISTED_MAX: usize = 12;

/// What `pagetide list` has a list of, by the plural.
const LISTS: [&str; 6] = ["workload", "kernel", "feature", "sysctl", "counter", "machine"];

fn listed(what: &str, known: &[&str]) -> String {
    let names: Vec<String> = known.iter().take(LISTED_MAX).map(|name| format!("`{name}`")).collect();
    let rest = match known.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more if LISTS.contains(&what) => format!(" and {more} more, which `pagetide list {what}s` shows"),
        more => format!(" and {more} more"),
    };
    format!("known names: {}{rest}", names.join(", "))
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}`", self.what, self.name)
    }
}

impl std::error::Error for UnknownName {}

/// The candidate that a person most likely meant by `typed`; the first of equals.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_all(typed, candidates).first().copied()
}

/// The candidates that a person most likely meant by `typed`: equally near, in their own order.
///
/// Typing slips are counted as in Damerau-Levenshtein (a swap is one slip); a third of the letters
/// may be wrong. A name that was only left unfinished, or written without its prefix
/// (`min_free_kbytes` for `vm.min_free_kbytes`), counts as one slip.
fn nearest_all<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    /// Longer texts are not a slip of the fingers, and the measure takes quadratic time.
    const TYPED_LEN_MAX: usize = 128;
    if typed.is_empty() || typed.len() > TYPED_LEN_MAX {
        return Vec::new();
    }
    let typed = typed.to_lowercase();
    let slips = |candidate: &str| {
        let part = typed.len() >= 3 && (candidate.starts_with(&typed) || candidate.ends_with(&typed));
        if part { 1 } else { damerau_levenshtein(&typed, &candidate.to_lowercase()) }
    };
    let slips_max = (typed.chars().count() / 3).max(1);
    let measured: Vec<(usize, &str)> =
        candidates.into_iter().map(|candidate| (slips(candidate), candidate)).collect();
    let least = measured.iter().map(|(slips, _)| *slips).min().filter(|least| *least <= slips_max);
    measured.into_iter().filter(|(slips, _)| Some(*slips) == least).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["hot-and-stream", "small-files", "vm.min_free_kbytes", "vm.swappiness"];

    #[test]
    fn slips_find_the_name_and_nonsense_finds_nothing() {
        for (typed, meant) in [
            ("hot-and-steam", Some("hot-and-stream")),
            ("Small-Flies", Some("small-files")),
            ("min_free_kbytes", Some("vm.min_free_kbytes")),
            ("vm.swap", Some("vm.swappiness")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, NAMES), meant, "{typed}");
        }
        assert_eq!(nearest(&"x".repeat(1 << 20), NAMES), None);
    }

    #[test]
    fn the_first_of_equally_near_names_was_suggested_as_if_it_were_the_only_one() {
        let hint = |name| UnknownName::new("kernel", name, ["linux-5.3", "linux-5.4", "linux-5.5"]).hint();
        assert_eq!(hint("linux-5.6"), "did you mean `linux-5.3`, `linux-5.4` or `linux-5.5`?");
        assert_eq!(hint("linux-5.44"), "did you mean `linux-5.4`?");
    }

    #[test]
    fn a_hint_lists_the_names_when_none_is_near() {
        let near = UnknownName::new("workload", "smallfiles", NAMES);
        assert_eq!(near.hint(), "did you mean `small-files`?");
        let far = UnknownName::new("colour", "mauve", ["red", "blue"]);
        assert_eq!(format!("{far}; {}", far.hint()), "unknown colour `mauve`; known names: `red`, `blue`");
    }

    /// Of 87 features a hint named 12, and not where the others are.
    #[test]
    fn a_hint_that_leaves_names_out_tells_where_they_are() {
        let known = vec!["abcdefgh"; LISTED_MAX + 1];
        let hint = |what| UnknownName::new(what, "zzz", known.iter().copied()).hint();
        assert!(hint("feature").ends_with(" and 1 more, which `pagetide list features` shows"));
        assert!(hint("file").ends_with(" and 1 more"));
    }
}
