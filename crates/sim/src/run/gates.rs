//! Pipes between simulated tasks, of all tasks of a program: what `system.rs` opens and passes.

use std::cell::RefCell;

use kernel::machine::CostOp;
use kernel::{Machine, QueueId, WaitReason};
use units::Nanos;
use workload::system::{Errno, Gate, SystemError};

use crate::engine::sim::Sim;

/// All that were made.
#[derive(Default)]
pub(crate) struct Gates(RefCell<Vec<Pipe>>);

/// The bytes in one, and who waits for one.
struct Pipe {
    bytes: u64,
    queue: QueueId,
}

impl Gates {
    /// A gate that is closed.
    pub(crate) fn make(&self, machine: &Sim) -> Gate {
        let mut all = self.0.borrow_mut();
        all.push(Pipe { bytes: 0, queue: machine.new_queue() });
        Gate(u32::try_from(all.len() - 1).expect("a program has few gates"))
    }

    /// Lets one task pass.
    ///
    /// # Errors
    /// `Inval` for a gate that nobody made.
    pub(crate) fn open(&self, machine: &Sim, gate: Gate) -> Result<(), SystemError> {
        machine.charge(CostOp::Syscall, 1);
        let queue = self.with(gate, "write", |pipe| {
            pipe.bytes += 1;
            pipe.queue
        })?;
        machine.wake_all(queue);
        Ok(())
    }

    /// Waits until it may pass; false: for so long.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) async fn pass(&self, machine: &Sim, gate: Gate, limit: Nanos) -> Result<bool, SystemError> {
        machine.charge(CostOp::Syscall, 1);
        let until = machine.now() + limit;
        loop {
            let (passes, queue) = self.with(gate, "read", |pipe| {
                let passes = pipe.bytes > 0;
                pipe.bytes -= u64::from(passes);
                (passes, pipe.queue)
            })?;
            let left = until.saturating_sub(machine.now());
            if passes || left == Nanos::ZERO {
                return Ok(passes);
            }
            let _ = machine.wait(queue, WaitReason::Join, Some(left)).await;
        }
    }

    fn with<R>(
        &self,
        gate: Gate,
        call: &'static str,
        of: impl FnOnce(&mut Pipe) -> R,
    ) -> Result<R, SystemError> {
        let mut all = self.0.borrow_mut();
        let pipe = all.get_mut(gate.0 as usize);
        pipe.map(of).ok_or_else(|| SystemError::new(call, "gate", Errno::Inval))
    }
}
