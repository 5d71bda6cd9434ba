//! `workload::System` on the simulated kernel: programs become tasks of the simulated machine.
//!
//! A thin layer: each call goes to the kernel, an errno comes back under the name of the call. A spawned task is a
//! process of its own in its cgroup, and pays for its own stack and page tables there.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use kernel::cgroup::files::group_of;
use kernel::machine::CostOp;
use kernel::{
    AnonMapping, Errno, HugeAdvice, Machine, MapHow, OpenFile, Process, QueueId, SharedFile, WaitReason,
};
use mm::MemcgId;
use mm::base::event::{Detail, Trace};
use mm::pages::mapped::AccessAdvice;
use units::{Bytes, CpuId, Nanos, NodeId, Pages, Seed};
use workload::Outcome;
use workload::system::{
    Advice, CpuTime, FileAdvice, FileMapping, Gate, OpenMode, OwnCode, Portable, SharedMemory, System,
    SystemError, TaskSpec,
};

use crate::engine::sim::SimKernel;
use crate::run::buffer::Buffer;
use crate::run::gates::Gates;
use crate::run::laying_out::{begin_cold, keep_journal, lay_out};
use crate::run::memories::Memories;
use crate::run::sample::Sampler;
use crate::run::worked::Worked;

/// The simulated kernel as a program sees it.
#[derive(Clone)]
pub struct SimSystem {
    kernel: SimKernel,
    process: Process,
    sampler: Rc<RefCell<Sampler>>,
    seed: Seed,
    /// Disks for files; those for swap come behind them.
    disks: u16,
    worked: Rc<Worked>,
    /// Pipes between tasks, of all tasks of the program.
    gates: Rc<Gates>,
    /// Directories at the top whose files lie in memory.
    in_memory: Rc<RefCell<Vec<String>>>,
    /// Memory that this task shares with those that it spawns later, unless it has unmapped it.
    memories: Rc<Memories>,
    /// What this task reads to and writes from, and its length in pages.
    buffer: Rc<Buffer>,
}

/// A spawned task: its result, once it has ended.
pub struct SimTask<T> {
    result: Rc<Cell<Option<T>>>,
    started: Started,
}

/// What a task does, and leaves its result by itself.
type Body = Pin<Box<dyn Future<Output = ()>>>;

/// What all tasks have, whatever they come to: how long they have worked, and who waits for them.
struct Started {
    worked: Rc<OnceCell<Rc<Worked>>>,
    done: QueueId,
    process: Process,
}

/// An open file; it is closed, at once, when the last clone is dropped.
#[derive(Clone)]
pub struct SimFile {
    // Fields are dropped in this order: the kernel is told after the descriptor is gone.
    file: Opened,
    _told: TellKernel,
}

#[derive(Clone)]
enum Opened {
    Disk(OpenFile),
    Memory(SharedFile),
}

#[derive(Clone)]
struct TellKernel(SimKernel);

impl Drop for TellKernel {
    fn drop(&mut self) {
        self.0.put_closed();
        self.0.put_shared();
    }
}

/// A mapping that is unmapped when it is dropped.
pub struct SimMapping {
    system: SimSystem,
    mapping: AnonMapping,
    /// Of memory that tasks share: which.
    memory: Option<SharedMemory>,
}

impl Drop for SimMapping {
    fn drop(&mut self) {
        if let Some(memory) = self.memory {
            self.system.memories.forget(memory);
        }
        self.system.kernel.unmap_anonymous(&self.system.process, self.mapping);
    }
}

fn convert(errno: Errno) -> workload::Errno {
    match errno {
        Errno::NoEnt => workload::Errno::NoEnt,
        Errno::Exist => workload::Errno::Exist,
        Errno::NotDir => workload::Errno::NotDir,
        Errno::IsDir => workload::Errno::IsDir,
        Errno::NotEmpty => workload::Errno::NotEmpty,
        Errno::Busy => workload::Errno::Busy,
        Errno::Again => workload::Errno::Other(11), // EAGAIN
        Errno::Inval => workload::Errno::Inval,
        Errno::NoSpc => workload::Errno::NoSpc,
        Errno::NoMem => workload::Errno::NoMem,
        Errno::NotSup => workload::Errno::NotSup,
        Errno::Killed => workload::Errno::Killed,
    }
}

