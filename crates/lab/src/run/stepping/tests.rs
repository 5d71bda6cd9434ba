//! A run that is stopped and looked at ends as any other; what is seen is what is there.

use super::*;
use crate::resolve::request::{Request, Subject};
use crate::run::simulate::simulate;

fn scenario(kernel: &str) -> Scenario {
    let request = Request {
        kernel: Some(kernel.to_owned()),
        mem: Some("256M".to_owned()),
        params: ["hot=10M", "stream=256M"].map(str::to_owned).to_vec(),
        ..Request::new(Subject::Workload("hot-and-stream".to_owned()))
    };
    request.resolve().unwrap()
}

fn begin(kernel: &str) -> Stepping {
    Stepping::begin(&scenario(kernel), "run", &Arc::new(AtomicBool::new(false)), |_| {}).unwrap()
}

/// Two lists, and generations; looked at after times and after single events.
#[test]
fn a_run_that_was_looked_at_leaves_the_same_recording() {
    for kernel in ["linux-5.4", "linux-6.12+lru-gen"] {
        let untouched =
            simulate(&scenario(kernel), "run", &Arc::new(AtomicBool::new(false)), |_| {}).unwrap();
        let mut run = begin(kernel);
        for at in [0, 1_000, 20_000_000, 20_000_000, 10_000_000] {
            run.run_until(Nanos(at)).unwrap();
            run.step(100).unwrap();
            assert!(run.vmstat().unwrap()["nr_free_pages"] > 0);
            run.memcg().unwrap();
            run.zones().unwrap();
            run.lru("").unwrap();
            run.tasks().unwrap();
            run.page("hot", 0).unwrap();
        }
        assert!(!run.is_over());
        let recording = run.finish().unwrap();
        assert_eq!(recording.events, untouched.events);
        assert_eq!(recording.content_hash(), untouched.content_hash());
    }
}

#[test]
fn a_step_is_one_event_and_time_never_goes_back() {
    let mut run = begin("linux-6.12");
    let mut last = (Nanos(0), 0);
    for _ in 0..1000 {
        run.step(1).unwrap();
        let now = (run.now().unwrap(), run.events().unwrap());
        assert!(now.0 >= last.0 && now.1 == last.1 + 1, "{last:?} {now:?}");
        last = now;
    }
    let soon = Nanos(last.0.get() + 10_000_000);
    run.run_until(soon).unwrap();
    let at = run.now().unwrap();
    assert!(last.0 <= at && at <= soon, "{at}");
    run.run_until(Nanos(5)).unwrap();
    assert_eq!(run.now().unwrap(), at);
}

#[test]
fn a_moment_is_a_time_with_its_unit() {
    assert_eq!(parse_moment("2 s").unwrap(), Nanos(2_000_000_000));
    assert_eq!(parse_moment("150ms").unwrap(), Nanos(150_000_000));
    assert!(parse_moment("soon").unwrap_err().hint().is_some());
}

#[test]
fn a_page_that_was_read_is_seen_where_it_is() {
    let mut run = begin("linux-5.4");
    assert_eq!(run.page("hot", 0).unwrap(), PageLook::NoFile);
    let mut cached = None;
    while !run.is_over() && cached.is_none() {
        run.step(50).unwrap();
        cached = match run.page("hot", 0).unwrap() {
            PageLook::Cached(page) if page.state == "lru" => Some(page),
            _ => None,
        };
    }
    let page = cached.expect("the hot file is read");
    assert!(page.list.ends_with("_file") && page.pages >= 1, "{page:?}");
    run.lru(&page.cgroup).unwrap();
}

#[test]
fn a_cgroup_that_is_not_there_is_told_with_those_that_are() {
    let mut run = begin("linux-5.4");
    run.run_until(Nanos(10_000_000)).unwrap();
    let error = run.lru("Nobody").unwrap_err();
    assert!(error.to_string().contains("cgroup `Nobody`"), "{error}");
}

#[test]
fn a_run_that_was_stopped_goes_on() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut run = Stepping::begin(&scenario("linux-5.4"), "run", &stop, |_| {}).unwrap();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = run.run_until(Nanos(1_000_000_000)).unwrap_err();
    assert!(matches!(error, LabError::Interrupted { .. }), "{error}");
    stop.store(false, std::sync::atomic::Ordering::Relaxed);
    let untouched =
        simulate(&scenario("linux-5.4"), "run", &Arc::new(AtomicBool::new(false)), |_| {}).unwrap();
    assert_eq!(run.finish().unwrap().content_hash(), untouched.content_hash());
}
