//! The disk of a size: one that is named, this host's as measured where the trace's files lie, or the machine's own;
//! and what another disk would change.
//!
//! A limit costs what it costs to read again what it took, so a disk as fast as memory forgives every limit. Left out:
//! disks that several programs share. Neighbours: [`linux::disk_speed`], which measures; `disk` of
//! [`sim::machines`], which makes a disk of that.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use linux::disk_speed::{DiskSpeed, measure};
use report::OtherDisk;
use trace::Trace;
use units::Bytes;

use super::measured::point;
use super::plan::{Disks, MEASURED, SizePlan};
use super::runs::{Field, Source};
use super::search::Search;
use crate::error::LabError;
use crate::resolve::program;

/// What stands beside a measured one: where services run, it is often what they have.
const BESIDE: &str = "network";

/// A plan with its disk, and what there is to say of it.
pub(super) struct OnDisk {
    pub(super) plan: SizePlan,
    pub(super) told: Option<String>,
    /// Disks to compare it with.
    pub(super) beside: Vec<String>,
}

impl SizePlan {
    /// With the disk that it is for; measuring one takes a second.
    pub(super) fn on_its_disk(&self, trace: Option<&Trace>) -> Result<OnDisk, LabError> {
        let (first, rest) = match &self.disks {
            Disks::OfMachine => return Ok(OnDisk { plan: self.clone(), told: None, beside: Vec::new() }),
            Disks::Unsaid => match trace.filter(|trace| trace.source == trace::CAPTURED) {
                Some(_) => (MEASURED, vec![BESIDE.to_owned()]),
                None => {
                    return Ok(OnDisk {
                        plan: self.clone(),
                        told: Some(self.own_disk()),
                        beside: Vec::new(),
                    });
                }
            },
            Disks::Named(names) => (names[0].as_str(), names[1..].to_vec()),
        };
        if first != MEASURED {
            return Ok(OnDisk { plan: self.on_disk(first), told: None, beside: rest });
        }
        match (trace.and_then(|trace| measure(files(trace))), &self.disks) {
            (Some(speed), _) => {
                let told = Some(told(speed));
                Ok(OnDisk { plan: self.on_disk(&as_text(speed)), told, beside: rest })
            }
            (None, Disks::Unsaid) => {
                Ok(OnDisk { plan: self.clone(), told: Some(self.own_disk()), beside: Vec::new() })
            }
            (None, _) => Err(LabError::refused(
                "this host's disk cannot be measured: the trace has no files here that are large enough and on a disk",
                "name it: `--disk nvme`, `ssd`, `hdd` or `network`",
            )),
        }
    }

    fn own_disk(&self) -> String {
        format!(
            "The disk is that of the machine {}: `--disk nvme`, `ssd`, `hdd` or `network` takes another.",
            self.machine
        )
    }
}

/// The trace's files, whether or not they are here.
fn files(trace: &Trace) -> impl Iterator<Item = PathBuf> {
    trace.files.iter().filter(|file| !file.in_memory).map(|file| PathBuf::from(&file.path))
}

/// As `--disk` takes it.
fn as_text(DiskSpeed { latency, between, bandwidth, readahead }: DiskSpeed) -> String {
    let bandwidth = (bandwidth.get() >> 20).max(1);
    let readahead = readahead.map_or_else(String::new, |size| format!(":{size}"));
    format!("{}ns:{}ns:{bandwidth}M{readahead}", latency.get(), between.get())
}

fn told(speed: DiskSpeed) -> String {
    let micros = |nanos: units::Nanos| nanos.get() as f64 / 1e3;
    format!(
        "The disk is this host's, measured where the files lie: {:.0} us for a random page, {:.1} us between two of many, \
         {} MiB a second in sequence (`--disk` names another).",
        micros(speed.latency),
        micros(speed.between),
        speed.bandwidth.get() >> 20
    )
}

impl Source {
    /// The same trace, on the machine of another plan.
    fn of(&self, plan: &SizePlan) -> Result<Self, LabError> {
        Ok(match self {
            Self::Requests { whole, samples, format, id } => {
                Self::Requests { whole: whole.clone(), samples: samples.clone(), format: *format, id: *id }
            }
            Self::Program { trace, info, .. } => {
                let like =
                    program::scenario(&plan.program_scenario()?, &plan.trace, trace, Default::default())?;
                Self::Program { trace: trace.clone(), info: info.clone(), like: Box::new(like) }
            }
        })
    }
}

impl Search<'_> {
    /// What is enough on other disks, of the limits that were run: halved until it is known.
    pub(super) fn other_disks(&mut self, disks: &[String]) -> Result<(), LabError> {
        for disk in disks {
            if self.stopped {
                break;
            }
            let plan = self.field.plan.on_disk(disk);
            let mut field = Field::new(&plan, self.field.control, self.field.source.of(&plan)?, None)?;
            field.finished = AtomicUsize::new(self.field.finished.load(Ordering::Relaxed));
            let mut other = Search::begin(field, self.planned)?;
            let limits: Vec<Bytes> = self.limited.keys().copied().collect();
            let (mut below, mut enough) = (0, limits.len());
            while below < enough && !other.stopped {
                let middle = below.midpoint(enough);
                other.add(&limits[middle..=middle])?;
                let Some(runs) = other.limited.get(&limits[middle]) else { break };
                match other.target.is_kept(&other.base, runs)? {
                    true => enough = middle,
                    false => below = middle + 1,
                }
            }
            let advised = self.advice.as_ref().map(|advice| Bytes(advice.high));
            other.add(&advised.into_iter().collect::<Vec<_>>())?;
            let at_advised = advised.and_then(|limit| Some((limit, other.limited.get(&limit)?)));
            let at_advised = at_advised
                .map(|(limit, runs)| point(Some(limit), &other.base, runs, &other.target))
                .transpose()?;
            self.planned = other.planned;
            self.field.finished.store(other.field.finished.load(Ordering::Relaxed), Ordering::Relaxed);
            self.stopped |= other.stopped;
            self.other_disks.push(OtherDisk {
                disk: disk.clone(),
                high: limits.get(enough).filter(|_| !self.target.limits.is_empty()).map(|limit| limit.get()),
                slowdown: at_advised.as_ref().and_then(|point| Some(point.slowdown?.mean)),
                killed: at_advised.is_some_and(|point| point.killed > 0),
            });
        }
        Ok(())
    }
}
