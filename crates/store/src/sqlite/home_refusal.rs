//! Why a folder is not accepted as a home, or a file in it is not accepted as ours. Nothing was changed.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeRefusal {
    /// A symbolic link could lead anywhere.
    Link,
    /// The file has a second hard link, which could be in anyone's folder.
    SecondName,
    /// It is not a plain file, or not what belongs there.
    WrongKind,
    /// It belongs to another user.
    OtherOwner { owner: u32, ours: u32 },
    /// The folder has files in it, and none of them is a journal.
    NotAHome,
    /// The folder is writable by everyone.
    EverybodysFolder,
    /// The file at the lock's path is not a lock.
    NotALock,
    ForeignDatabase {
        /// The id in the file; 0 if it has none.
        application_id: i32,
    },
    /// A journal whose tables, indexes, views or triggers are not those that we make.
    ChangedSchema {
        /// One of the changes, such as: it has a trigger `x`.
        change: String,
    },
}

impl fmt::Display for HomeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str(
                "is a link, and files of a home are not opened through links: replace it with its target, or choose another home",
            ),
            Self::SecondName => {
                f.write_str("is a hard link: replace it with a copy, or choose another home")
            }
            Self::WrongKind => f.write_str("is not a file of a home: move it away, or choose another home"),
            Self::OtherOwner { owner, ours } => write!(
                f,
                "belongs to user {owner} and this process runs as user {ours}: run it as user {owner}, or choose another home; read-only commands work"
            ),
            Self::NotAHome => f.write_str(
                "is not a home and not empty: choose an empty folder, or one that does not exist yet",
            ),
            Self::EverybodysFolder => {
                f.write_str("is a world-writable folder: choose a folder below it")
            }
            Self::NotALock => {
                f.write_str("is not a Spinney lock file: move it away, or choose another home")
            }
            Self::ForeignDatabase { application_id: 0 } => f.write_str(
                "is not a Spinney journal (its tables are another program's): choose another home",
            ),
            Self::ForeignDatabase { application_id } => write!(
                f,
                "is not a Spinney journal (its application id is {application_id:#010x}): choose another home"
            ),
            Self::ChangedSchema { change } => write!(
                f,
                "was changed by another program: {change}. It is not opened, because statements in it could change what is read and written: undo the change, restore a copy, or choose another home"
            ),
        }
    }
}
