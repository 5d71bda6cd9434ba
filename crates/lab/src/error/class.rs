//! Whose fault an error is, which decides the exit code of the command line. Next: [`crate::error`].

/// Whose fault an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The plan or an input is wrong: something to change and try again.
    Input,
    /// This program cannot go on through no fault of the plan.
    Internal,
    /// A mechanism reached a state that must not exist: a bug of ours.
    Invariant,
    /// A limit that the user set is not kept.
    Limit,
    /// The user asked to stop.
    Interrupted,
    /// The command to record does not exist.
    CommandNotFound,
    /// The command to record exists and cannot be run.
    CommandNotExecutable,
}
