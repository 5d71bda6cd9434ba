//! The command line as a person meets it: golden texts of help, results and errors.
//!
//! `support` runs the program; `runs` holds what succeeds, `wrong_inputs` what does not; `replays` and
//! `sweeps` hold both of these two commands.

mod replays;
mod runs;
mod support;
mod sweeps;
mod wrong_inputs;
