//! The workspace as text: every file that the rules look at, read and parsed once.
//!
//! This module knows how to read, not what is tidy. Paths are relative to the root, with `/` between parts.

mod import;
mod manifest;
mod scan;
mod source;

use std::fs;
use std::path::Path;

use anyhow::Context;

pub use import::{Import, imports};
pub use manifest::{Dependency, DependencyKind, Manifest};
pub use scan::{Mention, Scan, Spot};
pub use source::Source;

/// Everything that tidy reads.
pub struct Workspace {
    /// All files, of every kind, in the order of their paths.
    pub files: Vec<TextFile>,
    /// The Rust files of `crates/` and `xtask/`.
    pub sources: Vec<Source>,
    /// The manifests of all packages, without the root's.
    pub manifests: Vec<Manifest>,
    /// Files that could not be parsed. They are in `files`, but in none of the other lists.
    pub unreadable: Vec<Unreadable>,
}

/// One file as it lies on disk.
pub struct TextFile {
    /// Where it is.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// A file that its parser refused.
pub struct Unreadable {
    /// Where it is.
    pub path: String,
    /// The line at which the parser gave up.
    pub line: usize,
    /// The parser's own words.
    pub why: String,
}

impl Workspace {
    /// Reads the folder `root` and everything below it, except build output and hidden folders.
    ///
    /// # Errors
    /// Fails if `root` is not a workspace, or if a folder or file cannot be read.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        anyhow::ensure!(root.join("Cargo.toml").is_file(), "{} holds no Cargo.toml", root.display());
        let mut files = Vec::new();
        read_folder(root, "", &mut files)?;
        Ok(Self::from_files(files))
    }

    /// The workspace that these files would make: for tests, which have no disk.
    pub fn from_files(mut files: Vec<TextFile>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let root = files.iter().find(|file| file.path == "Cargo.toml");
        let renames = root.map(|file| manifest::renames(&file.text)).unwrap_or_default();
        let (mut sources, mut manifests, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        for file in files.iter().filter(|file| is_in_a_package(&file.path)) {
            if file.path.ends_with(".rs") {
                Source::parse(file).map_or_else(|why| unreadable.push(why), |source| sources.push(source));
            } else if file.path.ends_with("/Cargo.toml") {
                let parsed = Manifest::parse(file, &renames);
                parsed.map_or_else(|why| unreadable.push(why), |manifest| manifests.push(manifest));
            }
        }
        Self { files, sources, manifests, unreadable }
    }
}

/// The line, counted from 1, that holds the byte at `offset`.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

fn is_in_a_package(path: &str) -> bool {
    path.starts_with("crates/") || path.starts_with("xtask/")
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<TextFile>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && is_read_folder(&name) {
            read_folder(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_read_file(&path) {
            let text = fs::read_to_string(entry.path())
                .with_context(|| format!("cannot read {}", entry.path().display()))?;
            files.push(TextFile { path, text });
        }
    }
    Ok(())
}

/// Hidden folders are other programs' business, except the two that say how we build.
fn is_read_folder(name: &str) -> bool {
    matches!(name, ".ci" | ".config") || !(name.starts_with('.') || name == "target")
}

fn is_read_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    path.starts_with(".ci/")
        || name == "Makefile"
        || matches!(extension, "rs" | "md" | "toml" | "yaml" | "yml")
}
