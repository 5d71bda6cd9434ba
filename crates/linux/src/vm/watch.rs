//! Starts QEMU, or a kernel that is a program, and stays with it until there is a result, or a reason why there is
//! none.
//!
//! The guest's console and its messages come as two files that grow, or the messages through a socket; both are read
//! every few milliseconds. A guest is given up when somebody says stop, its kernel crashes, nothing is
//! heard from it for too long, or the whole takes too long. It never outlives the watcher,
//! also not one that is killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use units::Bytes;
use workload::Outcome;

use super::console::Console;
use super::error::VmError;
use super::protocol::{Inbox, Message, last_words_in};
use crate::bounds::Rounded;
use crate::process::told_of_our_death;
use crate::spec::{LinuxResult, OomKill, TELL_EVERY, Told};

/// Between two looks at the files.
const POLL: Duration = Duration::from_millis(20);
/// How long QEMU may take to end by itself after the last word of the guest.
const GRACE: Duration = Duration::from_secs(10);

/// What `out_of_memory()` says when it finds nobody to kill, up to 6.12 at least.
const DEADLOCKED: &str = "System is deadlocked on memory";

/// Times after which a guest is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For the whole.
    pub total: Duration,
    /// Without a word, before the guest is ready.
    pub boot: Duration,
    /// Without a word, afterwards.
    pub quiet: Duration,
}

/// What a guest that did its work leaves.
#[derive(Debug)]
pub struct Finished {
    /// Its result.
    pub result: LinuxResult,
    /// From the start of QEMU to the guest's first message.
    pub boot: Duration,
    /// Processes that the guest's OOM killer took, as its console says.
    pub oom_kills: u32,
}

/// Why there is no result, and whether the guest's program had started.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: VmError,
    /// Whether the guest had booted: before, another accelerator may be worth a try.
    pub was_ready: bool,
}

/// How the guest's messages come.
#[derive(Debug, Clone, Copy)]
pub enum Channel<'a> {
    /// In a file that the program was told to write, as it was of the console. Its own words go to the other file.
    Files { messages: &'a Path, errors: &'a Path },
    /// Through a socket that is its standard input, both ways. Its console is its standard output and, for what
    /// nobody types, its standard error. It is asked to end by SIGHUP, and told of our death by SIGTERM.
    Sockets,
}

/// Where the guest's output comes.
#[derive(Debug, Clone, Copy)]
pub struct Outputs<'a> {
    /// Its console.
    pub console: &'a Path,
    /// Its messages.
    pub channel: Channel<'a>,
    /// Its data disks, which grow.
    pub disks: &'a [PathBuf],
}

