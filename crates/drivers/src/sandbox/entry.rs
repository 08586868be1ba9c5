//! Where the helper of a box begins: this program again, under another name, before it reads anything else.

use std::process::ExitCode;

use super::watch::watch;

/// The name under which a program is started as the helper of a box.
pub(super) const HELPER_NAME: &str = "spinney-box";

/// Makes a box, if this process was started for that. Then it is the guard of one command until that has ended, and the
/// caller must end with what this returns. To be called first in `main`, while there is one thread.
pub fn guard_a_box() -> Option<ExitCode> {
    let name = std::env::args_os().next()?;
    (name == HELPER_NAME).then(|| if watch().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
