//! CPU time of another process (`clock_getcpuclockid(3)`).

/// The clock of a process's CPU time, as the scheduler counts it, has this in its low bits; above them stands the
/// number of the process, inverted.
const SCHEDULED: libc::clockid_t = 2;
const BITS: u32 = 3;

/// Nanoseconds for which all tasks of a process have run; `None` where it is gone.
#[allow(unsafe_code)]
pub(crate) fn cpu_time(pid: i32) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes this structure.
    let got = unsafe { libc::clock_gettime((!pid << BITS) | SCHEDULED, &raw mut time) };
    (got == 0).then(|| (time.tv_sec.cast_unsigned()) * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_has_used_more_and_who_sleeps_has_not() {
        let mut child = std::process::Command::new("sleep").arg("9").spawn().unwrap();
        let of = |pid: u32| cpu_time(pid as i32);
        let own = of(std::process::id()).unwrap();
        while of(std::process::id()).unwrap() == own {}
        // It begins first, as soon as it may.
        let mut before = None;
        while before.is_none() || before != of(child.id()) {
            before = of(child.id());
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(of(child.id()), None);
    }
}
