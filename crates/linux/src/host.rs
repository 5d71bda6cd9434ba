//! `--on host`: not written yet.
