//! Ignore files: a search leaves out what `.gitignore` and `.ignore` exclude, as ripgrep and git do. Only those in the
//! searched folders count, and only a bounded part of each, because their content may be hostile.

use std::os::fd::AsFd;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::walk;

/// Their names, strongest first: the first one with a pattern for a path decides.
const NAMES: [&str; 2] = [".ignore", ".gitignore"];
/// How much of an ignore file is read, and how long its lines may be. The rest is ignored.
const BYTES_MAX: u64 = 64 * 1_024;
const LINES_MAX: usize = 1_000;
const LINE_BYTES_MAX: usize = 256;

/// The ignore files of a folder and of those above it.
pub(super) struct Ignored {
    above: Option<Arc<Self>>,
    here: Vec<Gitignore>,
    /// Where paths relative to this folder begin in a whole path.
    skip: usize,
}

impl Ignored {
    /// Adds the ignore files of a folder; paths relative to it begin at `skip`.
    pub(super) fn below(above: Option<Arc<Self>>, folder: impl AsFd, skip: usize) -> Option<Arc<Self>> {
        let here: Vec<Gitignore> = NAMES.iter().filter_map(|name| read(folder.as_fd(), name)).collect();
        if here.is_empty() { above } else { Some(Arc::new(Self { above, here, skip })) }
    }

    /// Whether a path is left out.
    pub(super) fn has(&self, path: &str, is_folder: bool) -> bool {
        let below = path.get(self.skip..).unwrap_or_default();
        let found =
            self.here.iter().map(|file| file.matched(below, is_folder)).find(|found| !found.is_none());
        match found {
            Some(found) => found.is_ignore(),
            None => self.above.as_ref().is_some_and(|above| above.has(path, is_folder)),
        }
    }
}

fn read(folder: impl AsFd, name: &str) -> Option<Gitignore> {
    let mut bytes = Vec::new();
    let file = walk::open_plain(folder.as_fd(), name)?;
    walk::read_into(&file, BYTES_MAX, &mut bytes).ok()?;
    let mut rules = GitignoreBuilder::new("");
    let text = String::from_utf8_lossy(&bytes);
    for line in text.lines().take(LINES_MAX).filter(|line| line.len() <= LINE_BYTES_MAX) {
        // A line that is not a pattern has no effect.
        let _ = rules.add_line(None, line);
    }
    rules.build().ok().filter(|rules| !rules.is_empty())
}
