//! Servers of tools that come as packages: `npm` or `uv` fetches them once, in a box whose only host is their index, into a
//! cache, and they start from there without network. A package is hostile input: nothing of it runs while it is fetched,
//! unless the user allows its scripts (decision 0084).

mod boxed_installer;
mod cache;
mod installer;
mod npm;
mod package;
mod programs;
mod uv;

pub use self::cache::{InstalledProgram, PackageCache};
pub use self::installer::{InstallOrder, InstallOutcome, PackageInstaller};
pub use self::package::{Package, PackageCommand, PackageIndex};
pub use self::programs::{IndexUrls, InstallerPrograms};
