//! What may enter the dependency graph, by `deny.toml`: licences, banned crates and sources. `cargo deny check` reads the
//! same file and knows more, such as advisories, but takes longer to build than everything else here.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

/// Where crates may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The part of `deny.toml` that is held here.
#[derive(Deserialize)]
pub struct DenyFile {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

/// What `cargo metadata` says.
#[derive(Deserialize)]
pub struct DependencyGraph {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Absent for our own.
    source: Option<String>,
}

impl DenyFile {
    /// # Errors
    /// If it cannot be read.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let path = root.join("deny.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(toml::from_str(&text)?)
    }

    /// Every crate that may not be there, with the reason.
    pub fn check(&self, graph: &DependencyGraph) -> Vec<String> {
        let foreign = graph.packages.iter().filter(|package| package.source.is_some());
        foreign.flat_map(|package| self.check_package(package)).collect()
    }

    fn check_package(&self, package: &Package) -> Vec<String> {
        let Package { name, version, license, source } = package;
        let mut found = Vec::new();
        if let Some(ban) = self.bans.deny.iter().find(|ban| ban.name == *name) {
            found.push(format!("{name} {version} is banned: {}", ban.reason));
        }
        if source.as_deref() != Some(REGISTRY) {
            found.push(format!("{name} {version} comes from {}", source.as_deref().unwrap_or_default()));
        }
        match license {
            None => found.push(format!("{name} {version} has no licence")),
            Some(license) if !self.allows(license) => {
                found.push(format!("{name} {version} has the licence {license}, which is not allowed"));
            }
            Some(_) => {}
        }
        found
    }

    fn allows(&self, license: &str) -> bool {
        let allowed = |requirement: &spdx::LicenseReq| self.licenses.allow.contains(&requirement.to_string());
        Expression::parse_mode(license, ParseMode::LAX).is_ok_and(|expression| expression.evaluate(allowed))
    }
}

impl DependencyGraph {
    /// What is built for this machine.
    ///
    /// # Errors
    /// If cargo fails.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let metadata = Command::new("cargo")
            .args(["metadata", "--format-version=1", "--locked", "--filter-platform", &target])
            .current_dir(root)
            .output()?;
        if !metadata.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&metadata.stderr));
        }
        Self::parse(&metadata.stdout)
    }

    /// # Errors
    /// If it is not what `cargo metadata` prints.
    pub fn parse(json: &[u8]) -> anyhow::Result<Self> {
        Ok(serde_json::from_slice(json)?)
    }

    /// How many crates of others there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.packages.iter().filter(|package| package.source.is_some()).count()
    }
}
