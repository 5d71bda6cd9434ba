//! The guest's side: this program as process 1 of a kernel that has nothing else.
//!
//! It mounts what programs expect, loads modules, opens the channel to the host, prepares the
//! machine (data disk, readahead, multi-gen LRU, cgroup) and then calls [`crate::run()`] as any
//! other caller would. Whatever happens, the last thing is a message and the power going off.
//!
//! Left out: network, users, reaping processes that the workload did not wait for (the machine
//! ends with the run).

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::MountFlags;
use rustix::system::RebootCommand;
use rustix::termios::OptionalActions;
use units::{Bytes, Pages, Seed};
use workload::Workload;
use workload::scenario::{Swap, SwapDevice, Zswap};

use super::error::NO_LRU_GEN_HINT;
use super::image::VmFilesystem;
use super::needs::{self, Missing};
use super::protocol::{
    BEYOND_VARIABLE, GUEST_OF_UML, GUEST_VARIABLE, HEARTBEAT, JOB_PATH, Job, Message, PORT_NAME, TRACE_PATH,
    last_words, with_packed_trace,
};
use super::swap;
use crate::spec::{CgroupVersion, LinuxResult, LinuxRun, RootPaths, Told};

/// Where the modules lie, in the order of their names.
pub const MODULE_DIR: &str = "modules";

/// Where data disks are mounted: the second at `/data1`.
const DATA_DIR: &str = "/data";
/// The serial line of User-Mode Linux.
const UML_LINE: &str = "/dev/ttyS0";
const CGROUP_DIR: &str = "/sys/fs/cgroup";
const LRU_GEN_OFF: &str = "0x0000";
const MODULE_HINT: &str = "its modules must be of the same build as the image; the last lines of \
                           `dmesg` in such a kernel say more: build both anew (`make`)";
const DEVICE_PATIENCE: Duration = Duration::from_secs(20);
/// After the time at which a living host gives the guest up.
const HOST_LEEWAY: Duration = Duration::from_secs(60);

/// What the guest runs on, which decides how its devices are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Platform {
    /// QEMU's machine, with virtio.
    Qemu,
    /// User-Mode Linux.
    UserMode,
}

impl Platform {
    /// This guest's, from the kernel's command line.
    fn here() -> Self {
        match std::env::var(GUEST_VARIABLE) {
            Ok(value) if value == GUEST_OF_UML => Self::UserMode,
            _ => Self::Qemu,
        }
    }

    /// The name of a disk, the first being 0.
    fn disk(self, disk: u16) -> String {
        let letter = char::from(b'a' + u8::try_from(disk).expect("at most 24 disks"));
        match self {
            Self::Qemu => format!("vd{letter}"),
            Self::UserMode => format!("ubd{letter}"),
        }
    }
}

/// Call this first in `main`: in a guest it runs the job and never returns; elsewhere it does
/// nothing.
pub fn become_init_in_a_guest() {
    if std::process::id() == 1 && std::env::var_os(GUEST_VARIABLE).is_some() {
        live();
    }
}

fn live() -> ! {
    match open_channel() {
        Ok(channel) => {
            let message = match catch_unwind(AssertUnwindSafe(|| work(&channel))) {
                Ok(Ok(result)) => Message::Done(Box::new(result)),
                Ok(Err(failure)) => Message::Failed { message: failure.message, hint: failure.hint },
                Err(_) => Message::Failed {
                    message: "the program panicked; its words are on the console".to_owned(),
                    hint: None,
                },
            };
            channel.send(&message);
            channel.drain();
        }
        // Without a channel the console is all there is; the host reads it there.
        Err(Failure { message, hint }) => {
            let _ = io::stderr().write_all(last_words(&message, hint.as_deref()).as_bytes());
        }
    }
    rustix::fs::sync();
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    std::process::exit(1)
}

struct Failure {
    message: String,
    hint: Option<String>,
}

/// `?` on an I/O error, with what was tried on what.
trait Tried<T> {
    fn tried(self, action: &str, subject: impl AsRef<Path>) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, action: &str, subject: impl AsRef<Path>) -> Result<T, Failure> {
        self.map_err(|error| failure_to(action, subject.as_ref(), error.into()))
    }
}

