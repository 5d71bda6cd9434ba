//! Small programs of ours. A test that follows one runs itself again, with a file named in the environment: then it
//! is that program.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PLAY_FILE: &str = "CAPTURE_PLAY_FILE";

/// The words that run the test of this name on a file, as a program.
pub(crate) fn play(test: &str, file: &Path) -> Vec<String> {
    let itself = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let file = format!("{PLAY_FILE}={}", file.display());
    ["env", &file, &itself, "--exact", test, "-q"].map(str::to_owned).to_vec()
}

/// The file that a test is to be a program on; none where it is a test.
pub(crate) fn played_on() -> Option<PathBuf> {
    std::env::var_os(PLAY_FILE).map(PathBuf::from)
}

/// Four threads, each reads a hundred pages of its own part.
pub(crate) fn threads(path: &Path) {
    let file = File::open(path).unwrap();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for page in 0..100 {
                    file.read_exact_at(&mut [0; 4096], (part * 100 + page) * 4096).unwrap();
                }
            });
        }
    });
}

/// A thousand threads, most of which end while others begin.
pub(crate) fn short_lived() {
    std::thread::scope(|scope| {
        for _ in 0..1_000 {
            scope.spawn(std::thread::yield_now);
        }
    });
}

/// Fifty times: an open that fails, a copy of a descriptor that takes the number it would have got, and an open of
/// which nothing is used. The last open is closed by `exec`. First a child does so, which has no threads, and then
/// a thread.
#[allow(unsafe_code)]
pub(crate) fn opens(path: &Path) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the harness waits meanwhile, and glibc lets a child use memory.
    let child = unsafe { libc::fork() };
    if child != 0 {
        // SAFETY: it waits for the child of the line above.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    let nowhere = path.with_file_name("nowhere");
    let file = File::open(path).unwrap();
    for _ in 0..50 {
        File::open(&nowhere).unwrap_err();
        let copy = file.try_clone().unwrap();
        File::open(&nowhere).unwrap_err();
        // SAFETY: a copy of a descriptor that is open, which is closed once.
        let other = unsafe { libc::dup(copy.as_raw_fd()) };
        assert!(other >= 0);
        drop(File::open(path).unwrap());
        // SAFETY: as above.
        unsafe { libc::close(other) };
    }
    let _last = File::open(path).unwrap();
    panic!("{}", std::process::Command::new("true").exec());
}

/// Four threads: each opens and reads a file of its own three hundred times, and fails to open another as often.
pub(crate) fn opening_threads(path: &Path) {
    std::thread::scope(|scope| {
        for part in 0..4 {
            let path = path.with_file_name(format!("file{part}"));
            scope.spawn(move || {
                for _ in 0..300 {
                    let file = File::open(&path).unwrap();
                    assert_eq!(file.read_at(&mut [0; 200], 0).unwrap(), 100 + part);
                    File::open(path.with_file_name(format!("nowhere{part}"))).unwrap_err();
                    drop(file);
                    File::open(path.with_file_name("nowhere")).unwrap_err();
                }
            });
        }
    });
}

