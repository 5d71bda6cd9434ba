//! The virtual machine as a command line of QEMU.
//!
//! The machine is a plain PC with nothing on it that the run does not need: memory, CPUs, one
//! virtio disk or several, a serial console and a virtio serial port for results; no network, no graphics.
//! The reference measurements used the same shape (`-accel tcg,thread=multi -cpu max`).
//!
//! The disk uses the host's page cache (`cache=writeback`): about as fast as memory, so times
//! are the CPU's. Left out: disks with a speed, passing through devices.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use units::Bytes;
use workload::scenario::{GUEST_CPUS_MAX as MOST_CPUS, GUEST_NODES_MAX as MOST_NODES};

use super::elf::LIBRARY_DIR;
use super::error::VmError;
use super::protocol::{GUEST_VARIABLE, PORT_NAME};

/// What runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's CPU.
    Kvm,
    /// QEMU, which translates each instruction: ten to fifty times slower, and works everywhere.
    Tcg,
}

impl Accelerator {
    /// As a person reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Tcg => "emulation (QEMU TCG)",
        }
    }
}

/// Data disks that a machine can have: each takes one of its 32 PCI slots.
pub const DISKS_MAX: u16 = 24;

/// The shape of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hardware {
    /// Memory, a multiple of 1 MiB for each node.
    pub mem: Bytes,
    /// CPUs.
    pub cpus: u16,
    /// NUMA nodes, among which memory and CPUs are divided evenly.
    pub numa_nodes: u16,
}

/// Files of one run, in a folder that is removed after it.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The kernel's image.
    pub kernel: &'a Path,
    /// A cpio archive.
    pub initramfs: &'a Path,
    /// The data disks.
    pub disks: &'a [PathBuf],
    /// Where the console goes.
    pub console: &'a Path,
    /// Where messages go.
    pub channel: &'a Path,
}

const MIB: u64 = 1 << 20;
/// Below this a Debian kernel has no room to unpack itself and an initramfs.
const LEAST_MEMORY: Bytes = Bytes(128 * MIB);

impl Hardware {
    /// Checks that such a machine can be built.
    ///
    /// # Errors
    /// [`VmError::BadSpec`], in words.
    pub fn check(&self) -> Result<(), VmError> {
        let bad = |why: String| Err(VmError::BadSpec { why });
        let Self { mem, cpus, numa_nodes } = *self;
        if !(1..=MOST_CPUS).contains(&cpus) {
            return bad(format!("a virtual machine has 1 to {MOST_CPUS} CPUs, not {cpus}"));
        }
        if !(1..=MOST_NODES.min(cpus)).contains(&numa_nodes) {
            return bad(format!("{numa_nodes} NUMA nodes do not fit {cpus} CPUs"));
        }
        if mem < LEAST_MEMORY {
            return bad(format!("a virtual machine needs at least {LEAST_MEMORY} of memory, not {mem}"));
        }
        if !mem.get().is_multiple_of(MIB * u64::from(numa_nodes)) {
            return bad(format!(
                "{mem} of memory is no whole number of MiB for each of {numa_nodes} NUMA nodes"
            ));
        }
        Ok(())
    }
}

/// All arguments of `qemu-system-x86_64`.
pub fn arguments(hardware: &Hardware, accelerator: Accelerator, files: &Files<'_>) -> Vec<OsString> {
    let mut line = Line::default();
    line.text("-nodefaults -no-user-config -display none -no-reboot");
    line.text(match accelerator {
        Accelerator::Kvm => "-accel kvm -cpu max",
        Accelerator::Tcg => "-accel tcg,thread=multi -cpu max",
    });
    line.text(&format!("-smp {} -m {}M", hardware.cpus, hardware.mem.get() / MIB));
    if hardware.numa_nodes > 1 {
        line.numa(hardware);
    }
    line.option("-kernel", "", files.kernel);
    line.option("-initrd", "", files.initramfs);
    line.0.extend(["-append".into(), kernel_command_line().into()]);
    line.option("-chardev", "file,id=console,path=", files.console);
    line.text("-serial chardev:console");
    line.option("-chardev", "file,id=channel,path=", files.channel);
    line.text("-device virtio-serial-pci");
    line.text(&format!("-device virtserialport,chardev=channel,name={PORT_NAME}"));
    for (index, disk) in files.disks.iter().enumerate() {
        let id = if index == 0 { "data".to_owned() } else { format!("data{index}") };
        line.option("-drive", &format!("if=none,id={id},format=raw,cache=writeback,file="), disk);
        line.text(&format!("-device virtio-blk-pci,drive={id}"));
    }
    line.0
}

/// A crash ends the machine (`panic=-1` with `-no-reboot`). The lockup detector is off: on a busy
/// host an emulated CPU stands still for seconds. So is the test whether the timer interrupt
/// comes: it counts ticks during a busy loop, which a stopped CPU or a late QEMU thread fails,
/// and then the kernel panics ("IO-APIC + timer doesn't work"). Under KVM Linux leaves it out by
/// itself. Names without a dot become init's environment.
fn kernel_command_line() -> String {
    format!(
        "console=ttyS0 quiet panic=-1 oops=panic nowatchdog no_timer_check \
         LD_LIBRARY_PATH=/{LIBRARY_DIR} {GUEST_VARIABLE}=1"
    )
}

