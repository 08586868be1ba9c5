//! Other files that people write, such as configurations: the same formats, checks and errors as in tree files.

use std::fmt;

use serde::de::DeserializeOwned;

use super::error::{FileError, TextPosition};
use super::node::{Kind, Node, Step};
use super::value_error::ValueError;
use super::{format, without_mark};

/// A parsed file: its keys, as `T` has them.
#[derive(Clone, Debug)]
pub struct KeyFile<T> {
    /// Its keys. A file without anything in it has none.
    pub keys: T,
    file: String,
    root: Node,
}

impl<T: DeserializeOwned> KeyFile<T> {
    /// Parses the text of a file. The extension of `name` selects the format: `.yaml`, `.yml`, `.json` or `.toml`.
    ///
    /// # Errors
    /// Names the place, what is wrong there and what to write instead.
    pub fn parse(name: &str, text: &str) -> Result<Self, FileError> {
        let text = without_mark(text);
        let read = format(name, text)?;
        let read = || {
            let mut root = Node { place: TextPosition::START, kind: Kind::Empty };
            if !text.trim().is_empty() {
                root = read(text)?;
            }
            if matches!(root.kind, Kind::Empty) {
                root.kind = Kind::Map(Vec::new());
            }
            Ok((T::deserialize(&root)?, root))
        };
        let (keys, root) = read().map_err(|wrong: ValueError| wrong.naming_its_key().in_file(name))?;
        Ok(Self { keys, file: name.to_owned(), root })
    }
}

impl<T> KeyFile<T> {
    /// The error for a key of the file, at its place. `path` are the keys that lead to it.
    #[must_use]
    pub fn bad_key(&self, path: &[&str], reason: impl fmt::Display) -> FileError {
        let path: Vec<Step<'_>> = path.iter().map(|key| Step::Key(key)).collect();
        FileError::new(&self.file, self.root.place_of_key(&path), reason.to_string())
    }
}
