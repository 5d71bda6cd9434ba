//! The pieces of a mapping: what a program took back, or gave advice on, it did to a range; a
//! [`crate::System::Mapping`] is unmapped and advised on as a whole. So a mapping is cut at the edges of such ranges
//! before anything runs, and each piece is mapped by itself, as far as it is touched at all.

use units::PAGE_SIZE;

/// More cuts than this, and the rest of the ranges are rounded to the pieces that there are.
const CUTS_MAX: usize = 4096;

/// Pages of a mapping that live and end together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// First page of the mapping that is touched, and one behind the last.
    pub(super) first: u64,
    pub(super) past: u64,
}

/// A mapping while its pieces are being found.
#[derive(Debug, Clone, Default)]
pub(super) struct Cutting {
    /// Edges of ranges, in pages.
    cuts: Vec<u64>,
    /// Touched ranges.
    touched: Vec<(u64, u64)>,
    pub(super) too_many: bool,
}

/// First page and one behind the last of a range of bytes.
pub(super) fn pages(offset: u64, len: u64) -> (u64, u64) {
    (offset / PAGE_SIZE, (offset + len).div_ceil(PAGE_SIZE))
}

impl Cutting {
    pub(super) fn cut(&mut self, offset: u64, len: u64) {
        let (first, past) = pages(offset, len);
        if self.cuts.len() > 2 * CUTS_MAX {
            self.cuts.sort_unstable();
            self.cuts.dedup();
        }
        if self.cuts.len() >= CUTS_MAX {
            self.too_many = true;
            return;
        }
        self.cuts.extend([first, past]);
    }

    pub(super) fn touch(&mut self, offset: u64, len: u64) {
        let (first, past) = pages(offset, len);
        match self.touched.last_mut() {
            Some(last) if first <= last.1 && past >= last.0 => {
                *last = (last.0.min(first), last.1.max(past));
            }
            _ if first < past => self.touched.push((first, past)),
            _ => {}
        }
        if self.touched.len() > 2 * CUTS_MAX {
            self.touched = union(std::mem::take(&mut self.touched));
        }
    }

    /// The pieces, in order: between two cuts, from the first touched page to the last one.
    pub(super) fn pieces(mut self) -> Vec<Piece> {
        self.cuts.extend([0, u64::MAX]);
        self.cuts.sort_unstable();
        self.cuts.dedup();
        let touched = union(self.touched);
        let mut pieces = Vec::new();
        for bounds in self.cuts.windows(2) {
            let inside = |&&(first, past): &&(u64, u64)| first < bounds[1] && past > bounds[0];
            let from = touched.partition_point(|range| range.1 <= bounds[0]);
            let mut inside = touched[from..].iter().take_while(inside);
            if let Some(first) = inside.next() {
                let last = inside.last().unwrap_or(first);
                pieces.push(Piece { first: first.0.max(bounds[0]), past: last.1.min(bounds[1]) });
            }
        }
        pieces
    }
}

/// The same pages in ranges that neither meet nor overlap, in order.
fn union(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut whole: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (first, past) in ranges {
        match whole.last_mut() {
            Some(last) if first <= last.1 => last.1 = last.1.max(past),
            _ => whole.push((first, past)),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(touches: &[(u64, u64)], cuts: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut cutting = Cutting::default();
        for &(first, past) in touches {
            cutting.touch(first * PAGE_SIZE, (past - first) * PAGE_SIZE);
        }
        for &(first, past) in cuts {
            cutting.cut(first * PAGE_SIZE, (past - first) * PAGE_SIZE);
        }
        cutting.pieces().into_iter().map(|piece| (piece.first, piece.past)).collect()
    }

    #[test]
    fn a_mapping_is_as_large_as_what_is_touched_of_it() {
        assert_eq!(pieces(&[(100, 101), (3, 7)], &[]), [(3, 101)]);
        assert_eq!(pieces(&[], &[(0, 5)]), []);
    }

    #[test]
    fn it_is_cut_where_a_range_of_it_ends() {
        assert_eq!(pieces(&[(0, 100)], &[(10, 20), (20, 30)]), [(0, 10), (10, 20), (20, 30), (30, 100)]);
        assert_eq!(
            pieces(&[(0, 5), (25, 26), (28, 29), (40, 50)], &[(10, 30)]),
            [(0, 5), (25, 29), (40, 50)]
        );
    }
}
