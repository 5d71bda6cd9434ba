//! What helpers do, and the kfuncs that count (`bpf_for`).
//!
//! Left out: text that a policy prints is counted and not kept; the task and the CPU are those of nobody, 0. Random
//! numbers follow from the run's seed. Next: [`crate::kfuncs`] for lists.

use crate::calls::Call;
use crate::fault::{Fault, Ran};
use crate::memory::{ARGUMENTS, area_address, map_of};
use crate::vm::Vm;

const EINVAL: u64 = -22_i64 as u64;
const EFAULT: u64 = -14_i64 as u64;
/// Rounds of `bpf_loop` at most (`BPF_MAX_LOOPS`).
const LOOPS_MAX: u64 = 1 << 23;

impl Vm<'_, '_> {
    /// Does what a program calls for.
    pub(crate) fn call(&mut self, call: Call, arguments: [u64; 5]) -> Ran<u64> {
        let [a, b, c, d, _] = arguments;
        let state = &mut *self.state;
        match call {
            Call::MapLookup => state.maps.lookup(&mut state.memory, map_of(a), b),
            Call::MapUpdate => {
                state.maps.update(&mut state.memory, map_of(a), (b, c), d).map(|result| result as u64)
            }
            Call::MapDelete => state.maps.delete(&state.memory, map_of(a), b).map(|result| result as u64),
            Call::RingOutput => state.maps.output(&state.memory, map_of(a), b, c).map(|result| result as u64),
            Call::Random => Ok(state.random.bits() >> 32),
            Call::Nanoseconds => Err(Fault::new("the time is asked, which is not modelled,")),
            Call::Task => Err(Fault::new("the current task is asked, which is not modelled,")),
            Call::Print => {
                state.printed += 1;
                Ok(0)
            }
            Call::Cpu | Call::NoOp => Ok(0),
            Call::ReadMemory => self.read_memory(a, b, c),
            Call::Loop => self.repeat(a, b, c, d),
            Call::CountNew => {
                let (from, to) = (b as i32, c as i32);
                let (from, result) = if from <= to { (from, 0) } else { (to, EINVAL) };
                state.memory.store(a, 4, u64::from(from as u32))?;
                state.memory.store(a.wrapping_add(4), 4, u64::from(to as u32))?;
                Ok(result)
            }
            Call::CountNext => self.count(a),
            Call::CountEnd => state.memory.store(a, 8, 0).map(|()| 0),
            _ => self.list_call(call, arguments),
        }
    }

    /// `bpf_iter_num_next`: the next number, at an address; 0 behind the last. The iterator holds the number to come
    /// and the end in its 8 bytes; the one that was given lies behind the arguments of the hook.
    fn count(&mut self, iterator: u64) -> Ran<u64> {
        let memory = &mut self.state.memory;
        let (next, end) = (memory.field(iterator, 0, 4)? as i32, memory.field(iterator, 4, 4)? as i32);
        if next >= end {
            return Ok(0);
        }
        memory.store(iterator, 4, u64::from((next + 1) as u32))?;
        let place = area_address(ARGUMENTS) + 16;
        memory.store(place, 4, u64::from(next as u32))?;
        Ok(place)
    }

    /// `bpf_probe_read_kernel`.
    fn read_memory(&mut self, to: u64, size: u64, from: u64) -> Ran<u64> {
        let mut left = size;
        let mut at = 0;
        while left > 0 {
            let width = if left >= 8 { 8 } else { 1 };
            let address = from.wrapping_add(at);
            let value = match self.state.memory.load(address, width) {
                Some(value) => value,
                None => match self.see(address, width) {
                    Ok(value) => value,
                    Err(_) => return Ok(EFAULT),
                },
            };
            self.state.memory.store(to.wrapping_add(at), width, value)?;
            (left, at) = (left - width as u64, at + width as u64);
        }
        Ok(0)
    }

    /// `bpf_loop`.
    fn repeat(&mut self, rounds: u64, callback: u64, context: u64, flags: u64) -> Ran<u64> {
        let rounds = u64::from(rounds as u32);
        if flags != 0 || rounds > LOOPS_MAX {
            return Ok(EINVAL);
        }
        let callback = self.function(callback)?;
        for round in 0..rounds {
            if self.run(callback, [round, context, 0, 0, 0])? != 0 {
                return Ok(round + 1);
            }
        }
        Ok(rounds)
    }
}
