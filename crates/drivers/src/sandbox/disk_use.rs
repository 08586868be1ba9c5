//! Bytes by which the folders of a box grew, and when they are measured.
//!
//! Two signs tell that a box may have grown since it was measured. One is less free space, which is cheap to ask for but
//! does not show while others free as much. The other is time: a box whose limit is near is measured as soon as it could
//! have taken half of what is left, and stands still meanwhile if it could be past its limit.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rustix::fs::statfs;
use rustix::process::Pid;

use super::confinement::BoxLimits;
use super::landlock::Access;
use super::order::BoxOrder;
use super::pause::Pause;
use super::report::Reason;
use super::ticks::{TICK_MS, Ticks};
use super::usage::{PART, below};

/// What a file counts for beside its bytes: names and inodes are bounded as well.
const FILE_BYTES: u64 = 1_024;
const BLOCK_BYTES: u64 = 512;
/// What a box is taken to write in a tick at most: a mebibyte in a millisecond.
const BYTES_PER_TICK_MAX: u64 = TICK_MS << 20;
/// How often folders far from their limit are measured.
const INTERVAL_TICKS: u64 = 100 / TICK_MS;
/// At a few microseconds for each file, measuring takes about a tenth of the time.
const FILES_PER_TICK: u64 = 50 * TICK_MS;
/// Near a limit it may take half of it.
const FILES_PER_TICK_NEAR: u64 = 250 * TICK_MS;
/// How many files are measured between two looks at the clock.
const FILES_PER_LOOK: u64 = 64;

pub(super) struct DiskUse {
    bytes_max: u64,
    processes_max: usize,
    folders: Vec<Folder>,
    /// What was in the folders before the command.
    before: u64,
    /// By how much they had grown when they were measured last.
    grown: u64,
    /// Whether that was more than the time before.
    is_growing: bool,
    /// At which tick that was, and after how many it is done again.
    measured_at: u64,
    interval: u64,
    peak: u64,
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

impl DiskUse {
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
        let mut disk = Self {
            bytes_max: order.disk_bytes_max,
            processes_max: usize::try_from(order.processes_max).unwrap_or(usize::MAX),
            folders,
            before: 0,
            grown: 0,
            is_growing: false,
            measured_at: 0,
            interval: 0,
            peak: 0,
        };
        let found = disk.measure(u64::MAX, |_| ());
        disk.before = found.bytes;
        disk.interval = interval(disk.bytes_max, found.files);
        Ok(disk)
    }

    /// By how much the folders had grown at most when they were measured.
    pub(super) fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// Measures if it is time or the disks have less room. The limit, if it was passed.
    pub(super) fn look(&mut self, first: Pid, ticks: &Ticks) -> Option<Reason> {
        let (mut has_less_room, mut taken) = (false, 0);
        for folder in &self.folders {
            let less = folder.room_when_measured.saturating_sub(folder.room());
            has_less_room |= less >= self.bytes_max / PART;
            taken += less;
        }
        if !has_less_room && ticks.now() - self.measured_at < self.interval {
            return None;
        }
        // Others may have used the space; then the box continues.
        let is_seen_past = self.grown.saturating_add(taken) > self.bytes_max;
        let pause = || Pause::begin(below(first).filter_map(Pid::from_raw));
        let mut paused = is_seen_past.then(pause);
        let left = self.bytes_max.saturating_sub(self.grown);
        let (measured_before, is_growing) = (self.measured_at, self.is_growing);
        let grown_before = self.before.saturating_add(self.grown);
        for folder in &mut self.folders {
            folder.room_when_measured = folder.room();
        }
        let began = ticks.now();
        let mut paused_at = is_seen_past.then_some(began);
        let found = self.measure(self.before.saturating_add(self.bytes_max), |bytes| {
            let now = ticks.now();
            let is_growing = is_growing || bytes > grown_before;
            let may_be_past = is_growing && is_near(left) && grown_in(now - measured_before) >= left;
            if paused.is_none() && may_be_past {
                paused = Some(pause());
                paused_at = Some(now);
            }
        });
        // What was written while it ran belongs to the next measurement.
        self.measured_at = paused_at.map_or(began, |paused_at| ticks.now() - (paused_at - began));
        let mut grown = found.bytes.saturating_sub(self.before);
        let taken: u64 = self.folders.iter().map(Folder::taken).sum();
        if grown <= self.bytes_max && taken > self.bytes_max {
            grown += self.unlinked(first).unwrap_or(taken);
        }
        self.is_growing = grown > self.grown;
        self.grown = grown;
        self.peak = self.peak.max(grown);
        self.interval = interval(self.bytes_max.saturating_sub(grown), found.files);
        if grown <= self.bytes_max {
            return None;
        }
        // It must not grow on until it is killed.
        if let Some(paused) = paused {
            paused.keep();
        }
        Some(Reason::Disk)
    }

    /// The bytes in the folders. Ends past `bytes_max`: a box makes files while they are counted. `look` is told how many
    /// there are until then.
    fn measure(&self, bytes_max: u64, mut look: impl FnMut(u64)) -> Measured {
        let mut linked = BTreeSet::new();
        let mut measured = Measured { bytes: 0, files: 0 };
        for folder in &self.folders {
            let mut waiting = vec![folder.path.clone()];
            while let Some(path) = waiting.pop() {
                let Ok(entries) = fs::read_dir(&path) else { continue };
                for entry in entries.flatten() {
                    if measured.files.is_multiple_of(FILES_PER_LOOK) {
                        look(measured.bytes);
                    }
                    let Ok(found) = entry.metadata() else { continue };
                    if found.dev() != folder.device {
                        continue;
                    }
                    measured.files += 1;
                    if found.is_dir() {
                        waiting.push(entry.path());
                    } else if found.nlink() > 1 && !linked.insert(found.ino()) {
                        continue;
                    }
                    measured.bytes = measured.bytes.saturating_add(size(&found));
                    if measured.bytes > bytes_max {
                        return measured;
                    }
                }
            }
        }
        measured
    }

    /// Bytes of files that have no name any more but are open. Not known if a process does not show its files.
    fn unlinked(&self, first: Pid) -> Option<u64> {
        let mut seen = BTreeSet::new();
        let mut bytes: u64 = 0;
        for pid in below(first).take(self.processes_max) {
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

struct Measured {
    bytes: u64,
    files: u64,
}

/// After how many ticks a box is measured again.
fn interval(left: u64, files: u64) -> u64 {
    if is_near(left) {
        (left / 2 / BYTES_PER_TICK_MAX).max(files / FILES_PER_TICK_NEAR)
    } else {
        INTERVAL_TICKS.max(files / FILES_PER_TICK)
    }
}

/// Whether a box could take half of what is left to it before it is measured again.
const fn is_near(left: u64) -> bool {
    left / 2 < grown_in(INTERVAL_TICKS)
}

const fn grown_in(ticks: u64) -> u64 {
    ticks.saturating_mul(BYTES_PER_TICK_MAX)
}

fn size(file: &Metadata) -> u64 {
    file.blocks().saturating_mul(BLOCK_BYTES).saturating_add(FILE_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However much is left, a box takes at most half of it before it is measured again. Very many files take longer to
        /// measure than that.
        #[test]
        fn at_most_half_of_what_is_left_is_taken_unseen(
            left in prop_oneof![0_u64..400 << 20, 0_u64..1 << 40],
            files in 0_u64..5_000,
        ) {
            let unseen = grown_in(interval(left, files));
            prop_assert!(unseen <= (left / 2).max(grown_in(files / FILES_PER_TICK_NEAR)), "{}", unseen);
        }
    }
}