fn failure_to(action: &str, subject: &Path, error: io::Error) -> Failure {
    failure(format!("cannot {action} `{}`: {error}", subject.display()))
}

fn failure(message: String) -> Failure {
    Failure { message, hint: None }
}

impl From<Missing> for Failure {
    fn from(Missing { message, hint }: Missing) -> Self {
        Self { message, hint: Some(hint) }
    }
}

/// The port to the host. Clones share it; each message goes out whole.
#[derive(Clone)]
struct Channel(Arc<Mutex<File>>);

impl Channel {
    fn send(&self, message: &Message) {
        let Ok(mut line) = serde_json::to_vec(message) else { return };
        line.push(b'\n');
        let mut port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = port.write_all(&line) {
            let _ = writeln!(io::stderr(), "pagetide: cannot write to the host: {error}");
        }
    }

    /// Waits until a serial line has sent all: what it still has is gone when the power goes off. Other ports keep
    /// nothing.
    fn drain(&self) {
        let port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = rustix::termios::tcdrain(&*port);
    }
}

/// Brings the machine so far that it can talk.
fn open_channel() -> Result<Channel, Failure> {
    let plain = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
    mount("proc", "/proc", plain)?;
    mount("sysfs", "/sys", plain)?;
    mount("devtmpfs", "/dev", MountFlags::NOSUID)?;
    load_modules()?;
    let port = match Platform::here() {
        Platform::Qemu => {
            needs::check_channel(Path::new("/sys"))?;
            let port = wait_for(&format!("the port `{PORT_NAME}`"), find_port)?;
            File::options().write(true).open(&port).tried("open", &port)?
        }
        Platform::UserMode => open_line(Path::new(UML_LINE))?,
    };
    let channel = Channel(Arc::new(Mutex::new(port)));
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    channel.send(&Message::Ready { release });
    Ok(channel)
}

fn work(channel: &Channel) -> Result<LinuxResult, Failure> {
    let path = Path::new("/").join(JOB_PATH);
    let text = fs::read(&path).tried("read", &path)?;
    let job: Job = serde_json::from_slice(&text).map_err(|error| failure(format!("bad job: {error}")))?;
    start_heartbeat(channel.clone(), job.timeout);
    let root = prepare(&job)?;
    let workload = with_trace(job.workload().map_err(failure)?)?;
    let spec = LinuxRun {
        workload,
        seed: Seed(job.seed),
        root,
        sysctls: job.sysctls,
        keep_in: None,
        sample_period: job.sample_period,
        limit: job.limit,
        beyond: pages_beyond(),
        tell_every: None,
        host_wide: true,
        alone: true,
    };
    let tell = |told: Told<'_>| match told {
        Told::Phase(text) => channel.send(&Message::Progress(text.to_owned())),
        Told::Kept(outcome) => channel.send(&Message::Kept(outcome.clone())),
        Told::Note(_) | Told::Progress(_) => {}
    };
    crate::run(&spec, &AtomicBool::new(false), &tell)
        .map_err(|error| Failure { message: error.to_string(), hint: error.hint() })
}

/// Pages for this program, from the kernel's command line.
fn pages_beyond() -> Pages {
    let told = std::env::var(BEYOND_VARIABLE).ok();
    Pages(told.and_then(|pages| pages.parse().ok()).unwrap_or(0))
}

/// The workload with its trace, if it was given one, whose file would stay in memory for the whole run.
fn with_trace(workload: Workload) -> Result<Workload, Failure> {
    let path = Path::new("/").join(TRACE_PATH);
    if !path.exists() {
        return Ok(workload);
    }
    let bytes = fs::read(&path).tried("read", &path)?;
    fs::remove_file(&path).tried("remove", &path)?;
    with_packed_trace(workload, &bytes).map_err(failure)
}

/// Says "alive" for ever, and ends the machine when the host, which should have done so, is gone.
fn start_heartbeat(channel: Channel, timeout: Duration) {
    let begin = Instant::now();
    thread::spawn(move || {
        while begin.elapsed() < timeout + HOST_LEEWAY {
            thread::sleep(HEARTBEAT);
            channel.send(&Message::Alive);
        }
        let _ = rustix::system::reboot(RebootCommand::PowerOff);
    });
}

