//! Where a page of Markdown shows commands, and what they print.
//!
//! Three forms. `<!-- begin: COMMAND -->` up to `<!-- end -->` holds what COMMAND prints. A block of `sh` with a block
//! of `text` right below it is typed, and the second one is what it prints. Any other block of `sh` is only typed.
//! Left out: what a command is, and how it is run; see `shell.rs` and `typed.rs`.

const BEGIN: &str = "<!-- begin: ";
const BEGIN_END: &str = " -->";
const END: &str = "<!-- end -->";

/// What stands on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    /// A command whose output is generated.
    Generated(&'a str),
    /// Commands with what they print below them.
    Printing(&'a str),
    /// Commands.
    Typed(&'a str),
}

/// `page` with the outputs that `answer` gives; of what is only typed, the answer is not looked at.
pub(crate) fn renewed(
    page: &str,
    answer: &mut dyn FnMut(Shown) -> Result<String, String>,
) -> Result<String, String> {
    let mut renewed = String::new();
    let mut rest = page;
    while let Some((line, below)) = rest.split_once('\n') {
        renewed.push_str(line);
        renewed.push('\n');
        rest = below;
        if let Some(command) = line.strip_prefix(BEGIN).and_then(|line| line.strip_suffix(BEGIN_END)) {
            let end = rest.find(END).ok_or_else(|| format!("`{command}` has no `{END}` below its output"))?;
            let output = answer(Shown::Generated(command))?;
            // Tables in Markdown stand on the page as they are.
            let is_page = command.contains("--format md");
            renewed.push_str(&if is_page { output } else { fenced(&output) });
            rest = &rest[end..];
        } else if line.trim_start() == "```sh" {
            // In a list it is indented.
            let end = rest.find("```\n").ok_or("a block of `sh` has no end")?;
            let script = rest[..end].trim_end_matches(' ');
            let below = rest[end + 4..].trim_start_matches('\n');
            let Some((_, below)) =
                below.strip_prefix("```text\n").and_then(|below| below.split_once("```\n"))
            else {
                answer(Shown::Typed(script))?;
                renewed.push_str(&rest[..end + 4]);
                rest = &rest[end + 4..];
                continue;
            };
            renewed.push_str(&format!("{script}```\n\n{}", fenced(&answer(Shown::Printing(script))?)));
            rest = below;
        }
    }
    renewed.push_str(rest);
    Ok(renewed)
}

fn fenced(output: &str) -> String {
    let ended = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
    format!("```text\n{output}{ended}```\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_replaced_and_the_rest_stays() {
        let page = "a\n<!-- begin: pagetide list kernels -->\n```text\nold\n```\n<!-- end -->\nb\n\
                    <!-- begin: pagetide list sysctls --format md -->\nold\n<!-- end -->\n\
                    ```sh\nls\n```\n\n```text\nold\n```\nc\n  ```sh\n  cd x\n  ```\nprose\n```text\nstays\n```\n";
        let mut seen = Vec::new();
        let mut answer = |shown: Shown| {
            seen.push(format!("{shown:?}"));
            Ok("new\n".to_owned())
        };
        let renewed_once = renewed(page, &mut answer).unwrap();
        assert_eq!(
            seen,
            [
                "Generated(\"pagetide list kernels\")",
                "Generated(\"pagetide list sysctls --format md\")",
                "Printing(\"ls\\n\")",
                "Typed(\"  cd x\\n\")"
            ]
        );
        let expected = "a\n<!-- begin: pagetide list kernels -->\n```text\nnew\n```\n<!-- end -->\nb\n\
                        <!-- begin: pagetide list sysctls --format md -->\nnew\n<!-- end -->\n\
                        ```sh\nls\n```\n\n```text\nnew\n```\nc\n  ```sh\n  cd x\n  ```\nprose\n```text\nstays\n```\n";
        assert_eq!(renewed_once, expected);
        assert_eq!(renewed(expected, &mut |_| Ok("new\n".to_owned())).unwrap(), expected);
    }

    #[test]
    fn what_has_no_end_is_told() {
        let told = renewed("<!-- begin: pagetide list kernels -->\n", &mut |_| Ok(String::new()));
        assert_eq!(told.unwrap_err(), "`pagetide list kernels` has no `<!-- end -->` below its output");
    }
}
