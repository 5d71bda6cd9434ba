//! FIFO and LRU against a vector of pages, under random reads, passes and truncations.

use pagetide_cache_ext::fifo::Fifo;
use pagetide_cache_ext::lru::Lru;
use proptest::prelude::*;

use crate::world::CPU;
use crate::{boot, pass, resident};

/// Pages of the file.
const PAGES: u32 = 400;

#[derive(Debug, Clone)]
enum Step {
    /// So many pages from one on are read.
    Read(u32, u32),
    Reclaim,
    Truncate,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..PAGES, 1_u32..60).prop_map(|(from, count)| Step::Read(from, count)),
        3 => Just(Step::Reclaim),
        1 => Just(Step::Truncate),
    ];
    prop::collection::vec(step, 1..60)
}

/// Goes through the steps; the pages that are left at the end, and how many were reclaimed.
fn go(steps: &[Step], moves_on_access: bool) -> (Vec<u32>, u64) {
    let mut world =
        if moves_on_access { boot(Box::new(Lru::default())) } else { boot(Box::new(Fifo::default())) };
    let (group, mut order, mut all) = (world.group("A"), Vec::new(), 0);
    for step in steps {
        match *step {
            Step::Read(from, count) => {
                for page in from..(from + count).min(PAGES) {
                    if moves_on_access {
                        order.retain(|&other| other != page);
                    }
                    if !order.contains(&page) {
                        order.push(page);
                    }
                    world.read(group, [page]);
                }
            }
            Step::Reclaim => {
                // Where all pages are active, a pass makes some inactive, and the next one may ask.
                let freed = (0..4).map(|_| pass(&mut world, group)).find(|&freed| freed > 0).unwrap_or(0);
                assert!(freed > 0 || order.is_empty(), "nothing is in use");
                order.drain(..freed as usize);
                all += freed;
            }
            Step::Truncate => {
                world.mem.mapping_invalidate(CPU, world.file, true);
                order.clear();
            }
        }
        let mut left = order.clone();
        left.sort_unstable();
        assert_eq!(resident(&world, 0..PAGES), left, "{step:?}");
        world.mem.check().expect("memory is sound");
    }
    (order, all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn fifo_evicts_what_came_first(steps in steps()) {
        go(&steps, false);
    }

    #[test]
    fn lru_evicts_what_was_accessed_first(steps in steps()) {
        go(&steps, true);
    }
}

#[test]
fn the_two_differ() {
    let steps = [Step::Read(0, 100), Step::Read(0, 10), Step::Reclaim];
    let (fifo, lru) = (go(&steps, false), go(&steps, true));
    assert_eq!((fifo.1, lru.1), (32, 32), "a chunk for the inactive pages; whichever pages go");
    assert!(!fifo.0.contains(&0) && lru.0.contains(&0));
}
