//! A command with a place for the size of its own cache.
//!
//! | in the command | for 64 MiB |
//! |---|---|
//! | `{}` | `64M`, the largest unit of 1024 that divides it: k, M, G, T |
//! | `{MiB}`, `{KiB}` | `64`, `65536` |
//! | `{bytes}` | `67108864` |
//!
//! Pure. Left out: a way to write such a place as it stands; no command was met that needs it.

use std::ffi::OsString;

use units::Bytes;

use crate::error::LabError;
use crate::resolve::texts::shell_quoted;

/// What stands for a size, and how that is written.
type Place = (&'static str, fn(Bytes) -> String);

const PLACES: [Place; 4] = [
    ("{}", |size| size.to_string()),
    ("{bytes}", |size| size.get().to_string()),
    ("{KiB}", |size| (size.get() >> 10).to_string()),
    ("{MiB}", |size| (size.get() >> 20).to_string()),
];

/// A command, and where the size goes in its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<OsString>);

impl Template {
    /// Of words, for these sizes.
    ///
    /// # Errors
    /// There are none; none of them has a place; a size is no whole number of the unit of a place.
    pub(super) fn new(words: &[OsString], sizes: &[Bytes]) -> Result<Self, LabError> {
        const EXAMPLE: &str =
            "such as `-- sort -S {} big.txt`, `--maxmemory {bytes}`, `shared_buffers={MiB}MB`";
        if words.is_empty() {
            return Err(LabError::refused(
                "`--own-cache` captures a command, and none is named",
                format!("name it after `--`, with `{{}}` where the size of its cache goes, {EXAMPLE}"),
            ));
        }
        let has = |place: &str| words.iter().any(|word| word.to_string_lossy().contains(place));
        if !PLACES.iter().any(|(place, _)| has(place)) {
            return Err(LabError::refused(
                "the command has no place for the size of its own cache",
                format!("write `{{}}` where it goes, {EXAMPLE}"),
            ));
        }
        for (place, unit) in [("{KiB}", 1_u64 << 10), ("{MiB}", 1 << 20)] {
            if let Some(size) = sizes.iter().find(|size| has(place) && !size.get().is_multiple_of(unit)) {
                return Err(LabError::refused(
                    format!("`{place}` has no fractions, and `--own-cache` has {size}"),
                    "write `{bytes}` in its place, or other sizes",
                ));
            }
        }
        Ok(Self(words.to_vec()))
    }

    /// With a size in its places. A word that is no text is left as it is.
    pub(super) fn at(&self, size: Bytes) -> Vec<OsString> {
        let filled = |word: &OsString| match word.to_str() {
            Some(text) => PLACES
                .iter()
                .fold(text.to_owned(), |text, (place, form)| text.replace(place, &form(size)))
                .into(),
            None => word.clone(),
        };
        self.0.iter().map(filled).collect()
    }

    /// As it is written in a shell.
    pub(super) fn shown(&self) -> String {
        shown(&self.0)
    }
}

/// Words as they are written in a shell. `{}` is none of its signs, and stays as it is.
pub(super) fn shown(words: &[OsString]) -> String {
    let word = |word: &OsString| match word.to_string_lossy() {
        text if text
            .replace("{}", "")
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_=.,:+/%".contains(c)) =>
        {
            if text.is_empty() {
                shell_quoted(&text)
            } else {
                text.into_owned()
            }
        }
        text => shell_quoted(&text),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[&str]) -> Vec<OsString> {
        texts.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_size_is_written_as_each_place_says() {
        let template = ["a", "-S", "{}", "--x={bytes}b", "{KiB}k and {MiB}MB", "{unknown}"];
        let template = Template::new(&words(&template), &[Bytes(64 << 20)]).unwrap();
        let filled = ["a", "-S", "64M", "--x=67108864b", "65536k and 64MB", "{unknown}"];
        assert_eq!(template.at(Bytes(64 << 20)), words(&filled));
        assert_eq!(template.shown(), "a -S {} '--x={bytes}b' '{KiB}k and {MiB}MB' '{unknown}'");
    }

    #[test]
    fn a_command_without_a_place_or_with_one_that_a_size_does_not_fit_is_refused() {
        let refusal = |texts: &[&str], size| {
            let error = Template::new(&words(texts), &[Bytes(size)]).unwrap_err();
            assert!(error.hint().is_some_and(|hint| hint.contains('{')), "{error}");
            error.to_string()
        };
        assert!(refusal(&[], 1).contains("none is named"));
        assert!(refusal(&["sort", "-S", "64M"], 1).contains("no place"));
        assert!(refusal(&["x", "{MiB}"], 1536 << 10).contains("`{MiB}` has no fractions"));
    }
}
