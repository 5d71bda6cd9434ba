//! What host and guest say to each other.
//!
//! The host says everything at once: a [`Job`] as a file in the initramfs, and beside it the trace of a program that
//! is to be replayed. The guest answers with
//! [`Message`]s, one JSON object on each line, through a virtio serial port, or that of User-Mode Linux. A guest that
//! cannot open that port says why on its console ([`last_words`]). Both ends are the same program, so the
//! format needs no version.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trace::Trace;
use units::Bytes;
use workload::{Outcome, Workload, WorkloadSpec};

use super::error::VmError;
use super::image::VmFilesystem;
use crate::spec::LinuxResult;

/// Where the job lies in the guest.
pub const JOB_PATH: &str = "job.json";
/// Where the trace lies in the guest, if the workload has one, in postcard.
pub const TRACE_PATH: &str = "trace";
/// The name of the serial port, in `/sys/class/virtio-ports/*/name`.
pub const PORT_NAME: &str = "pagetide";
/// The environment variable, from the kernel's command line, that makes a process a guest's init.
pub const GUEST_VARIABLE: &str = "PAGETIDE_GUEST";
/// Its value in a guest of User-Mode Linux.
pub const GUEST_OF_UML: &str = "uml";
/// The environment variable with the pages of a guest that were given to it for its own program, beyond what was asked
/// for.
pub const BEYOND_VARIABLE: &str = "PAGETIDE_BEYOND";
/// How often the guest says that it is alive.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// What a guest shall do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The workload's name.
    pub workload: String,
    /// The text of the file that describes it, if one does.
    pub program: Option<String>,
    /// All its parameters, as texts.
    pub params: Vec<(String, String)>,
    /// What its random draws come from.
    pub seed: u64,
    /// Sysctls to set before the run.
    pub sysctls: Vec<(String, String)>,
    /// Time between samples of the counters.
    pub sample_period: Duration,
    /// `memory.max` of the workload's root cgroup.
    pub limit: Option<Bytes>,
    /// What is on each data disk.
    pub filesystem: VmFilesystem,
    /// How many data disks there are, at least 1.
    pub disks: u16,
    /// What `/sys/kernel/mm/lru_gen/enabled` takes to turn the multi-gen LRU on; `None` is off.
    pub lru_gen: Option<String>,
    /// What it swaps to, as `--swap` takes it; disks come behind the data disks.
    pub swap: String,
    /// Readahead of the data disk in KiB.
    pub read_ahead_kib: u32,
    /// When the guest ends by itself, in case nobody is left who watches it.
    pub timeout: Duration,
}

