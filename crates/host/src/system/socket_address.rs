//! The socket's address. A home's path may be longer than a socket's address; then it is named through the open
//! folder.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use spinney_store::layout::SOCKET;

/// Longest path that fits a socket's address on every known system, with its trailing zero.
const ADDRESS_BYTES_MAX: usize = 100;

/// Where a home's socket is. The address is valid while this lives.
pub struct SocketAddress {
    path: PathBuf,
    _folder: Option<File>,
}

impl SocketAddress {
    /// Where a home's socket is, or would be.
    pub fn for_home(home: &Path) -> io::Result<Self> {
        let path = home.join(SOCKET);
        if path.as_os_str().as_bytes().len() <= ADDRESS_BYTES_MAX {
            return Ok(Self { path, _folder: None });
        }
        let folder = File::open(home)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()));
        Ok(Self { path, _folder: Some(folder) })
    }

    /// Fails unless it is a socket, and not a link to one.
    pub fn check(&self) -> io::Result<()> {
        if self.path.symlink_metadata()?.file_type().is_socket() {
            return Ok(());
        }
        let why = format!("{} is not a socket: move it away, or choose another home", self.path.display());
        Err(io::Error::new(ErrorKind::InvalidInput, why))
    }

    /// The path to connect to.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
