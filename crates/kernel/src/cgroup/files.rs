//! Cgroup v2 files: `memory.max`, `memory.high`, `memory.low`, `memory.min`, `memory.current`,
//! `memory.stat`, `memory.events`, `memory.pressure`, `memory.swap.current`, `memory.swap.max`, `memory.swap.high`,
//! `memory.swap.events`,
//! `memory.zswap.current`, `memory.zswap.max`, `memory.zswap.writeback`.
//!
//! Texts are those of the kernel. Left out: controllers other than memory, `cgroup.procs` (a
//! process is started in its cgroup).

use std::fmt::Write;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::cgroup::tree::{Limit, UNLIMITED};
use mm::decide::effort::Effort;
use mm::version::rules::{Cgroups, SwapHigh, Zswap};
use units::{Order, PAGE_SIZE, parse_size};

use crate::alloc::oom::Verdict;
use crate::alloc::purpose::Purpose;
use crate::alloc::report::OomControl;
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{GroupId, Machine, Pressure, Stalled};
use crate::tasks::process::Process;

/// Rounds of reclaim without success after which a lowered limit turns to other means
/// (`MAX_RECLAIM_RETRIES`).
const FRUITLESS_ROUNDS: u32 = 16;

/// What follows when reclaim alone does not reach a lowered limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WhenStuck {
    /// The OOM killer, until usage is below the limit or nobody is left.
    Kill,
    /// Nothing: charges will reclaim on their way.
    GiveUp,
}

/// The tasks of a cgroup and of all below it.
pub fn group_of(memcg: MemcgId) -> GroupId {
    GroupId(u32::from(memcg.0))
}

