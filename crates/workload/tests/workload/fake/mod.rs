//! A `System` with unlimited memory for tests of programs: every page that is read stays cached,
//! every call is written to a log, each read takes a microsecond per page.
//!
//! Tasks run to their end inside `spawn`. Left out: everything that a test here does not call;
//! such a call fails with `NotSup`, so that a program that starts to use it is noticed.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pagetide_workload::{Advice, Errno, OpenMode, Portable, System, SystemError, TaskSpec};
use units::{Bytes, Nanos, Pages, Seed};

/// Runs a future that never has to wait.
pub fn block_on<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the fake system never waits"),
    }
}

/// A handle on the fake kernel, as one task sees it.
#[derive(Clone)]
pub struct Fake {
    kernel: Rc<RefCell<Kernel>>,
    cgroup: String,
}

#[derive(Default)]
struct Kernel {
    /// With what the next calls of `open` fail, the first one last.
    opens_fail: Vec<Errno>,
    log: Vec<String>,
    now: Nanos,
    groups: BTreeMap<String, Group>,
    files: BTreeMap<String, CachedFile>,
    fail_call: Option<(&'static str, Errno)>,
    no_reclaim_counters: bool,
    seed: u64,
}

#[derive(Default)]
struct Group {
    active: u64,
    inactive: u64,
}

#[derive(Default)]
struct CachedFile {
    size: u64,
    cached: BTreeSet<u64>,
    active: BTreeSet<u64>,
}

/// Reads of one file in a row make one line of the log.
fn extend_read(line: &str, path: &str, len: u64) -> Option<String> {
    let count = line.strip_prefix(&format!("  read {path} {len} x "))?;
    Some(format!("  read {path} {len} x {}", count.parse::<u64>().ok()? + 1))
}

impl Fake {
    pub fn new() -> Self {
        Self::with_seed(1)
    }

    /// Lets every call of this name fail.
    pub fn failing(call: &'static str, errno: Errno) -> Self {
        let fake = Self::new();
        fake.kernel.borrow_mut().fail_call = Some((call, errno));
        fake
    }

    /// On which a file is not there, then is made by another task before this one makes it.
    pub fn where_another_task_is_faster() -> Self {
        let fake = Self::new();
        fake.kernel.borrow_mut().opens_fail = vec![Errno::Exist, Errno::NoEnt];
        fake
    }

    /// The same run by another seed.
    pub fn with_seed(seed: u64) -> Self {
        let kernel = Kernel { seed, ..Kernel::default() };
        Self { kernel: Rc::new(RefCell::new(kernel)), cgroup: "the root".to_owned() }
    }

    /// Has no counters of reclaim in `memory.stat`, as cgroup v1.
    pub fn without_reclaim_counters() -> Self {
        let fake = Self::new();
        fake.kernel.borrow_mut().no_reclaim_counters = true;
        fake
    }

    /// All calls so far, one a line.
    pub fn log(&self) -> Ref<'_, Vec<String>> {
        Ref::map(self.kernel.borrow(), |kernel| &kernel.log)
    }

    fn call(&self, call: &'static str, subject: &str, line: String) -> Result<(), SystemError> {
        let mut kernel = self.kernel.borrow_mut();
        let indent = if self.cgroup == "the root" { "" } else { "  " };
        kernel.log.push(format!("{indent}{line}"));
        match kernel.fail_call {
            Some((failing, errno)) if failing == call => Err(SystemError::new(call, subject, errno)),
            _ => Ok(()),
        }
    }

    fn unsupported<T>(&self, call: &'static str) -> Result<T, SystemError> {
        Err(SystemError::new(call, "", Errno::NotSup))
    }
}

impl System for Fake {
    type File = String;
    type Mapping = ();
    type Task<T: Portable> = T;

    fn now(&self) -> Nanos {
        self.kernel.borrow().now
    }

    async fn sleep(&self, length: Nanos) {
        self.kernel.borrow_mut().now += length;
    }

    async fn spin(&self, length: Nanos) {
        self.kernel.borrow_mut().now += length;
    }

    fn cpus_online(&self) -> u16 {
        1
    }

    fn nodes_online(&self) -> u16 {
        1
    }

    fn memory_total(&self) -> Pages {
        Pages(u64::MAX)
    }

    fn seed(&self) -> Seed {
        Seed(self.kernel.borrow().seed)
    }

    async fn set_oom_score_adj(&self, adj: i16) -> Result<(), SystemError> {
        self.call("write oom_score_adj", &adj.to_string(), format!("oom_score_adj {adj}"))
    }

    async fn oom_kills(&self) -> Result<u64, SystemError> {
        Ok(0)
    }

    fn mark(&self, phase: &str) {
        self.kernel.borrow_mut().log.push(format!("mark {phase}"));
    }

    async fn spawn<T, F, Fut>(&self, spec: TaskSpec, program: F) -> Result<T, SystemError>
    where
        T: Portable,
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
    {
        let cgroup = spec.cgroup.expect("programs under test put tasks in cgroups");
        self.call("spawn", &cgroup, format!("spawn {} in {cgroup}", spec.name))?;
        if !self.kernel.borrow().groups.contains_key(&cgroup) {
            return Err(SystemError::new("spawn", cgroup, Errno::NoEnt));
        }
        Ok(block_on(program(Self { kernel: self.kernel.clone(), cgroup })))
    }

    fn has_ended<T: Portable>(&self, _task: &T) -> bool {
        true
    }

    async fn join<T: Portable>(&self, task: T) -> Result<T, SystemError> {
        self.call("join", "", "join".to_owned())?;
        Ok(task)
    }

