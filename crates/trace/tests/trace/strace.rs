//! Logs of `strace`: what calls become, in which layouts, and what is wrong with some.

use pagetide_trace::import::ImportFormat;
use pagetide_trace::{OperationKind, Trace};

use crate::scene::{files, gaps, operations, refused, trace};

/// As `strace -f -tt -T -y -o LOG` writes it: a shell makes a child, whose lines mix with its own.
pub(crate) const LOG: &str = r#"70  12:00:00.000000 execve("/bin/sh", ["sh", "-c", "work"], 0x7ffd94eaf180 /* 35 vars */) = 0 <0.000177>
70  12:00:00.001000 brk(NULL)           = 0x55e664c88000 <0.000002>
70  12:00:00.001100 brk(0x55e664ca9000) = 0x55e664ca9000 <0.000002>
70  12:00:00.001200 access("/etc/ld.so.preload", R_OK) = -1 ENOENT (Datei oder Verzeichnis nicht gefunden) <0.000003>
70  12:00:00.001300 openat(AT_FDCWD</data>, "../lib/libc.so.6", O_RDONLY|O_CLOEXEC) = 3</lib/libc.so.6> <0.000004>
70  12:00:00.001400 read(3</lib/libc.so.6>, "\177ELF\2\1\1\3\0"..., 832) = 832 <0.000003>
70  12:00:00.001500 newfstatat(3</lib/libc.so.6>, "", {st_mode=S_IFREG|0755, st_size=1926232, ...}, AT_EMPTY_PATH) = 0 <0.000002>
70  12:00:00.001600 mmap(NULL, 1974096, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3</lib/libc.so.6>, 0) = 0x7f888ca8b000 <0.000005>
70  12:00:00.001700 mmap(0x7f888cab1000, 1400832, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED|MAP_DENYWRITE, 3</lib/libc.so.6>, 0x26000) = 0x7f888cab1000 <0.000006>
70  12:00:00.001800 close(3</lib/libc.so.6>) = 0 <0.000002>
70  12:00:00.002000 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>
71  12:00:00.002100 openat(AT_FDCWD</data>, "\303\244 b, c.txt", O_WRONLY|O_CREAT|O_TRUNC, 0666 <unfinished ...>
70  12:00:00.002150 <... clone resumed>, child_tidptr=0x7f888ca88a10) = 71 <0.000150>
70  12:00:00.002200 wait4(-1,  <unfinished ...>
71  12:00:00.002300 <... openat resumed>) = 3</data/\303\244 b, c.txt> <0.000200>
71  12:00:00.002400 dup2(3</data/\303\244 b, c.txt>, 1</dev/pts/0>) = 1</data/\303\244 b, c.txt> <0.000003>
71  12:00:00.002500 close(3</data/\303\244 b, c.txt>) = 0 <0.000002>
71  12:00:00.002600 write(1</data/\303\244 b, c.txt>, "a\"),\n"..., 5000) = 5000 <0.000010>
71  12:00:00.002700 write(1</data/\303\244 b, c.txt>, "b", 1) = 1 <0.000010>
71  12:00:00.002800 fsync(1</data/\303\244 b, c.txt>) = 0 <0.004000>
71  12:00:00.007000 close(1</data/\303\244 b, c.txt>) = 0 <0.000002>
71  12:00:00.007100 rename("\303\244 b, c.txt", "d.txt") = 0 <0.000020>
71  12:00:00.007200 exit_group(0)       = ?
71  12:00:00.007300 +++ exited with 0 +++
70  12:00:00.007400 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 71 <0.005200>
70  12:00:00.007500 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=71, si_uid=0} ---
70  12:00:00.007600 openat(AT_FDCWD</data>, "d.txt", O_RDWR|O_APPEND) = 3</data/d.txt> <0.000004>
70  12:00:00.007700 pread64(3</data/d.txt>, "x"..., 4096, 4096) = 905 <0.000010>
70  12:00:00.007800 write(3</data/d.txt>, "y", 1) = 1 <0.000010>
70  12:00:00.007900 sendfile(1<socket:[77]>, 3</data/d.txt>, [0] => [5002], 8192) = 5002 <0.000010>
70  12:00:00.008000 fadvise64(3</data/d.txt>, 0, 0, POSIX_FADV_DONTNEED) = 0 <0.000003>
70  12:00:00.008100 ftruncate(3</data/d.txt>, 100) = 0 <0.000003>
70  12:00:00.008200 munmap(0x7f888ca8b000, 4096) = 0 <0.000003>
70  12:00:00.008300 madvise(0x7f888cab1000, 8192, MADV_DONTNEED) = 0 <0.000003>
70  12:00:00.008400 unlinkat(AT_FDCWD</data>, "d.txt", 0) = 0 <0.000003>
70  12:00:00.008500 exit_group(0)       = ?
70  12:00:00.008600 +++ exited with 0 +++
"#;

