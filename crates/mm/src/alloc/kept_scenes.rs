//! What boot keeps, and what it leaves free between.

use proptest::prelude::*;
use units::{Order, Pages};

use crate::alloc::boot::BootError;
use crate::alloc::buddy::ORDERS;
use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::NoTrace;
use crate::base::gfp::MigrateType;
use crate::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use crate::base::sysctl::Sysctls;
use crate::version::presets::Version;

fn boot(zone: ZoneLayout) -> Result<PageAllocator<NoTrace>, BootError> {
    let nodes = std_alloc::vec![NodeLayout { zones: std_alloc::vec![zone] }];
    let layout = MemoryLayout { nodes, cpus: 1, huge_pages: HugeSupport::Absent };
    PageAllocator::boot(&layout, Version::parse("linux-6.1").unwrap(), Sysctls::default(), NoTrace)
}

fn free(mem: &PageAllocator<NoTrace>, migrate_type: MigrateType) -> [u32; ORDERS] {
    let area = &mem.zones()[0].free_area;
    core::array::from_fn(|order| {
        area.list(migrate_type, Order(u8::try_from(order).expect("at most 10"))).len()
    })
}

/// Two unmovable pageblocks, one reclaimable one.
#[test]
fn blocks_are_left_free_between_kept_pages_and_the_rest_in_front_of_movable_ones() {
    let zone = ZoneLayout {
        kept_by_kernel: Pages(1_500),
        kept_reclaimable: Pages(100),
        left_free: [7, 0, 3, 0, 0, 2, 0, 0, 1, 0],
        ..ZoneLayout::new(ZoneKind::Normal, Pages(10 * 1024))
    };
    let mem = boot(zone).unwrap();
    mem.check().unwrap();
    // 1,400 pages kept and 339 left free fill two blocks but for 309: 256 + 32 + 16 + 4 + 1.
    assert_eq!(free(&mem, MigrateType::Unmovable), [8, 0, 4, 0, 1, 3, 0, 0, 2, 0, 0]);
    // 924 of a block.
    assert_eq!(free(&mem, MigrateType::Reclaimable), [0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0]);
    assert_eq!(free(&mem, MigrateType::Movable), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
}

/// Of two movable pageblocks 1,200 pages are free, as a program lies in the rest: single pages come from there, and no
/// whole block is broken.
#[test]
fn parts_of_movable_blocks_are_left_free_beside_a_program() {
    let zone = ZoneLayout {
        kept_by_kernel: Pages(1_500),
        kept_reclaimable: Pages(100),
        left_movable: [0, 0, 0, 0, 1, 1, 0, 1, 0, 2],
        ..ZoneLayout::new(ZoneKind::Normal, Pages(10 * 1024))
    };
    let mem = boot(zone).unwrap();
    mem.check().unwrap();
    // 848 of them are the program's, and 552 are kept in front.
    assert_eq!(free(&mem, MigrateType::Movable), [0, 0, 0, 0, 1, 1, 0, 1, 0, 2, 6]);
    assert_eq!(mem.zones()[0].free_area.free_pages(), 10 * 1024 - 1_500);
}

/// The file of a guest's program: 2,500 pages, of which the last block is free again from there.
#[test]
fn memory_beside_what_was_asked_for_lies_in_front_of_movable_blocks() {
    let zone = ZoneLayout {
        kept_by_kernel: Pages(1_024),
        beside: Pages(2_500),
        ..ZoneLayout::new(ZoneKind::Normal, Pages(10 * 1024))
    };
    let mem = boot(zone).unwrap();
    mem.check().unwrap();
    assert_eq!(free(&mem, MigrateType::Movable), [0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 6]);
    let layout = ZoneLayout { beside: Pages(9 * 1024), ..zone };
    assert!(std_alloc::string::ToString::to_string(&boot(layout).unwrap_err()).ends_with("nothing is left"));
}

#[test]
fn more_free_blocks_than_lie_between_kept_pages_are_refused() {
    let zone = ZoneLayout {
        kept_by_kernel: Pages(40),
        left_free: [0, 0, 0, 0, 0, 0, 0, 0, 0, 3],
        ..ZoneLayout::new(ZoneKind::Normal, Pages(10 * 1024))
    };
    let error = boot(zone).unwrap_err();
    assert_eq!(
        std_alloc::string::ToString::to_string(&error),
        "boot leaves 3 blocks of 512 pages free in zone Normal: between what it keeps 2 lie"
    );
    let zone = ZoneLayout { left_free: [0, 0, 0, 0, 0, 0, 0, 0, 0, 20], ..zone };
    assert!(boot(zone).is_err());
}

proptest! {
    #[test]
    fn a_zone_keeps_what_it_is_told_to_the_page(
        kept in 0_u64..6_000,
        reclaimable in 0_u64..1_500,
        unaligned in 0_u64..1_024,
        left_free in proptest::array::uniform10(0_u16..6),
    ) {
        let zone = ZoneLayout {
            kept_by_kernel: Pages(kept),
            kept_reclaimable: Pages(reclaimable.min(kept)),
            left_free,
            ..ZoneLayout::new(ZoneKind::Normal, Pages((20 * 1024) - unaligned))
        };
        // Fails where hardly any zone boots.
        let mem = boot(zone);
        prop_assume!(mem.is_ok());
        let mem = mem.unwrap();
        prop_assert_eq!(mem.check(), Ok(()));
        prop_assert_eq!(mem.zones()[0].free_area.free_pages(), (20 * 1024) - unaligned - kept);
        let of_type = free(&mem, MigrateType::Unmovable);
        prop_assert!(left_free.iter().zip(of_type).all(|(&least, free)| free >= u32::from(least)));
    }
}
