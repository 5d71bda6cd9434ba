//! What lies where in an address space: ranges that do not overlap, each with a value.

use std::collections::BTreeMap;

/// A range and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range<T> {
    /// First address.
    pub(crate) start: u64,
    /// Address after the last.
    pub(crate) end: u64,
    /// What is there.
    pub(crate) value: T,
}

/// Ranges by their start.
#[derive(Debug, Clone)]
pub(crate) struct Ranges<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy> Ranges<T> {
    /// Puts a value where nothing lies: what lay there is to be removed before.
    pub(crate) fn insert(&mut self, start: u64, end: u64, value: T) {
        if start < end {
            self.0.insert(start, (end, value));
        }
    }

    /// The parts of ranges that lie within, in order.
    pub(crate) fn within(&self, start: u64, end: u64) -> Vec<Range<T>> {
        let before = self.0.range(..start).next_back();
        let ranges = before.into_iter().chain(self.0.range(start..end.max(start)));
        let cut = |(from, (to, value)): (&u64, &(u64, T))| Range {
            start: (*from).max(start),
            end: (*to).min(end),
            value: *value,
        };
        ranges.map(cut).filter(|range| range.start < range.end).collect()
    }

    /// Takes away what lies within, and returns it, in order.
    pub(crate) fn remove(&mut self, start: u64, end: u64) -> Vec<Range<T>> {
        let removed = self.within(start, end);
        for part in &removed {
            let Some((&from, &(to, value))) = self.0.range(..=part.start).next_back() else { continue };
            self.0.remove(&from);
            self.insert(from, part.start, value);
            self.insert(part.end, to, value);
        }
        removed
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Range<T>> {
        self.0.iter().map(|(start, (end, value))| Range { start: *start, end: *end, value: *value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(ranges: &Ranges<char>) -> String {
        let mut line = ['.'; 12];
        for range in ranges.all() {
            line[range.start as usize..range.end as usize].fill(range.value);
        }
        line.iter().collect()
    }

    #[test]
    fn a_hole_leaves_what_is_left_and_right_of_it() {
        let mut ranges = Ranges::default();
        ranges.insert(0, 6, 'a');
        ranges.insert(6, 10, 'b');
        assert_eq!(drawn(&ranges), "aaaaaabbbb..");
        assert_eq!(
            ranges.remove(4, 7),
            [Range { start: 4, end: 6, value: 'a' }, Range { start: 6, end: 7, value: 'b' }]
        );
        assert_eq!(drawn(&ranges), "aaaa...bbb..");
        assert_eq!(ranges.remove(1, 2), [Range { start: 1, end: 2, value: 'a' }]);
        assert_eq!(drawn(&ranges), "a.aa...bbb..");
        assert_eq!(ranges.within(10, 12), []);
        assert_eq!(ranges.remove(0, 12).len(), 3);
        assert_eq!(drawn(&ranges), "............");
    }
}
