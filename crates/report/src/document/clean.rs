//! What no terminal should obey. Left out: what Markdown and HTML read as markup, which their renderers escape.

/// Control characters written out, so that they are seen and not obeyed.
pub(crate) fn clean(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}
