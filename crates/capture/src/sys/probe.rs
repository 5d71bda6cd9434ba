//! A child that makes calls of each kind many times and tells what each costs it, with us looking.
//!
//! It is a fork of this process, so it only makes system calls, on memory that was made before (see
//! [`super::spawn`]). Costs are the lower quartiles of a few rounds: others may run between.

/// How many times each kind is timed.
const ROUNDS: usize = 12;
/// Bytes of the large read, and pages of a mapping.
const LARGE: usize = 1 << 16;
const PAGES: usize = 16;
const PAGE: usize = 4096;

/// What one call costs, in nanoseconds: those that it ran, and those that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) ran_ns: u32,
    pub(crate) took_ns: u32,
}

/// Kinds that are timed, in this order: a call that does nothing and is told as others are, one that stops at both of
/// its ends, a read of a byte, a large read, an open with its close, a mapping of memory, one that is written to,
/// a mapping of a file, one that is read.
pub(crate) const KINDS: usize = 9;

/// Bytes between the two reads.
pub(crate) const READ_MORE: u64 = LARGE as u64 - 1;
/// Pages of each mapping.
pub(crate) const MAPPED_PAGES: u64 = PAGES as u64;

/// Of each kind so many calls are timed together.
const CALLS: [u32; KINDS] = [32, 4, 16, 4, 8, 3, 3, 3, 3];

/// Times all kinds; `tell` gets them one by one. Each round has all of them, so that who runs beside them runs beside
/// all: what a call costs is told from the cost of another.
#[allow(unsafe_code)]
pub(super) fn probe(room: &mut [u8; LARGE], mut tell: impl FnMut(Cost)) {
    let own = c"/proc/self/exe";
    // SAFETY (all of this function): calls of the kernel on this process's own objects, which live long enough; what
    // is mapped is touched within its bounds and unmapped at once, or the process ends.
    unsafe {
        let file = libc::open(own.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let null = std::ptr::null_mut();
        let at = room.as_mut_ptr().cast();
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = |file: i32, rights: i32, touches: bool| {
            let flags = libc::MAP_PRIVATE | if file == -1 { libc::MAP_ANONYMOUS } else { 0 };
            let from = libc::mmap(null, PAGES * PAGE, rights, flags, file, 0).cast::<u8>();
            if from.cast() == libc::MAP_FAILED {
                return;
            }
            for page in 0..if touches { PAGES } else { 0 } {
                let page = from.add(page * PAGE);
                if file == -1 {
                    page.write_volatile(1)
                } else {
                    std::hint::black_box(page.read_volatile());
                }
            }
            libc::munmap(from.cast(), PAGES * PAGE);
        };
        let call = |kind: usize| match kind {
            0 => {
                libc::close(-1);
            }
            1 => {
                libc::mmap(null, 0, libc::PROT_READ, libc::MAP_PRIVATE, -1, 0);
            }
            2 => {
                libc::pread(file, at, 1, 0);
            }
            3 => {
                libc::pread(file, at, LARGE, 0);
            }
            4 => {
                libc::close(libc::open(own.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC));
            }
            5 => mapped(-1, both, false),
            6 => mapped(-1, both, true),
            7 => mapped(file, libc::PROT_READ, false),
            _ => mapped(file, libc::PROT_READ, true),
        };
        let _warm = timed(16, || call(0));
        let mut rounds = [[Cost::default(); ROUNDS]; KINDS];
        for round in 0..ROUNDS {
            for (kind, costs) in rounds.iter_mut().enumerate() {
                costs[round] = timed(CALLS[kind], || call(kind));
            }
        }
        rounds.into_iter().for_each(|costs| tell(lower_quartile(costs)));
    }
}

/// The room that a probe reads into.
pub(super) fn room() -> Box<[u8; LARGE]> {
    Box::new([0; LARGE])
}

/// What one of so many calls costs.
fn timed(calls: u32, mut call: impl FnMut()) -> Cost {
    let (ran, took) = (clock(libc::CLOCK_THREAD_CPUTIME_ID), clock(libc::CLOCK_MONOTONIC));
    (0..calls).for_each(|_| call());
    let each = |id, since: u64| u32::try_from((clock(id) - since) / u64::from(calls)).unwrap_or(u32::MAX);
    let ran_ns = each(libc::CLOCK_THREAD_CPUTIME_ID, ran);
    Cost { ran_ns, took_ns: each(libc::CLOCK_MONOTONIC, took) }
}

fn lower_quartile(mut rounds: [Cost; ROUNDS]) -> Cost {
    rounds.sort_unstable_by_key(|cost| cost.ran_ns);
    let ran_ns = rounds[ROUNDS / 4].ran_ns;
    rounds.sort_unstable_by_key(|cost| cost.took_ns);
    Cost { ran_ns, took_ns: rounds[ROUNDS / 4].took_ns }
}

#[allow(unsafe_code)]
fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes this structure.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
