//! Documents as one page to look at: HTML with its pictures, style and data in it.
//!
//! A page works printed and without JavaScript, which only adds values under the pointer. Its header is the section
//! that begins with the title; a figure stands by itself. Next: [`super::svg`] for what is drawn.

use serde_json::{Map, Value, json};

use super::look::{GENERATOR, MARKS, SCRIPT, STYLE};
use super::markup::{Element, escaped};
use super::svg::swatch;
use crate::document::figure::{Column, Figure, Key, NamedLine, Panel};
use crate::document::{Align, Block, Document, Mark, Paste, Section, Table};

pub(super) fn write(document: &Document<'_>, made_by: &str) -> String {
    let footer = format!("{made_by}. One file, no network; a script adds values under the pointer only.");
    let mut body = Element::new("main");
    for (index, section) in document.sections.iter().enumerate() {
        let footer = (index + 1 == document.sections.len()).then(|| Element::new("footer").text(&footer));
        body = body.with_all(self::section(section, footer));
    }
    // Nothing in it can end the element that it stands in, or begin another one.
    let data = data(document, made_by).to_string().replace('<', "\\u003c");
    let title = Element::new("title").text(&title(document));
    format!(
        "{GENERATOR} {}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{title}\n<style>\n{STYLE}{MARKS}</style></head>\n<body>\n{}\n<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body></html>\n",
        escaped(made_by),
        in_lines(&body.to_string()),
    )
}

/// What it is about, and what came out.
fn title(document: &Document<'_>) -> String {
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let mut titles = blocks.filter_map(|block| match block {
        Block::Title { title, finding } => Some(finding.as_ref().unwrap_or(title)),
        _ => None,
    });
    titles.next().map_or_else(|| document.about.clone(), |title| format!("{}: {title}", document.about))
}

/// What the page shows, as numbers: those of the view, and those of its figures.
fn data(document: &Document<'_>, made_by: &str) -> Value {
    let figures: Map<String, Value> =
        document.drawn().map(|figure| (figure.name.clone(), figure_data(figure))).collect();
    let mut data = json!({ "made_by": made_by, "figures": figures });
    if let (Value::Object(data), Some(Value::Object(of_view))) =
        (&mut data, document.json.as_ref().map(|make| make()))
    {
        data.extend(of_view);
    }
    data
}

/// A line for each block, so that a difference of two pages can be read.
fn in_lines(markup: &str) -> String {
    const BLOCKS: [&str; 10] =
        ["<section", "<table", "<tr", "<p", "<figure", "<h2", "<h3", "<details", "<dl", "<footer"];
    let mut text = markup.to_owned();
    for block in BLOCKS {
        for end in [" ", ">"] {
            text = text.replace(&format!("{block}{end}"), &format!("\n{block}{end}"));
        }
    }
    text
}

/// The section as an element; a figure that stands alone is one itself.
fn section(section: &Section, footer: Option<Element>) -> Vec<Element> {
    let Section { title, id, is_prose, blocks } = section;
    let is_header = matches!(blocks.first(), Some(Block::Title { .. }));
    let remark = if *is_prose { Element::new("p") } else { Element::of("p", "not") };
    let inside = blocks.iter().flat_map(|block| markup(block, &remark));
    if title.is_empty() && !is_header && footer.is_none() {
        return inside.collect();
    }
    let element = match (is_header, is_prose) {
        (true, _) => Element::new("header"),
        (false, true) => Element::new("section"),
        (false, false) => Element::of("section", "summary"),
    };
    let element = if id.is_empty() { element } else { element.set("id", id) };
    let heading = (!title.is_empty()).then(|| Element::new("h2").text(&capital(title)));
    vec![element.with_all(heading).with_all(inside).with_all(footer)]
}

fn markup(block: &Block, remark: &Element) -> Vec<Element> {
    let remark_of = |text: &str| remark.clone().prose(text);
    match block {
        Block::Title { title, finding: None } => vec![Element::new("h1").text(title)],
        Block::Title { title, finding: Some(finding) } => {
            vec![Element::of("p", "eyebrow").text(title), Element::new("h1").text(finding)]
        }
        Block::Aside(_) => Vec::new(),
        Block::Verdict(text) => vec![Element::of("p", "verdict").text(text)],
        Block::Alarm(text) => vec![Element::of("p", "note").prose(text)],
        Block::Warning(text) => vec![Element::of("p", "note").prose(&format!("warning: {text}"))],
        Block::Paragraph(text) | Block::Line(text) => vec![remark_of(text)],
        Block::List(Mark::Note, items) => {
            items.iter().map(|item| remark_of(&format!("note: {item}"))).collect()
        }
        Block::List(_, items) => items.iter().map(|item| remark_of(&sentence(item))).collect(),
        Block::Lines(lines) => vec![Element::of("pre", "command").text(&lines.join("\n"))],
        Block::Labelled { label, text } => {
            vec![remark.clone().with(Element::new("b").text(&format!("{label}: "))).prose(text)]
        }
        Block::Code { label, text } if label.is_empty() => {
            vec![Element::of("code", "command").text(text)]
        }
        Block::Code { label, text } => vec![
            Element::new("p")
                .with(Element::new("b").text(label))
                .text(": ")
                .with(Element::new("code").text(text)),
        ],
        Block::Paste(Paste { to, lines, lacks }) => vec![
            folded(to, "commands")
                .set("open", "")
                .with(Element::of("pre", "command").text(&lines.join("\n")))
                .with(Element::of("p", "not").prose(&sentence(lacks))),
        ],
        Block::Commands { heading, commands } => vec![self::commands(heading, commands).set("open", "")],
        Block::Table(table) => vec![plain_table(table)],
        Block::Timeline(timeline) => vec![Element::of("pre", "command").text(&timeline.to_text(120))],
        Block::Changes(changes) => vec![changes.html()],
        Block::Figure(figure) => vec![figure.html()],
        Block::Folded { heading, blocks } => {
            let inside = blocks.iter().flat_map(|block| markup(block, remark));
            vec![Element::new("details").with(Element::new("summary").text(heading)).with_all(inside)]
        }
    }
}

