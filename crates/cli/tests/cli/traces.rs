//! Runs as traces, decoded by the programs that they are for; skipped aloud where those are absent.

use std::process::{Command, Output};

use crate::support::{Scene, refused, skipped};

/// A small run that reclaims directly and waits.
const SUBJECT: &str =
    "hot-and-stream --mem 64M --param hot=8M --param stream=200M --kernel linux-5.4 --seed 2";

/// The run as a recording without events, `run`.
fn plain(scene: &Scene) {
    scene.data(&format!("run {SUBJECT} --out run"));
}

/// What the decoder says of a trace; `None` where Python or the package `perfetto` is missing. Another Python
/// than `python3` is named by `PAGETIDE_PYTHON`.
fn decoded(scene: &Scene, trace: &str) -> Option<String> {
    let python = std::env::var("PAGETIDE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/traces/decode.py");
    let told = |output: Output| String::from_utf8(output.stdout).expect("UTF-8");
    let output = match Command::new(&python).arg(script).arg(scene.path().join(trace)).output() {
        Ok(output) => output,
        Err(error) => {
            skipped(&format!("no `{python}` to decode a trace with: {error}"));
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = told(output);
    if let Some(missing) = text.strip_prefix("MISSING ") {
        let missing = missing.trim_end();
        skipped(&format!("a trace is not decoded: {missing}; `pip install perfetto` brings its protos"));
        return None;
    }
    Some(text)
}

#[test]
fn a_trace_of_a_recording_without_events_decodes_with_perfettos_own_protos() {
    let scene = Scene::new();
    plain(&scene);
    let told = scene.shown("trace run -o run.perfetto-trace");
    assert!(told.contains("warning: the recording has no events: waits are sums"), "{told}");
    assert!(told.contains("KiB, from 0 recorded events") && told.ends_with("exit 0"), "{told}");
    let Some(text) = decoded(&scene, "run.perfetto-trace") else { return };
    for part in [
        "run | run | hot-and-stream on linux-5.4 > stream_done | 1 | ",
        "kernel threads / kswapd0 | wait | sums of waits in stream_done | 1 | ",
        "memory: ",
        " counters in 4096 bytes\n",
        "events per second: ",
        "zone DMA32 of node 0: ",
    ] {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
}

/// Whatever way it comes about: a run for its trace only, a recording with events, a file, standard output.
#[test]
fn the_same_run_gives_the_same_trace() {
    let scene = Scene::new();
    scene.data(&format!("trace {SUBJECT} -o live.perfetto-trace"));
    scene.data(&format!("run {SUBJECT} --events reclaim --out run"));
    let file = std::fs::read(scene.path().join("live.perfetto-trace")).unwrap();
    assert!(file.len() > 100_000, "{}", file.len());
    assert!(scene.output("trace run").stdout == file);
    assert_eq!(scene.names().iter().filter(|name| name.contains("partial")).count(), 0);
}

/// Slices of waits on the trace add up to what the recording says of the task; kswapd and direct reclaim are
/// there, with shrinkers inside, requests with arrows, and every end has its begin.
#[test]
fn a_trace_with_events_decodes_and_holds_what_the_recording_says() {
    let scene = Scene::new();
    scene.data(&format!("run {SUBJECT} --events reclaim --out run"));
    scene.data("trace run -o run.perfetto-trace");
    let Some(text) = decoded(&scene, "run.perfetto-trace") else { return };
    for part in [
        "kernel threads / kswapd0 | reclaim | kswapd awake | ",
        "program / stream | reclaim | mm_vmscan_direct_reclaim | ",
        "program / stream | io | * block_rq_issue | ",
        "block device 0 / requests | io | read | ",
    ] {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&scene.data("report run --format json")).unwrap();
    let waits = json["runs"][0]["waits"].as_array().unwrap();
    let of_stream = |wait: &&serde_json::Value| wait["task"] == "stream" && wait["kind"] != "idle";
    let waited: f64 =
        waits.iter().filter(of_stream).map(|wait| wait["spent_seconds"].as_f64().unwrap()).sum();
    let drawn: f64 = text
        .lines()
        .filter(|line| line.starts_with("program / stream | wait | "))
        .map(|line| line.rsplit(" | ").next().unwrap().trim_end_matches(" ns").parse::<f64>().unwrap())
        .sum();
    assert!(waited > 0.0 && (waited - drawn / 1e9).abs() < 1e-6, "{waited} s, drawn {drawn} ns");
}

/// The text has a line for each event, in order, each of the kernel's layout; what it says of reclaim is what the
/// counters say.
#[test]
fn the_text_of_ftrace_is_in_order_and_says_what_the_counters_say() {
    let scene = Scene::new();
    scene.data(&format!("run {SUBJECT} --events pages --out run"));
    let text = scene.data("trace run --format ftrace");
    assert!(text.starts_with("# tracer: nop\n#\n"));
    let (mut last, mut freed, mut added, mut lines) = (0.0, 0, 0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (task, rest) = line.split_at(24);
        assert_eq!(
            (&task[16..17], &rest[..12]),
            ("-", if task.contains("<idle>") { " [000] d.h.." } else { " [000] ....." })
        );
        let (time, event) = rest[12..].split_once(": ").unwrap();
        let time: f64 = time.trim().parse().unwrap();
        assert!(time >= last, "{line}");
        last = time;
        lines += 1;
        let (name, fields) = event.split_once(": ").unwrap();
        let field = |name: &str| -> u64 {
            let found = fields.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_else(|| panic!("{name} in {line}")).parse().unwrap()
        };
        match name {
            "mm_vmscan_lru_shrink_inactive" => freed += field("nr_reclaimed"),
            "mm_filemap_add_to_page_cache" => added += 1 << field("order"),
            _ => {}
        }
    }
    let json: serde_json::Value = serde_json::from_str(&scene.data("report run --format json")).unwrap();
    let count = |name: &str| json["runs"][0]["vmstat"][name].as_u64().unwrap();
    assert_eq!(freed, count("pgsteal_kswapd") + count("pgsteal_direct"));
    assert!(added >= freed && lines > 10_000, "{added} pages added, {lines} lines");
}

/// A line without the width of its columns: task, and the event with its fields.
fn plain_line(line: &str) -> Option<(String, String)> {
    let (task, rest) = line.split_once(" [000] ")?;
    let (_, event) = rest.split_once(": ")?;
    let words: Vec<&str> = event.split_ascii_whitespace().collect();
    Some((task.trim().to_owned(), words.join(" ")))
}

/// `trace-cmd` reads in a `trace.dat` what the text says, line by line, and filters by the numbers of events.
#[test]
fn trace_cmd_reports_the_events_of_the_text() {
    let scene = Scene::new();
    scene.data(&format!("run {SUBJECT} --events pages --out run"));
    scene.data("trace run --format trace-dat -o trace.dat");
    let report = |filter: &[&str]| {
        Command::new("trace-cmd").arg("report").args(filter).arg(scene.path().join("trace.dat")).output()
    };
    let output = match report(&[]) {
        Ok(output) => output,
        Err(error) => return skipped(&format!("no `trace-cmd` to read a trace.dat with: {error}")),
    };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    let read: Vec<_> =
        told.lines().filter_map(plain_line).filter(|(_, event)| !event.starts_with("file: ")).collect();
    let text = scene.data("trace run --format ftrace");
    let written: Vec<_> = text.lines().filter_map(plain_line).collect();
    assert!(written.len() > 10_000);
    let differs = read.iter().zip(&written).find(|(read, written)| read != written);
    assert_eq!((differs, read.len()), (None, written.len()));

    let filtered = report(&["-F", "mm_vmscan_direct_reclaim_end: value > 0"]).unwrap().stdout;
    let reclaims = String::from_utf8(filtered).unwrap().lines().filter_map(plain_line).count();
    let freed = |(_, event): &&(String, String)| {
        event.starts_with("mm_vmscan_direct_reclaim_end:") && !event.ends_with("=0")
    };
    assert_eq!(reclaims, written.iter().filter(freed).count());
}

#[test]
fn what_cannot_be_traced_is_refused_and_nothing_is_overwritten() {
    let scene = Scene::new();
    plain(&scene);
    scene.data("compare hot-and-stream --mem 64M --param hot=1M --param stream=1M --out both");
    scene.file("there", "mine");
    let shown = refused(
        &scene,
        &[
            "trace nowhere",
            "trace both -o new",
            "trace run -o there",
            "trace run -o no-folder/new",
            "trace run --format ftrace",
            "trace run --format trace-dat -o new",
            "trace run --kernel linux-5.4 -o new",
            "trace run --events pages -o new",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ trace nowhere
    error: unknown workload `nowhere`
    hint: known names: `anon-and-file`, `containers`, `hot-and-stream`, `huge-faults`, `inode-storm`, `mapped-and-stream`, `random-calls`, `sequential-readers`, `simoop`, `small-files`
    exit 1

    $ trace both -o new
    error: `both` has 2 recordings, and this is about one
    hint: name one, such as `both/1-linux-5.4-seed1`
    exit 1

    $ trace run -o there
    error: `there` exists already
    hint: name a new file, or remove this one first
    exit 1

    $ trace run -o no-folder/new
    error: cannot write `no-folder/new`: there is no folder `no-folder`
    hint: make the folder first, or name another one
    exit 1

    $ trace run --format ftrace
    error: `run` has no events, and this form of a trace has nothing else
    hint: `pagetide run WORKLOAD --events reclaim --out DIR` records them
    exit 1

    $ trace run --format trace-dat -o new
    error: `run` has no events, and this form of a trace has nothing else
    hint: `pagetide run WORKLOAD --events reclaim --out DIR` records them
    exit 1

    $ trace run --kernel linux-5.4 -o new
    error: `--kernel` is for a run, and `run` is one that was made already
    exit 2

    $ trace run --events pages -o new
    error: `--events` is for a run; `run` has the events it has
    exit 2
    ");
    assert_eq!(std::fs::read_to_string(scene.path().join("there")).unwrap(), "mine");
}
