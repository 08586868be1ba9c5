//! What this machine can enforce.

use std::io;
use std::path::Path;

use super::calls::{landlock_abi, seccomp_is_there};
use super::step::BoxStep;

/// What the kernel offers for boxes, as it was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineSupport {
    pub landlock: LandlockSupport,
    pub seccomp: SeccompSupport,
    pub namespaces: NamespaceSupport,
    pub process_lists: ProcessListSupport,
}

/// Landlock: which files a process may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandlockSupport {
    /// The version of its interface.
    Abi(u32),
    /// The kernel was built without it, or is older than 5.13.
    NotBuilt,
    /// The kernel has it and was started without it: `landlock` must be among `lsm=`.
    Disabled,
    Failed {
        errno: i32,
    },
}

/// Filters of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeccompSupport {
    Works,
    Failed { errno: i32 },
}

/// User, process, network, mount, IPC and host name namespaces together, with a private `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceSupport {
    Work,
    /// As on systems that restrict them for ordinary users, and in most containers.
    Failed {
        step: BoxStep,
        errno: i32,
    },
}

/// The list of a process' children in `/proc`, without which a box cannot be bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessListSupport {
    Works,
    Missing,
}

impl MachineSupport {
    /// Everything that is known without starting a process.
    pub(super) fn without_namespaces(namespaces: NamespaceSupport) -> Self {
        let landlock = match landlock_abi() {
            Ok(abi) => LandlockSupport::Abi(abi),
            Err(error) => match errno(&error) {
                libc::ENOSYS => LandlockSupport::NotBuilt,
                libc::EOPNOTSUPP => LandlockSupport::Disabled,
                errno => LandlockSupport::Failed { errno },
            },
        };
        let seccomp = match seccomp_is_there() {
            Ok(()) => SeccompSupport::Works,
            Err(error) => SeccompSupport::Failed { errno: errno(&error) },
        };
        let lists = Path::new("/proc/thread-self/children").exists();
        let process_lists = if lists { ProcessListSupport::Works } else { ProcessListSupport::Missing };
        Self { landlock, seccomp, namespaces, process_lists }
    }

    /// The version of Landlock; 0 if there is none.
    #[must_use]
    pub fn landlock_abi(&self) -> u32 {
        match self.landlock {
            LandlockSupport::Abi(abi) => abi,
            _ => 0,
        }
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EINVAL)
}
