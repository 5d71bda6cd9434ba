//! The command line as a person meets it: golden texts of help, results and errors.
//!
//! `support` runs the program; `runs` holds what succeeds, `wrong_inputs` what does not.

mod comparing;
mod runs;
mod support;
mod wrong_inputs;
