//! Keeps the output that README.md shows true: `cargo xtask readme` writes it, `cargo xtask test`
//! compares it.

use std::path::Path;

use crate::built::{self, root};
use crate::step::Outcome;

const BEGIN: &str = "<!-- begin: pagetide ";
const BEGIN_END: &str = " -->\n";
const END: &str = "<!-- end -->";

/// What to do when the text is not what the command prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Check,
    Write,
}

/// Runs the command that README.md names and compares or replaces what stands there.
pub(crate) fn run(mode: Mode) -> Outcome {
    if let Outcome::Failed(why) = built::build("release") {
        return Outcome::Failed(why);
    }
    let path = root().join("README.md");
    match update(&path, mode) {
        Ok(()) => Outcome::Passed(Default::default()),
        Err(why) => Outcome::Failed(why),
    }
}

fn update(path: &Path, mode: Mode) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(told)?;
    let arguments = arguments(&text).ok_or("README.md has no block of generated output")?;
    let output = String::from_utf8(built::output("release", arguments.split(' '))?)
        .map_err(|error| format!("`pagetide {arguments}`: {error}"))?;
    let renewed = with_output(&text, &output).ok_or("README.md has no end of its generated output")?;
    if renewed == text {
        return Ok(());
    }
    match mode {
        Mode::Check => {
            Err("README.md shows other output than the command prints; run `cargo xtask readme`".into())
        }
        Mode::Write => std::fs::write(path, renewed).map_err(told),
    }
}

/// The arguments that the block's first line names.
fn arguments(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(BEGIN)?;
    Some(rest.split_once(BEGIN_END)?.0)
}

/// `text` with `output` in its block.
fn with_output(text: &str, output: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (arguments, rest) = rest.split_once(BEGIN_END)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{arguments}{BEGIN_END}```text\n{output}```\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_replaced_and_the_rest_stays() {
        let text = "a\n<!-- begin: pagetide list kernels -->\nold\n<!-- end -->\nb\n";
        assert_eq!(arguments(text), Some("list kernels"));
        let renewed = with_output(text, "new\n").unwrap();
        assert_eq!(renewed, "a\n<!-- begin: pagetide list kernels -->\n```text\nnew\n```\n<!-- end -->\nb\n");
        assert_eq!(with_output(&renewed, "new\n").as_deref(), Some(&renewed[..]));
    }
}