#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn text(&mut self, words: &str) {
        self.0.extend(words.split(' ').map(OsString::from));
    }

    /// `prefix` and a path as one argument. Where there is a prefix, QEMU splits at commas, and a
    /// doubled one means itself.
    fn option(&mut self, name: &str, prefix: &str, path: &Path) {
        let mut value = OsString::from(prefix);
        match path.to_str() {
            Some(text) if !prefix.is_empty() => value.push(text.replace(',', ",,")),
            _ => value.push(path),
        }
        self.0.extend([name.into(), value]);
    }

    fn numa(&mut self, hardware: &Hardware) {
        let nodes = hardware.numa_nodes;
        let mib = hardware.mem.get() / MIB / u64::from(nodes);
        let first = |node: u16| u32::from(node) * u32::from(hardware.cpus) / u32::from(nodes);
        for node in 0..nodes {
            let (from, to) = (first(node), first(node + 1) - 1);
            self.text(&format!("-object memory-backend-ram,id=node{node},size={mib}M"));
            self.text(&format!("-numa node,nodeid={node},memdev=node{node},cpus={from}-{to}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 5] = ["/k/vmlinuz", "/r/init", "/r/a,b/disk", "/r/console", "/r/channel"];

    fn line(hardware: Hardware, accelerator: Accelerator) -> String {
        let [kernel, initramfs, disk, console, channel] = FILES.map(Path::new);
        let disks = [disk.to_owned()];
        let files = Files { kernel, initramfs, disks: &disks, console, channel };
        let arguments = arguments(&hardware, accelerator, &files);
        arguments.join(std::ffi::OsStr::new(" ")).into_string().unwrap().replace(" -", "\n-")
    }

    #[test]
    fn a_small_machine_is_this_command_line() {
        let hardware = Hardware { mem: Bytes(512 * MIB), cpus: 2, numa_nodes: 1 };
        insta::assert_snapshot!(line(hardware, Accelerator::Tcg), @"
        -nodefaults
        -no-user-config
        -display none
        -no-reboot
        -accel tcg,thread=multi
        -cpu max
        -smp 2
        -m 512M
        -kernel /k/vmlinuz
        -initrd /r/init
        -append console=ttyS0 quiet panic=-1 oops=panic nowatchdog no_timer_check LD_LIBRARY_PATH=/lib/pagetide PAGETIDE_GUEST=1
        -chardev file,id=console,path=/r/console
        -serial chardev:console
        -chardev file,id=channel,path=/r/channel
        -device virtio-serial-pci
        -device virtserialport,chardev=channel,name=pagetide
        -drive if=none,id=data,format=raw,cache=writeback,file=/r/a,,b/disk
        -device virtio-blk-pci,drive=data
        ");
    }

    #[test]
    fn each_disk_is_a_device_of_its_own() {
        let disks = ["/r/disk0", "/r/disk1", "/r/disk2"].map(PathBuf::from);
        let [kernel, initramfs, _, console, channel] = FILES.map(Path::new);
        let files = Files { kernel, initramfs, disks: &disks, console, channel };
        let hardware = Hardware { mem: Bytes(256 * MIB), cpus: 2, numa_nodes: 1 };
        let line = arguments(&hardware, Accelerator::Tcg, &files);
        let drives: Vec<&str> = line.iter().filter_map(|word| word.to_str()).collect();
        assert_eq!(
            drives[drives.len() - 8..],
            [
                "-drive",
                "if=none,id=data1,format=raw,cache=writeback,file=/r/disk1",
                "-device",
                "virtio-blk-pci,drive=data1",
                "-drive",
                "if=none,id=data2,format=raw,cache=writeback,file=/r/disk2",
                "-device",
                "virtio-blk-pci,drive=data2",
            ]
        );
    }

    #[test]
    fn nodes_share_memory_and_cpus_evenly() {
        let hardware = Hardware { mem: Bytes(1024 * MIB), cpus: 5, numa_nodes: 2 };
        let numa: Vec<String> = line(hardware, Accelerator::Kvm)
            .lines()
            .filter(|line| line.starts_with("-object") || line.starts_with("-numa"))
            .map(str::to_owned)
            .collect();
        assert_eq!(
            numa,
            [
                "-object memory-backend-ram,id=node0,size=512M",
                "-numa node,nodeid=0,memdev=node0,cpus=0-1",
                "-object memory-backend-ram,id=node1,size=512M",
                "-numa node,nodeid=1,memdev=node1,cpus=2-4",
            ]
        );
    }

    #[test]
    fn machines_that_cannot_be_are_refused_in_words() {
        let check = |mem, cpus, numa_nodes| {
            Hardware { mem: Bytes(mem), cpus, numa_nodes }.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(512 * MIB, 2, 2), Ok(()));
        for (mem, cpus, nodes) in [
            (512 * MIB, 0, 1),
            (512 * MIB, 2, 0),
            (512 * MIB, 2, 3),
            (4096, 1, 1),
            (512 * MIB + 1, 1, 1),
            (513 * MIB, 2, 2),
        ] {
            assert!(check(mem, cpus, nodes).is_err(), "{mem} {cpus} {nodes}");
        }
    }
}
