//! Small worlds of two models, which stand for a real kernel and the model of it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use recording::worlds::{WorldRow, read_worlds};
use tempfile::TempDir;

use super::*;

fn request(seeds: &str) -> WorldsRequest {
    WorldsRequest {
        kernel: Some("linux-5.5".to_owned()),
        against: Some("linux-5.4".to_owned()),
        seeds: seeds.to_owned(),
        workloads: vec!["sequential-readers".to_owned()],
        repeats: Some(2),
        model_seeds: Some(1),
        ..WorldsRequest::default()
    }
}

fn control() -> WorldsControl {
    WorldsControl { stop: Arc::default(), observer: Arc::new(|_| {}), host: HostPolicy::default(), jobs: 2 }
}

fn table(folder: &Path) -> Vec<WorldRow> {
    read_worlds(&folder.join(TABLE)).unwrap()
}

fn seeds_of(rows: &[WorldRow]) -> Vec<u64> {
    let mut seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
    seeds.dedup();
    seeds
}

#[test]
fn worlds_are_judged_once_and_more_of_them_come_behind() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("worlds");
    let (summary, interrupted) = request("1..2").plan().unwrap().run(&out, None, &control()).unwrap();
    assert!(interrupted.is_none() && summary.worlds == 2 && summary.has_real, "{summary:?}");
    let rows = table(&out);
    let of = |counter: &str| rows.iter().find(|row| row.counter == counter).unwrap();
    assert_eq!((of("nr_free_pages").real.len(), of("nr_free_pages").model.len()), (2, 1));
    assert_eq!((&*of("outcome").class, &*of("nr_free_pages").kind), ("spread", "vmstat"));
    assert!(of("model").text.as_ref().unwrap().contains("--machine guest-uml"), "{:?}", of("model"));
    assert!(rows.iter().all(|row| row.kind == "run" || Class::named(&row.class).is_some()));

    let ran = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&ran);
    let observer = move |done: WorldDone<'_>| told.lock().unwrap().push(done.seed);
    let control = WorldsControl { observer: Arc::new(observer), ..control() };
    let (summary, _) = request("2..4").plan().unwrap().run(&out, None, &control).unwrap();
    ran.lock().unwrap().sort_unstable();
    assert_eq!((&ran.lock().unwrap()[..], summary.worlds), (&[3, 4][..], 4));
    assert_eq!(seeds_of(&table(&out)), [1, 2, 3, 4]);
    assert_eq!(table(&out)[..rows.len()], rows);
}

#[test]
fn what_was_measured_is_taken_from_another_folder() {
    let folder = TempDir::new().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    request("1..2").plan().unwrap().run(&first, None, &control()).unwrap();
    // A value that no run would give tells where it came from.
    let mut rows = table(&first);
    for row in rows.iter_mut().filter(|row| row.counter == "pgpgin") {
        row.real.fill(7.0);
    }
    recording::worlds::write_worlds(&first.join(TABLE), &rows).unwrap();
    request("1..3").plan().unwrap().run(&second, Some(&first), &control()).unwrap();
    let read = table(&second);
    let pages =
        |seed: u64| &read.iter().find(|row| row.seed == seed && row.counter == "pgpgin").unwrap().real;
    assert_eq!((pages(1), pages(2)), (&vec![7.0, 7.0], &vec![7.0, 7.0]));
    assert_ne!(pages(3), &vec![7.0, 7.0], "it is not in the other folder, and ran");
}

#[test]
fn a_stopped_call_keeps_what_has_ended_and_the_next_goes_on() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("worlds");
    let stop = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&stop);
    let observer = move |_: WorldDone<'_>| own.store(true, Ordering::Relaxed);
    let stopped = WorldsControl { stop, observer: Arc::new(observer), jobs: 1, ..control() };
    let (summary, interrupted) = request("1..3").plan().unwrap().run(&out, None, &stopped).unwrap();
    assert_eq!(interrupted.unwrap().to_string(), "interrupted: 1 of 3 worlds finished");
    assert_eq!(summary.worlds, 1);
    // As if the first call had been killed before it put its worlds into the table.
    std::fs::create_dir(out.join("unmerged")).unwrap();
    std::fs::rename(out.join(TABLE), out.join("unmerged/1.parquet")).unwrap();
    let (summary, interrupted) = request("1..3").plan().unwrap().run(&out, None, &control()).unwrap();
    assert!(interrupted.is_none() && summary.worlds == 3, "{summary:?}");
    assert!(!out.join("unmerged").exists());
}

#[test]
fn after_the_time_no_world_begins() {
    let folder = TempDir::new().unwrap();
    let plan = WorldsRequest { time: Some("0s".to_owned()), ..request("1..3") }.plan().unwrap();
    let (summary, interrupted) = plan.run(&folder.path().join("worlds"), None, &control()).unwrap();
    assert!(summary.worlds == 0 && interrupted.is_none());
}

/// A run that fails, and one that is killed, are rows that say so.
#[test]
fn a_world_that_fails_is_a_row() {
    let folder = TempDir::new().unwrap();
    let plan = request("1..1").plan().unwrap();
    let mut world = plan.world(1).unwrap();
    let request = Request {
        mem: Some("64M".to_owned()),
        params: vec!["held=512M".to_owned()],
        ..Request::new(Subject::Workload("sequential-readers".to_owned()))
    };
    for run in &mut world.model {
        run.scenario = request.resolve().unwrap();
    }
    let rows = plan.rows_of(&world, &[], &control()).unwrap();
    let outcome = rows.iter().find(|row| row.counter == "outcome").unwrap();
    assert_eq!((&outcome.real, &*outcome.class), (&vec![0.0, 0.0], "beyond"));
    assert!(outcome.text.as_ref().unwrap().starts_with("model: "), "{outcome:?}");
    assert!(rows.iter().all(|row| row.kind == "run"), "nothing is judged");
    let told = super::summary::summary(&rows);
    assert_eq!((told.not_judged.len(), &*told.counters[0].counter), (1, "outcome"));
    drop(folder);
}

#[test]
fn worlds_under_a_limit_are_told_from_those_of_the_whole_machine() {
    let scope_of = |params: &[&str]| {
        let request = Request {
            mem: Some("256M".to_owned()),
            params: params.iter().map(|&pair| pair.to_owned()).collect(),
            ..Request::new(Subject::Workload("anon-and-file".to_owned()))
        };
        scope(&request.resolve().unwrap())
    };
    assert_eq!(scope_of(&["limit=100M"]), "limit");
    assert_eq!(scope_of(&["limit=256M"]), "global");
    assert_eq!(scope_of(&["limit=100M", "topology=global"]), "global");
}
