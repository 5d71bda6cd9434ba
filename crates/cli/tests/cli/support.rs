//! Runs the built `pagetide` in an empty folder and shows all that a person would see.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A report of one run without its title, which tells how long the run took on a clock.
pub(crate) fn below_title(text: &str) -> &str {
    text.split_once("\n\n").map_or(text, |(_, below)| below)
}

/// Says what a test leaves out, straight to the stream: the test harness hides what the macros print.
pub(crate) fn skipped(what: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}").expect("somebody listens");
}

/// A folder to run in; removed afterwards.
pub(crate) struct Scene(TempDir);

impl Scene {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path().join(name), content).expect("the folder is ours");
        self
    }

    /// `pagetide` with arguments separated by blanks, ready to run.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagetide"));
        command.args(arguments.split_ascii_whitespace()).current_dir(self.path());
        command.env_clear().env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, arguments: &str) -> Output {
        self.command(arguments).output().expect("the program is built")
    }

    /// The exit code and both streams, as text.
    pub(crate) fn shown(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let code = output.status.code().map_or("none".to_owned(), |code| code.to_string());
        format!("{}{}exit {code}", text(&output.stdout), text(&output.stderr))
    }

    /// Standard output of a command that must succeed.
    pub(crate) fn data(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// All names below the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut open = vec![self.path().to_owned()];
        while let Some(folder) = open.pop() {
            // A program that still runs may rename what is being listed.
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()) {
                let name = path.strip_prefix(self.path()).expect("below").to_string_lossy().into_owned();
                if path.is_dir() {
                    open.push(path);
                }
                names.push(name);
            }
        }
        names.sort();
        names
    }
}

/// What a person sees of each command, which must leave nothing behind in the scene.
pub fn refused(scene: &Scene, commands: &[&str]) -> String {
    let before = scene.names();
    let shown: Vec<String> =
        commands.iter().map(|command| format!("$ {command}\n{}\n", scene.shown(command))).collect();
    assert_eq!(scene.names(), before, "what is refused leaves nothing behind");
    shown.join("\n")
}