fn failed(call: &'static str, subject: &str) -> impl FnOnce(Errno) -> SystemError {
    move |errno| SystemError::new(call, subject, convert(errno))
}

impl SimSystem {
    /// Whether processes move into their cgroups, as their parent has one of its own.
    fn moves_processes(&self) -> bool {
        self.kernel.machine().build().process.moved.is_some()
    }

    /// The view of the program's first process, in the root cgroup.
    pub(crate) fn new(
        kernel: SimKernel,
        process: Process,
        sampler: Rc<RefCell<Sampler>>,
        seed: Seed,
        disks: u16,
    ) -> Self {
        let worked = Worked::of(kernel.machine().current_task());
        let (gates, in_memory, memories, buffer) = Default::default();
        Self { kernel, process, sampler, seed, disks, worked, gates, in_memory, memories, buffer }
    }

    /// Whether a path leads to where files lie in memory.
    fn is_in_memory(&self, path: &str) -> bool {
        let is_below =
            |top: &String| path.strip_prefix(top.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.in_memory.borrow().iter().any(is_below)
    }

    fn name(&self) -> &str {
        self.process.name()
    }

    /// Starts a task, once for all programs: each would bring the kernel's part with it to compile.
    async fn start(
        &self,
        spec: TaskSpec,
        body: Box<dyn FnOnce(Self) -> Body>,
    ) -> Result<Started, SystemError> {
        let memcg = match &spec.cgroup {
            None => MemcgId::ROOT,
            Some(path) => {
                self.kernel.find_memcg(path).ok_or(Errno::NoEnt).map_err(failed("spawn in cgroup", path))?
            }
        };
        let begins_in = if spec.moved || self.moves_processes() { MemcgId::ROOT } else { memcg };
        let process = self
            .kernel
            .process_fork(&self.process, &spec.name, begins_in)
            .await
            .map_err(failed("spawn", &spec.name))?;
        self.name_memory(&process);
        self.kernel.process_move(&process, memcg);
        process.set_oom_score_adj(self.process.oom_score_adj()).expect("its parent has it");
        let machine = self.kernel.machine().clone();
        let (worked, done) = (Rc::new(OnceCell::new()), machine.new_queue());
        let (own, memories) = (Rc::clone(&worked), self.memories.inherited());
        let child = Self { process: process.clone(), memories, buffer: Rc::default(), ..self.clone() };
        let cpu = spec.cpu.map(|cpu| CpuId(cpu % machine.cpu_count()));
        machine.clone().spawn(&spec.name, cpu, async move {
            let (kernel, here) = (child.kernel.clone(), child.process.clone());
            kernel.machine().join_group(group_of(memcg));
            kernel.process_runs(&here).await;
            let worked = own.get_or_init(|| Worked::of(kernel.machine().current_task()));
            machine.wake_all(done);
            body(Self { worked: Rc::clone(worked), ..child }).await;
            kernel.process_exit(&here);
            machine.wake_all(done);
        });
        // Whoever starts a process goes on once it runs in its cgroup: it may not be allowed to.
        while worked.get().is_none() {
            let _ = self.kernel.machine().wait(done, WaitReason::Join, None).await;
        }
        Ok(Started { worked, done, process })
    }

    /// What is left of a task that has ended.
    fn reap(&self, Started { worked, process, .. }: &Started) -> Result<(), SystemError> {
        self.kernel.process_reaped(process);
        if process.is_killed() {
            return Err(failed("join", process.name())(Errno::Killed));
        }
        if let Some(worked) = worked.get() {
            self.worked.join(worked.sum(self.kernel.machine()));
        }
        if self.moves_processes() {
            let cpu = self.kernel.machine().current_cpu();
            self.kernel.mem(|mem| mem.core.cgroups.charged_elsewhere(cpu));
        }
        Ok(())
    }

    async fn touch_buffer(&self, len: u64) -> Result<(), Errno> {
        self.buffer.touch(&self.kernel, &self.process, len).await
    }

    /// Whether anybody wants to know of pages.
    fn tells(&self) -> bool {
        self.kernel.mem(|mem| mem.core.alloc.trace.listens(Detail::Page))
    }

    /// Says what the memory of a process is called that nobody was told of, if anybody listens.
    fn name_memory(&self, process: &Process) {
        if self.tells() {
            for (number, anon) in self.kernel.anon_of(process) {
                self.kernel.machine().name_anon(anon, process.name(), number);
            }
        }
    }
}

impl System for SimSystem {
    type File = SimFile;
    type Mapping = SimMapping;
    type Task<T: Portable> = SimTask<T>;

