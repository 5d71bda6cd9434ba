//! What a report says, before it has a form: sections of blocks, and the data behind them.
//!
//! A view ([`crate::views`]) makes one [`Document`]; the renderers ([`crate::render`]) write any document as text,
//! Markdown, JSON, CSV, HTML or SVG. So a view is one file and has all formats, and a format is one file and has all
//! views. Nothing here knows a width, a colour or a recording.
//!
//! To write a view, or to convert functions such as `x_text`, `x_markdown`, `x_json`:
//!
//! 1. One function: `pub fn x(what: &X, view: &View) -> Document<'_>`, a `Result` where `what` may be no such thing.
//! 2. `Document::new(about)`, then `.section(...)` for each part that an empty line separates on a terminal. A section
//!    without content is dropped, so nobody asks whether a table is empty before adding it.
//! 3. `Section::new(title)` or `Section::untitled()`, then blocks in order: `.line(...)` hangs its further lines by two
//!    columns, `.paragraph(...)` does not, `.lines(...)` are never broken, `.list(Mark, ...)`, `.with(table)`, and
//!    `.with(Block::...)` for all else. The first section holds [`Block::Title`], and what is to be said at once.
//! 4. A table is `Table::new().texts([...]).numbers([...]).amounts([...])`, a row `table.push(row![...])`: cells keep
//!    their type, what is missing is `None`, and a part of a whole is [`Cell::part`], not blanks before a name.
//! 5. No text is cleaned, wrapped, padded or escaped in a view: control characters go when a block is added, the rest
//!    is a matter of renderers.
//! 6. Keys of JSON and columns of CSV are a contract: `.json(move || ...)` and `.csv(move || ...)` make them when they
//!    are asked for. A document without has those that its tables make.
//! 7. Delete the old functions, call `view(...).render(format, width)`, and let the golden texts say what changed.

pub(crate) mod axis;
pub(crate) mod changes;
mod clean;
pub(crate) mod figure;
pub mod number;
mod table;
pub(crate) mod timeline;

use serde_json::Value;

use changes::Changes;
pub(crate) use clean::clean;
use figure::Figure;
pub use table::Cell;
pub(crate) use table::{Align, Table, row};
use timeline::Timeline;

/// Records of a CSV file, the first with the names of the columns.
pub(crate) type Records = Vec<Vec<String>>;

/// A report without a form. See [`crate::render`] for what it can be written as.
pub struct Document<'a> {
    /// What it is about, in a word: with this the title of a page begins.
    pub(crate) about: String,
    pub(crate) sections: Vec<Section>,
    pub(crate) json: Option<Box<dyn Fn() -> Value + 'a>>,
    pub(crate) csv: Option<Box<dyn Fn() -> Records + 'a>>,
    /// Figures that only stand alone: what the document shows in another way.
    pub(crate) alone: Vec<Figure>,
}

/// Blocks that belong together. On a terminal an empty line stands between two sections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// Empty where the blocks speak for themselves.
    pub(crate) title: String,
    /// Its anchor in a page.
    pub(crate) id: String,
    /// Whether its paragraphs are what a page is about, not remarks on a table.
    pub(crate) is_prose: bool,
    pub(crate) blocks: Vec<Block>,
}

/// What stands before each item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing: sentences below a heading.
    Sentence,
    /// A dash.
    Dash,
    /// Nothing: what holds for all that follows.
    Fact,
    /// The word `note`: what a run says about itself.
    Note,
}

/// Lines to copy elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paste {
    /// Where to.
    pub(crate) to: &'static str,
    pub(crate) lines: Vec<String>,
    /// What they lack there.
    pub(crate) lacks: &'static str,
}

/// A part of a section.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// What this is, and what came out, where that takes no table.
    Title {
        title: String,
        finding: Option<String>,
    },
    /// What only a terminal is told behind the title: it is another each time.
    Aside(String),
    /// What came out, in full sentences.
    Verdict(String),
    /// What has to be seen first: a run that was killed.
    Alarm(String),
    /// What the reader has to know of what is compared.
    Warning(String),
    /// Sentences.
    Paragraph(String),
    /// A remark that belongs to what stands around it.
    Line(String),
    List(Mark, Vec<String>),
    /// Lines that stay as they are.
    Lines(Vec<String>),
    /// A sentence with a word before it that says what it is on.
    Labelled {
        label: String,
        text: String,
    },
    /// What somebody wrote for a program, perhaps of several: whose it is, and the text.
    Code {
        label: String,
        text: String,
    },
    Paste(Paste),
    /// Commands that make all of it again, with what each is for.
    Commands {
        heading: &'static str,
        commands: Vec<(String, String)>,
    },
    Table(Table),
    Timeline(Timeline),
    Changes(Changes),
    Figure(Figure),
    /// What a reader opens if need be.
    Folded {
        heading: String,
        blocks: Vec<Block>,
    },
}

impl<'a> Document<'a> {
    /// A document about something, with nothing in it.
    pub(crate) fn new(about: impl Into<String>) -> Self {
        Self { about: clean(&about.into()), sections: Vec::new(), json: None, csv: None, alone: Vec::new() }
    }