/// Runs `command` until it delivers a result; it is dead then, too.
///
/// # Errors
/// See [`VmError`].
pub fn watch(
    command: Command,
    outputs: &Outputs<'_>,
    patience: &Patience,
    stop: &AtomicBool,
    tell: &dyn Fn(Told<'_>),
) -> Result<Finished, Failure> {
    let early = |error| Failure { error, was_ready: false };
    let mut watcher = Watcher::start(command, outputs).map_err(early)?;
    loop {
        let step = watcher.step(patience, stop, tell);
        match step {
            Ok(None) => sleep(POLL),
            Ok(Some(result)) => {
                watcher.wait_for_end();
                let boot = watcher.boot.unwrap_or_default();
                return Ok(Finished { result, boot, oom_kills: watcher.console.oom_kills() });
            }
            Err(error) => {
                let was_ready = watcher.boot.is_some() || matches!(error, VmError::Guest { .. });
                return Err(Failure { error, was_ready });
            }
        }
    }
}

struct Watcher {
    child: Child,
    /// Whether SIGUSR1 ends it and all others that it started.
    ends_when_asked: bool,
    started: Instant,
    last_heard: Instant,
    boot: Option<Duration>,
    console_file: File,
    console: Console,
    channel: Box<dyn Read>,
    inbox: Inbox,
    errors: Box<dyn Read>,
    error_text: String,
    disks: Vec<PathBuf>,
    last_phase: String,
    last_told: Instant,
    /// The kernel's, once it has booted.
    release: String,
    /// What the workload had measured when it last told.
    kept: Option<Outcome>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // What is asked to end takes along those whom it has started.
        let until = Instant::now() + GRACE;
        if self.ends_when_asked && matches!(self.child.try_wait(), Ok(None)) {
            // Somebody may have stopped it with the rest.
            for signal in [Signal::USR1, Signal::CONT] {
                let _ = kill_process(Pid::from_child(&self.child), signal);
            }
            while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
                sleep(POLL);
            }
        }
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watcher {
    fn start(mut command: Command, outputs: &Outputs<'_>) -> Result<Self, VmError> {
        let create = |path: &Path| File::create(path).map_err(|source| VmError::io("create", path, source));
        let open = |path: &Path| File::open(path).map_err(|source| VmError::io("read", path, source));
        let console = create(outputs.console)?;
        let (channel, errors): (Box<dyn Read>, Box<dyn Read>) = match outputs.channel {
            Channel::Files { messages, errors } => {
                create(messages)?;
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(create(errors)?);
                told_of_our_death(&mut command, Signal::KILL);
                (Box::new(open(messages)?), Box::new(open(errors)?))
            }
            Channel::Sockets => {
                let pair = || socket().map_err(|source| VmError::io("create", Path::new("a socket"), source));
                let ((channel, theirs), (errors, own_words)) = (pair()?, pair()?);
                command.stdin(theirs).stdout(console).stderr(own_words);
                told_of_our_death(&mut command, Signal::TERM);
                (Box::new(channel), Box::new(errors))
            }
        };
        // Ctrl-C goes to the terminal's group; we decide when the guest ends.
        let child = command.process_group(0).spawn().map_err(|source| {
            let program = command.get_program();
            match source.kind() {
                ErrorKind::NotFound => VmError::NoQemu { program: program.display().to_string() },
                _ => VmError::io("run", Path::new(program), source),
            }
        })?;
        let now = Instant::now();
        Ok(Self {
            child,
            ends_when_asked: matches!(outputs.channel, Channel::Sockets),
            started: now,
            last_heard: now,
            boot: None,
            console_file: open(outputs.console)?,
            console: Console::default(),
            channel,
            inbox: Inbox::default(),
            errors,
            error_text: String::new(),
            disks: outputs.disks.to_owned(),
            last_phase: String::new(),
            last_told: now,
            release: String::new(),
            kept: None,
        })
    }

    /// Looks at everything once. `Some` is the result.
    fn step(
        &mut self,
        patience: &Patience,
        stop: &AtomicBool,
        tell: &dyn Fn(Told<'_>),
    ) -> Result<Option<LinuxResult>, VmError> {
        if stop.load(Ordering::Relaxed) {
            return Err(VmError::Stopped);
        }
        // Ask this first: what an ended program wrote is all there when the files are read.
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        let messages = self.hear()?;
        for message in messages {
            match message {
                Message::Ready { release } => {
                    self.boot = Some(self.started.elapsed());
                    self.release = release;
                }
                Message::Kept(outcome) => self.kept = Some(outcome),
                Message::Alive => {}
                Message::Progress(text) => {
                    tell(Told::Phase(&text));
                    self.last_phase = text;
                }
                Message::Done(result) => return Ok(Some(*result)),
                Message::Failed { message, hint } => return Err(VmError::Guest { message, hint }),
            }
        }
        if let Some(line) = self.console.crash() {
            let line = line.to_owned();
            self.wait_for_end();
            if let Some(result) = self.deadlocked(&line) {
                return Ok(Some(result));
            }
            return Err(VmError::Crashed { line, tail: self.console.tail() });
        }
        if has_ended && let Some((message, hint)) = last_words_in(&self.console.tail()) {
            return Err(VmError::Guest { message, hint });
        }
        if has_ended || self.error_text.contains("KVM internal error") {
            let message = match self.error_text.trim() {
                "" => "it said nothing".to_owned(),
                text => text.lines().take(5).collect::<Vec<_>>().join("; "),
            };
            return Err(VmError::Ended { message, tail: self.console.tail() });
        }
        self.check_patience(patience)?;
        if self.last_told.elapsed() >= TELL_EVERY {
            self.last_told = Instant::now();
            tell(Told::Progress(&self.so_far()));
        }
        Ok(None)
    }

    /// What is left of a run whose kernel found nobody to kill, if the workload had told its figures: those and
    /// the end of the console. No counter is known.
    fn deadlocked(&mut self, crash: &str) -> Option<LinuxResult> {
        let outcome = self.kept.take().filter(|_| crash.contains(DEADLOCKED))?;
        let at_ns = u64::try_from((self.started.elapsed() - self.boot?).as_nanos()).unwrap_or(u64::MAX);
        let memory = self.console.tail();
        let asked =
            memory.iter().rev().find_map(|line| line.split_once(" Comm: ")?.1.split_whitespace().next());
        let task = asked.unwrap_or_default().to_owned();
        let note =
            format!("{crash}: the figures are what the workload had told before, and no counter is known");
        let (cgroup, by_limit, panicked, anon_pages) = (String::new(), false, true, None);
        Some(LinuxResult {
            outcome,
            oom_kill: Some(OomKill { at_ns, task, cgroup, by_limit, panicked, anon_pages, memory }),
            vmstat_before: BTreeMap::new(),
            vmstat: BTreeMap::new(),
            memcg: BTreeMap::new(),
            phases: Vec::new(),
            laid_out: Vec::new(),
            columns: Vec::new(),
            rows: Vec::new(),
            waits: None,
            wall_ns: at_ns,
            kernel_release: self.release.clone(),
            notes: vec![note],
        })
    }

    /// How far the guest is, by what can be seen from outside.
    fn so_far(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        let phase = match (self.boot, &self.last_phase[..]) {
            (None, _) => "booting",
            (Some(_), "") => "in the first phase",
            (Some(_), phase) => phase,
        };
        // Blocks that the sparse image has, in units of 512 bytes (stat(2)).
        let grown = |disk| std::fs::metadata(disk).map_or(0, |file| file.blocks() * 512);
        let image = self.disks.iter().map(grown).sum();
        format!("{seconds} s of guest; {phase}; its disk has grown to {}", Rounded::down(Bytes(image)))
    }

    fn check_patience(&self, patience: &Patience) -> Result<(), VmError> {
        let tail = || self.console.tail();
        if self.started.elapsed() > patience.total {
            return Err(VmError::TimedOut { seconds: patience.total.as_secs(), tail: tail() });
        }
        let quiet = if self.boot.is_some() { patience.quiet } else { patience.boot };
        if self.last_heard.elapsed() > quiet {
            let had_begun = self.boot.is_some();
            return Err(VmError::Hung { seconds: quiet.as_secs(), had_begun, tail: tail() });
        }
        Ok(())
    }

    /// Reads what is new in all files.
    fn hear(&mut self) -> Result<Vec<Message>, VmError> {
        let from_console = all_of(&mut self.console_file, "console of the guest")?;
        let from_channel = all_of(&mut self.channel, "messages of the guest")?;
        let from_program = all_of(&mut self.errors, "messages of the program")?;
        if !(from_console.is_empty() && from_channel.is_empty()) {
            self.last_heard = Instant::now();
        }
        self.console.take(&from_console);
        self.error_text.push_str(&String::from_utf8_lossy(&from_program));
        self.inbox.take(&from_channel)
    }

    /// Lets QEMU end by itself, so that the last lines of the console are there.
    fn wait_for_end(&mut self) {
        let until = Instant::now() + GRACE;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            sleep(POLL);
        }
        // A message after the result would be a bug of the guest's; the run is over all the same.
        let _ = self.hear();
    }
}

/// A connection: our end, which never waits, and that of a program.
fn socket() -> std::io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((ours, theirs.into()))
}

