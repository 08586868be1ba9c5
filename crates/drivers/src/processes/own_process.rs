//! What this process sets and listens to for itself before it starts programs.

use std::{fs, io};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::signal::unix::{self, SignalKind};

/// Keys may be in our environment and our memory. From now on no program can read either, although it runs as the same user.
pub fn hide_from_programs() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Listens to a signal, unless we were started with it ignored, as by `nohup`: then it stays so, for programs as well.
pub fn listen_unless_ignored(kind: SignalKind) -> io::Result<Option<unix::Signal>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_ignored = (ignored >> (kind.as_raw_value() - 1)) & 1 == 1;
    if is_ignored { Ok(None) } else { unix::signal(kind).map(Some) }
}
