//! A list of names and figures: what there is to choose from, rather than what a run gave.
//!
//! The same rows as text, Markdown, JSON and CSV. In text a list that is too wide for a terminal
//! stands in several tables, one below the other, each with the columns that name the row. Neighbours:
//! `table.rs` for widths and alignment.

use serde_json::{Map, Value, json};
use units::Bytes;

use crate::table::{Align, Table};

/// One value of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number.
    Count(u64),
    /// A size: with its suffix for a person, in bytes for a program.
    Size(Bytes),
    /// There is none.
    None,
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

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<Bytes> for Cell {
    fn from(size: Bytes) -> Self {
        Self::Size(size)
    }
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Size(size) => size.to_string(),
            Self::None => String::new(),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Count(count) => json!(count),
            Self::Size(size) => json!(size.get()),
            Self::None => Value::Null,
        }
    }

    fn plain(&self) -> String {
        match self {
            Self::Size(size) => size.get().to_string(),
            other => other.shown(),
        }
    }
}

/// Rows under named columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// What is listed: `kernels`.
    name: &'static str,
    /// Names of the columns, which are keys of JSON, too.
    columns: Vec<&'static str>,
    /// The first so many columns name a row.
    keys: usize,
    /// Columns with which a new table begins in text.
    breaks: Vec<usize>,
    facts: Vec<(&'static str, Cell)>,
    rows: Vec<Vec<Cell>>,
}

impl List {
    /// An empty list with these columns, of which the first names the row.
    pub fn new(name: &'static str, columns: &[&'static str]) -> Self {
        Self {
            name,
            columns: columns.to_vec(),
            keys: 1,
            breaks: Vec::new(),
            facts: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// The same list, whose first `keys` columns name the row, and which in text is several tables:
    /// a new one from each of the columns `breaks` on.
    #[must_use]
    pub fn in_tables(mut self, keys: usize, breaks: &[&str]) -> Self {
        let place = |name: &&str| self.columns.iter().position(|column| column == name);
        self.breaks = breaks.iter().map(|name| place(name).expect("a column of the list")).collect();
        self.keys = keys;
        self
    }

    /// Adds what holds for the whole list.
    pub fn fact(&mut self, name: &'static str, value: impl Into<Cell>) {
        self.facts.push((name, value.into()));
    }

    /// Adds a row with one cell for each column.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let row: Vec<Cell> = row.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "a row that does not fit the columns: {row:?}");
        self.rows.push(row);
    }

    /// The values of one column, top down, as a person reads them.
    ///
    /// # Panics
    /// When the list has no such column.
    pub fn column(&self, name: &str) -> Vec<String> {
        let index = self.columns.iter().position(|&column| column == name).expect("a column of the list");
        self.rows.iter().map(|row| row[index].shown()).collect()
    }

    /// For a terminal of `width` columns.
    pub fn to_text(&self, width: usize) -> String {
        let facts = self.facts.iter().map(|(name, value)| format!("{name}: {}\n", value.shown()));
        let tables = self.tables().map(|table| table.to_text(width));
        let parts = (!self.facts.is_empty()).then(|| facts.collect::<String>()).into_iter().chain(tables);
        parts.collect::<Vec<_>>().join("\n")
    }

    /// As Markdown.
    pub fn to_markdown(&self) -> String {
        let facts = self.facts.iter().map(|(name, value)| format!("- {name}: {}\n", value.shown()));
        let all = self.table(&(0..self.columns.len()).collect::<Vec<_>>()).to_markdown();
        facts.collect::<String>() + if self.facts.is_empty() { "" } else { "\n" } + &all
    }

    /// `{"schema": 1, "list": name, "rows": [{column: value}]}`, with each fact beside `rows`; sizes
    /// are in bytes, what there is not is `null`.
    pub fn to_json(&self) -> String {
        let row = |row: &Vec<Cell>| -> Value {
            let pairs = self.columns.iter().zip(row).map(|(&name, cell)| (name.to_owned(), cell.value()));
            Value::Object(pairs.collect())
        };
        let mut object = Map::from_iter([
            ("schema".to_owned(), json!(1)),
            ("list".to_owned(), json!(self.name)),
            ("rows".to_owned(), self.rows.iter().map(row).collect()),
        ]);
        object.extend(self.facts.iter().map(|(name, value)| ((*name).to_owned(), value.value())));
        serde_json::to_string_pretty(&object).expect("a map of strings and numbers") + "\n"
    }

    /// One line for each row below one with the names; sizes are in bytes. Facts are left out.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns).expect("memory takes every write");
        for row in &self.rows {
            writer.write_record(row.iter().map(Cell::plain)).expect("memory takes every write");
        }
        let bytes = writer.into_inner().expect("memory takes every write");
        String::from_utf8(bytes).expect("made of text")
    }

    fn tables(&self) -> impl Iterator<Item = Table> {
        let starts = std::iter::once(self.keys).chain(self.breaks.iter().copied());
        let ends = self.breaks.iter().copied().chain([self.columns.len()]);
        starts.zip(ends).map(|(start, end)| self.table(&(0..self.keys).chain(start..end).collect::<Vec<_>>()))
    }

    fn table(&self, columns: &[usize]) -> Table {
        let is_text = |&column: &usize| self.rows.iter().any(|row| matches!(row[column], Cell::Text(_)));
        let mut table = Table::new(columns.iter().map(|column| {
            let align = if is_text(column) { Align::Left } else { Align::Right };
            (heading(self.columns[*column]), align)
        }));
        for row in &self.rows {
            table.push(columns.iter().map(|&column| row[column].shown()));
        }
        table
    }
}

/// A key as a person reads it.
fn heading(key: &str) -> String {
    key.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> List {
        let columns = ["zone", "managed", "mem", "says"];
        let mut list = List::new("zones", &columns).in_tables(1, &["mem"]);
        list.fact("min_free_kbytes", 2739);
        list.push(["DMA".into(), 3840.into(), Bytes(15 << 20).into(), "the low one, \"old\"".into()]);
        list.push(["DMA32".into(), 116_165.into(), Cell::None, "a|b".into()]);
        list
    }

    #[test]
    fn a_wide_list_stands_in_tables_below_each_other() {
        insta::assert_snapshot!(example().to_text(80), @r#"
        min_free_kbytes: 2739

         zone   managed
         DMA       3840
         DMA32   116165

         zone   mem  says
         DMA    15M  the low one, "old"
         DMA32       a|b
        "#);
    }

    #[test]
    fn programs_get_bytes_and_null() {
        insta::assert_snapshot!(example().to_json(), @r#"
        {
          "list": "zones",
          "min_free_kbytes": 2739,
          "rows": [
            {
              "managed": 3840,
              "mem": 15728640,
              "says": "the low one, \"old\"",
              "zone": "DMA"
            },
            {
              "managed": 116165,
              "mem": null,
              "says": "a|b",
              "zone": "DMA32"
            }
          ],
          "schema": 1
        }
        "#);
        insta::assert_snapshot!(example().to_csv(), @r#"
        zone,managed,mem,says
        DMA,3840,15728640,"the low one, ""old"""
        DMA32,116165,,a|b
        "#);
    }

    #[test]
    fn markdown_has_one_table() {
        insta::assert_snapshot!(example().to_markdown(), @r#"
        - min_free_kbytes: 2739

        | zone | managed | mem | says |
        | --- | ---: | ---: | --- |
        | DMA | 3840 | 15M | the low one, "old" |
        | DMA32 | 116165 |  | a\|b |
        "#);
    }
}
