//! Reclaim that somebody asks for by writing to a file: `memory.reclaim` of a cgroup and `reclaim` of a node, with a
//! swappiness of their own (SWAP 6.4; MECHANISMS-510-72 10, 12).

use std::future::Future;

use mm::version::rules::{NodeReclaim, ProactiveCounts, ProactiveReclaim};
use sim::run::Checks;
use sim::{SimResult, SimRun, SimSystem};
use units::{Bytes, Nanos};
use workload::system::{Advice, OpenMode, System, TaskSpec};
use workload::{Errno, Outcome, WorkloadError};

use crate::story::{self, machine, told};

/// Pages of anonymous memory and of a file in the cgroup.
const PAGES: u64 = 1000;
/// `EAGAIN` of Linux.
const TRY_AGAIN: Errno = Errno::Other(11);

fn tell<F, Fut>(kernel: &str, nodes: usize, program: F) -> SimResult
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<Outcome, WorkloadError>> + 'static,
{
    let mut spec = SimRun { swap: "zram:32M".parse().expect("an area"), ..machine(kernel, 64) };
    spec.layout.nodes.resize(nodes, spec.layout.nodes[0].clone());
    told(&spec, Checks::Spread(50), program)
}

/// A task of cgroup A with memory and page cache of its own tries these; the counters of `vmstat` after each.
async fn asks(
    sys: &SimSystem,
    tries: &'static [(&'static str, &'static str)],
) -> Result<Vec<(Result<(), Errno>, [u64; 2])>, WorkloadError> {
    sys.cgroup_create("A").await?;
    sys.lay_out_file("file", Bytes(PAGES * 4096)).await?;
    let program = move |sys: SimSystem| async move {
        let memory = sys.map_anonymous(Bytes(PAGES * 4096)).await?;
        sys.touch(&memory, 0, PAGES).await?;
        let file = sys.open("file", OpenMode::Read).await?;
        sys.read(&file, 0, PAGES * 4096).await?;
        let mut answers = Vec::new();
        for &(target, value) in tries {
            let before = stolen(&sys).await?;
            let answer = match target {
                "node0" => sys.node_write(0, "reclaim", value).await,
                "node7" => sys.node_write(7, "reclaim", value).await,
                group => sys.cgroup_write(group, "memory.reclaim", value).await,
            };
            let after = stolen(&sys).await?;
            answers.push((answer.map_err(|error| error.errno), [after[0] - before[0], after[1] - before[1]]));
        }
        Ok::<_, WorkloadError>(answers)
    };
    sys.join(sys.spawn(TaskSpec::named("asker").in_cgroup("A"), program).await?).await?
}

/// Anonymous and file pages that reclaim has freed so far.
async fn stolen(sys: &SimSystem) -> Result<[u64; 2], WorkloadError> {
    let counters = sys.vmstat().await?;
    let of = |name: &str| counters.iter().find(|(of, _)| of == name).map_or(0, |(_, value)| *value);
    Ok([of("pgsteal_anon"), of("pgsteal_file")])
}

#[test]
fn who_asks_for_anonymous_memory_alone_loses_no_page_of_a_file() {
    const TRIES: &[(&str, &str)] =
        &[("A", "1M swappiness=max"), ("A", "1M swappiness=0"), ("node0", "1M swappiness=max")];
    for (kernel, rule) in [
        ("linux-7.2", ProactiveReclaim::QuartersOrAnon),
        ("linux-7.2+lru-gen", ProactiveReclaim::QuartersOrAnon),
        ("linux-6.12", ProactiveReclaim::Quarters),
        ("linux-6.1", ProactiveReclaim::Whole),
    ] {
        assert_eq!(mm::Version::parse(kernel).expect("a kernel").rules.proactive_reclaim, rule);
        let result = tell(kernel, 1, move |sys| async move {
            let answers = asks(&sys, TRIES).await?;
            let [(anon, [anon_pages, spared]), (file, [kept, file_pages]), (node, [more, also_spared])] =
                answers[..]
            else {
                panic!("three answers")
            };
            if rule == ProactiveReclaim::QuartersOrAnon {
                assert_eq!((anon, file, node), (Ok(()), Ok(()), Ok(())), "{kernel}");
                assert!(anon_pages >= 256 && more >= 256, "{kernel}: {anon_pages}, {more}");
                assert_eq!((spared, kept, also_spared), (0, 0, 0), "{kernel}");
                assert!(file_pages >= 256, "{kernel}: {file_pages}");
            } else {
                assert_eq!((anon, anon_pages, spared), (Err(Errno::Inval), 0, 0), "{kernel}");
                assert_eq!(node, Err(Errno::NoEnt), "{kernel}: no such file yet");
                assert_eq!(file, if rule == ProactiveReclaim::Whole { Err(Errno::Inval) } else { Ok(()) });
            }
            Ok(Outcome::default())
        });
        let counts = mm::Version::parse(kernel).expect("a kernel").rules.proactive_counts;
        let proactive = result.vmstat.get("pgsteal_proactive").copied();
        match counts {
            ProactiveCounts::Proactive => {
                let all = ["pgsteal_anon", "pgsteal_file"].map(|name| result.vmstat[name]).iter().sum();
                assert_eq!((proactive, result.vmstat["pgsteal_direct"]), (Some(all), 0), "{kernel}");
                assert_eq!(result.vmstat["allocstall_movable"], 0, "nobody was in need");
            }
            ProactiveCounts::Direct => assert_eq!(proactive, None, "{kernel}: no such counter yet"),
        }
    }
}

