//! How a cache cuts pages into objects, and how much of what is free it keeps at hand: arithmetic over the size
//! of an object, the number of CPUs and the version (`calculate_order`, `set_min_partial`, `set_cpu_partial`;
//! MECHANISMS-6X 7.1, MECHANISMS-510-72 7.1).

use units::{Order, PAGE_SIZE};

use crate::version::geometry::{CpuPartialUnit, Geometry};
use crate::version::presets::Tuning;

/// The largest order that is worth asking for (`slub_max_order`).
const MAX_ORDER: u8 = 3;

/// How much of partial slabs a CPU keeps beside its current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuPartial {
    /// None.
    None,
    /// As many as come before they have had more than so many free objects when they came.
    FreeObjects(u32),
    /// So many.
    Slabs(u32),
}

/// How a cache lays its objects out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of an object.
    pub object_size: u32,
    /// The order of a slab, if there is such a block.
    pub order: Order,
    /// The least order that an object fits into.
    pub least_order: Order,
    /// Slabs on a node's list before an empty one is freed.
    pub min_partial: u32,
    /// What a CPU keeps.
    pub cpu_partial: CpuPartial,
    /// Objects in a sheaf.
    pub sheaf: u32,
}

impl Layout {
    /// The layout of a cache on a machine of so many CPUs.
    pub fn new(geometry: Geometry, cpus: u16, tuning: &Tuning) -> Self {
        let object_size = u32::from(geometry.object_size);
        let order = geometry.order.unwrap_or_else(|| preferred_order(object_size, cpus, tuning.slab_waste));
        let cpu_partial = cpu_partial(object_size, objects(order, object_size), tuning.cpu_partial);
        Self {
            object_size,
            order: Order(order),
            least_order: Order(order_of(object_size)),
            min_partial: (object_size.ilog2() / 2).clamp(5, 10),
            cpu_partial,
            sheaf: sheaf_capacity(object_size),
        }
    }

    /// Objects of a slab of the preferred order.
    pub fn objects(&self) -> u32 {
        objects(self.order.0, self.object_size)
    }

    /// Bytes of such a slab that no object takes.
    pub(super) fn rest(&self) -> u32 {
        slab_bytes(self.order.0) - self.objects() * self.object_size
    }
}

const fn slab_bytes(order: u8) -> u32 {
    (PAGE_SIZE as u32) << order
}

const fn objects(order: u8, size: u32) -> u32 {
    slab_bytes(order) / size
}

/// The least order whose block has so many bytes (`get_order`).
fn order_of(bytes: u32) -> u8 {
    let pages = u64::from(bytes).div_ceil(PAGE_SIZE).next_power_of_two();
    u8::try_from(pages.ilog2()).expect("an order is small")
}

/// The number of the highest bit that is set, from 1 (`fls`).
const fn fls(value: u16) -> u32 {
    u16::BITS - value.leading_zeros()
}

/// The smallest order that holds at least four objects for each bit of the number of CPUs and four more, and
/// wastes no more than a sixteenth; failing that an eighth and so on, and failing that with fewer objects.
fn preferred_order(size: u32, cpus: u16, waste: u32) -> u8 {
    let wanted = (4 * (fls(cpus) + 1)).min(objects(MAX_ORDER, size));
    for least in (2..=wanted).rev() {
        let fractions = core::iter::successors(Some(16), |fraction| Some(fraction / 2));
        for fraction in fractions.take_while(|&fraction| fraction >= waste) {
            let fits = |order: &u8| slab_bytes(*order) % size <= slab_bytes(*order) / fraction;
            if let Some(order) = (order_of(least * size)..=MAX_ORDER).find(fits) {
                return order;
            }
        }
    }
    order_of(size)
}

fn cpu_partial(size: u32, per_slab: u32, unit: CpuPartialUnit) -> CpuPartial {
    let by_size = |table: [u32; 4]| match size {
        0..=255 => table[0],
        256..=1023 => table[1],
        1024..=4095 => table[2],
        _ => table[3],
    };
    match unit {
        CpuPartialUnit::None => CpuPartial::None,
        CpuPartialUnit::FreeObjects => CpuPartial::FreeObjects(by_size([30, 13, 6, 2])),
        // Half of a slab's places are taken to be free.
        CpuPartialUnit::Slabs => CpuPartial::Slabs((2 * by_size([120, 52, 24, 6])).div_ceil(per_slab)),
    }
}

const fn sheaf_capacity(size: u32) -> u32 {
    match size {
        0..=255 => 60,
        256..=1023 => 28,
        1024..=4095 => 12,
        _ => 4,
    }
}
