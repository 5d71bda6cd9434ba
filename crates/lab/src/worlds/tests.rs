//! Small worlds of two models, which stand for a real kernel and the model of it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use recording::worlds::{WorldRow, read_worlds};
use tempfile::TempDir;

use super::check::Verdict;
use super::run::ended_alike;
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
    WorldsControl {
        stop: Arc::default(),
        observer: Arc::new(|_| {}),
        host: crate::run::real::HostPolicy::default(),
        jobs: 2,
    }
}

fn table(folder: &Path) -> Vec<WorldRow> {
    read_worlds(&folder.join(TABLE)).unwrap()
}

fn seeds_of(rows: &[WorldRow]) -> Vec<u64> {
    let mut seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
    seeds.dedup();
    seeds
}

/// The first world of 201 to 250 had too little memory for itself, and none of them ran.
#[test]
fn a_first_world_with_too_little_memory_keeps_no_other_from_running() {
    let checked = |checks: &[Result<(), u8>]| super::run::unless_all_fail(checks.iter().copied());
    assert_eq!(checked(&[Err(1), Ok(()), Err(2)]), Ok(()));
    assert_eq!((checked(&[Err(1), Err(2)]), checked(&[])), (Err(1), Ok(())));
}

#[test]
fn worlds_are_judged_once_and_more_of_them_come_behind() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("worlds");
    let (summary, interrupted) = request("1..2").plan().unwrap().run(&out, &control()).unwrap();
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
    let (summary, _) = request("2..4").plan().unwrap().run(&out, &control).unwrap();
    ran.lock().unwrap().sort_unstable();
    assert_eq!((&ran.lock().unwrap()[..], summary.worlds), (&[3, 4][..], 4));
    assert_eq!(seeds_of(&table(&out)), [1, 2, 3, 4]);
    assert_eq!(table(&out)[..rows.len()], rows);
}

/// What a model could reach is told where a kernel ran more than twice.
#[test]
fn real_runs_are_judged_by_each_other_where_there_are_three() {
    for (repeats, rows) in [(2, 0), (3, 1)] {
        let folder = TempDir::new().unwrap();
        let request = WorldsRequest { repeats: Some(repeats), ..request("1..1") };
        let (summary, _) = request.plan().unwrap().run(&folder.path().join("worlds"), &control()).unwrap();
        let itself = |share: &&report::WorldsShares| share.workload == "each real run by the others";
        let found: Vec<_> = summary.shares.iter().filter(itself).collect();
        assert_eq!(found.len(), rows, "{repeats}");
        for share in found {
            let judged: usize = share.near.iter().sum();
            assert!(judged > 30 && judged.is_multiple_of(3), "{share:?}");
            assert_eq!(share.worlds, 1);
        }
    }
}

#[test]
fn what_was_measured_is_taken_from_another_folder() {
    let folder = TempDir::new().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    request("1..2").plan().unwrap().run(&first, &control()).unwrap();
    // A value that no run would give tells where it came from.
    let mut rows = table(&first);
    for row in rows.iter_mut().filter(|row| row.counter == "pgpgin") {
        row.real.fill(7.0);
    }
    recording::worlds::write_worlds(&first.join(TABLE), &rows).unwrap();
    let again = WorldsRequest { real_of: Some(first), ..request("1..3") };
    again.plan().unwrap().run(&second, &control()).unwrap();
    let read = table(&second);
    let pages =
        |seed: u64| &read.iter().find(|row| row.seed == seed && row.counter == "pgpgin").unwrap().real;
    assert_eq!((pages(1), pages(2)), (&vec![7.0, 7.0], &vec![7.0, 7.0]));
    assert_ne!(pages(3), &vec![7.0, 7.0], "it is not in the other folder, and ran");
}