    fn now(&self) -> Nanos {
        self.kernel.machine().charge(CostOp::ReadClock, 1);
        self.kernel.machine().now()
    }

    async fn sleep(&self, length: Nanos) {
        self.kernel.machine().sleep(length, WaitReason::UserSleep).await;
        self.kernel.program_runs(&self.process).await;
    }

    fn cpus_online(&self) -> u16 {
        self.kernel.machine().cpu_count()
    }

    fn disks_online(&self) -> u16 {
        self.disks.max(1)
    }

    fn nodes_online(&self) -> u16 {
        self.kernel.mem(|mem| u16::try_from(mem.core.alloc.nodes().len()).expect("8 bits of nodes"))
    }

    fn memory_total(&self) -> Pages {
        self.kernel.mem(|mem| mem.core.alloc.zones().iter().map(|zone| zone.managed - zone.beside).sum())
    }

    fn seed(&self) -> Seed {
        self.seed
    }

    /// Time passes when the program next waits or gives way.
    fn compute(&self, length: Nanos) {
        let cost = self.kernel.machine().cost(CostOp::UserMicrosecond);
        self.worked.work(self.kernel.machine(), Nanos(cost.get() * length.get() / 1000));
    }

    async fn spin(&self, length: Nanos) {
        self.worked.work(self.kernel.machine(), length);
        self.kernel.machine().cond_resched().await;
    }

    async fn cpu_time(&self) -> Result<CpuTime, SystemError> {
        let machine = self.kernel.machine();
        machine.charge(CostOp::Syscall, 1);
        machine.cond_resched().await;
        Ok(self.worked.sum(machine))
    }

    async fn set_oom_score_adj(&self, adj: i16) -> Result<(), SystemError> {
        self.process.set_oom_score_adj(adj).map_err(failed("write oom_score_adj", self.name()))
    }

    async fn oom_kills(&self) -> Result<u64, SystemError> {
        self.kernel.machine().charge(CostOp::Syscall, 1);
        Ok(self.kernel.oom_kill_count())
    }

    fn mark(&self, phase: &str) {
        self.sampler.borrow_mut().mark(phase, self.now(), &self.kernel);
    }

    fn keep(&self, so_far: &Outcome) {
        self.sampler.borrow_mut().kept = so_far.clone();
    }

    async fn spawn<T, F, Fut>(&self, spec: TaskSpec, program: F) -> Result<SimTask<T>, SystemError>
    where
        T: Portable,
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
    {
        let result = Rc::new(Cell::new(None));
        let slot = Rc::clone(&result);
        let body = move |child| -> Body { Box::pin(async move { slot.set(Some(program(child).await)) }) };
        Ok(SimTask { result, started: self.start(spec, Box::new(body)).await? })
    }

    fn has_ended<T: Portable>(&self, task: &SimTask<T>) -> bool {
        let value = task.result.take();
        let has_ended = value.is_some();
        task.result.set(value);
        has_ended
    }

    async fn join<T: Portable>(&self, SimTask { result, started }: SimTask<T>) -> Result<T, SystemError> {
        loop {
            if let Some(value) = result.take() {
                return self.reap(&started).map(|()| value);
            }
            let _ = self.kernel.machine().wait(started.done, WaitReason::Join, None).await;
        }
    }