/// Mounts the rest and sets what the job says of the machine.
fn prepare(job: &Job) -> Result<RootPaths, Failure> {
    let plain = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
    mount("cgroup2", CGROUP_DIR, plain)?;
    // A kernel without tracing says so in the notes of the run.
    let _ = mount("tracefs", "/sys/kernel/tracing", plain);
    needs::check_memory_controller(Path::new(CGROUP_DIR))?;
    write(Path::new(CGROUP_DIR).join("cgroup.subtree_control"), "+memory")?;
    let cgroup = Path::new(CGROUP_DIR).join("pagetide");
    fs::create_dir(&cgroup).tried("create", &cgroup)?;

    set_lru_gen(Path::new("/sys/kernel/mm/lru_gen/enabled"), job.lru_gen.as_deref())?;
    if Platform::here() == Platform::Qemu {
        needs::check_disk_driver(Path::new("/sys"))?;
    }
    needs::check_filesystem(Path::new("/proc"), job.filesystem.name())?;
    let files = prepare_disk(job, 0)?;
    let more_disks = (1..job.disks).map(|disk| prepare_disk(job, disk)).collect::<Result<_, _>>()?;
    prepare_swap(job)?;
    Ok(RootPaths { files, more_disks, cgroup, version: CgroupVersion::V2 })
}

/// Mounts a data disk, which are all alike; returns the run's directory on it.
fn prepare_disk(job: &Job, disk: u16) -> Result<PathBuf, Failure> {
    let name = Platform::here().disk(disk);
    let device = format!("/dev/{name}");
    let dir = if disk == 0 { DATA_DIR.to_owned() } else { format!("{DATA_DIR}{disk}") };
    wait_for(&device, || Path::new(&device).exists().then_some(()))?;
    let read_ahead = format!("/sys/block/{name}/queue/read_ahead_kb");
    write(read_ahead, &job.read_ahead_kib.to_string())?;
    mount_data(&device, &dir, job.filesystem)?;
    let files = Path::new(&dir).join("run");
    fs::create_dir(&files).tried("create", &files)?;
    Ok(files)
}

/// Switches swap areas on, in their order.
fn prepare_swap(job: &Job) -> Result<(), Failure> {
    let areas: Swap = job.swap.parse().map_err(|problem| failure(format!("bad job: {problem}")))?;
    let (mut disk, mut zram) = (job.disks, 0);
    if let Some(zswap) = areas.zswap {
        set_zswap(Path::new("/sys/module/zswap/parameters"), zswap)?;
    }
    for area in areas.areas {
        let device = match area.device {
            SwapDevice::Disk => {
                disk += 1;
                format!("/dev/{}", Platform::here().disk(disk - 1))
            }
            SwapDevice::Zram => {
                zram += 1;
                prepare_zram(zram - 1, area.size)?
            }
        };
        wait_for(&device, || Path::new(&device).exists().then_some(()))?;
        crate::memory::swap_on(Path::new(&device), area.priority).tried("swap to", &device)?;
    }
    Ok(())
}

/// Makes device `index` of compressed memory a swap area of `size`.
fn prepare_zram(index: u16, size: Bytes) -> Result<String, Failure> {
    if index > 0 {
        // Reading this file adds a device.
        let control = "/sys/class/zram-control/hot_add";
        fs::read(control).tried("read", control)?;
    }
    let device = format!("/dev/zram{index}");
    wait_for(&device, || Path::new(&device).exists().then_some(()))?;
    write(format!("/sys/block/zram{index}/disksize"), &size.get().to_string())?;
    let file = File::options().write(true).open(&device).tried("open", &device)?;
    swap::write_header(&file, size).tried("write", &device)?;
    Ok(device)
}

/// Switches zswap on, which some kernels are built without.
fn set_zswap(parameters: &Path, zswap: Zswap) -> Result<(), Failure> {
    if !parameters.exists() {
        let message = "this kernel has no zswap".to_owned();
        let hint = "leave `zswap+` out of `--swap`: Debian's kernels for clouds are built without it";
        return Err(Failure { message, hint: Some(hint.to_owned()) });
    }
    if let Some(percent) = zswap.max_pool_percent {
        write(parameters.join("max_pool_percent"), &percent.to_string())?;
    }
    write(parameters.join("enabled"), "Y")
}

