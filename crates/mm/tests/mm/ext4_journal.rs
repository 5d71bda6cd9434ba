//! The journal of ext4 on the pages of its device: drawn scenes, and random events against a naive one.
//!
//! A drawing has a letter for each block: `.` not in memory, `c` clean, `D` dirty, `W` being written, `J` in a
//! transaction and clean, `j` in one and dirty from before.

use std::collections::{BTreeMap, BTreeSet};

use mm::MemcgId;
use mm::alloc::flags::AllocFlags;
use mm::base::frame::PageFlags;
use mm::base::gfp::Gfp;
use mm::base::vmstat::VmEvent;
use mm::fs::ext4::journal::BlockChange;
use mm::slab::object::{Object, ObjectAlloc};
use mm::version::geometry::Cache;
use pagetide_mm as mm;
use proptest::prelude::*;
use units::Order;

use crate::world::{CPU, World};

const ROOT: MemcgId = MemcgId::ROOT;
const DISK: u16 = 0;

/// A device with a journal of `log` blocks.
fn device(kernel: &str, log: u32) -> World {
    let mut world = World::boot(kernel, 16);
    world.mem.journal_create(world.file, log);
    world
}

impl World {
    /// A handle changes a block, which is brought into memory for that; nobody else looks at it.
    fn change(&mut self, block: u32) -> bool {
        let mut head = None;
        loop {
            match self.mem.journal_change(CPU, DISK, block, 0, &mut head, false) {
                BlockChange::Joined { opened } => {
                    assert_eq!(head, None, "it is the block's");
                    return opened;
                }
                BlockChange::WantsHead => head = Some(self.head()),
                BlockChange::Locked => panic!("nobody reads block {block}"),
                BlockChange::Missing => {
                    assert!(self.add(CPU, ROOT, block, Order(0)), "the scene fits into memory");
                    self.settle();
                }
            }
        }
    }

    fn head(&mut self) -> Object {
        loop {
            match self.mem.alloc_object(CPU, Cache::JournalHead, ROOT) {
                ObjectAlloc::Done(object) => return object,
                ObjectAlloc::NeedsCharge { .. } => panic!("nobody pays for it"),
                ObjectAlloc::NeedsSlab => {
                    let slab =
                        self.mem.core.alloc.alloc(CPU, Gfp::NOFS, Order(0), AllocFlags::WMARK_MIN).page;
                    self.mem.grow_slab(CPU, Cache::JournalHead, ROOT, slab.expect("memory is free"));
                }
            }
        }
    }

    /// Blocks that have a journal head.
    fn heads(&self) -> u64 {
        self.mem.core.slabs.objects(Cache::JournalHead)
    }

    /// The flusher writes up to `max` dirty blocks from `from` on; returns those that it sends to the disk.
    fn flush(&mut self, from: u32, max: u32) -> Vec<u32> {
        let sent = self.mem.start_writeback(self.file, from, max);
        sent.map_or_else(Vec::new, |(first, count)| (first..first + count).collect())
    }

    /// Blocks that were sent are on the disk.
    fn written(&mut self, first: u32, count: u32) {
        self.mem.end_writeback(self.file, first, count, &mut Vec::new());
    }

    fn blocks(&self, count: u32) -> String {
        let letter = |block| {
            let Some(pfn) = self.page(block) else { return '.' };
            let flags = self.mem.core.alloc.frames.flags(pfn);
            match (flags.has(PageFlags::JOURNAL), flags.has(PageFlags::DIRTY)) {
                (true, true) => 'j',
                (true, false) => 'J',
                (false, true) => 'D',
                _ if flags.has(PageFlags::WRITEBACK) => 'W',
                _ => 'c',
            }
        };
        (0..count).map(letter).collect()
    }
}

#[test]
fn a_block_is_the_journals_until_its_commit_and_the_flushers_after() {
    let mut world = device("linux-6.1", 64);
    assert!(world.change(0), "the transaction begins");
    assert!(!world.change(1) && !world.change(0) && !world.change(2));
    assert_eq!(world.blocks(4), "JJJ.");
    assert_eq!(world.flush(0, 9), [], "nobody else may write it");
    // Three blocks and their descriptor; then the commit block.
    assert_eq!((world.mem.fs.journals[0].newest(), world.mem.journal_close(CPU, DISK)), (Some(0), Some(4)));
    assert!(world.change(1), "a change during the commit is one of the next transaction, which begins");
    assert!(!world.change(1) && !world.change(3));
    assert_eq!(world.mem.journal_committed(DISK), 2);
    assert_eq!((world.blocks(4), world.mem.fs.journals[0].is_committed(0)), ("DJDJ".into(), true));
    // A dirty block that changes again stays dirty, and there is nothing to write of it.
    world.change(2);
    assert_eq!(world.blocks(4), "DJjJ");
    assert_eq!((world.flush(0, 9), world.blocks(4)), (vec![0], "WJjJ".into()));
    world.written(0, 1);
    assert_eq!((world.flush(0, 9), world.blocks(4)), (vec![], "cJJJ".into()));
    assert_eq!(world.mem.journal_close(CPU, DISK), Some(4));
    assert_eq!((world.mem.journal_committed(DISK), world.mem.journal_close(CPU, DISK)), (3, None));
    assert_eq!(world.blocks(4), "cDDD");
    world.mem.check().unwrap();
}