#[test]
fn a_node_that_has_no_such_memory_says_so_and_one_that_is_not_there_has_no_file() {
    const TRIES: &[(&str, &str)] =
        &[("node0", "1G"), ("node7", "1M"), ("node0", "much"), ("node0", "1M swappiness=201")];
    assert_eq!(mm::Version::parse("linux-7.2").expect("a preset").rules.node_reclaim, NodeReclaim::File);
    let kernel = "linux-7.2-node-reclaim-file";
    assert_eq!(mm::Version::parse(kernel).expect("a kernel").rules.node_reclaim, NodeReclaim::None);
    tell("linux-7.2", 1, |sys| async move {
        let answers = asks(&sys, TRIES).await?;
        let said: Vec<_> = answers.iter().map(|(answer, _)| *answer).collect();
        assert_eq!(said, [Err(TRY_AGAIN), Err(Errno::NoEnt), Err(Errno::Inval), Err(Errno::Inval)]);
        assert!(answers[0].1[1] > PAGES / 2, "it took what there was: {:?}", answers[0].1);
        Ok(Outcome::default())
    });
}

/// A CPU of each node fills its own; the first one is asked, by two at a time.
#[test]
fn a_node_gives_of_its_own_memory_alone_and_to_one_at_a_time() {
    let result = tell("linux-7.2", 2, |sys| async move {
        let mut tasks = Vec::new();
        for cpu in 0..2 {
            let name = format!("file{cpu}");
            sys.lay_out_file(&name, Bytes(PAGES * 4096)).await?;
            let program = move |sys: SimSystem| async move {
                let file = sys.open(&name, OpenMode::Read).await?;
                sys.read(&file, 0, PAGES * 4096).await?;
                sys.sleep(Nanos::from_millis(200)).await;
                let asked = sys.node_write(0, "reclaim", "64M").await.map_err(|error| error.errno);
                sys.sleep(Nanos::from_millis(200)).await;
                let left = sys.resident_pages(&file, 0, PAGES * 4096).await?;
                Ok::<_, WorkloadError>((asked, left))
            };
            tasks.push(sys.spawn(TaskSpec::named(format!("reader{cpu}")).on_cpu(cpu), program).await?);
        }
        let mut said = Vec::new();
        for task in tasks {
            said.push(sys.join(task).await??);
        }
        let [(first, near), (second, far)] = said[..] else { panic!("two answers") };
        let mut answers = [first, second];
        answers.sort_by_key(|answer| *answer == Err(Errno::Busy));
        assert_eq!(answers, [Err(TRY_AGAIN), Err(Errno::Busy)]);
        assert!(near < 100 && far == PAGES, "{near} pages of node 0 and {far} of node 1 are left");
        Ok(Outcome::default())
    });
    assert!(result.vmstat["pgscan_proactive"] > 0);
}

/// Measured: guests of 5.10, 6.1, 6.12 and 7.2 read what is swapped out into the swap cache, count none of it as
/// read ahead, and take minor faults on it afterwards. The model refused it.
#[test]
fn memory_that_will_be_needed_is_read_from_swap_before_it_is_accessed() {
    for kernel in ["linux-5.10", "linux-6.12", "linux-7.2"] {
        let spec = SimRun { swap: "zram:32M".parse().expect("an area"), ..machine(kernel, 64) };
        story::tell_with(&spec, Checks::Spread(50), |sys| async move {
            let memory = sys.map_anonymous(Bytes(PAGES * 4096)).await?;
            sys.touch(&memory, 0, PAGES).await?;
            sys.advise(&memory, Advice::WillNeed).await?;
            let before = swapped_in(&sys).await?;
            assert_eq!(before, [0, 0, 0], "nothing is swapped out");
            // Written, then dropped from the swap cache by the second call.
            for _ in 0..2 {
                sys.advise(&memory, Advice::PageOut).await?;
                sys.sleep(Nanos::from_millis(100)).await;
            }
            sys.advise(&memory, Advice::WillNeed).await?;
            sys.sleep(Nanos::from_millis(100)).await;
            assert_eq!(swapped_in(&sys).await?, [PAGES, 0, 0]);
            sys.touch_reading(&memory, 0, PAGES).await?;
            assert_eq!(swapped_in(&sys).await?, [PAGES, 0, 0], "minor faults");
            Ok(())
        });
    }
}

/// Pages read from swap, those of them that nobody had asked for, and major faults.
async fn swapped_in(sys: &SimSystem) -> Result<[u64; 3], WorkloadError> {
    let counters = sys.vmstat().await?;
    let of = |name: &str| counters.iter().find(|(of, _)| of == name).map_or(0, |(_, value)| *value);
    Ok([of("pswpin"), of("swap_ra"), of("pgmajfault")])
}
