//! Runs as traces, decoded by the programs that they are for; skipped aloud where those are absent.

use std::process::{Command, Output};

use crate::support::{Scene, refused};

/// A small run with all that a trace can hold, kept in `run`.
const RUN: &str =
    "run hot-and-stream --mem 64M --param hot=8M --param stream=200M --kernel linux-5.4 --out run";

/// What the decoder says of a trace; `None` where Python or the package `perfetto` is missing. Another Python
/// than `python3` is named by `PAGETIDE_PYTHON`.
#[allow(clippy::print_stderr)]
fn decoded(scene: &Scene, trace: &str) -> Option<String> {
    let python = std::env::var("PAGETIDE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/traces/decode.py");
    let told = |output: Output| String::from_utf8(output.stdout).expect("UTF-8");
    let output = match Command::new(&python).arg(script).arg(scene.path().join(trace)).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no `{python}` to decode a trace with: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = told(output);
    if let Some(missing) = text.strip_prefix("MISSING ") {
        let missing = missing.trim_end();
        eprintln!("SKIPPED: a trace is not decoded: {missing}; `pip install perfetto` brings its protos");
        return None;
    }
    Some(text)
}

#[test]
fn a_trace_of_a_recording_without_events_decodes_with_perfettos_own_protos() {
    let scene = Scene::new();
    scene.data(RUN);
    let told = scene.shown("trace run -o run.perfetto-trace");
    assert!(
        told.starts_with("`run.perfetto-trace`: ") && told.ends_with(" bytes, 0 events\nexit 0"),
        "{told}"
    );
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

#[test]
fn the_same_recording_gives_the_same_trace_on_standard_output_and_in_a_file() {
    let scene = Scene::new();
    scene.data(RUN);
    scene.shown("trace run -o a.perfetto-trace");
    let file = std::fs::read(scene.path().join("a.perfetto-trace")).unwrap();
    assert!(file.len() > 1000);
    assert_eq!(scene.output("trace run").stdout, file);
}

#[test]
fn what_cannot_be_traced_is_refused_and_nothing_is_overwritten() {
    let scene = Scene::new();
    scene.data(RUN);
    scene.data("compare hot-and-stream --mem 64M --param hot=1M --param stream=1M --out both");
    scene.file("there", "mine");
    let shown = refused(
        &scene,
        &["trace nowhere", "trace both -o new", "trace run -o there", "trace run -o no-folder/new"],
    );
    insta::assert_snapshot!(shown, @r#"
    $ trace nowhere
    error: `nowhere` is not a folder with recordings
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
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
    error: cannot write `no-folder/new`
      caused by: entity not found
    exit 1
    "#);
    assert_eq!(std::fs::read_to_string(scene.path().join("there")).unwrap(), "mine");
}
