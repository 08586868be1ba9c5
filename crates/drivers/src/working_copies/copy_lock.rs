//! Who uses a copy now: tools of its agent, several at a time, or what makes it and takes it over, alone. The lock is the
//! kernel's, on a file beside the copy, so that it holds between processes and ends with them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::time::{sleep, timeout};

const LOCK: &str = "copy.lock";
/// Locks have no event to wait for.
const RETRY: Duration = Duration::from_millis(10);
/// How long a command that is being ended may take.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How a copy is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyUse {
    Shared,
    Alone,
}

/// The lock, until it is dropped.
#[derive(Debug)]
pub(crate) struct CopyLock(#[expect(dead_code, reason = "it is the lock while it is open")] File);

impl CopyLock {
    /// Waits for it.
    pub(super) async fn take(agent: &Path, wanted: CopyUse) -> io::Result<Self> {
        let mut options = File::options();
        let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed();
        let file = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = file.open(agent.join(LOCK))?;
        let operation = match wanted {
            CopyUse::Shared => FlockOperation::NonBlockingLockShared,
            CopyUse::Alone => FlockOperation::NonBlockingLockExclusive,
        };
        let taken = async {
            loop {
                match flock(&file, operation).map_err(io::Error::from) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(RETRY).await,
                    done => return done,
                }
            }
        };
        timeout(WAIT_MAX, taken).await.map_err(|_| io::Error::from(ErrorKind::TimedOut))??;
        Ok(Self(file))
    }
}
