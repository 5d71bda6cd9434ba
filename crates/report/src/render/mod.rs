//! Any document as text, Markdown, JSON, CSV, HTML or SVG: one renderer a format.
//!
//! Start with [`Document::render`]. Pictures are drawn by a small builder of our own ([`markup`], [`svg`]): plotting
//! libraries write colours and sizes into every element, so that a page could be neither light and dark nor narrow and
//! wide without a script.
//!
//! | file | what it writes |
//! |---|---|
//! | `text.rs` | lines for a terminal; `table.rs`, `timeline.rs`, `wrap.rs` fit them into its width |
//! | `markdown.rs` | Markdown |
//! | `data.rs` | JSON and CSV |
//! | `html.rs` | a page; `changes.rs` its bars, `look.rs`, `style.css`, `marks.css`, `script.js` how it looks |
//! | `svg.rs` | a figure, in a page or as a file |

mod changes;
mod data;
mod html;
mod look;
mod markdown;
pub(crate) mod markup;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod timeline;
pub(crate) mod wrap;

use crate::document::Document;
pub use look::MARKS_OF_OURS;

/// What a document can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines for a terminal.
    Text,
    /// Markdown.
    Markdown,
    /// One JSON object.
    Json,
    /// A CSV table.
    Csv,
    /// A page with its pictures, style and data in it.
    Html,
}

/// How a document is written, beside its format. A width alone stands for one that nobody signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style<'a> {
    /// Columns of a terminal.
    pub width: usize,
    /// The program and its version, for pages.
    pub made_by: &'a str,
}

impl From<usize> for Style<'_> {
    fn from(width: usize) -> Self {
        Self { width, made_by: "pagetide" }
    }
}

impl Document<'_> {
    /// The document in a format.
    pub fn render<'s>(&self, format: Format, style: impl Into<Style<'s>>) -> String {
        let style = style.into();
        match format {
            Format::Text => text::write(self, style.width),
            Format::Markdown => markdown::write(self, style.width),
            Format::Json => data::json(self),
            Format::Csv => data::csv(self),
            Format::Html => html::write(self, style.made_by),
        }
    }

    /// Names of the document's figures, in order.
    pub fn figures(&self) -> Vec<&str> {
        self.drawn().chain(&self.alone).map(|figure| figure.name.as_str()).collect()
    }

    /// One figure as an SVG file: the one of this name, or the first; `None` where there is none.
    pub fn svg(&self, name: Option<&str>) -> Option<String> {
        let mut figures = self.drawn().chain(&self.alone);
        figures.find(|figure| name.is_none_or(|name| figure.name == name)).map(|figure| figure.svg())
    }
}