#[test]
fn calls_become_operations_on_files_and_mappings() {
    let trace = trace(LOG);
    assert_eq!((trace.source.as_str(), trace.command.as_str()), ("strace", "sh -c work"));
    insta::assert_snapshot!(operations(&trace), @"
       0  177 t0 exec     - 0+0 0
    1100    2 t0 mmap     mapping 0 0+135168 0
    1300    4 t0 open     /lib/libc.so.6 0+0 1
    1400    3 t0 read     /lib/libc.so.6 0+832 0
    1600    5 t0 mmap     mapping 1 0+1974096 0
    1700    6 t0 munmap   mapping 1 155648+1400832 0
    1700    6 t0 mmap     mapping 2 0+1400832 0
    1800    2 t0 close    /lib/libc.so.6 0+0 0
    2000  150 t0 clone    task 1 0+0 0
    2100  200 t1 open     /data/ä b, c.txt 0+0 6
    2600   10 t1 write    /data/ä b, c.txt 0+5000 0
    2700   10 t1 write    /data/ä b, c.txt 5000+1 0
    2800 4000 t1 fsync    /data/ä b, c.txt 0+0 0
    7000    2 t1 close    /data/ä b, c.txt 0+0 0
    7100   20 t1 rename   /data/ä b, c.txt 0+0 none
    7300    0 t1 exit     - 0+0 0
    7600    4 t0 open     /data/ä b, c.txt 0+0 3
    7700   10 t0 read     /data/ä b, c.txt 4096+905 0
    7800   10 t0 write    /data/ä b, c.txt 5001+1 0
    7900   10 t0 read     /data/ä b, c.txt 0+5002 0
    8000    3 t0 fadvise  /data/ä b, c.txt 0+0 4
    8100    3 t0 truncate /data/ä b, c.txt 0+100 0
    8200    3 t0 munmap   mapping 1 0+4096 0
    8300    3 t0 madvise  mapping 2 0+8192 4
    8400    3 t0 unlink   /data/ä b, c.txt 0+0 0
    8600    0 t0 exit     - 0+0 0
    ");
    insta::assert_snapshot!(files(&trace), @"
    /lib/libc.so.6 1926232
    /data/ä b, c.txt 0
    ");
    insta::assert_snapshot!(gaps(&trace), @"which pages of mappings were touched is not in a log of strace");
    let tasks: Vec<_> = trace.tasks.iter().map(|task| (task.tid, task.process, task.name.as_str())).collect();
    assert_eq!(tasks, [(70, 0, "sh"), (71, 1, "sh")]);
    assert_eq!(trace.length_ns, 8_600_000);
}

/// What is told of the calls themselves, whatever the layout.
fn told(trace: &Trace) -> Vec<(OperationKind, u32, u64, u64)> {
    let operations = trace.operations.iter();
    operations.map(|operation| (operation.kind, operation.object, operation.offset, operation.len)).collect()
}

#[test]
fn all_layouts_tell_the_same_calls() {
    let by_tt = trace(LOG);
    let of_terminal: String =
        LOG.lines().map(|line| format!("[pid    {line}\n").replacen("  12:", "] 12:", 1)).collect();
    let of_seconds = LOG.replace("12:00:00.", "1700000000.");
    let with_commas = LOG.replace("12:00:00.", "12:00:00,").replace("<0.", "<0,");
    for log in [&of_terminal, &of_seconds, &with_commas] {
        let other = trace(log);
        assert_eq!(told(&other), told(&by_tt), "{log}");
        assert_eq!(other.length_ns, by_tt.length_ns);
        assert_eq!(other.operations[0].took_ns, by_tt.operations[0].took_ns);
    }
    // Without `-y` numbers of descriptors and the directory are all there is.
    let mut plain = String::new();
    for line in LOG.lines() {
        let mut rest = line;
        while let Some((before, behind)) = rest.split_once("</") {
            plain.push_str(before);
            rest = behind.split_once('>').expect("it ends").1;
        }
        plain.push_str(&rest.replace("1<socket:[77]>", "1"));
        plain.push('\n');
    }
    let other = trace(&plain);
    assert_eq!(told(&other), told(&by_tt), "{plain}");
    assert!(gaps(&other).contains("paths from a directory that is not in the log"), "{}", gaps(&other));
}

#[test]
fn without_durations_calls_take_what_their_parts_say() {
    let mut log = String::new();
    for line in LOG.lines() {
        let end = line.rfind(" <0.").unwrap_or(line.len());
        log.push_str(&line[..end]);
        log.push('\n');
    }
    let trace = trace(&log);
    assert_eq!(told(&trace), told(&crate::scene::trace(LOG)));
    let made =
        trace.operations.iter().find(|operation| operation.kind == OperationKind::Spawn).expect("a task");
    assert_eq!(made.took_ns, 150_000);
    assert!(gaps(&trace).contains("how long calls took is not in the log"), "{}", gaps(&trace));
}

/// On a terminal the first task has no number, and remarks stand in the middle of lines.
#[test]
fn a_log_from_a_terminal_is_put_together() {
    let log = "\
12:00:00.000100 chdir(\"/data\") = 0
12:00:00.000200 openat(AT_FDCWD, \"a\", O_RDONLY) = 3
12:00:00.000300 clone(child_stack=NULL, flags=SIGCHLD) = 81
12:00:00.000400 wait4(-1, strace: Process 81 attached
 <unfinished ...>
[pid    81] 12:00:00.000500 read(3, \"\"..., 100) = 100
hello from the program
[pid    80] 12:00:00.000600 <... wait4 resumed>NULL, 0, NULL) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
[pid    81] 12:00:00.000700 +++ exited with 0 +++
12:00:00.000800 read(3, \"\"..., 100) = 50
12:00:00.000900 +++ exited with 0 +++
";
    let trace = trace(log);
    insta::assert_snapshot!(operations(&trace), @"
    100    0 t0 open     /data/a 0+0 1
    200    0 t0 clone    task 1 0+0 0
    400    0 t1 read     /data/a 0+100 0
    600    0 t1 exit     - 0+0 0
    700    0 t0 read     /data/a 100+50 0
    800    0 t0 exit     - 0+0 0
    ");
    insta::assert_snapshot!(gaps(&trace), @"
    how long calls took is not in the log (`strace -T`): it counts as computing
    lines that are no calls and are passed over: 1, on line 7
    ");
    assert_eq!(trace.tasks.iter().map(|task| task.tid).collect::<Vec<_>>(), [80, 81]);
}

/// A process with two threads, of which one begins another program.
pub(crate) const THREADS: &str = "\
9 1700000000.000100 openat(AT_FDCWD</>, \"/a\", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC) = 3</a>
9 1700000000.000200 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, exit_signal=0} => {parent_tid=[10]}, 88) = 10
10 1700000000.000300 write(3</a>, \"\"..., 10) = 10
9 1700000000.000400 write(3</a>, \"\"..., 10) = 10
10 1700000000.000500 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000
9 1700000000.000600 mremap(0x7f0000000000, 8192, 16384, MREMAP_MAYMOVE) = 0x7f0000100000
10 1700000000.000700 execve(\"/bin/true\", [\"true\"], 0x7f /* 1 var */ <unfinished ...>
9 1700000000.000800 +++ superseded by execve in pid 10 +++
9 1700000000.000900 <... execve resumed>) = 0
9 1700000000.001000 munmap(0x7f0000100000, 4096) = 0
9 1700000000.001100 +++ killed by SIGKILL +++
";

#[test]
fn threads_share_descriptors_and_memory_and_programs_begin_anew() {
    insta::assert_snapshot!(operations(&trace(THREADS)), @"
       0    0 t0 open     /a 0+0 7
     100    0 t0 clone    task 1 0+0 0
     200    0 t1 write    /a 0+10 0
     300    0 t0 write    /a 10+10 0
     400    0 t1 mmap     mapping 0 0+8192 0
     500    0 t0 munmap   mapping 0 0+8192 0
     500    0 t0 mmap     mapping 1 0+16384 0
     600  200 t1 close    /a 0+0 0
     600  200 t1 exec     - 0+0 0
     700    0 t0 exit     - 0+0 0
    1000    0 t1 exit     - 0+0 0
    ");
}

#[test]
fn midnight_is_no_step_back() {
    let log = "1 23:59:59.999000 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n1 00:00:00.001000 close(3) = 0\n";
    assert_eq!(trace(log).length_ns, 2_000_000);
    let log = "1 12:00:00.5 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n1 12:00:00.4 close(3) = 0\n";
    let back = trace(log);
    assert_eq!(back.length_ns, 0);
    assert!(
        gaps(&back).contains("times that go back are taken as those before: 1, on line 2"),
        "{}",
        gaps(&back)
    );
}

/// Wherever a log is cut, what is before is read, and what was lost is said.
#[test]
fn a_log_may_be_cut_anywhere() {
    let whole = trace(LOG);
    for len in LOG.find("access").expect("a line")..LOG.len() - 1 {
        if !LOG.is_char_boundary(len) {
            continue;
        }
        let cut = trace(&LOG[..len]);
        let count = cut.operations.len();
        assert!(count <= whole.operations.len());
        let lines = LOG[..len].lines().count();
        let is_within = !LOG[..len].ends_with('\n');
        let says = gaps(&cut)
            .contains(&format!("the log ends within a line, which is left out: 1, on line {lines}"));
        assert!(says || !is_within || is_a_line(&LOG[..len]), "{len}: {}", gaps(&cut));
    }
    let cut = trace(&LOG[..LOG.find("70  12:00:00.007400").expect("a line")]);
    assert!(
        gaps(&cut).contains("calls that had not ended when the log ends, left out: 1, on line 14"),
        "{}",
        gaps(&cut)
    );
}

/// Whether the last line, though cut, can be read: of a number or a remark something is left.
fn is_a_line(log: &str) -> bool {
    let last = log.lines().last().unwrap_or_default();
    last.ends_with("<unfinished ...>")
        || last.contains(") = ")
        || last.contains("= ?")
        || last.contains("+++ ")
        || last.contains("--- ")
}

#[test]
fn what_is_no_such_log_is_refused() {
    let refused = |log: &[u8]| refused(ImportFormat::Strace, log);
    insta::assert_snapshot!(refused(b""), @"read as a log of strace: no operation on a file or on memory is in it; it is empty; write it with `strace -f -tt -T -y -o LOG COMMAND`");
    insta::assert_snapshot!(refused(b"openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\nclose(3) = 0\n"), @"read as a log of strace: no operation on a file or on memory is in it; none of its lines is a call; there are 2; write it with `strace -f -tt -T -y -o LOG COMMAND`");
    insta::assert_snapshot!(refused(b"1 12:00:00.1 getpid() = 1\n"), @"read as a log of strace: no operation on a file or on memory is in it; its calls, 1 of them, are of other kinds; write it with `strace -f -tt -T -y -o LOG COMMAND`");
    insta::assert_snapshot!(refused(b"\xff\xfe\x00binary\n\x01\x02\n1 12:00:00.1 close(3) = 0\n"), @"read as a log of strace: no operation on a file or on memory is in it; of its 3 lines only 1 can be read as calls; write it with `strace -f -tt -T -y -o LOG COMMAND`");
    assert_eq!(ImportFormat::of(b"hello\nworld\n"), None);
    assert_eq!(ImportFormat::of(b"time,object,size\n1,2,3\n"), None);
}

#[test]
fn lines_of_the_program_itself_are_passed_over_and_counted() {
    let log = LOG.replace("71  12:00:00.002400", "hello\nworld\n71  12:00:00.002400");
    let trace = trace(&log);
    assert_eq!(told(&trace), told(&crate::scene::trace(LOG)));
    assert!(
        gaps(&trace).contains("lines that are no calls and are passed over: 2, the first on line 16"),
        "{}",
        gaps(&trace)
    );
}