fn folded(heading: &str, class: &str) -> Element {
    Element::of("details", class).with(Element::new("summary").text(heading))
}

/// What stands in a list on a terminal, as a sentence.
fn sentence(text: &str) -> String {
    let text = capital(text);
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

/// With a capital letter; what is named as the kernel or a command line names it stays as it is.
fn capital(text: &str) -> String {
    let is_name = text.split(' ').next().is_some_and(|word| word.contains(['.', '_', '`', '-']));
    let mut characters = text.chars();
    match characters.next() {
        Some(first) if !is_name => first.to_uppercase().chain(characters).collect(),
        _ => text.to_owned(),
    }
}

/// Any table of ours, which scrolls by itself where it is wide.
fn plain_table(table: &Table) -> Element {
    // The first column is words anyway.
    let is_words = |place: usize| place > 0 && table.headings[place].1 == Align::Left;
    let element = |name, place| if is_words(place) { Element::of(name, "words") } else { Element::new(name) };
    let headings = table.headings.iter().enumerate();
    let head = headings.map(|(place, (text, _))| element("th", place).set("scope", "col").text(text));
    let head = Element::new("tr").with_all(head);
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().enumerate().map(|(place, cell)| element("td", place).text(&cell.shown()));
        Element::new("tr").with_all(cells)
    });
    Element::of("div", "plaintable").with(
        Element::new("table")
            .with(Element::new("thead").with(head))
            .with(Element::new("tbody").with_all(rows)),
    )
}

/// Commands below a folded heading; a script adds a button that copies each.
fn commands(heading: &str, commands: &[(String, String)]) -> Element {
    let command = |(label, command): &(String, String)| {
        Element::new("li")
            .with(Element::new("span").text(label))
            .with(Element::of("code", "command").text(command))
    };
    folded(heading, "commands").with(Element::new("ul").with_all(commands.iter().map(command)))
}

impl Document<'_> {
    /// The figures of all sections.
    pub(super) fn drawn(&self) -> impl Iterator<Item = &Figure> {
        self.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        })
    }
}

impl Figure {
    /// As a part of a page.
    fn html(&self) -> Element {
        let columns = self.columns.iter().enumerate().map(|(index, column)| self.column(index, column));
        let single = match self.columns.len() {
            1 => "columns one",
            4 => "columns four",
            _ => "columns",
        };
        let facts = [("n", &self.n), ("axes", &self.axes), ("how to read this", &self.read)];
        let facts = facts
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .flat_map(|(name, text)| [Element::new("dt").text(name), Element::new("dd").text(text)]);
        Element::of("section", "figure")
            .set("id", &self.name)
            .with(Element::new("h2").text(&self.finding))
            .with(legend(&self.keys))
            .with(Element::of("div", single).with_all(columns))
            .with(Element::of("dl", "facts").with_all(facts))
            .with(commands("reproduce it", &self.commands))
    }

    fn column(&self, index: usize, column: &Column) -> Element {
        let panels = column.panels.iter().enumerate().map(|(number, panel)| {
            let plot = Element::of("div", "plot").with(panel.svg());
            let plot = match panel.lines.is_empty() {
                true => plot,
                false => plot.set("data-lines", format!("{}/{index}/{number}", self.name)),
            };
            Element::of("figure", "lane").with(Element::new("figcaption").text(&panel.caption)).with(plot)
        });
        let heading = (!column.heading.is_empty()).then(|| Element::new("h3").text(&column.heading));
        let rows = column.panels.len() + usize::from(!column.heading.is_empty());
        Element::of("div", "column")
            .set("style", format!("grid-row: span {rows}"))
            .with_all(heading)
            .with_all(panels)
    }
}

fn legend(keys: &[Key]) -> Element {
    let key = |key: &Key| Element::new("li").with(swatch(key).set("aria-hidden", "true")).text(&key.text);
    Element::of("ul", "legend").with_all(keys.iter().map(key))
}

/// What a figure shows, as numbers.
fn figure_data(figure: &Figure) -> Value {
    let line = |line: &NamedLine| {
        let (x, y): (Vec<f64>, Vec<f64>) = line.points.iter().map(|&(x, y)| (rounded(x), rounded(y))).unzip();
        json!({ "label": line.label, "class": line.class, "x": x, "y": y })
    };
    let panel = |panel: &Panel| {
        json!({
            "caption": panel.caption,
            "x": [panel.x.low, panel.x.high],
            "log": panel.x.is_log,
            "lines": panel.lines.iter().map(line).collect::<Vec<_>>(),
        })
    };
    let column = |column: &Column| {
        let panels: Vec<Value> = column.panels.iter().map(panel).collect();
        json!({ "heading": column.heading, "panels": panels })
    };
    let columns: Vec<Value> = figure.columns.iter().map(column).collect();
    json!({ "finding": figure.finding, "columns": columns })
}

/// Four digits more than a screen shows, and no more: the page shall be small.
fn rounded(value: f64) -> f64 {
    let magnitude = value.abs();
    if magnitude == 0.0 || !magnitude.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powf(6.0 - magnitude.log10().ceil());
    if scale.is_finite() && scale > 0.0 { (value * scale).round() / scale } else { value }
}
