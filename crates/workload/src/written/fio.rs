//! Job files of `fio`, as workload files: what decides about memory is translated, what does not is listed as
//! ignored, and all else is refused by name.
//!
//! Meanings are those of fio's own documentation (HOWTO, 3.x). Each clone of a job is a task with files of its own;
//! jobs up to a `stonewall` are one phase. A file that is read is laid out before, one that is written in order
//! begins empty, and blocks in random order come each once, unless `norandommap` is given. Left out: verification,
//! other engines than plain calls and `mmap`, several requests in flight, content of buffers. Next: [`super::read`],
//! which reads what comes of it.

mod job;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::language::table::Mistake;
use crate::written::fio::job::{Job, Out, at, word};
use language::names::UnknownName;

/// A job file in the language of workload files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// The workload file.
    pub text: String,
    /// Options that change nothing here, in the order of the file.
    pub ignored: Vec<String>,
}

/// Options that decide about what runs.
const MEANT: &str = "bs blocksize buffered create_on_open direct end_fsync fadvise_hint fdatasync file_service_type \
    filename filesize fsync fsync_on_close invalidate io_size iodepth ioengine loops norandommap nrfiles numjobs \
    openfiles overwrite pre_read random_distribution rate rate_iops readwrite runtime rw rwmixread rwmixwrite size \
    startdelay stonewall thinktime time_based wait_for_previous";
/// Options that change nothing of what is modelled.
const IGNORED: &str = "allrandrepeat buffer_compress_chunk buffer_compress_percentage buffer_pattern bwavgtime \
    clat_percentiles clocksource create_fsync create_serialize dedupe_percentage description directory \
    disable_bw_measurement disable_clat disable_lat disable_slat do_verify eta exitall fallocate group_reporting \
    gtod_cpu gtod_reduce iopsavgtime kb_base lat_percentiles log_avg_msec log_hist_msec log_offset name new_group \
    per_job_logs percentile_list randrepeat randseed refill_buffers scramble_buffers significant_figures \
    slat_percentiles status-interval thread unique_filename unit_base unlink write_bw_log write_iops_log write_lat_log";
/// Translates a job file; `stem` is what the workload is called.
///
/// # Errors
/// The first line that is none of a job file, or an option that cannot be had here.
pub fn translate(stem: &str, text: &str) -> Result<Translated, Mistake> {
    let jobs = sections(text)?;
    let mut ignored: Vec<String> = Vec::new();
    for job in &jobs {
        for (option, (_, line)) in &job.options {
            if has(IGNORED, option) {
                if !ignored.contains(option) {
                    ignored.push(option.clone());
                }
            } else if !has(MEANT, option) {
                let unknown = UnknownName::new("option", option, MEANT.split_ascii_whitespace());
                let message = format!("option `{option}` is not supported");
                return Err(at(*line, message, Some(format!("{}; or leave it out", unknown.hint()))));
            }
        }
    }
    let mut out = Out::default();
    let mut phase = 1;
    for (number, job) in jobs.iter().enumerate() {
        if number > 0 && (job.flag("stonewall")? || job.flag("wait_for_previous")?) {
            phase += 1;
        }
        job.translate(phase, &mut out)?;
    }
    let mut text = String::new();
    let name = word(stem).to_lowercase().replace(['_', '.'], "-");
    let mut line = |line: String| writeln!(text, "{line}").expect("text can be written to");
    line(format!("# The fio jobs of {stem}, translated."));
    if !ignored.is_empty() {
        line(format!("# Ignored, as they change nothing here: {}.", ignored.join(", ")));
    }
    line(format!("name = \"fio-{name}\""));
    line(format!(
        "help = \"fio: {}\"",
        jobs.iter().map(|job| word(&job.name)).collect::<Vec<_>>().join(", ")
    ));
    let phases: Vec<String> = (1..=phase).map(|phase| format!("\"stage{phase}\"")).collect();
    line(format!("phases = [{}]\n\n[files]", phases.join(", ")));
    text.push_str(&out.files);
    text.push('\n');
    text.push_str(&out.tasks);
    text.push_str("[metrics]\n");
    for phase in 1..=phase {
        writeln!(
            text,
            "stage{phase}_seconds = {{ seconds = \"stage{phase}\", help = \"all jobs of stage {phase}\" }}"
        )
        .expect("text can be written to");
    }
    text.push_str(&out.metrics);
    Ok(Translated { text, ignored })
}

/// Sections with what `[global]` says above them.
fn sections(text: &str) -> Result<Vec<Job>, Mistake> {
    let mut global: BTreeMap<String, (String, u32)> = BTreeMap::new();
    let mut jobs: Vec<Job> = Vec::new();
    let mut in_global = None;
    for (number, line) in text.lines().enumerate() {
        let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.strip_suffix(']').filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| {
                at(number, format!("`{line}` is no section"), Some("write `[name]`".to_owned()))
            })?;
            in_global = Some(name == "global");
            if name != "global" {
                jobs.push(Job { name: name.to_owned(), line: number, options: global.clone() });
            }
            continue;
        }
        let (option, value) =
            line.split_once('=').map_or((line, "1"), |(option, value)| (option.trim(), value.trim()));
        let value = value.split(" ;").next().unwrap_or(value).trim().to_owned();
        let options = match (in_global, jobs.last_mut()) {
            (Some(true), _) => &mut global,
            (Some(false), Some(job)) => &mut job.options,
            _ => {
                return Err(at(
                    number,
                    format!("`{line}` stands before any section"),
                    Some("write `[global]` or `[job]` above it".to_owned()),
                ));
            }
        };
        options.insert(option.to_owned(), (value, number));
    }
    if jobs.is_empty() {
        return Err(Mistake {
            position: None,
            message: "there is no job".to_owned(),
            hint: Some("write a section, such as `[reader]`".to_owned()),
        });
    }
    Ok(jobs)
}

/// Whether a list has this option.
fn has(list: &str, option: &str) -> bool {
    list.split_ascii_whitespace().any(|own| own == option)
}
