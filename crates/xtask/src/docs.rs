//! Keeps what documents show true: `cargo xtask docs` writes it, `cargo xtask test` compares it.
//!
//! Each command of README.md and `docs` runs, in a folder of its page: those with their output as they stand, the
//! others small (see `typed.rs`); what cannot run here is said. A picture that a command writes with `--plot` is a file
//! of the repository, and compared too. Left out: pages that other programs generate, and what Python prints, which
//! tests of the package hold.

mod page;
mod typed;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::built::binary;
use crate::checkout::root;
use crate::say::say;
use crate::step::Outcome;
use page::{Shown, renewed};
use typed::Way;

/// Workloads that pages run by their path.
const CASES: &str = "docs/cases";
/// Policies that a page may name.
const OBJECTS: &str = "crates/bpf/tests/objects";

/// What to do when a page does not show what its commands print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Check,
    Write,
}

/// Runs the commands of all pages and compares or replaces what stands there.
pub(crate) fn run(mode: Mode) -> Outcome {
    let stage = std::env::temp_dir().join(format!("pagetide-docs-{}", std::process::id()));
    let mut wrong = Vec::new();
    for page in pages() {
        if made_by_others(&page) {
            say(&format!("{}: made by another program, not run", page.display()));
            continue;
        }
        if let Err(why) = Page::open(&page, &stage).and_then(|mut page| page.play(mode)) {
            wrong.push(format!("{}: {why}", page.display()));
        }
    }
    // What is left in the temporary folder harms nobody.
    let _ = fs::remove_dir_all(&stage);
    if wrong.is_empty() { Outcome::Passed(Default::default()) } else { Outcome::Failed(wrong.join("\n")) }
}

