//! Elements of HTML and SVG as text: names, attributes, escaping, and nothing else.
//!
//! A template engine or a plotting library would be one more dependency, and none of the latter draws what
//! a page needs that is light or dark, narrow or wide without a script: classes in place of colours, places
//! in percent of the width, texts that keep their size.

use std::fmt::{self, Display};

/// One element, with what stands in it.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, attributes: String::new(), content: String::new() }
    }

    /// An element of this class.
    pub(crate) fn of(name: &'static str, class: &str) -> Self {
        Self::new(name).set("class", class)
    }

    /// Sets an attribute; an empty value stands for a bare one.
    pub(crate) fn set(mut self, name: &str, value: impl Display) -> Self {
        let value = value.to_string();
        self.attributes += &match value.is_empty() {
            true => format!(" {name}"),
            false => format!(" {name}=\"{}\"", escaped(&value)),
        };
        self
    }

    /// Adds text, which is escaped.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.content += &escaped(text);
        self
    }

    /// Adds text for people, in which what stands between backticks is code.
    pub(crate) fn prose(mut self, text: &str) -> Self {
        let mut parts = text.split('`').peekable();
        let mut is_code = false;
        while let Some(part) = parts.next() {
            // The last backtick of an odd number opens nothing.
            self = match (is_code, parts.peek().is_some()) {
                (true, true) => self.with(Element::new("code").text(part)),
                (true, false) => self.text("`").text(part),
                (false, _) => self.text(part),
            };
            is_code = !is_code;
        }
        self
    }

    /// Adds what is markup already.
    pub(crate) fn with(mut self, markup: impl Display) -> Self {
        self.content += &markup.to_string();
        self
    }

    /// Adds markups, one after the other.
    pub(crate) fn with_all<M: Display>(self, markups: impl IntoIterator<Item = M>) -> Self {
        markups.into_iter().fold(self, Self::with)
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, attributes, content } = self;
        match (content.is_empty(), *name) {
            (true, "meta" | "hr" | "br") => write!(f, "<{name}{attributes}>"),
            (true, "line" | "rect" | "circle" | "path") => write!(f, "<{name}{attributes}/>"),
            _ => write!(f, "<{name}{attributes}>{content}</{name}>"),
        }
    }
}

/// Text in which nothing is markup; control characters, which some file may have brought, become blanks.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out.push('\n'),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate: two decimals at most, no trailing zeros.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A share of the width.
pub(crate) fn percent(share: f64) -> String {
    format!("{}%", coordinate(100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recording_brings_is_never_markup() {
        let element = Element::of("p", "a\"b").text("<script>alert('1 & 2')</script>\u{1b}[31m");
        assert_eq!(
            element.to_string(),
            "<p class=\"a&quot;b\">&lt;script&gt;alert('1 &amp; 2')&lt;/script&gt; [31m</p>"
        );
    }

    #[test]
    fn what_stands_between_backticks_is_code_and_no_markup() {
        let prose = |text: &str| Element::new("p").prose(text).to_string();
        assert_eq!(prose("`a<b` by `c`"), "<p><code>a&lt;b</code> by <code>c</code></p>");
        assert_eq!(prose("none"), "<p>none</p>");
        assert_eq!(prose("`one` and ` left"), "<p><code>one</code> and ` left</p>");
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([0.0, -0.001, 12.345_6, 100.0].map(coordinate), ["0", "0", "12.35", "100"]);
        assert_eq!(percent(0.123_456), "12.35%");
    }
}
