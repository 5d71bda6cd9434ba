//! Recordings in the hands of others: other programs read them, and processes, disks and people do to them what
//! they do.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Scene, refused, skipped};

const RUN: &str = "run hot-and-stream --mem 64M --param hot=8M --param stream=200M --kernel linux-5.4";

/// Recordings that older programs wrote.
fn older(schema: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../recording/tests/recordings/schema-{schema}"))
}

/// Runs `command` in the scene's folder with a limit on the size of files, in blocks of 512 bytes: what a full
/// disk is to those who write.
fn limited(scene: &Scene, blocks: u32, command: &str) -> String {
    let script =
        format!("trap '' XFSZ; ulimit -f {blocks}; exec {} {command}", env!("CARGO_BIN_EXE_pagetide"));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .current_dir(scene.path())
        .env_clear()
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    let output = shell.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().map_or("none".to_owned(), |code| code.to_string());
    format!("{}{}exit {code}", text(output.stdout), text(output.stderr))
}

/// Lines of `text` without what only a clock knows.
fn told(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| ["error", "hint", "exit", "warning"].iter().any(|kind| line.starts_with(kind)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Tables open with pandas, polars and DuckDB, which find the same. `PAGETIDE_PYTHON` names another Python than
/// `python3`.
#[test]
fn data_frame_libraries_open_every_table() {
    let scene = Scene::new();
    scene.data(&format!("{RUN} --events reclaim --out run"));
    let python = std::env::var("PAGETIDE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/recordings/read.py");
    let output = match Command::new(&python).arg(script).arg(scene.path().join("run")).output() {
        Ok(output) => output,
        Err(error) => return skipped(&format!("no `{python}` to read tables with: {error}")),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for missing in text.lines().filter_map(|line| line.strip_prefix("MISSING ")) {
        skipped(&format!("no table is read with {missing}; `pip install {missing}` brings it"));
    }
    let found = text.lines().filter(|line| line.contains(".parquet: "));
    let rows: Vec<u64> = found.map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert!(rows.is_empty() || (rows.len() == 4 && rows.iter().all(|&rows| rows > 0)), "{text}");
    assert!(rows.is_empty() || text.contains("mm_vmscan_kswapd_wake"), "{text}");
}

/// What a person did years ago is worth as much as what was done today.
#[test]
fn recordings_of_older_programs_are_shown_and_compared() {
    let scene = Scene::new();
    for schema in 1..=4 {
        let folder = older(schema);
        let shown = scene.data(&format!("report {}", folder.display()));
        assert!(shown.starts_with("hot-and-stream on linux-6.12 ("), "{shown}");
    }
    scene.data(&format!("{RUN} --out new"));
    let shown = scene.shown(&format!("compare {} new", older(1).display()));
    assert!(shown.contains("hot_pages_cached") && shown.ends_with("exit 0"), "{shown}");
}

#[test]
fn what_is_no_recording_or_a_broken_one_is_told_by_name_and_nothing_is_touched() {
    let scene = Scene::new();
    let broken = |name: &str, change: &dyn Fn(&Path)| {
        scene.data(&format!("{RUN} --out {name}"));
        change(&scene.path().join(name));
    };
    broken("truncated", &|folder| {
        let path = folder.join("series.parquet");
        let bytes = fs::read(&path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    });
    broken("without-a-file", &|folder| fs::remove_file(folder.join("waits.parquet")).unwrap());
    broken("without-manifest", &|folder| fs::remove_file(folder.join("MANIFEST")).unwrap());
    broken("newer", &|folder| {
        let text = fs::read_to_string(folder.join("MANIFEST")).unwrap();
        fs::write(folder.join("MANIFEST"), text.replace("schema 5", "schema 6")).unwrap();
    });
    fs::create_dir(scene.path().join("photos")).unwrap();
    scene.file("photos/holiday.jpg", "not for you").file("photos/MANIFEST", "Manifest-Version: 1.0\n");
    fs::create_dir(scene.path().join("empty")).unwrap();
    let commands = ["truncated", "without-a-file", "without-manifest", "newer", "photos", "empty"]
        .map(|folder| format!("report {folder}"));
    let mut commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    commands.extend(["compare newer truncated", "report photos/holiday.jpg"]);
    let taken = format!("{RUN} --out photos");
    commands.push(&taken);
    let text = refused(&scene, &commands);
    let lengths = text.split(" bytes, `MANIFEST` says ").next().unwrap();
    let measured: String = lengths.chars().rev().take_while(char::is_ascii_digit).collect();
    let measured: String = measured.chars().rev().collect();
    let said = text.split(" bytes, `MANIFEST` says ").nth(1).unwrap();
    let said: String = said.chars().take_while(char::is_ascii_digit).collect();
    insta::assert_snapshot!(text.replace(&said, "ALL").replace(&measured, "HALF"), @"
    $ report truncated
    error: `truncated/series.parquet` was changed after it was written: it has HALF bytes, `MANIFEST` says ALL
    hint: it was cut short or edited: copy the folder again, or make the run again
    exit 1

    $ report without-a-file
    error: `without-a-file/waits.parquet` is missing
    hint: copy the whole folder again, or make the run again
    exit 1

    $ report without-manifest
    error: `without-manifest/MANIFEST` is missing
    hint: copy the whole folder again, or make the run again
    exit 1

    $ report newer
    error: `newer/MANIFEST` has schema 6, this program reads up to schema 5
    hint: read it with the pagetide that wrote it, or make the run again
    exit 1

    $ report photos
    error: `photos` holds no recording: it has no `MANIFEST` of one
    hint: name the folder of a recording; `pagetide run ... --out DIR` makes one
    exit 1

    $ report empty
    error: there is no recording in `empty`
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ compare newer truncated
    error: `newer/MANIFEST` has schema 6, this program reads up to schema 5
    hint: read it with the pagetide that wrote it, or make the run again
    exit 1

    $ report photos/holiday.jpg
    error: `photos/holiday.jpg` is not a folder with recordings
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ run hot-and-stream --mem 64M --param hot=8M --param stream=200M --kernel linux-5.4 --out photos
    error: `photos` exists already
    hint: name a new folder, or remove this one first
    exit 1
    ");
}

/// A process that is killed has no time to say anything: what it wrote before must speak for itself.
#[test]
fn a_run_that_is_killed_leaves_what_it_had_sampled_by_then() {
    let scene = Scene::new();
    let run = "run hot-and-stream --mem 256M --interval 1ms --events reclaim --out long -q";
    let mut child = scene.command(run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !scene.path().join("long.partial/series/00002.parquet").exists() {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "nothing was written");
        sleep(Duration::from_millis(2));
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert!(!scene.path().join("long").exists());
    insta::assert_snapshot!(scene.shown("report long"), @"
    error: there is no recording at `long`, but what a run left that did not end, in `long.partial`
    hint: name what is left to read it as far as it goes, or make the run again
    exit 1
    ");
    let shown = scene.shown("report long.partial");
    assert!(
        shown.contains("over time, ") && shown.contains("note: the run did not end: this goes up to "),
        "{shown}"
    );
    assert!(
        shown.contains("warning: `long.partial` is of a run that did not end: it goes up to "),
        "{shown}"
    );
    // The same run goes on to have its name, and stands beside what was left.
    scene.data(&format!("{RUN} --out again/1-run"));
    fs::rename(scene.path().join("long.partial"), scene.path().join("again/2-run.partial")).unwrap();
    let shown = scene.shown("report again");
    assert!(
        shown.contains("warning: `again/2-run.partial` is of a run that did not end, and left out"),
        "{shown}"
    );
}

/// Half of a comparison, stopped by Ctrl-C, was shown later as if it were all of it.
#[test]
fn a_folder_with_fewer_runs_than_were_planned_is_shown_with_a_warning() {
    let scene = Scene::new();
    scene.data("compare hot-and-stream --param hot=1M --param stream=2M --mem 64M --seeds 2 --out pair -q");
    let told = "warning: `pair` has 3 of the 4 runs that were planned";
    assert!(!scene.shown("compare pair").contains("that were planned"));
    fs::remove_dir_all(scene.path().join("pair/2-linux-5.4-seed2")).unwrap();
    for command in ["compare pair", "report pair", "stats pair"] {
        let shown = scene.shown(command);
        assert!(shown.contains(told), "{command}: {shown}");
    }
}

/// A disk that is full in the middle of a run, and at its end. What had been written, and what was measured, is
/// not lost.
#[test]
fn a_full_disk_ends_a_run_and_takes_nothing_with_it() {
    let scene = Scene::new();
    scene.file("mine", "older data");
    insta::assert_snapshot!(told(&limited(&scene, 2, &format!("{RUN} --out begin -q"))), @"
    error: cannot write `begin.partial/recording.json`: File too large (os error 27)
    hint: check permissions and free space there, or name another folder
    exit 1
    ");
    assert_eq!(scene.names(), ["mine"], "there was nothing worth keeping");
    let long = RUN.replace("stream=200M", "stream=800M");
    let middle = limited(&scene, 128, &format!("{long} --events pages --out middle -q"));
    assert!(middle.contains("error: cannot write `middle.partial/events/0"), "{middle}");
    assert!(middle.contains("; what was recorded up to then is in `middle.partial`\nhint: "), "{middle}");
    assert!(middle.ends_with("exit 1") && scene.path().join("middle.partial/events/00000.parquet").exists());
    let shown = scene.shown("report middle.partial");
    assert!(shown.contains("note: the run did not end: ") && shown.ends_with("exit 0"), "{shown}");
    let end = limited(&scene, 36, &format!("{RUN} --out end -q"));
    assert!(
        told(&end).starts_with("error: cannot write `end.partial/recording.json`: File too large"),
        "{end}"
    );
    assert!(end.contains("hot_pages_cached"), "the result is shown although it is not kept: {end}");
}

/// `size --out` ended with the first recording that could not be written, and showed nothing of what had run.
#[test]
fn a_full_disk_takes_no_size_with_it() {
    let scene = Scene::new();
    let requests: Vec<String> = (0..2000).map(|at| format!("{at},r,{},4096\n", at * 37 % 500 * 8)).collect();
    scene.file("trace.csv", "time,op,lbn,size\n".to_owned() + &requests.concat());
    let shown = limited(&scene, 6, "size trace.csv --limits 1M --out runs -q");
    assert!(shown.contains(" limit  hits, %"), "{shown}");
    assert!(shown.contains("error: cannot write `runs/linux-6.12-"), "{shown}");
    assert!(shown.ends_with("exit 1"), "{shown}");
}

/// The same on a disk that really is full: one of a few KiB that only this test sees, and that goes with it.
#[test]
fn a_disk_without_room_ends_a_run_like_a_limit() {
    let scene = Scene::new();
    let long = RUN.replace("stream=200M", "stream=800M");
    let pagetide = env!("CARGO_BIN_EXE_pagetide");
    let script = format!(
        "mkdir tiny && mount -t tmpfs -o size=96k none tiny || exit 99
        cd tiny; {pagetide} {long} --events pages --out full -q; echo code $?; {pagetide} report full.partial"
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", &script]).current_dir(scene.path()).env("NO_COLOR", "1");
    let output = match unshare.stdin(Stdio::null()).output() {
        Ok(output) if ![1, 99].contains(&output.status.code().unwrap_or(1)) => output,
        _ => return skipped("no disk is really full: that takes `unshare` and the right to mount"),
    };
    let [told, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(errors.contains("error: cannot write `full.partial/"), "{errors}");
    assert!(errors.contains("No space left on device"), "{errors}");
    assert!(errors.contains("what was recorded up to then is in `full.partial`\nhint: "), "{errors}");
    assert!(told.contains("code 1") && told.contains("note: the run did not end: "), "{told}");
}

/// Whoever reads the result goes away; the recording is there all the same.
#[test]
fn a_closed_pipe_keeps_no_recording_from_being_written() {
    let scene = Scene::new();
    let mut child = scene
        .command(&format!("{RUN} --out kept --all -q"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success() && said.is_empty(), "{said}");
    assert!(scene.data("report kept").starts_with("hot-and-stream on linux-5.4 ("));
}

/// The interval is a part of the scenario, and of the command that makes the run again.
#[test]
fn samples_are_as_far_apart_as_was_asked() {
    let scene = Scene::new();
    scene.data(&format!("{RUN} --interval 20ms --out often"));
    scene.data("run often/scenario.toml --out again");
    let manifest = |folder: &str| fs::read(scene.path().join(folder).join("MANIFEST")).unwrap();
    assert_eq!(manifest("often"), manifest("again"));
    let scenario = fs::read_to_string(scene.path().join("often/scenario.toml")).unwrap();
    assert!(scenario.contains("\ninterval = \"20ms\"\n"), "{scenario}");
    let json = fs::read_to_string(scene.path().join("often/recording.json")).unwrap();
    assert!(json.contains("--interval 20ms"), "{json}");
    let rows = |options: &str| {
        let shown = scene.data(&format!("{RUN} {options} -q"));
        let parts =
            shown.split("over time, ").nth(1).unwrap_or_default().split(' ').next().unwrap_or_default();
        parts.parse::<u32>().unwrap()
    };
    assert!(rows("--interval 20ms") > rows(""));
    insta::assert_snapshot!(refused(&scene, &[
        &format!("{RUN} --interval 0s"),
        &format!("{RUN} --interval 2h"),
        &format!("{RUN} --interval often"),
        "compare often again --interval 20ms",
        "record --interval 1us -- true",
    ]), @"
    $ run hot-and-stream --mem 64M --param hot=8M --param stream=200M --kernel linux-5.4 --interval 0s
    error: `--interval`: 0s is not from 1ms to 3600s
    hint: write a time with its unit, such as `100ms`
    exit 1

    $ run hot-and-stream --mem 64M --param hot=8M --param stream=200M --kernel linux-5.4 --interval 2h
    error: `--interval`: 7200s is not from 1ms to 3600s
    hint: write a time with its unit, such as `100ms`
    exit 1

    $ run hot-and-stream --mem 64M --param hot=8M --param stream=200M --kernel linux-5.4 --interval often
    error: `--interval`: `often` is not a duration
    hint: write a whole number with `ns`, `us`, `ms`, `s`, `m` or `h`, such as `20ms`
    exit 1

    $ compare often again --interval 20ms
    error: `--interval` is for runs; it changes nothing about recordings
    exit 2

    $ record --interval 1us -- true
    error: `--interval`: 1us is not from 1ms to 3600s
    hint: write a time with its unit, such as `100ms`
    exit 1
    ");
}
