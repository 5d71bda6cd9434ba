//! The summary of a page: a row for each metric, its change as a bar with its interval.

use super::markup::{Element, percent};
use crate::document::changes::{ChangeBar, ChangeRow, Changes, look_of};

impl Changes {
    /// As a table.
    pub(super) fn html(&self) -> Element {
        let heading = |text: &str, class: &str| Element::of("th", class).set("scope", "col").text(text);
        let head = Element::new("tr")
            .with(heading("metric", "name"))
            .with(heading("baseline", "number base"))
            .with(heading("candidate", "number new"))
            .with(heading(self.heading, "number"))
            .with(Element::of("th", "bar").set("scope", "col").with(self.axis()))
            .with(heading("verdict", "verdict"));
        let caption = Element::new("caption")
            .with(Element::of("b", "new").text(&self.candidate))
            .text(" against ")
            .with(Element::of("b", "base").text(&self.base));
        Element::of("table", "summary")
            .with(caption)
            .with(Element::new("thead").with(head))
            .with(Element::new("tbody").with_all(self.rows.iter().map(|row| self.row(row))))
    }

    fn axis(&self) -> Element {
        let text = |&(share, text): &(f64, &str)| {
            Element::of("text", "tick x").set("x", percent(share)).set("y", "12").text(text)
        };
        Element::of("svg", "bar")
            .set("width", "100%")
            .set("height", "16")
            .with_all(self.ticks.iter().map(text))
    }

    fn row(&self, row: &ChangeRow) -> Element {
        let cell = |class: &str, label: &str, text: &str| {
            Element::of("td", class).set("data-label", label).text(text)
        };
        let unit = Element::of("span", "unit").text(row.unit);
        let name = Element::of("th", "name").set("scope", "row").text(&row.name).with(unit);
        let name = match row.help.is_empty() {
            true => name,
            false => name.with(Element::of("small", "help").text(row.help)),
        };
        let bar = row.bar.as_ref().map(|bar| self.drawn(bar, row.verdict));
        Element::of("tr", look_of(row.verdict))
            .with(name)
            .with(cell("number", "baseline", &row.base))
            .with(cell("number", "candidate", &row.candidate))
            .with(cell("number", "change", &row.change))
            .with(Element::of("td", "bar").with_all(bar))
            .with(Element::of("td", "verdict").with(Element::new("span").text(row.verdict)))
    }

    fn drawn(&self, bar: &ChangeBar, verdict: &str) -> Element {
        let (zero, end) = (0.5, bar.end);
        let (low, high) = (f64::min(zero, end), f64::max(zero, end));
        let rect = Element::of("rect", &format!("change {}", look_of(verdict)))
            .set("x", percent(low))
            .set("y", "5")
            .set("width", percent(high - low))
            .set("height", "10");
        let line = |class: &str, x1: f64, x2: f64, y1: &str, y2: &str| {
            Element::of("line", class)
                .set("x1", percent(x1))
                .set("x2", percent(x2))
                .set("y1", y1)
                .set("y2", y2)
        };
        let grid = self.grid.iter().map(|&place| line("grid", place, place, "0", "20"));
        let whisker = bar.interval.map(|(low, high)| {
            [
                line("interval", low, high, "10", "10"),
                line("interval", low, low, "6", "14"),
                line("interval", high, high, "6", "14"),
            ]
        });
        let beyond = bar.is_beyond.then(|| {
            let (x, text) = if end < zero { ("0", "◂") } else { ("100%", "▸") };
            Element::of("text", "beyond").set("x", x).set("y", "14").text(text)
        });
        Element::of("svg", "bar")
            .set("width", "100%")
            .set("height", "20")
            .set("role", "img")
            .set("aria-label", &bar.said)
            .with_all(grid)
            .with(rect)
            .with(line("zero", zero, zero, "0", "20"))
            .with_all(whisker.into_iter().flatten())
            .with_all(beyond)
    }
}
