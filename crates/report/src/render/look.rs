//! How pages and figures look, and by what a file of ours is known.

pub(super) const STYLE: &str = include_str!("style.css");
pub(super) const MARKS: &str = include_str!("marks.css");
pub(super) const SCRIPT: &str = include_str!("script.js");

/// What a page of ours begins with.
pub(super) const GENERATOR: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" content=\"pagetide";

/// What a figure begins with that is a file of its own.
const BEGIN: &str = "<svg data-made-by=\"pagetide\"";

/// What pages and figures begin with, so that a file of ours can be told from others.
pub const MARKS_OF_OURS: [&str; 2] = [GENERATOR, BEGIN];

/// Colours of a figure that is a file of its own.
pub(super) fn style_of_figures() -> String {
    let colours = STYLE.find("* {").map_or("", |end| &STYLE[..end]);
    format!("{colours}{MARKS}")
}
