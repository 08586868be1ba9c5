//! The files of a box with its own namespaces: an empty root with what was granted, a `/proc` of its own processes only,
//! and private temporary folders in memory. What was not granted is not there.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdir, mknodat, open};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Gid, Uid, chdir, pivot_root, umask};
use rustix::system::sethostname;

use super::calls::{restrict_mounts, start_loopback};
use super::confinement::BoxLimits;
use super::exact_path::open_exact;
use super::inside::{During as _, Failed, is_absent};
use super::landlock::Access;
use super::order::{BoxOrder, Grant, Presence, PrivateFile};
use super::step::BoxStep;

/// Empty folders that a box may write to, in memory.
pub(super) const PRIVATE_FOLDERS: [&str; 2] = ["/tmp", "/dev/shm"];
/// Where a program finds terminals.
pub(super) const TERMINALS: &str = "/dev/pts";
/// The part of a box's memory that each of them may take beside it.
const PRIVATE_PART: u64 = 4;

/// Where the new root is built; it covers this folder of the machine for the moment.
const BUILD: &str = "/tmp";
const OLD: &str = "/.old";
const HOST_NAME: &[u8] = b"box";

/// In a new user namespace: the user and group are themselves, and there are no others.
pub(super) fn map_user((user, group): (Uid, Gid)) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

/// Makes the new root and moves into it.
pub(super) fn enter(order: &BoxOrder) -> Result<(), Failed> {
    umask(Mode::WGRP | Mode::WOTH);
    let layers = layers(order)?;
    move_into_empty_root().during(BoxStep::Mounts)?;
    private_folders(order.memory_bytes_max).during(BoxStep::Mounts)?;
    if order.program.is_some() {
        private_terminals().during(BoxStep::Mounts)?;
    }
    private_processes().during(BoxStep::Processes)?;
    for (_, layer) in &layers {
        match layer {
            Layer::Shown(place) => place.show().during(BoxStep::Grant { index: place.index })?,
            Layer::Private(folder) => private_folder(folder, order).during(BoxStep::Mounts)?,
            Layer::Cover(cover) => cover.mount().during(BoxStep::HiddenPath)?,
        }
    }
    order.files.iter().try_for_each(write_file).during(BoxStep::Mounts)?;
    for (_, layer) in &layers {
        if let Layer::Cover(cover) = layer {
            cover.close().during(BoxStep::HiddenPath)?;
        }
    }
    leave_old_root().during(BoxStep::Mounts)?;
    let udp = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    start_loopback(udp.during(BoxStep::Loopback)?).during(BoxStep::Loopback)?;
    sethostname(HOST_NAME).during(BoxStep::Mounts)
}

/// Something that is mounted, by its path.
enum Layer {
    Shown(BindMount),
    Private(PathBuf),
    Cover(Cover),
}

/// Everything, in its order: what is in a folder comes after it, and so is on top.
fn layers(order: &BoxOrder) -> Result<Vec<(PathBuf, Layer)>, Failed> {
    let places = places(order)?;
    let covers = covers(order)?;
    let kept: Vec<&Path> = places
        .iter()
        .map(|place| place.path.as_path())
        .chain(covers.iter().map(|cover| cover.path.as_path()))
        .collect();
    let pinned = pinned(order, &kept);
    let mut layers: Vec<(PathBuf, Layer)> = Vec::new();
    layers.extend(order.private.iter().map(|path| (path.clone(), Layer::Private(path.clone()))));
    layers.extend(places.into_iter().map(|place| (place.path.clone(), Layer::Shown(place))));
    layers.extend(covers.into_iter().chain(pinned).map(|cover| (cover.path.clone(), Layer::Cover(cover))));
    // What covers a path that is granted itself comes after it.
    layers.sort_by_key(|(path, _)| path.components().count());
    Ok(layers)
}

/// A path of the machine, and where it will be inside.
struct BindMount {
    index: u32,
    path: PathBuf,
    source: PathBuf,
    /// What is mounted, if it is known by more than its path.
    opened: Option<OwnedFd>,
    shown: Shown,
}

enum Shown {
    Mounted {
        is_folder: bool,
        attributes: u64,
    },
    /// As `/bin` on most machines.
    Link(PathBuf),
}

