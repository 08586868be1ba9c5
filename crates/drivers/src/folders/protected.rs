//! Names that may be read and not be written in a folder of the user, at any depth: what git and other programs of the user
//! run or obey without being asked. An agent that wrote them would act outside as the user.

use std::ffi::OsStr;
use std::path::Path;

/// Repositories, hooks, and settings of editors, shells, agents and tools. They cannot be made either: while a command runs,
/// an empty folder has the name.
///
/// `.gitattributes` and `.gitmodules` are not among them: they only choose among programs that a configuration of git names,
/// and those are kept. Neither are build files and scripts of packages, which run when the user says so: to change them is
/// the work of agents.
pub(crate) const PROTECTED: [&str; 45] = [
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".augment",
    ".cargo",
    ".claude",
    ".codex",
    ".continue",
    ".crush",
    ".cursor",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".envrc",
    ".exrc",
    ".factory",
    ".fleet",
    ".gemini",
    ".git",
    ".githooks",
    ".helix",
    ".hg",
    ".husky",
    ".idea",
    ".jj",
    ".junie",
    ".kilo",
    ".kilocode",
    ".kiro",
    ".lefthook",
    ".lvimrc",
    ".mcp.json",
    ".nvim.lua",
    ".nvimrc",
    ".opencode",
    ".pre-commit-config.yaml",
    ".qwen",
    ".roo",
    ".trae",
    ".vimrc",
    ".vs",
    ".vscode",
    ".windsurf",
    ".zed",
];

/// Files of the same kind that programs of the user read while a command runs: they would fail at a folder in their place, so
/// their names are not kept free. One that a command made is renamed when it has ended.
const FILES: [&str; 11] = [
    ".crush.json",
    ".mise.local.toml",
    ".mise.toml",
    "crush.json",
    "kilo.json",
    "kilo.jsonc",
    "mise.local.toml",
    "mise.toml",
    "opencode.json",
    "opencode.jsonc",
    "prek.toml",
];
/// The settings of this manager of hooks: with a dot before it or not, `-local`, and an ending for each format.
const HOOK_MANAGER: &str = "lefthook";

/// Homes of other trees. The user may make one at any time, so the name is never taken.
const ONLY_IF_THERE: [&str; 1] = [".spinney"];

/// Whether a name is one of them, in any case: some file systems do not tell them apart.
pub(crate) fn is_protected(name: &OsStr) -> bool {
    PROTECTED.iter().chain(&ONLY_IF_THERE).any(|protected| is(name, protected)) || is_protected_file(name)
}

/// Whether a name is protected and cannot be kept from being made.
pub(crate) fn is_protected_file(name: &OsStr) -> bool {
    FILES.iter().any(|file| is(name, file)) || is_of_hook_manager(name)
}

fn is(name: &OsStr, protected: &str) -> bool {
    name.as_encoded_bytes().eq_ignore_ascii_case(protected.as_bytes())
}

fn is_of_hook_manager(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_prefix('.').unwrap_or(&name);
    let rest = name.strip_prefix(HOOK_MANAGER).map(|rest| rest.strip_prefix("-local").unwrap_or(rest));
    rest.is_some_and(|rest| [".json", ".jsonc", ".toml", ".yaml", ".yml"].contains(&rest))
}

/// The first such name in a path.
pub(crate) fn protected_in(path: &Path) -> Option<&OsStr> {
    path.iter().find(|name| is_protected(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_protected_in_any_case_and_format() {
        for name in
            [".git", ".GIT", ".Cargo", "opencode.jsonc", "lefthook.yml", ".lefthook-local.TOML", ".spinney"]
        {
            assert!(is_protected(OsStr::new(name)), "{name}");
        }
        for name in [
            "git",
            "Cargo.toml",
            ".gitattributes",
            "lefthook.rs",
            "lefthook-local",
            "package.json",
            ".github",
        ] {
            assert!(!is_protected(OsStr::new(name)), "{name}");
        }
        assert!(is_protected_file(OsStr::new("mise.toml")) && !is_protected_file(OsStr::new(".envrc")));
    }
}
