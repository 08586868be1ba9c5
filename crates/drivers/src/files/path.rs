//! Paths that agents give: relative to their workspace, checked before anything is opened. Anything except plain
//! names is refused here; the file handles make sure that no name leads elsewhere.

use std::fmt;

use spinney_kernel::primitives::limit::{FILE_PATH_BYTES_MAX, FILE_PATH_NAMES_MAX};
use spinney_kernel::primitives::{OutputPath, is_file_name};

use super::advice::Refused;

/// Where git has its own files.
const GIT_DIRECTORY: &str = ".git";

/// A folder at the top of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top {
    /// What the agent made.
    Outputs,
    History,
    /// Long outputs of its tools.
    Offload,
    /// Its working copy of a repository.
    Copy,
}

impl Top {
    const ALL: [Self; 4] = [Self::Outputs, Self::History, Self::Offload, Self::Copy];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outputs => "outputs",
            Self::History => "history",
            Self::Offload => "offload",
            Self::Copy => "copy",
        }
    }
}

/// A path of a workspace: one of its folders, and plain names below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath {
    top: Top,
    names: Vec<String>,
}

impl FilePath {
    /// Reads a path as an agent gives it.
    ///
    /// # Errors
    /// What is wrong with it and what to write instead.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        if text.len() > FILE_PATH_BYTES_MAX {
            return Err(Refused::new(format!(
                "a path of {} bytes is too long: use at most {FILE_PATH_BYTES_MAX}",
                text.len()
            )));
        }
        if text.starts_with('/') {
            return Err(wrong(text, "is absolute", "write it as `outputs/NAME`"));
        }
        let mut names = text.strip_suffix('/').unwrap_or(text).split('/');
        let first = names.next().unwrap_or_default();
        let names: Vec<&str> = names.collect();
        let is_name = if first == Top::Copy.as_str() { is_copied_name } else { is_file_name };
        if let Some(bad) = std::iter::once(first).chain(names.iter().copied()).find(|name| !is_name(name)) {
            let what = if matches!(bad, "." | "..") {
                "contains `.` or `..`"
            } else {
                "contains a name that is not allowed"
            };
            return Err(wrong(
                text,
                what,
                "use letters, digits and `. _ - + = @ , ( )` with `/` between folders, and no name that begins or ends with a dot or a space",
            ));
        }
        let Some(top) = Top::ALL.into_iter().find(|top| top.as_str() == first) else {
            return Err(wrong(
                text,
                "is outside your folders",
                "files are below `outputs/` (yours to write), `history/` and `offload/` (to read)",
            ));
        };
        if names.len() >= FILE_PATH_NAMES_MAX {
            return Err(wrong(
                text,
                "is nested too deeply",
                &format!("use at most {FILE_PATH_NAMES_MAX} names"),
            ));
        }
        Ok(Self { top, names: names.into_iter().map(str::to_owned).collect() })
    }

    /// The top folder it is in.
    #[must_use]
    pub const fn top(&self) -> Top {
        self.top
    }

    /// The same as the path of an output, for a tool that changes one.
    ///
    /// # Errors
    /// If it is not below `outputs/`, or that folder itself.
    pub(super) fn output(&self) -> Result<OutputPath, Refused> {
        if self.top != Top::Outputs {
            return Err(Refused::new(format!("`{self}` is not yours to write: write below `outputs/`")));
        }
        let folder =
            |_| Refused::new("`outputs` is a folder: name a file in it, such as `outputs/report.md`");
        self.names.join("/").parse().map_err(folder)
    }

    /// Every name below the top folder.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.top.as_str())?;
        self.names.iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

/// Files of a repository have any names. Its git directory is not for file tools.
fn is_copied_name(name: &str) -> bool {
    !name.is_empty()
        && !matches!(name, "." | "..")
        && !name.eq_ignore_ascii_case(GIT_DIRECTORY)
        && !name.contains(char::is_control)
}

fn wrong(text: &str, what: &str, instead: &str) -> Refused {
    Refused::new(format!("`{}` {what}: {instead}", shown(text)))
}

/// A path that is wrong, as it may be shown.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect()
}