/// Sets the multi-gen LRU, which some kernels start with, and turns it off where nobody asked for it.
fn set_lru_gen(switch: &Path, wanted: Option<&str>) -> Result<(), Failure> {
    if !switch.exists() {
        let message = "this kernel has no multi-gen LRU".to_owned();
        return match wanted {
            Some(_) => Err(Failure { message, hint: Some(NO_LRU_GEN_HINT.to_owned()) }),
            None => Ok(()),
        };
    }
    write(switch, wanted.unwrap_or("n"))?;
    let now = fs::read_to_string(switch).tried("read", switch)?;
    if wanted.is_none() && now.trim_end() != LRU_GEN_OFF {
        return Err(failure(format!("the multi-gen LRU stays on: {}", now.trim_end())));
    }
    Ok(())
}

fn mount(kind: &str, target: &str, flags: MountFlags) -> Result<(), Failure> {
    fs::create_dir_all(target).tried("create", target)?;
    match rustix::mount::mount(kind, target, kind, flags, None) {
        // Debian's kernel mounts devtmpfs itself.
        Err(rustix::io::Errno::BUSY) => Ok(()),
        other => other.tried("mount", target),
    }
}

/// Keeps ext4 from reading a bitmap for each of its groups in the seconds after `mount`, which is long ago where people
/// work, and by chance before or in a run here.
const SETTLED: &CStr = c"no_prefetch_block_bitmaps";

fn mount_data(device: &str, dir: &str, filesystem: VmFilesystem) -> Result<(), Failure> {
    fs::create_dir_all(dir).tried("create", dir)?;
    let mount = |options| rustix::mount::mount(device, dir, filesystem.name(), MountFlags::NOATIME, options);
    // Kernels that read none do not know the option.
    if filesystem == VmFilesystem::Ext4 && mount(Some(SETTLED)).is_ok() {
        return Ok(());
    }
    mount(None).tried("mount", device)
}

fn load_modules() -> Result<(), Failure> {
    let dir = Path::new("/").join(MODULE_DIR);
    let entries = fs::read_dir(&dir).tried("list", &dir)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let file = File::open(&path).tried("open", &path)?;
        match rustix::system::finit_module(&file, c"", 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => {
                let Failure { message, .. } = failure_to("load", &path, error.into());
                return Err(Failure { message, hint: Some(MODULE_HINT.to_owned()) });
            }
        }
        // The kernel has its copy; the file would stay in memory for the whole run.
        fs::remove_file(&path).tried("remove", &path)?;
    }
    Ok(())
}

/// Opens a serial line as it is: a message is not to be changed on its way.
fn open_line(path: &Path) -> Result<File, Failure> {
    let line = File::options().read(true).write(true).open(path).tried("open", path)?;
    let mut settings = rustix::termios::tcgetattr(&line).tried("ask", path)?;
    settings.make_raw();
    rustix::termios::tcsetattr(&line, OptionalActions::Now, &settings).tried("set up", path)?;
    Ok(line)
}

fn find_port() -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?;
    let port = ports.flatten().find(|port| {
        fs::read_to_string(port.path().join("name")).is_ok_and(|name| name.trim_end() == PORT_NAME)
    })?;
    let device = Path::new("/dev").join(port.file_name());
    device.exists().then_some(device)
}

fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> Result<T, Failure> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if begin.elapsed() > DEVICE_PATIENCE {
            return Err(failure(format!("{what} did not appear")));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn write(path: impl AsRef<Path>, value: &str) -> Result<(), Failure> {
    fs::write(&path, value).tried("write", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_multi_gen_lru_is_off_unless_asked_for_and_a_switch_that_sticks_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let switch = dir.path().join("enabled");
        let set = |wanted| set_lru_gen(&switch, wanted).map_err(|failure| failure.message);
        assert_eq!(set(None), Ok(()), "a kernel without it has it off");
        assert_eq!(set(Some("y")), Err("this kernel has no multi-gen LRU".to_owned()));
        // A plain file keeps what was written, as no kernel's switch does.
        fs::write(&switch, "0x0007\n").unwrap();
        assert_eq!(set(Some("0x0003")), Ok(()));
        assert_eq!(fs::read_to_string(&switch).unwrap(), "0x0003");
        assert_eq!(set(None), Err("the multi-gen LRU stays on: n".to_owned()));
    }
}
