//! One package's `Cargo.toml`: its name and the packages that it depends on, whatever it calls them.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::{TextFile, Unreadable, line_at};

/// The part of a package's manifest that concerns other packages.
pub struct Manifest {
    /// Where it is.
    pub path: String,
    /// The folder that it is in: `crates/kernel`.
    pub folder: String,
    /// The package's name: `spinney-kernel`.
    pub package: String,
    /// What it depends on, in all sections and for all targets.
    pub dependencies: Vec<Dependency>,
}

/// One line of a dependency section.
pub struct Dependency {
    /// The package's real name, even where the line renames it.
    pub package: String,
    /// Which section the line is in.
    pub kind: DependencyKind,
    /// Where in the manifest.
    pub line: usize,
}

/// The sections, told apart as far as layers care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// `dependencies` and `build-dependencies`: needed to build the package.
    Normal,
    /// The same, but only with a feature of the package.
    Optional,
    /// `dev-dependencies`: needed by its tests only.
    Dev,
}

/// What the root's table calls a package, and the package's real name, where they differ.
pub(super) type Renames = BTreeMap<String, String>;

const SECTIONS: [(&str, DependencyKind); 3] = [
    ("dependencies", DependencyKind::Normal),
    ("build-dependencies", DependencyKind::Normal),
    ("dev-dependencies", DependencyKind::Dev),
];

impl Manifest {
    pub(super) fn parse(file: &TextFile, renames: &Renames) -> Result<Self, Unreadable> {
        let unreadable = |line, why: &str| Unreadable { path: file.path.clone(), line, why: why.to_owned() };
        let document = DeTable::parse(&file.text).map_err(|error| {
            unreadable(line_at(&file.text, error.span().map_or(0, |span| span.start)), error.message())
        })?;
        let root = document.get_ref();
        let package = table(root, "package").and_then(|package| package.get("name")?.get_ref().as_str());
        let package = package.ok_or_else(|| unreadable(1, "the manifest names no package"))?;

        let targets = table(root, "target").into_iter().flat_map(DeTable::values);
        let targets = targets.filter_map(|target| target.get_ref().as_table());
        let mut dependencies = Vec::new();
        for holder in std::iter::once(root).chain(targets) {
            for (section, kind) in SECTIONS {
                for (key, value) in table(holder, section).into_iter().flatten() {
                    let package = real_name(key.get_ref(), value.get_ref(), renames);
                    let line = line_at(&file.text, key.span().start);
                    let is_optional = kind == DependencyKind::Normal && is_optional(value.get_ref());
                    let kind = if is_optional { DependencyKind::Optional } else { kind };
                    dependencies.push(Dependency { package, kind, line });
                }
            }
        }
        let folder = file.path.trim_end_matches("/Cargo.toml").to_owned();
        Ok(Self { path: file.path.clone(), folder, package: package.to_owned(), dependencies })
    }
}

/// The renames in the root's dependency table. Cargo itself complains about a root that does not parse.
pub(super) fn renames(root: &str) -> Renames {
    let Ok(document) = DeTable::parse(root) else { return Renames::new() };
    let shared =
        table(document.get_ref(), "workspace").and_then(|workspace| table(workspace, "dependencies"));
    let lines = shared.into_iter().flatten();
    lines
        .filter_map(|(key, value)| {
            let package = value.get_ref().get("package")?.get_ref().as_str()?;
            Some((key.get_ref().to_string(), package.to_owned()))
        })
        .collect()
}

fn real_name(key: &str, value: &DeValue<'_>, renames: &Renames) -> String {
    let own = value.get("package").and_then(|package| package.get_ref().as_str());
    let shared = value.get("workspace").and_then(|_| renames.get(key).map(String::as_str));
    own.or(shared).unwrap_or(key).to_owned()
}

fn is_optional(value: &DeValue<'_>) -> bool {
    value.get("optional").and_then(|optional| optional.get_ref().as_bool()).unwrap_or_default()
}

fn table<'t, 'i>(holder: &'t DeTable<'i>, key: &str) -> Option<&'t DeTable<'i>> {
    holder.get(key)?.get_ref().as_table()
}
