//! One writer per home: a file that the operating system locks for as long as the process lives.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use spinney_kernel::port::journal::JournalFault;

use super::fault::from_io;

const FILE: &str = "lock";

/// Held as long as it lives, and no longer: a process that dies lets go.
pub(super) struct Lock(#[expect(dead_code, reason = "it is held, not used")] File);

impl Lock {
    /// Takes the lock and writes down who has it.
    pub(super) fn take(home: &Path) -> Result<Self, JournalFault> {
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).to_owned();
        let path = home.join(FILE);
        let mut file = options.open(&path).map_err(|error| from_io(&path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalFault::Locked { pid: holder(&mut file) }),
            Err(TryLockError::Error(error)) => return Err(from_io(&path, &error)),
        }
        sign(&mut file).map_err(|error| from_io(&path, &error))?;
        Ok(Self(file))
    }
}

/// Writes down who has the lock, for whoever is refused.
fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

/// Who wrote itself down; 0 if nobody did.
fn holder(file: &mut File) -> u32 {
    let mut text = String::new();
    match file.take(32).read_to_string(&mut text) {
        Ok(_) => text.trim().parse().unwrap_or(0),
        Err(_) => 0,
    }
}
