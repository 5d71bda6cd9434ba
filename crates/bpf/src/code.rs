//! Instructions of eBPF (RFC 9669), and a program of them: all functions of an object in one row.
//!
//! ```text
//!   .text        callback A, callback B      0..40
//!   struct_ops/x the hook x                 40..95     a call, or a callback's address, is an index into the row
//! ```
//! Left out: the legacy packet loads, which a kernel refuses here, too. Next: [`crate::vm`], which runs them.

use crate::calls::Call;
use crate::fault::ObjectError;

/// Where functions lie for who looks at their addresses.
pub(crate) const FUNCTIONS: u64 = 0xffff_ffff_a000_0000;
/// Bytes of an instruction.
pub(crate) const INSN: usize = 8;

pub(crate) const LD: u8 = 0;
pub(crate) const LDX: u8 = 1;
pub(crate) const ST: u8 = 2;
pub(crate) const STX: u8 = 3;
pub(crate) const ALU: u8 = 4;
pub(crate) const JMP: u8 = 5;
pub(crate) const JMP32: u8 = 6;
pub(crate) const ALU64: u8 = 7;

/// The second operand is a register.
pub(crate) const FROM_REGISTER: u8 = 0x08;
pub(crate) const LOAD_WIDE: u8 = 0x18;
pub(crate) const CALL: u8 = 0x85;
pub(crate) const EXIT: u8 = 0x95;
pub(crate) const JUMP: u8 = 0x05;
/// A jump by `imm` instead of `off`.
pub(crate) const JUMP_FAR: u8 = 0x06;

/// What a call goes to, in `src`.
pub(crate) const TO_HELPER: u8 = 0;
pub(crate) const TO_FUNCTION: u8 = 1;
pub(crate) const TO_KFUNC: u8 = 2;

/// An instruction. The second half of a wide load is one, too, and is never run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Insn {
    pub(crate) code: u8,
    pub(crate) dst: u8,
    pub(crate) src: u8,
    pub(crate) off: i16,
    /// All 64 bits of a wide load; the index of what is called.
    pub(crate) imm: i64,
}

impl Insn {
    pub(crate) const fn class(self) -> u8 {
        self.code & 7
    }

    /// Bytes of memory that a load or store is about.
    pub(crate) const fn width(self) -> usize {
        match self.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        }
    }

    /// By how much a jump goes on, counted from the next instruction.
    const fn jump(self) -> Option<i64> {
        match self.code {
            JUMP_FAR => Some(self.imm),
            CALL | EXIT => None,
            _ if matches!(self.class(), JMP | JMP32) => Some(self.off as i64),
            _ => None,
        }
    }
}

/// Reads the instructions of a section.
///
/// # Errors
/// Half an instruction.
pub(crate) fn decoded(section: &str, bytes: &[u8]) -> Result<Vec<Insn>, ObjectError> {
    let whole = bytes.len().is_multiple_of(INSN);
    whole
        .then_some(())
        .ok_or_else(|| ObjectError::broken(format!("`{section}` ends within an instruction")))?;
    let read = |bytes: &[u8]| Insn {
        code: bytes[0],
        dst: bytes[1] & 15,
        src: bytes[1] >> 4,
        off: i16::from_le_bytes([bytes[2], bytes[3]]),
        imm: i64::from(i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])),
    };
    let mut insns: Vec<Insn> = bytes.chunks_exact(INSN).map(read).collect();
    let mut at = 0;
    while at < insns.len() {
        if insns[at].code != LOAD_WIDE {
            at += 1;
            continue;
        }
        let high = insns.get(at + 1).map(|second| second.imm);
        let high = high.ok_or_else(|| ObjectError::broken(format!("`{section}` ends within a load")))?;
        insns[at].imm = (insns[at].imm & 0xffff_ffff) | high << 32;
        at += 2;
    }
    Ok(insns)
}

/// A function by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Where it begins.
    pub(crate) first: usize,
}

/// All instructions of an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) insns: Vec<Insn>,
    /// By where they begin.
    pub(crate) functions: Vec<Function>,
    /// Kfuncs that are not modelled; calls have the first one as -1.
    pub(crate) unknown: Vec<String>,
}

impl Program {
    /// An instruction as a person is told: the function that it is in, and the how-manieth it is there.
    pub(crate) fn place(&self, at: usize) -> String {
        match self.functions.iter().rfind(|function| function.first <= at) {
            Some(function) => format!("instruction {} of `{}`", at - function.first, function.name),
            None => format!("instruction {at}"),
        }
    }

    /// Checks whatever can be reached from these functions: registers, jumps and calls are ones that there are.
    ///
    /// # Errors
    /// The first that is not.
    pub(crate) fn check(&self, entries: impl Iterator<Item = usize>) -> Result<(), ObjectError> {
        let mut seen = vec![false; self.insns.len()];
        let mut open: Vec<usize> = entries.collect();
        while let Some(at) = open.pop() {
            let reached = seen.get_mut(at).map(|seen| std::mem::replace(seen, true));
            match reached {
                Some(true) => continue,
                Some(false) => self.check_one(at, &mut open)?,
                None => return Err(ObjectError::broken("a program goes on behind its end")),
            }
        }
        Ok(())
    }

    fn check_one(&self, at: usize, open: &mut Vec<usize>) -> Result<(), ObjectError> {
        let insn = self.insns[at];
        let wrong = |what: &str| ObjectError::broken(format!("{what} at {}", self.place(at)));
        if insn.dst > 10 || (insn.src > 10 && insn.code != CALL && insn.code != LOAD_WIDE) {
            return Err(wrong("no such register"));
        }
        if insn.class() == LD && insn.code != LOAD_WIDE {
            return Err(wrong("a load from a packet, which there is none of here,"));
        }
        if let Some(jump) = insn.jump() {
            let target = usize::try_from(at as i64 + 1 + jump);
            open.push(target.map_err(|_| wrong("a jump before the program"))?);
        }
        if insn.code == LOAD_WIDE
            && let Some(function) = (insn.imm as u64).checked_sub(FUNCTIONS)
        {
            open.extend(usize::try_from(function).ok().filter(|&function| function < self.insns.len()));
        }
        if insn.code == CALL {
            match insn.src {
                TO_FUNCTION => open.push(insn.imm as usize),
                TO_HELPER if Call::helper(insn.imm).is_none() => {
                    return Err(Call::unknown(&format!("helper number {}", insn.imm), &self.place(at)));
                }
                TO_KFUNC if insn.imm < 0 => {
                    let name = &self.unknown[usize::try_from(-1 - insn.imm).expect("it is negative")];
                    return Err(Call::unknown(&format!("`{name}`"), &self.place(at)));
                }
                TO_HELPER | TO_KFUNC => {}
                _ => return Err(wrong("an unknown kind of call")),
            }
        }
        if !matches!(insn.code, EXIT | JUMP | JUMP_FAR) {
            open.push(at + if insn.code == LOAD_WIDE { 2 } else { 1 });
        }
        Ok(())
    }
}
