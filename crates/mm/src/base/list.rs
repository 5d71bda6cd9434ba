//! Doubly linked lists whose links lie in a table and name entries of it by number.
//!
//! ```text
//!   list: head = 7, tail = 2, len = 3
//!   table:  2: {prev 5, next -}   5: {prev 7, next 2}   7: {prev -, next 5}
//! ```
//! Page frames, dentries, inodes and tree nodes are each on at most one list of a kind, so an entry
//! holds its links itself and a list is three words. The list does not own its entries: the same
//! table ([`Links`]) is passed to every call. Whether an entry is on a list, and on which, its
//! owner knows: frames by their state, the others by a flag beside the links.
//!
//! Left out: splicing one list into another, which nobody does.

use units::Pfn;

use crate::base::ids::{DentryId, MappingId};

/// The number of an entry in a table.
pub trait ListId: Copy + Eq {
    /// No entry: the end of a list.
    const NIL: Self;
}

impl ListId for u32 {
    const NIL: Self = Self::MAX;
}

impl ListId for Pfn {
    const NIL: Self = Self(u32::MAX);
}

impl ListId for MappingId {
    const NIL: Self = Self(u32::MAX);
}

impl ListId for DentryId {
    const NIL: Self = Self(u32::MAX);
}

/// Neighbours of an entry that is on a list; of one that is not they mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<I> {
    prev: I,
    next: I,
}

impl<I: ListId> Link<I> {
    /// Links of an entry that was never on a list.
    pub const UNUSED: Self = Self { prev: I::NIL, next: I::NIL };

    /// The neighbour towards the head.
    #[inline]
    pub fn prev(&self) -> Option<I> {
        some(self.prev)
    }

    /// The neighbour towards the tail.
    #[inline]
    pub fn next(&self) -> Option<I> {
        some(self.next)
    }
}

/// A table whose entries have links.
pub trait Links<I> {
    /// Links of an entry.
    fn link(&self, id: I) -> Link<I>;
    /// Links of an entry, to be changed.
    fn link_mut(&mut self, id: I) -> &mut Link<I>;
}

/// A list of entries of one table, with its length.
///
/// Which end is the older one is the owner's matter: LRU lists of pages take in at the head, those
/// of dentries, inodes and tree nodes at the tail, and free lists hand out from the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List<I> {
    head: I,
    tail: I,
    len: u32,
}

impl<I: ListId> Default for List<I> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<I: ListId> List<I> {
    /// A list without entries.
    pub const EMPTY: Self = Self { head: I::NIL, tail: I::NIL, len: 0 };

    /// How many entries it has.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry at the head.
    #[inline]
    pub fn first(&self) -> Option<I> {
        some(self.head)
    }

    /// The entry at the tail.
    #[inline]
    pub fn last(&self) -> Option<I> {
        some(self.tail)
    }

    /// The entry behind `id`, towards the tail.
    #[inline]
    pub fn next(table: &(impl Links<I> + ?Sized), id: I) -> Option<I> {
        some(table.link(id).next)
    }

    /// The entry before `id`, towards the head.
    #[inline]
    pub fn prev(table: &(impl Links<I> + ?Sized), id: I) -> Option<I> {
        some(table.link(id).prev)
    }

    /// Puts `id`, which is on no list, at the head.
    #[inline]
    pub fn push_front(&mut self, table: &mut (impl Links<I> + ?Sized), id: I) {
        *table.link_mut(id) = Link { prev: I::NIL, next: self.head };
        if self.head == I::NIL {
            self.tail = id;
        } else {
            table.link_mut(self.head).prev = id;
        }
        self.head = id;
        self.len += 1;
    }

    /// Puts `id`, which is on no list, at the tail.
    #[inline]
    pub fn push_back(&mut self, table: &mut (impl Links<I> + ?Sized), id: I) {
        *table.link_mut(id) = Link { prev: self.tail, next: I::NIL };
        if self.tail == I::NIL {
            self.head = id;
        } else {
            table.link_mut(self.tail).next = id;
        }
        self.tail = id;
        self.len += 1;
    }