/// As `psi_show` writes it.
fn pressure_text(pressure: Pressure) -> String {
    let line = |kind: &str, Stalled { average, total }: Stalled| {
        let [ten, sixty, three_hundred] =
            average.map(|hundredths| format!("{}.{:02}", hundredths / 100, hundredths % 100));
        let total = total.0 / 1000;
        format!("{kind} avg10={ten} avg60={sixty} avg300={three_hundred} total={total}\n")
    };
    line("some", pressure.some) + &line("full", pressure.full)
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Creates a cgroup for `process`; its parent must exist, and pays for it ([`mm::cgroup::cost`]).
    ///
    /// # Errors
    /// `NotSup` where the version has none; `NoEnt`; `Exist`; `Inval` for an empty name; `NoSpc` after 65535
    /// cgroups; `NoMem` where the parent is at its limit; `Killed`.
    pub async fn cgroup_create(&self, process: &Process, path: &str) -> Result<MemcgId, Errno> {
        let (parent, _) = self.place_of_group(path)?;
        let paid = self.pay_for_group(process, parent).await?;
        // Another task may have made it meanwhile.
        let (parent, name) = self.place_of_group(path).inspect_err(|_| {
            self.mem(|mem| mem.core.cgroups.give_back_cost(parent, paid));
        })?;
        let memcg = self.mem(|mem| {
            let memcg = mem.memcg_create(parent, name);
            mem.core.cgroups.note_cost(memcg, paid);
            memcg
        });
        self.machine().add_group(group_of(memcg), group_of(parent));
        Ok(memcg)
    }

    /// Charges `payer` for a cgroup below it; returns the bytes.
    async fn pay_for_group(&self, process: &Process, payer: MemcgId) -> Result<u32, Errno> {
        let mut paid = 0;
        for bytes in self.mem(|mem| mem.core.cgroups.cost_of_group(payer)) {
            loop {
                let cpu = self.machine().current_cpu();
                let Err(pages) = self.mem(|mem| mem.core.cgroups.pay_for_group(cpu, payer, bytes)) else {
                    break;
                };
                let charged = self.charge_pages(process, payer, pages, Gfp::KERNEL | Gfp::ACCOUNT).await;
                charged.inspect_err(|_| self.mem(|mem| mem.core.cgroups.give_back_cost(payer, paid)))?;
                let cpu = self.machine().current_cpu();
                self.mem(|mem| mem.core.cgroups.object_pages_charged(cpu, payer, pages));
            }
            paid += bytes;
        }
        Ok(paid)
    }

    /// Where a new cgroup belongs, and its name there.
    fn place_of_group<'path>(&self, path: &'path str) -> Result<(MemcgId, &'path str), Errno> {
        self.check_cgroups()?;
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() {
            return Err(Errno::Inval);
        }
        if self.find_memcg(path).is_some() {
            return Err(Errno::Exist);
        }
        let parent = self.find_memcg(parent).ok_or(Errno::NoEnt)?;
        if self.mem(|mem| mem.core.cgroups.is_full()) {
            return Err(Errno::NoSpc);
        }
        Ok((parent, name))
    }

    fn check_cgroups(&self) -> Result<(), Errno> {
        match self.mem(|mem| mem.core.rules().cgroups) {
            Cgroups::Off => Err(Errno::NotSup),
            Cgroups::V2 => Ok(()),
        }
    }

    /// Removes a cgroup without processes and children. Its pages stay until they are reclaimed, or become the
    /// parent's (since 7.1).
    ///
    /// # Errors
    /// `NoEnt`; `Busy`.
    pub fn cgroup_remove(&self, path: &str) -> Result<(), Errno> {
        let memcg = self.find_memcg(path).filter(|&id| id != MemcgId::ROOT).ok_or(Errno::NoEnt)?;
        let has_processes =
            self.shared.processes.borrow().list.iter().any(|process| process.memcg() == memcg);
        let has_children = self
            .mem(|mem| mem.core.cgroups[memcg].children.iter().any(|&child| mem.core.cgroups[child].online));
        if has_processes || has_children {
            return Err(Errno::Busy);
        }
        self.mem(|mem| mem.memcg_remove(memcg));
        Ok(())
    }

    /// Writes a cgroup file. A new `memory.max` is enforced by reclaim and then by the OOM killer,
    /// a new `memory.high` by reclaim alone; neither fails when usage stays above it. A write to `memory.reclaim`
    /// does.
    ///
    /// # Errors
    /// `NoEnt` for an unknown cgroup or file; `Inval` for a value that is neither a size nor `max`; `Again` when
    /// less could be reclaimed than was asked for.
    pub async fn cgroup_write(&self, path: &str, file: &str, value: &str) -> Result<(), Errno> {
        let memcg = self.find_memcg(path).filter(|&id| id != MemcgId::ROOT).ok_or(Errno::NoEnt)?;
        if file == "memory.reclaim" {
            return self.write_memory_reclaim(memcg, value).await;
        }
        if file == "memory.zswap.writeback" && self.has_zswap(true) {
            let on = match value.trim() {
                "1" => true,
                "0" => false,
                _ => return Err(Errno::Inval),
            };
            self.mem(|mem| mem.core.cgroups.set_zswap_writeback(memcg, on));
            return Ok(());
        }
        let pages = match value.trim() {
            "max" => UNLIMITED,
            text => parse_size(text).map_err(|_| Errno::Inval)?.0 / PAGE_SIZE,
        };
        if file == "memory.swap.max" {
            self.mem(|mem| mem.core.cgroups.set_swap_max(memcg, pages));
            return Ok(());
        }
        if file == "memory.swap.high" && self.has_swap_high() {
            self.mem(|mem| mem.core.cgroups.set_swap_high(memcg, pages));
            return Ok(());
        }
        if file == "memory.zswap.max" && self.has_zswap(false) {
            self.mem(|mem| mem.core.cgroups.set_zswap_max(memcg, pages.saturating_mul(PAGE_SIZE)));
            return Ok(());
        }
        let limit = match file {
            "memory.max" => Limit::Max,
            "memory.high" => Limit::High,
            "memory.low" => Limit::Low,
            "memory.min" => Limit::Min,
            _ => return Err(Errno::NoEnt),
        };
        self.mem(|mem| mem.core.cgroups.set_limit(memcg, limit, pages));
        match file {
            "memory.max" => self.reclaim_to(memcg, pages, WhenStuck::Kill).await,
            "memory.high" => self.reclaim_to(memcg, pages, WhenStuck::GiveUp).await,
            _ => {}
        }
        Ok(())
    }

    fn has_swap_high(&self) -> bool {
        self.mem(|mem| mem.core.rules().swap_high) == SwapHigh::Sleep
    }

    /// Whether the version has files of zswap; `writeback`: that which forbids to write entries back, too.
    fn has_zswap(&self, writeback: bool) -> bool {
        match self.mem(|mem| mem.core.rules().zswap) {
            Zswap::Absent => false,
            Zswap::OneList => !writeback,
            Zswap::ListPerGroup | Zswap::StoresAll => true,
        }
    }

    /// Brings usage below a limit that was just lowered (`memory_max_write`, `memory_high_write`).
    async fn reclaim_to(&self, memcg: MemcgId, pages: u64, when_stuck: WhenStuck) {
        let excess = || self.mem(|mem| mem.core.cgroups[memcg].memory.usage.saturating_sub(pages));
        if excess() > 0 {
            self.mem(|mem| mem.core.cgroups.drain_all_stocks(memcg));
        }
        let (mut fruitless, mut effort) = (0, Effort::default());
        while excess() > 0 {
            if fruitless < FRUITLESS_ROUNDS {
                let (reclaimed, passes) = self.limit_reclaim(memcg, excess(), Gfp::KERNEL).await;
                effort.note_run(reclaimed, passes);
                fruitless += u32::from(reclaimed == 0);
                continue;
            }
            if when_stuck == WhenStuck::GiveUp {
                return;
            }
            self.mem(|mem| mem.core.cgroups.count_event(memcg, |events| &mut events.oom));
            let why = self.mem(|mem| mem.why_charge_given_up(&effort));
            let (gfp, order, purpose) = (Gfp::KERNEL, Order(0), Purpose::Other);
            let verdict = self.oom_kill(OomControl { memcg, by: None, gfp, order, purpose, why });
            if verdict != Verdict::Killed {
                return;
            }
        }
    }

    /// Reads a cgroup file.
    ///
    /// # Errors
    /// `NotSup` where the version has no cgroups; `NoEnt`.
    pub fn cgroup_read(&self, path: &str, file: &str) -> Result<String, Errno> {
        self.check_cgroups()?;
        let memcg = self.find_memcg(path).ok_or(Errno::NoEnt)?;
        if file == "memory.pressure" {
            return Ok(pressure_text(self.machine().pressure(group_of(memcg))));
        }
        let (has_zswap, has_writeback) = (self.has_zswap(false), self.has_zswap(true));
        let has_swap_high = self.has_swap_high();
        self.mem(|mem| {
            let group = &mem.core.cgroups[memcg];
            let size = |pages: u64| {
                if pages == UNLIMITED { "max\n".to_string() } else { format!("{}\n", pages * PAGE_SIZE) }
            };
            match file {
                "memory.current" => Ok(size(group.memory.usage)),
                "memory.max" => Ok(size(group.memory.max)),
                "memory.high" => Ok(size(group.memory.high)),
                "memory.low" => Ok(size(group.memory.low)),
                "memory.min" => Ok(size(group.memory.min)),
                "memory.swap.current" => Ok(size(group.swap.usage)),
                "memory.swap.max" => Ok(size(group.swap.max)),
                "memory.swap.high" if has_swap_high => Ok(size(group.swap.high)),
                "memory.swap.events" => {
                    let events = group.swap.events;
                    let high = if has_swap_high { format!("high {}\n", events.high) } else { String::new() };
                    Ok(format!("{high}max {}\nfail {}\n", events.max, events.fail))
                }
                "memory.zswap.current" if has_zswap => Ok(format!("{}\n", group.zswap.bytes)),
                "memory.zswap.max" if has_zswap => Ok(match group.zswap.max {
                    UNLIMITED => "max\n".to_owned(),
                    bytes => format!("{bytes}\n"),
                }),
                "memory.zswap.writeback" if has_writeback => {
                    Ok(format!("{}\n", u8::from(group.zswap.writeback)))
                }
                "memory.events" => {
                    let events = group.events;
                    Ok(format!(
                        "low {}\nhigh {}\nmax {}\noom {}\noom_kill {}\n",
                        events.low, events.high, events.max, events.oom, events.oom_kill
                    ))
                }
                "memory.stat" => {
                    Ok(mem.memcg_stat(memcg).iter().fold(String::new(), |mut text, (name, value)| {
                        let _ = writeln!(text, "{name} {value}");
                        text
                    }))
                }
                _ => Err(Errno::NoEnt),
            }
        })
    }
}
