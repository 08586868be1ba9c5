//! The files of a program's session, copied from the folder of an agent that has ended into that of another. Programs wrote
//! them, so they are opened by handles, never through a link, and only as many as have a bound.

use std::io::{self, ErrorKind, Read as _};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, MetadataExt as _, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use spinney_kernel::primitives::{AgentId, SessionId};

use super::scratch::SCRATCH;
use super::{Workspaces, atomic, folder};

/// Most names that are looked at, and most that are copied.
const NAMES_MAX: usize = 10_000;
const FILES_MAX: usize = 1_000;
const BYTES_MAX: u64 = 256 << 20;
/// Most folders in each other below one that has the session's name.
const DEPTH_MAX: usize = 8;
/// What follows the session in the name of its file.
const SUFFIX: &str = ".jsonl";

/// Where sessions are below the home of a program.
#[derive(Clone, Debug)]
pub(crate) struct SessionPlace<'a> {
    pub(crate) folder: &'a str,
    /// How many folders in each other are looked into below that one.
    pub(crate) levels: usize,
    /// The name of the first of these folders in the copy, if the program names it after the folder in which it begins.
    pub(crate) first: Option<String>,
}

/// Why a session was not copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionFilesError {
    #[error("there is no file of that session")]
    Gone,
    #[error("there are more files or bytes than are copied")]
    TooLarge,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Workspaces {
    /// Copies the files of a session. If that fails, the other agent has none of them.
    pub(crate) fn copy_session(
        &self,
        (from, to): (&AgentId, &AgentId),
        session: &SessionId,
        place: &SessionPlace<'_>,
    ) -> Result<(), SessionFilesError> {
        let names = || place.folder.split('/');
        let found = self.folder().open_dir_nofollow(from.as_str());
        let found = found.and_then(|agent| agent.open_dir_nofollow(SCRATCH));
        let sessions = names().try_fold(found.map_err(gone)?, |above, name| above.open_dir_nofollow(name));
        let sessions = sessions.map_err(gone)?;
        let home = folder::open(&folder::open(self.folder(), to.as_str())?, SCRATCH)?;
        let mut copy = Copy { session, names: NAMES_MAX, files: FILES_MAX, bytes: BYTES_MAX, copied: 0 };
        let copied = names()
            .try_fold(home.try_clone()?, |above, name| folder::open(&above, name))
            .map_err(SessionFilesError::from)
            .and_then(|target| copy.matching(&sessions, &target, place.levels, place.first.as_deref()));
        let copied = copied.and(if copy.copied == 0 { Err(SessionFilesError::Gone) } else { Ok(()) });
        if copied.is_err() {
            // The agent has not begun, so nothing else is there.
            atomic::remove(&home, names().next().unwrap_or_default())?;
        }
        copied
    }
}

/// What is not there, and what something else is in place of.
fn gone(error: io::Error) -> SessionFilesError {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => SessionFilesError::Gone,
        _ => SessionFilesError::Io(error),
    }
}

/// What is left of the bounds.
struct Copy<'a> {
    session: &'a SessionId,
    names: usize,
    files: usize,
    bytes: u64,
    copied: usize,
}

