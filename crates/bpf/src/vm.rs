//! The interpreter: runs a function of a policy to its end, and callbacks within it.
//!
//! Of crates.io's interpreters `rbpf` has no atomic operations, takes addresses of the host for a program's, has
//! helpers that know no state, and no end for a loop; `solana-sbpf` runs a dialect without atomic operations. A
//! kernel's verifier makes sure that a program ends and touches what is its own; here each access is looked at, and
//! instructions are counted.
//!
//! Next: [`crate::view`], what a load sees of a kernel; [`crate::helpers`] and [`crate::kfuncs`], what calls do.

use mm::lru::cache_ext::lists::{EvictionList, Lists};
use units::Stream;

use crate::calls::Call;
use crate::code::{
    ALU, ALU64, CALL, EXIT, FROM_REGISTER, FUNCTIONS, Insn, JMP, JMP32, JUMP, JUMP_FAR, LDX, LOAD_WIDE, ST,
    STX, TO_FUNCTION, TO_HELPER,
};
use crate::fault::{Fault, Ran};
use crate::link::Linked;
use crate::maps::Maps;
use crate::memory::{FRAME, FRAMES_MAX, Memory, STACK, area_address};

/// What a policy keeps between two hooks.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) memory: Memory,
    pub(crate) maps: Maps,
    /// Its lists, by their handles less one.
    pub(crate) handles: Vec<EvictionList>,
    pub(crate) random: Stream,
    /// Lines that it printed.
    pub(crate) printed: u64,
}

/// A hook that runs.
pub(crate) struct Vm<'a, 'l> {
    pub(crate) linked: &'a Linked,
    pub(crate) state: &'a mut State,
    /// None while nobody may touch them: in a callback, where a kernel holds their lock, and where a page is only asked
    /// about.
    pub(crate) lists: Option<&'a mut Lists<'l>>,
    /// A callback of a walk over a list runs.
    pub(crate) is_walking: bool,
    /// Instructions until it has run too long.
    pub(crate) left: u64,
    pub(crate) depth: usize,
}

/// Where a function goes on that has called another one.
struct Caller {
    next: usize,
    /// `r6` to `r9`.
    saved: [u64; 4],
}

impl Vm<'_, '_> {
    /// Runs a function; what it returns.
    pub(crate) fn run(&mut self, entry: usize, arguments: [u64; 5]) -> Ran<u64> {
        let mut registers = [0; 11];
        registers[1..6].copy_from_slice(&arguments);
        let mut callers: Vec<Caller> = Vec::new();
        let depth = self.depth;
        let mut at = entry;
        self.enter(&mut registers).map_err(|fault| fault.at(entry))?;
        let result = loop {
            match self.step(&mut at, &mut registers, &mut callers) {
                Ok(false) => {}
                Ok(true) => break Ok(registers[0]),
                Err(fault) => break Err(fault.at(at)),
            }
        };
        self.depth = depth;
        result
    }

    /// A fresh frame of the stack.
    fn enter(&mut self, registers: &mut [u64; 11]) -> Ran {
        if self.depth == FRAMES_MAX {
            return Err(Fault::new(format!("calls go deeper than {FRAMES_MAX}")));
        }
        let first = self.depth * FRAME;
        self.state.memory.area_mut(STACK)[first..first + FRAME].fill(0);
        self.depth += 1;
        registers[10] = area_address(STACK) + (self.depth * FRAME) as u64;
        Ok(())
    }