#[test]
fn reclaim_activates_a_page_that_a_transaction_holds_and_frees_it_when_it_is_written() {
    for kernel in ["linux-4.19", "linux-5.10", "linux-6.1", "linux-6.12", "linux-7.2"] {
        let mut world = device(kernel, 64);
        world.change(0);
        world.change(1);
        world.read(ROOT, [2]);
        world.settle();
        let mut sc = world.direct();
        sc.priority = 0;
        assert_eq!(world.pass(&mut sc).reclaimed, 1, "{kernel}: the page of nobody");
        let activated = (world.sizes(ROOT), world.event(VmEvent::PgActivate));
        assert_eq!((world.blocks(3), activated), ("JJ.".into(), ((2, 0), 2)), "{kernel}");
        assert_eq!(world.mem.mapping_invalidate(CPU, world.file, true), 0, "{kernel}: nor does drop_caches");
        let _ = world.mem.journal_close(CPU, DISK);
        assert_eq!(world.mem.journal_committed(DISK), 2);
        assert_eq!(world.flush(0, 9), [0, 1]);
        world.written(0, 2);
        assert_eq!(world.mem.mapping_invalidate(CPU, world.file, true), 2, "{kernel}");
        world.mem.check().unwrap();
    }
}

#[test]
fn a_log_without_room_names_the_blocks_that_have_to_be_written_first() {
    let mut world = device("linux-6.1", 16);
    let commit = |world: &mut World, blocks: std::ops::Range<u32>| {
        blocks.for_each(|block| {
            world.change(block);
        });
        let room = world.mem.fs.journals[0].has_room();
        let _ = world.mem.journal_close(CPU, DISK);
        world.mem.journal_committed(DISK);
        room
    };
    // Four blocks take six of the log. A fifth would close the transaction: a quarter of the log.
    assert!(commit(&mut world, 0..4));
    assert!(commit(&mut world, 2..6));
    assert_eq!(world.mem.fs.journals[0].used(), 12);
    (6..10).for_each(|block| {
        world.change(block);
    });
    assert!(world.mem.fs.journals[0].is_full() && !world.mem.fs.journals[0].has_room());
    let mut written = Vec::new();
    while let Some((block, on_its_way)) = world.mem.journal_checkpoint(CPU, DISK) {
        assert!(!on_its_way);
        written.extend(world.flush(block, 1));
        assert_eq!(world.mem.journal_checkpoint(CPU, DISK), Some((block, true)), "it has to arrive");
        world.written(block, 1);
    }
    assert_eq!(written, [1, 0], "blocks of the oldest transaction that no later one has");
    assert_eq!((world.mem.fs.journals[0].used(), world.mem.fs.journals[0].has_room()), (6, true));
    assert_eq!((&*world.blocks(10), world.heads()), ("ccDDDDJJJJ", 8));
    world.mem.check().unwrap();
}

/// A journal that had room never looked at what was written in the meantime.
#[test]
fn a_commit_lets_go_what_is_written_up_to_the_first_block_that_is_not() {
    let mut world = device("linux-6.1", 64);
    for blocks in [0..2, 2..4, 4..6] {
        blocks.for_each(|block| {
            world.change(block);
        });
        let _ = world.mem.journal_close(CPU, DISK);
        world.mem.journal_committed(DISK);
    }
    assert_eq!((world.heads(), world.mem.fs.journals[0].used()), (6, 12));
    // Of the second transaction only the block that is looked at first.
    assert_eq!((world.flush(0, 2), world.flush(3, 1)), (vec![0, 1], vec![3]));
    world.written(0, 2);
    world.written(3, 1);
    world.change(6);
    let _ = world.mem.journal_close(CPU, DISK);
    assert_eq!((&*world.blocks(7), world.heads()), ("ccDcDDJ", 4), "of 2, 4, 5, and of 6 in the new one");
    assert_eq!(world.mem.fs.journals[0].used(), 8);
    world.mem.check().unwrap();
}

