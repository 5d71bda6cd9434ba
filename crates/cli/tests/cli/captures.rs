//! `pagetide capture`: a command runs as if nobody looked, and leaves a trace.

use recording::read_trace;

use crate::support::{Scene, refused};

/// What was captured is told behind the command's own output, with times that no two runs share.
fn told(output: &std::process::Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn capture(scene: &Scene, options: &str, script: &str) -> std::process::Output {
    let mut command = scene.command(&format!("capture {options} --"));
    command.args(["sh", "-c", script]).output().expect("the program is built")
}

#[test]
fn output_and_status_are_the_commands_own() {
    let scene = Scene::new();
    scene.file("in", "some text\n");
    let output = capture(&scene, "-o app.trace", "cat in; echo said >&2; exit 7");
    assert_eq!(output.stdout, b"some text\n");
    assert_eq!(output.status.code(), Some(7));
    let told = told(&output);
    assert!(told.starts_with("said\ncaptured in app.trace\n  operations "), "{told}");
    assert!(told.ends_with("next: `pagetide size app.trace`\n"), "{told}");
    let trace = read_trace(&scene.path().join("app.trace")).expect("it is whole");
    let file = trace.files.iter().position(|file| file.path.ends_with("/in")).expect("it was read");
    assert!(trace.operations.iter().any(|one| one.object as usize == file && one.len == 10));
    assert_eq!(trace.command, "sh -c 'cat in; echo said >&2; exit 7'");
    let quiet = capture(&scene, "-q -o other.trace", "kill -9 $$");
    assert_eq!(quiet.status.code(), Some(128 + 9));
    assert_eq!(self::told(&quiet), "");
}

#[test]
fn what_cannot_be_captured_is_refused_and_leaves_nothing() {
    let scene = Scene::new();
    let shown = |options: &str| scene.shown(&format!("capture {options}"));
    let missing = shown("-o app.trace -- no-such-program");
    assert!(missing.starts_with("error: cannot run `no-such-program`"), "{missing}");
    assert!(missing.contains("\nhint: ") && missing.ends_with("exit 127"), "{missing}");
    scene.file("text", "no program");
    let text = shown("-o app.trace -- ./text");
    assert!(text.ends_with("exit 126") && text.contains("chmod +x ./text"), "{text}");
    assert!(shown("-o text -- true").contains("exists already"));
    assert!(shown("-o no/such/folder/app.trace -- true").ends_with("exit 1"));
    assert!(shown("-o app.trace --pid 4194305").starts_with("error: there is no process 4194305"));
    assert!(shown("-o app.trace --sample soon -- true").ends_with("exit 1"));
    assert!(shown("-o app.trace --max-tasks 0 -- true").starts_with("error: `--max-tasks` takes"));
    assert_eq!(scene.names(), ["text"]);
}

#[test]
fn a_place_and_a_process_that_cannot_be_were_told_in_words_of_the_system() {
    let scene = Scene::new();
    let commands = [
        "-o none/app.trace -- true",
        "-o . -- true",
        "-o app.trace --attach abc",
        "-o app.trace --attach -1",
    ]
    .map(|options| format!("capture {options}"));
    insta::assert_snapshot!(refused(&scene, &commands.each_ref().map(String::as_str)), @"
    $ capture -o none/app.trace -- true
    error: cannot write `none/app.trace`: there is no folder `none`
    hint: make the folder first, or name another one
    exit 1

    $ capture -o . -- true
    error: `.` is a folder
    hint: name a new file in it
    exit 1

    $ capture -o app.trace --attach abc
    error: invalid value 'abc' for '--attach <PID>': it takes a whole number, such as 2

    For more information, try '--help'.
    exit 2

    $ capture -o app.trace --attach -1
    error: invalid value '-1' for '--attach <PID>': it takes a whole number, such as 2

    For more information, try '--help'.
    exit 2
    ");
}

#[test]
fn a_program_that_forks_without_end_leaves_what_it_did_until_then() {
    let scene = Scene::new();
    let output = capture(&scene, "-o app.trace --max-tasks 20", "while :; do /bin/true; done");
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("it made more than 20 tasks"), "{}", told(&output));
    assert!(!read_trace(&scene.path().join("app.trace")).expect("it is whole").operations.is_empty());
}

/// Everything that is written goes to a device that is full.
#[test]
fn a_full_disk_disturbs_the_trace_alone() {
    let scene = Scene::new();
    // A file may have 64 blocks: more is refused, as on a disk that is full; the signal is ignored.
    let program = env!("CARGO_BIN_EXE_pagetide");
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; {program} capture -o app.trace -- \
         sh -c 'i=0; while [ $i -lt 3000 ]; do read line < in; i=$((i + 1)); done; echo done; exit 3'"
    );
    scene.file("in", "line\n");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(scene.path());
    let output = shell.output().expect("there is a shell");
    assert_eq!(output.stdout, b"done\n");
    assert_eq!(output.status.code(), Some(3));
    assert!(told(&output).contains("File too large"), "{}", told(&output));
}
