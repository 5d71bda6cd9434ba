//! Cgroup v2 files: `memory.max`, `memory.high`, `memory.low`, `memory.min`, `memory.current`,
//! `memory.stat`, `memory.events`.
//!
//! Texts are those of the kernel. Left out: controllers other than memory, `cgroup.procs` (a
//! process is started in its cgroup).

use std::fmt::Write;

use mm::MemcgId;
use mm::event::Trace;
use mm::gfp::Gfp;
use mm::memcg::UNLIMITED;
use units::{PAGE_SIZE, parse_size};

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::task::Errno;

/// Rounds of reclaim that lowering `memory.max` tries (`MAX_RECLAIM_RETRIES`).
const LIMIT_RECLAIM_ROUNDS: u32 = 16;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Creates a cgroup; its parent must exist.
    ///
    /// # Errors
    /// `NoEnt`; `Exist`; `Inval` for an empty name.
    pub fn cgroup_create(&self, path: &str) -> Result<MemcgId, Errno> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() {
            return Err(Errno::Inval);
        }
        if self.find_memcg(path).is_some() {
            return Err(Errno::Exist);
        }
        let parent = self.find_memcg(parent).ok_or(Errno::NoEnt)?;
        Ok(self.mem(|mem| mem.memcg_create(parent, name)))
    }

    /// Removes a cgroup without processes and children. Its pages stay until they are reclaimed.
    ///
    /// # Errors
    /// `NoEnt`; `Busy`.
    pub fn cgroup_remove(&self, path: &str) -> Result<(), Errno> {
        let memcg = self.find_memcg(path).filter(|&id| id != MemcgId::ROOT).ok_or(Errno::NoEnt)?;
        let has_processes =
            self.shared.processes.borrow().list.iter().any(|process| process.memcg() == memcg);
        let has_children =
            self.mem(|mem| mem.memcgs[memcg].children.iter().any(|&child| mem.memcgs[child].online));
        if has_processes || has_children {
            return Err(Errno::Busy);
        }
        self.mem(|mem| mem.memcgs.remove(memcg));
        Ok(())
    }

    /// Writes a cgroup file.
    ///
    /// # Errors
    /// `NoEnt` for an unknown cgroup or file; `Inval` for a value that is neither a size nor `max`;
    /// `Busy` when usage cannot be brought below a new `memory.max`.
    pub async fn cgroup_write(&self, path: &str, file: &str, value: &str) -> Result<(), Errno> {
        let memcg = self.find_memcg(path).filter(|&id| id != MemcgId::ROOT).ok_or(Errno::NoEnt)?;
        let pages = match value.trim() {
            "max" => UNLIMITED,
            text => parse_size(text).map_err(|_| Errno::Inval)?.0 / PAGE_SIZE,
        };
        self.mem(|mem| {
            let counter = &mut mem.memcgs[memcg].memory;
            match file {
                "memory.max" => counter.max = pages,
                "memory.high" => counter.high = pages,
                "memory.low" => counter.low = pages,
                "memory.min" => counter.min = pages,
                _ => return Err(Errno::NoEnt),
            }
            Ok(())
        })?;
        if file == "memory.max" || file == "memory.high" {
            self.reclaim_to(memcg, pages).await?;
        }
        Ok(())
    }

    /// Brings usage below a limit that was just lowered.
    async fn reclaim_to(&self, memcg: MemcgId, pages: u64) -> Result<(), Errno> {
        let mut drained = false;
        for _ in 0..LIMIT_RECLAIM_ROUNDS {
            let excess = self.mem(|mem| mem.memcgs[memcg].memory.usage.saturating_sub(pages));
            if excess == 0 {
                return Ok(());
            }
            if !drained {
                self.mem(|mem| mem.memcgs.drain_all_stocks(memcg));
                drained = true;
                continue;
            }
            self.limit_reclaim(memcg, excess, Gfp::KERNEL).await;
        }
        let excess = self.mem(|mem| mem.memcgs[memcg].memory.usage.saturating_sub(pages));
        if excess > 0 { Err(Errno::Busy) } else { Ok(()) }
    }

    /// Reads a cgroup file.
    ///
    /// # Errors
    /// `NoEnt`.
    pub fn cgroup_read(&self, path: &str, file: &str) -> Result<String, Errno> {
        let memcg = self.find_memcg(path).ok_or(Errno::NoEnt)?;
        self.mem(|mem| {
            let group = &mem.memcgs[memcg];
            let size = |pages: u64| {
                if pages == UNLIMITED { "max\n".to_string() } else { format!("{}\n", pages * PAGE_SIZE) }
            };
            match file {
                "memory.current" => Ok(size(group.memory.usage)),
                "memory.max" => Ok(size(group.memory.max)),
                "memory.high" => Ok(size(group.memory.high)),
                "memory.low" => Ok(size(group.memory.low)),
                "memory.min" => Ok(size(group.memory.min)),
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
