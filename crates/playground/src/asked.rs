//! What a person chose on the page, as a request, and as the command that asks the same.
//!
//! Left out: what any of it means, which `lab` says. Next: [`crate::session`].

use lab::{LabError, Request, Subject};
use serde::Deserialize;

/// The choices; what is empty or missing is the workload's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asked {
    /// A workload by name; or, with `text`, what its file is called.
    pub workload: String,
    /// The text of a workload file or a scenario.
    pub text: String,
    /// The kernels, the baseline first.
    pub kernels: Vec<String>,
    /// The machine, by name.
    pub machine: String,
    /// Its memory.
    pub mem: String,
    /// What it swaps to.
    pub swap: String,
    /// Parameters, each `name=value`.
    pub params: Vec<String>,
    /// Sysctls, each `name=value`.
    pub sysctls: Vec<String>,
    /// The first seed.
    pub seed: Option<u64>,
    /// How many seeds.
    pub seeds: Option<u64>,
    /// Time between two samples.
    pub interval: String,
}

/// What a text of nobody's file is called in a command.
const FILE: &str = "workload.toml";

impl Asked {
    /// As the command line would ask it.
    pub(crate) fn request(&self) -> Request {
        let subject = match self.text.trim() {
            "" => Subject::Workload(self.workload.trim().to_owned()),
            _ => Subject::of_text(self.text.clone()),
        };
        let given = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        Request {
            machine: given(&self.machine),
            mem: given(&self.mem),
            swap: given(&self.swap),
            params: self.params.clone(),
            sysctls: self.sysctls.clone(),
            seed: self.seed,
            interval: given(&self.interval),
            ..Request::new(subject)
        }
    }

    /// The command that prints the same result.
    pub fn command(&self) -> String {
        let subject = if self.text.trim().is_empty() { self.workload.trim() } else { FILE };
        let mut words = vec!["pagetide".to_owned(), "compare".to_owned(), quoted(subject)];
        let mut add = |option: &str, value: &str| {
            if !value.trim().is_empty() {
                words.extend([option.to_owned(), quoted(value.trim())]);
            }
        };
        self.kernels.iter().for_each(|kernel| add("--kernel", kernel));
        add("--machine", &self.machine);
        add("--mem", &self.mem);
        add("--swap", &self.swap);
        self.params.iter().for_each(|pair| add("--param", pair));
        self.sysctls.iter().for_each(|pair| add("--set", pair));
        add("--seed", &self.seed.map(|seed| seed.to_string()).unwrap_or_default());
        add("--seeds", &self.seeds.map(|seeds| seeds.to_string()).unwrap_or_default());
        add("--interval", &self.interval);
        words.join(" ")
    }
}

/// What only a page can ask wrongly.
pub(crate) fn refused(message: String) -> LabError {
    LabError::Refused { message, hint: None }
}

/// A word of a command, in quotes where a shell would read it otherwise.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