    /// One instruction; whether it was the last. `at` stays at one that fails.
    #[inline]
    fn step(&mut self, at: &mut usize, registers: &mut [u64; 11], callers: &mut Vec<Caller>) -> Ran<bool> {
        let insn = *self.linked.program.insns.get(*at).ok_or_else(|| Fault::new("no instruction"))?;
        self.left = self.left.checked_sub(1).ok_or_else(|| Fault::new("the program runs too long"))?;
        let (dst, src) = (insn.dst as usize, insn.src as usize);
        let mut next = *at + 1;
        match insn.class() {
            ALU64 => registers[dst] = alu::<true>(insn, registers)?,
            ALU => registers[dst] = alu::<false>(insn, registers)?,
            LDX => registers[dst] = self.load(insn, registers[src])?,
            ST => self.store(insn, registers[dst], insn.imm as u64)?,
            STX if insn.code & 0xe0 == 0xc0 => self.atomic(insn, registers)?,
            STX => self.store(insn, registers[dst], registers[src])?,
            JMP | JMP32 => match insn.code {
                CALL => match insn.src {
                    TO_FUNCTION => {
                        let saved = [registers[6], registers[7], registers[8], registers[9]];
                        callers.push(Caller { next, saved });
                        self.enter(registers)?;
                        next = insn.imm as usize;
                    }
                    kind => {
                        let call =
                            if kind == TO_HELPER { Call::helper(insn.imm) } else { Call::kfunc(insn.imm) };
                        let call = call.ok_or_else(|| Fault::new("an unknown call"))?;
                        let [_, a, b, c, d, e, ..] = *registers;
                        registers[0] = self.call(call, [a, b, c, d, e])?;
                        registers[1..6].fill(0);
                    }
                },
                EXIT => match callers.pop() {
                    Some(caller) => {
                        self.depth -= 1;
                        registers[6..10].copy_from_slice(&caller.saved);
                        registers[10] = area_address(STACK) + (self.depth * FRAME) as u64;
                        next = caller.next;
                    }
                    None => return Ok(true),
                },
                JUMP => next = next.wrapping_add_signed(insn.off as isize),
                JUMP_FAR => next = next.wrapping_add_signed(insn.imm as isize),
                _ if jumps(insn, registers)? => next = next.wrapping_add_signed(insn.off as isize),
                _ => {}
            },
            _ if insn.code == LOAD_WIDE => {
                registers[dst] = insn.imm as u64;
                next += 1;
            }
            _ => return Err(unknown()),
        }
        *at = next;
        Ok(false)
    }

    /// The address of a function, as an index.
    pub(crate) fn function(&self, address: u64) -> Ran<usize> {
        let index = address.checked_sub(FUNCTIONS).and_then(|index| usize::try_from(index).ok());
        let found = index.filter(|&index| index < self.linked.program.insns.len());
        found.ok_or_else(|| Fault::new(format!("{address:#x} is given as a callback and is no function")))
    }

    #[inline]
    fn load(&mut self, insn: Insn, base: u64) -> Ran<u64> {
        let (address, width) = (base.wrapping_add_signed(i64::from(insn.off)), insn.width());
        let value = match self.state.memory.load(address, width) {
            Some(value) => value,
            None => self.see(address, width)?,
        };
        Ok(match (insn.code & 0xe0, width) {
            (0x60, _) => value,
            (0x80, 1) => value as i8 as u64,
            (0x80, 2) => value as i16 as u64,
            (0x80, 4) => value as i32 as u64,
            _ => return Err(unknown()),
        })
    }

    #[inline]
    fn store(&mut self, insn: Insn, base: u64, value: u64) -> Ran {
        if insn.code & 0xe0 != 0x60 {
            return Err(unknown());
        }
        self.state.memory.store(base.wrapping_add_signed(i64::from(insn.off)), insn.width(), value)
    }

    fn atomic(&mut self, insn: Insn, registers: &mut [u64; 11]) -> Ran {
        const FETCH: i64 = 1;
        let (width, src) = (insn.width(), insn.src as usize);
        let address = registers[insn.dst as usize].wrapping_add_signed(i64::from(insn.off));
        let Some(old) = self.state.memory.load(address, width).filter(|_| width >= 4) else {
            return Err(Fault::new(format!(
                "an atomic operation at {address:#x}, which is not the policy's"
            )));
        };
        let operand = registers[src];
        let (new, fetched) = match insn.imm {
            0x00 | 0x01 => (old.wrapping_add(operand), insn.imm & FETCH != 0),
            0x40 | 0x41 => (old | operand, insn.imm & FETCH != 0),
            0x50 | 0x51 => (old & operand, insn.imm & FETCH != 0),
            0xa0 | 0xa1 => (old ^ operand, insn.imm & FETCH != 0),
            0xe1 => (operand, true),
            0xf1 => {
                let wanted = if width == 4 { u64::from(registers[0] as u32) } else { registers[0] };
                registers[0] = old;
                (if old == wanted { operand } else { old }, false)
            }
            _ => return Err(unknown()),
        };
        self.state.memory.store(address, width, new)?;
        if fetched {
            registers[src] = old;
        }
        Ok(())
    }
}

