//! Documents for a terminal: no line is longer than it is wide, but for those that stay as they are.

use super::wrap::{command, paragraph};
use crate::document::changes::Changes;
use crate::document::{Block, Document, Mark, Paste, Section, Table, row};

pub(super) fn write(document: &Document<'_>, width: usize) -> String {
    let sections = document.sections.iter().map(|section| section_text(section, width));
    sections.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn section_text(Section { title, blocks, .. }: &Section, width: usize) -> String {
    let inside = blocks_text(blocks, width);
    if title.is_empty() || inside.is_empty() { inside } else { paragraph(title, width, 2) + &inside }
}

fn blocks_text(blocks: &[Block], width: usize) -> String {
    let mut text = String::new();
    let mut after_table = false;
    for (index, block) in blocks.iter().enumerate() {
        if let (Block::Title { title, finding }, Some(Block::Aside(aside))) = (block, blocks.get(index + 1)) {
            let title = Block::Title { title: format!("{title}{aside}"), finding: finding.clone() };
            text += &block_text(&title, width);
            continue;
        }
        let is_table = matches!(block, Block::Table(_));
        if is_table && after_table {
            text.push('\n');
        }
        text += &block_text(block, width);
        after_table = is_table;
    }
    text
}

fn block_text(block: &Block, width: usize) -> String {
    let hanging = |text: &str| paragraph(text, width, 2);
    match block {
        Block::Title { title, finding } => {
            finding.as_deref().map_or_else(String::new, hanging) + &hanging(title)
        }
        Block::Aside(_) => String::new(),
        Block::Verdict(text) | Block::Alarm(text) | Block::Line(text) => hanging(text),
        Block::Warning(text) => hanging(&format!("warning: {text}")),
        Block::Paragraph(text) => paragraph(text, width, 0),
        Block::List(Mark::Fact, items) => items.iter().map(|item| format!("{item}\n")).collect(),
        Block::List(mark, items) => {
            let before = match mark {
                Mark::Sentence | Mark::Fact => "  ",
                Mark::Dash => "  - ",
                Mark::Note => "note: ",
            };
            items.iter().map(|item| hanging(&format!("{before}{item}"))).collect()
        }
        Block::Lines(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
        Block::Labelled { label, text } => hanging(&format!("{label}: {text}")),
        Block::Code { label, text } if label.is_empty() => format!("{}\n", text.trim_end()),
        Block::Code { label, text } => hanging(&format!("{label}: {text}")),
        Block::Paste(Paste { to, lines, lacks }) => {
            let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
            format!("  {to}\n{lines}{}", paragraph(&format!("    ({lacks})"), width, 1))
        }
        Block::Commands { commands, .. } => {
            let made = commands.iter().map(|(label, made)| made_by(label, made, width));
            format!("made by\n{}", made.collect::<String>())
        }
        Block::Table(table) => table.to_text(width),
        Block::Timeline(timeline) => timeline.to_text(width),
        Block::Changes(changes) => table_of(changes).to_text(width),
        Block::Figure(figure) => hanging(&figure.finding) + &hanging(&format!("  {}", figure.n)),
        Block::Folded { heading, blocks } => hanging(heading) + &blocks_text(blocks, width),
    }
}

/// A command, beside its label if both fit into a line.
fn made_by(label: &str, made: &str, width: usize) -> String {
    if label.is_empty() {
        return command(made, width, 2);
    }
    let line = format!("  {label}: {made}\n");
    if line.chars().count() <= width.saturating_add(1) {
        return line;
    }
    // A comment does not go on behind a backslash.
    let made = match made.starts_with('#') {
        true => paragraph(made, width, 2),
        false => command(made, width, 4),
    };
    paragraph(&format!("  {label}:"), width, 4) + &made
}

/// A summary without its bars.
pub(super) fn table_of(changes: &Changes) -> Table {
    let mut table = Table::new()
        .texts(["metric", "unit"])
        .numbers([&changes.base, &changes.candidate])
        .numbers([changes.heading])
        .texts(["verdict"]);
    for row in &changes.rows {
        table.push(row![&row.name, row.unit, &row.base, &row.candidate, &row.change, row.verdict]);
    }
    table
}