impl Copy<'_> {
    /// Copies everything with the session's name that is so deep below a folder.
    fn matching(
        &mut self,
        from: &Dir,
        to: &Dir,
        levels: usize,
        first: Option<&str>,
    ) -> Result<(), SessionFilesError> {
        for name in self.names_in(from)? {
            let found = from.symlink_metadata(&name)?;
            if self.is_named(&name) {
                self.entry((from, to), &name, DEPTH_MAX)?;
            } else if found.is_dir() && levels > 0 {
                let below = from.open_dir_nofollow(&name)?;
                let target = Target { above: to, name: first.unwrap_or(&name) };
                self.below(&below, &target, levels - 1)?;
            }
        }
        Ok(())
    }

    /// The same, in a folder of the copy that is made when it is needed.
    fn below(&mut self, from: &Dir, target: &Target<'_>, levels: usize) -> Result<(), SessionFilesError> {
        let made = folder::open(target.above, target.name)?;
        let before = self.copied;
        self.matching(from, &made, levels, None)?;
        if self.copied == before && made.entries()?.next().is_none() {
            target.above.remove_dir(target.name)?;
        }
        Ok(())
    }

    /// Copies a plain file, or a folder with the plain files in it. Links, pipes and files with a second name are left out.
    fn entry(&mut self, (from, to): (&Dir, &Dir), name: &str, depth: usize) -> Result<(), SessionFilesError> {
        let found = from.symlink_metadata(name)?;
        if found.is_dir() {
            let Some(depth) = depth.checked_sub(1) else { return Err(SessionFilesError::TooLarge) };
            let (below, made) = (from.open_dir_nofollow(name)?, folder::open(to, name)?);
            for name in self.names_in(&below)? {
                self.entry((&below, &made), &name, depth)?;
            }
        } else if let Some(mut file) = plain(from, name)? {
            self.files = self.files.checked_sub(1).ok_or(SessionFilesError::TooLarge)?;
            // It may grow while it is read.
            if file.metadata()?.len() > self.bytes {
                return Err(SessionFilesError::TooLarge);
            }
            let mut fresh = OpenOptions::new();
            fresh.write(true).create_new(true).mode(0o600);
            let mut copy = to.open_with(name, &fresh)?;
            let bytes = io::copy(&mut (&mut file).take(self.bytes + 1), &mut copy)?;
            self.bytes = self.bytes.checked_sub(bytes).ok_or(SessionFilesError::TooLarge)?;
            self.copied += 1;
        }
        Ok(())
    }

    /// The names in a folder, in order, without those that are not UTF-8.
    fn names_in(&mut self, folder: &Dir) -> Result<Vec<String>, SessionFilesError> {
        let mut names = Vec::new();
        for entry in folder.entries()? {
            self.names = self.names.checked_sub(1).ok_or(SessionFilesError::TooLarge)?;
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// `SESSION`, `SESSION.jsonl`, and the same behind a time and a dash.
    fn is_named(&self, name: &str) -> bool {
        let name = name.strip_suffix(SUFFIX).unwrap_or(name);
        name.strip_suffix(self.session.as_str()).is_some_and(|time| time.is_empty() || time.ends_with('-'))
    }
}

/// A folder of the copy.
struct Target<'a> {
    above: &'a Dir,
    name: &'a str,
}

