//! Follows what a program and its children do to files and memory, without root.
