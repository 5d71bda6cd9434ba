//! A table in the columns of a terminal.
//!
//! Names are left-aligned, numbers right-aligned on the decimal point (and on the `±`). A table
//! that is too wide breaks its headings, then its texts, and at last goes on below itself: groups
//! of columns that belong together stay together, and the columns that name a row are repeated.
//! Nothing is cut, and no line is longer than the width.

use super::wrap::{display_width, lines, longest_part};
use crate::document::{Align, Cell, Table};

/// How long a line of a heading may be: the first that lets the table fit its width is taken.
const HEADING_LIMITS: [usize; 4] = [22, 16, 12, 8];
/// Texts with a heading are not wrapped to less than this for the sake of other columns.
const TEXT_MIN: usize = 20;
/// The narrowest terminal.
const WIDTH_MIN: usize = 24;
/// Before the first column, and between two.
const MARGIN: usize = 1;
const GAP: usize = 2;

/// Columns of a table side by side: where they are in it, their headings in lines, their widths.
struct Block {
    columns: Vec<usize>,
    headings: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Table {
    /// The table as lines of at most `width` columns, each with a newline; its blocks are separated
    /// by an empty line.
    pub(super) fn to_text(&self, width: usize) -> String {
        let (keys, breaks) = &self.breaks;
        if !breaks.is_empty() {
            let starts = std::iter::once(*keys).chain(breaks.iter().copied());
            let ends = breaks.iter().copied().chain([self.headings.len()]);
            let parts = starts.zip(ends).map(|(start, end)| self.part(*keys, start..end).to_text(width));
            return parts.collect::<Vec<_>>().join("\n");
        }
        let width = width.max(WIDTH_MIN);
        let cells = self.aligned_columns();
        let blocks = self.blocks(&cells, width);
        let texts = blocks.iter().map(|block| self.block_text(block, &cells));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The first `keys` columns, and some of the others.
    fn part(&self, keys: usize, others: std::ops::Range<usize>) -> Table {
        let columns: Vec<usize> = (0..keys).chain(others).collect();
        let mut part = Table::new();
        part.headings = columns.iter().map(|&column| self.headings[column].clone()).collect();
        let row = |row: &Vec<Cell>| columns.iter().map(|&column| row[column].clone()).collect();
        part.rows = self.rows.iter().map(row).collect();
        part
    }

    /// All columns in one block if they fit, else as many groups in each as do.
    fn blocks(&self, cells: &[Vec<String>], width: usize) -> Vec<Block> {
        if let Some(block) = self.fitted((0..cells.len()).collect(), cells, width) {
            return vec![block];
        }
        let alone = |group: std::ops::Range<usize>| (0..self.names).chain(group).collect::<Vec<_>>();
        let mut blocks: Vec<Block> = Vec::new();
        for group in self.column_groups() {
            // A group that is too wide for any block comes apart.
            let fits = self.fitted(alone(group.clone()), cells, width).is_some();
            let parts = if fits { vec![group] } else { group.map(|column| column..column + 1).collect() };
            for part in parts {
                let wider = blocks.last().and_then(|block| {
                    self.fitted(block.columns.iter().copied().chain(part.clone()).collect(), cells, width)
                });
                if let Some(wider) = wider {
                    blocks.pop();
                    blocks.push(wider);
                    continue;
                }
                let own = self.fitted(alone(part.clone()), cells, width);
                blocks.push(own.unwrap_or_else(|| self.forced(alone(part), cells, width)));
            }
        }
        if blocks.is_empty() { vec![self.forced(alone(0..0), cells, width)] } else { blocks }
    }

    fn column_groups(&self) -> Vec<std::ops::Range<usize>> {
        let mut groups = Vec::new();
        let mut begin = self.names;
        let mut sizes = self.groups.iter().copied();
        while begin < self.headings.len() {
            let end = (begin + sizes.next().unwrap_or(1).max(1)).min(self.headings.len());
            groups.push(begin..end);
            begin = end;
        }
        groups
    }

    /// These columns side by side: with headings broken as little as possible, then with texts
    /// wrapped; `None` when they do not fit even so.
    fn fitted(&self, columns: Vec<usize>, cells: &[Vec<String>], width: usize) -> Option<Block> {
        let room = width.checked_sub(MARGIN + GAP * columns.len().saturating_sub(1))?;
        let at_limit = |limit: usize| -> (Vec<Vec<String>>, Vec<usize>) {
            let heading = |&column: &usize| {
                let heading = &self.headings[column].0;
                let unbroken = longest_part(heading).min(HEADING_LIMITS[0]);
                lines(heading, limit.max(unbroken).max(widest(cells[column].iter().map(String::as_str))))
            };
            let headings: Vec<Vec<String>> = columns.iter().map(heading).collect();
            let natural = |(&column, heading): (&usize, &Vec<String>)| {
                widest(cells[column].iter().chain(heading).map(String::as_str))
            };
            let widths = columns.iter().zip(&headings).map(natural).collect();
            (headings, widths)
        };
        let whole = HEADING_LIMITS[..3].iter().map(|&limit| at_limit(limit));
        let fits = |widths: &[usize]| widths.iter().sum::<usize>() <= room;
        if let Some((headings, widths)) = whole.into_iter().find(|(_, widths)| fits(widths)) {
            return Some(Block { columns, headings, widths });
        }
        for limit in HEADING_LIMITS {
            let (headings, mut widths) = at_limit(limit);
            let least: Vec<usize> = (columns.iter().zip(&headings).zip(&widths))
                .map(|((&column, heading), &natural)| self.least(column, heading, natural, cells))
                .collect();
            if !fits(&least) {
                continue;
            }
            while !fits(&widths) {
                // The widest of those that can give takes one column less.
                let giving = (0..widths.len()).filter(|&at| widths[at] > least[at]);
                let at = giving.max_by_key(|&at| widths[at]).expect("the least widths fit");
                widths[at] -= 1;
            }
            let narrowed = headings.iter().zip(&widths);
            let headings = narrowed.map(|(heading, &width)| {
                heading.iter().flat_map(|line| lines(line, width)).collect::<Vec<_>>()
            });
            return Some(Block { columns, headings: headings.collect(), widths });
        }
        None
    }

    /// The narrowest that a column may be: a number whole, a text with its words whole, or their parts.
    fn least(&self, column: usize, heading: &[String], natural: usize, cells: &[Vec<String>]) -> usize {
        if self.headings[column].1 != Align::Left {
            return natural;
        }
        if column == 0 && self.breaks_names {
            let parts = cells[column].iter().map(|cell| longest_part(cell));
            return parts.max().unwrap_or(0).max(TEXT_MIN.min(natural));
        }
        // Remarks, which have no heading, rather wrap to their words than stand far from their row.
        let text_min = if heading.iter().all(String::is_empty) { 0 } else { TEXT_MIN.min(natural) };
        let words = cells[column].iter().flat_map(|cell| cell.split_whitespace());
        widest(words.chain(heading.iter().flat_map(|line| line.split_whitespace()))).max(text_min)
    }

    /// These columns whatever has to be broken for it: the first gets up to half of the width.
    fn forced(&self, columns: Vec<usize>, cells: &[Vec<String>], width: usize) -> Block {
        let room = width - MARGIN - GAP * (columns.len() - 1);
        let natural = |&column: &usize| {
            widest(cells[column].iter().map(String::as_str).chain([self.headings[column].0.as_str()]))
        };
        let mut widths: Vec<usize> = columns.iter().map(natural).collect();
        let others: usize = widths[1..].iter().sum();
        widths[0] = widths[0].min(room.saturating_sub(others).max(room / columns.len()));
        let left = room - widths[0];
        if let Some(second) = widths.get_mut(1) {
            *second = (*second).min(left);
        }
        let headings = columns.iter().zip(&widths);
        let headings = headings.map(|(&column, &width)| lines(&self.headings[column].0, width)).collect();
        Block { columns, headings, widths }
    }

    fn block_text(&self, block: &Block, cells: &[Vec<String>]) -> String {
        let mut text = String::new();
        let mut row = |row: &[Vec<String>]| {
            let height = row.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let mut line = " ".repeat(MARGIN);
                for ((&column, &width), cell) in block.columns.iter().zip(&block.widths).zip(row) {
                    let part = cell.get(at).map_or("", String::as_str);
                    let gap = " ".repeat(width.saturating_sub(display_width(part)));
                    match self.headings[column].1 {
                        Align::Left => line += &(part.to_owned() + &gap),
                        Align::Number | Align::Right => line += &(gap + part),
                    }
                    line += "  ";
                }
                text += line.trim_end();
                text.push('\n');
            }
        };
        if block.headings.iter().flatten().any(|line| !line.is_empty()) {
            row(&block.headings);
        }
        for (index, _) in self.rows.iter().enumerate() {
            let wrapped = |(&column, &width): (&usize, &usize)| lines(&cells[column][index], width);
            row(&block.columns.iter().zip(&block.widths).map(wrapped).collect::<Vec<_>>());
        }
        text
    }

    fn aligned_columns(&self) -> Vec<Vec<String>> {
        self.headings
            .iter()
            .enumerate()
            .map(|(index, (_, align))| {
                let cells: Vec<String> = self.rows.iter().map(|row| row[index].shown()).collect();
                match align {
                    Align::Left | Align::Right => cells,
                    Align::Number => on_the_point(&cells),
                }
            })
            .collect()
    }
}

fn widest<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    texts.into_iter().map(display_width).max().unwrap_or(0)
}
/// Pads cells so that their decimal points, and those after a `±`, stand below each other.
fn on_the_point(cells: &[String]) -> Vec<String> {
    const SPREAD: &str = " ± ";
    let parts: Vec<(&str, Option<&str>)> = cells
        .iter()
        .map(|cell| {
            cell.split_once(SPREAD).map_or((cell.as_str(), None), |(value, spread)| (value, Some(spread)))
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::row;

    fn example() -> Table {
        let mut table =
            Table::new().texts(["metric", "unit"]).numbers(["linux-5.3+shrink-slab-when-boosted"]);
        table.push(["direct reclaim", "kpages", "89 ± 4"]);
        table.push(["refaults", "k/s", "5.83 ± 0.06"]);
        table.push(row!["kills", "", 12_u64]);
        table.push(["hits", "%", "missing"]);
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
    fn remarks_wrap_before_they_stand_below_the_table() {
        let mut table = Table::new().amounts(["limit", "hits"]).texts([""]);
        table.push(["20.5 MiB", "66.67", "knee, enough"]);
        table.push(["21 MiB", "66.67", ""]);
        insta::assert_snapshot!(table.to_text(26), @"
           limit   hits
        20.5 MiB  66.67  knee,
                         enough
          21 MiB  66.67
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
}
