//! Every reader of bytes that others have written, under damage: an error or a result, never a panic.
//!
//! Neighbours: `damage`, which changes the samples. Logs have another such test in the crate `trace`. Left out: what
//! `/proc` and trace events of a real kernel say, which tests of `linux` damage line by line.

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use linux::vm;
use linux::vm::kernels::VmKernel;
use pagetide_lab::replay::ReplayScenario;
use pagetide_lab::size::{SizeRequest, WatchedRequest, is_watched};
use pagetide_lab::trace::{TraceSink, write_trace};
use pagetide_lab::{Detail, Request, Subject, explain, heat, simulate_with_events};
use pagetide_lab::{machine_file, mmtests, numbers, program_file, workload_file};
use recording::worlds::{WorldRow, decode_worlds, encode_worlds};
use recording::{Chunk, Event, EventWriter, Names, Recording};
use report::{Explained, Format, Question, TraceFormat, View, views};
use trace::Trace;
use trace::import::{ImportFormat, import};
use trace::requests::TraceReader;
use workload::written::fio;
use workload::{Scenario, Vocabulary};
use xxhash_rust::xxh3::xxh3_128;

use crate::damage::damage;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files of a folder.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| fs::read(path).unwrap()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const BLOCKS: &str =
    "version,time,op,size,lbn\n1,10,2a,512,42\n1,11,28,6656,40\n1,11,0x88,1024,8\n2,12,35,0,0\n";
const MSR: &str = "128166372003061629,usr,0,Read,7014609920,24576,41286
128166372016382155,usr,0,Write,1317441536,8192,1963
";
const OBJECTS: &str = "\"Time\",obj_id,size\r\n1,7,100\r\n2,8,0\r\n# a remark\n3,9,1\n";

#[test]
fn requests() {
    let record = [[1, 0, 0, 0].as_slice(), &[7; 8], &[0, 16, 0, 0], &[255; 8]].concat();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(BLOCKS.as_bytes()).unwrap();
    // A frame with one raw block.
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 8, 0x41, 0, 0][..], b"1,7,100\n"].concat();
    let samples =
        vec![BLOCKS.into(), MSR.into(), OBJECTS.into(), record.repeat(5), gzip.finish().unwrap(), zstd];
    damage("requests", samples, |bytes| {
        if let Ok(reader) = TraceReader::new(bytes, None) {
            reader.take(10_000).for_each(drop);
        }
    });
}

const SCRAPES: &str = "# TYPE container_memory_usage_bytes gauge
container_memory_usage_bytes{container=\"web\",id=\"/a\\\"b\"} 4.5e+08 1700000000000
container_memory_usage_bytes{container=\"web\",id=\"/a\\\"b\"} NaN 1700000030000
container_memory_rss{container=\"web\",id=\"/a\\\"b\"} 1e8 1700000000000
container_oom_events_total{container=\"web\",id=\"/a\\\"b\"} 1 1700000000000
";
const ANSWER: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"container_memory_usage_bytes",
"container":"web"},"values":[[1700000000,"450000000"],[1700000030.5,"+Inf"],[1700000060,"460000000"]]},{"metric":{"__name__":
"container_pressure_memory_waiting_seconds_total","container":"web"},"values":[[1700000000,"1.5"],[1700000060,"0.5"]]}]}}"#;

#[test]
fn series_of_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("series");
    let request = WatchedRequest {
        size: SizeRequest { trace: path.clone(), ..SizeRequest::default() },
        ..WatchedRequest::default()
    };
    for sample in [SCRAPES, ANSWER] {
        fs::write(&path, sample).unwrap();
        assert!(is_watched(&path) && request.judge().is_ok(), "{:?}", request.judge());
    }
    fs::write(&path, SCRAPES.replace("4.5e+08", "4.5e+82")).unwrap();
    let told = request.judge().unwrap_err().to_string();
    assert!(told.contains("4.5e82"), "{told}");
    damage("series-of-prometheus", vec![SCRAPES.into(), ANSWER.into()], move |bytes| {
        fs::write(&path, bytes).unwrap();
        let _ = is_watched(&path);
        let _ = request.judge();
    });
}

