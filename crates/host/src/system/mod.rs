//! What this crate asks of the operating system beyond the standard library's portable part. Nothing outside names Unix.

pub(crate) mod files;
pub(crate) mod private_files;
pub(crate) mod processes;
pub(crate) mod remove_folder;
pub(crate) mod session;
pub(crate) mod socket_address;