/// Worlds 1071 and on were judged anew as if guests were as fast as when world 991 ran.
#[test]
fn worlds_of_several_machines_are_not_judged_anew_as_if_on_one() {
    let folder = TempDir::new().unwrap();
    let first = folder.path().join("first");
    request("1..2").plan().unwrap().run(&first, &control()).unwrap();
    let mut rows = table(&first);
    for row in rows.iter_mut().filter(|row| row.seed == 2 && row.counter == "model") {
        row.text = row.text.take().map(|text| text.replace("guest-uml", "guest-uml+cpus=1"));
    }
    recording::worlds::write_worlds(&first.join(TABLE), &rows).unwrap();
    let again = |seeds: &str| WorldsRequest {
        backend: Some("uml:6.12".to_owned()),
        kernel: None,
        against: None,
        real_of: Some(first.clone()),
        ..request(seeds)
    };
    assert!(again("2..2").plan().is_ok());
    let refused = again("1..2").plan().unwrap_err().to_string();
    assert_eq!(refused, "worlds 1 and 2 of that folder were judged on different machines");
}

#[test]
fn a_stopped_call_keeps_what_has_ended_and_the_next_goes_on() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("worlds");
    let stop = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&stop);
    let observer = move |_: WorldDone<'_>| own.store(true, Ordering::Relaxed);
    let stopped = WorldsControl { stop, observer: Arc::new(observer), jobs: 1, ..control() };
    let (summary, interrupted) = request("1..3").plan().unwrap().run(&out, &stopped).unwrap();
    assert_eq!(interrupted.unwrap().to_string(), "interrupted: 1 of 3 worlds finished");
    assert_eq!(summary.worlds, 1);
    // As if the first call had been killed before it put its worlds into the table.
    std::fs::create_dir(out.join("unmerged")).unwrap();
    std::fs::rename(out.join(TABLE), out.join("unmerged/1.parquet")).unwrap();
    let (summary, interrupted) = request("1..3").plan().unwrap().run(&out, &control()).unwrap();
    assert!(interrupted.is_none() && summary.worlds == 3, "{summary:?}");
    assert!(!out.join("unmerged").exists());
}

/// What was told of it was `0 worlds of  of the model`.
#[test]
fn after_the_time_no_world_begins() {
    let folder = TempDir::new().unwrap();
    let plan = WorldsRequest { time: Some("1ns".to_owned()), ..request("1..3") }.plan().unwrap();
    let (summary, interrupted) = plan.run(&folder.path().join("worlds"), &control()).unwrap();
    assert!(summary.worlds == 0 && interrupted.is_none());
    let told = report::views::worlds(&summary).render(report::Format::Text, 80);
    assert!(told.starts_with("no world has ended\n"), "{told}");
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
    let rows = plan.rows_of(&world, &control()).unwrap();
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

fn check(seeds: &str) -> WorldsRequest {
    WorldsRequest { seeds: seeds.to_owned(), ..WorldsRequest::default() }
}

#[test]
fn small_worlds_of_all_kernels_are_checked_and_end_as_they_should() {
    let plan = check("1..24").check_plan().unwrap();
    let commands = plan.commands();
    assert_eq!(commands.lines().count(), 24);
    assert!(commands.lines().all(|line| line.ends_with(" --check") || line.starts_with("# ")), "{commands}");
    let kernels = ["linux-2.6.32", "linux-5", "linux-6", "linux-7"];
    assert!(kernels.iter().all(|kernel| commands.contains(kernel)), "{commands}");
    let told = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&told);
    let observer = move |_: WorldDone<'_>| *counted.lock().unwrap() += 1;
    let (checked, wrong) = plan.run(&WorldsControl { observer: Arc::new(observer), ..control() }).unwrap();
    assert!(wrong.is_none() && checked.broken.is_empty(), "{checked:?}");
    assert_eq!((checked.count(), *told.lock().unwrap()), (24, 24));
}

/// What is planted is found, told as one command, and made smaller.
#[test]
fn a_world_that_is_wrong_is_told_by_a_small_command() {
    let plan = check("3..3").check_plan().unwrap();
    let seed = plan.one_where(|drawn| drawn.workload == "sequential-readers" && drawn.params.len() > 2);
    let planted = |scenario: &Scenario| match scenario.workload.params().count("readers") {
        Some(readers) if readers >= 2 => Verdict::Wrong(check::Kind::Broken, format!("planted: {readers}")),
        _ => Verdict::Fine("done"),
    };
    let broken = plan.broken_by(seed, &planted).expect("it has several readers");
    assert!(
        broken.command.contains(" --param readers=") && broken.text.starts_with("planted: "),
        "{broken:?}"
    );
    let smaller = broken.smaller.expect("there is a smaller one");
    assert!(smaller.len() < broken.command.len() && broken.tried > 3, "{smaller}");
    let options = smaller.matches(" --").count();
    assert!(smaller.contains(" --mem 8M ") && options <= 8, "{smaller}");
}

