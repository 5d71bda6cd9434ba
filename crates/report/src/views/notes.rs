//! What a run on a real kernel says about itself: what could not be measured or done, below the
//! figures that it is about.

use std::collections::BTreeMap;

use recording::Recording;

use crate::document::{Mark, Section};

/// One line for each note, with the runs that have it where others do not; nothing without notes.
pub(crate) fn notes(recordings: &[&Recording]) -> Section {
    Section::untitled().list(Mark::Note, lines(recordings))
}

fn lines(recordings: &[&Recording]) -> impl Iterator<Item = String> {
    let mut by_note: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for recording in recordings {
        for note in &recording.notes {
            let (runs, labels) = by_note.entry(note).or_default();
            *runs += 1;
            if !labels.contains(&recording.label.as_str()) {
                labels.push(&recording.label);
            }
        }
    }
    let all = recordings.len();
    by_note.into_iter().map(move |(note, (runs, labels))| {
        let whose = if runs < all { format!("{}: ", labels.join(", ")) } else { String::new() };
        format!("{whose}{note}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, notes: &[&str]) -> Recording {
        let mut recording = Recording::new(label, "hot-and-stream", "vm:6.12", "6.12.9", 1);
        recording.notes = notes.iter().map(|&note| note.to_owned()).collect();
        recording
    }

    #[test]
    fn a_note_of_some_runs_names_them_and_one_of_all_does_not() {
        let runs = [run("a", &["slow", "odd"]), run("a", &["slow", "odd"]), run("b", &["slow"])];
        let runs: Vec<&Recording> = runs.iter().collect();
        assert_eq!(lines(&runs).collect::<Vec<_>>(), ["a: odd", "slow"]);
        assert_eq!(lines(&runs[..1]).collect::<Vec<_>>(), ["odd", "slow"]);
        assert!(notes(&[&run("c", &[])]).is_empty());
    }
}
