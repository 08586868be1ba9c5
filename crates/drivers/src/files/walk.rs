//! The files below a folder, visited by a few threads. Everything is opened from the handle of the folder above it and no
//! link is followed. It stops at its bounds, or when it is told to.

use std::ffi::CStr;
use std::io::{self, Read};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};

use super::ignored::Ignored;
use crate::folders::HiddenIds;

/// Entries that one walk looks at.
const ENTRIES_MAX: u64 = 200_000;
/// Bytes that one walk reads.
const BYTES_MAX: u64 = 1 << 30;
/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// How many folders deep it goes.
const DEPTH_MAX: u32 = 64;
/// The most threads. Other agents search as well.
const THREADS_MAX: usize = 4;
/// Files of a folder that are one piece of work.
const FILES_AT_ONCE: usize = 64;

const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// Files that were read, or only named.
    pub(super) files: u64,
    /// Files that were too large.
    pub(super) large: u64,
    /// Whether everything was visited.
    pub(super) is_whole: bool,
}

/// What is done with each file.
pub(super) trait Visit: Sync {
    /// What one thread keeps between files.
    type Local;

    fn local(&self) -> Self::Local;

    /// Whether a file is wanted, by its path from the folder where the walk began.
    fn is_wanted(&self, path: &str) -> bool;

    /// Whether files are read; if not, they only have names.
    fn reads(&self) -> bool;

    /// Whether the walk continues.
    fn visit(&self, local: &mut Self::Local, path: String, bytes: &[u8]) -> ControlFlow<()>;
}

/// A folder that is open, and what is known about it.
pub(super) struct Folder {
    handle: OwnedFd,
    /// Its path from where ignore files count, with a slash behind it if it has one.
    path: String,
    ignored: Option<Arc<Ignored>>,
    depth: u32,
    /// Folders that are not opened.
    hidden: HiddenIds,
}

impl Folder {
    /// The folder from which ignore files count. Its handle may only name it: it is opened to be read.
    pub(super) fn top(handle: impl AsFd, hidden: HiddenIds) -> io::Result<Self> {
        let handle = openat(handle, ".", FOLDER_FLAGS, Mode::empty())?;
        let ignored = Ignored::below(None, &handle, 0);
        Ok(Self { handle, path: String::new(), ignored, depth: 0, hidden })
    }

    /// A folder in it. A link is an error.
    pub(super) fn below(&self, name: &str) -> io::Result<Self> {
        let handle = openat(&self.handle, name, FOLDER_FLAGS, Mode::empty())?;
        if !self.hidden.is_empty() {
            let found = fstat(&handle)?;
            if self.hidden.has((found.st_dev, found.st_ino)) {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        let path = format!("{}{name}/", self.path);
        let ignored = Ignored::below(self.ignored.clone(), &handle, path.len());
        Ok(Self { handle, path, ignored, depth: self.depth + 1, hidden: self.hidden.clone() })
    }

    /// Whether a plain file has this name.
    pub(super) fn has_file(&self, name: &str) -> bool {
        open_plain(self.handle.as_fd(), name).is_some()
    }
}

enum Task {
    Folder { above: Arc<Folder>, name: String },
    Files { folder: Arc<Folder>, names: Vec<String> },
}

#[derive(Default)]
struct Queue {
    /// The last one is next: few folders are open at the same time.
    tasks: Vec<Task>,
    /// Threads that may bring more.
    busy: usize,
}

struct Walk<'w, V> {
    visit: &'w V,
    stop: &'w AtomicBool,
    /// Where the path of a file begins in its whole path.
    skip: usize,
    queue: Mutex<Queue>,
    more: Condvar,
    entries: AtomicU64,
    bytes: AtomicU64,
    files: AtomicU64,
    large: AtomicU64,
}

/// Visits everything below a folder, or one file in it.
pub(super) fn walk<V: Visit>(folder: Folder, file: Option<&str>, visit: &V, stop: &AtomicBool) -> Walked {
    let skip = folder.path.len();
    let walk = Walk {
        visit,
        stop,
        skip,
        queue: Mutex::default(),
        more: Condvar::new(),
        entries: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        files: AtomicU64::new(0),
        large: AtomicU64::new(0),
    };
    let mut local = visit.local();
    let folder = Arc::new(folder);
    match file {
        Some(file) => walk.files(&folder, &[file.to_owned()], &mut local),
        None => walk.list(&folder, &mut local),
    }
    drop(folder);
    let waiting = walk.queue.lock().unwrap_or_else(PoisonError::into_inner).tasks.len();
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX).min(waiting);
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| walk.work(&mut visit.local()));
        }
        walk.work(&mut local);
    });
    let [files, large] = [&walk.files, &walk.large].map(|count| count.load(Ordering::Relaxed));
    Walked { files, large, is_whole: !stop.load(Ordering::Relaxed) }
}

