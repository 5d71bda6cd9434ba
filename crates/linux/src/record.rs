//! `record -- COMMAND`: not written yet.
