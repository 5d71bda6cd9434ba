//! Events as a `trace.dat`, which `trace-cmd report` and KernelShark open.
//!
//! The file is version 6 of `trace-cmd.dat.v6(5)`: the formats of events, the names of threads, and the pages of one
//! CPU's ring buffer (`include/linux/ring_buffer.h`), as a recording does not know CPUs. All events have one
//! format: numbers to filter by, and as `text` the fields as a kernel prints them ([`super::tracepoints`]).
//!
//! Sizes and names stand before the pages, so all events are seen twice: [`TraceDat::again`] is for the second
//! time. Left out: symbols, and everything else that a recording has not.

use std::collections::BTreeMap;

use recording::{Chunk, Event, Names, Recording};

use super::ftrace::Printer;
use super::line::comm;
use super::threads::ByName;

/// Bytes of a page of the ring buffer, and of its head: time and length.
const PAGE: usize = 4096;
const PAGE_HEAD: usize = 16;
/// Bits of the time between two records in a record's head; longer ones take a record of their own.
const DELTA_BITS: u32 = 27;
/// `RINGBUF_TYPE_TIME_EXTEND`, and the most words whose number fits into a record's head.
const TIME_EXTEND: u32 = 30;
const WORDS_MAX: usize = 28;
/// `TRACE_FLAG_IRQS_OFF | TRACE_FLAG_HARDIRQ`.
const IN_INTERRUPT: u8 = 0x09;
/// The number of the first event; below are those of ftrace itself.
const FIRST_ID: u16 = 300;
/// Where the text stands in a record.
const TEXT_AT: u32 = 36;

const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
";
const HEADER_EVENT: &str = "\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
";
const FIELDS: &str = "\
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:int nid;\toffset:8;\tsize:4;\tsigned:1;
\tfield:int order;\toffset:12;\tsize:4;\tsigned:1;
\tfield:int priority;\toffset:16;\tsize:4;\tsigned:1;
\tfield:unsigned int pages;\toffset:20;\tsize:4;\tsigned:0;
\tfield:long long value;\toffset:24;\tsize:8;\tsigned:1;
\tfield:__data_loc char[] text;\toffset:32;\tsize:4;\tsigned:0;

print fmt: \"%s\", __get_str(text)
";

/// Events by their system, as the kernel has them; the last one is for all others.
const SYSTEMS: [(&str, &[&str]); 8] = [
    (
        "vmscan",
        &[
            "mm_vmscan_kswapd_sleep",
            "mm_vmscan_kswapd_wake",
            "mm_vmscan_wakeup_kswapd",
            "mm_vmscan_direct_reclaim_begin",
            "mm_vmscan_direct_reclaim_end",
            "mm_vmscan_memcg_reclaim_begin",
            "mm_vmscan_memcg_reclaim_end",
            "mm_shrink_slab_start",
            "mm_shrink_slab_end",
            "mm_vmscan_lru_shrink_inactive",
            "mm_vmscan_lru_shrink_active",
            "mm_vmscan_throttled",
        ],
    ),
    ("filemap", &["mm_filemap_add_to_page_cache", "mm_filemap_delete_from_page_cache"]),
    ("pagemap", &["mm_lru_insertion", "mm_lru_activate"]),
    ("compaction", &["mm_compaction_begin", "mm_compaction_end"]),
    ("kmem", &["mm_page_alloc_extfrag"]),
    ("block", &["block_rq_issue", "block_rq_complete"]),
    ("oom", &["mark_victim"]),
    (
        "pagetide",
        &[
            "writeback_congestion_wait",
            "writeback_wait_iff_congested",
            "wait",
            "page_accessed",
            "page_deactivated",
            "page_rotated",
            "page_reclaimed",
            "page_refaulted",
            "watermark_boost",
            "memcg_low",
            "file",
            "other",
        ],
    ),
];

/// A `trace.dat` that is being written, or measured.
#[derive(Debug)]
pub(super) struct TraceDat {
    printer: Printer,
    /// Numbers of events by name, and of the one that stands for all others.
    ids: BTreeMap<&'static str, u16>,
    other: u16,
    tids: ByName<i32>,
    /// `NAME: FIELDS` of the event at hand, and its record.
    text: String,
    record: Vec<u8>,
    /// The page that is being filled, without its head, and when it begins.
    page: Vec<u8>,
    begin: u64,
    last: u64,
    /// Bytes of all pages before.
    pages: u64,
    out: Vec<u8>,
}

impl TraceDat {
    /// To be shown all events for the first time; what it hands over is of no use.
    pub(super) fn new(recording: &Recording) -> Self {
        let all = SYSTEMS.iter().flat_map(|(_, names)| names.iter());
        let ids: BTreeMap<&'static str, u16> = all.zip(FIRST_ID..).map(|(name, id)| (*name, id)).collect();
        let other = ids["other"];
        Self {
            printer: Printer::new(recording),
            ids,
            other,
            tids: ByName::default(),
            text: String::new(),
            record: Vec::new(),
            page: Vec::with_capacity(PAGE),
            begin: 0,
            last: 0,
            pages: 0,
            out: Vec::new(),
        }
    }

    /// To be shown the same events again: this hands over the file.
    pub(super) fn again(mut self, recording: &Recording) -> Self {
        self.finish();
        let out = head(self.printer.threads.names(), self.pages);
        Self { out, ..Self::new(recording) }
    }

