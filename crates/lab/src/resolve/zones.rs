//! The zones of a machine as a kernel sees them after boot: what a run with these options starts
//! with.
//!
//! The memory is booted and then looked at, so no formula stands here. Left out: what a run changes
//! later, such as boosts. Neighbours: [`crate::resolve::request`] for the checks that runs go through, too.

use mm::alloc::watermark::Mark;
use mm::alloc::zone::Zone;
use mm::base::layout::{ZoneId, ZoneKind};
use mm::base::sysctl::Sysctl;
use report::{Cell, List};
use sim::SimMemory;
use sim::run::boot_memory;
use units::{CpuId, Pages};
use workload::scenario::parse_mem_of;

use crate::error::LabError;
use crate::name::names::Names;
use crate::resolve::defaults::first_machine;
use crate::resolve::setting::{Setting, machine_spec};
use crate::resolve::texts::{newest_kernel, sysctl_pairs};

/// A machine and a kernel as a person names them; what is left out is the first machine's, or the
/// newest kernel's, own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZonesRequest {
    /// The kernel: `linux-5.4+root-aging`.
    pub kernel: Option<String>,
    /// The machine, by name.
    pub machine: Option<String>,
    /// The machine's memory: `1016336kB`.
    pub mem: Option<String>,
    /// Sysctls, each `name=value`.
    pub sysctls: Vec<String>,
}

const COLUMNS: [&str; 13] = [
    "node",
    "zone",
    "managed",
    "free",
    "min",
    "low",
    "high",
    "pcp_batch",
    "pcp_high",
    "pcp_high_max",
    "reserve_dma32",
    "reserve_normal",
    "reserve_movable",
];

/// The zones, in pages: what the allocator manages, what is free after boot, watermarks, per-CPU
/// lists, and what a zone keeps from requests that could also use a higher one.
///
/// # Errors
/// What a run with these options reports.
pub fn zones(request: &ZonesRequest) -> Result<List, LabError> {
    let names = Names::default();
    let kernel = names.vocabulary().kernel(request.kernel.as_deref().unwrap_or(newest_kernel()))?;
    let machine = match &request.machine {
        Some(name) => names.vocabulary().machine(name)?,
        None => first_machine().name.to_owned(),
    };
    let mem = match &request.mem {
        Some(text) => parse_mem_of("--mem", text)?,
        None => machine_spec(&machine).default_mem,
    };
    let sysctls = sysctl_pairs(&request.sysctls, &names)?;
    let Setting { kernel, sysctls, layout, notes, .. } = Setting::new(&kernel, &machine, mem, &sysctls)?;
    let (name, beside) = (kernel.name.clone(), layout.beside());
    let memory = boot_memory(&layout, kernel, sysctls).map_err(|error| LabError::Machine {
        message: error.to_string(),
        hint: Some("give the machine more memory with `--mem`".to_owned()),
    })?;

    let mut list = empty();
    list.fact("kernel", name);
    list.fact("machine", machine);
    list.fact("mem", mem);
    for sysctl in [Sysctl::MinFreeKbytes, Sysctl::WatermarkScaleFactor, Sysctl::ThpEnabled] {
        if memory.core.rules().has_sysctl(sysctl) {
            list.fact(sysctl.name(), sysctl.value_text(memory.core.alloc.sysctls().get(sysctl)));
        }
    }
    for note in notes {
        list.fact("note", note);
    }
    if beside > Pages::ZERO {
        list.fact(
            "note",
            format!("{} of the managed pages are beside `mem`: a guest's own program", beside.0),
        );
    }
    list.fact("unit", "pages");
    for (index, zone) in (0..).zip(memory.core.alloc.zones()) {
        list.push(zone_row(&memory, ZoneId(index), zone));
    }
    Ok(list)
}

/// A list of zones without any.
pub(crate) fn empty() -> List {
    List::new("zones", &COLUMNS).in_tables(2, &["pcp_batch"])
}

/// A zone as it is now.
pub(crate) fn zone_row(memory: &SimMemory, id: ZoneId, zone: &Zone) -> [Cell; COLUMNS.len()] {
    let mark = |mark| Cell::Count(zone.watermarks.mark(mark));
    let reserve = |class| Cell::Count(zone.watermarks.reserve(class));
    let sizes = memory.core.alloc.pcp(CpuId(0), id).sizes();
    [
        u64::from(zone.node.0).into(),
        zone.kind.name().into(),
        zone.managed.0.into(),
        zone.free_pages().0.into(),
        mark(Mark::Min),
        mark(Mark::Low),
        mark(Mark::High),
        u64::from(sizes.batch).into(),
        u64::from(sizes.high_min).into(),
        u64::from(sizes.high_max).into(),
        reserve(ZoneKind::Dma32),
        reserve(ZoneKind::Normal),
        reserve(ZoneKind::Movable),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(machine: &str, mem: &str, kernel: &str, sysctls: &[&str]) -> String {
        let request = ZonesRequest {
            kernel: Some(kernel.into()),
            machine: Some(machine.into()),
            mem: Some(mem.into()),
            sysctls: sysctls.iter().map(|&text| text.into()).collect(),
        };
        report::views::list(&zones(&request).unwrap()).render(report::Format::Text, 80)
    }

    /// A guest of 512M manages more than that.
    #[test]
    fn memory_beside_what_was_asked_for_is_told() {
        let [guest, machine] = ["guest-uml", "vm-2cpu"].map(|name| shown(name, "512M", "linux-6.12", &[]));
        assert!(
            guest.contains("note: 8759 of the managed pages are beside `mem`: a guest's own program"),
            "{guest}"
        );
        assert!(!machine.contains("beside"), "{machine}");
    }

    /// MECHANISMS-6X 1.1 and 1.3: the marks and the protection of DMA that a guest showed.
    #[test]
    fn the_zones_of_a_measured_guest_are_those_of_its_zoneinfo() {
        insta::assert_snapshot!(shown("guest-tcg", "512M", "linux-6.1", &[]), @"
        kernel: linux-6.1
        machine: guest-tcg
        mem: 512M
        vm.min_free_kbytes: 2739
        vm.watermark_scale_factor: 10
        thp.enabled: never
        unit: pages

         node  zone   managed    free  min  low  high
            0  DMA       3840    3808   22   27    32
            0  DMA32   116165  107237  661  826   991

         node  zone   pcp batch  pcp high  pcp high max  reserve  reserve  reserve
                                                           dma32   normal  movable
            0  DMA            1        13            13      442      442      442
            0  DMA32         31       413           413        0        0        0
        ");
    }

    #[test]
    fn a_sysctl_moves_the_marks_and_two_nodes_are_told_apart() {
        let sysctls = ["vm.min_free_kbytes=100000"];
        insta::assert_snapshot!(shown("haswell-2s", "64G", "linux-5.4", &sysctls), @"
        kernel: linux-5.4
        machine: haswell-2s
        mem: 64G
        vm.min_free_kbytes: 100000
        vm.watermark_scale_factor: 10
        thp.enabled: always
        unit: pages

         node  zone    managed     free    min    low   high
            0  DMA        3840     3840      5      8     11
            0  DMA32    786432   786432   1195   1981   2767
            0  Normal  7430563  7430563  11298  18728  26158
            1  Normal  8220835  8220835  12500  20720  28940

         node  zone    pcp batch  pcp high  pcp high max  reserve  reserve  reserve
                                                            dma32   normal  movable
            0  DMA             1         0             0     3072    32097    32097
            0  DMA32          63       378           378        0    29025    29025
            0  Normal         63       378           378        0        0        0
            1  Normal         63       378           378        0        0        0
        ");
    }
}
