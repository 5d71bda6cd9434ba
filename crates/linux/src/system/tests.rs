//! System calls on this host, in folders of their own.

use super::*;

#[test]
fn sysctls_have_two_spellings_and_stay_below_proc_sys() {
    assert_eq!(sysctl_path("vm.swappiness"), Some(PathBuf::from("/proc/sys/vm/swappiness")));
    assert_eq!(sysctl_path("vm/swappiness"), sysctl_path("vm.swappiness"));
    assert_eq!(sysctl_path("vm/../../self/mem"), None);
    let lru_gen = PathBuf::from("/sys/kernel/mm/lru_gen/min_ttl_ms");
    assert_eq!(sysctl_path("lru_gen.min_ttl_ms"), Some(lru_gen));
    let zswap = PathBuf::from("/sys/module/zswap/parameters/max_pool_percent");
    assert_eq!(sysctl_path("zswap.max_pool_percent"), Some(zswap));
}

/// A system whose files and "cgroups" are plain directories, and the monitor's end.
fn plain(groups: &[&str]) -> (tempfile::TempDir, LinuxSystem, crate::control::Receiver) {
    let root = tempfile::tempdir().unwrap();
    let cgroup = root.path().join("cgroup");
    for group in groups.iter().chain(&[""]) {
        fs::create_dir_all(cgroup.join(group)).unwrap();
        fs::write(cgroup.join(group).join("cgroup.procs"), "").unwrap();
    }
    let files = root.path().join("files");
    fs::create_dir(&files).unwrap();
    let paths = crate::spec::RootPaths {
        files: files.clone(),
        more_disks: Vec::new(),
        cgroup,
        version: crate::spec::CgroupVersion::V1,
    };
    let (control, receiver) = crate::control::channel().unwrap();
    // No monitor reads here: what it would answer is there already.
    (0..64).for_each(|_| receiver.acknowledge().unwrap());
    let tree = Tree::open(&paths).unwrap();
    let buffer = RefCell::default();
    let (memory, seed, started) = (Pages(1 << 16), Seed(1), monotonic());
    let shared = Shared {
        files,
        more_disks: Vec::new(),
        tree,
        control,
        host_wide: false,
        vmstat: OnceCell::new(),
        content: CONTENT,
        memory,
        seed,
        started,
        extfrag: None,
        buffer,
        gates: RefCell::default(),
        memories: RefCell::default(),
    };
    (root, LinuxSystem::new(shared), receiver)
}

#[test]
fn a_task_works_on_files_in_its_own_process_and_hands_back_what_it_saw() {
    let (root, system, _receiver) = plain(&["A"]);
    let seen = block_on(async {
        system.lay_out_file("old", Bytes(3 * 4096 + 1)).await?;
        system.make_dir("d").await?;
        let program = |system: LinuxSystem| async move {
            let old = system.open("old", OpenMode::Read).await?;
            let read = system.read(&old, 4096, 1 << 20).await?;
            let new = system.open("d/new", OpenMode::Create).await?;
            let written = system.write(&new, 0, 2 * BUFFER as u64 + 5).await?;
            system.fsync(&new).await?;
            assert_eq!(system.file_size("d/new").await?, written);
            let resident = system.resident_pages(&new, 4096, 8192).await?;
            Ok::<_, SystemError>((std::process::id(), read, written, resident))
        };
        let task = system.spawn(TaskSpec::named("worker").in_cgroup("A"), program).await?;
        system.join(task).await?
    });
    let (pid, read, written, resident) = seen.unwrap();
    assert_ne!(pid, std::process::id());
    assert_eq!((read, written, resident), (2 * 4096 + 1, 2 * BUFFER as u64 + 5, 2));
    assert_eq!(fs::read_to_string(root.path().join("cgroup/A/cgroup.procs")).unwrap(), "0");
    let content = fs::read(root.path().join("files/old")).unwrap();
    assert!(content.len() == 3 * 4096 + 1 && content.iter().all(|&byte| byte == CONTENT));
}

/// A guest of User-Mode Linux ends a process with too many mappings of its host by SIGSEGV.
#[test]
fn a_task_that_a_signal_ended_says_which() {
    let (_root, system, _receiver) = plain(&[]);
    let joined = block_on(async {
        let program = |_| async {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::ALARM).is_ok()
        };
        let task = system.spawn(TaskSpec::named("faulter0"), program).await?;
        system.join(task).await
    });
    assert_eq!(joined.unwrap_err().to_string(), "join `faulter0`: ended by signal 14");
}