const STRACE: &str = r#"70  12:00:00.000000 execve("/bin/sh", ["sh"], 0x7ffd94eaf180 /* 35 vars */) = 0 <0.000177>
70  12:00:00.001100 openat(AT_FDCWD</data>, "a", O_RDONLY|O_CLOEXEC) = 3</data/a> <0.000004>
70  12:00:00.001200 read(3</data/a>, "\177ELF\2"..., 832) = 832 <0.000003>
70  12:00:00.001300 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3</data/a>, 0) = 0x7f888ca8b000 <0.000005>
70  12:00:00.002000 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
71  12:00:00.002100 write(3</data/a>, "b", 1) = 1 <0.000010>
70  12:00:00.002150 <... clone resumed>, child_tidptr=0x7f888ca88a10) = 71 <0.000150>
70  12:00:00.008500 exit_group(0)       = ?
"#;
const PERF: &str = "     5.769 ( 0.218 ms): sh/91 clone(clone_flags: CHILD_CLEARTID|0x11) = 92 (sh)
     6.183 (         ): sh/91 wait4(upid: -1)    ...
    16.309 ( 0.319 ms): dd/92 openat(dfd: CWD, filename: \"/a\", flags: RDWR) = 3
    19.894 ( 1.963 ms): dd/92 read(fd: 3</a>, buf: 0x564831ca5000, count: 4096) = 4096
    22.457 (         ): dd/92 exit_group()       = ?
     6.183 (16.511 ms): sh/91  ... [continued]: wait4())  = 92 (dd)
";
const BLKPARSE: &str = "  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,0    1        1     0.000020000  1024  Q   R 1000 + 256 [tar xf a]
  8,0    1        2     0.000030000  1024  Q FWFS [tar xf a]
";
const FIO_LOG: &str = "fio version 3 iolog\n2 b add\n872 b open\n878 b write 0 16384\n10001677 b close\n";

#[test]
fn logs() {
    damage("logs", vec![STRACE.into(), PERF.into(), BLKPARSE.into(), FIO_LOG.into()], |bytes| {
        for format in ImportFormat::ALL {
            if let Ok(trace) = import(format, "a.log", bytes) {
                trace.check().expect("what was imported can be replayed");
            }
        }
    });
}

#[test]
fn captured_traces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    let trace: Trace = import(ImportFormat::Strace, "a.log", STRACE.as_bytes()).unwrap();
    recording::write_trace(&path, &trace).unwrap();
    let sample = fs::read(&path).unwrap();
    damage("captured-traces", vec![sample], move |bytes| {
        let path = folder.path().join("changed.trace");
        fs::write(&path, bytes).unwrap();
        let _ = program_file::read(&path);
    });
}

/// A recording whose manifest says of each file what it is: whoever wants to harm somebody writes that, too.
fn signed(folder: &Path, names: &[String], schema: u32) {
    let lines = names.iter().map(|name| {
        let bytes = fs::read(folder.join(name)).unwrap();
        format!("file {name} {} {:032x}\n", bytes.len(), xxh3_128(&bytes))
    });
    let lines: String = lines.collect();
    let lines = format!("pagetide recording\nschema {schema}\n{lines}");
    let manifest = format!("{lines}content {:032x}\n", xxh3_128(lines.as_bytes()));
    fs::write(folder.join("MANIFEST"), manifest).unwrap();
}

/// As `signed`, of a recording whose only file of events has these bytes.
fn signed_with_events(folder: &Path, names: &[String], events: &[u8]) {
    fs::write(folder.join(EVENTS), events).unwrap();
    signed(folder, names, 5);
    let line = format!("file {EVENTS} {} {:032x}\n", events.len(), xxh3_128(events));
    let manifest = fs::read_to_string(folder.join("MANIFEST")).unwrap();
    let manifest = format!("{manifest}{line}events {:032x}\n", xxh3_128(line.as_bytes()));
    fs::write(folder.join("MANIFEST"), manifest).unwrap();
}

fn names_in(folder: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(folder.join("MANIFEST")).unwrap();
    let names = manifest.lines().filter_map(|line| line.strip_prefix("file ")?.split(' ').next());
    names.map(str::to_owned).collect()
}

