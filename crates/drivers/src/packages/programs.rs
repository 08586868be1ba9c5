//! The programs that fetch and run packages, as the user has them, and the indexes that the user set.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use reqwest::Url;
use spinney_kernel::definition::Network;
use spinney_kernel::primitives::HostRule;

/// The user's programs, each as it is found in `PATH`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallerPrograms {
    pub npm: Option<PathBuf>,
    pub node: Option<PathBuf>,
    pub uv: Option<PathBuf>,
    pub python: Option<PathBuf>,
}

impl InstallerPrograms {
    /// Looks for them in these folders, separated as in `PATH`. Python is that of the system, if there is one: others may
    /// be scripts that choose one by the folder.
    #[must_use]
    pub fn find(path: &OsStr) -> Self {
        let find = |name: &str| {
            let places = std::env::split_paths(path).filter(|folder| folder.is_absolute());
            places.map(|folder| folder.join(name)).find_map(|place| {
                let place = place.canonicalize().ok()?;
                place.is_file().then_some(place)
            })
        };
        let of_system = |name: &str| Path::new("/usr/bin").join(name).canonicalize().ok();
        Self {
            npm: find("npm"),
            node: find("node"),
            uv: find("uv"),
            python: of_system("python3").or_else(|| find("python3")),
        }
    }
}

/// Where the indexes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexUrls {
    pub npm: String,
    pub pypi: String,
}

impl Default for IndexUrls {
    fn default() -> Self {
        Self { npm: "https://registry.npmjs.org/".to_owned(), pypi: PYPI.to_owned() }
    }
}

const PYPI: &str = "https://pypi.org/simple";
/// Where that index has the files.
const PYPI_FILES: &str = "files.pythonhosted.org:443";

/// The hosts of an index.
///
/// # Errors
/// If its address is none that we connect to.
pub(super) fn hosts(url: &str) -> Result<Network, String> {
    let unusable = || "the address of the package index is not one that can be used".to_owned();
    let parsed = Url::parse(url).map_err(|_| unusable())?;
    if !matches!(parsed.scheme(), "http" | "https")
        || !parsed.username().is_empty()
        || parsed.password().is_some()
    {
        return Err(unusable());
    }
    let host = parsed.host_str().ok_or_else(unusable)?.parse().map_err(|_| unusable())?;
    let port = parsed.port_or_known_default().ok_or_else(unusable)?;
    let files: Option<HostRule> = (url == PYPI).then(|| PYPI_FILES.parse().ok()).flatten();
    Ok(Network::hosts([HostRule::one(host, port)].into_iter().chain(files)))
}

/// What a box needs to read for a program, beyond what it can read anyway: the installation around it.
pub(super) fn reads(program: &Path) -> Vec<PathBuf> {
    let is_of_system =
        ["/usr", "/bin", "/sbin", "/lib", "/lib64"].iter().any(|folder| program.starts_with(folder));
    if is_of_system {
        return Vec::new();
    }
    // An installation has `bin` and `lib` side by side; a single program has nothing around it.
    let around =
        program.ancestors().skip(1).find(|folder| folder.join("bin").is_dir() && folder.join("lib").is_dir());
    // Not a whole home, and not the whole machine.
    let parts_min = if program.starts_with("/opt") { 3 } else { 4 };
    let is_narrow = |folder: &&Path| folder.components().count() >= parts_min;
    vec![around.filter(is_narrow).unwrap_or(program).to_owned()]
}
