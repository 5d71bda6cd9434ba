//! `pagetide list`: names, counters, machines and zones, in every form.

use crate::support::Scene;

#[test]
fn lists_name_what_other_commands_take() {
    let scene = Scene::new();
    let shown = ["kernels", "machines", "workloads", "workloads program"];
    let shown = shown.map(|what| scene.data(&format!("list {what}")));
    insta::assert_snapshot!(shown.join("\n"), @"
     kernel          help
     linux-2.6.32    Linux 2.6.32 (2009): timed waits in the slow path; no cgroups,
                     no huge pages
     linux-4.19      Linux 4.19 (2018)
     linux-4.20-rc1  Linux 4.20-rc1 (Nov 2018): what the fragmentation avoidance
                     series was posted for
     linux-5.3       Linux 5.3 (2019)
     linux-5.4       Linux 5.4: 5.3 + shrink-slab-when-boosted + scaled-protection
     linux-5.5       Linux 5.5: 5.4 + root-aging, without shared-memcg-walk
     linux-5.7       Linux 5.7 (2020): the shrinker of XFS still writes inodes and
                     waits for them
     linux-5.10      Linux 5.10 (2020), as packaged by Debian 11
     linux-6.1       Linux 6.1 (2022), classic LRU, as packaged by Debian 12; the
                     multi-gen LRU, built there, too, is `+lru-gen`
     linux-6.12      Linux 6.12 (2024), classic LRU, as packaged by Debian 13; the
                     multi-gen LRU, built there, too, is `+lru-gen`
     linux-7.2       Linux 7.2 (2026), classic LRU, as packaged by Debian 14 but for
                     that: it starts with the multi-gen LRU, `+lru-gen`

    cpu_percent: CPU time of an operation in percent of the reference cost table

     machine        nodes  cpus  default mem  cpu percent  disk
     vm-2cpu            1     2     1016336k          100  virtio_ram
     guest-tcg          1     2         512M         5700  virtio_ram
     guest-uml          1     1         512M          100  ubd
     x86-64             1     8          16G          100  nvme
     skylake-1s         1     8          32G          100  sata_hdd
     haswell-2s         2    48          64G          100  sata_hdd
     evo-ssd            1     8          16G          100  sata_evo
     quad-node-16g      4    16          16G          100  sata_stripe
     s390-fcp           1     4         256M          200  s390_fcp_2010

     machine        help                             source
     vm-2cpu        a virtual machine on fast        source 2; zones follow from
                    hardware; its memory is what     MemTotal
                    the kernel manages
     guest-tcg      a guest of QEMU without KVM, as  measured: guests of 5.10, 6.1,
                    `--on vm:VERSION` makes it       6.12 and 7.2 (docs/fidelity.md)
     guest-uml      a guest of User-Mode Linux, as   measured: guests of 5.10, 6.1,
                    `--on uml:VERSION` makes it      6.12 and 7.2 (docs/uml.md)
     x86-64         any x86-64 server: nodes, CPUs,  zones by the rule of x86-64;
                    disk and costs as a machine      costs of a core of 2018
                    file says
     skylake-1s     one socket of 2017               source 4; zones in proportion
                                                     to memory
     haswell-2s     two sockets of 2014              source 4; zones in proportion
                                                     to memory
     evo-ssd        one socket of 2019 with a SATA   source 0; memory is inferred,
                    SSD that writes fast until its   CPUs are assumed
                    fast cells are full
     quad-node-16g  a virtual machine of 2020 with   source 3: nodes, CPUs and
                    memory in four nodes and XFS on  memory; its disk and log are
                    two striped SATA SSDs            assumed
     s390-fcp       a guest of 2010 with 16 disks    source 1; CPUs, disks and what
                    of a storage controller; one     is kept are assumed
                    zone

    parameters of one: `pagetide list workloads NAME`

     workload            help
     anon-and-file       hot and cold anonymous memory beside a file that is read
                         round and round, with swap
     containers          two containers beside each other, each of which reads,
                         writes, maps or holds memory as it is told
     hot-and-stream      a hot file in cgroup A against one pass of streaming reads
                         in cgroup B
     huge-faults         huge page faults beside the creation and random reads of
                         small files
     inode-storm         many processes create files while ever more memory is
                         pinned, until an OOM kill
     mapped-and-stream   a file that a program accesses through a mapping beside a
                         stream of reads
     random-calls        tasks that read, write, map, touch, advise and remove at
                         random, to find where kernels differ
     sequential-readers  readers of a file and a disk each, once and sequentially
     simoop              readers, writers, allocators and tree walkers that keep
                         memory full
     small-files         a steady stream of small files, more than memory holds, and
                         their deletion
     program             a captured program in one cgroup: its tasks, files and
                         memory, from its trace (also `pagetide replay TRACE`)

     workload  parameter   default  help
     program                        a captured program in one cgroup: its tasks,
                                    files and memory, from its trace (also `pagetide
                                    replay TRACE`)
     program   trace       none     file of the trace, as `pagetide capture` makes
                                    it; has to be given
     program   limit       none     memory.max of its cgroup
     program   high        none     memory.high of its cgroup
     program   low         none     memory.low of its cgroup
     program   pace        think    think: the captured time after each operation;
                                    recorded: at the captured times; asap: at once
     program   filesystem  ext4     filesystem that the machine puts the files on
     program   --seed               simulated: the phase of the kernel's periodic
                                    workers (vmstat each second, memory.stat every
                                    2 s)
    ");
    let csv = scene.data("list workloads --format csv");
    insta::assert_snapshot!(csv, @r#"
    workload,parameter,default,help
    anon-and-file,,,"hot and cold anonymous memory beside a file that is read round and round, with swap"
    anon-and-file,steps,loop,loop: hot memory against the file; pageout: madvise; reclaim: memory.reclaim
    anon-and-file,hot,32M,"anonymous memory of A, touched again and again"
    anon-and-file,cold,96M,"anonymous memory of C, touched at the start and at the end"
    anon-and-file,file,128M,"size of the file that B reads, round and round"
    anon-and-file,every,16M,bytes that B reads before A touches its memory again; 0 for none
    anon-and-file,loops,32,how often the two take turns
    anon-and-file,topology,parent,"parent: P/A, P/C and P/B; global: A, C and B at the root; same: all tasks in P"
    anon-and-file,limit,192M,"memory.max of P, which topology=global does not have"
    anon-and-file,swap_max,none,memory.swap.max of P
    anon-and-file,swap_high,none,"memory.swap.high of P, above which tasks are made to sleep (5.8)"
    anon-and-file,reclaim,32M,"asked of memory.reclaim of P, then twice as much; not with steps=loop"
    anon-and-file,reclaim_of,cgroup,"node: asked of node 0 instead, whose file Linux 6.17 has"
    anon-and-file,reclaim_what,all,anon: anonymous memory alone is asked for (6.16)
    anon-and-file,reclaim_swappiness,none,"swappiness of what is asked for (6.11), instead of vm.swappiness"
    anon-and-file,order,sequential,order in which A touches its pages
    anon-and-file,huge,never,"huge pages for anonymous memory, by madvise"
    anon-and-file,flush,no,"yes: memory.stat of all groups is read after every read of B, which makes them exact"
    anon-and-file,compressed_bytes,1200,bytes that a compressor makes of an anonymous page; 0 for pages of one repeated byte
    anon-and-file,filesystem,ext4,filesystem that the machine puts the file on
    anon-and-file,read_size,128k,bytes of one read call
    anon-and-file,--seed,,"where on the disk the file lies, within 1 MiB"
    anon-and-file,--seed,,"with order=random, in which order the hot pages are touched"
    anon-and-file,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)"
    containers,,,"two containers beside each other, each of which reads, writes, maps or holds memory as it is told"
    containers,limit,none,"memory.max of P, in which both containers are"
    containers,a_does,read,with A's file. write: a new one; overwrite: what is there; update: one call of four writes; hold: nothing
    containers,a_file,64M,size of A's file
    containers,a_order,sequential,in which order A's tasks come to its blocks
    containers,a_bytes,128M,bytes that each of A's tasks moves in a round
    containers,a_block,64k,bytes of one call; mappings are touched page by page
    containers,a_fsync,0,an fsync after so many calls that write; 0: none
    containers,a_memory,16M,anonymous memory of each of A's tasks
    containers,a_rounds,2,rounds of each of A's tasks
    containers,a_tasks,1,tasks in A
    containers,a_max,none,memory.max of A
    containers,a_high,none,memory.high of A
    containers,a_low,none,"memory.low of A, and of P"
    containers,a_min,none,"memory.min of A, and of P"
    containers,b_does,write,the same for B; none: there is no B
    containers,b_file,256M,size of B's file
    containers,b_order,sequential,in which order B's tasks come to its blocks
    containers,b_bytes,256M,bytes that each of B's tasks moves in a round
    containers,b_block,128k,bytes of one call; mappings are touched page by page
    containers,b_fsync,0,an fsync after so many calls that write; 0: none
    containers,b_memory,0,anonymous memory of each of B's tasks
    containers,b_rounds,1,rounds of each of B's tasks
    containers,b_tasks,1,tasks in B
    containers,b_max,none,memory.max of B
    containers,b_high,none,memory.high of B
    containers,filesystem,ext4,filesystem that the machine puts the files on
    containers,--seed,,"when each task begins, up to 2 ms after it was started"
    containers,--seed,,"with an order of random or zipf, which places are drawn"
    containers,--seed,,"where on the disk the files lie, within 1 MiB"
    containers,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)"
    hot-and-stream,,,a hot file in cgroup A against one pass of streaming reads in cgroup B
    hot-and-stream,hot,50M,size of the hot file that A reads
    hot-and-stream,hot_reads,2,how often A reads it; 2 puts it on the active list
    hot-and-stream,stream,18G,"size of the file that B reads once, sequentially"
    hot-and-stream,topology,siblings,siblings: A and B at the root; parent: P/A and P/B; same: both tasks in A
    hot-and-stream,limit,none,memory.max of P; only with topology=parent
    hot-and-stream,low,none,"memory.low of A, and of P where there is one"
    hot-and-stream,filesystem,ext4,filesystem that the machine puts the files on
    hot-and-stream,read_size,128k,bytes of one read call
    hot-and-stream,--seed,,"when each task begins, up to 20 ms after it was started: the distance to the kernel's ticks"
    hot-and-stream,--seed,,"where on the disk the files lie, within 1 MiB"
    hot-and-stream,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)"
    huge-faults,,,huge page faults beside the creation and random reads of small files
    huge-faults,advice,default,madvise: ask for huge pages on the mapping; default: take what the kernel gives
    huge-faults,threads,none,faulting threads; without it a quarter of a node's CPUs beyond the readers'
    huge-faults,nodes,none,memory nodes: the threads map 3/4 of one; without it those of the machine
    huge-faults,file_size,64k,size of each file
    huge-faults,scale,100,percent of the usual amount of files and mappings
    huge-faults,order,files,"writers finish a file before the next; rounds: open all, and write a block of each in turn"
    huge-faults,warm,100,percent of the time of creation that readers read before the faults
    huge-faults,filesystem,xfs,filesystem that the machine puts the files on
    huge-faults,--seed,,"when each writer, reader and faulting thread begins, up to 2 ms after it was forked: their order"
    huge-faults,--seed,,which files and blocks the readers read
    huge-faults,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat, memory.stat, the log of XFS)"
    inode-storm,,,"many processes create files while ever more memory is pinned, until an OOM kill"
    inode-storm,processes,16,"processes that create files at the same time, each in a directory of its own"
    inode-storm,files,none,"files of a step, all processes; without it one for each 64 KiB of memory"
    inode-storm,file_size,0,"size of each file, which is written by one call; 0: it is not written"
    inode-storm,per_directory,10000,files of a process before its next subdirectory
    inode-storm,pin_from,none,memory that the first step pins; without it half of all
    inode-storm,pin_to,none,"memory that the last step pins, if nobody is killed before; without it all"
    inode-storm,pin_step,none,memory that each step pins more than the one before; without it 1/64 of all
    inode-storm,pinner,stays,stays: one task pins ever more; anew: each step another one pins the whole amount
    inode-storm,programs,none,"pages of other programs, a file that one task reads all the time; without it 38M from 4G of memory on"
    inode-storm,filesystem,xfs,filesystem that the machine puts the files on
    inode-storm,--seed,,"when each process of a step begins, up to 2 ms after it was told to: their order"
    inode-storm,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat, memory.stat, the log of XFS)"
    mapped-and-stream,,,a file that a program accesses through a mapping beside a stream of reads
    mapped-and-stream,hot,24M,size of the file that A maps
    mapped-and-stream,reads,2,how often A accesses each page at the start
    mapped-and-stream,again,yes,yes: A accesses its pages again after each part of the stream
    mapped-and-stream,order,sequential,order in which A accesses its pages
    mapped-and-stream,advice,none,"what A says of its accesses, by madvise"
    mapped-and-stream,mapping,shared,whether writes reach the file or make copies
    mapped-and-stream,code,no,"yes: the mapping is executable, as that of a program's text"
    mapped-and-stream,written,0,every so manyth page is written to instead of read; 0 for none
    mapped-and-stream,stream,256M,"size of the file that B reads, round and round"
    mapped-and-stream,every,8M,bytes that B reads before A accesses its pages again; 0 for none
    mapped-and-stream,loops,32,how often the two take turns
    mapped-and-stream,topology,parent,parent: P/A and P/B; global: A and B at the root; same: both tasks in P
    mapped-and-stream,limit,64M,"memory.max of P, which topology=global does not have"
    mapped-and-stream,filesystem,ext4,filesystem that the machine puts the files on
    mapped-and-stream,read_size,128k,bytes of one read call of B
    mapped-and-stream,--seed,,"where on the disk the files lie, within 1 MiB"
    mapped-and-stream,--seed,,"with order=random, in which order pages are accessed, anew in each pass"
    mapped-and-stream,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)"
    random-calls,,,"tasks that read, write, map, touch, advise and remove at random, to find where kernels differ"
    random-calls,program,1,the number that the calls are drawn from
    random-calls,calls,8,calls of each task; the first of a program stay as they are
    random-calls,tasks,1,"tasks, each with calls of its own"
    random-calls,first,32M,size of the first file
    random-calls,second,4M,size of the second file
    random-calls,small,100,small files
    random-calls,small_size,64k,size of the largest of them
    random-calls,mapping,8M,largest mapping of memory
    random-calls,limit,none,"memory.max of G, in which all tasks are"
    random-calls,filesystem,ext4,filesystem that the machine puts the files on
    random-calls,--seed,,"where on the disk the files lie, within 1 MiB; sizes of the small ones; which places are drawn"
    random-calls,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)"
    sequential-readers,,,"readers of a file and a disk each, once and sequentially"
    sequential-readers,readers,16,"how many read at the same time, each a file of its own"
    sequential-readers,file,128M,size of each reader's file
    sequential-readers,record,64k,bytes of one read or write call
    sequential-readers,disks,none,"disks that the files lie on: 1, or one for each reader; without it the latter where the machine has several disks"
    sequential-readers,prepare,written,"written: through the page cache, right before; laid-out: the files are there, as if written long ago"
    sequential-readers,held,0,anonymous memory that others hold all the time
    sequential-readers,filesystem,none,"filesystem that the machine puts the files on; without it the machine's own: ext3 on s390-fcp, else ext4"
    sequential-readers,--seed,,"when each writer and reader begins, up to 2 ms after it was forked: their order"
    sequential-readers,--seed,,"where on each disk the files lie, within 1 MiB"
    sequential-readers,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat, memory.stat)"
    simoop,,,"readers, writers, allocators and tree walkers that keep memory full"
    simoop,threads,none,workers; without it five for each CPU
    simoop,burners,none,tasks that keep a CPU busy; without it a fifth of the CPUs
    simoop,walkers,2,"tasks that look at every file, as du does"
    simoop,walk_pause,60,seconds between two walks of a walker
    simoop,tree_files,none,files that only walkers look at; without it one for each 160 KiB of memory
    simoop,directories,16,directories of the files
    simoop,working_set,none,memory that the workers keep; without it 60 % of all
    simoop,mapped,none,memory that a work maps and touches; without it an eighth of all for all workers
    simoop,alloc_wait,2640,milliseconds that a worker waits in all while it touches what it mapped
    simoop,file_size,80M,size of a data file
    simoop,files,none,data files; without it those of 2.4 times the memory
    simoop,pieces,8,"pieces that a work reads, and files that it writes"
    simoop,read_size,2M,bytes of a piece that is read
    simoop,write_size,1M,bytes of a file that is written
    simoop,kept,16,results of a worker that are there at a time
    simoop,seconds,480,"run time, with the warm-up"
    simoop,warmup,180,seconds that are not measured
    simoop,interval,60,seconds from one report to the next
    simoop,filesystem,xfs,filesystem that the machine puts the files on
    simoop,--seed,,which pieces of which files each worker reads
    simoop,--seed,,"when each worker, walker and burning task begins, up to 2 ms after it was forked: their order"
    simoop,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat, memory.stat, the log of XFS)"
    small-files,,,"a steady stream of small files, more than memory holds, and their deletion"
    small-files,processes,16,"processes that create files at the same time, each in a directory of its own"
    small-files,subdirectories,10000,"subdirectories of each directory, which are taken in turn"
    small-files,per_directory,none,files of a process before its next subdirectory; without it 180 s
    small-files,file_size,4k,"size of each file, which is written by one call"
    small-files,files,none,"files of a loop, all processes; without it 8/15 of memory in pages"
    small-files,loops,none,"loops, one sample each; without it those of 7.7 times the memory, 60 at most: 14"
    small-files,names,on,"on: each process keeps the names of its files, 2128 bytes each"
    small-files,delete,on,on: all files are deleted in the end
    small-files,filesystem,xfs,filesystem that the machine puts the files on
    small-files,scale,default,"full: on as much memory as the source's machine had, 16 GiB"
    small-files,--seed,,"the time of day, which names the first subdirectory"
    small-files,--seed,,"when each process begins, up to 2 ms after it was forked: their order"
    small-files,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat, memory.stat, the log of XFS)"
    program,,,"a captured program in one cgroup: its tasks, files and memory, from its trace (also `pagetide replay TRACE`)"
    program,trace,none,"file of the trace, as `pagetide capture` makes it; has to be given"
    program,limit,none,memory.max of its cgroup
    program,high,none,memory.high of its cgroup
    program,low,none,memory.low of its cgroup
    program,pace,think,think: the captured time after each operation; recorded: at the captured times; asap: at once
    program,filesystem,ext4,filesystem that the machine puts the files on
    program,--seed,,"simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)"
    "#);
    let mut workloads: Vec<&str> = csv.lines().skip(1).filter_map(|row| row.split(',').next()).collect();
    workloads.dedup();
    let each = format!("workloads {}", workloads.join(" "));
    assert!(scene.data("list features").contains("root-aging"));
    assert!(scene.data("list sysctls").contains("vm.min_free_kbytes"));
    for what in ["kernels", "machines", "workloads", &each, "features", "sysctls", "counters", "zones"] {
        let widest = scene.data(&format!("list {what}")).lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "list {what} is {widest:?} columns wide");
    }
}