    /// Puts `id`, which is on no list, behind `at`, which is on this one.
    pub fn insert_after(&mut self, table: &mut (impl Links<I> + ?Sized), at: I, id: I) {
        let next = table.link(at).next;
        *table.link_mut(id) = Link { prev: at, next };
        table.link_mut(at).next = id;
        if next == I::NIL {
            self.tail = id;
        } else {
            table.link_mut(next).prev = id;
        }
        self.len += 1;
    }

    /// Takes `id` out, which is on this list.
    #[inline]
    pub fn remove(&mut self, table: &mut (impl Links<I> + ?Sized), id: I) {
        let Link { prev, next } = table.link(id);
        if prev == I::NIL {
            self.head = next;
        } else {
            table.link_mut(prev).next = next;
        }
        if next == I::NIL {
            self.tail = prev;
        } else {
            table.link_mut(next).prev = prev;
        }
        self.len -= 1;
    }

    /// Turns the list until `id`, which is on it, is at the head: those before it go to the tail in their order.
    pub fn turn_to(&mut self, table: &mut (impl Links<I> + ?Sized), id: I) {
        let before = table.link(id).prev;
        if before == I::NIL {
            return;
        }
        table.link_mut(self.tail).next = self.head;
        table.link_mut(self.head).prev = self.tail;
        table.link_mut(before).next = I::NIL;
        table.link_mut(id).prev = I::NIL;
        (self.head, self.tail) = (id, before);
    }

    /// Takes the entry at the head.
    #[inline]
    pub fn pop_front(&mut self, table: &mut (impl Links<I> + ?Sized)) -> Option<I> {
        let id = self.first()?;
        self.head = table.link(id).next;
        if self.head == I::NIL {
            self.tail = I::NIL;
        } else {
            table.link_mut(self.head).prev = I::NIL;
        }
        self.len -= 1;
        Some(id)
    }

    /// Takes the entry at the tail.
    #[inline]
    pub fn pop_back(&mut self, table: &mut (impl Links<I> + ?Sized)) -> Option<I> {
        let id = self.last()?;
        self.tail = table.link(id).prev;
        if self.tail == I::NIL {
            self.head = I::NIL;
        } else {
            table.link_mut(self.tail).next = I::NIL;
        }
        self.len -= 1;
        Some(id)
    }

    /// Takes entries at the head, one after the other, until `taken` is full or there is none. Returns how many.
    pub fn pop_front_all(&mut self, table: &mut (impl Links<I> + ?Sized), taken: &mut [I]) -> usize {
        let mut count = 0;
        for place in taken {
            let Some(id) = self.first() else { break };
            *place = id;
            self.head = table.link(id).next;
            count += 1;
        }
        if self.head == I::NIL {
            self.tail = I::NIL;
        } else {
            table.link_mut(self.head).prev = I::NIL;
        }
        self.len -= length(count);
        count
    }

    /// The same at the tail.
    pub fn pop_back_all(&mut self, table: &mut (impl Links<I> + ?Sized), taken: &mut [I]) -> usize {
        let mut places = taken.iter_mut();
        self.pop_back_while(table, |table, id| {
            *places.next()? = id;
            Some(table.link(id))
        })
    }

    /// Takes entries at the tail, one after the other, as long as `take` does, which is handed the table and the next
    /// one and returns its links, or none where it leaves it. Returns how many.
    #[inline]
    pub fn pop_back_while<T: Links<I> + ?Sized>(
        &mut self,
        table: &mut T,
        mut take: impl FnMut(&mut T, I) -> Option<Link<I>>,
    ) -> usize {
        let (mut count, mut last) = (0, self.tail);
        while last != I::NIL
            && let Some(link) = take(table, last)
        {
            last = link.prev;
            count += 1;
        }
        self.cut(table, some(last), count);
        count
    }

    /// Takes off the `count` entries behind `last`: all of them if there is no such entry.
    #[inline]
    pub fn cut(&mut self, table: &mut (impl Links<I> + ?Sized), last: Option<I>, count: usize) {
        self.tail = last.unwrap_or(I::NIL);
        match last {
            Some(last) => table.link_mut(last).next = I::NIL,
            None => self.head = I::NIL,
        }
        self.len -= length(count);
    }

