//! The command line as a person meets it: golden texts of help, results and errors.
//!
//! `support` runs the program; `runs` holds what succeeds, `wrong_inputs` what does not,
//! `real_runs` what happens on this host.

mod real_runs;
mod runs;
mod support;
mod wrong_inputs;