fn places(order: &BoxOrder) -> Result<Vec<BindMount>, Failed> {
    let mut places = Vec::new();
    for (grant, index) in order.grants.iter().zip(0..) {
        match BindMount::new(grant, index) {
            Err(error) if grant.presence == Presence::IfThere && is_absent(&error) => {}
            place => places.push(place.during(BoxStep::Grant { index })?),
        }
    }
    Ok(places)
}

impl BindMount {
    fn new(grant: &Grant, index: u32) -> io::Result<Self> {
        let (path, source) = (grant.inside().to_owned(), grant.path.clone());
        if grant.presence == Presence::IfThere && fs::symlink_metadata(&source)?.is_symlink() {
            let shown = Shown::Link(fs::read_link(&source)?);
            return Ok(Self { index, path, source, opened: None, shown });
        }
        let opened = (grant.presence == Presence::Exact).then(|| open_exact(&source)).transpose()?;
        let is_folder = match &opened {
            Some(opened) => FileType::from_raw_mode(fstat(opened)?.st_mode) == FileType::Directory,
            None => fs::metadata(&source)?.is_dir(),
        };
        let attributes = match grant.access {
            Access::Read | Access::ReadData => {
                libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV
            }
            Access::Write => libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
            // Devices are written anyway; their modes are the machine's.
            Access::Device | Access::Terminal => {
                libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC
            }
        };
        Ok(Self { index, path, source, opened, shown: Shown::Mounted { is_folder, attributes } })
    }

    fn show(&self) -> io::Result<()> {
        match &self.shown {
            Shown::Link(target) => {
                self.path.parent().map_or(Ok(()), make_folder)?;
                match symlink(target, &self.path) {
                    // It is in a folder that is there already.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                    linked => linked,
                }
            }
            Shown::Mounted { is_folder, attributes } => {
                if *is_folder {
                    make_folder(&self.path)?;
                } else {
                    make_file(&self.path)?;
                }
                let source = match &self.opened {
                    Some(opened) => PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())),
                    None => below_old(&self.source),
                };
                mount_bind_recursive(source, &self.path)?;
                restrict_mounts(&text(&self.path)?, *attributes)
            }
        }
    }
}

/// A path in what was granted that must not be seen, changed or moved.
struct Cover {
    path: PathBuf,
    kind: CoverKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CoverKind {
    HiddenFolder,
    HiddenFile,
    ReadOnly,
    /// It may be changed and not be renamed: something that is kept is below it.
    Pinned,
}

fn covers(order: &BoxOrder) -> Result<Vec<Cover>, Failed> {
    let mut covers = Vec::new();
    for path in &order.hidden {
        match fs::canonicalize(path) {
            // There is nothing to hide.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => {
                let path = found.during(BoxStep::HiddenPath)?;
                let is_folder = fs::metadata(&path).during(BoxStep::HiddenPath)?.is_dir();
                let kind = if is_folder { CoverKind::HiddenFolder } else { CoverKind::HiddenFile };
                covers.push(Cover { path, kind });
            }
        }
    }
    for path in &order.read_only {
        let path = fs::canonicalize(path).during(BoxStep::HiddenPath)?;
        covers.push(Cover { path, kind: CoverKind::ReadOnly });
    }
    Ok(covers)
}

/// The folders between what a box may write and what is kept in it. Without a mount they could be renamed, and others made
/// in their place.
fn pinned(order: &BoxOrder, kept: &[&Path]) -> Vec<Cover> {
    let writable: Vec<&Path> =
        order.grants.iter().filter(|grant| grant.access == Access::Write).map(Grant::inside).collect();
    let mut between: BTreeSet<&Path> = BTreeSet::new();
    for path in kept {
        let above = path.ancestors().skip(1);
        between.extend(
            above.filter(|above| writable.iter().any(|folder| above.starts_with(folder) && above != folder)),
        );
    }
    between.retain(|path| !kept.contains(path));
    between.into_iter().map(|path| Cover { path: path.to_owned(), kind: CoverKind::Pinned }).collect()
}

