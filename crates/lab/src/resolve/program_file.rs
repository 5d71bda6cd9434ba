//! The trace of a program from a file, whoever wrote it: our own format, logs of `strace`, `perf trace`,
//! `blkparse`, fio and DAMON, which may be compressed, told by their content.
//!
//! [`read`] leaves traces of requests to a device or a cache alone, which have no program; [`read_any`] takes them as
//! those of one task, for figures only. Neighbours: `pagetide-trace`, which reads logs and counts; `recording`, the
//! file; [`crate::plan::replay`], traces of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use recording::{is_trace, read_trace, write_trace};
pub use trace::import::ImportFormat;
use trace::import::import;
use trace::info::TraceInfo;
use trace::requests::{Request, RequestKind, TraceError, TraceFormat, TraceReader, decompressed};
use trace::{NONE, Operation, OperationKind, Trace, TraceFile, TraceTask};
use workload::replay::ReplayOptions;

use crate::error::LabError;

/// What standard input is called.
const STDIN: &str = "-";
/// As much of a file is looked at to tell what it is.
const HEAD_LEN: usize = 64 << 10;
/// What an object of a trace without sizes counts.
const PAGE: u64 = 4096;
/// What a device is cut into where a real kernel has to lay it out: a readahead window.
const STRETCH: u64 = 128 << 10;

/// Whether the file at `path` is the trace of a program, as far as its beginning tells. Standard input is not looked
/// at.
pub fn is_one(path: &Path) -> bool {
    path != Path::new(STDIN)
        && path.is_file()
        && (is_trace(path).unwrap_or(false) || looked_at(path).is_ok_and(|(format, _)| format.is_some()))
}

/// The trace of a program at `path`; `None` if that is something else, such as a trace of requests.
///
/// # Errors
/// It cannot be read, or is such a trace and broken.
pub fn read(path: &Path) -> Result<Option<Trace>, LabError> {
    if path != Path::new(STDIN) && is_trace(path).map_err(|source| unreadable(path, source))? {
        return read_trace(path).map(Some).map_err(|error| LabError::Program(Box::new(error)));
    }
    match looked_at(path)? {
        (Some(format), source) => imported(path, format, source).map(Some),
        (None, _) => Ok(None),
    }
}

/// Which log is at `path`, and all of it.
fn looked_at(path: &Path) -> Result<(Option<ImportFormat>, impl BufRead), LabError> {
    let mut source = open(path)?;
    let mut head = Vec::new();
    let looked = source.by_ref().take(HEAD_LEN as u64).read_to_end(&mut head);
    looked.map_err(|source| unreadable(path, source))?;
    let format = ImportFormat::of(&head);
    Ok((format, io::Cursor::new(head).chain(source)))
}

/// The log of another program at `path`, `-` being standard input, as a trace.
///
/// # Errors
/// It cannot be read, or is no such log.
pub fn read_log(path: &Path, format: ImportFormat) -> Result<Trace, LabError> {
    imported(path, format, open(path)?)
}

/// Writes a trace as a new file in our own format.
///
/// # Errors
/// Something is there already, the system refuses.
pub fn write(path: &Path, trace: &Trace) -> Result<(), LabError> {
    write_trace(path, trace).map_err(|error| LabError::Program(Box::new(error)))
}

/// Any trace at `path`: of a program, or of requests, which `options` says how to read.
///
/// # Errors
/// As [`read`]; no trace of any known kind.
pub fn read_any(path: &Path, options: &ReplayOptions) -> Result<Trace, LabError> {
    if options.format.is_none()
        && path != Path::new(STDIN)
        && let Some(trace) = read(path)?
    {
        return Ok(trace);
    }
    let failed = |source: TraceError| LabError::Trace { path: path.to_owned(), source };
    let requests = TraceReader::new(raw(path)?, options.format).map_err(failed)?;
    of_requests(path, requests.unsorted(options.unsorted)).map_err(failed)
}

/// What is in the trace at `path`, of a program or of requests.
///
/// # Errors
/// As [`read_any`].
pub fn info(path: &Path, options: &ReplayOptions) -> Result<TraceInfo, LabError> {
    read_any(path, options).map(|trace| TraceInfo::of(&trace))
}

fn unreadable(path: &Path, source: io::Error) -> LabError {
    LabError::unreadable_trace(path, source)
}

fn raw(path: &Path) -> Result<Box<dyn Read>, LabError> {
    if path == Path::new(STDIN) {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path).map_err(|source| unreadable(path, source))?))
}

fn open(path: &Path) -> Result<BufReader<Box<dyn Read>>, LabError> {
    let source = decompressed(raw(path)?).map_err(|source| unreadable(path, source))?;
    Ok(BufReader::with_capacity(HEAD_LEN, Box::new(source)))
}

fn imported(path: &Path, format: ImportFormat, source: impl BufRead) -> Result<Trace, LabError> {
    let name = path.display().to_string();
    import(format, &name, source)
        .map_err(|source| LabError::Import { path: path.to_owned(), source: Box::new(source) })
}