#[test]
fn checks_are_of_one_model() {
    let on = |backend: &str| WorldsRequest { backend: Some(backend.to_owned()), ..check("1..1") };
    assert_eq!(
        on("uml:6.12").check_plan().unwrap_err().to_string(),
        "`--check` looks at the model's own state, and `--on uml:6.12` has none"
    );
    let two = WorldsRequest { against: Some("linux-5.4".to_owned()), ..check("1..1") };
    assert_eq!(
        two.check_plan().unwrap_err().to_string(),
        "`--check` takes one kernel of the model, and `--against` is a second one"
    );
}

/// A folder with a world of 5.4, which stands for the real kernel, and 5.5, of which more is drawn than makes them
/// differ.
fn differing(folder: &Path) -> WorldRequest {
    let out = folder.join("worlds");
    std::fs::create_dir(&out).unwrap();
    let row = |kind: &str, counter: &str, text: Option<String>| WorldRow {
        seed: 17,
        kernel: "linux-5.4".to_owned(),
        workload: "hot-and-stream".to_owned(),
        scope: "global".to_owned(),
        kind: kind.to_owned(),
        counter: counter.to_owned(),
        real: vec![0.0],
        model: vec![0.0],
        class: "spread".to_owned(),
        error: Some(0.0),
        text,
    };
    let command = |kernel: &str| {
        format!(
            "pagetide run hot-and-stream --kernel {kernel} --machine guest-uml --mem 64M --swap disk:16M \
             --param hot=16M --param hot_reads=3 --param read_size=64k --param stream=128M \
             --set vm.vfs_cache_pressure=50"
        )
    };
    let off = |counter: &str, real: f64, model: f64| WorldRow {
        real: vec![real],
        model: vec![model],
        class: "beyond".to_owned(),
        error: Some((model - real) / real),
        ..row("vmstat", counter, None)
    };
    let rows = [
        row("run", "real", Some(command("linux-5.4"))),
        row("run", "model", Some(command("linux-5.5"))),
        row("run", "outcome", None),
        row("vmstat", "pgpgin", None),
        off("pgdeactivate", 3700.0, 228.0),
        off("nr_active_file", 1000.0, 3869.0),
        WorldRow { seed: 18, ..row("run", "model", Some(command("linux-5.5"))) },
    ];
    recording::worlds::write_worlds(&out.join(TABLE), &rows).unwrap();
    WorldRequest { folder: out, world: "linux-5.4/17".to_owned(), ..WorldRequest::default() }
}

#[test]
fn a_world_that_disagrees_is_made_smaller_and_told_as_two_commands() {
    let folder = TempDir::new().unwrap();
    let request = differing(folder.path());
    let world = request.find().unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |tried: WorldTried<'_>| told.lock().unwrap().push(tried.disagrees);
    let (evidence, interrupted) = world.shrink(&control(), &tell).unwrap();
    assert!(interrupted.is_none() && evidence.is_smallest, "{evidence:?}");
    assert!(evidence.tried.unwrap() >= told.lock().unwrap().len(), "{evidence:?}");
    assert_eq!((&*evidence.counter.counter, &*evidence.counter.class), ("pgdeactivate", "beyond"));
    let commands = [&evidence.real_command, &evidence.model_command];
    let needless = ["--set", "--swap disk", "hot_reads", "read_size", "hot=16M"];
    assert!(
        needless.iter().all(|word| commands.iter().all(|command| !command.contains(word))),
        "{commands:?}"
    );
    let at = evidence.parting.as_ref().expect("it is sampled").at_seconds;
    assert!(at.is_some_and(|at| at < 1.0), "{evidence:?}");
    let text = report::views::world(&evidence).render(report::Format::Text, 100);
    let [real, model] = commands;
    assert!(
        text.starts_with("world linux-5.4/17, hot-and-stream: linux-5.4 beside linux-5.5, made as"),
        "{text}"
    );
    let joined = text.replace(" \\\n      ", " ");
    assert!(joined.contains(real.as_str()) && joined.contains(model.as_str()), "{text}");
    assert!(text.contains("samples part at 0."), "{text}");
}

