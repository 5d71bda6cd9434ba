//! The seccomp filter: which calls the kernel tells us of, and how.
//!
//! All other calls run at full speed: their answer depends on the number alone, which the kernel remembers. Reads
//! and writes of standard input and output are not left out, though they are mostly pipes: a shell puts files there.

use crate::calls::{KNOWN, Way};
use crate::sys::Instruction;

/// `AUDIT_ARCH_X86_64`.
pub(crate) const ARCH: u32 = 0xC000_003E;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, jt: 0, jf: 0, k: offset }
}

const fn answer(action: u32) -> Instruction {
    Instruction { code: RETURN, jt: 0, jf: 0, k: action }
}

/// Goes on with the next instruction where the number is `value`, and otherwise with the one after.
const fn when(value: u32) -> Instruction {
    Instruction { code: IF_EQUAL, jt: 0, jf: 1, k: value }
}

/// The filter. With `notices`, calls whose end does not matter come as notices and not as stops.
pub(crate) fn filter(notices: bool) -> Vec<Instruction> {
    // Calls of another table (32 bits) have other numbers: they pass, and the program is named as one with a gap.
    let mut program = vec![
        load(ARCHITECTURE),
        Instruction { code: IF_EQUAL, jt: 1, jf: 0, k: ARCH },
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    program.push(load(NUMBER));
    for call in KNOWN {
        program.push(when(u32::try_from(call.number).unwrap_or(u32::MAX)));
        program.push(answer(match call.way {
            Way::Noted if notices => libc::SECCOMP_RET_USER_NOTIF,
            _ => libc::SECCOMP_RET_TRACE,
        }));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would answer.
    fn judge(program: &[Instruction], number: u32, arch: u32) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            match code {
                LOAD => loaded = if k == NUMBER { number } else { arch },
                IF_EQUAL => at += usize::from(if loaded == k { jt } else { jf }),
                _ => return k,
            }
        }
    }

    #[test]
    fn calls_that_matter_are_told_and_all_others_pass() {
        let judged = |notices, number: libc::c_long, arch| judge(&filter(notices), number as u32, arch);
        assert_eq!(judged(true, libc::SYS_pread64, ARCH), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(judged(false, libc::SYS_pread64, ARCH), libc::SECCOMP_RET_TRACE);
        assert_eq!(judged(true, libc::SYS_openat, ARCH), libc::SECCOMP_RET_TRACE);
        assert_eq!(judged(true, libc::SYS_futex, ARCH), libc::SECCOMP_RET_ALLOW);
        let other = 0x4000_0003;
        assert_eq!(judged(true, libc::SYS_read, other), libc::SECCOMP_RET_ALLOW);
    }
}
