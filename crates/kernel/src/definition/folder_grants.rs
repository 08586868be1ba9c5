//! Folders of the user that an agent may read or write beside its own workspace. They only shrink downwards, which is
//! decided by names alone; drivers keep links from leading out.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Refusal;
use crate::primitives::{FolderPath, limit};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FolderAccess {
    Read,
    /// Writing includes reading.
    Write,
}

impl FolderAccess {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// Folders with everything below them. Of several around a path the nearest decides, so that a folder that may be read can
/// be in one that may be written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FolderGrants {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub read: BTreeSet<FolderPath>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub write: BTreeSet<FolderPath>,
}

impl FolderGrants {
    #[must_use]
    pub fn with(mut self, path: FolderPath, access: FolderAccess) -> Self {
        self.add(path, access);
        self
    }

    pub fn add(&mut self, path: FolderPath, access: FolderAccess) {
        match access {
            FolderAccess::Read => self.read.insert(path),
            FolderAccess::Write => self.write.insert(path),
        };
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.read.len() + self.write.len()
    }

    /// Those that may be read come first.
    pub fn iter(&self) -> impl Iterator<Item = (&FolderPath, FolderAccess)> {
        let read = self.read.iter().map(|path| (path, FolderAccess::Read));
        read.chain(self.write.iter().map(|path| (path, FolderAccess::Write)))
    }

    /// What the nearest folder around a path allows; `None` if there is none. A folder in both lists may be written.
    #[must_use]
    pub fn access(&self, path: &FolderPath) -> Option<FolderAccess> {
        let around = self.iter().filter(|(folder, _)| folder.contains(path));
        around.max_by_key(|(folder, access)| (folder.as_str().len(), *access)).map(|(_, access)| access)
    }

    /// What `self` allows and `other` does not. What is allowed changes only at folders that one of them names, so these
    /// are all places to compare.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Self {
        let mut beyond = Self::default();
        for (path, _) in self.iter().chain(other.iter()) {
            if let Some(access) = self.access(path).filter(|access| Some(*access) > other.access(path)) {
                beyond.add(path.clone(), access);
            }
        }
        beyond
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        let (count, count_max) = (self.len(), limit::FOLDERS_MAX);
        if count > count_max {
            return Err(Refusal::TooMany { what: "folders".to_owned(), count, count_max });
        }
        Ok(())
    }
}

impl fmt::Display for FolderGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no folder");
        }
        for (at, (path, access)) in self.iter().enumerate() {
            let gap = if at == 0 { "" } else { ", " };
            write!(f, "{gap}{} `{path}`", access.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FolderPath {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    /// `r/a w/b` may read `/a` and write `/b`.
    fn grants(text: &str) -> FolderGrants {
        text.split_whitespace().fold(FolderGrants::default(), |grants, word| {
            let (access, folder) = word.split_at(1);
            let access = if access == "w" { FolderAccess::Write } else { FolderAccess::Read };
            grants.with(path(folder), access)
        })
    }

    /// L8: a path that could mean something else than it says is not the path of a folder.
    #[test]
    fn l8_only_plain_absolute_paths_are_folders() {
        for good in ["/a", "/home/user/my project", "/a/.hidden", "/a/...", "/\u{e9}/\u{4e2d}", "/a b/-x"] {
            assert!(good.parse::<FolderPath>().is_ok(), "{good:?}");
        }
        let long = format!("/{}", "a".repeat(limit::FOLDER_PATH_BYTES_MAX));
        let deep = "/a".repeat(limit::FOLDER_PATH_NAMES_MAX + 1);
        let bad = [
            "",
            "/",
            "a",
            "./a",
            "~",
            "~/a",
            "/a/",
            "//a",
            "/a//b",
            "/.",
            "/a/.",
            "/..",
            "/a/../b",
            "/a\n",
            "/a\0b",
            "/a\u{202e}b",
            "/a\u{200b}",
            "/a\tb",
            &long,
            &deep,
        ];
        for bad in bad {
            assert!(bad.parse::<FolderPath>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_folder_contains_itself_and_what_is_below_it_by_whole_names() {
        let table = [
            ("/a", "/a", true),
            ("/a", "/a/b", true),
            ("/a", "/a/b/c", true),
            ("/a", "/ab", false),
            ("/a/b", "/a", false),
            ("/a", "/b/a", false),
            ("/a", "/A", false),
        ];
        for (folder, below, contains) in table {
            assert_eq!(path(folder).contains(&path(below)), contains, "{folder} {below}");
        }
    }

    /// The nearest folder around a path decides.
    #[test]
    fn the_nearest_folder_around_a_path_decides() {
        let grants = grants("r/a w/a/b r/a/b/c w/d r/d");
        let table = [
            ("/a", Some(FolderAccess::Read)),
            ("/a/x", Some(FolderAccess::Read)),
            ("/a/b/x", Some(FolderAccess::Write)),
            ("/a/b/c", Some(FolderAccess::Read)),
            ("/a/b/c/x", Some(FolderAccess::Read)),
            ("/d/x", Some(FolderAccess::Write)),
            ("/e", None),
        ];
        for (at, access) in table {
            assert_eq!(grants.access(&path(at)), access, "{at}");
        }
    }

    /// L8: what is beyond the folders of another, by names.
    #[test]
    fn l8_folders_are_covered_by_folders_above_them_with_the_same_access() {
        let table = [
            ("", "", ""),
            ("", "w/a", ""),
            ("r/a", "", "r/a"),
            ("r/a", "r/a", ""),
            ("r/a", "w/a", ""),
            ("w/a", "r/a", "w/a"),
            ("r/a/b", "r/a", ""),
            ("r/a", "r/a/b", "r/a"),
            ("w/a/b", "r/a w/a/b", ""),
            ("r/a w/b", "r/a", "w/b"),
            ("r/ab", "r/a", "r/ab"),
            // A folder that may only be read stays so in one that may be written.
            ("w/a", "w/a r/a/b", "w/a/b"),
            ("w/a r/a/b", "w/a r/a/b", ""),
            ("w/a r/a/b/c", "w/a r/a/b", "w/a/b"),
            ("w/a/b", "w/a r/a/b", "w/a/b"),
            ("w/a/b/c", "w/a r/a/b", "w/a/b/c"),
            ("r/a", "w/a r/a/b", ""),
            // A grant inside a grant that the other has is not more.
            ("r/a w/a/b", "w/a", ""),
        ];
        for (wanted, given, beyond) in table {
            assert_eq!(grants(wanted).beyond(&grants(given)), grants(beyond), "{wanted:?} of {given:?}");
        }
    }

    #[test]
    fn folders_are_written_as_two_lists_of_which_empty_ones_are_left_out() {
        let json = |grants: &FolderGrants| serde_json::to_string(grants).unwrap_or_default();
        assert_eq!(json(&grants("r/a r/c w/b")), r#"{"read":["/a","/c"],"write":["/b"]}"#);
        assert_eq!(json(&grants("")), "{}");
        assert_eq!(serde_json::from_str::<FolderGrants>("{}").ok(), Some(grants("")));
        for bad in [r#"{"read":["a"]}"#, r#"{"write":["/a/.."]}"#, r#"{"run":["/a"]}"#] {
            assert!(serde_json::from_str::<FolderGrants>(bad).is_err(), "{bad}");
        }
        assert_eq!(grants("r/a w/b").to_string(), "read `/a`, write `/b`");
    }
}
