//! Counts allocated bytes, to measure memory per agent. Times are measured without it, because threads would contend
//! for the counter.
#![expect(unsafe_code, reason = "an allocator that counts can only be written so")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mimalloc::MiMalloc;

struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call is passed to the binary's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        changed(layout.size(), 0);
        // SAFETY: as the caller promised us.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        changed(layout.size(), 0);
        // SAFETY: as the caller promised us.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        changed(size, layout.size());
        // SAFETY: as the caller promised us.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        changed(0, layout.size());
        // SAFETY: as the caller promised us.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}

fn changed(taken: usize, freed: usize) {
    if ON.load(Ordering::Relaxed) {
        LIVE.fetch_add(taken.wrapping_sub(freed), Ordering::Relaxed);
    }
}

/// Starts counting.
pub(crate) fn count() {
    ON.store(true, Ordering::Relaxed);
}

/// Bytes allocated since counting began, less those freed. Earlier allocations may be freed too, so only the difference
/// of two values, computed with `wrapping_sub`, is meaningful.
pub(crate) fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}
