//! What a box uses: processes and memory; [`DiskUse`] has the bytes by which its folders grew.
//!
//! Between full samples a few numbers of the whole machine tell whether a box may have grown. They cost two system calls,
//! so they are read often, and a box that grows fast is sampled before it is far past its limit.

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroI32;
use std::os::unix::fs::MetadataExt as _;
use std::{fs, io};

use rustix::process::Pid;
use rustix::system::sysinfo;

use super::calls::group_of;
use super::disk_use::DiskUse;
use super::order::BoxOrder;
use super::report::{BoxUsage, Reason};
use super::ticks::{TICK_MS, Ticks};
use crate::processes::children;

/// A full sample needs a sign of growth or its turn.
const FULL_SAMPLE_TICKS: u64 = 100 / TICK_MS;
/// A limit is looked at again when the machine changed by this part of it.
pub(super) const PART: u64 = 8;
/// Threads are counted as well, with this many for each process that is allowed.
pub(super) const THREADS_PER_PROCESS: u64 = 16;

pub(super) struct Sampler {
    processes_max: u64,
    memory_bytes_max: u64,
    disk: DiskUse,
    /// Processes of the machine and of the box at the last sample.
    seen_on_machine: u64,
    seen_in_box: u64,
    seen_free_memory: u64,
    /// At which tick that was.
    sampled_at: u64,
    peak: BoxUsage,
}

/// Whether a box asks before it makes processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// It grows faster than it is counted, perhaps: the count ends as soon as it seems so.
    Unasked,
    Asked,
}

/// Where all processes of a box are, whatever becomes of their parents.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// The namespace of its first process.
    Namespace(Pid),
    /// Its group, which none of them can leave.
    Group(Pid),
}

impl Sampler {
    pub(super) fn new(order: &BoxOrder) -> io::Result<Self> {
        Ok(Self {
            processes_max: order.processes_max,
            memory_bytes_max: order.memory_bytes_max,
            disk: DiskUse::new(order)?,
            seen_on_machine: processes_on_machine(),
            seen_in_box: 0,
            seen_free_memory: free_memory(),
            sampled_at: 0,
            peak: BoxUsage::default(),
        })
    }

    pub(super) fn usage(&self) -> BoxUsage {
        BoxUsage { disk_bytes: self.disk.peak_bytes(), ..self.peak }
    }

    /// Whether the box has more processes than it may, if every new process of the machine is in it.
    pub(super) fn is_suspicious(&self) -> bool {
        let new = processes_on_machine().saturating_sub(self.seen_on_machine);
        self.seen_in_box + new > self.processes_max
    }

