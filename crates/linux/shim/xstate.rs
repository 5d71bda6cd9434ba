//! `ptrace()` for User-Mode Linux on CPUs with more registers than it knows of.
//!
//! Kernels before 6.13 keep the registers of a program in 2696 bytes, enough for AVX-512. A CPU with AMX (Intel, since
//! 2023) has 11008, and a host takes all of them or none: `PTRACE_SETREGSET` fails with EFAULT and the guest's first
//! program dies ("ptrace set fp regs failed, errno = 14"). This library stands before the C library's `ptrace`
//! (`LD_PRELOAD`) and makes the area whole, with what is missing in its initial state, which it has in a guest, as no
//! program there is given it.
//!
//! `build.rs` makes a shared library of it, without any other; `vm/uml/preload.rs` uses it. Left out: kernels that
//! are linked statically, which no library can stand before.
#![no_std]
#![expect(unsafe_code, reason = "it is the system call `ptrace`, made by hand")]

mod sys;

use core::ffi::{c_long, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use sys::{IoVec, returned, set_errno};

const SYS_PTRACE: c_long = 101;
const PTRACE_PEEKTEXT: c_long = 1;
const PTRACE_PEEKUSER: c_long = 3;
const PTRACE_GETREGSET: c_long = 0x4204;
const PTRACE_SETREGSET: c_long = 0x4205;
/// The set of all registers that `XSAVE` saves.
const NT_X86_XSTATE: c_long = 0x202;
/// Where the header of the area begins: a bit for each component that is not in its initial state.
const XSTATE_BV: usize = 512;
/// The components that lie in the bytes that such a kernel keeps: up to PKRU.
const KEPT: u64 = 0x3ff;
/// More than any CPU of today has.
const AREA_MAX: usize = 16 << 10;

/// Bytes that this host's CPU has for all registers, once it was asked.
static FULL: AtomicUsize = AtomicUsize::new(0);

/// The whole area. It is no variable of a function, as a stack of such a kernel is not larger.
static mut AREA: [u8; AREA_MAX] = [0; AREA_MAX];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The system call as it is: the result, or an error's number below zero.
///
/// # Safety
/// `ptrace(2)` touches what `data` points to, as its request says.
unsafe fn call(request: c_long, pid: c_long, addr: c_long, data: *mut c_void) -> c_long {
    // SAFETY: the caller's promise.
    unsafe { sys::call(SYS_PTRACE, [request, pid, addr, data as c_long, 0]) }
}

/// The C library's function: -1 and `errno` for an error; a peek returns what it found.
///
/// # Safety
/// As that of `ptrace(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptrace(request: c_long, pid: c_long, addr: c_long, data: *mut c_void) -> c_long {
    let mut found: c_long = 0;
    let is_peek = (PTRACE_PEEKTEXT..=PTRACE_PEEKUSER).contains(&request);
    // SAFETY: the caller promises what `ptrace(2)` asks for. A peek writes one long to where the last argument
    // points.
    let result = unsafe {
        match request {
            _ if is_peek => call(request, pid, addr, (&raw mut found).cast()),
            PTRACE_SETREGSET if addr == NT_X86_XSTATE => set_xstate(pid, data.cast()),
            _ => call(request, pid, addr, data),
        }
    };
    if is_peek && result >= 0 {
        set_errno(0);
        return found;
    }
    returned(result)
}

/// Sets all registers of `pid` to the bytes that `part` names, and those beyond them to their initial state.
unsafe fn set_xstate(pid: c_long, part: *const IoVec) -> c_long {
    let bytes = (&raw mut AREA).cast::<u8>();
    // SAFETY: the caller's `part` names bytes that can be read, as `ptrace(2)` asks for. `AREA` has one user at a time:
    // these kernels run on one CPU, in one thread, which is not interrupted while it switches registers. `full` is at
    // most its size, as the kernel was told that.
    unsafe {
        let full = match FULL.load(Ordering::Relaxed) {
            0 => {
                let mut whole = IoVec { base: bytes.cast(), len: AREA_MAX };
                let result = call(PTRACE_GETREGSET, pid, NT_X86_XSTATE, (&raw mut whole).cast());
                if result < 0 {
                    return result;
                }
                FULL.store(whole.len, Ordering::Relaxed);
                whole.len
            }
            full => full,
        };
        let given = (*part).len;
        if given >= full || given < XSTATE_BV + size_of::<u64>() {
            return call(PTRACE_SETREGSET, pid, NT_X86_XSTATE, part.cast_mut().cast());
        }
        ptr::copy_nonoverlapping((*part).base.cast::<u8>(), bytes, given);
        ptr::write_bytes(bytes.add(given), 0, full - given);
        let header = bytes.add(XSTATE_BV).cast::<u64>();
        header.write_unaligned(header.read_unaligned() & KEPT);
        let mut whole = IoVec { base: bytes.cast(), len: full };
        call(PTRACE_SETREGSET, pid, NT_X86_XSTATE, (&raw mut whole).cast())
    }
}
