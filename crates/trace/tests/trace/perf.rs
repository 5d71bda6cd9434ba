//! What `perf trace` printed.

use pagetide_trace::import::ImportFormat;

use crate::scene::{files, gaps, operations, refused, trace};

/// As perf 6.1 printed it of a shell with children, shortened: names are addresses.
pub(crate) const ADDRESSES: &str = "\
         ? (         ): bash/91  ... [continued]: execve())                                           = 0
     0.056 ( 0.011 ms): bash/91 brk()                                                                 = 0x55c132d4f000
     1.676 ( 0.012 ms): bash/91 openat(dfd: CWD, filename: 0x6034d0b1, flags: RDONLY|CLOEXEC)         = 4
     1.706 ( 0.011 ms): bash/91 read(fd: 4</etc/locale.alias>, buf: 0x55c132d4f4a0, count: 4096)      = 2996
     1.906 ( 0.011 ms): bash/91 mmap(len: 8192, prot: READ, flags: PRIVATE, fd: 4)                    = 0x7f888ca8b000
     2.706 ( 0.011 ms): bash/91 close(fd: 4)                                                          = 0
     6.183 (         ): bash/91 wait4(upid: -1, stat_addr: 0x7ffd8ff1b3d0)                         ...
         ? (         ): :92/92  ... [continued]: clone())                                            = 
    16.309 ( 0.319 ms): dd/92 execve(filename: 0x32d63e30, argv: 0x55c132d607a0, envp: 0x55c132d5f9c0) = 0
    19.668 ( 0.011 ms): dd/92 dup2(oldfd: 4</etc/services>)                                          = 0
    19.730 ( 0.016 ms): dd/92 lseek(offset: 512, whence: SET)                                        = 512
    19.894 ( 1.963 ms): dd/92 read(buf: 0x564831ca5000, count: 4096)                                 = 4096
    21.895 ( 0.139 ms): dd/92 write(fd: 1</srv/out.bin>, buf: 0x564831ca5000, count: 4096)           = 4096
    22.314 ( 0.013 ms): dd/92 write(fd: 2</dev/null>, buf: 0x7fffe8072710, count: 31)                = 31
    22.457 (         ): dd/92 exit_group()                                                          = ?
     5.769 ( 0.218 ms): bash/91 clone(clone_flags: CHILD_CLEARTID|CHILD_SETTID|0x11, child_tidptr: 0x7fa4600f5a10) = 92 (bash)
     6.183 (16.511 ms): bash/91  ... [continued]: wait4())                                            = 92 (dd)
    23.000 (         ): bash/91 read(fd: 5, buf: 0x1, count: 1)                                     ...
";

