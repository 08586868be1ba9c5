//! Which files git ignores beside what `.gitignore` files say: `info/exclude` of the user's repository, and that of the copy,
//! which its agent can write. Both are data for git, and are read as bounded plain files.

use std::io;
use std::path::Path;

use super::record::read_bounded;
use super::tips;

const EXCLUDE: &str = "info/exclude";
/// Bytes of one file.
const BYTES_MAX: u64 = 1 << 20;

/// Those of a repository, by its git directory.
pub(super) fn of_repository(git_dir: &Path) -> io::Result<Vec<u8>> {
    match read_bounded(&git_dir.join(EXCLUDE), BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        rules => rules,
    }
}

/// Those of a repository and of a copy of it. What its agent left in place of such a file is passed over: then more is
/// committed.
pub(super) fn of_copy(git_dir: &Path, copy: &Path) -> io::Result<Vec<u8>> {
    let mut rules = of_repository(git_dir)?;
    rules.push(b'\n');
    rules.extend(tips::exclude(copy, BYTES_MAX).unwrap_or_default().bytes());
    Ok(rules)
}

/// Gives a git directory these rules.
pub(super) fn write(git_dir: &Path, rules: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(git_dir.join("info"))?;
    std::fs::write(git_dir.join(EXCLUDE), rules)
}
