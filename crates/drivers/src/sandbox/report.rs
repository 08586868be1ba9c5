//! What the processes of a box say to each other and to us: messages of one fixed size, which need no memory.

use std::io;
use std::os::fd::AsFd;

use super::step::BoxStep;

pub(super) const REPORT_BYTES: usize = 40;

/// Why a box was ended before its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The command ended on its own.
    Command,
    Timeout,
    Asked,
    Processes,
    Memory,
    Disk,
}

impl Reason {
    const ALL: [Self; 6] =
        [Self::Command, Self::Timeout, Self::Asked, Self::Processes, Self::Memory, Self::Disk];
}

/// The most that a box used at once, as far as samples saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoxUsage {
    pub processes: u64,
    pub memory_bytes: u64,
    /// Bytes that its folders grew by.
    pub disk_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoxReport {
    /// Everything is as it would be for a command.
    Ready,
    /// The command's process, which leads a group.
    Started {
        group: i32,
    },
    NotStarted {
        step: BoxStep,
        errno: i32,
    },
    /// How the command ended, as `wait` has it.
    Ended {
        status: i32,
        reason: Reason,
        usage: BoxUsage,
    },
}

impl BoxReport {
    pub(super) fn failed(step: BoxStep, error: &io::Error) -> Self {
        Self::NotStarted { step, errno: error.raw_os_error().unwrap_or(libc::EINVAL) }
    }

    /// Allocates nothing.
    pub(super) fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let (kind, first, second, usage) = match self {
            Self::Ready => (0, 0, 0, BoxUsage::default()),
            Self::NotStarted { step, errno } => (1, step.number(), errno, BoxUsage::default()),
            Self::Ended { status, reason, usage } => (2, reason as u32, status, usage),
            Self::Started { group } => (3, 0, group, BoxUsage::default()),
        };
        let mut bytes = [0; REPORT_BYTES];
        let fields = [
            (0, u64::from(first) << 32 | kind),
            (8, u64::from(second.cast_unsigned())),
            (16, usage.processes),
            (24, usage.memory_bytes),
            (32, usage.disk_bytes),
        ];
        for (at, field) in fields {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; REPORT_BYTES]) -> Option<Self> {
        let [head, second, processes, memory_bytes, disk_bytes] =
            std::array::from_fn(|at| bytes[8 * at..].first_chunk().copied().map_or(0, u64::from_le_bytes));
        let first = u32::try_from(head >> 32).ok()?;
        let second = u32::try_from(second).ok()?.cast_signed();
        match head & u64::from(u32::MAX) {
            0 => Some(Self::Ready),
            1 => Some(Self::NotStarted { step: BoxStep::from_number(first), errno: second }),
            2 => {
                let reason = *Reason::ALL.get(usize::try_from(first).ok()?)?;
                let usage = BoxUsage { processes, memory_bytes, disk_bytes };
                Some(Self::Ended { status: second, reason, usage })
            }
            3 => Some(Self::Started { group: second }),
            _ => None,
        }
    }

    /// Says it through a pipe or socket. Nothing can be done if the other side is gone.
    pub(super) fn say(self, to: impl AsFd) {
        let _ = rustix::io::write(to, &self.to_bytes());
    }
}