/// With names of files as texts, and one task whose name is not printed.
pub(crate) const NAMES: &str = "\
     0.311 ( 0.015 ms): openat(dfd: CWD, filename: \"/srv/a, b\", flags: WRONLY|CREAT|TRUNC, mode: IRUGO) = 3
     0.411 ( 0.015 ms): fadvise64(fd: 3</srv/other>, len: 8192, advice: 2)                            = 0
     0.511 ( 0.015 ms): pwrite64(fd: 3</srv/other>, buf: 0x1, count: 4096, pos: 8192)                 = 4096
     0.611 ( 0.015 ms): fsync(fd: 3</srv/other>)                                                      = 0
     0.711 ( 0.015 ms): renameat2(olddfd: CWD, oldname: \"/srv/a, b\", newdfd: CWD, newname: \"/srv/c\") = 0
     0.811 ( 0.015 ms): unlink(pathname: \"/srv/c\")                                                    = 0
     0.911 ( 0.015 ms): open(filename: \"/none\")                                                       = -1 ENOENT (No such file or directory)
";

#[test]
fn children_come_behind_the_call_that_made_them_and_files_are_those_behind_descriptors() {
    let trace = trace(ADDRESSES);
    assert_eq!(trace.source, "perf-trace");
    let tasks: Vec<_> = trace.tasks.iter().map(|task| (task.tid, task.parent, task.name.as_str())).collect();
    assert_eq!(tasks, [(91, u32::MAX, "bash"), (92, 0, "dd")]);
    insta::assert_snapshot!(operations(&trace), @"
     1650   11 t0 read     /etc/locale.alias 0+2996 0
     1850   11 t0 mmap     mapping 0 0+8192 0
     2650   11 t0 close    /etc/locale.alias 0+0 0
     5713  218 t0 clone    task 1 0+0 0
    16253  319 t1 exec     - 0+0 0
    19838 1963 t1 read     /etc/services 512+4096 0
    21839  139 t1 write    /srv/out.bin 0+4096 0
    22401    0 t1 exit     - 0+0 0
    ");
    insta::assert_snapshot!(files(&trace), @"
    /etc/locale.alias 8192
    /etc/services 4608
    /srv/out.bin 0
    ");
    insta::assert_snapshot!(gaps(&trace), @"
    which pages of mappings were touched is not in a log of perf-trace
    calls that had not ended when the log ends, left out: 1, on line 18
    files opened by names that are addresses in the log: they are what /proc said of their numbers when later lines were printed, which may be of a later file: 1, on line 3
    ");
}

#[test]
fn names_count_more_than_what_proc_said_later() {
    let trace = trace(NAMES);
    insta::assert_snapshot!(operations(&trace), @"
      0   15 t0 open     /srv/a, b 0+0 6
    100   15 t0 fadvise  /srv/a, b 0+8192 2
    200   15 t0 write    /srv/a, b 8192+4096 0
    300   15 t0 fsync    /srv/a, b 0+0 0
    400   15 t0 rename   /srv/a, b 0+0 none
    500   15 t0 unlink   /srv/a, b 0+0 0
    ");
    insta::assert_snapshot!(gaps(&trace), @"");
}

#[test]
fn names_of_programs_may_have_anything_in_them_and_times_may_be_those_of_the_machine() {
    let line = |who: &str| format!("54253940.067 ( 0.012 ms): {who}read(fd: 3</srv/a>, count: 9) = 9\n");
    for (who, tid, name) in [
        ("tmux: server/7 ", 7, "tmux: server"),
        ("(sd-pam)/8 ", 8, "(sd-pam)"),
        ("kworker/0:1/9 ", 9, "kworker/0:1"),
        (":5/5 ", 5, ""),
        ("6 ", 6, ""),
        ("", 0, ""),
    ] {
        let trace = trace(&line(who));
        assert_eq!((trace.tasks[0].tid, trace.tasks[0].name.as_str()), (tid, name));
        assert_eq!(
            (trace.operations[0].at_ns, trace.operations[0].took_ns, trace.operations[0].len),
            (0, 12_000, 9)
        );
    }
}

#[test]
fn lines_of_other_kinds_are_passed_over_and_counted_and_a_summary_ends_the_log() {
    let log = format!(
        "hello\n{NAMES}LOST 13 events!\n     1.000 ( 0.000 ms): a/1 minfault [f+0x1] => /lib/a@0x2 (x.)\n\n \
         Summary of events:\n\n a (1), 2 events\n"
    );
    insta::assert_snapshot!(gaps(&trace(&log)), @"
    lines that are no calls and are passed over: 2, the first on line 1
    lines that say that events were lost: 1, on line 9
    ");
    // A log that was cut.
    let cut = &NAMES[..NAMES.len() - 130];
    insta::assert_snapshot!(gaps(&trace(cut)), @"the log ends within a line, which is left out: 1, on line 7");
}

#[test]
fn what_is_no_such_log_is_refused() {
    let refused = |log: &str| refused(ImportFormat::PerfTrace, log.as_bytes());
    insta::assert_snapshot!(refused(""), @"read as a log of perf-trace: no operation on a file or on memory is in it; it is empty; write it with `perf trace -o LOG COMMAND`");
    insta::assert_snapshot!(refused("hello\n"), @"read as a log of perf-trace: no operation on a file or on memory is in it; none of its lines is a call; there are 1; write it with `perf trace -o LOG COMMAND`");
    insta::assert_snapshot!(refused("     0.911 ( 0.015 ms): a/1 getpid() = 1\n"), @"read as a log of perf-trace: no operation on a file or on memory is in it; its calls, 1 of them, are of other kinds; write it with `perf trace -o LOG COMMAND`");
}