    fn make_gate(&self) -> Result<Gate, SystemError> {
        Ok(self.gates.make(self.kernel.machine()))
    }

    async fn open_gate(&self, gate: Gate) -> Result<(), SystemError> {
        self.gates.open(self.kernel.machine(), gate)
    }

    async fn pass_gate(&self, gate: Gate, limit: Nanos) -> Result<bool, SystemError> {
        self.gates.pass(self.kernel.machine(), gate, limit).await
    }

    fn counts_buffers(&self) -> bool {
        self.kernel.machine().build().counts_buffers
    }

    async fn use_buffer(&self, len: Bytes) -> Result<(), SystemError> {
        self.buffer.map(&self.kernel, &self.process, len).map_err(failed("mmap", self.name()))?;
        self.name_memory(&self.process);
        Ok(())
    }

    fn first_use(&self, of: OwnCode) {
        let faults = self.kernel.machine().build().process.used[of as usize];
        self.kernel.program_faults(&self.process, faults);
    }

    async fn cgroup_create(&self, path: &str) -> Result<(), SystemError> {
        let memcg = self.kernel.cgroup_create(&self.process, path).await;
        let memcg = memcg.map_err(failed("mkdir cgroup", path))?;
        if let Some(log) = self.kernel.machine().event_log() {
            log.name_cgroup(memcg, path);
        }
        Ok(())
    }

    async fn cgroup_remove(&self, path: &str) -> Result<(), SystemError> {
        self.kernel.cgroup_remove(path).map_err(failed("rmdir cgroup", path))
    }

    async fn cgroup_write(&self, path: &str, file: &str, value: &str) -> Result<(), SystemError> {
        let subject = format!("{path}/{file}");
        let written = self.kernel.cgroup_write(path, file, value).await.map_err(failed("write", &subject));
        self.kernel.machine().return_to_user().await;
        written
    }

    async fn cgroup_read(&self, path: &str, file: &str) -> Result<String, SystemError> {
        self.kernel.cgroup_read(path, file).map_err(failed("read", &format!("{path}/{file}")))
    }

    async fn make_dir(&self, path: &str) -> Result<(), SystemError> {
        self.kernel.make_dir(&self.process, path).await.map_err(failed("mkdir", path))
    }

    async fn read_dir(&self, path: &str) -> Result<Vec<String>, SystemError> {
        self.kernel.read_dir(&self.process, path).await.map_err(failed("readdir", path))
    }

    async fn remove_dir(&self, path: &str) -> Result<(), SystemError> {
        self.kernel.remove_dir(&self.process, path).await.map_err(failed("rmdir", path))
    }

    async fn make_dir_on(&self, path: &str, disk: u16) -> Result<(), SystemError> {
        self.kernel.make_dir_on(path, disk).map_err(failed("mount", path))
    }

    async fn make_dir_in_memory(&self, path: &str) -> Result<(), SystemError> {
        let mut tops = self.in_memory.borrow_mut();
        if path.is_empty() || path.contains('/') || tops.iter().any(|top| top == path) {
            return Err(SystemError::new("mount", path, workload::Errno::Exist));
        }
        tops.push(path.to_owned());
        Ok(())
    }

    async fn lay_out_file(&self, path: &str, size: Bytes) -> Result<(), SystemError> {
        self.lay_out_files(&[(path.to_owned(), size)]).await
    }

    async fn lay_out_files(&self, files: &[(String, Bytes)]) -> Result<(), SystemError> {
        let (shared, disk): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| self.is_in_memory(path));
        for (path, size) in shared {
            let file = self.kernel.open_shared(&self.process, path, true).map_err(failed("lay out", path))?;
            let written = self.kernel.write_shared(&self.process, &file, 0, size.get());
            written.await.map_err(failed("lay out", path))?;
        }
        lay_out(&self.kernel, &self.sampler, self.seed, &disk)
            .map_err(|(path, errno)| failed("lay out", path)(errno))?;
        self.kernel.machine().return_to_user().await; // What follows begins once that is done.
        keep_journal(&self.kernel, &self.sampler, &disk);
        Ok(())
    }

