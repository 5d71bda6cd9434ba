//! `cargo xtask playground`: the simulator as one page, below cargo's target folder.
//!
//! The crate `playground` is compiled to WebAssembly, compressed, and put into the page with its style and scripts,
//! which are in `crates/playground/page`. The page needs no server and no network. [`test()`] opens it in a browser,
//! by the script in `crates/playground/tests`. Left out: generated bindings, and `wasm-opt`, which made it 2 % smaller
//! and no faster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::built;
use crate::checkout::{root, target};
use crate::say::say;
use crate::step::{Outcome, cargo};

const TARGET: &str = "wasm32-unknown-unknown";

/// What the page may be in all: it is sent whole.
const BYTES_MAX: usize = 6 << 20;

/// The page, by what stands for each part in it. A part may have others in it.
const PARTS: [(&str, &[&str]); 4] = [
    ("style", &["report/src/render/style.css", "report/src/render/marks.css", "playground/page/page.css"]),
    ("worker", &["playground/page/worker.js"]),
    ("script", &["playground/page/examples.js", "playground/page/walk.js", "playground/page/page.js"]),
    ("own", &["../examples/workloads/hot-and-scan.toml"]),
];

/// Makes it.
pub(crate) fn make() -> Outcome {
    if let Some(missing) = missing() {
        return Outcome::Failed(missing);
    }
    let build = ["build", "--package=pagetide-playground", "--profile=page", "--target", TARGET, "--locked"];
    match cargo(&build, &[]) {
        Outcome::Passed(_) => {}
        other => return other,
    }
    match written() {
        Ok((path, bytes)) if bytes <= BYTES_MAX => {
            say(&format!("made {}: {:.2} MiB", path.display(), bytes as f64 / f64::from(1 << 20)));
            Outcome::Passed(Default::default())
        }
        Ok((path, bytes)) => {
            Outcome::Failed(format!("{}: {bytes} bytes, and {BYTES_MAX} is the most", path.display()))
        }
        Err(error) => error.into(),
    }
}

/// What it cannot be made without, and what installs it.
pub(crate) fn missing() -> Option<String> {
    let sysroot =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output().ok()?;
    let folder = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    let told = format!("there is no standard library for {TARGET}: `rustup target add {TARGET}`");
    (!folder.is_dir()).then_some(told)
}

/// Where the page is.
pub(crate) fn page() -> PathBuf {
    root().join(target()).join("playground").join("pagetide.html")
}

/// What the browser is asked, as a link and as a command.
const LINK: &str =
    "#workload=hot-and-stream&kernels=linux-5.4&kernels=linux-5.4%2Broot-aging&params=stream%3D2G&mem=512M";
const COMMAND: &str = "compare hot-and-stream --kernel linux-5.4 --kernel linux-5.4+root-aging --param stream=2G \
                       --mem 512M --format json";

/// Makes the page, runs it in a browser, and holds its result against the command line's.
pub(crate) fn test() -> Outcome {
    if let Some(missing) = missing() {
        return Outcome::Skipped(missing);
    }
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let Some(browser) = browsers.into_iter().find(|browser| is_there(browser)) else {
        return Outcome::Skipped("there is no `chromium`; Debian has it".to_owned());
    };
    if !is_there("node") {
        return Outcome::Skipped("there is no `node`; Debian has it as nodejs".to_owned());
    }
    for made in [make(), built::build("release")] {
        match made {
            Outcome::Passed(_) => {}
            other => return other,
        }
    }
    let expected = page().with_file_name("expected.json");
    match driven(browser, &expected) {
        Ok(status) if status.success() => Outcome::Passed(Default::default()),
        Ok(status) => Outcome::Failed(format!("the page in {browser}: {status}")),
        Err(error) => error.into(),
    }
}

fn driven(browser: &str, expected: &Path) -> std::io::Result<ExitStatus> {
    let mut command = Command::new(built::binary("release"));
    let output = command.args(COMMAND.split_whitespace()).stderr(Stdio::inherit()).output()?;
    fs::write(expected, output.stdout)?;
    let script = root().join("crates/playground/tests/browser.mjs");
    Command::new("node").arg(script).arg(page()).arg(expected).arg(LINK).env("CHROME", browser).status()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Puts the parts together; returns the page and its bytes.
fn written() -> std::io::Result<(PathBuf, usize)> {
    let crates = root().join("crates");
    let mut page = fs::read_to_string(crates.join("playground/page/page.html"))?;
    for (name, files) in PARTS {
        let texts = files.iter().map(|file| fs::read_to_string(crates.join(file)));
        let text = texts.collect::<Result<Vec<_>, _>>()?.join("\n");
        page = page.replace(&format!("/*{{{name}}}*/"), text.trim_end());
    }
    let wasm = root().join(target()).join(TARGET).join("page/pagetide_playground.wasm");
    page = page.replace("/*{wasm}*/", &base64(&compressed(&wasm)?));
    let path = self::page();
    fs::create_dir_all(path.parent().expect("it is in a folder"))?;
    fs::write(&path, &page)?;
    Ok((path, page.len()))
}

/// A file as `gzip` makes it, without the time in it: every system has the program, every browser reads it.
fn compressed(path: &Path) -> std::io::Result<Vec<u8>> {
    let output = Command::new("gzip").args(["-9nc"]).arg(path).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(std::io::Error::other(format!("gzip: {}", output.status)));
    }
    Ok(output.stdout)
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let coded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(coded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