/// What a guest says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The kernel has booted and the guest's program runs.
    Ready {
        /// As `uname -r` prints it.
        release: String,
    },
    /// Nothing new, but alive.
    Alive,
    /// How far the workload is.
    Progress(String),
    /// What the workload has measured so far.
    Kept(Outcome),
    /// The workload has ended.
    Done(Box<LinuxResult>),
    /// The workload, or what has to be done before it, failed.
    Failed {
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

/// What begins the console's lines that are for the host.
const CONSOLE_WORD: &str = "pagetide: ";
const CONSOLE_HINT: &str = "pagetide hint: ";

/// Why a guest without a channel ends, as lines for its console.
pub fn last_words(message: &str, hint: Option<&str>) -> String {
    let on_one_line = |text: &str| text.replace('\n', " ");
    let mut text = format!("{CONSOLE_WORD}{}\n", on_one_line(message));
    if let Some(hint) = hint {
        text.push_str(&format!("{CONSOLE_HINT}{}\n", on_one_line(hint)));
    }
    text
}

/// [`last_words`] again, from the lines of a console: message and hint.
pub fn last_words_in(console: &[String]) -> Option<(String, Option<String>)> {
    let after = |prefix: &str| console.iter().rev().find_map(|line| line.strip_prefix(prefix));
    Some((after(CONSOLE_WORD)?.to_owned(), after(CONSOLE_HINT).map(str::to_owned)))
}

impl Job {
    /// The name and all parameters of `workload`, defaults included.
    pub fn describe(workload: &Workload) -> (String, Vec<(String, String)>) {
        let params = workload.params().iter().map(|(name, value)| (name.to_owned(), value.to_string()));
        (workload.name().to_owned(), params.collect())
    }

    /// The workload again.
    ///
    /// # Errors
    /// A text, when the job is not what [`Job::describe`] made.
    pub fn workload(&self) -> Result<Workload, String> {
        let pairs = self.params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let spec = match &self.program {
            Some(text) => WorkloadSpec::of_file(text).map_err(|mistake| mistake.to_string())?,
            None => WorkloadSpec::find(&self.workload).map_err(|error| error.to_string())?,
        };
        spec.with(pairs).map_err(|error| error.to_string())
    }
}

/// The trace that a workload makes again, as bytes.
pub fn packed_trace(workload: &Workload) -> Option<Vec<u8>> {
    workload.trace().map(|trace| postcard::to_stdvec(&**trace).expect("a trace is plain data"))
}

/// A workload with its trace.
///
/// # Errors
/// A text, when the bytes are not those of [`packed_trace`].
pub fn with_packed_trace(workload: Workload, bytes: &[u8]) -> Result<Workload, String> {
    let trace: Trace = postcard::from_bytes(bytes).map_err(|error| format!("bad trace: {error}"))?;
    Ok(workload.with_trace(Arc::new(trace)))
}

/// Bytes of the channel, cut into messages as they come.
#[derive(Debug, Default)]
pub struct Inbox {
    pending: Vec<u8>,
}

impl Inbox {
    /// Takes bytes and returns the messages that they complete.
    ///
    /// # Errors
    /// A line is no message.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Message>, VmError> {
        let start = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let Some(end) = self.pending[start..].iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let rest = self.pending.split_off(start + end + 1);
        let lines = std::mem::replace(&mut self.pending, rest);
        lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                serde_json::from_slice(line).map_err(|error| VmError::Protocol { why: error.to_string() })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_however_the_bytes_are_cut() {
        let messages = [
            Message::Ready { release: "6.12.1".to_owned() },
            Message::Progress("stream 40 %".to_owned()),
            Message::Alive,
            Message::Failed { message: "no\nway".to_owned(), hint: None },
        ];
        let lines: Vec<String> =
            messages.iter().map(|message| serde_json::to_string(message).unwrap() + "\n").collect();
        let bytes = lines.concat().into_bytes();
        for cut in [1, 2, 7, 40, bytes.len()] {
            let mut inbox = Inbox::default();
            let got: Vec<Message> = bytes.chunks(cut).flat_map(|part| inbox.take(part).unwrap()).collect();
            assert_eq!(got, messages, "in pieces of {cut}");
        }
    }

    #[test]
    fn last_words_are_found_among_what_a_kernel_prints() {
        let read = |text: &str| last_words_in(&text.lines().map(str::to_owned).collect::<Vec<_>>());
        let said = format!("[ 1.2] a\n{}[ 1.3] reboot: Power down\n", last_words("no\nport", Some("make")));
        assert_eq!(read(&said), Some(("no port".to_owned(), Some("make".to_owned()))));
        assert_eq!(read(&last_words("no port", None)), Some(("no port".to_owned(), None)));
        assert_eq!(read("[ 1.2] pagetide: no\n"), None);
    }

    #[test]
    fn a_line_that_is_no_message_is_an_error() {
        let error = Inbox::default().take(b"{\"ready\n").unwrap_err();
        assert!(error.to_string().starts_with("the guest sent a message that cannot be read"), "{error}");
    }

    #[test]
    fn a_workload_arrives_as_it_was_sent() {
        let own = "name = \"mine\"\n[params]\nhot = { size = \"1M\" }\n[files]\nf = { size = \"$hot\" }\n\
                   [tasks.t]\nsteps = [{ read = \"f\" }]\n";
        let own = WorkloadSpec::of_file(own).unwrap();
        for spec in workload::catalog().iter().chain([own]) {
            let sent = spec.build(spec.defaults()).unwrap();
            let (workload, params) = Job::describe(&sent);
            let job = Job {
                workload,
                program: spec.file_text().map(str::to_owned),
                params,
                seed: 7,
                sysctls: Vec::new(),
                sample_period: Duration::from_secs(1),
                limit: None,
                filesystem: VmFilesystem::Ext4,
                disks: 1,
                lru_gen: None,
                swap: "zram:256M".to_owned(),
                read_ahead_kib: 128,
                timeout: Duration::from_secs(60),
            };
            let job: Job = serde_json::from_str(&serde_json::to_string(&job).unwrap()).unwrap();
            assert_eq!(job.workload(), Ok(sent));
        }
    }
}
