//! What git uses of a folder outside of `.git` itself: the repository that a `.git` file names, as worktrees and submodules
//! have it, and the hooks that a configuration names. It is read up to a bound: it may
//! be hostile.

use std::io::Read as _;
use std::path::{Path, PathBuf};

/// How much of a file of git is read.
const BYTES_MAX: u64 = 256 << 10;

/// Whether a folder is itself what a `.git` is.
pub(super) fn is_git_directory(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists())
}

/// Existing paths that git uses because of what is in this folder, with their links followed.
pub(crate) fn git_paths(folder: &Path) -> Vec<PathBuf> {
    let entry = folder.join(".git");
    let mut found = Vec::new();
    let repository = match text(&entry) {
        Some(link) => named(&link, "gitdir:").map(|to| folder.join(to)),
        None => Some(entry),
    };
    let Some(repository) = repository else { return found };
    let common = text(&repository.join("commondir")).map(|to| repository.join(to.trim()));
    for repository in common.iter().chain([&repository]) {
        found.push(repository.clone());
        let hooks = text(&repository.join("config")).and_then(|config| hooks_path(&config));
        found.extend(hooks.map(|to| folder.join(to)));
    }
    found.into_iter().filter_map(|path| path.canonicalize().ok()).collect()
}

/// A file that is a text; none for anything else.
fn text(path: &Path) -> Option<String> {
    // A pipe or a device would not end.
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let mut text = String::new();
    let file = is_file.then(|| std::fs::File::open(path).ok()).flatten()?;
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn named<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// The last `hooksPath` of a configuration, as git reads it. One in a section that is not `core` protects too much.
fn hooks_path(config: &str) -> Option<String> {
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        key.trim().eq_ignore_ascii_case("hookspath").then(|| value.trim().trim_matches('"').to_owned())
    };
    config.lines().filter_map(value).next_back()
}
