//! Where the helper of a box begins: this program again, under another name, before it reads anything else.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fork_server::serve;

/// The name under which a program is started as the helper of a box.
pub const HELPER_NAME: &str = "spinney-box";

/// Whether this program has been asked what it was started for, so that starting it again makes a guard.
static CAN_GUARD: AtomicBool = AtomicBool::new(false);

/// Whether this program can be the helper of its own boxes: its `main` has called [`guard_a_box`].
#[must_use]
pub fn can_guard_boxes() -> bool {
    CAN_GUARD.load(Ordering::Acquire)
}

/// Makes boxes, if this process was started for that, until it is not needed any more. Then the caller must end with what
/// this returns. To be called first in `main`, while there is one thread.
pub fn guard_a_box() -> Option<ExitCode> {
    CAN_GUARD.store(true, Ordering::Release);
    let name = std::env::args_os().next()?;
    (name == HELPER_NAME).then(|| if serve().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
