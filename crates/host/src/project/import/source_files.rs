//! The files of a project that are read: plain ones of bounded size, inside its folder.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{Found, ProjectImportError};
use crate::secrets::SecretScan;
use crate::system::private_files::Links;
use crate::text_file::{self, FileAction, FileFault, UnreadText};

/// Longest file that is read.
const BYTES_MAX: u64 = 1024 * 1024;
/// Most names of a folder that are looked at.
const NAMES_MAX: usize = 1_000;

/// A project's folder.
pub(super) struct SourceFolder {
    root: PathBuf,
}

/// A file of it.
pub(super) struct SourceText {
    /// Its path below the folder.
    pub(super) name: String,
    pub(super) text: String,
    /// Where it really is.
    pub(super) path: PathBuf,
}

impl SourceFolder {
    pub(super) fn open(folder: &Path) -> Result<Self, ProjectImportError> {
        let failed = |why| ProjectImportError::Folder { folder: folder.to_owned(), why };
        let root = folder.canonicalize().map_err(failed)?;
        if !root.is_dir() {
            return Err(failed(io::Error::from(ErrorKind::NotADirectory)));
        }
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The text of a file; `None` if there is none. One that cannot be used is noted and left out.
    pub(super) fn read(
        &self,
        name: &str,
        found: &mut Found,
    ) -> Result<Option<SourceText>, ProjectImportError> {
        let at = self.root.join(name);
        let path = match at.canonicalize() {
            Ok(path) => path,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(FileFault::when(FileAction::Read, &at)(error).into()),
        };
        if !path.starts_with(&self.root) {
            found.leave_out(name, "it is a link to a file outside the folder");
            return Ok(None);
        }
        match text_file::read(&path, BYTES_MAX, Links::Refuse) {
            Ok(text) => match SecretScan::default().check_file(name, &text) {
                Ok(()) => Ok(Some(SourceText { name: name.to_owned(), text, path })),
                Err(secret) => {
                    found.leave_out(name, format!("the whole file: {secret}"));
                    Ok(None)
                }
            },
            Err(unread @ (UnreadText::TooLarge { .. } | UnreadText::NotUtf8 { .. })) => {
                found.leave_out(name, format!("the whole file: {unread}"));
                Ok(None)
            }
            Err(error) => Err(FileFault::when(FileAction::Read, &at)(error).into()),
        }
    }

    /// The files of a folder whose names end so, by name. At most so many.
    pub(super) fn list(
        &self,
        folder: &str,
        ending: &str,
        most: usize,
        found: &mut Found,
    ) -> Result<Vec<String>, ProjectImportError> {
        let at = self.root.join(folder);
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(FileFault::when(FileAction::Read, &at)(error).into()),
        };
        let names = entries.take(NAMES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
        names.sort();
        if names.len() > most {
            found.leave_out(folder, format!("all but the first {most} files"));
            names.truncate(most);
        }
        Ok(names.into_iter().map(|name| format!("{folder}/{name}")).collect())
    }
}

/// Instructions for every agent.
pub(super) fn instructions(source: &SourceFolder, found: &mut Found) -> Result<(), ProjectImportError> {
    let mut read: Vec<PathBuf> = Vec::new();
    for name in ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"] {
        let Some(SourceText { name, text, path }) = source.read(name, found)? else { continue };
        // Many projects have one file under both names.
        if read.contains(&path) {
            continue;
        }
        read.push(path);
        let mut kept = String::new();
        for (number, line) in text.lines().enumerate() {
            match line.trim().strip_prefix('@') {
                Some(file) if !file.is_empty() && !file.contains(char::is_whitespace) => {
                    if file.trim_start_matches("./") != "AGENTS.md" {
                        let what = format!("the text of {file}, which it takes in: add it to the prompt");
                        found.leave_out(format!("{name}:{}", number + 1), what);
                    }
                }
                Some(_) | None => {
                    kept.push_str(line);
                    kept.push('\n');
                }
            }
        }
        if !kept.trim().is_empty() {
            found.instructions.push((name, kept));
        }
    }
    Ok(())
}
