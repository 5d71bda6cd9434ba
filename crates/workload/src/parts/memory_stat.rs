//! Reading a cgroup's `memory.stat`: names and numbers, one pair a line, sizes in bytes.
//!
//! Reading the file flushes the kernel's batched statistics, which can change what reclaim
//! decides next; so a program reads it at the end of a phase only, once per group.

use units::PAGE_SIZE;

use crate::system::System;
use crate::system::outcome::WorkloadError;

/// The text of one group's `memory.stat` at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryStat {
    group: String,
    text: String,
}

impl MemoryStat {
    /// Reads it from the kernel. One read, one flush.
    ///
    /// # Errors
    /// Those of [`System::cgroup_read`].
    pub async fn read<S: System>(sys: &S, group: &str) -> Result<Self, WorkloadError> {
        let text = sys.cgroup_read(group, "memory.stat").await?;
        Ok(Self { group: group.to_owned(), text })
    }

    /// The number beside `key`: events, or bytes where the key is a size.
    ///
    /// # Errors
    /// [`WorkloadError::MissingStat`] when the kernel prints no such number.
    pub fn value(&self, key: &'static str) -> Result<u64, WorkloadError> {
        self.text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .find(|&(name, _)| name == key)
            .and_then(|(_, number)| number.trim().parse().ok())
            .ok_or_else(|| WorkloadError::MissingStat { group: self.group.clone(), key })
    }

    /// The pages that the size beside `key` covers.
    ///
    /// # Errors
    /// As [`MemoryStat::value`].
    pub fn pages(&self, key: &'static str) -> Result<u64, WorkloadError> {
        Ok(self.value(key)? / PAGE_SIZE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_whole_name_or_reported_missing() {
        let text = "file 8192\nactive_file 4096\npgscan 7\npgscan_direct 9\nbroken x\n";
        let stat = MemoryStat { group: "P/A".to_owned(), text: text.to_owned() };
        assert_eq!((stat.pages("file").unwrap(), stat.value("pgscan").unwrap()), (2, 7));
        for key in ["scan", "broken"] {
            let message = stat.value(key).unwrap_err().to_string();
            assert_eq!(message, format!("memory.stat of cgroup `P/A` has no number `{key}`"));
        }
    }
}
