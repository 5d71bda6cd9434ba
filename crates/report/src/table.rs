//! One table, written for a terminal or as Markdown.
//!
//! Names are left-aligned, numbers right-aligned on the decimal point (and on the `±`). Names
//! that came with a recording are cleaned of control characters here, so that no file can
//! steer a terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, presets};

/// How a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text from the left; may be wrapped.
    Left,
    /// Numbers on the decimal point; never wrapped.
    Number,
    /// From the right, where units differ from row to row; never wrapped.
    Right,
}

/// Headings and rows of text.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    headings: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// A heading longer than this is broken at `+`, `-`, `_` or a blank.
const HEADING_MAX: usize = 22;

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(headings: impl IntoIterator<Item = (String, Align)>) -> Self {
        Self {
            headings: headings.into_iter().map(|(text, align)| (clean(&text), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with one cell for each column.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = String>) {
        let row: Vec<String> = row.into_iter().map(|cell| clean(&cell)).collect();
        assert_eq!(row.len(), self.headings.len(), "a row that does not fit the headings: {row:?}");
        self.rows.push(row);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines of at most `width` columns where wrapping names allows it; each line
    /// ends in a newline.
    pub(crate) fn to_text(&self, width: usize) -> String {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        grid.set_width(u16::try_from(width.clamp(40, 1000)).expect("at most 1000"));
        if self.headings.iter().any(|(text, _)| !text.is_empty()) {
            grid.set_header(self.headings.iter().map(|(text, _)| broken_heading(text)));
        }
        for row in transposed(&self.aligned_columns(), self.rows.len()) {
            grid.add_row(row);
        }
        for (index, (_, align)) in self.headings.iter().enumerate() {
            let column = grid.column_mut(index).expect("one column a heading");
            column.set_constraint(match align {
                Align::Number | Align::Right => ColumnConstraint::ContentWidth,
                Align::Left => ColumnConstraint::LowerBoundary(comfy_table::Width::Fixed(8)),
            });
            if *align != Align::Left {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        grid.trim_fmt() + "\n"
    }

    /// The table in Markdown; each line ends in a newline.
    pub(crate) fn to_markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let escape = |text: &String| text.replace('\\', "\\\\").replace('|', "\\|");
        let rule = self.headings.iter().map(|(_, align)| if *align == Align::Left { "---" } else { "---:" });
        line(self.headings.iter().map(|(text, _)| escape(text)).collect())
            + &line(rule.map(String::from).collect())
            + &self.rows.iter().map(|row| line(row.iter().map(escape).collect())).collect::<String>()
    }

    fn aligned_columns(&self) -> Vec<Vec<String>> {
        self.headings
            .iter()
            .enumerate()
            .map(|(index, (_, align))| {
                let cells: Vec<&str> = self.rows.iter().map(|row| row[index].as_str()).collect();
                match align {
                    Align::Left | Align::Right => cells.into_iter().map(String::from).collect(),
                    Align::Number => on_the_point(&cells),
                }
            })
            .collect()
    }
}

fn transposed(columns: &[Vec<String>], rows: usize) -> Vec<Vec<String>> {
    (0..rows).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

/// Pads cells so that their decimal points, and those after a `±`, stand below each other.
fn on_the_point(cells: &[&str]) -> Vec<String> {
    const SPREAD: &str = " ± ";
    let parts: Vec<(&str, Option<&str>)> = cells
        .iter()
        .map(|cell| cell.split_once(SPREAD).map_or((*cell, None), |(value, spread)| (value, Some(spread))))
        .collect();
    let values = padded(&parts.iter().map(|(value, _)| *value).collect::<Vec<_>>());
    if parts.iter().all(|(_, spread)| spread.is_none()) {
        return values;
    }
    let spreads = padded(&parts.iter().map(|(_, spread)| spread.unwrap_or("")).collect::<Vec<_>>());
    values
        .into_iter()
        .zip(spreads)
        .zip(&parts)
        .map(|((value, rest), (_, spread))| value + if spread.is_some() { SPREAD } else { "   " } + &rest)
        .collect()
}

/// The text before the first blank is the number; its part after the point sets the padding.
fn padded(cells: &[&str]) -> Vec<String> {
    let behind = |cell: &str| {
        let number_end = cell.find(' ').unwrap_or(cell.len());
        cell[..number_end].find('.').map_or(cell.len() - number_end, |point| cell.len() - point)
    };
    let is_number = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit() || "+-<".contains(c));
    let most = cells.iter().filter(|cell| is_number(cell)).map(|cell| behind(cell)).max().unwrap_or(0);
    let cells: Vec<String> = cells
        .iter()
        .map(|cell| {
            if is_number(cell) { format!("{cell}{:1$}", "", most - behind(cell)) } else { (*cell).to_owned() }
        })
        .collect();
    let widest = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    cells.into_iter().map(|cell| format!("{cell:>widest$}")).collect()
}

/// Breaks a long heading into lines, after `-`, `_`, `+` or at a blank.
fn broken_heading(text: &str) -> String {
    let mut lines = vec![String::new()];
    for piece in text.split_inclusive(['-', '_', '+', ' ']) {
        let last = lines.last_mut().expect("starts with one line");
        if !last.is_empty() && last.chars().count() + piece.trim_end().chars().count() > HEADING_MAX {
            lines.push(String::new());
        }
        lines.last_mut().expect("starts with one line").push_str(piece);
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// Control characters written out, so that they are seen and not obeyed.
pub(crate) fn clean(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table = Table::new([
            ("metric".into(), Align::Left),
            ("unit".into(), Align::Left),
            ("linux-5.3+shrink-slab-when-boosted".into(), Align::Number),
        ]);
        table.push(["direct reclaim".into(), "kpages".into(), "89 ± 4".into()]);
        table.push(["refaults".into(), "k/s".into(), "5.83 ± 0.06".into()]);
        table.push(["kills".into(), "".into(), "12".into()]);
        table.push(["hits".into(), "%".into(), "missing".into()]);
        table
    }

    #[test]
    fn numbers_stand_on_their_decimal_point() {
        insta::assert_snapshot!(example().to_text(80), @r"
metric          unit    linux-5.3+shrink-slab-
                                  when-boosted
direct reclaim  kpages            89    ± 4
refaults        k/s                5.83 ± 0.06
kills                             12
hits            %               missing
");
    }

    #[test]
    fn markdown_has_the_same_cells() {
        insta::assert_snapshot!(example().to_markdown(), @r"
| metric | unit | linux-5.3+shrink-slab-when-boosted |
| --- | --- | ---: |
| direct reclaim | kpages | 89 ± 4 |
| refaults | k/s | 5.83 ± 0.06 |
| kills |  | 12 |
| hits | % | missing |
");
    }

    #[test]
    fn a_name_cannot_steer_the_terminal_nor_break_a_table() {
        let mut table = Table::new([("name".into(), Align::Left)]);
        table.push(["\u{1b}[2Jgone\na|b".into()]);
        insta::assert_snapshot!(table.to_text(80), @r"
name
\u{1b}[2Jgone\na|b
");
        insta::assert_snapshot!(table.to_markdown(), @r"
| name |
| --- |
| \\u{1b}[2Jgone\\na\|b |
");
    }
}
