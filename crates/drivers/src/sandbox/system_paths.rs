//! What every box may read of the system: programs, libraries, and what these need to run. Nothing in here belongs to a
//! person, and `/proc`, `/sys`, `/run`, `/var` and the rest of `/etc` are not in it.

use std::ffi::OsString;
use std::path::Path;

use super::landlock::Access;
use super::order::{Grant, Presence};

/// Where programs are looked for.
pub(super) const SEARCH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

const PROGRAMS: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

const SETTINGS: [&str; 20] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The terminal of whoever opens it.
const TERMINAL: &str = "/dev/tty";

/// Facts about the machine that many programs ask for. In namespaces the private `/proc` has them.
const FACTS: [&str; 4] = ["/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/filesystems"];

pub(super) fn search() -> Vec<OsString> {
    SEARCH.map(OsString::from).to_vec()
}

pub(super) fn grants() -> impl Iterator<Item = Grant> {
    let granted = |paths: &'static [&'static str], access| paths.iter().map(move |path| grant(path, access));
    granted(&PROGRAMS, Access::Read)
        .chain(granted(&SETTINGS, Access::ReadData))
        .chain(granted(&DEVICES, Access::Device))
}

/// What a program with a terminal finds beside that.
pub(super) fn terminal() -> Grant {
    grant(TERMINAL, Access::Terminal)
}

/// Those of `/proc`, for boxes that have none of their own.
pub(super) fn facts() -> impl Iterator<Item = Grant> {
    FACTS.into_iter().map(|path| grant(path, Access::ReadData))
}

fn grant(path: &str, access: Access) -> Grant {
    Grant::new(Path::new(path).to_owned(), access, Presence::IfThere)
}