    /// Adds events, which follow those of the chunk before.
    pub(super) fn events(&mut self, chunk: &Chunk, names: &Names) {
        for event in &chunk.events {
            if let Some((file, inode)) = self.printer.new_file(event, names) {
                let file = format!("file: inode {inode:x} is {file}");
                self.push(event, names, &file);
            }
            let mut text = std::mem::take(&mut self.text);
            for event in self.printer.folios(event, names) {
                text.clear();
                self.printer.print(&event, names, &mut text);
                self.push(&event, names, &text);
            }
            self.text = text;
        }
    }

    /// There are no more events.
    pub(super) fn finish(&mut self) {
        if !self.page.is_empty() {
            self.end_page();
        }
    }

    /// The bytes that have come since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn push(&mut self, event: &Event, names: &Names, text: &str) {
        let (name, fields) = text.split_once(':').unwrap_or(("other", text));
        let (id, fields) = match self.ids.get(name) {
            Some(&id) => (id, fields.trim_start()),
            None => (self.other, text),
        };
        let (tid, flags) = match event.task {
            None => (0, IN_INTERRUPT),
            Some(task) => {
                let threads = &mut self.printer.threads;
                let number = || i32::try_from(threads.number(names.text(task)).tid).unwrap_or(i32::MAX);
                (*self.tids.place(task).get_or_insert_with(number), 0)
            }
        };
        let small = |number: Option<u8>| number.map_or(-1, i32::from).to_le_bytes();
        // A text that has no room in a page is cut.
        let fields = &fields.as_bytes()[..fields.len().min(PAGE / 2)];
        let location = (fields.len() as u32 + 1) << 16 | TEXT_AT;
        self.record.clear();
        self.record.extend_from_slice(&id.to_le_bytes());
        self.record.extend_from_slice(&[flags, 0]);
        self.record.extend_from_slice(&tid.to_le_bytes());
        self.record.extend([small(event.node), small(event.order), small(event.priority)].as_flattened());
        self.record.extend_from_slice(&event.pages.to_le_bytes());
        self.record.extend_from_slice(&event.value.unwrap_or(0).to_le_bytes());
        self.record.extend_from_slice(&location.to_le_bytes());
        self.record.extend_from_slice(fields);
        self.record.push(0);
        self.record.resize(self.record.len().next_multiple_of(4), 0);
        self.put(event.time_ns.saturating_add(event.duration_ns));
    }

    /// Puts the record into a page.
    fn put(&mut self, at: u64) {
        let longest = self.record.len() + 16;
        if !self.page.is_empty() && self.page.len() + longest > PAGE - PAGE_HEAD {
            self.end_page();
        }
        if self.page.is_empty() {
            (self.begin, self.last) = (at, at);
        }
        let mut delta = at.saturating_sub(self.last);
        self.last = self.last.max(at);
        if delta >> DELTA_BITS > 0 {
            let low = delta as u32 & ((1 << DELTA_BITS) - 1);
            self.word(low << 5 | TIME_EXTEND);
            self.word((delta >> DELTA_BITS) as u32);
            delta = 0;
        }
        let words = self.record.len() / 4;
        if words <= WORDS_MAX {
            self.word((delta as u32) << 5 | words as u32);
        } else {
            self.word((delta as u32) << 5);
            self.word(self.record.len() as u32 + 4);
        }
        self.page.extend_from_slice(&self.record);
    }

    fn word(&mut self, word: u32) {
        self.page.extend_from_slice(&word.to_le_bytes());
    }

    fn end_page(&mut self) {
        self.out.extend_from_slice(&self.begin.to_le_bytes());
        self.out.extend_from_slice(&(self.page.len() as u64).to_le_bytes());
        self.page.resize(PAGE - PAGE_HEAD, 0);
        self.out.append(&mut self.page);
        self.pages += PAGE as u64;
    }
}

/// All that stands before the pages, of which there are so many bytes.
fn head<'a>(threads: impl Iterator<Item = (&'a str, i64)>, pages: u64) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing6\0".to_vec();
    let long = |out: &mut Vec<u8>, number: usize| out.extend_from_slice(&(number as u64).to_le_bytes());
    let int = |out: &mut Vec<u8>, number: usize| out.extend_from_slice(&(number as u32).to_le_bytes());
    out.extend_from_slice(&[0, 8]); // Little endian, eight bytes to a long.
    int(&mut out, PAGE);
    for (name, text) in [("header_page\0", HEADER_PAGE), ("header_event\0", HEADER_EVENT)] {
        out.extend_from_slice(name.as_bytes());
        long(&mut out, text.len());
        out.extend_from_slice(text.as_bytes());
    }
    int(&mut out, 0); // Events of ftrace itself.
    int(&mut out, SYSTEMS.len());
    let mut ids = FIRST_ID..;
    for (system, names) in SYSTEMS {
        out.extend_from_slice(system.as_bytes());
        out.push(0);
        int(&mut out, names.len());
        for (name, id) in names.iter().zip(&mut ids) {
            let format = format!("name: {name}\nID: {id}\n{FIELDS}");
            long(&mut out, format.len());
            out.extend_from_slice(format.as_bytes());
        }
    }
    int(&mut out, 0); // Symbols.
    int(&mut out, 0); // Formats of trace_printk.
    let threads: String = threads.map(|(name, tid)| format!("{tid} {}\n", comm(name))).collect();
    long(&mut out, threads.len());
    out.extend_from_slice(threads.as_bytes());
    int(&mut out, 1); // CPUs.
    out.extend_from_slice(b"options  \0\0\0flyrecord\0");
    let begin = (out.len() + 16).next_multiple_of(PAGE);
    long(&mut out, begin);
    out.extend_from_slice(&pages.to_le_bytes());
    out.resize(begin, 0);
    out
}
