//! What can be wrong: with an object before it runs, and with a program while it does.

use std::fmt;

/// Why an object cannot be a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl ObjectError {
    pub(crate) fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint }
    }

    /// An object that a compiler does not make.
    pub(crate) fn broken(message: impl Into<String>) -> Self {
        Self::new(message, "the object is damaged, or newer than what is read here")
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ObjectError {}

/// Why a program ended early, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    what: String,
    /// The instruction, if one did it.
    at: Option<usize>,
}

/// What a step of a program comes to.
pub(crate) type Ran<T = ()> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), at: None }
    }

    /// The same, at an instruction unless it has one.
    pub(crate) fn at(mut self, instruction: usize) -> Self {
        self.at.get_or_insert(instruction);
        self
    }

    /// As a person is told, by the functions of the object.
    pub(crate) fn told(&self, hook: &str, place: impl Fn(usize) -> String) -> String {
        match self.at {
            Some(at) => format!("{} in `{hook}`, at {}", self.what, place(at)),
            None => format!("{} in `{hook}`", self.what),
        }
    }
}