/// README.md, and all pages below `docs`, by their paths in the repository.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md")];
    let mut open = vec![PathBuf::from("docs")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root().join(&folder)).into_iter().flatten().flatten() {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|is| is == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Whether its commands are those that it was made with.
fn made_by_others(page: &Path) -> bool {
    fs::read_to_string(root().join(page)).is_ok_and(|text| text.contains("do not edit by hand"))
}

/// A page and the folder that its commands run in.
struct Page {
    path: PathBuf,
    text: String,
    folder: PathBuf,
    begin: Instant,
    tried: usize,
    left: Vec<String>,
}

impl Page {
    fn open(path: &Path, stage: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(root().join(path)).map_err(|error| error.to_string())?;
        let folder = stage.join(path.with_extension(""));
        for files in [CASES, OBJECTS] {
            let there = folder.join(files);
            fs::create_dir_all(there.parent().expect("in a folder")).map_err(|error| error.to_string())?;
            symlink(root().join(files), there).map_err(|error| error.to_string())?;
        }
        Ok(Self { path: path.to_owned(), text, folder, begin: Instant::now(), tried: 0, left: Vec::new() })
    }

    fn play(&mut self, mode: Mode) -> Result<(), String> {
        let text = self.text.clone();
        // A page that shows what its blocks print is a story: they all run as they stand, one after the other.
        let mut is_story = false;
        renewed(&text, &mut |shown| {
            is_story |= matches!(shown, Shown::Printing(_));
            Ok(String::new())
        })?;
        let mut wrong = Vec::new();
        let now = renewed(&text, &mut |shown| match shown {
            Shown::Generated(command) => {
                let output = self.shell(command)?;
                self.picture(command, mode)?;
                Ok(output)
            }
            Shown::Printing(script) => self.shell(script),
            Shown::Typed(script) if is_story => self.story(script),
            Shown::Typed(script) => {
                wrong
                    .extend(typed::commands(script).iter().filter_map(|command| self.try_out(command).err()));
                Ok(String::new())
            }
        })?;
        self.tell();
        if !wrong.is_empty() {
            return Err(wrong.join("\n"));
        }
        match mode {
            _ if now == text => Ok(()),
            Mode::Check => Err(format!(
                "it does not show what its commands print{}; run `cargo xtask docs`",
                first_difference(&text, &now)
            )),
            Mode::Write => fs::write(root().join(&self.path), now).map_err(|error| error.to_string()),
        }
    }

    /// Commands of a story whose output nobody sees, all of them or none. What leads to figures of real kernels is
    /// tried out, as on any page.
    fn story(&mut self, script: &str) -> Result<String, String> {
        let commands = typed::commands(script);
        if commands.iter().any(|command| typed::is_planned(command)) {
            commands.iter().try_for_each(|command| self.try_out(command))?;
            return Ok(String::new());
        }
        for way in commands.iter().map(|command| typed::way(command)) {
            match way {
                Way::Not(why) if why != typed::FOREIGN => {
                    self.left.extend(commands.iter().map(|command| format!("{command} ({why})")));
                    return Ok(String::new());
                }
                Way::Not(_) => {}
                Way::Run(words) => {
                    // All else a story makes for itself.
                    let service = words.into_iter().filter(|word| word == typed::SERVICE);
                    self.props(&service.collect::<Vec<_>>())?;
                }
            }
        }
        self.shell(script)
    }

    fn try_out(&mut self, command: &str) -> Result<(), String> {
        match typed::way(command) {
            Way::Not(why) => self.left.push(format!("{command} ({why})")),
            Way::Run(words) => {
                self.pagetide(&words)
                    .map_err(|why| format!("`{command}`, tried as `{}`: {why}", words.join(" ")))?;
                self.tried += 1;
            }
        }
        Ok(())
    }

    fn pagetide(&self, words: &[String]) -> Result<(), String> {
        self.props(words)?;
        let mut pagetide = self.command(&binary("release"));
        pagetide.arg("-q").args(words);
        output(pagetide).map(drop)
    }

    /// The output of a script.
    fn shell(&mut self, script: &str) -> Result<String, String> {
        let mut shell = self.command(Path::new("bash"));
        shell.args(["-e", "-o", "pipefail", "-c", script]);
        self.tried += 1;
        output(shell).map_err(|why| format!("`{}`: {why}", script.trim()))
    }

    fn command(&self, program: &Path) -> Command {
        let programs = binary("release").parent().map(Path::to_owned).unwrap_or_default();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env("PATH", path).env("NO_COLOR", "1").env_remove("COLUMNS");
        command
    }

    /// The file of the repository that `command` has written with `--plot`, if it has.
    fn picture(&self, command: &str, mode: Mode) -> Result<(), String> {
        let Some((_, rest)) = command.split_once("--plot ") else { return Ok(()) };
        let name = rest.split(' ').next().unwrap_or_default();
        let told = |error: std::io::Error| format!("{name}: {error}");
        let drawn = fs::read(self.folder.join(name)).map_err(told)?;
        let is_same = fs::read(root().join(name)).is_ok_and(|there| there == drawn);
        match mode {
            _ if is_same => Ok(()),
            Mode::Check => Err(format!("{name} is not what `{command}` draws; run `cargo xtask docs`")),
            Mode::Write => fs::write(root().join(name), drawn).map_err(told),
        }
    }

    /// Makes what a command takes for granted, and no command before it has made.
    fn props(&self, words: &[String]) -> Result<(), String> {
        let requests = || (0..20_000).map(|at| format!("{at},{},4096\n", at * 7919 % 15_000)).collect();
        let numbers = |from: u32| (0..20).map(|at| format!("{}\n", from + at % 5)).collect();
        for word in words {
            // `old=old.txt` is a file with a name.
            let name = word.rsplit('=').next().unwrap_or_default();
            let content: String = match name {
                "requests.csv" | "trace.csv.zst" => requests(),
                "old.txt" => numbers(100),
                "new.txt" => numbers(110),
                typed::SERVICE => "#!/bin/sh\ncat $0 $0 > service.log\n".to_owned(),
                _ => continue,
            };
            let path = self.folder.join(name);
            let made = fs::write(&path, content)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
            made.map_err(|error| format!("{name}: {error}"))?;
        }
        let results = ["--out", "-o", "--plot"];
        for pair in words.windows(2).filter(|pair| !results.contains(&&*pair[0])) {
            let name = &*pair[1];
            let makes = match name {
                _ if self.folder.join(name).exists() => continue,
                "app.trace" => "pagetide capture -o app.trace -- ./my-service".to_owned(),
                _ if name.starts_with("recordings/") => format!("pagetide run hot-and-stream --out {name}"),
                _ => continue,
            };
            if let Way::Run(words) = typed::way(&makes) {
                self.pagetide(&words)?;
            }
        }
        Ok(())
    }

    fn tell(&self) {
        if self.tried + self.left.len() > 0 {
            let (page, seconds) = (self.path.display(), self.begin.elapsed().as_secs_f64());
            say(&format!("{page}: {} run in {seconds:.1} s, {} not run", self.tried, self.left.len()));
        }
        for left in &self.left {
            say(&format!("  not run: {left}"));
        }
    }
}

/// What a command that succeeds prints.
fn output(mut command: Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// `: it shows A, and B is printed` of the first lines that differ.
fn first_difference(shown: &str, printed: &str) -> String {
    let mut lines = shown.lines().zip(printed.lines());
    let Some((shown, printed)) = lines.find(|(shown, printed)| shown != printed) else {
        return String::new();
    };
    format!(": `{}` is shown, `{}` printed", shown.trim(), printed.trim())
}
