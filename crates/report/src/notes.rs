//! What a run on a real kernel says about itself: what could not be measured or done, below the
//! figures that it is about.

use std::collections::BTreeMap;

use recording::Recording;

use crate::table::clean;
use crate::wrap::paragraph;

/// One line for each note, with the runs that have it where others do not; nothing without notes.
pub(crate) fn notes_text(recordings: &[&Recording], width: usize) -> String {
    lines(recordings).map(|line| paragraph(&format!("note: {line}"), width, 2)).collect()
}

/// [`notes_text`] as a list in Markdown.
pub(crate) fn notes_markdown(recordings: &[&Recording]) -> String {
    lines(recordings).map(|line| format!("- note: {line}\n")).collect()
}

/// A section of its own, unless it is empty.
pub(crate) fn separated(section: String) -> String {
    if section.is_empty() { section } else { format!("\n{section}") }
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
        clean(&format!("{whose}{note}"))
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
        assert_eq!(notes_text(&runs, 80), "note: a: odd\nnote: slow\n");
        assert_eq!(notes_markdown(&runs[..1]), "- note: odd\n- note: slow\n");
        assert_eq!(notes_text(&[&run("c", &[])], 80), "");
    }
}