    /// Adds a section, unless it is empty.
    pub(crate) fn section(mut self, section: Section) -> Self {
        self.sections.extend(Some(section).filter(|section| !section.blocks.is_empty()));
        self
    }

    /// Adds sections that are not empty.
    pub(crate) fn sections(self, sections: impl IntoIterator<Item = Section>) -> Self {
        sections.into_iter().fold(self, Self::section)
    }

    /// Adds a figure that only stands alone.
    pub(crate) fn alone(mut self, figure: Option<Figure>) -> Self {
        self.alone.extend(figure);
        self
    }

    /// Sets what programs get as JSON.
    pub(crate) fn json(mut self, make: impl Fn() -> Value + 'a) -> Self {
        self.json = Some(Box::new(make));
        self
    }

    /// Sets what programs get as CSV.
    pub(crate) fn csv(mut self, make: impl Fn() -> Records + 'a) -> Self {
        self.csv = Some(Box::new(make));
        self
    }
}

impl Section {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: clean(&title.into()), ..Self::default() }
    }

    pub(crate) fn untitled() -> Self {
        Self::default()
    }

    /// The section that a document begins with.
    pub(crate) fn first(title: impl Into<String>, finding: Option<String>) -> Self {
        Self::untitled().with(Block::Title { title: title.into(), finding })
    }

    /// Names its anchor in a page.
    pub(crate) fn at(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Makes its paragraphs what is to be read.
    pub(crate) fn prose(mut self) -> Self {
        self.is_prose = true;
        self
    }

    /// Adds a block, unless it is empty.
    pub(crate) fn with(mut self, block: impl Into<Block>) -> Self {
        self.blocks.extend(Some(block.into().cleaned()).filter(|block| !block.is_empty()));
        self
    }

    /// Adds blocks that are not empty.
    pub(crate) fn with_all<B: Into<Block>>(self, blocks: impl IntoIterator<Item = B>) -> Self {
        blocks.into_iter().fold(self, Self::with)
    }

    pub(crate) fn paragraph(self, text: impl Into<String>) -> Self {
        self.with(Block::Paragraph(text.into()))
    }

    pub(crate) fn line(self, text: impl Into<String>) -> Self {
        self.with(Block::Line(text.into()))
    }

    pub(crate) fn lines_of<S: Into<String>>(self, lines: impl IntoIterator<Item = S>) -> Self {
        lines.into_iter().fold(self, Self::line)
    }

    pub(crate) fn lines(self, lines: impl IntoIterator<Item = String>) -> Self {
        self.with(Block::Lines(lines.into_iter().collect()))
    }

    pub(crate) fn list(self, mark: Mark, items: impl IntoIterator<Item = String>) -> Self {
        self.with(Block::List(mark, items.into_iter().collect()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl Block {
    fn is_empty(&self) -> bool {
        match self {
            Self::Title { .. } | Self::Labelled { .. } | Self::Paste(_) | Self::Figure(_) => false,
            Self::Verdict(text)
            | Self::Aside(text)
            | Self::Alarm(text)
            | Self::Warning(text)
            | Self::Paragraph(text)
            | Self::Line(text)
            | Self::Code { text, .. } => text.is_empty(),
            Self::List(_, lines) | Self::Lines(lines) => lines.is_empty(),
            Self::Commands { commands, .. } => commands.is_empty(),
            Self::Table(table) => table.is_empty(),
            Self::Timeline(timeline) => timeline.is_empty(),
            Self::Changes(changes) => changes.rows.is_empty(),
            Self::Folded { blocks, .. } => blocks.is_empty(),
        }
    }

    /// Without control characters in what is said. Code keeps its lines, tables clean their cells themselves, and what
    /// is folded has content.
    fn cleaned(mut self) -> Self {
        let wash = |text: &mut String| *text = clean(text);
        match &mut self {
            Self::Title { title, finding } => {
                wash(title);
                finding.iter_mut().for_each(wash);
            }
            Self::Verdict(text)
            | Self::Aside(text)
            | Self::Alarm(text)
            | Self::Warning(text)
            | Self::Paragraph(text)
            | Self::Line(text) => wash(text),
            Self::List(_, lines) | Self::Lines(lines) => lines.iter_mut().for_each(wash),
            Self::Labelled { label, text } => [label, text].into_iter().for_each(wash),
            Self::Commands { commands, .. } => {
                commands.iter_mut().flat_map(|(label, command)| [label, command]).for_each(wash);
            }
            Self::Folded { blocks, .. } => blocks.retain(|block| !block.is_empty()),
            Self::Code { .. }
            | Self::Paste(_)
            | Self::Table(_)
            | Self::Timeline(_)
            | Self::Changes(_)
            | Self::Figure(_) => {}
        }
        self
    }
}

impl From<Paste> for Block {
    fn from(paste: Paste) -> Self {
        Self::Paste(paste)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Timeline> for Block {
    fn from(timeline: Timeline) -> Self {
        Self::Timeline(timeline)
    }
}

impl From<Changes> for Block {
    fn from(changes: Changes) -> Self {
        Self::Changes(changes)
    }
}

impl From<Figure> for Block {
    fn from(figure: Figure) -> Self {
        Self::Figure(figure)
    }
}