    /// How many processes and threads a box may still make. It must make none meanwhile: each that lives is listed then.
    pub(super) fn left(&mut self, scope: Scope) -> io::Result<(u64, u64)> {
        let listed = match scope {
            Scope::Namespace(first) => format!("/proc/{}/root/proc", first.as_raw_nonzero()),
            Scope::Group(_) => "/proc".to_owned(),
        };
        let (mut processes, mut threads) = (0, 0);
        for entry in fs::read_dir(&listed)? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
                continue;
            };
            let is_ours = match scope {
                // The first one is not the command's.
                Scope::Namespace(_) => pid != Pid::INIT,
                Scope::Group(group) => group_of(pid) == Some(group),
            };
            if is_ours {
                processes += 1;
                threads += threads_of(&format!("{listed}/{}", pid.as_raw_nonzero()));
            }
        }
        self.peak.processes = self.peak.processes.max(processes);
        let threads_max = self.processes_max.saturating_mul(THREADS_PER_PROCESS);
        Ok((self.processes_max.saturating_sub(processes), threads_max.saturating_sub(threads)))
    }

    /// Samples if it is time or something grew. The limit that was passed, if one was.
    pub(super) fn tick(&mut self, first: Pid, ticks: &Ticks, growth: Growth) -> Option<Reason> {
        let free_memory = free_memory();
        let has_less_memory =
            self.seen_free_memory.saturating_sub(free_memory) >= self.memory_bytes_max / PART;
        if has_less_memory || ticks.now() - self.sampled_at >= FULL_SAMPLE_TICKS {
            return self.sample_now(first, ticks, growth);
        }
        self.seen_free_memory = self.seen_free_memory.max(free_memory);
        self.seen_on_machine = self.seen_on_machine.min(processes_on_machine());
        self.disk.look(first, ticks)
    }

    pub(super) fn sample_now(&mut self, first: Pid, ticks: &Ticks, growth: Growth) -> Option<Reason> {
        self.sampled_at = ticks.now();
        self.seen_free_memory = free_memory();
        self.seen_on_machine = processes_on_machine();
        let found = below(first);
        let mut processes = Vec::new();
        for pid in found {
            processes.push(pid);
            let count = processes.len() as u64;
            match growth {
                Growth::Asked => {}
                Growth::Unasked if count > self.processes_max => return Some(Reason::Processes),
                Growth::Unasked if count.is_multiple_of(16) => {
                    self.seen_in_box = count;
                    if self.is_suspicious() {
                        return None;
                    }
                }
                Growth::Unasked => {}
            }
        }
        self.sample_processes(&processes).or_else(|| self.disk.look(first, ticks))
    }

    fn sample_processes(&mut self, found: &[i32]) -> Option<Reason> {
        let (mut processes, mut threads, mut resident) = (0, 0, 0);
        for pid in found {
            processes += 1;
            let folder = format!("/proc/{pid}");
            threads += threads_of(&folder);
            resident += resident_bytes(&folder);
        }
        self.seen_in_box = processes;
        self.peak.processes = self.peak.processes.max(processes);
        if processes > self.processes_max || threads > self.processes_max.saturating_mul(THREADS_PER_PROCESS)
        {
            return Some(Reason::Processes);
        }
        if resident > self.memory_bytes_max {
            // Pages that several of them share were counted for each.
            resident = found.iter().map(|pid| proportional_bytes(&format!("/proc/{pid}"))).sum();
        }
        self.peak.memory_bytes = self.peak.memory_bytes.max(resident);
        (resident > self.memory_bytes_max).then_some(Reason::Memory)
    }
}

/// How many processes there are, without their threads: what the kernel says as the number of links to `/proc`.
fn processes_on_machine() -> u64 {
    fs::metadata("/proc").map_or(0, |processes| processes.nlink())
}

fn free_memory() -> u64 {
    let machine = sysinfo();
    machine.freeram as u64 * u64::from(machine.mem_unit)
}

/// Everything below the first process of a box, found one after the other. A process whose parent ends meanwhile is met
/// twice, and counted once.
pub(super) fn below(first: Pid) -> impl Iterator<Item = i32> {
    let mut waiting = VecDeque::from(children(first));
    let mut met = BTreeSet::new();
    std::iter::from_fn(move || {
        loop {
            let pid = waiting.pop_front()?;
            if met.insert(pid.as_raw_nonzero()) {
                waiting.extend(children(pid));
                return Some(pid.as_raw_nonzero().get());
            }
        }
    })
}

/// Whether a thread may still be in the call that it was allowed: one that sleeps or has ended is not.
pub(super) fn may_be_in_a_call(thread: NonZeroI32) -> bool {
    let line = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    line.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['R', 'D']))
}

fn threads_of(process: &str) -> u64 {
    fs::metadata(format!("{process}/task")).map_or(1, |tasks| tasks.nlink().saturating_sub(2))
}

fn resident_bytes(process: &str) -> u64 {
    let pages = fs::read_to_string(format!("{process}/statm")).ok();
    let resident =
        pages.as_deref().and_then(|pages| pages.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    resident.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

fn proportional_bytes(process: &str) -> u64 {
    let rollup = fs::read_to_string(format!("{process}/smaps_rollup")).unwrap_or_default();
    let kibibytes = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kibibytes = kibibytes.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.map_or_else(|| resident_bytes(process), |kibibytes| kibibytes.saturating_mul(1_024))
}
