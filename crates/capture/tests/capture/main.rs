//! Programs that are followed: what the trace says they did, and that they do not notice.

mod against_strace;
mod endings;
mod files;
mod memory;
mod plays;
mod processes;
mod support;