    async fn open(&self, path: &str, mode: OpenMode) -> Result<SimFile, SystemError> {
        let create = mode == OpenMode::Create;
        if self.is_in_memory(path) {
            let file = self.kernel.open_shared(&self.process, path, create).map_err(failed("open", path))?;
            return Ok(SimFile { file: Opened::Memory(file), _told: TellKernel(self.kernel.clone()) });
        }
        let file = self.kernel.open(&self.process, path, create).await.map_err(failed("open", path))?;
        if self.tells() {
            self.kernel.machine().name_mapping(file.mapping(), path);
        }
        Ok(SimFile { file: Opened::Disk(file), _told: TellKernel(self.kernel.clone()) })
    }

    async fn read(&self, file: &SimFile, offset: u64, len: u64) -> Result<u64, SystemError> {
        let read = match &file.file {
            Opened::Disk(file) => self.kernel.read(&self.process, file, offset, len).await,
            Opened::Memory(file) => self.kernel.read_shared(&self.process, file, offset, len).await,
        };
        let read = read.map_err(failed("read", self.name()))?;
        if self.buffer.is_mapped() {
            self.touch_buffer(read).await.map_err(failed("read", self.name()))?;
        }
        Ok(read)
    }

    async fn write(&self, file: &SimFile, offset: u64, len: u64) -> Result<u64, SystemError> {
        if self.buffer.is_mapped() {
            self.touch_buffer(len).await.map_err(failed("write", self.name()))?;
        }
        let written = match &file.file {
            Opened::Disk(file) => self.kernel.write(&self.process, file, offset, len).await,
            Opened::Memory(file) => self.kernel.write_shared(&self.process, file, offset, len).await,
        };
        written.map_err(failed("write", self.name()))
    }

    async fn fsync(&self, file: &SimFile) -> Result<(), SystemError> {
        match &file.file {
            Opened::Disk(file) => {
                self.kernel.fsync(&self.process, file).await.map_err(failed("fsync", self.name()))
            }
            Opened::Memory(_) => Ok(()),
        }
    }

    async fn sync(&self) -> Result<(), SystemError> {
        self.kernel.sync().await;
        Ok(())
    }

    async fn file_size(&self, path: &str) -> Result<u64, SystemError> {
        if self.is_in_memory(path) {
            return self.kernel.shared_size(path).map(|size| size.get()).map_err(failed("stat", path));
        }
        let size = self.kernel.stat(&self.process, path).await.map_err(failed("stat", path))?;
        Ok(size.get())
    }

    async fn advise_random(&self, file: &SimFile) -> Result<(), SystemError> {
        if let Opened::Disk(file) = &file.file {
            self.kernel.advise_random(file);
        }
        Ok(())
    }

    async fn advise_file(
        &self,
        file: &SimFile,
        offset: u64,
        len: u64,
        advice: FileAdvice,
    ) -> Result<(), SystemError> {
        let Opened::Disk(file) = &file.file else { return Ok(()) };
        let advice = match advice {
            FileAdvice::Normal => kernel::FileAdvice::Normal,
            FileAdvice::Random => kernel::FileAdvice::Random,
            FileAdvice::Sequential => kernel::FileAdvice::Sequential,
            FileAdvice::WillNeed => kernel::FileAdvice::WillNeed,
            FileAdvice::DontNeed => kernel::FileAdvice::DontNeed,
            FileAdvice::NoReuse => kernel::FileAdvice::NoReuse,
        };
        let advised = self.kernel.advise_file(&self.process, file, offset, len, advice).await;
        advised.map_err(failed("fadvise", self.name()))
    }

    async fn read_ahead(&self, file: &SimFile, offset: u64, len: u64) -> Result<(), SystemError> {
        let Opened::Disk(file) = &file.file else { return Ok(()) };
        let read = self.kernel.read_ahead(&self.process, file, offset, len).await;
        read.map_err(failed("readahead", self.name()))
    }

