//! Exit codes. Scripts rely on them: a number never changes its meaning.

use lab::Class;

/// All was done: a run that the OOM killer ended is a result, too.
pub(crate) const DONE: u8 = 0;
/// The plan or an input is wrong.
pub(crate) const INPUT: u8 = 1;
/// Wrong usage (clap's own code), or an internal error.
pub(crate) const INTERNAL: u8 = 2;
/// An invariant of the model is violated: the seed and a command are printed.
pub(crate) const INVARIANT: u8 = 3;
/// A limit of `--fail-if` is not kept.
pub(crate) const LIMIT: u8 = 5;
/// The command to record cannot be run, as a shell has it.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The command to record is not found, as a shell has it.
pub(crate) const NOT_FOUND: u8 = 127;
/// Stopped by a signal: this and its number, as a shell has it.
pub(crate) const SIGNALLED: u8 = 128;
/// Interrupted: by SIGINT.
pub(crate) const INTERRUPTED: u8 = SIGNALLED + 2;

/// The part of `--help` that documents the codes.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done; a difference between kernels is no failure, nor is a run that the OOM killer ended
  1    the plan or an input is wrong
  2    wrong usage, or an internal error
  3    an invariant of the model is violated
  5    `compare --fail-if`: a limit is not kept
  126  `record`, `capture`: the command cannot be run
  127  `record`, `capture`: the command is not found
  130  interrupted; 143 by SIGTERM, 129 by SIGHUP";

/// The code for an error of this class.
pub(crate) const fn code(class: Class) -> u8 {
    match class {
        Class::Input => INPUT,
        Class::Internal => INTERNAL,
        Class::Invariant => INVARIANT,
        Class::Limit => LIMIT,
        Class::Interrupted => INTERRUPTED,
        Class::CommandNotFound => NOT_FOUND,
        Class::CommandNotExecutable => NOT_EXECUTABLE,
    }
}
