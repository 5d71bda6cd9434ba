// What one click runs: the five experiments that pagetide was made from, small enough for seconds, and one of today.
const EXAMPLES = [
  {
    title: "A hot file against a stream",
    about: "Does a file in use stay in memory while another cgroup streams past it? Linux 5.4, and what became 5.5.",
    asked: { workload: "hot-and-stream", kernels: ["linux-5.4", "linux-5.4+root-aging"], params: ["stream=2G"] },
  },
  {
    title: "Huge pages beside small files",
    about: "How often do faults get a huge page when memory is fragmented? The series of Linux 4.20, whole.",
    asked: {
      workload: "huge-faults",
      mem: "512M",
      kernels: ["linux-4.20-rc1", "linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall"],
    },
  },
  {
    title: "Small files, and slab that a boost spares",
    about: "How much of memory do inodes and dentries take? The fix of Linux 5.3.",
    asked: {
      workload: "small-files",
      mem: "128M",
      kernels: ["linux-5.3", "linux-5.3+shrink-slab-when-boosted"],
      params: ["loops=6"],
    },
  },
  {
    title: "Sequential readers that wait in vain",
    about:
      "What do readers lose in waits of reclaim that nothing can end? " +
      "Linux 2.6.32, and with two of its commits taken back.",
    asked: {
      workload: "sequential-readers",
      kernels: ["linux-2.6.32", "linux-2.6.32-pcp-cold-order-pcp-per-migratetype"],
      params: ["readers=16"],
    },
  },
  {
    title: "Inodes while memory is pinned",
    about:
      "How much can be pinned before XFS runs out of memory, once reclaim of inodes does not block? " +
      "The first step of a series on Linux 5.7, by itself.",
    asked: {
      workload: "inode-storm",
      machine: "guest-uml",
      mem: "1G",
      kernels: ["linux-5.7", "linux-5.7+async-inode-reclaim"],
      params: ["files=8000", "pin_from=512M", "pin_step=16M"],
    },
  },
  {
    title: "Two lists, or generations",
    about: "Anonymous memory beside a looping file, with swap: the classic lists of 6.12 and the multi-gen LRU.",
    asked: { workload: "anon-and-file", kernels: ["linux-6.12", "linux-6.12+lru-gen"] },
  },
];

// What stands in the box for a workload of one's own.
const OWN = `/*{own}*/`;