    /// Puts entries, which are on no list, at the head, one after the other, as long as `take` takes them: it is handed
    /// the table, the next one and its links, to be set unless it leaves it. The last one is the head then. Returns how
    /// many.
    #[inline]
    pub fn push_front_while<T: Links<I> + ?Sized>(
        &mut self,
        table: &mut T,
        ids: impl IntoIterator<Item = I>,
        mut take: impl FnMut(&mut T, I, Link<I>) -> bool,
    ) -> usize {
        let mut ids = ids.into_iter();
        let first = ids.next();
        let (mut count, mut head, mut next) = (0, self.head, first);
        while let Some(id) = next {
            next = ids.next();
            if !take(table, id, Link { prev: next.unwrap_or(I::NIL), next: head }) {
                break;
            }
            head = id;
            count += 1;
        }
        let Some(first) = first.filter(|_| count > 0) else { return 0 };
        table.link_mut(head).prev = I::NIL;
        if self.head == I::NIL {
            self.tail = first;
        } else {
            table.link_mut(self.head).prev = first;
        }
        self.head = head;
        self.len += length(count);
        count
    }

    /// The same at the tail.
    #[inline]
    pub fn push_back_while<T: Links<I> + ?Sized>(
        &mut self,
        table: &mut T,
        ids: impl IntoIterator<Item = I>,
        mut take: impl FnMut(&mut T, I, Link<I>) -> bool,
    ) -> usize {
        let mut ids = ids.into_iter();
        let first = ids.next();
        let (mut count, mut tail, mut next) = (0, self.tail, first);
        while let Some(id) = next {
            next = ids.next();
            if !take(table, id, Link { prev: tail, next: next.unwrap_or(I::NIL) }) {
                break;
            }
            tail = id;
            count += 1;
        }
        let Some(first) = first.filter(|_| count > 0) else { return 0 };
        table.link_mut(tail).next = I::NIL;
        if self.tail == I::NIL {
            self.head = first;
        } else {
            table.link_mut(self.tail).next = first;
        }
        self.tail = tail;
        self.len += length(count);
        count
    }

    /// The entries from head to tail.
    pub fn iter<'a, T: Links<I> + ?Sized>(&self, table: &'a T) -> impl Iterator<Item = I> + use<'a, I, T> {
        core::iter::successors(self.first(), move |&id| Self::next(table, id))
    }
}

#[inline]
fn length(entries: usize) -> u32 {
    u32::try_from(entries).expect("a list has a length of 32 bits")
}

