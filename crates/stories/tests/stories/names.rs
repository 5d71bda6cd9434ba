//! Names, directories, dentries and inodes: what is found, what stays in memory, and in which order it goes.

use std::collections::BTreeMap;

use kernel::{Errno, Filesystem, Machine, Process, WaitReason};
use mm::fs::inode::VfsLru;
use sim::SimKernel;
use units::random::Stream;
use units::{Bytes, CpuId, Nanos, Seed};

use crate::writing::{MIB, World, run_checked};

/// What one part of the tests does on a small machine, and what must hold in the end.
async fn at_rest(kernel: &SimKernel) {
    kernel.sync().await;
    kernel.mem(|mem| mem.check()).expect("a sound state");
    kernel.check_files().expect("names and inodes agree");
}

/// The log of XFS is written, then its inodes; after that nothing keeps them in memory.
async fn until_all_is_clean(kernel: &SimKernel) {
    for _ in 0..3 {
        kernel.machine().sleep(Nanos::from_secs(60), WaitReason::UserSleep).await;
        kernel.drop_caches(3).await.expect("a mask");
    }
}

/// Dentries on their list, negative ones, inodes in memory and on their list.
fn counts(kernel: &SimKernel) -> (u64, u64, u64, u64) {
    kernel.mem(|mem| {
        let vfs = &mem.fs.vfs;
        (vfs.listed(VfsLru::Dentry), vfs.negative_dentries(), vfs.count(), vfs.listed(VfsLru::Inode))
    })
}

/// A file or directory of the model; directories list their names in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File(u64),
    Directory(Vec<String>),
}

/// A filesystem that is a map of paths.
struct Naive(BTreeMap<String, Node>);

