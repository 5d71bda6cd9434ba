//! Figures as SVG that keeps its text size at every width: panels in a page, or a whole figure as a file.
//!
//! Places along x are percent of the panel's width, or a nested picture of 1000 units that is stretched while
//! its strokes are not; y is in pixels. Axis labels stand outside of the panel, in the margin that the style
//! sheet leaves. Next: `html.rs` for what stands around panels in a page, [`super::markup`] for elements.

use super::look::style_of_figures;
use super::markup::{Element, coordinate, escaped, percent};
use crate::document::figure::{CellMark, Column, Figure, Key, Mark, Panel};

/// Pixels of a figure that is a file of its own: per column, and its margins.
const COLUMN: f64 = 460.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;

/// Units of a stretched picture's width.
const STRETCHED: f64 = 1000.0;

/// Pixels below a panel whose x axis has texts: the texts, and what the axis is.
const FOOT: f64 = 34.0;
/// And where only the texts are.
const TICKS: f64 = 22.0;

impl Panel {
    /// Pixels that the panel takes, with its x axis.
    fn full_height(&self) -> f64 {
        let has_ticks = self.x.ticks.iter().any(|(_, text)| !text.is_empty());
        let foot = match (self.x_label.is_empty(), has_ticks) {
            (true, false) => 6.0,
            (true, true) => TICKS,
            (false, _) => FOOT,
        };
        self.height + foot
    }

    /// The panel as an `svg` of the full width.
    pub(super) fn svg(&self) -> Element {
        let label = escaped(&self.caption);
        let svg = Element::of("svg", "panel")
            .set("width", "100%")
            .set("height", coordinate(self.full_height()))
            .set("role", "img")
            .set("aria-label", label);
        svg.with_all(self.grid())
            .with(self.stretched())
            .with_all(self.marks.iter().flat_map(|mark| self.unstretched(mark)))
            .with_all(self.labels())
    }

    fn y_at(&self, value: f64) -> f64 {
        self.height * (1.0 - self.y.share(value))
    }

    fn grid(&self) -> Vec<Element> {
        let horizontal = self.y.ticks.iter().map(|(value, _)| {
            let y = coordinate(self.y_at(*value));
            line("grid", "0", &y, "100%", &y)
        });
        let vertical = self.x.ticks.iter().map(|(value, _)| {
            let x = percent(self.x.share(*value));
            line("grid", &x, "0", &x, &coordinate(self.height))
        });
        horizontal.chain(vertical).collect()
    }

    fn labels(&self) -> Vec<Element> {
        let mut labels: Vec<Element> = Vec::new();
        for (value, text) in self.y.ticks.iter().filter(|(_, text)| !text.is_empty()) {
            let y = coordinate(self.y_at(*value) + 4.0);
            labels.push(Element::of("text", "tick y").set("x", "-8").set("y", y).text(text));
        }
        let foot = coordinate(self.height + 15.0);
        for (value, text) in self.x.ticks.iter().filter(|(_, text)| !text.is_empty()) {
            let x = percent(self.x.share(*value));
            labels.push(Element::of("text", "tick x").set("x", x).set("y", &foot).text(text));
        }
        if !self.x_label.is_empty() {
            let y = coordinate(self.height + 31.0);
            labels.push(Element::of("text", "axis").set("x", "100%").set("y", y).text(&self.x_label));
        }
        labels
    }

    /// What may be stretched along x: lines, areas and cells.
    fn stretched(&self) -> Element {
        let height = coordinate(self.height);
        Element::of("svg", "cut")
            .set("width", "100%")
            .set("height", &height)
            .set("viewBox", format!("0 0 {STRETCHED} {height}"))
            .set("preserveAspectRatio", "none")
            .with_all(self.marks.iter().flat_map(|mark| self.stretched_mark(mark)))
    }

    fn stretched_mark(&self, mark: &Mark) -> Vec<Element> {
        match mark {
            Mark::Line { class, points, steps } => {
                vec![Element::of("path", class).set("d", self.path(points, *steps))]
            }
            Mark::Area { class, points } => {
                let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
                let (zero, x) = (coordinate(self.y_at(0.0)), |x| coordinate(STRETCHED * self.x.share(x)));
                let d = format!("{}V{zero}H{}Z", self.path(points, true), x(first.0));
                debug_assert!(last.0 >= first.0, "time goes on");
                vec![Element::of("path", class).set("d", d)]
            }
            Mark::Cells(cells) => cells.iter().map(|cell| self.cell(cell)).collect(),
            _ => Vec::new(),
        }
    }

