//! Programs that are followed: what the trace says they did, and that they do not notice.

mod files;
mod support;
