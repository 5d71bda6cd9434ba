//! Worlds that swap, drawn by chance: tasks write, read, drop and advise memory of their own, reclaim runs, disks are
//! done with writes and reads in any order; after each step all invariants hold.

use pagetide_mm as mm;

use mm::MemcgId;
use mm::base::gfp::Gfp;
use mm::base::ids::AnonId;
use mm::base::sysctl::Sysctl;
use mm::base::vmstat::VmEvent;
use mm::cgroup::tree::{Charge, Limit};
use mm::pages::anon_swap::SwapFault;
use mm::reclaim::run::ScanControl;
use mm::swap::areas::{AreaKind, AreaSpec};
use mm::swapping::{SwapLook, SwapWrite};
use mm::version::rules::{HugePages, Rule};
use units::{Order, Pfn, Seed, Stream};

use crate::world::{CPU, NODE, World};

/// A world with some mappings of a cgroup, and what its disk has to do.
pub struct Swapping {
    pub world: World,
    pub memcg: MemcgId,
    maps: Vec<(AnonId, u32)>,
    pub writes: Vec<SwapWrite>,
    pub reads: Vec<Pfn>,
}

impl Swapping {
    pub fn new(kernel: &str, areas: &[AreaSpec], answers: &[Rule]) -> Self {
        let mut world = World::boot_with(kernel, answers, 16);
        areas.iter().for_each(|&area| world.mem.add_swap_area(area));
        let memcg = world.group("P");
        Self { world, memcg, maps: Vec::new(), writes: Vec::new(), reads: Vec::new() }
    }

    pub fn map(&mut self, pages: u32) -> AnonId {
        let anon = self.world.mem.anon_create();
        self.maps.push((anon, pages));
        anon
    }

    fn charged_page(&mut self, memcg: MemcgId, order: Order) -> Option<Pfn> {
        let mem = &mut self.world.mem;
        let flags = mem.core.alloc.fast_flags(CPU, Gfp::HIGHUSER_MOVABLE);
        let pfn = mem.core.alloc.alloc(CPU, Gfp::HIGHUSER_MOVABLE, order, flags).page?;
        if mem.core.cgroups.try_charge(CPU, memcg, order.pages(), 1) == Charge::Done {
            return Some(pfn);
        }
        mem.core.alloc.free(CPU, pfn, order);
        None
    }

    /// Accesses a page as far as that goes without waiting; false where it is to be tried again.
    pub fn access(&mut self, anon: AnonId, pages: u32, index: u32, write: bool) -> bool {
        if self.world.mem.access_anon(anon, index, write).is_some() {
            return true;
        }
        let Some(slot) = self.world.mem.anon.swapped_at(anon, index) else {
            let Some(pfn) = self.charged_page(self.memcg, Order(0)) else { return false };
            self.world.mem.anon_map(CPU, anon, index, pfn, self.memcg);
            return true;
        };
        let fault = SwapFault { anon, index, slot, write, locked: false };
        match self.world.mem.look_swapped(fault) {
            SwapLook::Cached(pfn) => {
                self.world.mem.map_cached(CPU, fault, pfn);
                true
            }
            SwapLook::Bypass => {
                let owner = self.world.mem.core.swap.memcg(slot).expect("it is in use");
                let Some(pfn) = self.charged_page(owner, Order(0)) else { return false };
                self.world.mem.map_bypassing(CPU, fault, pfn);
                true
            }
            SwapLook::Read => {
                for slot in self.world.mem.slots_to_read(fault, pages) {
                    let owner = self.world.mem.core.swap.memcg(slot).expect("it is in use");
                    let Some(pfn) = self.charged_page(owner, Order(0)) else { continue };
                    assert!(self.world.mem.begin_swap_read(CPU, slot, pfn, slot != fault.slot));
                    if self.world.mem.core.swap.stored_bytes(slot).is_some() {
                        self.world.mem.end_stored_read(CPU, slot);
                        self.world.mem.core.unlock_page(pfn);
                    } else {
                        self.reads.push(pfn);
                    }
                }
                false
            }
            SwapLook::Locked(..) | SwapLook::Written(_) => false,
            SwapLook::Gone => panic!("it was just seen"),
        }
    }

    pub fn reclaim(&mut self, priority: u8, pages: u64) {
        let mut sc = ScanControl::limit(self.memcg, pages);
        sc.priority = priority;
        self.world.pass(&mut sc);
        self.world.mem.snapshot_refaults(self.memcg, NODE);
        self.writes.extend(self.world.mem.take_swap_writes());
    }

    /// As the worker of zswap does.
    pub fn write_back(&mut self, count: usize) {
        for _ in 0..count {
            let Some(slot) = self.world.mem.next_zswap_write() else { break };
            let Some(pfn) = self.charged_page(MemcgId::ROOT, Order(0)) else { break };
            if !self.world.mem.zswap_write_back(CPU, slot, pfn) {
                self.world.mem.core.alloc.free(CPU, pfn, Order(0));
            }
        }
        self.writes.extend(self.world.mem.take_swap_writes());
    }

    pub fn finish_writes(&mut self, count: usize) {
        for write in self.writes.drain(..count.min(self.writes.len())) {
            self.world.mem.end_writeback(write.mapping, write.index, write.pages, &mut Vec::new());
        }
    }