#[cold]
fn unknown() -> Fault {
    Fault::new("an unknown instruction")
}

/// An operation on registers, on all 64 bits or the lower half of them.
#[inline]
fn alu<const WIDE: bool>(insn: Insn, registers: &[u64; 11]) -> Ran<u64> {
    let old = registers[insn.dst as usize];
    let operand = if insn.code & FROM_REGISTER != 0 { registers[insn.src as usize] } else { insn.imm as u64 };
    let cut = |value: u64| if WIDE { value } else { u64::from(value as u32) };
    let signed = |value: u64| if WIDE { value as i64 } else { i64::from(value as i32) };
    let (a, b) = (cut(old), cut(operand));
    let shift = (b as u32) & if WIDE { 63 } else { 31 };
    let value = match insn.code & 0xf0 {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x30 if insn.off == 1 && b == 0 => 0,
        0x30 if insn.off == 1 => signed(old).wrapping_div(signed(operand)) as u64,
        0x30 => a.checked_div(b).unwrap_or(0),
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a << shift,
        0x70 => a >> shift,
        0x80 => a.wrapping_neg(),
        0x90 if insn.off == 1 && b != 0 => signed(old).wrapping_rem(signed(operand)) as u64,
        0x90 => a.checked_rem(b).unwrap_or(a),
        0xa0 => a ^ b,
        0xb0 => match insn.off {
            0 => b,
            8 => operand as i8 as u64,
            16 => operand as i16 as u64,
            32 => operand as i32 as u64,
            _ => return Err(unknown()),
        },
        0xc0 => (signed(old) >> shift) as u64,
        0xd0 => {
            // A swap always where it is one of 64 bits, or of big-endian bytes.
            let swaps = WIDE || insn.code & FROM_REGISTER != 0;
            return match (insn.imm, swaps) {
                (16, false) => Ok(old & 0xffff),
                (32, false) => Ok(old & 0xffff_ffff),
                (64, false) => Ok(old),
                (16, true) => Ok(u64::from((old as u16).swap_bytes())),
                (32, true) => Ok(u64::from((old as u32).swap_bytes())),
                (64, true) => Ok(old.swap_bytes()),
                _ => Err(unknown()),
            };
        }
        _ => return Err(unknown()),
    };
    Ok(cut(value))
}

/// Whether a conditional jump jumps.
#[inline]
fn jumps(insn: Insn, registers: &[u64; 11]) -> Ran<bool> {
    let wide = insn.class() == JMP;
    let a = registers[insn.dst as usize];
    let b = if insn.code & FROM_REGISTER != 0 { registers[insn.src as usize] } else { insn.imm as u64 };
    let (a, b) = if wide { (a, b) } else { (u64::from(a as u32), u64::from(b as u32)) };
    let (signed_a, signed_b) =
        if wide { (a as i64, b as i64) } else { (i64::from(a as i32), i64::from(b as i32)) };
    Ok(match insn.code & 0xf0 {
        0x10 => a == b,
        0x20 => a > b,
        0x30 => a >= b,
        0x40 => a & b != 0,
        0x50 => a != b,
        0x60 => signed_a > signed_b,
        0x70 => signed_a >= signed_b,
        0xa0 => a < b,
        0xb0 => a <= b,
        0xc0 => signed_a < signed_b,
        0xd0 => signed_a <= signed_b,
        _ => return Err(unknown()),
    })
}
