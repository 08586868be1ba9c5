//! Huge pages of memory, which the allocator asks for. The system clears each before its first use: two megabytes, which
//! takes longer than all the rest of a short command. A tree of many agents is faster with them.
#![expect(unsafe_code, reason = "what runs before the first allocation is named in a section of the program")]

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

/// Whether this process turned them off before `main`.
static ARE_OFF: AtomicBool = AtomicBool::new(false);

/// The start of a Rust program allocates, so `main` is too late.
#[used]
// SAFETY: the loader calls each entry of this section once, before `main`. The function makes two system calls; it needs
// neither the allocator nor anything that the standard library sets up.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = turn_off;

extern "C" fn turn_off() {
    ARE_OFF.store(HugePagesOff::new().is_some(), Ordering::Relaxed);
}

/// Turns them on again if this process turned them off before `main`. A program that is started inherits the setting.
pub(crate) fn restore() {
    if ARE_OFF.swap(false, Ordering::Relaxed) {
        HugePagesOff(()).end();
    }
}

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
