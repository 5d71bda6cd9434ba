//! What is refused before a kernel boots, and the command line that boots it. Real boots are in `tests/boot.rs`.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::vm::Engine;

/// A kernel of which only its configuration matters.
fn kernel(dir: &Path, config: &str) -> UserMode {
    let kernel =
        Kernel { release: "6.12.113".to_owned(), image: dir.join("linux"), modules: Modules::BuiltIn };
    UserMode { kernel, config: Config::read(config), libraries: None }
}

const ALL: &str = "CONFIG_BLK_DEV_INITRD=y\nCONFIG_PROC_FS=y\nCONFIG_SYSFS=y\nCONFIG_DEVTMPFS=y\nCONFIG_SSL=y\n\
                   CONFIG_BLK_DEV_UBD=y\nCONFIG_MEMCG=y\nCONFIG_VM_EVENT_COUNTERS=y\nCONFIG_EXT4_FS=y\n";

fn spec() -> VmSpec {
    let mut spec = VmSpec::new(Engine::UserMode, VmKernel::parse("6.12"));
    spec.hardware.cpus = 1;
    spec
}

fn told(checked: Result<(), VmError>) -> String {
    let error = checked.unwrap_err();
    format!("{error}\n  {}", error.hint().unwrap_or_default())
}

#[test]
fn what_it_has_not_is_refused_in_words_that_name_what_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = kernel(dir.path(), ALL);
    assert!(check(&spec(), &kernel, 16).is_ok());
    let with = |change: fn(&mut VmSpec)| {
        let mut spec = spec();
        change(&mut spec);
        told(check(&spec, &kernel, 1))
    };
    let refusals = [
        with(|spec| spec.hardware.numa_nodes = 2),
        with(|spec| spec.hardware.cpus = 2),
        with(|spec| spec.hardware.mem = Bytes(1 << 20)),
        with(|spec| spec.filesystem = crate::vm::VmFilesystem::Xfs),
        with(|spec| spec.lru_gen = workload::scenario::LruGen::ON),
        with(|spec| spec.swap = "zram:64M".parse().unwrap()),
        with(|spec| spec.swap = "disk:64M".parse().unwrap()),
        told(check(&spec(), &kernel, 17)),
    ];
    insta::assert_snapshot!(refusals.join("\n"));
}

/// A guest of 64 MiB ran out of memory while it unpacked its archive, and all that a person saw was a crash.
#[test]
fn a_guest_has_room_to_unpack_its_archive() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = spec();
    spec.hardware.mem = Bytes(64 << 20);
    let checked = |release: &str, archive: usize| {
        let mut kernel = kernel(dir.path(), ALL);
        kernel.kernel.release = release.to_owned();
        check_archive(&spec, &kernel, archive).map_err(|error| error.to_string())
    };
    let refused = |release: &str, least: &str| {
        Err(format!("User-Mode Linux {release} needs at least {least} of memory to boot, not 64M"))
    };
    let archive = (34 << 20) + 1;
    assert_eq!(checked("5.10.46", archive), Ok(()));
    assert_eq!(checked("6.1.176", archive), refused("6.1.176", "69M"));
    assert_eq!(checked("6.12.113", archive), refused("6.12.113", "76M"));
    assert_eq!(checked("7.3.0-rc1", archive), refused("7.3.0-rc1", "78M"));
    assert_eq!(checked("6.12.113", 23 << 20), Ok(()), "a smaller program");
}

#[test]
fn each_option_that_every_guest_needs_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for option in ["MEMCG", "SSL", "BLK_DEV_UBD", "DEVTMPFS"] {
        let lacking = kernel(dir.path(), &ALL.replace(&format!("CONFIG_{option}=y\n"), ""));
        let told = told(check(&spec(), &lacking, 1));
        assert!(told.contains(&format!("CONFIG_{option}=y")), "{told}");
    }
}

#[test]
fn what_is_no_such_kernel_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = find(&VmKernel::Path(path), Path::new("/none")).unwrap_err();
        error.to_string().rsplit_once("used: ").unwrap().1.to_owned()
    };
    let mut arm = b"\x7fELF\x02\x01\x01".to_vec();
    arm.resize(64, 0);
    (arm[16], arm[18]) = (2, 183);
    let mut plain = arm.clone();
    plain[18] = 62;
    let told = [
        refused("text", b"#!/bin/sh\n"),
        refused("bzImage", &crate::vm::kernels::tests::image("6.12.1")),
        refused("arm", &arm),
        refused("program", &plain),
    ];
    insta::assert_snapshot!(told.join("\n"));
    let folder = find(&VmKernel::Path(dir.path().to_owned()), Path::new("/none")).unwrap_err().to_string();
    assert!(
        folder.ends_with("a folder without the program `linux`, which `make ARCH=um linux` makes"),
        "{folder}"
    );
    let missing = find(&VmKernel::parse("6.12"), dir.path()).unwrap_err();
    assert_eq!(missing.hint().as_deref(), Some("fetch one: `pagetide uml fetch 6.12`"));
}

#[test]
fn the_kernel_is_started_in_the_folder_of_the_run_by_names_without_paths() {
    let dir = tempfile::tempdir().unwrap();
    let disks = ["disk0", "disk1", "swap0"].map(|name| dir.path().join(name));
    let files = Files { dir: dir.path(), initramfs: &dir.path().join("initramfs"), disks: &disks };
    let words = arguments(&spec(), &files).join(std::ffi::OsStr::new(" ")).into_string().unwrap();
    insta::assert_snapshot!(words);
    let command = command(&spec(), &kernel(dir.path(), ALL), &files).unwrap();
    assert_eq!(command.get_current_dir(), Some(dir.path()));
}

/// Told that its parent is gone, the keeper removes the folder and ends what it has started, also what does not
/// listen and has a session of its own, as kernels have.
#[test]
fn the_keeper_leaves_no_process_and_no_folder() {
    assert!(!is_there_after(rustix::process::Signal::TERM), "the folder is gone");
}

/// Under `nohup` guests that were stopped went on for ever: a shell cannot trap what is ignored when it starts.
#[test]
fn the_keeper_ends_its_guest_under_nohup() {
    assert!(is_there_after(rustix::process::Signal::USR1), "whoever asks looks into the folder");
}

/// Whether the folder of a run is there when its keeper, to which SIGHUP means nothing, has ended its guest at this
/// signal.
fn is_there_after(signal: rustix::process::Signal) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let (run, ready) = (dir.path().join("run"), dir.path().join("ready"));
    std::fs::create_dir(&run).unwrap();
    let script = dir.path().join("kernel");
    let helpers = format!("trap \"\" TERM; sleep 600 & echo $! > {}; wait", ready.display());
    std::fs::write(&script, format!("#!/bin/sh\nexec setsid sh -c '{helpers}'\n")).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"trap "" HUP; exec /bin/sh -c "$@""#, "sh", KEEPER, "sh"]).arg(&run).arg(&script);
    let mut keeper = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
    let begin = std::time::Instant::now();
    let helper: i32 = loop {
        if let Ok(Ok(pid)) = std::fs::read_to_string(&ready).map(|text| text.trim().parse()) {
            break pid;
        }
        assert!(begin.elapsed().as_secs() < 60, "it does not start");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let pid = rustix::process::Pid::from_child(&keeper);
    rustix::process::kill_process(pid, signal).unwrap();
    keeper.wait().unwrap();
    let is_running = || {
        let stat = std::fs::read_to_string(format!("/proc/{helper}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
    };
    while is_running() {
        assert!(begin.elapsed().as_secs() < 60, "{helper} still runs");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    run.exists()
}