/// What is new in a file or has come through a socket.
fn all_of(from: &mut impl Read, what: &str) -> Result<Vec<u8>, VmError> {
    let mut bytes = Vec::new();
    match from.read_to_end(&mut bytes) {
        Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset) => {
            Err(VmError::io("read", Path::new(what), error))
        }
        // What came before there was no more is in `bytes`.
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::os::unix::fs::PermissionsExt;

    const PATIENT: Patience = Patience {
        total: Duration::from_secs(60),
        boot: Duration::from_secs(60),
        quiet: Duration::from_secs(60),
    };

    /// Runs a shell script in QEMU's place; `$1` is the console, `$2` the channel.
    fn fake(script: &str, patience: Patience, stop: &AtomicBool) -> (Result<Finished, Failure>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let [program, console, channel, errors] =
            ["qemu", "console", "channel", "errors"].map(|name| dir.path().join(name));
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let channel_files = Channel::Files { messages: &channel, errors: &errors };
        let outputs =
            Outputs { console: &console, channel: channel_files, disks: std::slice::from_ref(&program) };
        let mut command = Command::new(&program);
        command.args([&console, &channel]);
        let heard = RefCell::new(Vec::new());
        let outcome = watch(command, &outputs, &patience, stop, &|told| {
            if let Told::Phase(text) = told {
                heard.borrow_mut().push(text.to_owned());
            }
        });
        (outcome, heard.into_inner())
    }

    fn failure(script: &str, patience: Patience) -> (VmError, bool) {
        let failure = fake(script, patience, &AtomicBool::new(false)).0.unwrap_err();
        (failure.error, failure.was_ready)
    }

    const READY: &str = r#"echo '{"ready":{"release":"6.12.1"}}' >> "$2""#;

    #[test]
    fn progress_is_relayed_and_the_guests_own_error_ends_the_run() {
        let script = format!(
            r#"{READY}; echo '{{"progress":"stream 40 %"}}' >> "$2"
               echo '{{"failed":{{"message":"no space","hint":"a larger disk"}}}}' >> "$2"; exec sleep 60"#
        );
        let (outcome, heard) = fake(&script, PATIENT, &AtomicBool::new(false));
        let failure = outcome.unwrap_err();
        assert_eq!(heard, ["stream 40 %"]);
        assert_eq!(failure.error.to_string(), "in the guest: no space");
        assert_eq!(failure.error.hint().as_deref(), Some("a larger disk"));
        assert!(failure.was_ready);
    }

    #[test]
    fn a_guest_without_a_channel_is_understood_by_its_console() {
        let script =
            r#"printf 'pagetide: no port\npagetide hint: build it\n[ 2.0] reboot: Power down\n' > "$1""#;
        let (error, was_ready) = failure(script, PATIENT);
        assert_eq!(error.to_string(), "in the guest: no port");
        assert_eq!(error.hint().as_deref(), Some("build it"));
        assert!(was_ready, "another accelerator would not help");
    }

    #[test]
    fn a_guest_that_says_nothing_is_given_up() {
        let soon = Duration::from_millis(200);
        let (error, was_ready) =
            failure("echo hello > \"$1\"; exec sleep 60", Patience { boot: soon, ..PATIENT });
        assert!(matches!(&error, VmError::Hung { tail, .. } if tail == &["hello"]), "{error}");
        assert!(!was_ready);
        let (error, was_ready) =
            failure(&format!("{READY}; exec sleep 60"), Patience { quiet: soon, ..PATIENT });
        assert!(matches!(error, VmError::Hung { had_begun: true, .. }), "{error}");
        let hint = error.hint().unwrap();
        assert!(hint.starts_with("make the workload smaller"), "its console works: {hint}");
        assert!(was_ready);
    }

    #[test]
    fn a_guest_that_only_talks_is_given_up_in_the_end() {
        let script = r#"while :; do echo '"alive"' >> "$2"; sleep 0.05; done"#;
        let soon = Duration::from_millis(300);
        let (error, _) = failure(script, Patience { total: soon, ..PATIENT });
        assert!(matches!(error, VmError::TimedOut { .. }), "{error}");
    }

    #[test]
    fn a_crash_is_told_with_the_console() {
        let (error, _) =
            failure(r#"printf 'a\n[ 1.0] Kernel panic - not syncing: VFS\nb\n' > "$1""#, PATIENT);
        insta::assert_snapshot!(error, @"
        the guest's kernel crashed: Kernel panic - not syncing: VFS
        last lines of the guest's console:
          a
          [ 1.0] Kernel panic - not syncing: VFS
          b
        ");
    }

    #[test]
    fn a_panic_for_want_of_somebody_to_kill_leaves_what_the_workload_had_told() {
        let told = r#"echo '{"kept":{"metrics":{"a":1.0},"samples":{}}}' >> "$2"
                      echo '{"kept":{"metrics":{"a":2.0},"samples":{}}}' >> "$2"; sleep 0.1"#;
        let console = "[ 1.0] Kernel panic - not syncing: System is deadlocked on memory\n[ 1.0] CPU: 0 PID: 7 Comm: \
                       creator0 Not tainted\n";
        let script = format!("{READY}; {told}; printf '{console}' > \"$1\"");
        let finished = fake(&script, PATIENT, &AtomicBool::new(false)).0.unwrap();
        let result = finished.result;
        assert_eq!((result.outcome.metrics["a"], result.kernel_release.as_str()), (2.0, "6.12.1"));
        let kill = result.oom_kill.unwrap();
        assert_eq!((kill.task.as_str(), kill.panicked, kill.memory.len()), ("creator0", true, 2));
        let (error, _) = failure(&format!("{READY}; printf '{console}' > \"$1\""), PATIENT);
        assert!(matches!(error, VmError::Crashed { .. }), "it told nothing: {error}");
    }

    #[test]
    fn a_machine_that_does_not_start_says_why() {
        let (error, was_ready) = failure("echo 'qemu: no such machine' >&2; exit 1", PATIENT);
        assert_eq!(error.to_string(), "the virtual machine ended without a result: qemu: no such machine");
        assert!(!was_ready);
    }

    #[test]
    fn stop_means_now() {
        let stop = AtomicBool::new(true);
        let begin = Instant::now();
        let failure = fake("exec sleep 60", PATIENT, &stop).0.unwrap_err();
        assert!(matches!(failure.error, VmError::Stopped));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_missing_program_has_a_hint() {
        let nowhere = Path::new("/nowhere/qemu");
        let dir = tempfile::tempdir().unwrap();
        let [console, channel, errors] = ["console", "channel", "errors"].map(|name| dir.path().join(name));
        let channel = Channel::Files { messages: &channel, errors: &errors };
        let outputs = Outputs { console: &console, channel, disks: std::slice::from_ref(&console) };
        let failure =
            watch(Command::new(nowhere), &outputs, &PATIENT, &AtomicBool::new(false), &|_| ()).unwrap_err();
        assert_eq!(failure.error.hint().as_deref(), Some("install it: `apt-get install qemu-system-x86`"));
    }
}