impl Cover {
    fn mount(&self) -> io::Result<()> {
        let path = &self.path;
        // It is in nothing that was granted.
        if fs::symlink_metadata(path).is_err() {
            return Ok(());
        }
        match self.kind {
            CoverKind::Pinned => Ok(mount_bind_recursive(path, path)?),
            CoverKind::ReadOnly => {
                mount_bind_recursive(path, path)?;
                restrict_mounts(&text(path)?, libc::MOUNT_ATTR_RDONLY)
            }
            // The way to what is granted below it is made in here.
            CoverKind::HiddenFolder => memory_folder(path, "mode=0755,size=64k,nr_inodes=64"),
            CoverKind::HiddenFile => {
                mount_bind_recursive(below_old(Path::new("/dev/null")), path)?;
                restrict_mounts(&text(path)?, libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV)
            }
        }
    }

    /// After everything is mounted: a hidden folder takes nothing more.
    fn close(&self) -> io::Result<()> {
        let is_there = self.kind == CoverKind::HiddenFolder && fs::symlink_metadata(&self.path).is_ok();
        if !is_there {
            return Ok(());
        }
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        Ok(mount_remount(&self.path, flags, c"")?)
    }
}

/// From here on the files of the machine are below [`OLD`].
fn move_into_empty_root() -> io::Result<()> {
    // Nothing that is mounted in here is seen outside.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    memory_folder(Path::new(BUILD), "mode=0755,size=4m")?;
    let old = Path::new(BUILD).join(OLD.trim_start_matches('/'));
    fs::create_dir(&old)?;
    pivot_root(BUILD, &old)?;
    Ok(chdir("/")?)
}

fn leave_old_root() -> io::Result<()> {
    unmount(OLD, UnmountFlags::DETACH)?;
    fs::remove_dir(OLD)?;
    mount_remount("/", MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV, c"")?;
    Ok(())
}

fn private_folders(memory_bytes_max: u64) -> io::Result<()> {
    for folder in PRIVATE_FOLDERS {
        make_folder(Path::new(folder))?;
        memory_folder(Path::new(folder), &format!("mode=1777{}", private_size(memory_bytes_max)))?;
    }
    for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        symlink(format!("/proc/self/fd{target}"), Path::new("/dev").join(name))?;
    }
    Ok(())
}

/// Without a limit the kernel's own applies: half of the machine's memory.
fn private_size(memory_bytes_max: u64) -> String {
    match memory_bytes_max {
        BoxLimits::UNLIMITED => String::new(),
        most => format!(",size={}", most / PRIVATE_PART),
    }
}

fn private_folder(path: &Path, order: &BoxOrder) -> io::Result<()> {
    make_folder(path)?;
    memory_folder(path, &format!("mode=0700{}", private_size(order.memory_bytes_max)))
}

fn write_file(file: &PrivateFile) -> io::Result<()> {
    file.path.parent().map_or(Ok(()), make_folder)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::File::from(open(&file.path, flags, Mode::RUSR | Mode::WUSR)?).write_all(&file.bytes)
}

/// Terminals that are made in the box.
fn private_terminals() -> io::Result<()> {
    make_folder(Path::new(TERMINALS))?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", TERMINALS, "devpts", flags, Some(c"newinstance,ptmxmode=0666,mode=0620"))?;
    symlink("pts/ptmx", "/dev/ptmx")
}

/// While the machine's `/proc` can be seen: the kernel allows another one only then.
fn private_processes() -> io::Result<()> {
    make_folder(Path::new("/proc"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    restrict_mounts(c"/proc", libc::MOUNT_ATTR_RDONLY)
}

fn memory_folder(path: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount("tmpfs", path, "tmpfs", flags, Some(options.as_c_str()))?)
}

/// An empty folder, and those above it. Tried without them first: most are there.
fn make_folder(path: &Path) -> io::Result<()> {
    make_in_folder(path, || mkdir(path, Mode::from_raw_mode(0o755)))
}

/// An empty file, and the folders above it.
fn make_file(path: &Path) -> io::Result<()> {
    make_in_folder(path, || mknodat(CWD, path, FileType::RegularFile, Mode::from_raw_mode(0o644), 0))
}

fn make_in_folder(path: &Path, make: impl Fn() -> Result<(), Errno>) -> io::Result<()> {
    match make() {
        Err(Errno::NOENT) => {
            path.parent().map_or(Ok(()), make_folder)?;
            Ok(make()?)
        }
        // It may be a link that leads to one, as the mount on it will tell.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn below_old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