/// A copy of the recording of this version, and the names of its files.
fn copy_of(schema: u32) -> (tempfile::TempDir, Vec<String>) {
    let from = root().join(format!("crates/recording/tests/recordings/schema-{schema}"));
    let folder = tempfile::tempdir().unwrap();
    let names = names_in(&from);
    for name in names.iter().chain([&"MANIFEST".to_owned()]) {
        fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    (folder, names)
}

#[test]
fn recordings() {
    for schema in [1, 2, 3, 4, 5] {
        let (folder, names) = copy_of(schema);
        signed(folder.path(), &names, schema);
        Recording::read(folder.path()).unwrap_or_else(|error| panic!("schema {schema}: {error}"));
    }
    let (folder, names) = copy_of(5);
    let samples: Vec<Vec<u8>> =
        names.iter().map(|name| fs::read(folder.path().join(name)).unwrap()).collect();
    let good = samples.clone();
    damage("recordings", samples, move |bytes| {
        for (place, name) in names.iter().enumerate() {
            fs::write(folder.path().join(name), bytes).unwrap();
            signed(folder.path(), &names, 5);
            let _ = Recording::read(folder.path());
            fs::write(folder.path().join(name), &good[place]).unwrap();
        }
    });
}

/// Those of older versions, which are CSV.
#[test]
fn old_recordings() {
    let copies = [1, 2, 3, 4].map(|schema| (schema, copy_of(schema)));
    let samples: Vec<Vec<u8>> = copies
        .iter()
        .flat_map(|(_, (folder, names))| names.iter().map(|name| fs::read(folder.path().join(name)).unwrap()))
        .collect();
    damage("old-recordings", samples, move |bytes| {
        for (schema, (folder, names)) in &copies {
            for name in names {
                let path = folder.path().join(name);
                let good = fs::read(&path).unwrap();
                fs::write(&path, bytes).unwrap();
                signed(folder.path(), names, *schema);
                let _ = Recording::read(folder.path());
                fs::write(&path, good).unwrap();
            }
        }
    });
}

/// Tables of worlds that others have run.
#[test]
fn worlds() {
    let row = WorldRow {
        seed: 7,
        kernel: "6.12".to_owned(),
        workload: "hot-and-stream".to_owned(),
        scope: "global".to_owned(),
        kind: "vmstat".to_owned(),
        counter: "pgscan_kswapd".to_owned(),
        real: vec![1.0, 2.0],
        model: vec![3.5],
        class: "near".to_owned(),
        error: Some(0.5),
        text: None,
    };
    let text = WorldRow { error: None, text: Some("none".to_owned()), ..row.clone() };
    let sample = encode_worlds(&[row, text]);
    assert_eq!(decode_worlds(sample.clone(), Path::new("worlds")).unwrap().len(), 2);
    damage("worlds", vec![sample], |bytes| {
        let _ = decode_worlds(bytes.to_vec(), Path::new("worlds"));
    });
}

/// Events of a file that is full, and no more.
const EVENTS_OF_A_FILE: usize = 4096;
const EVENTS: &str = "events/00000.parquet";

/// The file of these events, as often as it takes.
fn file_of(events: &[Event], names: &Names) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let chunk = Chunk { events: events.iter().copied().cycle().take(EVENTS_OF_A_FILE).collect() };
    EventWriter::create(folder.path()).unwrap().append(&chunk, names).unwrap();
    fs::read(folder.path().join(EVENTS)).unwrap()
}

/// Events of pages of a small run.
fn some_events() -> (Vec<Event>, Names) {
    let params = ["hot=1M", "stream=8M"].map(str::to_owned).to_vec();
    let subject = Subject::Workload("hot-and-stream".to_owned());
    let request = Request { mem: Some("64M".to_owned()), params, ..Request::new(subject) };
    let scenario = request.resolve().unwrap();
    let told = Rc::new(RefCell::new((Vec::new(), Names::default())));
    let sink = {
        let told = Rc::clone(&told);
        move |names: &Names, chunk: &Chunk| {
            let mut told = told.borrow_mut();
            told.0.extend(&chunk.events);
            told.1 = names.clone();
        }
    };
    simulate_with_events(&scenario, "a", &Arc::default(), |_| {}, Detail::Page, sink).unwrap();
    Rc::into_inner(told).unwrap().into_inner()
}

/// Reads a recording's events and says what it can of them.
fn tell(folder: &Path) {
    let question = Question { file: Some("hot".to_owned()), pages: Some(0..=3) };
    let Ok(Some(with)) = explain::recorded(&folder.to_string_lossy(), &question) else { return };
    let explained = Explained { recording: &with.recording, events: with.events.as_ref(), with_events: None };
    let document = views::explain(&explained, &View::default());
    for format in [Format::Text, Format::Json] {
        document.render(format, 100);
    }
    let _ = heat(folder, &with.recording);
}

