//! Which files a box may touch, as rules of Landlock. What is not granted cannot be read, written, run or listed.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::calls::{RulesetAttributes, landlock_allow, landlock_restrict, landlock_ruleset};

/// The oldest version that restricts truncation.
pub(super) const ABI_MIN: u32 = 3;
/// The first version that keeps signals and abstract sockets inside.
pub(super) const ABI_WITH_SCOPES: u32 = 6;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const BIND_TCP: u64 = 1 << 0;
const CONNECT_TCP: u64 = 1 << 1;
const SCOPES: u64 = (1 << 0) | (1 << 1);

/// What makes sense for something that is not a folder.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// What may be done with a path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Read, list and run.
    Read,
    /// Read, list and run, write, make and remove.
    Write,
    /// Read and write a device.
    Device,
    /// Read and list, and run nothing.
    ReadData,
    /// Read, write and control terminals.
    Terminal,
}

impl Access {
    fn bits(self) -> u64 {
        let read = READ_FILE | READ_DIR;
        match self {
            Self::ReadData => read,
            Self::Read => read | EXECUTE,
            Self::Terminal => read | WRITE_FILE | TRUNCATE | IOCTL_DEV,
            Self::Device => READ_FILE | WRITE_FILE | TRUNCATE,
            Self::Write => {
                let make = MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM;
                read | EXECUTE | WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | REFER | make
            }
        }
    }
}

/// Whether TCP is refused by Landlock as well. A box with its own network may use it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tcp {
    Refused,
    InsideOnly,
}

/// Rules that wait to be applied.
pub(super) struct Ruleset {
    rules: OwnedFd,
    handled: u64,
}

impl Ruleset {
    /// Refuses everything that this version of Landlock knows.
    pub(super) fn new(abi: u32, tcp: Tcp) -> io::Result<Self> {
        let known = match abi {
            0..=2 => return Err(io::ErrorKind::Unsupported.into()),
            3 | 4 => IOCTL_DEV - 1,
            _ => (IOCTL_DEV << 1) - 1,
        };
        let network = if abi >= 4 && tcp == Tcp::Refused { BIND_TCP | CONNECT_TCP } else { 0 };
        let scoped = if abi >= ABI_WITH_SCOPES { SCOPES } else { 0 };
        let fields = match abi {
            3 => 1,
            4 | 5 => 2,
            _ => 3,
        };
        let rules = landlock_ruleset(RulesetAttributes { files: known, network, scoped }, fields)?;
        Ok(Self { rules, handled: known })
    }

    /// Grants a path that must exist. Links in it are followed: what is granted is where it leads now.
    pub(super) fn allow(&self, path: &Path, access: Access) -> io::Result<()> {
        self.allow_opened(&open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?, access)
    }

    /// Grants what is open.
    pub(super) fn allow_opened(&self, opened: &OwnedFd, access: Access) -> io::Result<()> {
        let kind = FileType::from_raw_mode(fstat(opened)?.st_mode);
        let possible = if kind == FileType::Directory { self.handled } else { self.handled & OF_FILES };
        landlock_allow(self.rules.as_fd(), opened.as_fd(), access.bits() & possible)
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.rules.as_fd()
    }

    /// Allocates nothing.
    pub(super) fn restrict(&self) -> io::Result<()> {
        landlock_restrict(self.as_fd())
    }
}
