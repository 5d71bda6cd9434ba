//! System calls made by hand, for libraries that stand before those of the C library.

use core::arch::asm;
use core::ffi::{c_int, c_long, c_void};

/// A piece of memory, as `readv(2)` and `ptrace(2)` take it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IoVec {
    pub(crate) base: *mut c_void,
    pub(crate) len: usize,
}

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// The system call as it is: the result, or an error's number below zero.
///
/// # Safety
/// The memory that the arguments name is what this call asks for.
pub(crate) unsafe fn call(number: c_long, [a, b, c, d, e]: [c_long; 5]) -> c_long {
    let result;
    // SAFETY: the call touches what its arguments point to; that is the caller's promise. The instruction changes no
    // other register than those that are named.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result
}

/// What the C library returns for `result`: -1 and `errno` for an error.
pub(crate) fn returned(result: c_long) -> c_long {
    if result >= 0 {
        return result;
    }
    set_errno(-result as c_int);
    -1
}

/// Sets the number of this thread's last error.
pub(crate) fn set_errno(error: c_int) {
    // SAFETY: the C library's own place for it.
    unsafe { *__errno_location() = error };
}