    async fn cgroup_create(&self, path: &str) -> Result<(), SystemError> {
        self.call("mkdir", path, format!("cgroup_create {path}"))?;
        self.kernel.borrow_mut().groups.insert(path.to_owned(), Group::default());
        Ok(())
    }

    async fn cgroup_remove(&self, _: &str) -> Result<(), SystemError> {
        self.unsupported("rmdir")
    }

    async fn cgroup_write(&self, path: &str, file: &str, value: &str) -> Result<(), SystemError> {
        self.call("write", path, format!("cgroup_write {path} {file} {value}"))
    }

    async fn cgroup_read(&self, path: &str, file: &str) -> Result<String, SystemError> {
        self.call("cgroup_read", path, format!("cgroup_read {path} {file}"))?;
        let kernel = self.kernel.borrow();
        let below = |name: &str| name == path || name.starts_with(&format!("{path}/"));
        let members = || kernel.groups.iter().filter(|(name, _)| below(name)).map(|(_, group)| group);
        let active: u64 = members().map(|group| group.active).sum();
        let inactive: u64 = members().map(|group| group.inactive).sum();
        let (active, inactive) = (active * 4096, inactive * 4096);
        let reclaim = "pgscan 5\npgsteal 4\npgrefill 3\npgdeactivate 2\n";
        let reclaim = if kernel.no_reclaim_counters { "" } else { reclaim };
        Ok(format!("inactive_file {inactive}\nactive_file {active}\n{reclaim}"))
    }

    async fn make_dir(&self, _: &str) -> Result<(), SystemError> {
        self.unsupported("mkdir")
    }

    async fn lay_out_file(&self, path: &str, size: Bytes) -> Result<(), SystemError> {
        self.call("lay_out_file", path, format!("lay_out_file {path} {size}"))?;
        let file = CachedFile { size: size.get(), ..CachedFile::default() };
        self.kernel.borrow_mut().files.insert(path.to_owned(), file);
        Ok(())
    }

    async fn open(&self, path: &str, mode: OpenMode) -> Result<String, SystemError> {
        self.call("open", path, format!("open {path} {mode:?}"))?;
        match self.kernel.borrow_mut().opens_fail.pop() {
            Some(errno) => Err(SystemError::new("open", path, errno)),
            None => Ok(path.to_owned()),
        }
    }

    async fn read(&self, path: &String, offset: u64, len: u64) -> Result<u64, SystemError> {
        let longer = self.log().last().and_then(|line| extend_read(line, path, len));
        match longer {
            Some(line) => *self.kernel.borrow_mut().log.last_mut().unwrap() = line,
            None => self.call("read", path, format!("read {path} {len} x 1"))?,
        }
        let mut kernel = self.kernel.borrow_mut();
        let kernel = &mut *kernel;
        let file = kernel.files.get_mut(path).unwrap();
        let len = len.min(file.size.saturating_sub(offset));
        let group = kernel.groups.get_mut(&self.cgroup).unwrap();
        for page in (offset / 4096)..(offset + len).div_ceil(4096) {
            kernel.now += Nanos::from_micros(1);
            if file.cached.insert(page) {
                group.inactive += 1;
            } else if file.active.insert(page) {
                group.inactive -= 1;
                group.active += 1;
            }
        }
        Ok(len)
    }

    async fn write(&self, _: &String, _: u64, _: u64) -> Result<u64, SystemError> {
        self.unsupported("write")
    }

    async fn fsync(&self, _: &String) -> Result<(), SystemError> {
        self.unsupported("fsync")
    }

    async fn sync(&self) -> Result<(), SystemError> {
        self.unsupported("sync")
    }

    async fn file_size(&self, _: &str) -> Result<u64, SystemError> {
        self.unsupported("stat")
    }

    async fn advise_random(&self, _: &String) -> Result<(), SystemError> {
        self.unsupported("posix_fadvise")
    }

    async fn unlink(&self, _: &str) -> Result<(), SystemError> {
        self.unsupported("unlink")
    }

    async fn resident_pages(&self, path: &String, offset: u64, len: u64) -> Result<u64, SystemError> {
        self.call("mincore", path, format!("resident_pages {path} {offset} {len}"))?;
        Ok(self.kernel.borrow().files[path].cached.len() as u64)
    }

    async fn map_anonymous(&self, _: Bytes) -> Result<(), SystemError> {
        self.unsupported("mmap")
    }

    async fn touch(&self, (): &(), _: u64, _: u64) -> Result<(), SystemError> {
        self.unsupported("touch")
    }

    async fn fill(&self, (): &(), _: u64, _: u64) -> Result<(), SystemError> {
        self.unsupported("memset")
    }

    async fn advise(&self, (): &(), _: Advice) -> Result<(), SystemError> {
        self.unsupported("madvise")
    }

    async fn mapping_resident(&self, (): &(), _: u64, _: u64) -> Result<u64, SystemError> {
        self.unsupported("mincore")
    }

    async fn lock_memory(&self, (): &(), _: u64, _: u64) -> Result<(), SystemError> {
        self.unsupported("mlock")
    }

    async fn drop_caches(&self, mask: u8) -> Result<(), SystemError> {
        self.call("drop_caches", "", format!("drop_caches {mask}"))
    }

    async fn sysctl_read(&self, _: &str) -> Result<String, SystemError> {
        self.unsupported("sysctl_read")
    }

    async fn sysctl_write(&self, _: &str, _: &str) -> Result<(), SystemError> {
        self.unsupported("sysctl_write")
    }

    async fn vmstat(&self) -> Result<Vec<(String, u64)>, SystemError> {
        self.unsupported("vmstat")
    }
}
