//! Where the blocks of a file lie: runs of pages one behind the other on the disk.
//!
//! Blocks are a prefix of the file. Most files have one run, which takes no memory of its own. Next:
//! [`super::inode`], [`super::disk`].

/// Consecutive pages of a file that lie one behind the other on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Page of the file.
    pub(crate) first: u32,
    pub(crate) pages: u32,
    /// Page of the disk.
    pub(crate) block: u64,
}

impl Extent {
    /// Where the disk goes on behind it.
    pub(crate) fn end(self) -> u64 {
        self.block + u64::from(self.pages)
    }
}

/// The extents of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extents {
    /// The first one, from page 0 on.
    block: u64,
    pages: u32,
    /// Those behind it.
    #[expect(clippy::box_collection, reason = "a word in every inode in memory instead of three")]
    more: Option<Box<Vec<Extent>>>,
}

impl Extents {
    /// From where the first one lies, its pages, and those behind it.
    pub(crate) fn from_parts(block: u64, pages: u32, more: Vec<Extent>) -> Self {
        Self { block, pages, more: (!more.is_empty()).then(|| Box::new(more)) }
    }

    /// What [`Self::from_parts`] takes.
    pub(crate) fn into_parts(self) -> (u64, u32, Vec<Extent>) {
        (self.block, self.pages, self.more.map_or_else(Vec::new, |more| *more))
    }

    fn behind(&self) -> &[Extent] {
        self.more.as_ref().map_or(&[], |more| more)
    }

    /// How many there are, up to a number that no inode has room for.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(usize::from(self.pages > 0) + self.behind().len()).unwrap_or(u16::MAX)
    }

    fn first(&self) -> Option<Extent> {
        (self.pages > 0).then_some(Extent { first: 0, pages: self.pages, block: self.block })
    }

    /// All of them, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        self.first().into_iter().chain(self.behind().iter().copied())
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<Extent> {
        self.behind().last().copied().or(self.first())
    }

    /// The one that a page is in.
    pub(crate) fn at(&self, page: u32) -> Option<Extent> {
        let more = self.behind();
        let before = more[..more.partition_point(|extent| extent.first <= page)].last().copied();
        before.or(self.first()).filter(|extent| page < extent.first + extent.pages)
    }

    /// Pages that have blocks: all up to here.
    pub(crate) fn pages(&self) -> u32 {
        self.last().map_or(0, |extent| extent.first + extent.pages)
    }

    /// The page of the disk where a page lies, and how many from it lie there one behind the other.
    pub(crate) fn place(&self, page: u32) -> Option<(u64, u32)> {
        let extent = self.at(page)?;
        let within = page - extent.first;
        Some((extent.block + u64::from(within), extent.pages - within))
    }

    /// Takes the blocks of all pages from here on.
    pub(crate) fn cut(&mut self, pages: u32) {
        self.pages = self.pages.min(pages);
        if let Some(more) = &mut self.more {
            more.retain(|extent| extent.first < pages);
            if let Some(last) = more.last_mut() {
                last.pages = last.pages.min(pages - last.first);
            }
        }
        self.more.take_if(|more| more.is_empty());
    }

    /// Gives blocks to the next pages.
    pub(crate) fn add(&mut self, pages: u32, block: u64) {
        if self.pages == 0 {
            (self.block, self.pages) = (block, pages);
            return;
        }
        let first = self.pages();
        let (last_block, last_pages) = match self.more.as_mut().and_then(|more| more.last_mut()) {
            Some(last) => (last.block, &mut last.pages),
            None => (self.block, &mut self.pages),
        };
        if last_block + u64::from(*last_pages) == block {
            *last_pages += pages;
        } else {
            self.more.get_or_insert_default().push(Extent { first, pages, block });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    ///   page of the file   0..4      4..6     6..9
    ///   of the disk      100..104  104..106  50..53
    /// ```
    #[test]
    fn runs_that_follow_one_another_on_the_disk_are_one() {
        let mut extents = Extents::default();
        assert_eq!((extents.pages(), extents.place(0)), (0, None));
        for (pages, block) in [(4, 100), (2, 104), (3, 50), (1, 53), (1, 7)] {
            extents.add(pages, block);
        }
        assert_eq!(extents.pages(), 11);
        assert_eq!(extents.behind().len(), 2);
        let places: Vec<_> = [0, 5, 6, 9, 10, 11].map(|page| extents.place(page)).to_vec();
        let expected = [Some((100, 6)), Some((105, 1)), Some((50, 4)), Some((53, 1)), Some((7, 1)), None];
        assert_eq!(places, expected);
        let (block, pages, more) = extents.clone().into_parts();
        assert_eq!(Extents::from_parts(block, pages, more), extents);
    }
}
