//! An explanation as titled sections of texts and tables, for a terminal or as Markdown.

use crate::table::{Table, clean};
use crate::wrap::paragraph;

#[derive(Debug)]
enum Part {
    Text(String),
    /// Lines that stay as they are.
    Lines(String),
    Table(Table),
}

/// What stands under one title. Without content it is not shown.
#[derive(Debug)]
pub(super) struct Section {
    title: String,
    parts: Vec<Part>,
}

impl Section {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), parts: Vec::new() }
    }

    /// Adds a paragraph, unless it is empty.
    pub(super) fn text(mut self, text: impl Into<String>) -> Self {
        let text = clean(&text.into());
        if !text.is_empty() {
            self.parts.push(Part::Text(text));
        }
        self
    }

    /// Adds a table, unless it is empty.
    pub(super) fn table(mut self, table: Table) -> Self {
        if !table.is_empty() {
            self.parts.push(Part::Table(table));
        }
        self
    }

    /// Adds lines that are not wrapped, unless there are none.
    pub(super) fn lines(mut self, lines: impl Into<String>) -> Self {
        let lines = lines.into();
        if !lines.is_empty() {
            self.parts.push(Part::Lines(lines));
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn to_text(&self, width: usize) -> String {
        let title = if self.title.is_empty() { String::new() } else { format!("{}\n", self.title) };
        let part = |part: &Part| match part {
            Part::Text(text) => paragraph(text, width, 0),
            Part::Lines(lines) => lines.clone(),
            Part::Table(table) => table.to_text(width),
        };
        title + &self.parts.iter().map(part).collect::<Vec<_>>().join("")
    }

    pub(super) fn to_markdown(&self) -> String {
        let title = if self.title.is_empty() { String::new() } else { format!("## {}\n\n", self.title) };
        let part = |part: &Part| match part {
            Part::Text(text) => format!("{}\n", text.replace('*', "\\*")),
            Part::Lines(lines) => format!("```text\n{lines}```\n"),
            Part::Table(table) => table.to_markdown(),
        };
        title + &self.parts.iter().map(part).collect::<Vec<_>>().join("\n")
    }
}
