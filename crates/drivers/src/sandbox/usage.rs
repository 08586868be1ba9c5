//! What a box uses: processes, memory, and bytes by which its folders grew.
//!
//! Between full samples a few numbers of the whole machine tell whether a box may have grown. They cost two system calls,
//! so they are read often, and a box that grows fast is sampled before it is far past its limit.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, Metadata};
use std::io;
use std::num::NonZeroI32;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rustix::fs::statfs;
use rustix::process::Pid;
use rustix::system::sysinfo;

use super::calls::group_of;
use super::confinement::BoxLimits;
use super::landlock::Access;
use super::order::BoxOrder;
use super::pause::Pause;
use super::report::{BoxUsage, Reason};
use super::watch::FULL_SAMPLE_TICKS;
use crate::processes::children;

/// A limit is looked at again when the machine changed by this part of it.
const PART: u64 = 8;
/// What a file counts for beside its bytes: names and inodes are bounded as well.
const FILE_BYTES: u64 = 1_024;
/// Threads are counted as well, with this many for each process that is allowed.
pub(super) const THREADS_PER_PROCESS: u64 = 16;
const BLOCK_BYTES: u64 = 512;

pub(super) struct Sampler {
    processes_max: u64,
    memory_bytes_max: u64,
    disk_bytes_max: u64,
    folders: Vec<Folder>,
    /// What was in the folders before the command.
    disk_before: u64,
    /// Processes of the machine and of the box at the last sample.
    seen_on_machine: u64,
    seen_in_box: u64,
    seen_free_memory: u64,
    ticks: u64,
    /// Folders are measured again after this many ticks: large ones less often.
    disk_ticks_left: u64,
    /// By how much they had grown when they were measured.
    seen_growth: u64,
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

struct Folder {
    path: PathBuf,
    device: u64,
    free_bytes_at_start: u64,
    room_when_measured: u64,
}

impl Folder {
    fn free_bytes(&self) -> u64 {
        statfs(&self.path).map_or(0, |fs| fs.f_bfree.saturating_mul(fs.f_bsize.unsigned_abs()))
    }

    /// Free bytes and free files: a file without bytes takes room as well.
    fn room(&self) -> u64 {
        let files = statfs(&self.path).map_or(0, |fs| fs.f_ffree);
        self.free_bytes().saturating_add(files.saturating_mul(FILE_BYTES))
    }

    /// How many bytes less are free than at the start, for any reason.
    fn taken(&self) -> u64 {
        self.free_bytes_at_start.saturating_sub(self.free_bytes())
    }
}

impl Sampler {
    pub(super) fn new(order: &BoxOrder) -> io::Result<Self> {
        let mut folders = Vec::new();
        let is_measured = order.disk_bytes_max != BoxLimits::UNLIMITED;
        for grant in order.grants.iter().filter(|grant| is_measured && grant.access == Access::Write) {
            let (path, device) = (grant.path.clone(), fs::metadata(&grant.path)?.dev());
            folders.push(Folder { path, device, free_bytes_at_start: 0, room_when_measured: 0 });
        }
        // A folder in another one is measured once.
        let paths: Vec<PathBuf> = folders.iter().map(|folder| folder.path.clone()).collect();
        folders
            .retain(|folder| !paths.iter().any(|path| folder.path != *path && folder.path.starts_with(path)));
        folders.dedup_by(|one, other| one.path == other.path);
        for folder in &mut folders {
            folder.free_bytes_at_start = folder.free_bytes();
            folder.room_when_measured = folder.room();
        }
        let mut sampler = Self {
            processes_max: order.processes_max,
            memory_bytes_max: order.memory_bytes_max,
            disk_bytes_max: order.disk_bytes_max,
            folders,
            disk_before: 0,
            seen_on_machine: processes_on_machine(),
            seen_in_box: 0,
            seen_free_memory: free_memory(),
            ticks: 0,
            disk_ticks_left: FULL_SAMPLE_TICKS,
            seen_growth: 0,
            peak: BoxUsage::default(),
        };
        sampler.disk_before = sampler.measure(u64::MAX).0;
        Ok(sampler)
    }

