//! The command line as a person meets it: golden texts of help, results and errors.
//!
//! `support` runs the program; `runs`, `lists` and `machines` hold what succeeds, `wrong_inputs` what does not.

mod lists;
mod machines;
mod runs;
mod support;
mod wrong_inputs;
