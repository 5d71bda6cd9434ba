//! Whether a trace can be replayed: numbers that name something, times in order.
//!
//! Everything that makes a trace (a capture, an import, a file) is checked by the same rules, so that a replay
//! need not doubt what it reads.

use thiserror::Error;

use crate::operation::ActsOn;
use crate::{NONE, Operation, Trace};

/// Where a trace is broken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {what}")]
pub struct BrokenTrace {
    /// Which row: `operation 17`, `mapping 3`.
    pub place: String,
    /// What is wrong with it.
    pub what: Broken,
}

/// What can be wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Broken {
    /// A number names nothing.
    #[error("{what} {number} is not in the trace, which has {count}")]
    Unknown {
        /// `file`, `mapping`, `task`.
        what: &'static str,
        /// The number.
        number: u32,
        /// How many there are.
        count: usize,
    },
    /// A time is before that of the row before.
    #[error("it begins at {at_ns} ns, before the one before it")]
    Backwards {
        /// Its time.
        at_ns: u64,
    },
    /// A range goes beyond what it is on.
    #[error("bytes {offset} to {end} are outside of its mapping of {len} bytes")]
    Outside {
        /// First byte.
        offset: u64,
        /// Byte after the last; `u64::MAX` where that is too large.
        end: u64,
        /// Length of the mapping.
        len: u64,
    },
    /// A range that no file can have.
    #[error("bytes {offset} and {len} more are beyond what a file can have")]
    TooLarge {
        /// First byte.
        offset: u64,
        /// How many.
        len: u64,
    },
}

impl Trace {
    /// Whether every row names what there is, and times do not go back.
    ///
    /// # Errors
    /// The first row that is broken: tasks first, then files, then mappings, then operations.
    pub fn check(&self) -> Result<(), BrokenTrace> {
        self.check_tables()?;
        let mut before_ns = 0;
        for (number, operation) in self.operations.iter().enumerate() {
            let at = |what| BrokenTrace { place: format!("operation {number}"), what };
            if operation.at_ns < before_ns {
                return Err(at(Broken::Backwards { at_ns: operation.at_ns }));
            }
            before_ns = operation.at_ns;
            self.check_operation(operation).map_err(at)?;
        }
        Ok(())
    }

    /// Whether every row of the tables names what there is.
    ///
    /// # Errors
    /// The first row that is broken: tasks first, then files, then mappings.
    pub fn check_tables(&self) -> Result<(), BrokenTrace> {
        for (number, task) in self.tasks.iter().enumerate() {
            let at = |what| BrokenTrace { place: format!("task {number}"), what };
            if task.parent != NONE {
                known("task", task.parent, self.tasks.len()).map_err(at)?;
            }
            known("task", task.process, self.tasks.len()).map_err(at)?;
        }
        for (number, file) in self.files.iter().enumerate() {
            let at = |what| BrokenTrace { place: format!("file {number}"), what };
            in_a_file(0, file.size_bytes).map_err(at)?;
        }
        for (number, mapping) in self.mappings.iter().enumerate() {
            let at = |what| BrokenTrace { place: format!("mapping {number}"), what };
            if mapping.file != NONE {
                known("file", mapping.file, self.files.len()).map_err(at)?;
            }
            in_a_file(mapping.file_offset, mapping.len).map_err(at)?;
        }
        Ok(())
    }

    /// Whether all that an operation names is there, and its range can be.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_operation(&self, operation: &Operation) -> Result<(), Broken> {
        let Operation { object, offset, len, .. } = *operation;
        known("task", operation.task, self.tasks.len())?;
        match operation.kind.acts_on() {
            ActsOn::File => {
                known("file", object, self.files.len())?;
                in_a_file(offset, len)
            }
            ActsOn::Mapping => {
                known("mapping", object, self.mappings.len())?;
                let whole = self.mappings[object as usize].len;
                match offset.checked_add(len) {
                    Some(end) if end <= whole => Ok(()),
                    end => Err(Broken::Outside { offset, end: end.unwrap_or(u64::MAX), len: whole }),
                }
            }
            ActsOn::Task => known("task", object, self.tasks.len()),
            ActsOn::Nothing => Ok(()),
        }
    }
}

fn known(what: &'static str, number: u32, count: usize) -> Result<(), Broken> {
    if (number as usize) < count { Ok(()) } else { Err(Broken::Unknown { what, number, count }) }
}

/// Offsets of files are signed numbers of 64 bits.
fn in_a_file(offset: u64, len: u64) -> Result<(), Broken> {
    match offset.checked_add(len) {
        Some(end) if end <= i64::MAX.cast_unsigned() => Ok(()),
        _ => Err(Broken::TooLarge { offset, len }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OperationKind, TraceFile, TraceTask};

    fn read(at_ns: u64, object: u32, offset: u64, len: u64) -> Operation {
        Operation {
            at_ns,
            think_ns: 0,
            took_ns: 0,
            task: 0,
            kind: OperationKind::Read,
            object,
            offset,
            len,
            detail: 0,
        }
    }

    fn one_task_one_file(operations: Vec<Operation>) -> Trace {
        let first = TraceTask { parent: NONE, ..TraceTask::default() };
        Trace { tasks: vec![first], files: vec![TraceFile::default()], operations, ..Trace::default() }
    }

    #[test]
    fn what_names_something_and_goes_forward_in_time_can_be_replayed() {
        assert_eq!(one_task_one_file(vec![read(1, 0, 0, 4096), read(1, 0, 4096, 0)]).check(), Ok(()));
    }

    #[test]
    fn the_first_broken_row_is_named() {
        let broken = |operations| one_task_one_file(operations).check().expect_err("broken").to_string();
        assert_eq!(broken(vec![read(0, 3, 0, 1)]), "operation 0: file 3 is not in the trace, which has 1");
        assert_eq!(
            broken(vec![read(5, 0, 0, 1), read(4, 0, 0, 1)]),
            "operation 1: it begins at 4 ns, before the one before it"
        );
        assert_eq!(
            broken(vec![read(0, 0, u64::MAX, 1)]),
            "operation 0: bytes 18446744073709551615 and 1 more are beyond what a file can have"
        );
    }
}
