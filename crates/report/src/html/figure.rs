//! A figure: a finding as its title, panels on shared axes, and how to read and to reproduce it.
//!
//! The same figure is a part of a page ([`Figure::html`]) or a file of its own ([`Figure::svg`]). Neighbours:
//! [`super::chart`] for panels, the files of the single figures for what they show.

use serde_json::{Value, json};

use super::chart::{NamedLine, Panel};
use super::markup::{Element, coordinate};

/// Panels below each other on one x axis; beside others, a small multiple.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Whose panels these are; empty where there is one column only.
    pub(crate) heading: String,
    pub(crate) panels: Vec<Panel>,
}

/// An entry of the legend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    /// Class of the mark.
    pub(crate) class: String,
    /// Whether it fills an area.
    pub(crate) filled: bool,
    pub(crate) text: String,
}

impl Key {
    pub(crate) fn line(class: &str, text: impl Into<String>) -> Self {
        Self { class: class.to_owned(), filled: false, text: text.into() }
    }

    pub(crate) fn area(class: &str, text: impl Into<String>) -> Self {
        Self { class: class.to_owned(), filled: true, text: text.into() }
    }
}

/// A figure with all that a reader needs to judge it.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// How it is asked for, and its anchor in a page.
    pub(crate) name: String,
    /// What it shows, as a sentence with numbers.
    pub(crate) finding: String,
    /// What is counted, and of how many runs.
    pub(crate) n: String,
    /// What the axes are.
    pub(crate) axes: String,
    pub(crate) keys: Vec<Key>,
    pub(crate) columns: Vec<Column>,
    /// How to read it.
    pub(crate) read: String,
    /// Labels with the commands that make the runs again.
    pub(crate) commands: Vec<(String, String)>,
}

/// Pixels of a figure that is a file of its own: per column, and its margins.
const COLUMN: f64 = 460.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;

/// What a figure begins with that is a file of its own.
pub(super) const BEGIN: &str = "<svg data-made-by=\"pagetide\"";

impl Figure {
    /// As a part of a page.
    pub(crate) fn html(&self) -> Element {
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

    /// What is drawn, as numbers.
    pub(crate) fn data(&self) -> Value {
        let line = |line: &NamedLine| json!({ "label": line.label, "class": line.class, "x": xs(line), "y": ys(line) });
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
        let columns: Vec<Value> = self.columns.iter().map(column).collect();
        json!({ "finding": self.finding, "columns": columns })
    }

    /// As a file of its own, with its own style.
    pub(crate) fn svg(&self, style: &str) -> String {
        let width = LEFT
            + RIGHT
            + COLUMN * self.columns.len().max(1) as f64
            + LEFT * (self.columns.len().max(1) - 1) as f64;
        let mut top = 12.0;
        let mut parts: Vec<Element> = Vec::new();
        let characters = ((width - 24.0) / 8.4) as usize;
        for line in crate::wrap::lines(&self.finding, characters) {
            top += 20.0;
            parts.push(text_at("title", 12.0, top, &line));
        }
        top += 20.0;
        let mut x = 12.0;
        for key in &self.keys {
            let needed = 34.0 + 7.0 * key.text.chars().count() as f64;
            if x + needed > width && x > 12.0 {
                (x, top) = (12.0, top + 18.0);
            }
            parts.push(swatch(key).set("x", coordinate(x)).set("y", coordinate(top - 9.0)));
            parts.push(text_at("key", x + 28.0, top, &key.text));
            x += needed + 14.0;
        }
        let mut foot = top;
        for (index, column) in self.columns.iter().enumerate() {
            let left = LEFT + (COLUMN + LEFT) * index as f64;
            foot = foot.max(column_svg(column, left, top + 12.0, &mut parts));
        }
        for line in crate::wrap::lines(&format!("n: {}", self.n), characters) {
            foot += 18.0;
            parts.push(text_at("key", 12.0, foot, &line));
        }
        let height = foot + 14.0;
        Element::new("svg")
            .set("data-made-by", "pagetide")
            .set("xmlns", "http://www.w3.org/2000/svg")
            .set("viewBox", format!("0 0 {} {}", coordinate(width), coordinate(height)))
            .set("width", coordinate(width))
            .set("height", coordinate(height))
            .with(Element::new("title").text(&self.finding))
            .with(Element::new("desc").text(&self.described()))
            .with(Element::new("style").with(style))
            .with(Element::of("rect", "paper").set("width", "100%").set("height", "100%"))
            .with_all(parts)
            .to_string()
            + "\n"
    }

    fn described(&self) -> String {
        let commands = self.commands.iter().map(|(label, command)| format!("{label}: {command}"));
        let commands = commands.collect::<Vec<_>>().join("\n");
        format!("{}\n{}\n{}\n{commands}", self.n, self.axes, self.read)
    }
}

/// Adds the panels of a column at a place; returns where they end.
fn column_svg(column: &Column, left: f64, top: f64, parts: &mut Vec<Element>) -> f64 {
    let mut y = top;
    if !column.heading.is_empty() {
        y += 18.0;
        parts.push(text_at("heading", left, y, &column.heading));
    }
    for panel in &column.panels {
        y += 20.0;
        parts.push(text_at("caption", left, y, &panel.caption));
        y += 8.0;
        // A picture within a picture: percent are percent of it.
        let inner = Element::of("svg", "panel")
            .set("x", coordinate(left))
            .set("y", coordinate(y))
            .set("width", coordinate(COLUMN))
            .set("height", coordinate(panel.full_height()))
            .with(panel.svg());
        parts.push(inner);
        y += panel.full_height();
    }
    y
}

fn text_at(class: &str, x: f64, y: f64, text: &str) -> Element {
    Element::of("text", class).set("x", coordinate(x)).set("y", coordinate(y)).text(text)
}

fn swatch(key: &Key) -> Element {
    let mark = match key.filled {
        true => Element::of("rect", &key.class).set("width", "22").set("height", "10"),
        false => Element::of("path", &key.class).set("d", "M0 5H22"),
    };
    Element::of("svg", "swatch").set("width", "22").set("height", "10").with(mark)
}

fn legend(keys: &[Key]) -> Element {
    let key = |key: &Key| Element::new("li").with(swatch(key).set("aria-hidden", "true")).text(&key.text);
    Element::of("ul", "legend").with_all(keys.iter().map(key))
}

/// Commands below a folded heading; a script adds a button that copies each.
pub(crate) fn commands(heading: &str, commands: &[(String, String)]) -> Element {
    let command = |(label, command): &(String, String)| {
        Element::new("li")
            .with(Element::new("span").text(label))
            .with(Element::of("code", "command").text(command))
    };
    Element::of("details", "commands")
        .with(Element::new("summary").text(heading))
        .with(Element::new("ul").with_all(commands.iter().map(command)))
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

fn xs(line: &NamedLine) -> Vec<f64> {
    line.points.iter().map(|(x, _)| rounded(*x)).collect()
}

fn ys(line: &NamedLine) -> Vec<f64> {
    line.points.iter().map(|(_, y)| rounded(*y)).collect()
}