#[test]
fn the_count_of_kills_is_read_once_its_line_is_whole() {
    let text = "nr_free_pages 7\noom_kill 12\nnuma_hit 3\n";
    for len in 1..=text.len() {
        let read = |part: &mut [u8], at: u64| {
            let rest = &text.as_bytes()[at as usize..];
            let len = len.min(rest.len()).min(part.len());
            part[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        };
        assert_eq!(kills_of(read).unwrap(), 12, "in parts of {len}");
    }
    assert_eq!(kills_in(&text.as_bytes()[.."nr_free_pages 7\noom_kill 1".len()]), None);
    assert_eq!(kills_in(b"nr_free_pages 7\n"), None);
    let (_root, system, _receiver) = plain(&[]);
    let kills = || block_on(system.oom_kills()).unwrap();
    let before = kills();
    let whole = fs::read("/proc/vmstat").unwrap();
    let listed = kills_in(&whole).unwrap_or(0);
    assert!(
        before <= listed && listed <= kills(),
        "{listed}: the line may be in a later part than the first"
    );
}

#[test]
fn files_are_advised_cut_and_renamed_as_the_kernel_does_it() {
    let (root, system, _receiver) = plain(&[]);
    let in_memory = rustix::fs::statfs(root.path()).unwrap().f_type == 0x0102_1994; // TMPFS_MAGIC
    let left = block_on(async {
        system.lay_out_file("old", Bytes(64 * 4096)).await?;
        let old = system.open("old", OpenMode::ReadWrite).await?;
        let resident = || system.resident_pages(&old, 0, 64 * 4096);
        system.fsync(&old).await?;
        system.advise_file(&old, 0, 0, FileAdvice::DontNeed).await?;
        let left = resident().await?;
        system.read_ahead(&old, 4096, 0).await?;
        assert_eq!(resident().await?, left, "nothing was asked for");
        use FileAdvice::{NoReuse, Normal, Random, Sequential};
        for advice in [Random, Sequential, NoReuse, Normal] {
            system.advise_file(&old, 0, 0, advice).await?;
        }
        system.read_ahead(&old, 0, 32 * 4096).await?;
        assert_eq!(system.read(&old, 0, 32 * 4096).await?, 32 * 4096);
        assert!(resident().await? >= 32);
        system.truncate(&old, 5000).await?;
        assert_eq!(system.file_size("old").await?, 5000);
        system.open("new", OpenMode::Create).await?;
        system.rename("old", "new").await?;
        assert_eq!(system.file_size("new").await?, 5000);
        assert_eq!(system.rename("old", "new").await.unwrap_err().errno, Errno::NoEnt);
        Ok::<_, SystemError>(left)
    });
    assert_eq!(left.unwrap(), if in_memory { 64 } else { 0 });
}

/// ```text
///   made, mapped    child: has it, writes 4 pages, unmaps    those are there    unmapped: who comes now has none
/// ```
#[test]
fn memory_is_shared_by_who_made_it_and_those_that_come_of_it() {
    fn refused<T>(tried: Result<T, SystemError>) -> Result<(), Errno> {
        tried.map(drop).map_err(|error| error.errno)
    }
    let (_root, system, _receiver) = plain(&[]);
    let seen = block_on(async {
        let memory = system.share_memory(Bytes(16 * 4096)).await?;
        let mapping = system.map_shared_memory(memory).await?;
        assert_eq!(refused(system.map_shared_memory(memory).await), Err(Errno::Exist));
        let program = move |system: LinuxSystem| async move {
            let mapping = system.map_shared_memory(memory).await?;
            system.touch(&mapping, 2, 4).await?;
            drop(mapping);
            Ok::<_, SystemError>(refused(system.map_shared_memory(memory).await) == Err(Errno::NoEnt))
        };
        let child = system.spawn(TaskSpec::named("child"), program).await?;
        let is_gone = system.join(child).await??;
        let written = system.mapping_resident(&mapping, 0, 16).await?;
        drop(mapping);
        let late = system.spawn(TaskSpec::named("late"), program).await?;
        Ok::<_, SystemError>((is_gone, written, refused(system.join(late).await?)))
    });
    assert_eq!(seen.unwrap(), (true, 4, Err(Errno::NoEnt)));
    let none = block_on(system.share_memory(Bytes(0))).unwrap_err();
    assert_eq!(none.to_string(), "mmap `0`: invalid argument");
}

#[test]
fn a_killed_task_and_a_missing_cgroup_are_errors_with_names() {
    let (_root, system, _receiver) = plain(&[]);
    let killed = block_on(async {
        let program = |_: LinuxSystem| async {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        };
        let task = system.spawn(TaskSpec::named("victim"), program).await?;
        system.join(task).await
    });
    assert_eq!(killed.unwrap_err().to_string(), "join `victim`: killed: out of memory");
    let missing = block_on(system.spawn(TaskSpec::named("t").in_cgroup("A"), |_| async {}));
    assert_eq!(missing.err().unwrap().to_string(), "spawn `t`: no such file or directory");
}

#[test]
fn what_the_whole_machine_shares_stays_as_it_is_unless_allowed() {
    let (_root, system, mut receiver) = plain(&[]);
    let refused = block_on(system.sysctl_write("vm.swappiness", "60")).unwrap_err();
    assert_eq!(refused.to_string(), "sysctl_write `vm.swappiness`: operation not permitted");
    block_on(system.drop_caches(3)).unwrap();
    let messages = receiver.receive().unwrap();
    assert!(matches!(&messages[..], [Message::Note(note)] if note.contains("own files only")));
    for escape in ["../x", "/etc/passwd"] {
        assert_eq!(block_on(system.open(escape, OpenMode::Read)).err().unwrap().errno, Errno::Inval);
    }
}

/// Counted as the run's, it made `slabs_scanned` and `pgfree` of short runs those of what making their files had left.
#[test]
fn dropping_the_caches_behind_laid_out_files_is_told_as_a_part_of_laying_them_out() {
    let (_root, system, mut receiver) = plain(&[]);
    for _ in 0..2 {
        receiver.acknowledge().unwrap();
    }
    block_on(system.begin_cold()).unwrap();
    let messages = receiver.receive().unwrap();
    assert!(
        matches!(&messages[..], [Message::LaysOut(true), Message::Note(_), Message::LaysOut(false)]),
        "{messages:?}"
    );
}