impl<V: Visit> Walk<'_, V> {
    fn work(&self, local: &mut V::Local) {
        while let Some(task) = self.next() {
            match task {
                // What cannot be opened, or is gone, is not there.
                Task::Folder { above, name } => {
                    if let Ok(folder) = above.below(&name) {
                        drop(above);
                        self.list(&Arc::new(folder), local);
                    }
                }
                Task::Files { folder, names } => self.files(&folder, &names, local),
            }
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.busy -= 1;
            if queue.busy == 0 || self.is_over() {
                self.more.notify_all();
            }
        }
    }

    fn next(&self) -> Option<Task> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.is_over() {
                return None;
            }
            if let Some(task) = queue.tasks.pop() {
                queue.busy += 1;
                return Some(task);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Lists a folder: its folders and most of its files are for any thread, the last files for this one.
    fn list(&self, folder: &Arc<Folder>, local: &mut V::Local) {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let Ok(entries) = Dir::read_from(&folder.handle) else { return };
        for entry in entries.flatten() {
            if self.entries.fetch_add(1, Ordering::Relaxed) >= ENTRIES_MAX {
                self.stop.store(true, Ordering::Relaxed);
            }
            if self.is_over() {
                return;
            }
            // Hidden ones are left out, as ripgrep does; what has no name that could be asked for as well.
            let Some(name) = entry.file_name().to_str().ok().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(folder.handle.as_fd(), entry.file_name()),
                kind => kind,
            };
            let path = || format!("{}{name}", folder.path);
            let is_left_out =
                |is_folder| folder.ignored.as_ref().is_some_and(|ignored| ignored.has(&path(), is_folder));
            match kind {
                FileType::Directory if folder.depth < DEPTH_MAX && !is_left_out(true) => {
                    folders.push(name.to_owned());
                }
                FileType::RegularFile
                    if !is_left_out(false) && self.visit.is_wanted(&path()[self.skip..]) =>
                {
                    files.push(name.to_owned());
                }
                _ => {}
            }
        }
        // The names first in order are found first.
        folders.sort_unstable_by(|one, other| other.cmp(one));
        files.sort_unstable();
        let rest = files.split_off(files.len().min(FILES_AT_ONCE));
        if !folders.is_empty() || !rest.is_empty() {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let folders = folders.into_iter();
            queue.tasks.extend(folders.map(|name| Task::Folder { above: Arc::clone(folder), name }));
            let parts = rest.chunks(FILES_AT_ONCE).rev();
            queue
                .tasks
                .extend(parts.map(|names| Task::Files { folder: Arc::clone(folder), names: names.to_vec() }));
            self.more.notify_all();
        }
        self.files(folder, &files, local);
    }

    fn files(&self, folder: &Folder, names: &[String], local: &mut V::Local) {
        let mut bytes = Vec::new();
        for name in names {
            if self.is_over() {
                return;
            }
            bytes.clear();
            if self.visit.reads() {
                let Some(file) = open_plain(folder.handle.as_fd(), name) else { continue };
                if file.bytes > FILE_BYTES_MAX {
                    self.large.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                if self.bytes.fetch_add(file.bytes, Ordering::Relaxed) > BYTES_MAX {
                    self.stop.store(true, Ordering::Relaxed);
                    return;
                }
                if read_into(&file, FILE_BYTES_MAX, &mut bytes).is_err() {
                    continue;
                }
            }
            self.files.fetch_add(1, Ordering::Relaxed);
            let path = format!("{}{name}", &folder.path[self.skip..]);
            if self.visit.visit(local, path, &bytes).is_break() {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// A plain file that is open.
pub(super) struct PlainFile {
    file: std::fs::File,
    bytes: u64,
}

/// Opens a plain file with one name. Neither a link is followed nor a pipe waited for.
pub(super) fn open_plain(folder: BorrowedFd<'_>, name: &str) -> Option<PlainFile> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let found = fstat(&file).ok()?;
    let is_plain = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_nlink == 1;
    let bytes = u64::try_from(found.st_size).ok()?;
    is_plain.then(|| PlainFile { file: file.into(), bytes })
}

/// Reads a file, up to a bound.
pub(super) fn read_into(file: &PlainFile, bytes_max: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let most = file.bytes.min(bytes_max);
    bytes.reserve(usize::try_from(most).unwrap_or_default() + 1);
    (&file.file).take(most).read_to_end(bytes).map(drop)
}

fn kind_of(folder: BorrowedFd<'_>, name: &CStr) -> FileType {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
}