/// Requests as the reads and writes of one task. Those to a device are ranges of a file; an object is a page, whatever
/// its size.
fn of_requests(path: &Path, mut requests: TraceReader<Box<dyn Read>>) -> Result<Trace, TraceError> {
    let format = requests.format();
    let name = if format.is_block() { "device" } else { "objects" };
    let mut trace = Trace {
        source: format.name().to_owned(),
        command: path.display().to_string(),
        tasks: vec![TraceTask { parent: NONE, name: "requests".to_owned(), ..TraceTask::default() }],
        files: vec![TraceFile { path: name.to_owned(), size_bytes: 0, in_memory: false }],
        ..Trace::default()
    };
    let (mut first_ns, mut before_ns) = (None, 0);
    let mut objects = BTreeMap::new();
    for request in requests.by_ref() {
        let request = request?;
        let since = request.time_ns.saturating_sub(*first_ns.get_or_insert(request.time_ns));
        let at_ns = since.max(before_ns); // Where order is that of the file.
        let (offset, len) = range(&request, format, &mut objects);
        trace.files[0].size_bytes = trace.files[0].size_bytes.max(offset + len);
        let kind = match request.kind {
            RequestKind::Read => OperationKind::Read,
            RequestKind::Write => OperationKind::Write,
        };
        let think_ns = at_ns - before_ns;
        let operation =
            Operation { at_ns, think_ns, took_ns: 0, task: 0, kind, object: 0, offset, len, detail: 0 };
        trace.operations.push(operation);
        before_ns = at_ns;
    }
    trace.length_ns = before_ns;
    if !format.is_block() {
        trace.gaps.push("each object counts as one page of 4 KiB, whatever its size".to_owned());
    }
    match requests.skipped() {
        0 => {}
        skipped => trace.gaps.push(format!("records that neither read nor write, left out: {skipped}")),
    }
    Ok(trace)
}

/// Cuts out of the one file of a trace of requests what no request comes to, as a real kernel lays out all of a file:
/// whole stretches of a readahead window, but for one behind each that is used. Says how much is left, if it cut any.
pub(crate) fn cut_unused(trace: &mut Trace) -> Option<String> {
    let before = trace.files.first()?.size_bytes;
    let mut kept: BTreeSet<u64> = BTreeSet::new();
    for operation in trace.operations.iter().filter(|operation| operation.len > 0) {
        let (offset, last) = (operation.offset, operation.offset + operation.len - 1);
        kept.extend(offset / STRETCH..=last / STRETCH + 1);
    }
    let places: BTreeMap<u64, u64> = kept.into_iter().zip(0..).collect();
    for operation in trace.operations.iter_mut().filter(|operation| operation.len > 0) {
        let place = places[&(operation.offset / STRETCH)];
        operation.offset = place * STRETCH + operation.offset % STRETCH;
    }
    let after = before.min(places.len() as u64 * STRETCH);
    trace.files[0].size_bytes = after;
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    (after < before).then(|| {
        format!(
            "on a real kernel the {} MiB that requests come near to lie side by side in a file: the device's {} MiB \
             would all be laid out",
            mib(after),
            mib(before)
        )
    })
}

fn range(request: &Request, format: TraceFormat, objects: &mut BTreeMap<u64, u64>) -> (u64, u64) {
    if format.is_block() {
        return (request.offset_bytes, u64::from(request.size_bytes));
    }
    let next = objects.len() as u64;
    (*objects.entry(request.object).or_insert(next) * PAGE, PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("a file");
        (folder, path)
    }

    /// ```text
    ///   used     0..2   1000..1001 (in pages)    of a device of 4 MiB, in stretches of 32
    ///   kept     0..64  992..1024, 1024
    /// ```
    #[test]
    fn what_no_request_comes_near_to_is_cut_out() {
        let (_folder, path) = written(
            "block.csv",
            b"version,time,op,size,lbn\n1,1,28,4096,0\n1,2,28,8192,0\n1,3,28,4096,8000\n",
        );
        let whole = read_any(&path, &ReplayOptions::default()).expect("requests");
        let mut cut = whole.clone();
        let said = cut_unused(&mut cut).expect("a gap");
        assert!(said.contains("the 1 MiB that requests come near to") && said.contains("4 MiB"), "{said}");
        let offsets =
            |trace: &Trace| trace.operations.iter().map(|one| one.offset / PAGE).collect::<Vec<_>>();
        assert_eq!((offsets(&whole), offsets(&cut)), (vec![0, 0, 1000], vec![0, 0, 64 + 1000 % 32]));
        assert_eq!(cut.files[0].size_bytes, 4 * STRETCH);
        assert_eq!(cut_unused(&mut cut), None, "nothing is left to cut");
    }

    const LOG: &str = "fio version 2 iolog\n/a add\n/a open\n/a read 0 8192\n/a read 0 4096\n";

    #[test]
    fn a_log_is_told_by_its_content_and_read_again_in_our_format() {
        let (folder, path) = written("some.txt", LOG.as_bytes());
        let trace = read(&path).expect("a log").expect("of a program");
        let own = folder.path().join("own.trace");
        write(&own, &trace).expect("a file");
        assert_eq!(read(&own).expect("a trace").expect("of a program"), trace);
        assert!(matches!(write(&own, &trace), Err(LabError::Program(_))));
        let info = info(&own, &ReplayOptions::default()).expect("figures");
        assert_eq!((info.reuse.accesses, info.reuse.first, info.footprint.file_pages), (3, 2, 2));
    }

    #[test]
    fn a_compressed_log_is_read_as_well() {
        use std::io::Write as _;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(LOG.as_bytes()).expect("it fits");
        let (_folder, path) = written("log.gz", &gzip.finish().expect("it fits"));
        assert_eq!(read(&path).expect("a log").expect("of a program").operations.len(), 3);
    }

    #[test]
    fn traces_of_requests_are_left_to_others_but_for_their_figures() {
        let (_folder, path) = written("r.csv", b"time,object,size\n1,7,100\n2,8,100\n3,7,100\n");
        assert!(read(&path).expect("readable").is_none());
        let info = info(&path, &ReplayOptions::default()).expect("figures");
        assert_eq!((info.reuse.accesses, info.reuse.first, info.reuse.within.clone()), (3, 2, vec![(2, 1)]));
        assert!(read(Path::new("/no/such/file")).is_err());
    }
}