    pub fn finish_reads(&mut self, count: usize) {
        for pfn in self.reads.drain(..count.min(self.reads.len())) {
            self.world.mem.core.unlock_page(pfn);
        }
    }

    fn step(&mut self, dice: &mut Stream) {
        let which = |dice: &mut Stream, maps: &[(AnonId, u32)]| maps[dice.below(maps.len() as u64) as usize];
        if self.maps.is_empty() {
            let pages = if dice.below(3) == 0 { 1024 } else { 64 + dice.below(200) as u32 };
            self.map(pages);
            return;
        }
        let (anon, pages) = which(dice, &self.maps);
        let first = dice.below(u64::from(pages)) as u32;
        let count = dice.below(60) as u32 + 1;
        match dice.below(30) {
            0..12 => {
                let write = dice.below(2) == 0;
                for index in first..(first + count).min(pages) {
                    self.access(anon, pages, index, write);
                }
            }
            12..18 => self.reclaim(dice.below(6) as u8, 32),
            18 => {
                self.world.mem.anon_unmap(CPU, anon, first, count);
            }
            19 => self.world.mem.anon_give_up(CPU, anon, first, count),
            20 => self.world.mem.anon_cool(CPU, anon, first, count),
            21 => {
                let report = self.world.mem.anon_page_out(CPU, anon, first, count);
                assert!(report.reclaimed <= count.max(1024));
                self.writes.extend(self.world.mem.take_swap_writes());
            }
            22 | 23 => {
                self.finish_writes(dice.below(40) as usize);
                self.write_back(20);
            }
            24 => self.finish_reads(dice.below(40) as usize),
            25 | 26 if pages == 1024 => self.map_huge(anon, (first / 512) * 512),
            27 => {
                self.maps.retain(|&(other, _)| other != anon);
                self.world.mem.anon_remove(CPU, anon);
            }
            28 => {
                self.world.mem.anon_lock(CPU, anon, first, count);
                self.world.mem.lru_drain_all();
                self.world.mem.anon_unlock(anon, first, count);
            }
            _ if self.maps.len() < 4 => {
                self.map(64 + dice.below(200) as u32);
            }
            _ => self.world.settle(),
        }
    }

    pub fn map_huge(&mut self, anon: AnonId, first: u32) {
        if self.world.mem.anon.is_range_empty(anon, first, 512)
            && let Some(pfn) = self.charged_page(self.memcg, Order(9))
        {
            self.world.mem.anon_map(CPU, anon, first, pfn, self.memcg);
        }
    }
}

pub const ZRAM: AreaSpec = AreaSpec { kind: AreaKind::Zram, pages: 1500, priority: None };
pub const DISK: AreaSpec =
    AreaSpec { kind: AreaKind::Disk { device: 1, rotating: false }, pages: 1800, priority: None };
const TURNING: AreaSpec =
    AreaSpec { kind: AreaKind::Disk { device: 1, rotating: true }, pages: 700, priority: Some(5) };

#[test]
fn worlds_that_swap_stay_sound() {
    let mut seen = [0; 7];
    for kernel in
        ["linux-2.6.32", "linux-4.19", "linux-5.4", "linux-5.10", "linux-6.1", "linux-6.12", "linux-7.2"]
    {
        for (seed, areas) in [
            (1, vec![ZRAM]),
            (2, vec![DISK]),
            (3, vec![TURNING, ZRAM]),
            (4, vec![ZRAM, DISK]),
            (5, vec![DISK]),
            (6, vec![AreaSpec { priority: Some(3), ..ZRAM }, AreaSpec { priority: Some(3), ..DISK }]),
        ] {
            let mut swapping = Swapping::new(kernel, &areas, &[Rule::HugePages(HugePages::On)]);
            swapping.world.mem.core.cgroups.set_limit(swapping.memcg, Limit::Max, 900);
            if seed == 5 {
                swapping.world.mem.set_sysctl(Sysctl::ZswapEnabled, 1);
                swapping.world.mem.set_sysctl(Sysctl::ZswapMaxPoolPercent, 1);
                swapping.world.mem.set_sysctl(Sysctl::ZswapShrinkerEnabled, 1);
                swapping.world.mem.core.cgroups.set_zswap_max(swapping.memcg, 100_000);
            }
            if seed == 4 {
                swapping.world.mem.core.cgroups.set_swap_max(swapping.memcg, 300);
            }
            let mut dice = Seed(seed).stream(kernel);
            for step in 0..250 {
                swapping.step(&mut dice);
                if let Err(violation) = swapping.world.mem.check() {
                    panic!("{kernel}, seed {seed}, step {step}: {violation:?}");
                }
            }
            for (seen, event) in seen.iter_mut().zip([
                VmEvent::PswpOut,
                VmEvent::PswpIn,
                VmEvent::PgLazyFreed,
                VmEvent::ThpSwpOut,
                VmEvent::ZswpOut,
                VmEvent::ZswpIn,
                VmEvent::ZswpWb,
            ]) {
                *seen += swapping.world.event(event);
            }
            let maps = std::mem::take(&mut swapping.maps);
            for (anon, _) in maps {
                swapping.world.mem.anon_remove(CPU, anon);
            }
            swapping.finish_writes(usize::MAX);
            swapping.finish_reads(usize::MAX);
            swapping.world.mem.check().expect("all is unmapped");
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}: the worlds do something");
}