    async fn truncate(&self, file: &SimFile, len: u64) -> Result<(), SystemError> {
        let cut = match &file.file {
            Opened::Disk(file) => self.kernel.truncate(&self.process, file, len).await,
            Opened::Memory(file) => self.kernel.truncate_shared(&self.process, file, len),
        };
        cut.map_err(failed("ftruncate", self.name()))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), SystemError> {
        match (self.is_in_memory(from), self.is_in_memory(to)) {
            (false, false) => {}
            (true, true) => {
                return self.kernel.rename_shared(&self.process, from, to).map_err(failed("rename", from));
            }
            _ => return Err(SystemError::new("rename", from, workload::Errno::NotSup)), // `EXDEV`
        }
        self.kernel.rename(&self.process, from, to).await.map_err(failed("rename", from))
    }

    async fn unlink(&self, path: &str) -> Result<(), SystemError> {
        if self.is_in_memory(path) {
            return self.kernel.unlink_shared(&self.process, path).map_err(failed("unlink", path));
        }
        self.kernel.unlink(&self.process, path).await.map_err(failed("unlink", path))
    }

    async fn resident_pages(&self, file: &SimFile, offset: u64, len: u64) -> Result<u64, SystemError> {
        Ok(match &file.file {
            Opened::Disk(file) => self.kernel.resident_pages(file, offset, len),
            Opened::Memory(file) => self.kernel.resident_shared(file, offset, len),
        })
    }

    async fn map_anonymous(&self, len: Bytes) -> Result<SimMapping, SystemError> {
        let mapping = self.kernel.map_anonymous(&self.process, len).map_err(failed("mmap", self.name()))?;
        self.name_memory(&self.process);
        Ok(SimMapping { system: self.clone(), mapping, memory: None })
    }

    async fn share_memory(&self, len: Bytes) -> Result<SharedMemory, SystemError> {
        let pages = self.kernel.share_memory(&self.process, len).map_err(failed("mmap", self.name()))?;
        Ok(self.memories.add(pages))
    }

    async fn map_shared_memory(&self, memory: SharedMemory) -> Result<SimMapping, SystemError> {
        let pages = self.memories.hold(memory);
        let pages = pages.map_err(|errno| SystemError::new("mmap", self.name(), errno))?;
        let mapping = self.kernel.map_shared(&self.process, &pages, 0, Bytes(pages.size()));
        let mapping = mapping.map_err(failed("mmap", self.name()))?;
        Ok(SimMapping { system: self.clone(), mapping, memory: Some(memory) })
    }

    async fn map_file(
        &self,
        file: &SimFile,
        offset: u64,
        len: Bytes,
        how: FileMapping,
    ) -> Result<SimMapping, SystemError> {
        let FileMapping { shared, writable, executable } = how;
        let how = MapHow { shared, writable, executable };
        let mapping = match &file.file {
            Opened::Disk(file) => self.kernel.map_file(&self.process, file, offset, len, how),
            Opened::Memory(_) if !shared => {
                return Err(SystemError::new("mmap", self.name(), workload::Errno::NotSup));
            }
            Opened::Memory(file) => self.kernel.map_shared(&self.process, file, offset, len),
        };
        let mapping = mapping.map_err(failed("mmap", self.name()))?;
        self.name_memory(&self.process);
        Ok(SimMapping { system: self.clone(), mapping, memory: None })
    }

    async fn touch(&self, mapping: &SimMapping, first: u64, count: u64) -> Result<(), SystemError> {
        let touched = self.kernel.touch(&self.process, mapping.mapping, first, count).await;
        touched.map_err(failed("touch", self.name()))
    }

    async fn touch_reading(&self, mapping: &SimMapping, first: u64, count: u64) -> Result<(), SystemError> {
        let touched = self.kernel.touch_reading(&self.process, mapping.mapping, first, count).await;
        touched.map_err(failed("touch", self.name()))
    }

