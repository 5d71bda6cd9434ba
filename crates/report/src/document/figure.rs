//! A figure as data: a finding as its title, panels of marks between shared axes, and how to read and to reproduce it.
//!
//! Left out: how it looks. `render/svg.rs` draws it, `render/html.rs` puts it into a page. Colours are classes: `base`
//! is grey, `new` the accent, `pay` what a task pays. Next: [`super::axis`].

use super::axis::Axis;

/// Panels below each other on one x axis; beside others, a small multiple.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Whose panels these are; empty where there is one column only.
    pub(crate) heading: String,
    pub(crate) panels: Vec<Panel>,
}

/// An entry of the legend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    /// Class of the mark.
    pub(crate) class: String,
    /// Whether it fills an area.
    pub(crate) filled: bool,
    pub(crate) text: String,
}

impl Key {
    pub(crate) fn line(class: &str, text: impl Into<String>) -> Self {
        Self { class: class.to_owned(), filled: false, text: text.into() }
    }

    pub(crate) fn area(class: &str, text: impl Into<String>) -> Self {
        Self { class: class.to_owned(), filled: true, text: text.into() }
    }
}

/// A figure with all that a reader needs to judge it.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// How it is asked for, and its anchor in a page.
    pub(crate) name: String,
    /// What it shows, as a sentence with numbers.
    pub(crate) finding: String,
    /// What is counted, and of how many runs.
    pub(crate) n: String,
    /// What the axes are.
    pub(crate) axes: String,
    pub(crate) keys: Vec<Key>,
    pub(crate) columns: Vec<Column>,
    /// How to read it.
    pub(crate) read: String,
    /// Labels with the commands that make the runs again.
    pub(crate) commands: Vec<(String, String)>,
}

/// What is drawn in a panel.
#[derive(Debug, Clone)]
pub(crate) enum Mark {
    /// A line through points, straight or in steps.
    Line { class: String, points: Vec<(f64, f64)>, steps: bool },
    /// From 0 up to each point's value, level until the next one.
    Area { class: String, points: Vec<(f64, f64)> },
    /// A moment with its name, which stands in one of several rows.
    Moment { x: f64, label: String, row: usize },
    /// Short strokes at the foot of the panel, with what is said of each.
    Ticks { class: String, at: Vec<(f64, String)> },
    /// Points, with what is said of each.
    Dots { class: String, points: Vec<(f64, f64, String)> },
    /// Rectangles of some shade.
    Cells(Vec<CellMark>),
    /// A bar of the panel's height, from one place to another, with what is said of it.
    Bar { class: String, from: f64, to: f64, title: String },
    /// A text in the middle of its place.
    Text { class: String, x: f64, y: f64, text: String },
}

/// A cell of a heatmap.
#[derive(Debug, Clone)]
pub(crate) struct CellMark {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    pub(crate) shade: String,
    pub(crate) title: String,
}

/// A panel of a figure.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    /// What is shown, with its unit.
    pub(crate) caption: String,
    /// In pixels.
    pub(crate) height: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// What the x axis is, where it has texts.
    pub(crate) x_label: String,
    pub(crate) marks: Vec<Mark>,
    /// Lines that a reader can point at: name, class, points.
    pub(crate) lines: Vec<NamedLine>,
}

/// A line with a name, for the legend and for who points at it.
#[derive(Debug, Clone)]
pub(crate) struct NamedLine {
    pub(crate) label: String,
    pub(crate) class: String,
    pub(crate) points: Vec<(f64, f64)>,
}