/// To see eight workloads one read 365 lines: each parameter of each.
#[test]
fn workloads_are_listed_in_brief_and_one_with_its_parameters() {
    let scene = Scene::new();
    let brief = scene.data("list workloads");
    assert!(brief.lines().count() < 40 && brief.contains("hot-and-stream"), "{brief}");
    let one = scene.data("list workloads hot-and-stream");
    assert!(one.contains("topology") && !one.contains("small-files"), "{one}");
    insta::assert_snapshot!(scene.shown("list workloads hot-and-strem"), @"
    error: unknown workload `hot-and-strem`
    hint: did you mean `hot-and-stream`?
    exit 1
    ");
    insta::assert_snapshot!(scene.shown("list features root-aging"), @"
     feature     first in   help
     root-aging  linux-5.5  balance active and inactive lists over the whole
                            reclaimed tree, not per cgroup (5.5)
    exit 0
    ");
    insta::assert_snapshot!(scene.shown("list zones vm-2cpu"), @"
    error: `list zones` takes options, no names
    exit 2
    ");
}

/// It listed events and `memory.stat` only.
#[test]
fn counters_are_listed_with_gauges_zones_and_cgroups() {
    let counters = Scene::new().data("list counters --format csv");
    let lines: Vec<&str> = counters.lines().collect();
    assert_eq!(lines[0], "counter,kind,kept_by,file");
    for line in [
        "nr_free_pages,gauge,\"sim, real\",/proc/vmstat",
        "pgscan_kswapd,event,\"sim, real\",/proc/vmstat",
        "zN_ZONE_free,gauge,\"sim, real\",/proc/zoneinfo",
        "cg_PATH_inactive_file,gauge,\"sim, real\",memory.stat",
        "cg_PATH_events_oom_kill,event,\"sim, real\",memory.events",
    ] {
        assert!(lines.contains(&line), "{line}");
    }
}

/// One could not tell from the list which kernels had a feature already.
#[test]
fn each_feature_tells_the_first_kernel_that_has_it() {
    let features = Scene::new().data("list features --format csv");
    let first = |name: &str| {
        let row = features.lines().find_map(|line| line.strip_prefix(&format!("{name},")));
        row.unwrap().split(',').next().unwrap().to_owned()
    };
    assert_eq!(first("root-aging"), "linux-5.5");
    assert_eq!(first("pcp-auto-size"), "linux-6.12");
    assert_eq!(first("fragment-stall"), "none", "posted, never merged");
}

#[test]
fn every_list_has_every_form() {
    let scene = Scene::new();
    for what in ["kernels", "machines", "workloads", "features", "sysctls", "counters", "zones"] {
        let form = |format: &str| scene.data(&format!("list {what} --format {format}"));
        let json: serde_json::Value = serde_json::from_str(&form("json")).unwrap();
        assert_eq!((&json["schema"], &json["list"]), (&1.into(), &what.into()));
        let rows = json["rows"].as_array().unwrap().len();
        assert!(rows > 0, "{what}");
        assert_eq!(form("csv").lines().count(), rows + 1, "{what}");
        assert_eq!(form("md").lines().filter(|line| line.starts_with('|')).count(), rows + 2, "{what}");
    }
    let machines: serde_json::Value =
        serde_json::from_str(&scene.data("list machines --format json")).unwrap();
    let guest =
        machines["rows"].as_array().unwrap().iter().find(|row| row["machine"] == "guest-tcg").unwrap();
    assert_eq!((&guest["default_mem"], &guest["cpu_percent"]), (&(512 << 20).into(), &5700.into()));
}

#[test]
fn zones_are_those_that_a_run_would_start_with() {
    let scene = Scene::new();
    let options = "--kernel linux-5.4 --machine guest-tcg --mem 256M --set vm.min_free_kbytes=8000";
    insta::assert_snapshot!(scene.shown(&format!("list zones {options}")), @"
    kernel: linux-5.4
    machine: guest-tcg
    mem: 256M
    vm.min_free_kbytes: 8000
    vm.watermark_scale_factor: 10
    thp.enabled: never
    note: assumed: linux-5.4 boots as a guest of linux-5.10 does; no guest of linux-5.4 was measured
    unit: pages

     node  zone   managed   free   min   low  high
        0  DMA       3977   3945   138   172   206
        0  DMA32    53325  44519  1861  2326  2791

     node  zone   pcp batch  pcp high  pcp high max  reserve  reserve  reserve
                                                       dma32   normal  movable
        0  DMA            1         0             0      198      198      198
        0  DMA32         15        90            90        0        0        0
    exit 0
    ");
}

/// What is wrong for a run is wrong here, in the same words; what changes nothing is refused.
/// 64 nodes were taken, and refused at boot with the hint to give the machine more memory.
#[test]
fn a_machine_of_as_many_nodes_as_it_may_have_boots() {
    let scene = Scene::new();
    for mem in ["1G", "20G"] {
        let zones =
            scene.data(&format!("list zones --machine x86-64+nodes=30+cpus=30 --mem {mem} --format csv"));
        assert!(zones.lines().count() > 30, "{zones}");
    }
    let refused = scene.shown("list zones --machine x86-64+nodes=31+cpus=31 --mem 6G");
    assert!(refused.contains("a number of memory nodes from 1 to 30"), "{refused}");
}

#[test]
fn a_list_refuses_what_a_run_refuses() {
    let scene = Scene::new();
    for options in [
        "--machine vm-2cpus",
        "--machine guest-tcg --mem 64M",
        "--mem 100T",
        "--mem much",
        "--set vm.nope=1",
        "--set vm.swappiness=many",
        "--kernel linux-7",
        "--kernel linux-5.4+rot-aging",
    ] {
        let run = scene.shown(&format!("run hot-and-stream {options}"));
        assert_eq!(scene.shown(&format!("list zones {options}")), run, "{options}");
        assert!(run.ends_with("exit 1"), "{run}");
    }
    insta::assert_snapshot!(scene.shown("list kernels --mem 1G"), @"
    error: `--mem` is for `list zones`; it changes nothing about names
    exit 2
    ");
    insta::assert_snapshot!(scene.shown("list zones --machine guest-tcg --mem 64M"), @"
    error: 64M of memory is out of range for machine `guest-tcg`
    hint: give a size from 128M to 1T
    exit 1
    ");
}