/// A thread waits for a pipe to be opened, and has a number meanwhile; the first thread opens files, which get the
/// numbers beyond. Then the first thread leaves, and another one goes on. All of that is a child, whose first thread
/// is no test's.
#[allow(unsafe_code)]
pub(crate) fn opens_beside_one_that_waits(path: &Path) {
    // SAFETY: the harness waits meanwhile, and glibc lets a child use memory.
    let child = unsafe { libc::fork() };
    if child != 0 {
        let mut status = -1;
        // SAFETY: it waits for the child of the line above.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        std::process::exit(status);
    }
    let pipe = path.with_file_name("pipe");
    let waits = std::thread::spawn({
        let pipe = pipe.clone();
        move || drop(File::open(pipe).unwrap())
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    let opened: Vec<File> = (0..20).map(|_| File::open(path).unwrap()).collect();
    drop(File::create(&pipe).unwrap());
    waits.join().unwrap();
    drop(opened);
    let path = path.to_owned();
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        for _ in 0..20 {
            File::open(&path).unwrap().read_exact_at(&mut [0; 4], 0).unwrap();
        }
        std::process::exit(0);
    });
    // SAFETY: it ends this thread, which holds nothing that others need.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

static RUNG: AtomicU32 = AtomicU32::new(0);

#[allow(unsafe_code)]
extern "C" fn ring(_: libc::c_int) {
    RUNG.fetch_add(1, Ordering::Relaxed);
}

/// Reads a file while a clock rings, whose handler does not want calls to begin again. No signal ends a read of a
/// file, and on a machine so busy that it rings again before anybody has looked, reads go on all the same.
#[allow(unsafe_code)]
pub(crate) fn alarms(path: &Path) {
    let file = File::open(path).unwrap();
    let every = libc::timeval { tv_sec: 0, tv_usec: 200 };
    let clock = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the handler does nothing, and the structures are whole.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ring as *const () as libc::sighandler_t;
        assert_eq!(libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()), 0);
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &raw const clock, std::ptr::null_mut()), 0);
    }
    let mut byte = [0_u8; 1];
    for at in 0..4_000 {
        // SAFETY: one byte, into one byte.
        let read = unsafe { libc::pread(file.as_raw_fd(), byte.as_mut_ptr().cast(), 1, at % 4096) };
        assert_eq!(read, 1, "{}", std::io::Error::last_os_error());
    }
    assert!(RUNG.load(Ordering::Relaxed) > 0);
}

/// Maps 64 pages of a file and reads 5 far apart; maps 300 pages of memory and writes 200; grows and moves it.
#[allow(unsafe_code)]
pub(crate) fn maps(path: &Path) {
    let file = File::open(path).unwrap();
    let page = 4096;
    // SAFETY: the kernel chooses the addresses, and what is touched is within.
    unsafe {
        let null = std::ptr::null_mut();
        let mapped = libc::mmap(null, 64 * page, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        libc::madvise(mapped, 64 * page, libc::MADV_RANDOM);
        for at in (0..50).step_by(10) {
            mapped.cast::<u8>().add(at * page).read_volatile();
        }
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(null, 300 * page, rights, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        memory.cast::<u8>().write_bytes(1, 200 * page);
        std::thread::sleep(std::time::Duration::from_millis(100));
        let moved = libc::mremap(memory, 300 * page, 77_777 * page, libc::MREMAP_MAYMOVE);
        assert_ne!(moved, libc::MAP_FAILED);
        moved.cast::<u8>().add(70_000 * page).write_bytes(1, 10 * page);
        libc::munmap(mapped, 64 * page);
    }
}

/// Writes 100 pages of memory and forks. Of them the parent writes 40 again and the child 10 others; the child lives
/// until it has been looked at.
#[allow(unsafe_code)]
pub(crate) fn writes_after_a_fork() {
    let page = 4096;
    // SAFETY: the kernel chooses the address, and what is touched is within; the harness waits meanwhile. The child
    // makes calls only, and is waited for.
    unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(std::ptr::null_mut(), 1234 * page, rights, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        let memory = memory.cast::<u8>();
        memory.write_bytes(1, 100 * page);
        let child = libc::fork();
        let first = if child == 0 { 80 } else { 0 };
        let count = if child == 0 { 10 } else { 40 };
        memory.add(first * page).write_bytes(2, count * page);
        if child == 0 {
            libc::usleep(300_000);
            libc::_exit(0);
        }
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

/// Sends a file of 300,000 bytes to another one, by three calls with a position of their own; then as much of it as a
/// socket takes that nobody reads, and writes down how much that was.
#[allow(unsafe_code)]
pub(crate) fn sends(path: &Path) {
    let file = File::open(path).unwrap();
    let copy = File::create(path.with_file_name("copy")).unwrap();
    let mut at = 0;
    for _ in 0..3 {
        // SAFETY: both are open, and the position is a number of ours.
        let sent = unsafe { libc::sendfile(copy.as_raw_fd(), file.as_raw_fd(), &raw mut at, 100_000) };
        assert_eq!(sent, 100_000);
    }
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    at = 0;
    // SAFETY: as above. The second call finds no room.
    let (some, none) = unsafe {
        let mut send = || libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &raw mut at, 300_000);
        (send(), send())
    };
    assert!(some > 0 && some < 300_000 && none == -1, "{some} {none}");
    std::fs::write(path.with_file_name("sent"), some.to_string()).unwrap();
}
