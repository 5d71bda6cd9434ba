//! Documents in Markdown: an empty line between any two blocks; what needs its columns stands in a fence.

use super::text::table_of;
use crate::document::{Align, Block, Document, Mark, Paste, Section, Table};

pub(super) fn write(document: &Document<'_>, width: usize) -> String {
    joined(document.sections.iter().map(|section| section_markdown(section, width)))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn section_markdown(Section { title, blocks, .. }: &Section, width: usize) -> String {
    let inside = blocks_markdown(blocks, width);
    if title.is_empty() || inside.is_empty() { inside } else { format!("### {title}\n\n{inside}") }
}

fn blocks_markdown(blocks: &[Block], width: usize) -> String {
    joined(blocks.iter().map(|block| block_markdown(block, width)))
}

fn block_markdown(block: &Block, width: usize) -> String {
    match block {
        Block::Title { title, finding } => {
            let finding = finding.as_ref().map_or_else(String::new, |finding| format!("\n{finding}\n"));
            format!("## {title}\n{finding}")
        }
        Block::Aside(_) => String::new(),
        Block::Verdict(text) | Block::Alarm(text) => format!("**{text}**\n"),
        Block::Warning(text) => format!("**warning**: {text}\n"),
        Block::Paragraph(text) | Block::Line(text) => format!("{}\n", text.trim_start().replace('*', "\\*")),
        Block::List(mark, items) => {
            let before = if *mark == Mark::Note { "note: " } else { "" };
            items.iter().map(|item| format!("- {before}{item}\n")).collect()
        }
        Block::Lines(lines) => fenced("text", lines),
        Block::Labelled { label, text } => format!("**{label}**: {text}\n"),
        Block::Code { label, text } if label.is_empty() => fenced("text", &[text.trim_end()]),
        Block::Code { label, text } => format!("**{label}**: `{text}`\n"),
        Block::Paste(Paste { to, lines, lacks }) => {
            format!("{to}:\n\n{}\n({lacks})\n", fenced("text", lines))
        }
        Block::Commands { commands, .. } => {
            let command = |(label, command): &(String, String)| match label.is_empty() {
                true => command.clone(),
                false => format!("{command}  # {label}"),
            };
            fenced("sh", &commands.iter().map(command).collect::<Vec<_>>())
        }
        Block::Table(table) => table_markdown(table),
        Block::Timeline(timeline) => match timeline.to_text(width).trim_end() {
            "" => String::new(),
            drawn => fenced("text", &[drawn]),
        },
        Block::Changes(changes) => table_markdown(&table_of(changes)),
        Block::Figure(figure) => format!("{}\n\n{}\n", figure.finding, figure.n),
        Block::Folded { heading, blocks } => format!("**{heading}**\n\n{}", blocks_markdown(blocks, width)),
    }
}

fn fenced<S: AsRef<str>>(language: &str, lines: &[S]) -> String {
    let lines: String = lines.iter().map(|line| format!("{}\n", line.as_ref())).collect();
    format!("```{language}\n{lines}```\n")
}

fn table_markdown(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|");
    let rule = table.headings.iter().map(|(_, align)| if *align == Align::Left { "---" } else { "---:" });
    line(table.headings.iter().map(|(text, _)| escaped(text)).collect())
        + &line(rule.map(String::from).collect())
        + &table
            .rows
            .iter()
            .map(|row| line(row.iter().map(|cell| escaped(&cell.in_full())).collect()))
            .collect::<String>()
}