#[test]
fn events_of_recordings() {
    let (folder, names) = copy_of(5);
    fs::create_dir(folder.path().join("events")).unwrap();
    let (events, of_events) = some_events();
    let sample = file_of(&events, &of_events);
    signed_with_events(folder.path(), &names, &sample);
    let whole = explain::recorded(&folder.path().to_string_lossy(), &Question::default());
    assert!(whole.unwrap().unwrap().events.is_some());
    damage("events-of-recordings", vec![sample], move |bytes| {
        signed_with_events(folder.path(), &names, bytes);
        tell(folder.path());
    });
}

/// Another value in some event: which one, which value, what.
const CHANGE: usize = 2 + 1 + 8;

fn changed(mut events: Vec<Event>, changes: &[u8]) -> Vec<Event> {
    for change in changes.chunks_exact(CHANGE) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % events.len();
        let event = &mut events[place];
        let value = u64::from_le_bytes(change[3..].try_into().unwrap());
        match change[2] % 8 {
            0 => event.time_ns = value,
            1 => event.duration_ns = value,
            2 => event.page = Some(value >> 14), // More is refused as a whole.
            3 => event.pages = value as u32 >> 24, // Each page takes its time.
            4 => event.node = Some(value as u8),
            5 => event.priority = Some(value as u8),
            6 => event.order = Some(value as u8),
            _ => event.value = Some(value.cast_signed()),
        }
    }
    events
}

/// Files that are whole and say what no run does.
#[test]
fn values_of_events() {
    let (folder, names) = copy_of(5);
    fs::create_dir(folder.path().join("events")).unwrap();
    let (mut events, of_events) = some_events();
    events.truncate(EVENTS_OF_A_FILE);
    let one = |number: u8, value: u64| [&[number, number, number][..], &value.to_le_bytes()].concat();
    let samples = [1, 1 << 31, u64::MAX].map(|value| (0..64).flat_map(|number| one(number, value)).collect());
    damage("values-of-events", samples.to_vec(), move |bytes| {
        let file = file_of(&changed(events.clone(), bytes), &of_events);
        signed_with_events(folder.path(), &names, &file);
        tell(folder.path());
    });
}

/// Traces for others have a line for each page.
#[test]
fn traces_of_recordings() {
    let (folder, names) = copy_of(5);
    fs::create_dir(folder.path().join("events")).unwrap();
    let (mut events, of_events) = some_events();
    events.truncate(EVENTS_OF_A_FILE);
    events.iter_mut().for_each(|event| event.pages = event.pages.min(1));
    let samples = [1, 1 << 31, u64::MAX].map(|value: u64| value.to_le_bytes().repeat(64));
    damage("traces-of-recordings", samples.to_vec(), move |bytes| {
        let file = file_of(&changed(events.clone(), bytes), &of_events);
        signed_with_events(folder.path(), &names, &file);
        for format in [TraceFormat::Perfetto, TraceFormat::Ftrace, TraceFormat::TraceDat] {
            let written = write_trace(folder.path(), format, TraceSink::Stream(&mut std::io::sink()));
            assert_eq!(written.unwrap().events, EVENTS_OF_A_FILE as u64);
        }
    });
}

/// Each of these pages was a line of the trace: a file of a few kilobytes filled the disk.
#[test]
fn a_recording_whose_events_are_of_billions_of_pages_is_refused_as_a_trace() {
    let (folder, names) = copy_of(5);
    fs::create_dir(folder.path().join("events")).unwrap();
    let (mut events, of_events) = some_events();
    events.truncate(EVENTS_OF_A_FILE);
    events[16].pages = 1 << 31;
    signed_with_events(folder.path(), &names, &file_of(&events, &of_events));
    for format in [TraceFormat::Ftrace, TraceFormat::TraceDat] {
        let written = write_trace(folder.path(), format, TraceSink::Stream(&mut std::io::sink()));
        let error = written.unwrap_err();
        let told = error.to_string();
        assert!(
            told.contains("00000.parquet` is no table that can be read: row 17 is of 2147483648 pages"),
            "{told}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("make the run again")), "{error:?}");
    }
}

#[test]
fn manifests() {
    let (folder, _) = copy_of(5);
    let sample = fs::read(folder.path().join("MANIFEST")).unwrap();
    damage("manifests", vec![sample], move |bytes| {
        fs::write(folder.path().join("MANIFEST"), bytes).unwrap();
        let _ = Recording::read(folder.path());
    });
}

#[test]
fn scenarios() {
    const WORDS: Vocabulary<'static> = Vocabulary {
        kernels: &["linux-5.3", "linux-6.12"],
        features: &["root-aging"],
        unmodelled: &[],
        machines: &["desktop"],
        sysctls: &["vm.swappiness"],
    };
    let sample = "schema = 1\nworkload = \"hot-and-stream\"\nkernel = \"linux-5.3+root-aging\"\nmachine = \"desktop\"\n\
                  mem = \"1016336k\"\nseed = 7\nbackend = \"sim\"\n[params]\nhot = \"50M\"\n[sysctls]\nvm.swappiness = 60\n";
    assert!(Scenario::read(sample, &WORDS).is_ok(), "{:?}", Scenario::read(sample, &WORDS));
    damage("scenarios", vec![sample.into()], |bytes| {
        if let Ok(scenario) = Scenario::read(&text(bytes), &WORDS) {
            assert_eq!(Scenario::read(&scenario.to_toml(), &WORDS), Ok(scenario));
        }
    });
}