/// A plain file with one name.
fn plain(folder: &Dir, name: &str) -> io::Result<Option<File>> {
    let is_plain = |found: &cap_std::fs::Metadata| found.is_file() && found.nlink() == 1;
    if !is_plain(&folder.symlink_metadata(name)?) {
        return Ok(None);
    }
    let mut reading = OpenOptions::new();
    // It may have become a pipe since.
    reading.read(true).follow(FollowSymlinks::No).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = folder.open_with(name, &reading)?;
    Ok(Some(file).filter(|file| file.metadata().is_ok_and(|found| is_plain(&found))))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use spinney_kernel::primitives::TreeId;
    use tempfile::TempDir;

    use super::*;

    struct Folders {
        home: TempDir,
        workspaces: Workspaces,
    }

    impl Folders {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let workspaces = Workspaces::open(home.path(), TreeId::new([7; 16])).unwrap();
            workspaces.agent(&name("old")).unwrap();
            workspaces.agent(&name("new")).unwrap();
            Self { home, workspaces }
        }

        fn place(&self, agent: &str, path: &str) -> PathBuf {
            let tree = self.workspaces.tree().to_string();
            Workspaces::root(self.home.path()).join(tree).join(agent).join("scratch").join(path)
        }

        fn write(&self, path: &str, text: &str) -> PathBuf {
            let path = self.place("old", path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn copy(&self, place: &SessionPlace<'_>) -> Result<(), SessionFilesError> {
            let session = "0199-a".parse().unwrap();
            self.workspaces.copy_session((&name("old"), &name("new")), &session, place)
        }

        /// The files of the new agent's home, with their texts.
        fn copied(&self) -> Vec<(String, String)> {
            let (mut all, root) = (Vec::new(), self.place("new", ""));
            let mut folders = vec![root.clone()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(&folder).into_iter().flatten() {
                    let path = entry.unwrap().path();
                    match path.symlink_metadata().unwrap().is_dir() {
                        true => folders.push(path),
                        false => {
                            let name = path.strip_prefix(&root).unwrap().display().to_string();
                            all.push((name, fs::read_to_string(&path).unwrap()));
                        }
                    }
                }
            }
            all.sort();
            all
        }
    }

    fn name(agent: &str) -> AgentId {
        agent.parse().unwrap()
    }

    fn by_folder() -> SessionPlace<'static> {
        SessionPlace { folder: ".claude/projects", levels: 1, first: Some("-new".to_owned()) }
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn the_files_of_a_session_land_under_the_name_of_the_new_folder() {
        let folders = Folders::new();
        folders.write(".claude/projects/-old/0199-a.jsonl", "said");
        folders.write(".claude/projects/-old/0199-a/subagents/agent-1.jsonl", "part");
        folders.write(".claude/projects/-old/0199-b.jsonl", "another");
        folders.write(".claude/projects/-old/memory/notes.md", "no part of it");
        folders.write(".claude/settings.json", "{}");
        folders.copy(&by_folder()).unwrap();
        let expected = [
            (".claude/projects/-new/0199-a.jsonl", "said"),
            (".claude/projects/-new/0199-a/subagents/agent-1.jsonl", "part"),
        ];
        assert_eq!(folders.copied(), pairs(&expected));
    }

    #[test]
    fn the_files_of_a_session_keep_their_place_in_folders_of_days() {
        let folders = Folders::new();
        let path = ".codex/sessions/2026/11/19/rollout-2026-11-19T10-00-00-0199-a.jsonl";
        folders.write(path, "said");
        folders.write(".codex/sessions/2026/11/18/rollout-2026-11-18T10-00-00-0199-b.jsonl", "another");
        let place = SessionPlace { folder: ".codex/sessions", levels: 3, first: None };
        folders.copy(&place).unwrap();
        assert_eq!(folders.copied(), pairs(&[(path, "said")]));
    }

    #[test]
    fn a_session_without_files_is_gone() {
        let folders = Folders::new();
        assert!(matches!(folders.copy(&by_folder()), Err(SessionFilesError::Gone)));
        folders.write(".claude/projects/-old/0199-b.jsonl", "another");
        assert!(matches!(folders.copy(&by_folder()), Err(SessionFilesError::Gone)));
        fs::remove_dir_all(folders.place("old", "")).unwrap();
        assert!(matches!(folders.copy(&by_folder()), Err(SessionFilesError::Gone)));
        assert_eq!(folders.copied(), []);
    }

    /// A program can plant links to what it may not read. None is followed, wherever it is.
    #[test]
    fn no_link_and_no_pipe_is_followed() {
        for planted in ["0199-a.jsonl", "0199-a", ""] {
            let folders = Folders::new();
            let secret = folders.home.path().join("secret");
            fs::create_dir(&secret).unwrap();
            fs::write(secret.join("0199-a.jsonl"), "secret").unwrap();
            let project = folders.place("old", ".claude/projects/-old");
            fs::create_dir_all(project.parent().unwrap()).unwrap();
            match planted {
                "" => symlink(&secret, &project).unwrap(),
                "0199-a" => {
                    folders.write(".claude/projects/-old/0199-a.jsonl", "said");
                    symlink(&secret, project.join(planted)).unwrap();
                }
                name => {
                    fs::create_dir(&project).unwrap();
                    symlink(secret.join("0199-a.jsonl"), project.join(name)).unwrap();
                }
            }
            let copied = folders.copy(&by_folder());
            assert_eq!(copied.is_ok(), planted == "0199-a", "{planted}: {copied:?}");
            assert!(!folders.copied().iter().any(|(_, text)| text == "secret"), "{planted}");
        }
        let folders = Folders::new();
        let file = folders.write(".claude/projects/-old/0199-a.jsonl", "");
        fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
        assert!(
            matches!(folders.copy(&by_folder()), Err(SessionFilesError::Gone)),
            "it does not wait for a writer"
        );
        fs::remove_file(&file).unwrap();
        fs::hard_link(folders.write("elsewhere", "text"), &file).unwrap();
        assert!(matches!(folders.copy(&by_folder()), Err(SessionFilesError::Gone)));
    }

    /// What is too much is not copied in part.
    #[test]
    fn more_than_the_bounds_is_not_copied() {
        let folders = Folders::new();
        let large = folders.write(".claude/projects/-old/0199-a.jsonl", "");
        fs::File::options().write(true).open(&large).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(matches!(folders.copy(&by_folder()), Err(SessionFilesError::TooLarge)));
        assert_eq!(folders.copied(), []);
        fs::write(&large, "said").unwrap();
        for file in 0..FILES_MAX {
            folders.write(&format!(".claude/projects/-old/0199-a/{file}"), "");
        }
        assert!(matches!(folders.copy(&by_folder()), Err(SessionFilesError::TooLarge)));
        assert_eq!(folders.copied(), []);
        fs::remove_dir_all(folders.place("old", ".claude/projects/-old/0199-a")).unwrap();
        let deep = format!(".claude/projects/-old/0199-a/{}file", "in/".repeat(DEPTH_MAX));
        folders.write(&deep, "");
        assert!(matches!(folders.copy(&by_folder()), Err(SessionFilesError::TooLarge)));
        assert_eq!(folders.copied(), []);
    }
}