#[test]
fn who_stops_has_the_smallest_world_so_far() {
    let folder = TempDir::new().unwrap();
    let world = differing(folder.path()).find().unwrap();
    let control = control();
    let stop = Arc::clone(&control.stop);
    let tell = move |tried: WorldTried<'_>| stop.store(tried.disagrees, Ordering::Relaxed);
    let (evidence, interrupted) = world.shrink(&control, &tell).unwrap();
    let told = interrupted.unwrap();
    assert_eq!(told.class(), crate::Class::Interrupted, "{told}");
    assert!(!evidence.model_command.contains("--set") && !evidence.is_smallest, "{evidence:?}");
    assert!(evidence.parting.is_some(), "{evidence:?}");
}

#[test]
fn both_sides_of_a_world_are_shown_beside_each_other() {
    let folder = TempDir::new().unwrap();
    let request = WorldRequest { counter: Some("nr_active_file".to_owned()), ..differing(folder.path()) };
    let evidence =
        WorldRequest { world: "17".to_owned(), ..request }.find().unwrap().explain(&control()).unwrap();
    assert_eq!((evidence.counter.off, evidence.tried), (2869.0, None));
    let names: Vec<&str> = evidence.counters.iter().map(|counter| &*counter.counter).collect();
    assert_eq!(names, ["pgdeactivate", "nr_active_file"]);
    let document = report::views::world(&evidence);
    let text = document.render(report::Format::Text, 100);
    assert!(text.contains("counters of /proc/vmstat that differ most\n"), "{text}");
    assert!(
        text.contains("nr_active_file: +286.9 %\n") || text.contains("nr_active_file: +287 %\n"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&document.render(report::Format::Json, 100)).unwrap();
    assert_eq!(json["counters"][0]["counter"], "pgdeactivate");
    assert!(json["parting"]["samples"].as_array().is_some_and(|samples| !samples.is_empty()), "{json}");
    assert!(document.render(report::Format::Markdown, 100).contains("| pgdeactivate |"));
}

#[test]
fn a_world_that_cannot_be_shown_says_why() {
    let folder = TempDir::new().unwrap();
    let request = differing(folder.path());
    let told = |request: WorldRequest| {
        let error = request.find().unwrap_err();
        format!("{error}; {}", error.hint().unwrap_or_default())
    };
    let world = |world: &str| told(WorldRequest { world: world.to_owned(), ..request.clone() });
    let counter = |counter: &str| told(WorldRequest { counter: Some(counter.to_owned()), ..request.clone() });
    assert!(world("19").starts_with("there is no world `19` in `"), "{}", world("19"));
    assert!(world("uml:6.12/17").starts_with("there is no world `uml:6.12/17` in `"));
    assert!(
        world("18").starts_with("world `linux-5.4/18` ran on the model alone: nothing is beside it; run it")
    );
    assert!(
        counter("pgdeactivated").contains("did you mean `pgdeactivate`?"),
        "{}",
        counter("pgdeactivated")
    );
    assert_eq!(
        counter("pgpgin"),
        "`pgpgin` of world `linux-5.4/17` is not more than 10 % off: spread; name another one, such as `--counter \
         pgdeactivate`, which is off by the most"
    );
    let nowhere = told(WorldRequest { folder: "nowhere".into(), ..request.clone() });
    assert_eq!(nowhere, "`nowhere` is no folder; name the folder that `pagetide worlds --out DIR` made");
}

/// One of three seeds of the model that ended otherwise made a world "beyond", whatever the other two did.
#[test]
fn sides_end_alike_where_half_of_the_models_runs_ended_as_some_real_run_did() {
    let (done, killed) = (0.0, 1.0);
    assert!(ended_alike(&[done, done], &[done, killed, done]));
    assert!(ended_alike(&[done, killed], &[killed, killed, killed]));
    assert!(!ended_alike(&[done, done], &[done, killed, killed]));
    assert!(ended_alike(&[done], &[]), "a world whose model was not run is not judged");
}