#[test]
fn scenarios_of_replays() {
    let path = Path::new("scenario.toml");
    let head = "schema = 1\nreplay = \"a.csv\"\ntrace_bytes = 100\ntrace_hash = \"0f\"\nformat = \"object-csv\"\n\
                warmup = \"10%\"\n";
    let policy = "policy = \"s3fifo\"\ncapacity = 100\n";
    let kernel = "timing = \"asap\"\nkernel = \"linux-6.12\"\nmachine = \"vm-2cpu\"\nmem = \"256M\"\nlimit = \"64M\"\n\
                  seed = \"7\"\ninterval = \"1s\"\n[sysctls]\n\"vm.swappiness\" = \"60\"\n";
    let samples = [policy, kernel].map(|cache| format!("{head}{cache}"));
    for sample in &samples {
        let read = ReplayScenario::of_text(sample, path);
        assert!(read.is_ok(), "{sample}{read:?}");
    }
    damage("scenarios-of-replays", samples.map(String::into_bytes).to_vec(), move |bytes| {
        if let Ok(scenario) = ReplayScenario::of_text(&text(bytes), path) {
            assert_eq!(ReplayScenario::of_text(&scenario.to_toml(), path).unwrap(), scenario);
        }
    });
}

#[test]
fn workload_files() {
    damage("workload-files", files("examples/workloads"), |bytes| {
        let _ = workload_file::name_of(&text(bytes));
    });
}

#[test]
fn fio_jobs() {
    damage("fio-jobs", files("examples/fio"), |bytes| {
        if let Ok(translated) = fio::translate("job", &text(bytes)) {
            let _ = workload_file::name_of(&translated.text);
        }
    });
}

#[test]
fn machine_files() {
    let samples = ["vm-2cpu", "skylake-1s"].map(|name| machine_file::of_machine(name).unwrap().into_bytes());
    damage("machine-files", samples.to_vec(), |bytes| {
        let _ = machine_file::read_text(&text(bytes));
    });
}

#[test]
fn numbers_of_others() {
    let samples = ["name,before,after\na,1,2\nb,3.5,-4e9\n", "1 2 3\n4\n", "a 1\na 2\nb 3\n"];
    damage("numbers", samples.map(Vec::from).to_vec(), |bytes| {
        for operation in ["", "mean"] {
            let _ = numbers::of_text(&text(bytes), "a", operation);
        }
    });
}

#[test]
fn elf() {
    let folder = tempfile::tempdir().unwrap();
    damage("elf", vec![fs::read("/bin/true").unwrap()], move |bytes| {
        let _ = vm::elf::machine_of(bytes);
        let _ = vm::modules::module_info(bytes);
        let path = folder.path().join("program");
        fs::write(&path, bytes).unwrap();
        let _ = vm::elf::set_loader(&path, "/l");
    });
}

