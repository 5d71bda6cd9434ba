//! What tasks tell the monitor while a run goes on: phases, new cgroups, remarks, figures so far.
//!
//! One pipe for all tasks: a message is smaller than `PIPE_BUF`, so it is written whole or not at
//! all. The monitor acknowledges phases and groups by an eventfd, so that the workload goes on only
//! after the sample. Two tasks that end a phase at the same moment may go on at each other's
//! acknowledgement; phases of one task never do.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::event::EventfdFlags;
use rustix::pipe::PipeFlags;
use serde::{Deserialize, Serialize};
use workload::Outcome;

/// One message.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// A phase ends here.
    Mark(String),
    /// A cgroup was created.
    Group(String),
    /// A task begins to lay out a file that is taken to have been there before the run, or has done so.
    LaysOut(bool),
    /// A remark for the reader of the results.
    Note(String),
    /// A part of what the workload has measured so far, which takes the place of what it said before once
    /// its last part is there.
    Kept {
        /// Its figures, in the order of all.
        part: Outcome,
        /// Whether it is complete.
        last: bool,
    },
}

/// Samples in a message: with a name it is far smaller than [`MESSAGE_MAX`].
const SAMPLES: usize = 256;

/// `outcome` as messages, none of which is too long: one for each metric and each part of a list. One task tells
/// its figures at a time.
pub(crate) fn kept(outcome: &Outcome) -> Vec<Message> {
    let mut parts = Vec::new();
    for (name, value) in &outcome.metrics {
        parts.push(Outcome { metrics: [(name.clone(), *value)].into(), ..Outcome::default() });
    }
    for (name, values) in &outcome.samples {
        for some in values.chunks(SAMPLES) {
            parts.push(Outcome { samples: [(name.clone(), some.to_vec())].into(), ..Outcome::default() });
        }
    }
    let count = parts.len();
    (1..).zip(parts).map(|(number, part)| Message::Kept { part, last: number == count }).collect()
}

/// What came of the workload's figures so far.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    whole: Outcome,
    coming: Outcome,
}

impl Kept {
    pub(crate) fn take(&mut self, part: Outcome, last: bool) {
        self.coming.metrics.extend(part.metrics);
        for (name, values) in part.samples {
            self.coming.samples.entry(name).or_default().extend(values);
        }
        if last {
            self.whole = std::mem::take(&mut self.coming);
        }
    }

    /// What was said last, whole; nothing where nothing was.
    pub(crate) fn whole(&self) -> &Outcome {
        &self.whole
    }
}

/// `PIPE_BUF` of Linux: what a pipe takes without mixing it with others' writes.
const MESSAGE_MAX: usize = 4096;
/// The length before each message.
const HEADER: usize = 2;

/// A task's end.
#[derive(Debug)]
pub(crate) struct Sender {
    messages: File,
    acknowledged: File,
}

/// The monitor's end.
#[derive(Debug)]
pub(crate) struct Receiver {
    messages: File,
    acknowledge: File,
    pending: Vec<u8>,
}

/// Both ends.
pub(crate) fn channel() -> io::Result<(Sender, Receiver)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let event: OwnedFd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?;
    let sender = Sender { messages: File::from(write), acknowledged: File::from(event.try_clone()?) };
    let receiver =
        Receiver { messages: File::from(read), acknowledge: File::from(event), pending: Vec::new() };
    Ok((sender, receiver))
}

impl Sender {
    /// Sends a message and, if it asks for an answer, waits for that. A monitor that is gone takes
    /// this process with it, so there is nobody to tell of an error here.
    pub(crate) fn send(&self, message: &Message) {
        let Ok(bytes) = postcard::to_extend(message, vec![0; HEADER]) else { return };
        let len = bytes.len() - HEADER;
        if bytes.len() > MESSAGE_MAX {
            return;
        }
        let mut bytes = bytes;
        bytes[..HEADER].copy_from_slice(&(len as u16).to_le_bytes());
        if (&self.messages).write_all(&bytes).is_ok()
            && !matches!(message, Message::Note(_) | Message::Kept { .. })
        {
            let _ = (&self.acknowledged).read_exact(&mut [0; 8]);
        }
    }
}

impl Receiver {
    /// What becomes readable when there is a message.
    pub(crate) fn file(&self) -> &File {
        &self.messages
    }

    /// The messages that have come; waits for one if there is none.
    pub(crate) fn receive(&mut self) -> io::Result<Vec<Message>> {
        let mut chunk = [0; MESSAGE_MAX];
        let count = (&self.messages).read(&mut chunk)?;
        self.pending.extend_from_slice(&chunk[..count]);
        let mut messages = Vec::new();
        while let Some((header, rest)) = self.pending.split_first_chunk::<HEADER>() {
            let len = usize::from(u16::from_le_bytes(*header));
            let Some(bytes) = rest.get(..len) else { break };
            messages.extend(postcard::from_bytes::<Message>(bytes).ok());
            self.pending.drain(..HEADER + len);
        }
        Ok(messages)
    }

    /// Lets one waiting sender go on.
    pub(crate) fn acknowledge(&self) -> io::Result<()> {
        (&self.acknowledge).write_all(&1_u64.to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_order_and_a_phase_waits_for_its_sample() {
        let (sender, mut receiver) = channel().unwrap();
        sender.send(&Message::Note("first".to_owned()));
        receiver.acknowledge().unwrap();
        sender.send(&Message::Mark("ready".to_owned()));
        let expected = vec![Message::Note("first".to_owned()), Message::Mark("ready".to_owned())];
        assert_eq!(receiver.receive().unwrap(), expected);
    }

    #[test]
    fn figures_of_any_number_arrive_whole_and_those_of_a_killed_sender_are_the_ones_before() {
        let (sender, mut receiver) = channel().unwrap();
        let mut kept = Kept::default();
        let figures = |count: u32| Outcome {
            metrics: [("a".to_owned(), 1.0), ("b".to_owned(), f64::from(count))].into(),
            samples: [("s".to_owned(), (0..count).map(f64::from).collect())].into(),
        };
        let tell = |messages: &[Message], receiver: &mut Receiver, kept: &mut Kept| {
            for message in messages {
                sender.send(message);
                for message in receiver.receive().unwrap() {
                    let Message::Kept { part, last } = message else { panic!("{message:?}") };
                    kept.take(part, last);
                }
            }
        };
        for count in [0, 1, 10_000] {
            tell(&super::kept(&figures(count)), &mut receiver, &mut kept);
            // An empty list is the same as none.
            let expected = figures(count);
            let samples = expected.samples.into_iter().filter(|(_, list)| !list.is_empty()).collect();
            assert_eq!(*kept.whole(), Outcome { samples, ..expected });
        }
        let more = super::kept(&figures(20_000));
        tell(&more[..more.len() - 1], &mut receiver, &mut kept);
        assert_eq!(*kept.whole(), figures(10_000));
    }

    #[test]
    fn a_message_that_a_pipe_might_tear_is_not_sent() {
        let (sender, mut receiver) = channel().unwrap();
        sender.send(&Message::Note("x".repeat(MESSAGE_MAX)));
        sender.send(&Message::Note("y".repeat(4000)));
        assert_eq!(receiver.receive().unwrap(), vec![Message::Note("y".repeat(4000))]);
    }
}
