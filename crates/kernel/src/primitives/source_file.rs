//! Source files: what a tree is resumed from, such as its tree file and scripts. An event names them; the bytes are blobs of
//! its batch. A list is validated when it is made, wherever it comes from.

use std::collections::BTreeSet;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::primitives::{BlobHash, BlobRef, SourceName, limit};

/// A file that a tree is resumed from, by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Its name among the files of its tree.
    pub name: SourceName,
    /// Its bytes.
    pub blob: BlobRef,
}

/// All files that a tree is resumed from, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<SourceFile>")]
pub struct SourceFiles(Vec<SourceFile>);

/// Why files cannot be the sources of a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum BadSources {
    /// There are too many.
    #[error("{count} source files are too many, the limit is {count_max}: use fewer")]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many there may be.
        count_max: usize,
    },
    /// They are too large.
    #[error("the source files have {bytes} bytes together and the limit is {bytes_max}: make them smaller")]
    TooLarge {
        /// How many bytes they have.
        bytes: u64,
        /// How many they may have.
        bytes_max: u64,
    },
    /// Two have the same name.
    #[error("two source files are named `{name}`: rename one of them")]
    Duplicate { name: SourceName },
    /// The bytes of one are missing.
    #[error("the bytes of source file `{name}` are missing: send them with it")]
    NoBytes { name: SourceName },
}

impl SourceFiles {
    /// No file.
    pub const NONE: Self = Self(Vec::new());

    /// # Errors
    /// If they are too many or too large, or two have the same name.
    pub fn new(files: Vec<SourceFile>) -> Result<Self, BadSources> {
        check_size(files.len(), files.iter().map(|file| file.blob.bytes))?;
        let mut names = BTreeSet::new();
        if let Some(file) = files.iter().find(|file| !names.insert(&file.name)) {
            return Err(BadSources::Duplicate { name: file.name.clone() });
        }
        Ok(Self(files))
    }

    /// Splits files into their list and their bytes, in the same order.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn enclose(files: Vec<(SourceName, Vec<u8>)>) -> Result<(Self, Vec<Vec<u8>>), BadSources> {
        let bytes = |(_, bytes): &(SourceName, Vec<u8>)| bytes.len() as u64;
        // Do not hash what will be refused for its size.
        check_size(files.len(), files.iter().map(bytes))?;
        let file = |(name, bytes): &(SourceName, Vec<u8>)| SourceFile {
            name: name.clone(),
            blob: BlobRef { hash: BlobHash::digest(bytes), bytes: bytes.len() as u64 },
        };
        let named = Self::new(files.iter().map(file).collect())?;
        Ok((named, files.into_iter().map(|(_, bytes)| bytes).collect()))
    }
}

impl Deref for SourceFiles {
    type Target = [SourceFile];

    fn deref(&self) -> &[SourceFile] {
        &self.0
    }
}

impl TryFrom<Vec<SourceFile>> for SourceFiles {
    type Error = BadSources;

    fn try_from(files: Vec<SourceFile>) -> Result<Self, BadSources> {
        Self::new(files)
    }
}

fn check_size(count: usize, bytes: impl Iterator<Item = u64>) -> Result<(), BadSources> {
    let (count_max, bytes_max) = (limit::SOURCE_FILES_MAX, limit::SOURCE_FILES_BYTES_MAX);
    if count > count_max {
        return Err(BadSources::TooMany { count, count_max });
    }
    let bytes = bytes.fold(0, u64::saturating_add);
    if bytes > bytes_max {
        return Err(BadSources::TooLarge { bytes, bytes_max });
    }
    Ok(())
}
