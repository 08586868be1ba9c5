//! Huge pages of memory, which the allocator asks for. The system clears each before its first use: two megabytes, which
//! takes longer than all the rest of a short command. A tree of many agents is faster with them.

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

/// Huge pages that this process has turned off.
pub(crate) struct HugePagesOff(());

impl HugePagesOff {
    /// Turns them off for this process; `None` if they are off already, or if that is not possible, which only costs time.
    pub(crate) fn new() -> Option<Self> {
        let are_on = matches!(transparent_huge_pages_are_disabled(), Ok(false));
        (are_on && disable_transparent_huge_pages(true).is_ok()).then_some(Self(()))
    }

    /// Turns them on again, also for programs that this process starts.
    pub(crate) fn end(self) {
        let Self(()) = self;
        // What could be turned off can be turned on.
        let _ = disable_transparent_huge_pages(false);
    }
}
