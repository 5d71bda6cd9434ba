//! The seccomp filter: which calls the kernel tells us of, and how.
//!
//! All other calls run at full speed: their answer depends on the number alone, which the kernel remembers. Reads
//! and writes of standard input and output are not left out, though they are mostly pipes: a shell puts files there.
//! Left out are opens whose flags say that they are of a folder.

use crate::calls::{KNOWN, Way};
use crate::sys::Instruction;

/// `AUDIT_ARCH_X86_64`.
pub(crate) const ARCH: u32 = 0xC000_003E;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The lower halves of the second argument and of the third.
const SECOND: u32 = 24;
const THIRD: u32 = 32;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
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

/// Tells of `fcntl` where it makes a descriptor.
fn when_duplicating(number: u32, told: Instruction) -> [Instruction; 6] {
    let is = |jt, jf, k| Instruction { code: IF_EQUAL, jt, jf, k };
    [
        is(0, 5, number),
        load(SECOND),
        is(1, 0, libc::F_DUPFD.cast_unsigned()),
        is(0, 1, libc::F_DUPFD_CLOEXEC.cast_unsigned()),
        told,
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

/// The bit of `O_TMPFILE`, which has that of `O_DIRECTORY`, too.
const TEMPORARY: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();
/// What is opened with one of these bits is a folder, or nothing that can be read.
const NO_FILE: u32 = (libc::O_DIRECTORY | libc::O_PATH).cast_unsigned();

/// Tells of an open, unless its flags, which are in the argument at `flags`, say that it is not of a file.
fn when_opening(number: u32, flags: u32, told: Instruction) -> [Instruction; 6] {
    let is = |code, jt, jf, k| Instruction { code, jt, jf, k };
    [
        is(IF_EQUAL, 0, 5, number),
        load(flags),
        is(IF_ANY_BIT, 1, 0, TEMPORARY),
        is(IF_ANY_BIT, 1, 0, NO_FILE),
        told,
        answer(libc::SECCOMP_RET_ALLOW),
    ]
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
        let told = answer(match call.way {
            Way::Noted if notices => libc::SECCOMP_RET_USER_NOTIF,
            _ => libc::SECCOMP_RET_TRACE,
        });
        let number = u32::try_from(call.number).unwrap_or(u32::MAX);
        match call.number {
            libc::SYS_fcntl => program.extend(when_duplicating(number, told)),
            libc::SYS_openat => program.extend(when_opening(number, THIRD, told)),
            libc::SYS_open => program.extend(when_opening(number, SECOND, told)),
            _ => program.extend([when(number), told]),
        }
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would answer.
    fn judge(program: &[Instruction], number: u32, arch: u32, argument: u32) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            match code {
                LOAD => {
                    loaded = match k {
                        NUMBER => number,
                        ARCHITECTURE => arch,
                        _ => argument,
                    }
                }
                IF_ANY_BIT => at += usize::from(if loaded & k == 0 { jf } else { jt }),
                IF_EQUAL => at += usize::from(if loaded == k { jt } else { jf }),
                _ => return k,
            }
        }
    }

    #[test]
    fn calls_that_matter_are_told_and_all_others_pass() {
        let judged = |notices, number: libc::c_long, arch| judge(&filter(notices), number as u32, arch, 0);
        assert_eq!(judged(true, libc::SYS_pread64, ARCH), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(judged(false, libc::SYS_pread64, ARCH), libc::SECCOMP_RET_TRACE);
        assert_eq!(judged(true, libc::SYS_openat, ARCH), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(judged(true, libc::SYS_mmap, ARCH), libc::SECCOMP_RET_TRACE);
        assert_eq!(judged(true, libc::SYS_futex, ARCH), libc::SECCOMP_RET_ALLOW);
        let other = 0x4000_0003;
        assert_eq!(judged(true, libc::SYS_read, other), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn of_folders_no_open_is_told() {
        let judged = |number: libc::c_long, flags: libc::c_int| {
            judge(&filter(true), number as u32, ARCH, flags.cast_unsigned()) == libc::SECCOMP_RET_USER_NOTIF
        };
        for number in [libc::SYS_openat, libc::SYS_open] {
            for (flags, told) in [
                (libc::O_RDONLY, true),
                (libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC, true),
                (libc::O_RDWR | libc::O_TMPFILE, true),
                (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC, false),
                (libc::O_PATH, false),
            ] {
                assert_eq!(judged(number, flags), told, "{number} {flags:o}");
            }
        }
    }

    #[test]
    fn of_fcntl_only_what_makes_a_number_is_told() {
        let judged = |number: libc::c_long, second: libc::c_int| {
            judge(&filter(true), number as u32, ARCH, second.cast_unsigned())
        };
        assert_eq!(judged(libc::SYS_fcntl, libc::F_DUPFD), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(judged(libc::SYS_fcntl, libc::F_DUPFD_CLOEXEC), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(judged(libc::SYS_fcntl, libc::F_GETFL), libc::SECCOMP_RET_ALLOW);
        assert_eq!(judged(libc::SYS_io_submit, libc::F_GETFL), libc::SECCOMP_RET_USER_NOTIF);
    }
}
