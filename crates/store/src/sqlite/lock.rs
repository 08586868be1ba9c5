//! One writer per home: a file that the operating system locks while the process lives.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom};

use super::OpenHomeError;
use super::fault::from_io;
use super::home_folder::HomeFolder;
use crate::layout::LOCK;
use crate::system;

/// Held until it is dropped or the process dies.
pub(super) struct Lock(#[expect(dead_code, reason = "it is held, not used")] File);

impl Lock {
    /// Takes the lock and records the process id.
    pub(super) fn take(folder: &HomeFolder) -> Result<Self, OpenHomeError> {
        let path = folder.path().join(LOCK);
        let mut file = folder.open_lock()?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenHomeError::Locked { pid: holder(&mut file) }),
            Err(TryLockError::Error(error)) => return Err(from_io(&path, &error)),
        }
        sign(&file).map_err(|error| from_io(&path, &error))?;
        Ok(Self(file))
    }
}

/// Writes the process id for other processes. Overwrites in place, so it needs no space on a full disk.
fn sign(file: &File) -> std::io::Result<()> {
    let text = format!("{}\n", std::process::id());
    system::overwrite(file, text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// The recorded process id; 0 if there is none.
fn holder(file: &mut File) -> u32 {
    let mut text = String::new();
    match file.seek(SeekFrom::Start(0)).and_then(|_| file.take(32).read_to_string(&mut text)) {
        Ok(_) => text.trim().parse().unwrap_or(0),
        Err(_) => 0,
    }
}