    pub(super) fn usage(&self) -> BoxUsage {
        self.peak
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
    pub(super) fn tick(&mut self, first: Pid, passed: u64, growth: Growth) -> Option<Reason> {
        self.ticks += passed;
        let free_memory = free_memory();
        let has_less_memory =
            self.seen_free_memory.saturating_sub(free_memory) >= self.memory_bytes_max / PART;
        if has_less_memory || self.ticks >= FULL_SAMPLE_TICKS {
            self.disk_ticks_left = self.disk_ticks_left.saturating_sub(passed);
            return self.sample_now(first, growth);
        }
        self.seen_free_memory = self.seen_free_memory.max(free_memory);
        self.seen_on_machine = self.seen_on_machine.min(processes_on_machine());
        self.tick_disk(first, passed)
    }

    pub(super) fn sample_now(&mut self, first: Pid, growth: Growth) -> Option<Reason> {
        self.ticks = 0;
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
        self.sample_processes(&processes).or_else(|| self.tick_disk(first, 0))
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

    fn tick_disk(&mut self, first: Pid, passed: u64) -> Option<Reason> {
        self.disk_ticks_left = self.disk_ticks_left.saturating_sub(passed);
        let (mut has_less_room, mut taken_since) = (false, 0);
        for folder in &self.folders {
            let taken = folder.room_when_measured.saturating_sub(folder.room());
            has_less_room |= taken >= self.disk_bytes_max / PART;
            taken_since += taken;
        }
        if !has_less_room && self.disk_ticks_left > 0 {
            return None;
        }
        // Perhaps others took the room: this box may go on then.
        let may_be_past = self.seen_growth.saturating_add(taken_since) > self.disk_bytes_max;
        let _paused = may_be_past.then(|| Pause::begin(below(first).filter_map(Pid::from_raw)));
        for folder in &mut self.folders {
            folder.room_when_measured = folder.room();
        }
        let (bytes, files) = self.measure(self.disk_before.saturating_add(self.disk_bytes_max));
        // About a tenth of the time at most, at a thousand files in a few milliseconds.
        self.disk_ticks_left = FULL_SAMPLE_TICKS.max(files / 100);
        let mut grown = bytes.saturating_sub(self.disk_before);
        let taken: u64 = self.folders.iter().map(Folder::taken).sum();
        if grown <= self.disk_bytes_max && taken > self.disk_bytes_max {
            grown += self.unlinked(first).unwrap_or(taken);
        }
        self.seen_growth = grown;
        self.peak.disk_bytes = self.peak.disk_bytes.max(grown);
        (grown > self.disk_bytes_max).then_some(Reason::Disk)
    }

    /// The bytes in the folders, and how many files have them. Ends past `bytes_max`: a box makes files while they are
    /// counted.
    fn measure(&self, bytes_max: u64) -> (u64, u64) {
        let mut linked = BTreeSet::new();
        let (mut bytes, mut files): (u64, u64) = (0, 0);
        for folder in &self.folders {
            let mut waiting = vec![folder.path.clone()];
            while let Some(path) = waiting.pop() {
                let Ok(entries) = fs::read_dir(&path) else { continue };
                for entry in entries.flatten() {
                    let Ok(found) = entry.metadata() else { continue };
                    if found.dev() != folder.device {
                        continue;
                    }
                    files += 1;
                    if found.is_dir() {
                        waiting.push(entry.path());
                    } else if found.nlink() > 1 && !linked.insert(found.ino()) {
                        continue;
                    }
                    bytes = bytes.saturating_add(size(&found));
                    if bytes > bytes_max {
                        return (bytes, files);
                    }
                }
            }
        }
        (bytes, files)
    }

    /// Bytes of files that have no name any more but are open. Not known if a process does not show its files.
    fn unlinked(&self, first: Pid) -> Option<u64> {
        let mut seen = BTreeSet::new();
        let mut bytes: u64 = 0;
        for pid in below(first).take(usize::try_from(self.processes_max).unwrap_or(usize::MAX)) {
            let files = match fs::read_dir(format!("/proc/{pid}/fd")) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                files => files.ok()?,
            };
            for file in files.flatten() {
                let Ok(file) = fs::metadata(file.path()) else { continue };
                let is_ours = self.folders.iter().any(|folder| folder.device == file.dev());
                if file.nlink() == 0 && is_ours && seen.insert((file.dev(), file.ino())) {
                    bytes = bytes.saturating_add(size(&file));
                }
            }
        }
        Some(bytes)
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

fn size(file: &Metadata) -> u64 {
    file.blocks().saturating_mul(BLOCK_BYTES).saturating_add(FILE_BYTES)
}

/// Everything below the first process of a box, found one after the other. A process whose parent ends meanwhile is met
/// twice, and counted once.
fn below(first: Pid) -> impl Iterator<Item = i32> {
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
