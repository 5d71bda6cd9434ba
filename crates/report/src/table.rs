//! One table, written for a terminal or as Markdown.
//!
//! Names are left-aligned, numbers right-aligned on the decimal point (and on the `±`). Names
//! that came with a recording are cleaned of control characters here, so that no file can
//! steer a terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets};

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

/// How long a line of a heading may be: the first that lets the table fit its width is taken.
const HEADING_LIMITS: [usize; 4] = [22, 16, 12, 8];

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

    /// The table as lines, each with a newline. Headings break and texts wrap at blanks to keep
    /// to `width`; a name or a number is never broken, so a table of many may still be wider.
    pub(crate) fn to_text(&self, width: usize) -> String {
        let columns = self.aligned_columns();
        let headings_at = |limit: usize| -> Vec<String> {
            let wide_enough =
                |cells: &Vec<String>| limit.max(cells.iter().map(|c| display_width(c)).max().unwrap_or(0));
            self.headings
                .iter()
                .zip(&columns)
                .map(|((text, _), cells)| broken(text, wide_enough(cells)))
                .collect()
        };
        let fits = |headings: &Vec<String>| {
            let least = self.least_widths(headings, &columns);
            least.iter().map(|least| least + PADDING).sum::<usize>() <= width
        };
        let narrowest = HEADING_LIMITS[HEADING_LIMITS.len() - 1];
        let headings =
            HEADING_LIMITS.map(headings_at).into_iter().find(fits).unwrap_or_else(|| headings_at(narrowest));

        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        grid.set_width(u16::try_from(width.clamp(40, 1000)).expect("at most 1000"));
        if headings.iter().any(|text| !text.is_empty()) {
            grid.set_header(&headings);
        }
        for row in 0..self.rows.len() {
            grid.add_row(columns.iter().map(|column| &column[row]));
        }
        for (index, least) in self.least_widths(&headings, &columns).into_iter().enumerate() {
            let column = grid.column_mut(index).expect("one column a heading");
            if self.headings[index].1 == Align::Left {
                let least = u16::try_from(least + PADDING).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            } else {
                column.set_constraint(ColumnConstraint::ContentWidth);
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        grid.trim_fmt() + "\n"
    }

    /// The narrowest that each column can be: its longest word, or all of a number.
    fn least_widths(&self, headings: &[String], columns: &[Vec<String>]) -> Vec<usize> {
        let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(display_width).max().unwrap_or(0);
        let word = |text: &str| longest(&mut text.split_whitespace());
        self.headings
            .iter()
            .zip(headings)
            .zip(columns)
            .map(|(((_, align), heading), cells)| match align {
                Align::Left => cells.iter().map(|cell| word(cell)).max().unwrap_or(0).max(word(heading)),
                Align::Number | Align::Right => {
                    longest(&mut cells.iter().map(String::as_str)).max(longest(&mut heading.lines()))
                }
            })
            .collect()
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

/// Blanks around each cell.
const PADDING: usize = 2;

fn display_width(text: &str) -> usize {
    text.chars().count()
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

/// Breaks a heading into lines of at most `limit`, after `-`, `_`, `+` or at a blank, if it can.
fn broken(text: &str, limit: usize) -> String {
    let mut lines = vec![String::new()];
    for piece in text.split_inclusive(['-', '_', '+', ' ']) {
        let last = lines.last_mut().expect("starts with one line");
        if !last.is_empty() && display_width(last) + display_width(piece.trim_end()) > limit {
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
    fn a_narrow_terminal_breaks_headings_and_blanks_but_no_name() {
        insta::assert_snapshot!(example().to_text(40), @r"
metric          unit        linux-5.3+
                          shrink-slab-
                          when-boosted
direct reclaim  kpages    89    ± 4
refaults        k/s        5.83 ± 0.06
kills                     12
hits            %       missing
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
