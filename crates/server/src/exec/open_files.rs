//! How many files a process with a gateway may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The open files of a gateway with 2,048 connections, each with one to the provider and two that lead out of a box, and of
/// everything else here.
const OPEN_FILES: u64 = 4 * 2_048 + 256;

/// Each call takes two connections, and the usual limit of open files is 1,024. If it cannot be raised, more calls wait.
/// Returns the limit as it was, for the program.
#[must_use]
pub fn allow_many_connections() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if current.is_some_and(|current| current < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
    current
}
