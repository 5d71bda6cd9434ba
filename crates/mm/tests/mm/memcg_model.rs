//! Charges in a tree of cgroups against sums of what each group holds (MECHANISMS 8.2).

use pagetide_mm::MemcgId;
use pagetide_mm::cgroup::tree::{Charge, Limit, Memcgs};
use pagetide_mm::version::presets::Version;
use proptest::prelude::*;
use units::CpuId;

#[derive(Debug, Clone)]
enum Event {
    Charge { cpu: u16, group: usize, pages: u32 },
    Uncharge { group: usize, pages: u64 },
    Limit { group: usize, pages: u64 },
    Drain { group: usize },
}

fn event() -> impl Strategy<Value = Event> {
    let group = 0_usize..4;
    prop_oneof![
        8 => (0_u16..2, group.clone(), prop_oneof![Just(1_u32), 1_u32..64, Just(512)])
            .prop_map(|(cpu, group, pages)| Event::Charge { cpu, group, pages }),
        4 => (group.clone(), 1_u64..200).prop_map(|(group, pages)| Event::Uncharge { group, pages }),
        1 => (group.clone(), 0_u64..2000).prop_map(|(group, pages)| Event::Limit { group, pages }),
        1 => group.prop_map(|group| Event::Drain { group }),
    ]
}

proptest! {
    #[test]
    fn usage_is_what_the_subtree_holds_and_its_stocks(
        kernel in prop::sample::select(vec!["linux-5.4", "linux-6.1"]),
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut tree = Memcgs::new(&Version::parse(kernel).expect("a preset"), 1, 2);
        let parent = tree.create(MemcgId::ROOT, "P");
        let (a, b) = (tree.create(parent, "A"), tree.create(parent, "B"));
        let groups = [parent, a, b, tree.create(b, "x")];
        let mut held = [0_u64; 4];
        for event in events {
            match event {
                Event::Charge { cpu, group, pages } => {
                    let batch = tree.charge_batch();
                    match tree.try_charge(CpuId(cpu), groups[group], pages, batch) {
                        Charge::Done => held[group] += u64::from(pages),
                        Charge::Over(over) => {
                            prop_assert!(tree.is_descendant(groups[group], over));
                            let counter = tree[over].memory;
                            prop_assert!(counter.usage + u64::from(pages) > counter.max);
                        }
                    }
                }
                Event::Uncharge { group, pages } => {
                    let pages = pages.min(held[group]);
                    tree.uncharge(groups[group], pages);
                    held[group] -= pages;
                }
                // Never below what is used: from here on no charge may pass the limit.
                Event::Limit { group, pages } => {
                    let usage = tree[groups[group]].memory.usage;
                    tree.set_limit(groups[group], Limit::Max, usage + pages);
                }
                Event::Drain { group } => {
                    tree.drain_all_stocks(groups[group]);
                    prop_assert_eq!(tree.stocked_pages(groups[group]), 0);
                }
            }
            for group in groups {
                let below: u64 =
                    (0..4).filter(|&i| tree.is_descendant(groups[i], group)).map(|i| held[i]).sum();
                let counter = tree[group].memory;
                prop_assert_eq!(counter.usage, below + tree.stocked_pages(group));
                prop_assert!(counter.usage <= counter.max);
            }
        }
    }
}
