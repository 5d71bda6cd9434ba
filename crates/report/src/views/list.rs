//! A list of names and figures: what there is to choose from, rather than what a run gave.
//!
//! On a terminal a list that is too wide stands in several tables, one below the other, each with the columns that
//! name the row.

use serde_json::{Value, json};

use crate::document::{Align, Cell, Document, Mark, Records, Section, Table};

/// Rows under named columns.
#[derive(Debug, Clone, PartialEq)]
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

    /// What its rows are: the heading of the first column.
    pub fn heading(&self) -> &'static str {
        self.columns[0]
    }

    /// Leaves out rows whose name, in the first column, is not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.rows.retain(|row| keep(&row[0].shown()));
    }

    /// The values of one column, top down, as a person reads them.
    ///
    /// # Panics
    /// When the list has no such column.
    pub fn column(&self, name: &str) -> Vec<String> {
        let index = self.columns.iter().position(|&column| column == name).expect("a column of the list");
        self.rows.iter().map(|row| row[index].shown()).collect()
    }

    fn value(&self) -> Value {
        let row = |row: &Vec<Cell>| -> Value {
            let pairs = self.columns.iter().zip(row).map(|(&name, cell)| (name.to_owned(), cell.value()));
            Value::Object(pairs.collect())
        };
        let rows: Value = self.rows.iter().map(row).collect();
        let mut object = json!({ "schema": 1, "list": self.name, "rows": rows });
        self.facts.iter().for_each(|(name, value)| object[*name] = value.value());
        object
    }

    fn records(&self) -> Records {
        let header = self.columns.iter().map(|&name| name.to_owned()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::field).collect());
        std::iter::once(header).chain(rows).collect()
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        for (index, name) in self.columns.iter().enumerate() {
            let is_text = self.rows.iter().any(|row| matches!(row[index], Cell::Text(_)));
            // A key as a person reads it.
            let heading = name.replace('_', " ");
            table = table.columns(if is_text { Align::Left } else { Align::Right }, [heading]);
        }
        for row in &self.rows {
            table.push(row.iter().cloned());
        }
        table.broken_before(self.keys, self.breaks.iter().copied())
    }
}

/// A list: what holds for all of it, then its rows.
///
/// JSON: `{"schema": 1, "list": name, "rows": [{column: value}]}`, with each fact beside `rows`; sizes are in bytes,
/// what there is not is `null`. CSV: one record for each row below one with the names; facts are left out.
pub fn list(list: &List) -> Document<'_> {
    let facts = list.facts.iter().map(|(name, value)| format!("{name}: {}", value.shown()));
    Document::new(list.name)
        .section(Section::untitled().list(Mark::Fact, facts))
        .section(Section::untitled().with(list.table()))
        .json(|| list.value())
        .csv(|| list.records())
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;
    use crate::Format;

    fn example() -> List {
        let columns = ["zone", "managed", "mem", "says"];
        let mut list = List::new("zones", &columns).in_tables(1, &["mem"]);
        list.fact("min_free_kbytes", 2739_u64);
        list.push(["DMA".into(), 3840_u64.into(), Bytes(15 << 20).into(), "the low one, \"old\"".into()]);
        list.push(["DMA32".into(), 116_165_u64.into(), Cell::None, "a|b".into()]);
        list
    }

    #[test]
    fn a_wide_list_stands_in_tables_below_each_other() {
        insta::assert_snapshot!(list(&example()).render(Format::Text, 80), @r#"
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
        insta::assert_snapshot!(list(&example()).render(Format::Json, 80), @r#"
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
        insta::assert_snapshot!(list(&example()).render(Format::Csv, 80), @r#"
        zone,managed,mem,says
        DMA,3840,15728640,"the low one, ""old"""
        DMA32,116165,,a|b
        "#);
    }

    #[test]
    fn markdown_has_one_table() {
        insta::assert_snapshot!(list(&example()).render(Format::Markdown, 80), @r#"
        - min_free_kbytes: 2739

        | zone | managed | mem | says |
        | --- | ---: | ---: | --- |
        | DMA | 3840 | 15M | the low one, "old" |
        | DMA32 | 116165 |  | a\|b |
        "#);
    }
}