#[derive(Debug, Clone)]
enum Event {
    Change(u32),
    Close,
    Committed,
    Flush { from: u32, max: u32 },
    Written,
    Shrink,
    Checkpoint,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..40_u32).prop_map(Event::Change),
        1 => Just(Event::Close),
        1 => Just(Event::Committed),
        2 => (0..40_u32, 1..9_u32).prop_map(|(from, max)| Event::Flush { from, max }),
        2 => Just(Event::Written),
        1 => Just(Event::Shrink),
        1 => Just(Event::Checkpoint),
    ]
}

/// What blocks are, as sets.
#[derive(Debug, Default)]
struct Naive {
    running: BTreeSet<u32>,
    committing: Option<BTreeSet<u32>>,
    dirty: BTreeSet<u32>,
    writing: BTreeSet<u32>,
    /// Blocks of transactions in the log, by their last one.
    logged: BTreeMap<u32, u64>,
    /// Transactions in the log, some without blocks of their own any more.
    in_log: BTreeSet<u64>,
    transactions: u64,
}

impl Naive {
    fn held(&self) -> BTreeSet<u32> {
        self.running.iter().chain(self.committing.iter().flatten()).copied().collect()
    }

    /// Lets the oldest transaction leave the log, up to a block that has to be written. True: it is gone.
    fn clean_oldest(&mut self) -> bool {
        let Some(&transaction) = self.in_log.first() else { return false };
        let held = self.held();
        let of_it = |(_, logged): &(&u32, &u64)| **logged == transaction;
        let blocks: Vec<u32> = self.logged.iter().filter(of_it).map(|(&block, _)| block).rev().collect();
        for block in blocks {
            if !held.contains(&block) && (self.dirty.contains(&block) || self.writing.contains(&block)) {
                return false;
            }
            self.logged.remove(&block);
        }
        self.in_log.remove(&transaction)
    }

    fn heads(&self) -> u64 {
        let listed: BTreeSet<u32> = self.logged.keys().copied().chain(self.held()).collect();
        listed.len() as u64
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn nobody_but_the_journal_writes_or_drops_what_a_transaction_holds(
        events in prop::collection::vec(event(), 1..120),
    ) {
        let (mut world, mut naive) = (device("linux-6.1", 64), Naive::default());
        for event in events {
            match event {
                Event::Change(block) => {
                    let opens = naive.running.is_empty();
                    let opened = world.change(block);
                    naive.running.insert(block);
                    prop_assert_eq!(opened, opens);
                }
                Event::Close if naive.committing.is_none() => {
                    let closed = world.mem.journal_close(CPU, DISK);
                    prop_assert_eq!(closed.is_some(), !naive.running.is_empty());
                    while naive.clean_oldest() {}
                    naive.committing = closed.map(|_| std::mem::take(&mut naive.running));
                }
                Event::Committed => {
                    let Some(committed) = naive.committing.take() else { continue };
                    world.mem.journal_committed(DISK);
                    naive.dirty.extend(committed.difference(&naive.running));
                    naive.logged.extend(committed.iter().map(|&block| (block, naive.transactions)));
                    naive.in_log.insert(naive.transactions);
                    naive.transactions += 1;
                }
                Event::Flush { from, max } => {
                    let sent = world.flush(from, max);
                    for block in &sent {
                        prop_assert!(!naive.held().contains(block) && naive.dirty.remove(block), "{block}");
                        naive.writing.insert(*block);
                    }
                }
                Event::Written => {
                    for block in std::mem::take(&mut naive.writing) {
                        world.written(block, 1);
                    }
                }
                Event::Shrink => {
                    let mut sc = world.direct();
                    sc.priority = 0;
                    world.pass(&mut sc);
                    let held = naive.held();
                    prop_assert!(held.iter().all(|&block| world.page(block).is_some()));
                    naive.logged.retain(|&block, _| world.page(block).is_some());
                }
                Event::Checkpoint => {
                    naive.clean_oldest();
                    if let Some((block, on_its_way)) = world.mem.journal_checkpoint(CPU, DISK) {
                        let (dirty, writing) = (naive.dirty.contains(&block), naive.writing.contains(&block));
                        prop_assert!(if on_its_way { writing } else { dirty }, "{block}");
                    }
                }
                Event::Close => {}
            }
            world.mem.check().unwrap();
            prop_assert_eq!(world.heads(), naive.heads());
            for (block, letter) in (0..40).zip(world.blocks(40).chars()) {
                let held = naive.held().contains(&block);
                prop_assert_eq!(held, letter == 'J' || letter == 'j', "{} is {}", block, letter);
                prop_assert!(letter != 'D' || naive.dirty.contains(&block), "{} is dirty", block);
            }
        }
    }
}
