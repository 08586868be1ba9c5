//! The time of a guard: a timer that wakes it, and that counts while it is busy.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// How often a guard looks whether a box may have grown.
pub(super) const TICK_MS: u64 = 2;

/// Counts the ticks since it was started.
pub(super) struct Ticks {
    timer: OwnedFd,
    passed: Cell<u64>,
}

impl Ticks {
    /// One that is not started.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Monotonic, flags)?, passed: Cell::new(0) })
    }

    pub(super) fn start(&self) -> io::Result<()> {
        let tick = Timespec { tv_sec: 0, tv_nsec: (TICK_MS * 1_000_000).cast_signed() };
        let each = Itimerspec { it_interval: tick, it_value: tick };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &each)?;
        Ok(())
    }

    /// How many have passed.
    pub(super) fn now(&self) -> u64 {
        let mut count = [0; 8];
        let more = rustix::io::read(&self.timer, &mut count).map_or(0, |_| u64::from_ne_bytes(count));
        self.passed.set(self.passed.get().saturating_add(more));
        self.passed.get()
    }
}

/// Readable from the next tick on.
impl AsFd for Ticks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
