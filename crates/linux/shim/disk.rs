//! `pread()`, `pwrite()` and `write()` for User-Mode Linux, whose disks take a system call of the host for each page.
//!
//! A disk's driver goes through a request page by page (`do_io()` in `ubd_kern.c`), in a thread of its own, and
//! answers a number of requests at once by a `write()` to a pipe. Nobody looks at a request's pages before that
//! answer. So this library, which stands before the C library's functions (`LD_PRELOAD`), keeps what that thread
//! reads and writes, and does it as few large calls ([`batch`]) before the thread writes anything.
//!
//! What the host then cannot do, such as writing to a full disk, was answered as done: it ends the kernel, with words
//! on its standard error. Left out: kernels that are linked statically, whose disks are as slow as they were.
//! `build.rs` makes a shared library of it, without any other; `vm/uml/preload.rs` uses it.
#![no_std]
#![expect(unsafe_code, reason = "it makes system calls by hand, with memory that its callers name")]

mod batch;
mod sys;

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use batch::{At, Batch, Kind};
use sys::{IoVec, call, returned};

const SYS_WRITE: c_long = 1;
const SYS_PREAD: c_long = 17;
const SYS_PWRITE: c_long = 18;
const SYS_KILL: c_long = 62;
const SYS_EXIT_GROUP: c_long = 231;
const SYS_GETTID: c_long = 186;
const SIGKILL: c_long = 9;
const STDERR: c_long = 2;
const ENOSPC: c_int = 28;

/// The thread that the program begins with: it is the kernel, and waits for none of its own answers.
static KERNEL: AtomicI64 = AtomicI64::new(0);
/// The thread of the disks: the first other one that reads or writes at an offset.
static DISKS: AtomicI64 = AtomicI64::new(0);
/// Whether [`BATCH`] has anything, for threads that it is not of.
static IS_FULL: AtomicBool = AtomicBool::new(false);
/// What the thread of the disks has not done yet. It alone touches it. On its stack it would have no room.
static mut BATCH: Batch = Batch::new();

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Runs as the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    KERNEL.store(thread(), Ordering::Relaxed);
}

fn thread() -> c_long {
    // SAFETY: it touches no memory.
    unsafe { call(SYS_GETTID, [0; 5]) }
}

/// Whether this is the thread of the disks.
fn is_of_disks() -> bool {
    let this = thread();
    this != KERNEL.load(Ordering::Relaxed)
        && match DISKS.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(other) => other == this,
        }
}

/// Keeps the call, if it is one of the disks'; else makes it.
///
/// # Safety
/// As those of `pread(2)` and `pwrite(2)`; the memory of the disks' calls stays as it is until the thread calls
/// [`write`].
unsafe fn transfer(at: At, piece: IoVec) -> c_long {
    if !is_of_disks() {
        let number = if at.kind == Kind::Read { SYS_PREAD } else { SYS_PWRITE };
        // SAFETY: the caller promises what the call asks for.
        let result =
            unsafe { call(number, [at.fd.into(), piece.base as c_long, piece.len as c_long, at.offset, 0]) };
        return returned(result);
    }
    IS_FULL.store(true, Ordering::Relaxed);
    // SAFETY: this is the one thread that touches it, and no signal interrupts it: it blocks them. The caller promises
    // the memory.
    if let Err(error) = unsafe { (*(&raw mut BATCH)).add(at, piece) } {
        end(error);
    }
    piece.len as c_long
}

/// The C library's function.
///
/// # Safety
/// See [`transfer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread64(fd: c_int, base: *mut c_void, len: usize, offset: c_long) -> c_long {
    // SAFETY: the caller's promise.
    unsafe { transfer(At { kind: Kind::Read, fd, offset }, IoVec { base, len }) }
}

/// The C library's function.
///
/// # Safety
/// See [`transfer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, base: *const c_void, len: usize, offset: c_long) -> c_long {
    // SAFETY: the caller's promise; nothing is written to the memory of a `Kind::Write`.
    unsafe { transfer(At { kind: Kind::Write, fd, offset }, IoVec { base: base.cast_mut(), len }) }
}

/// The C library's function, before which the thread of the disks does all that it has kept.
///
/// # Safety
/// As that of `write(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, base: *const c_void, len: usize) -> c_long {
    if IS_FULL.load(Ordering::Relaxed) && thread() == DISKS.load(Ordering::Relaxed) {
        IS_FULL.store(false, Ordering::Relaxed);
        // SAFETY: as in `transfer`.
        if let Err(error) = unsafe { (*(&raw mut BATCH)).flush() } {
            end(error);
        }
    }
    // SAFETY: the caller promises what the call asks for.
    returned(unsafe { call(SYS_WRITE, [fd.into(), base as c_long, len as c_long, 0, 0]) })
}

/// Says why and ends all processes of this kernel, which is a process group.
fn end(error: c_int) -> ! {
    let mut other = *b"the host cannot read or write the guest's disk (os error 000)\n";
    let mut rest = error;
    for digit in other.iter_mut().rev().skip(2).take(3) {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    let words: &[u8] =
        if error == ENOSPC { b"the guest's disk: no space left on the host\n" } else { &other };
    // SAFETY: the words are ours, and nothing is left to be done in this program.
    unsafe {
        call(SYS_WRITE, [STDERR, words.as_ptr() as c_long, words.len() as c_long, 0, 0]);
        call(SYS_KILL, [0, SIGKILL, 0, 0, 0]);
        call(SYS_EXIT_GROUP, [1, 0, 0, 0, 0]);
    }
    loop {}
}