fn parent_of(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Naive {
    fn new() -> Self {
        Self(BTreeMap::from([(String::new(), Node::Directory(Vec::new()))]))
    }

    /// The directory of a path, or why there is none.
    fn names(&mut self, path: &str) -> Result<&mut Vec<String>, Errno> {
        let mut above = String::new();
        for part in parent_of(path).0.split('/').filter(|part| !part.is_empty()) {
            above = if above.is_empty() { part.to_owned() } else { format!("{above}/{part}") };
            match self.0.get(&above) {
                None => return Err(Errno::NoEnt),
                Some(Node::File(_)) => return Err(Errno::NotDir),
                Some(Node::Directory(_)) => {}
            }
        }
        match self.0.get_mut(&above) {
            Some(Node::Directory(names)) => Ok(names),
            _ => unreachable!("looked at above"),
        }
    }

    fn find(&mut self, path: &str) -> Result<Node, Errno> {
        self.names(path)?;
        self.0.get(path).cloned().ok_or(Errno::NoEnt)
    }

    fn make(&mut self, path: &str, node: Node) -> Result<(), Errno> {
        if self.find(path).map(|_| ()) != Err(Errno::NoEnt) {
            return self.find(path).and(Err(Errno::Exist));
        }
        self.names(path)?.push(parent_of(path).1.to_owned());
        self.0.insert(path.to_owned(), node);
        Ok(())
    }

    fn remove(&mut self, path: &str, directory: bool) -> Result<(), Errno> {
        match (self.find(path)?, directory) {
            (Node::File(_), true) => return Err(Errno::NotDir),
            (Node::Directory(_), false) => return Err(Errno::IsDir),
            (Node::Directory(names), true) if !names.is_empty() => return Err(Errno::NotEmpty),
            _ => {}
        }
        self.0.remove(path);
        self.names(path)?.retain(|name| name != parent_of(path).1);
        Ok(())
    }
}

/// A path of up to three of a few names, some of them like others but for zeroes.
fn some_path(stream: &mut Stream) -> String {
    const NAMES: [&str; 9] = ["a", "b", "f1", "f01", "f2", "7", "07", "long-name-3", "x9"];
    let parts = 1 + stream.below(3);
    let part = |stream: &mut Stream| NAMES[stream.below(NAMES.len() as u64) as usize];
    (0..parts).map(|_| part(stream)).collect::<Vec<_>>().join("/")
}

/// One step in both worlds.
async fn step(
    kernel: &SimKernel,
    process: &Process,
    naive: &mut Naive,
    stream: &mut Stream,
) -> Result<(), String> {
    let path = some_path(stream);
    let same = |what: &str, got: String, expected: String| {
        if got == expected { Ok(()) } else { Err(format!("{what} {path}: {got}, expected {expected}")) }
    };
    match stream.below(20) {
        0..=4 => {
            let size = stream.below(9000);
            let made = kernel.open(process, &path, true).await;
            if let Ok(file) = &made {
                kernel.write(process, file, 0, size).await.expect("memory");
            }
            let expected = naive.make(&path, Node::File(size));
            same("create", format!("{:?}", made.map(|_| ())), format!("{expected:?}"))
        }
        5..=7 => {
            let made = kernel.make_dir(process, &path).await;
            same(
                "mkdir",
                format!("{made:?}"),
                format!("{:?}", naive.make(&path, Node::Directory(Vec::new()))),
            )
        }
        8..=10 => {
            let size = kernel.stat(process, &path).await.map(|size| size.get());
            let expected = naive.find(&path).map(|node| match node {
                Node::File(size) => size,
                Node::Directory(_) => 4096,
            });
            same("stat", format!("{size:?}"), format!("{expected:?}"))
        }
        11..=12 => {
            let opened = kernel.open(process, &path, false).await.map(|_| ());
            let expected = naive.find(&path).and_then(|node| match node {
                Node::File(_) => Ok(()),
                Node::Directory(_) => Err(Errno::IsDir),
            });
            same("open", format!("{opened:?}"), format!("{expected:?}"))
        }
        13..=14 => {
            let removed = kernel.unlink(process, &path).await;
            same("unlink", format!("{removed:?}"), format!("{:?}", naive.remove(&path, false)))
        }
        15..=16 => {
            let removed = kernel.remove_dir(process, &path).await;
            same("rmdir", format!("{removed:?}"), format!("{:?}", naive.remove(&path, true)))
        }
        17..=18 => {
            let names = kernel.read_dir(process, &path).await;
            let expected = naive.find(&path).and_then(|node| match node {
                Node::File(_) => Err(Errno::NotDir),
                Node::Directory(names) => Ok(names),
            });
            same("readdir", format!("{names:?}"), format!("{expected:?}"))
        }
        _ => {
            kernel.drop_caches(1 + stream.below(3) as u8).await.expect("a mask");
            Ok(())
        }
    }
}

#[test]
fn names_are_those_of_a_map_of_paths_whatever_leaves_memory() {
    for (kernel, filesystem) in
        [("linux-5.3", Filesystem::Xfs), ("linux-5.10", Filesystem::Ext4), ("linux-6.12", Filesystem::Xfs)]
    {
        for seed in 0..3 {
            World { filesystem, ..World::new(kernel, 16 * MIB) }.run(move |kernel, process| async move {
                let (mut naive, mut stream) = (Naive::new(), Seed(seed).stream("names"));
                for number in 0..600 {
                    if let Err(difference) = step(&kernel, &process, &mut naive, &mut stream).await {
                        panic!("{filesystem:?}, seed {seed}, step {number}: {difference}");
                    }
                    if number % 10 == 0 {
                        kernel.mem(|mem| mem.check()).expect("a sound state");
                    }
                }
                at_rest(&kernel).await;
                kernel.drop_caches(3).await.expect("a mask");
                until_all_is_clean(&kernel).await;
                at_rest(&kernel).await;
                assert_eq!(counts(&kernel), (0, 0, 0, 0), "nobody uses anything");
            });
        }
    }
}

/// Of 3,000 empty files that guests of 5.10 to 7.2 make on ext4, `drop_caches` leaves four inodes; of 1,000 directories
/// all, until they are written.
#[test]
fn inodes_of_new_files_of_ext4_may_leave_memory_and_those_of_directories_when_they_were_written() {
    for kernel in ["linux-5.10", "linux-7.2"] {
        World::new(kernel, 64 * MIB).run(|kernel, process| async move {
            let before = counts(&kernel).2;
            for number in 0..30 {
                drop(kernel.open(&process, &format!("file {number}"), true).await.expect("a new file"));
            }
            for number in 0..10 {
                kernel.make_dir(&process, &format!("directory {number}")).await.expect("a new directory");
            }
            // As `drop_caches` does, without the `sync` before it.
            let drop_slab = || kernel.mem(|mem| mem.drop_slab(CpuId(0)));
            assert_eq!(counts(&kernel).2, before + 40);
            drop_slab();
            assert_eq!(counts(&kernel).2, before + 10, "those of the directories are dirty");
            kernel.sync().await;
            drop_slab();
            assert_eq!(counts(&kernel).2, before);
        });
    }
}

/// Tasks that make, look for and remove the same few names at the same time.
#[test]
fn tasks_that_fight_for_names_leave_a_sound_filesystem() {
    for (kernel, filesystem, seed) in [
        ("linux-5.3", Filesystem::Xfs, 1),
        ("linux-6.1", Filesystem::Ext4, 2),
        ("linux-7.2", Filesystem::Xfs, 3),
    ] {
        let (mut simulation, kernel) = World { filesystem, ..World::new(kernel, 12 * MIB) }.boot();
        let fighters = [0, 1, 2, 3].map(|number| {
            let here = kernel.clone();
            kernel.machine().spawn(&format!("task {number}"), None, async move {
                let process = here.process_start("fighter", mm::MemcgId::ROOT).await.expect("memory");
                let mut stream = Seed(seed).stream(&format!("task {number}"));
                let mut open = Vec::new();
                for _ in 0..300 {
                    let path = some_path(&mut stream);
                    let result = match stream.below(9) {
                        0..=1 => here.open(&process, &path, true).await.map(|file| open.push(file)),
                        2 => here.open(&process, &path, false).await.map(|file| open.push(file)),
                        3 => here.make_dir(&process, &path).await,
                        4 => here.unlink(&process, &path).await,
                        5 => here.remove_dir(&process, &path).await,
                        6 => here.stat(&process, &path).await.map(|_| ()),
                        7 if stream.chance(1, 9) => here.drop_caches(2).await,
                        _ => {
                            open.clear();
                            here.read_dir(&process, &path).await.map(|_| ())
                        }
                    };
                    let fine = matches!(
                        result,
                        Ok(())
                            | Err(Errno::NoEnt
                                | Errno::Exist
                                | Errno::NotDir
                                | Errno::IsDir
                                | Errno::NotEmpty)
                    );
                    assert!(fine, "{result:?}");
                }
                open.clear();
                here.process_exit(&process);
            })
        });
        run_checked(&mut simulation, &kernel, &fighters, 31);
        kernel.check_files().expect("names and inodes agree");
        assert!(counts(&kernel).2 > 3, "something is left");
    }
}

/// ```text
///   stat "f"      negative, on the list           1 dentry    0 inodes
///   create "f"    it is the file's from then on   1           1
///   unlink "f"    negative again                  1           0
/// ```
#[test]
fn a_name_that_does_not_exist_is_remembered_until_its_dentry_goes() {
    World::new("linux-6.1", 64 * MIB).run(|kernel, process| async move {
        assert_eq!(kernel.stat(&process, "f").await, Err(Errno::NoEnt));
        assert_eq!(counts(&kernel), (1, 1, 0, 0));
        let file = kernel.open(&process, "f", true).await.expect("a new file");
        assert_eq!(counts(&kernel), (1, 0, 1, 0), "it is taken off its list when it is met");
        drop(file);
        kernel.unlink(&process, "f").await.expect("it is there");
        assert_eq!(counts(&kernel), (1, 1, 0, 0));
        kernel.drop_caches(2).await.expect("a mask");
        assert_eq!(counts(&kernel), (0, 0, 0, 0));
    });
}

#[test]
fn a_name_that_is_removed_while_others_have_it_open_leaves_no_dentry() {
    World::new("linux-6.1", 64 * MIB).run(|kernel, process| async move {
        let file = kernel.open(&process, "f", true).await.expect("a new file");
        kernel.unlink(&process, "f").await.expect("it is there");
        assert_eq!(counts(&kernel), (0, 0, 1, 0), "it goes with its last user");
        let again = kernel.open(&process, "f", true).await.expect("the name is free");
        drop((file, again));
        kernel.put_closed();
        assert_eq!(counts(&kernel), (1, 0, 1, 0));
        at_rest(&kernel).await;
    });
}

/// ```text
///   a / b / c    "a" is in use by "b", that by "c"; when "c" goes, so do all
/// ```
#[test]
fn a_directory_stays_in_memory_as_long_as_what_is_below_it() {
    World::new("linux-6.1", 64 * MIB).run(|kernel, process| async move {
        kernel.make_dir(&process, "a").await.expect("a new directory");
        kernel.make_dir(&process, "a/b").await.expect("a new directory");
        drop(kernel.open(&process, "a/b/c", true).await.expect("a new file"));
        kernel.put_closed();
        assert_eq!(counts(&kernel), (3, 0, 3, 0), "directories were listed while they were empty");
        assert_eq!(kernel.remove_dir(&process, "a/b").await, Err(Errno::NotEmpty));
        kernel.drop_caches(3).await.expect("a mask");
        assert_eq!(counts(&kernel), (0, 0, 0, 0));
        assert_eq!(kernel.stat(&process, "a/b/c").await.map(|size| size.get()), Ok(0));
        assert_eq!(counts(&kernel), (1, 0, 3, 0), "the way there is in memory, too");
        at_rest(&kernel).await;
    });
}

#[test]
fn a_removed_directory_takes_the_names_along_that_were_not_there() {
    World::new("linux-6.1", 64 * MIB).run(|kernel, process| async move {
        kernel.make_dir(&process, "d").await.expect("a new directory");
        for number in 0..50 {
            drop(kernel.open(&process, &format!("d/{number}"), true).await.expect("a new file"));
        }
        for name in kernel.read_dir(&process, "d").await.expect("names") {
            kernel.unlink(&process, &format!("d/{name}")).await.expect("it is there");
        }
        assert_eq!(counts(&kernel).1, 50);
        kernel.remove_dir(&process, "d").await.expect("it is empty");
        assert_eq!(counts(&kernel), (1, 1, 0, 0), "its own name is left");
        at_rest(&kernel).await;
    });
}

#[test]
fn a_file_that_left_memory_has_its_size_and_its_blocks() {
    for filesystem in [Filesystem::Ext4, Filesystem::Xfs] {
        World { filesystem, ..World::new("linux-6.1", 64 * MIB) }.run(move |kernel, process| async move {
            for (name, size) in [("one", 4096), ("two", 300_000)] {
                let file = kernel.open(&process, name, true).await.expect("a new file");
                kernel.write(&process, &file, 0, size).await.expect("memory");
            }
            until_all_is_clean(&kernel).await;
            assert_eq!(counts(&kernel).2, 0, "{filesystem:?}");
            let reads = kernel.vmstat().into_iter().find(|(name, _)| name == "pgpgin").expect("a counter").1;
            for (name, size) in [("one", 4096), ("two", 300_000)] {
                let file = kernel.open(&process, name, false).await.expect("it is there");
                assert_eq!(kernel.read(&process, &file, 0, 1 << 20).await, Ok(size));
            }
            let after = kernel.vmstat().into_iter().find(|(name, _)| name == "pgpgin").expect("a counter").1;
            assert!(after - reads >= 296, "{filesystem:?}: {} KiB are read from the disk", after - reads);
        });
    }
}

/// ```text
///   read once       pages of it     its directory     its extents
///   small, 25 MiB   6400 inactive   1, active         in the inode
///   other, 25 MiB   6400 inactive   known             in the inode
///   large, 1 GiB    4, one window   1, read again     1: nine extents
/// ```
/// As measured in guests of 6.1 and 6.12 (`a_*`: 6401 pages of a hot file of 6400, and one more for the stream), and
/// in one that read a disk on which a file of 25 MiB was one extent.
#[test]
fn a_directory_is_read_for_its_first_file_and_extents_for_large_ones() {
    const GIB: u64 = 1 << 30;
    World::new("linux-6.12", 256 * MIB).run(|kernel, process| async move {
        let figure = |name: &str| kernel.vmstat().into_iter().find(|(other, _)| other == name).expect(name).1;
        for (name, size) in [("small", 25 * MIB), ("other", 25 * MIB), ("large", GIB)] {
            kernel.lay_out_file(name, Bytes(size)).expect("a new name");
        }
        let before = figure("nr_file_pages");
        for (name, more) in [("small", 6401), ("other", 6400)] {
            let pages = figure("nr_file_pages");
            let file = kernel.open(&process, name, false).await.expect("it is there");
            assert_eq!(kernel.read(&process, &file, 0, 25 * MIB).await, Ok(25 * MIB));
            assert_eq!(figure("nr_file_pages") - pages, more, "{name}");
            assert_eq!(figure("nr_active_file"), 1, "{name}");
        }
        kernel.drop_caches(3).await.expect("a mask");
        let file = kernel.open(&process, "large", false).await.expect("it is there");
        let pages = figure("nr_file_pages");
        assert_eq!(pages - before, 1, "its directory is read again");
        assert_eq!(kernel.read(&process, &file, 0, 4096).await, Ok(4096));
        let first_window = 4;
        assert_eq!(figure("nr_file_pages") - pages, first_window + 1, "extents");
        drop(file);
        at_rest(&kernel).await;
    });
}