    async fn write_content(
        &self,
        mapping: &SimMapping,
        first: u64,
        count: u64,
        compressed: u16,
    ) -> Result<(), SystemError> {
        self.kernel.set_compressed_bytes(&self.process, mapping.mapping, compressed);
        self.touch(mapping, first, count).await
    }

    async fn fill(&self, mapping: &SimMapping, first: u64, count: u64) -> Result<(), SystemError> {
        let filled = self.kernel.fill(&self.process, mapping.mapping, first, count).await;
        filled.map_err(failed("memset", self.name()))
    }

    async fn advise(&self, mapping: &SimMapping, advice: Advice) -> Result<(), SystemError> {
        let (pages, whole) = (mapping.mapping, mapping.mapping.pages());
        match advice {
            Advice::Normal => self.kernel.advise_access(&self.process, pages, AccessAdvice::Normal),
            Advice::Random => self.kernel.advise_access(&self.process, pages, AccessAdvice::Random),
            Advice::Sequential => self.kernel.advise_access(&self.process, pages, AccessAdvice::Sequential),
            Advice::WillNeed => self.kernel.advise_will_need(&self.process, pages).await,
            Advice::DontNeed => {
                self.kernel.drop_pages(&self.process, mapping.mapping);
                Ok(())
            }
            Advice::Cold => self.kernel.advise_cold(&self.process, pages, 0, whole),
            Advice::PageOut => self.kernel.advise_pageout(&self.process, pages, 0, whole).await,
            Advice::Free => self.kernel.advise_free(&self.process, pages, 0, whole),
            Advice::HugePage => self.kernel.advise_huge(&self.process, mapping.mapping, HugeAdvice::Huge),
            Advice::NoHugePage => self.kernel.advise_huge(&self.process, mapping.mapping, HugeAdvice::NoHuge),
        }
        .map_err(failed("madvise", self.name()))
    }

    async fn mapping_resident(
        &self,
        mapping: &SimMapping,
        first: u64,
        count: u64,
    ) -> Result<u64, SystemError> {
        // The program has room for the answer as long, a byte for each page; its cgroup pays for that.
        let room = self.kernel.map_anonymous(&self.process, Bytes(count.max(1)));
        let room = room.map_err(failed("mmap", self.name()))?;
        let filled = Bytes(count).to_pages_ceil().get();
        let filled = self.kernel.touch(&self.process, room, 0, filled).await;
        let resident = self.kernel.mapping_resident(&self.process, mapping.mapping, first, count);
        self.kernel.unmap_anonymous(&self.process, room);
        filled.and(resident).map_err(failed("mincore", self.name()))
    }

    async fn lock_memory(&self, mapping: &SimMapping, first: u64, count: u64) -> Result<(), SystemError> {
        let locked = self.kernel.lock_memory(&self.process, mapping.mapping, first, count).await;
        locked.map_err(failed("mlock", self.name()))
    }

    async fn drop_caches(&self, mask: u8) -> Result<(), SystemError> {
        self.kernel.drop_caches(mask).await.map_err(failed("write", "vm.drop_caches"))
    }

    async fn begin_cold(&self) -> Result<(), SystemError> {
        begin_cold(&self.kernel, &self.sampler).await.map_err(failed("write", "vm.drop_caches"))
    }

    async fn sysctl_read(&self, name: &str) -> Result<String, SystemError> {
        self.kernel.sysctl_read(name).map_err(failed("read sysctl", name))
    }

    async fn sysctl_write(&self, name: &str, value: &str) -> Result<(), SystemError> {
        self.kernel.sysctl_write(name, value).map_err(failed("write sysctl", name))
    }

    async fn node_write(&self, node: u8, file: &str, value: &str) -> Result<(), SystemError> {
        let subject = format!("node{node}/{file}");
        self.kernel.node_write(NodeId(node), file, value).await.map_err(failed("write", &subject))
    }

    async fn vmstat(&self) -> Result<Vec<(String, u64)>, SystemError> {
        Ok(self.kernel.vmstat())
    }
}