/// A package with a file, its content not compressed and by xz.
#[test]
fn debian_packages() {
    let member = |name: &str, content: &[u8]| {
        let head = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, "100644", content.len());
        [head.as_bytes(), content, &b"\n"[..content.len() % 2]].concat()
    };
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(600);
    header.set_mode(0o644);
    header.set_cksum();
    tar.append_data(&mut header, "./boot/vmlinuz-6.1", &[7; 600][..]).unwrap();
    let tar = tar.into_inner().unwrap();
    let package = |data: Vec<u8>| [b"!<arch>\n".to_vec(), member("debian-binary", b"2.0\n"), data].concat();
    let samples = vec![
        package(member("data.tar", &tar)),
        package(member("data.tar.xz", include_bytes!("samples/data.tar.xz"))),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, sample) in samples.iter().enumerate() {
        let deb = folder.path().join("whole.deb");
        fs::write(&deb, sample).unwrap();
        let written = vm::deb::unpack(&deb, &folder.path().join("out"), |path| Some(path.to_owned()));
        assert_eq!(written.unwrap(), 1, "sample {number}");
    }
    damage("debian-packages", samples, move |bytes| {
        let deb = folder.path().join("changed.deb");
        fs::write(&deb, bytes).unwrap();
        let _ = vm::deb::unpack(&deb, &folder.path().join("out"), |_| Some("file".into()));
    });
}

/// Where a bzImage has its release.
#[test]
fn kernel_images() {
    let mut image = vec![0; 0x300];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x80_u16.to_le_bytes());
    image[0x280..0x286].copy_from_slice(b"6.12.1");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vmlinuz");
    let find = move |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        VmKernel::Path(path.clone()).find(Path::new("/nowhere"))
    };
    assert_eq!(find(&image).unwrap().release, "6.12.1");
    damage("kernel-images", vec![image], move |bytes| drop(find(bytes)));
}

#[test]
fn consoles_and_messages() {
    let console = "[    0.1] Linux version 6.1\n[   1.2] Out of memory: Killed process 7 (a)\n\
                   [   1.3] Kernel panic - not syncing: no\n[   1.4] reboot: Power down\n";
    let message = "{\"Ready\":{\"release\":\"6.12.1\"}}\n{\"Progress\":\"stream 40 %\"}\n\"Alive\"\n";
    damage("consoles", vec![console.into(), message.into()], |bytes| {
        let mut console = vm::console::Console::default();
        let mut inbox = vm::protocol::Inbox::default();
        for part in bytes.chunks(50) {
            console.take(part);
            let _ = inbox.take(part);
        }
        let _ = (console.tail(), console.crash().is_some(), console.oom_kills());
        let _ = vm::protocol::last_words_in(&console.tail());
    });
}

const LOGS_OF_MMTESTS: [(&str, &str); 6] = [
    (
        "tests-timestamp",
        "start :: 1600000000\ntest begin :: fsmark 1600000001\ntime :: fsmark 1.00 user 2.00 system 3.50 elapsed\n\
         test begin :: thpfioscale 1600000005\ntest begin :: stressng 1600000006\ntest begin :: simoop 1600000007\n",
    ),
    (
        "tests-sysstate",
        "test begin :: fsmark 1\nfile start :: /proc/vmstat\nnr_free_pages 5000\npgscan_kswapd 7\n\
         file end :: /proc/vmstat\nnr_free_pages 4000\npgscan_kswapd 70\ntest end :: fsmark 2\n",
    ),
    ("fsmark/logs/fsmark-1.log", "FSUse%  Count  Size  Files/sec  App Overhead\n 1 1000 4096 15123.4 990\n"),
    ("thpfioscale/logs/threads-1.log", "fault 0 huge 12.5\nfault 1 base 3\n"),
    ("stressng/logs/stressng-2-1.log", "[7] stressor (secs)\n[7] fault 9 1.0 2.0 3.0 123.5 7\n"),
    ("simoop/logs/simoop.log", "Warmup complete\nRead latency usec: (p50: 1,234) (p99: 7)\nFinal stats\n"),
];

#[test]
fn runs_of_mmtests() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run/iter-0");
    let write = |name: &str, bytes: &[u8]| {
        let path = run.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    LOGS_OF_MMTESTS.iter().for_each(|(name, text)| write(name, text.as_bytes()));
    let whole = mmtests::import(folder.path()).unwrap();
    let scanned = |run: &Recording| run.vmstat.get("pgscan_kswapd").copied();
    let told: Vec<_> = whole.recordings.iter().map(|run| (scanned(run), run.samples.len())).collect();
    assert_eq!(told, [(Some(63), 1), (None, 2), (None, 1), (None, 2)]);
    let samples = LOGS_OF_MMTESTS.map(|(_, text)| text.as_bytes().to_vec());
    damage("mmtests", samples.to_vec(), move |bytes| {
        for (name, text) in LOGS_OF_MMTESTS {
            fs::write(run.join(name), bytes).unwrap();
            let _ = mmtests::import(folder.path());
            fs::write(run.join(name), text).unwrap();
        }
    });
}
