//! What a capture is known to miss, counted, and as sentences for whoever reads the trace.

use std::collections::{BTreeMap, BTreeSet};

/// What is missing.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Calls that go past all that is looked at, by name.
    pub(crate) unseen: BTreeMap<&'static str, u64>,
    /// Programs of 32 bits, whose calls have other numbers.
    pub(crate) other_tables: BTreeSet<String>,
    /// Programs that would have more rights, had nobody looked.
    pub(crate) without_rights: BTreeSet<String>,
    /// Processes of those to be followed that are not, and why.
    pub(crate) not_followed: BTreeSet<String>,
    /// Lookups that were refused in processes that are gone.
    pub(crate) refused: u64,
    /// Calls whose arguments could not be read.
    pub(crate) unread: u64,
    /// Calls of which only the beginning was seen.
    pub(crate) noted: u64,
    /// Opens of which it is not known whether they did.
    pub(crate) unsettled: u64,
    /// Looks at memory that were refused.
    pub(crate) looks_refused: u64,
    /// Writes to shared mappings cannot be told from reads here.
    pub(crate) shared_mappings: bool,
    /// Which pages were used again is not known, only how many.
    pub(crate) used_again: bool,
}

fn listed(names: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl Gaps {
    /// The sentences; `refused` lookups more, `given_up` calls without their end.
    pub(crate) fn sentences(&self, refused: u64, given_up: u64) -> Vec<String> {
        let mut told = Vec::new();
        for (call, count) in &self.unseen {
            told.push(format!("{count} calls of {call}: what they read and write is not in the trace"));
        }
        if !self.other_tables.is_empty() {
            told.push(format!(
                "programs of 32 bits, whose calls are not followed: {}",
                listed(&self.other_tables)
            ));
        }
        if !self.without_rights.is_empty() {
            let names = listed(&self.without_rights);
            told.push(format!("ran without the rights that set-user-ID or capabilities give them: {names}"));
        }
        if !self.not_followed.is_empty() {
            told.push(format!("not followed: {}", listed(&self.not_followed)));
        }
        let refused = self.refused + refused;
        if refused > 0 {
            told.push(format!("{refused} descriptors could not be looked up: their calls are missing"));
        }
        if self.unread > 0 {
            told.push(format!("{} calls had arguments that could not be read", self.unread));
        }
        if given_up > 0 {
            told.push(format!("{given_up} calls went on for so long that they were left out"));
        }
        if self.noted > 0 {
            told.push(format!(
                "{} calls were seen when they began: their length is that of their file then, and how long they \
                 took is not known",
                self.noted
            ));
        }
        if self.unsettled > 0 {
            told.push(format!(
                "{} opens were under way when their task was killed: whether they did is not known",
                self.unsettled
            ));
        }
        if self.shared_mappings {
            told.push("writes to shared mappings cannot be told from reads of them".to_owned());
        }
        if self.used_again {
            told.push(
                "how many pages of a mapping were used again is counted and how often estimated, which ones is not known"
                    .to_owned(),
            );
        }
        if self.looks_refused > 0 {
            told.push(format!("looks at memory that were refused: {}", self.looks_refused));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_missing_until_something_is() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.sentences(0, 0), Vec::<String>::new());
        gaps.unseen.insert("io_submit", 3);
        gaps.other_tables.extend((0..7).map(|number| format!("old{number}")));
        let told = gaps.sentences(2, 0);
        assert_eq!(told[0], "3 calls of io_submit: what they read and write is not in the trace");
        assert!(told[1].ends_with("old0, old1, old2, old3, old4 and 2 more"), "{}", told[1]);
        assert!(told[2].starts_with("2 descriptors"));
    }
}
