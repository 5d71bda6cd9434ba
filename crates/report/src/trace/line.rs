//! The parts of a line of a kernel's `trace` file: words, names of tasks, what the numbers of an event mean.
//!
//! Next: `tracepoints.rs`, which prints fields; `ftrace.rs`, the whole text.

use recording::{Event, NameId, Names};

/// `TASK_COMM_LEN` without the end of the text.
const COMM_MAX: usize = 15;

/// An event with what its numbers mean.
pub(super) struct About<'a> {
    pub(super) event: &'a Event,
    pub(super) names: &'a Names,
    /// Its file and inode number.
    pub(super) file: Option<(&'a str, u64)>,
}

impl About<'_> {
    /// The reason, as long as there is one.
    pub(super) fn reason(&self) -> &str {
        self.event.reason.map_or("unknown", |reason| self.names.text(reason))
    }

    /// A reason or a path as one word.
    pub(super) fn word(&self, name: Option<NameId>) -> String {
        name.map_or_else(|| "unknown".to_owned(), |name| word(self.names.text(name)))
    }

    /// The folio that stands for page and file.
    pub(super) fn folio(&self) -> String {
        let inode = self.file.map_or(0, |(_, inode)| inode);
        format!("{:08x}{:08x}", inode & 0xffff_ffff, self.event.page.unwrap_or(0) & 0xffff_ffff)
    }
}

/// The number of the disk that a file stands for, if it does.
pub(super) fn device(file: &str) -> Option<u32> {
    file.strip_prefix("block device ")?.parse().ok()
}

/// What divides nothing: readers take words apart at blanks.
pub(super) fn word(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A task's name as a kernel has it: its first fifteen bytes.
pub(super) fn comm(name: &str) -> String {
    let mut end = name.len().min(COMM_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    word(&name[..end])
}