#[inline]
fn some<I: ListId>(id: I) -> Option<I> {
    if id == I::NIL { None } else { Some(id) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std_alloc::collections::VecDeque;
    use std_alloc::vec;
    use std_alloc::vec::Vec;

    const ENTRIES: u32 = 12;

    impl Links<u32> for Vec<Link<u32>> {
        fn link(&self, id: u32) -> Link<u32> {
            self[id as usize]
        }

        fn link_mut(&mut self, id: u32) -> &mut Link<u32> {
            &mut self[id as usize]
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        PushFront(u32),
        PushBack(u32),
        /// An entry, and which one of the list it goes behind, modulo its length.
        InsertAfter(u32, usize),
        Remove(u32),
        /// Which one of the list comes to the head, modulo its length.
        TurnTo(usize),
        PopFront,
        PopBack,
        /// At the head or at the tail those that are free from this one on, as long as there are less than so many.
        PushWhile(bool, u32, usize),
        /// So many from the head, or from the tail.
        PopAll(bool, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..ENTRIES).prop_map(Step::PushFront),
            (0..ENTRIES).prop_map(Step::PushBack),
            (0..ENTRIES, any::<usize>()).prop_map(|(id, at)| Step::InsertAfter(id, at)),
            (0..ENTRIES).prop_map(Step::Remove),
            any::<usize>().prop_map(Step::TurnTo),
            Just(Step::PopFront),
            Just(Step::PopBack),
            (any::<bool>(), 0..ENTRIES, 0..5_usize)
                .prop_map(|(front, id, most)| Step::PushWhile(front, id, most)),
            (any::<bool>(), 0..5_usize).prop_map(|(front, count)| Step::PopAll(front, count)),
        ]
    }

    /// Two lists through one table, and what they should hold.
    struct Scene {
        table: Vec<Link<u32>>,
        lists: [List<u32>; 2],
        models: [VecDeque<u32>; 2],
    }

    impl Scene {
        fn apply(&mut self, which: usize, step: Step) {
            let free = |id: u32| self.models.iter().all(|model| !model.contains(&id));
            let (Step::PushFront(id) | Step::PushBack(id) | Step::InsertAfter(id, _)) = step else {
                return match step {
                    Step::PushWhile(front, first, most) => self.push_while(which, front, first, most),
                    _ => self.take(which, step),
                };
            };
            if !free(id) {
                return;
            }
            let (list, model) = (&mut self.lists[which], &mut self.models[which]);
            match step {
                Step::PushFront(_) => {
                    list.push_front(&mut self.table, id);
                    model.push_front(id);
                }
                Step::InsertAfter(_, at) if !model.is_empty() => {
                    let at = at % model.len();
                    list.insert_after(&mut self.table, model[at], id);
                    model.insert(at + 1, id);
                }
                _ => {
                    list.push_back(&mut self.table, id);
                    model.push_back(id);
                }
            }
        }

        fn push_while(&mut self, which: usize, front: bool, first: u32, most: usize) {
            let free = |id: &u32| self.models.iter().all(|model| !model.contains(id));
            let ids: Vec<u32> = (first..ENTRIES).filter(free).collect();
            let (list, model, mut count) = (&mut self.lists[which], &mut self.models[which], 0);
            let take = |table: &mut Vec<Link<u32>>, id, link| {
                count += 1;
                if count <= most {
                    *table.link_mut(id) = link;
                }
                count <= most
            };
            let put = match front {
                true => list.push_front_while(&mut self.table, ids.iter().copied(), take),
                false => list.push_back_while(&mut self.table, ids.iter().copied(), take),
            };
            assert_eq!(put, most.min(ids.len()));
            for &id in &ids[..put] {
                if front {
                    model.push_front(id);
                } else {
                    model.push_back(id);
                }
            }
        }

        fn take(&mut self, which: usize, step: Step) {
            let (list, model) = (&mut self.lists[which], &mut self.models[which]);
            match step {
                Step::PopAll(front, count) => {
                    let mut taken = vec![0; count];
                    let got = match front {
                        true => list.pop_front_all(&mut self.table, &mut taken),
                        false => list.pop_back_all(&mut self.table, &mut taken),
                    };
                    let next = || if front { model.pop_front() } else { model.pop_back() };
                    let expected: Vec<u32> =
                        std_alloc::vec::Vec::from_iter(core::iter::from_fn(next).take(count));
                    assert_eq!(taken[..got], expected);
                }
                Step::PopFront => assert_eq!(list.pop_front(&mut self.table), model.pop_front()),
                Step::PopBack => assert_eq!(list.pop_back(&mut self.table), model.pop_back()),
                Step::TurnTo(at) if !model.is_empty() => {
                    let at = at % model.len();
                    list.turn_to(&mut self.table, model[at]);
                    model.rotate_left(at);
                }
                Step::Remove(id) if model.contains(&id) => {
                    list.remove(&mut self.table, id);
                    model.retain(|&other| other != id);
                }
                _ => {}
            }
        }

        fn compare(&self) {
            for (list, model) in self.lists.iter().zip(&self.models) {
                let walked: Vec<u32> = list.iter(&self.table).collect();
                assert_eq!(walked, Vec::from(model.clone()));
                let mut back: Vec<u32> =
                    core::iter::successors(list.last(), |&id| List::prev(&self.table, id)).collect();
                back.reverse();
                assert_eq!(back, walked, "the way back is the way there");
                assert_eq!((list.len() as usize, list.is_empty()), (model.len(), model.is_empty()));
                assert_eq!((list.first(), list.last()), (model.front().copied(), model.back().copied()));
            }
        }
    }

    proptest! {
        #[test]
        fn two_lists_through_one_table_are_two_queues(
            steps in prop::collection::vec((0..2_usize, step()), 0..80),
        ) {
            let mut scene = Scene {
                table: vec![Link::UNUSED; ENTRIES as usize],
                lists: [List::EMPTY; 2],
                models: Default::default(),
            };
            for (which, step) in steps {
                scene.apply(which, step);
                scene.compare();
            }
        }
    }
}
