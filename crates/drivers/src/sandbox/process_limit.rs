//! Who keeps the processes of a program within their limit. A guard that is asked about each one can be too late for a
//! program that has signal handlers: a signal that comes before the question is read makes the call fail. So the kernel
//! limits them wherever it can.

use std::fs;
use std::io;

use rustix::process::{Uid, geteuid};
use rustix::system::uname;

/// The first kernel in which each namespace has a highest process number of its own.
const OWN_NUMBERS_SINCE: (u32, u32) = (6, 14);
const HIGHEST_NUMBER: &str = "/proc/sys/kernel/pid_max";
/// Numbers that the kernel gives once and not again.
const RESERVED_NUMBERS: u64 = 300;
/// The kernel has no higher ones.
const NUMBERS_MAX: u64 = 1 << 22;

/// Who limits the processes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessLimit {
    Kernel,
    Guard,
}

impl ProcessLimit {
    /// By this user, on this machine. A limit of the user's processes never counts those of root.
    pub(super) fn here() -> Self {
        let has_own_numbers = || version(&uname().release().to_string_lossy()) >= Some(OWN_NUMBERS_SINCE);
        if !geteuid().is_root() || has_own_numbers() { Self::Kernel } else { Self::Guard }
    }

    /// Sets the highest process number of this namespace, so that no more processes and threads fit, where nothing else
    /// limits them.
    pub(super) fn set(self, user: Uid, most: u64) -> io::Result<()> {
        if self == Self::Guard || !user.is_root() {
            return Ok(());
        }
        fs::write(HIGHEST_NUMBER, most.saturating_add(RESERVED_NUMBERS).min(NUMBERS_MAX).to_string())
    }
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-generic"), Some((6, 18)));
        assert_eq!(version("6.14-rc1"), Some((6, 14)));
        assert!(version("6.9.1") < Some(OWN_NUMBERS_SINCE) && version("7.0") > Some(OWN_NUMBERS_SINCE));
        assert_eq!(version("unknown"), None);
    }
}
