//! Names that may be read and not be written in a folder of the user, at any depth: what git and other programs of the user
//! run or obey without being asked. An agent that wrote them would act outside as the user.

use std::ffi::OsStr;
use std::path::Path;

/// Repositories, hooks, and settings of editors, shells and agents. They cannot be made either.
pub(crate) const PROTECTED: [&str; 22] = [
    ".agents",
    ".aider.conf.yml",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".devcontainer",
    ".envrc",
    ".exrc",
    ".gemini",
    ".git",
    ".githooks",
    ".hg",
    ".husky",
    ".idea",
    ".jj",
    ".mcp.json",
    ".nvim.lua",
    ".nvimrc",
    ".pre-commit-config.yaml",
    ".vscode",
    ".zed",
];

/// Homes of other trees. The user may make one at any time, so the name is never taken.
const ONLY_IF_THERE: [&str; 1] = [".spinney"];

/// Whether a name is one of them, in any case: some file systems do not tell them apart.
pub(crate) fn is_protected(name: &OsStr) -> bool {
    let mut all = PROTECTED.iter().chain(&ONLY_IF_THERE);
    all.any(|protected| name.as_encoded_bytes().eq_ignore_ascii_case(protected.as_bytes()))
}

/// The first such name in a path.
pub(crate) fn protected_in(path: &Path) -> Option<&OsStr> {
    path.iter().find(|name| is_protected(name))
}
