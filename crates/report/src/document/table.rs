//! One table: columns by how they are aligned, and rows of typed cells.
//!
//! A cell keeps what it is: people get a number with the digits that it deserves, programs the number itself.
//! Left out: how wide a table is on a terminal (`render/table.rs`). Names that came with a recording are cleaned of
//! control characters here, so that no file can steer a terminal.

use recording::WITHIN;
use serde_json::{Value, json};
use units::Bytes;

use super::clean::clean;
use super::number::{duration, plain};

/// How a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text from the left; may be wrapped.
    Left,
    /// Numbers on the decimal point; wrapped only where a line holds no number.
    Number,
    /// From the right, where units differ from row to row; wrapped as numbers are.
    Right,
}

/// What stands in one place of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Words, or a number that somebody has written already.
    Text(String),
    /// How many.
    Count(u64),
    /// A number with as many digits as it deserves.
    Number(f64),
    /// Nanoseconds, in the unit that suits them.
    Time(f64),
    /// A size: with its suffix for a person, in bytes for a program.
    Size(Bytes),
    /// A part of something: by how deep it is in it where a reader sees that, else with the whole's name.
    Part {
        /// Where it is, outermost first.
        within: Vec<String>,
        /// Its own name.
        name: String,
    },
    /// There is none: nothing stands there.
    None,
    /// There is none, which a dash says.
    Dash,
}

impl Cell {
    /// A part by its name, in what it is, outermost first.
    pub(crate) fn part(within: &[&str], name: &str) -> Self {
        Self::Part { within: within.iter().map(|&whole| whole.to_owned()).collect(), name: name.to_owned() }
    }

    /// Without control characters.
    fn cleaned(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(clean(&text)),
            Self::Part { within, name } => {
                Self::Part { within: within.iter().map(|whole| clean(whole)).collect(), name: clean(&name) }
            }
            other => other,
        }
    }

    /// As a person reads it in lines where indentation is seen.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Number(value) => plain(*value),
            Self::Time(nanoseconds) => duration(*nanoseconds),
            Self::Size(size) => size.to_string(),
            Self::Part { within, name } => "  ".repeat(within.len()) + name,
            Self::None => String::new(),
            Self::Dash => "-".to_owned(),
        }
    }

    /// As it reads by itself: a part names its whole.
    pub(crate) fn in_full(&self) -> String {
        match self {
            Self::Part { within, name } => {
                within.iter().chain([name]).map(String::as_str).collect::<Vec<_>>().join(WITHIN)
            }
            other => other.shown(),
        }
    }

    /// For programs; sizes in bytes, times in nanoseconds.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Count(count) => json!(count),
            Self::Number(value) | Self::Time(value) => json!(value),
            Self::Size(size) => json!(size.get()),
            Self::None | Self::Dash => Value::Null,
            Self::Text(_) | Self::Part { .. } => json!(self.in_full()),
        }
    }

    /// As a field of CSV.
    pub(crate) fn field(&self) -> String {
        match self.value() {
            Value::Null => String::new(),
            Value::String(text) => text,
            number => number.to_string(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<Bytes> for Cell {
    fn from(size: Bytes) -> Self {
        Self::Size(size)
    }
}

/// What may be missing is a dash.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Dash, Into::into)
    }
}

/// Cells of one row, each made of what it is.
macro_rules! row {
    ($($cell:expr),* $(,)?) => { [$($crate::document::Cell::from($cell)),*] };
}
pub(crate) use row;

/// Headings and rows.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) headings: Vec<(String, Align)>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// How many columns, from the first on, name a row: each block has them.
    pub(crate) names: usize,
    /// How many columns after those belong together; those beyond are each for themselves.
    pub(crate) groups: Vec<usize>,
    /// Whether a name of the first column may break at its joints.
    pub(crate) breaks_names: bool,
    /// Columns with which a terminal begins a new table, and how many columns stand in each of them.
    pub(crate) breaks: (usize, Vec<usize>),
}

impl Table {
    /// A table without columns, the first of which will name the row.
    pub(crate) fn new() -> Self {
        Self {
            headings: Vec::new(),
            rows: Vec::new(),
            names: 1,
            groups: Vec::new(),
            breaks_names: false,
            breaks: (0, Vec::new()),
        }
    }

    /// Adds columns of words.
    pub(crate) fn texts<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns(Align::Left, names)
    }

    /// Adds columns of numbers, which stand on their decimal point.
    pub(crate) fn numbers<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns(Align::Number, names)
    }

    /// Adds columns of numbers whose units differ from row to row.
    pub(crate) fn amounts<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns(Align::Right, names)
    }

    /// Adds columns that are aligned so.
    pub(crate) fn columns<S: AsRef<str>>(mut self, align: Align, names: impl IntoIterator<Item = S>) -> Self {
        self.headings.extend(names.into_iter().map(|name| (clean(name.as_ref()), align)));
        self
    }

    /// Takes so many columns to name a row.
    pub(crate) fn named_by(mut self, names: usize) -> Self {
        self.names = names.clamp(1, self.headings.len().max(1));
        self
    }

    /// Keeps columns together: of those that do not name a row, so many each time.
    pub(crate) fn grouped(mut self, groups: impl IntoIterator<Item = usize>) -> Self {
        self.groups = groups.into_iter().collect();
        self
    }

    /// Lets names break at their joints, where whole ones would put columns below each other.
    pub(crate) fn breaking_names(mut self) -> Self {
        self.breaks_names = true;
        self
    }

    /// Lets a terminal begin a new table with each of these columns; all of them have the first `keys` columns.
    pub(crate) fn broken_before(mut self, keys: usize, columns: impl IntoIterator<Item = usize>) -> Self {
        self.breaks = (keys, columns.into_iter().collect());
        self
    }

    /// Adds a row with one cell for each column.
    pub(crate) fn push<C: Into<Cell>>(&mut self, row: impl IntoIterator<Item = C>) {
        let row: Vec<Cell> = row.into_iter().map(|cell| cell.into().cleaned()).collect();
        assert_eq!(row.len(), self.headings.len(), "a row that does not fit the headings: {row:?}");
        self.rows.push(row);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}