    fn cell(&self, cell: &CellMark) -> Element {
        let x = |value: f64| STRETCHED * self.x.share(value);
        let (top, foot) = (self.y_at(cell.y.1), self.y_at(cell.y.0));
        let rect = Element::of("rect", &cell.shade)
            .set("x", coordinate(x(cell.x.0)))
            .set("y", coordinate(top))
            .set("width", coordinate(x(cell.x.1) - x(cell.x.0)))
            .set("height", coordinate(foot - top));
        match cell.title.is_empty() {
            true => rect,
            false => rect.with(Element::new("title").text(&cell.title)),
        }
    }

    fn path(&self, points: &[(f64, f64)], steps: bool) -> String {
        let mut d = String::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            let x = coordinate(STRETCHED * self.x.share(x));
            let y = coordinate(self.y_at(y));
            d += &match (index, steps) {
                (0, _) => format!("M{x} {y}"),
                (_, true) => format!("H{x}V{y}"),
                (_, false) => format!("L{x} {y}"),
            };
        }
        d
    }

    /// What keeps its shape: dots, strokes, names.
    fn unstretched(&self, mark: &Mark) -> Vec<Element> {
        let height = coordinate(self.height);
        match mark {
            Mark::Moment { x, label, row } => {
                let share = self.x.share(*x);
                let class = if share > 0.5 { "moment left" } else { "moment" };
                let at = percent(share);
                let shift = if share > 0.5 { "-4" } else { "4" };
                let y = coordinate(10.0 + 12.0 * *row as f64);
                let text = Element::of("text", class).set("x", &at).set("dx", shift).set("y", y).text(label);
                vec![line("moment", &at, "0", &at, &height), text]
            }
            Mark::Ticks { class, at } => {
                let stroke = |(x, title): &(f64, String)| {
                    let x = percent(self.x.share(*x));
                    line(class, &x, "1", &x, &height).with(Element::new("title").text(title))
                };
                at.iter().map(stroke).collect()
            }
            Mark::Dots { class, points } => {
                let dot = |(x, y, title): &(f64, f64, String)| {
                    Element::of("circle", class)
                        .set("cx", percent(self.x.share(*x)))
                        .set("cy", coordinate(self.y_at(*y)))
                        .set("r", "3.5")
                        .with(Element::new("title").text(title))
                };
                points.iter().map(dot).collect()
            }
            Mark::Bar { class, from, to, title } => {
                let (from, to) = (self.x.share(*from), self.x.share(*to));
                let rect = Element::of("rect", class)
                    .set("x", percent(from))
                    .set("y", "1")
                    .set("width", percent((to - from).max(0.0)))
                    .set("height", coordinate(self.height - 2.0));
                vec![rect.with(Element::new("title").text(title))]
            }
            Mark::Text { class, x, y, text } => {
                let (x, y) = (percent(self.x.share(*x)), coordinate(self.y_at(*y) + 4.0));
                vec![Element::of("text", class).set("x", x).set("y", y).text(text)]
            }
            Mark::Line { .. } | Mark::Area { .. } | Mark::Cells(_) => Vec::new(),
        }
    }
}

fn line(class: &str, x1: &str, y1: &str, x2: &str, y2: &str) -> Element {
    Element::of("line", class).set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2)
}

impl Figure {
    /// As a file of its own, with its own style.
    pub(super) fn svg(&self) -> String {
        let width = LEFT
            + RIGHT
            + COLUMN * self.columns.len().max(1) as f64
            + LEFT * (self.columns.len().max(1) - 1) as f64;
        let mut top = 12.0;
        let mut parts: Vec<Element> = Vec::new();
        let characters = ((width - 24.0) / 8.4) as usize;
        for line in super::wrap::lines(&self.finding, characters) {
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
        for line in super::wrap::lines(&format!("n: {}", self.n), characters) {
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
            .with(Element::new("style").with(style_of_figures()))
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

pub(super) fn swatch(key: &Key) -> Element {
    let mark = match key.filled {
        true => Element::of("rect", &key.class).set("width", "22").set("height", "10"),
        false => Element::of("path", &key.class).set("d", "M0 5H22"),
    };
    Element::of("svg", "swatch").set("width", "22").set("height", "10").with(mark)
}
