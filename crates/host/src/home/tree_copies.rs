//! What a tree is resumed from: its file and scripts as they were when it started, so it can be resumed from anywhere,
//! and later edits do not change it. They are source files of its journal:
//!
//! ```text
//! tree.yaml        the tree file, in its own format
//! script-1.yaml …  the scripts
//! kept.json        which model answers from which script, and which one its provider answers
//! ```
//!
//! Older releases kept the same files in a folder, from which their trees are still resumed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spinney::Drivers;
use spinney::tree_file::{CommandTool, FileError, TreeFile};
use spinney_drivers::http::HttpSetupError;
use spinney_journal::{Journal, JournalFault, source_bytes, started_sources};
use spinney_kernel::primitives::{BlobHash, IdError, ModelName, SourceFile, SourceName, ToolName, TreeId};

use super::{old_copies, pending_folders};
use crate::own_drivers::OwnDrivers;
use crate::text_file::UnreadText;
use crate::tree_file::boxed_tools::BoxedTools;
use crate::tree_file::providers::{self, Catalog, Scripted};
use crate::tree_file::source::{self, Parts, SourceDriversError, Text, TreeSource};
use crate::user::variables::Variables;

/// The name of the list.
pub(super) const LIST: &str = "kept.json";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// The tree file's original name.
    tree_file: String,
    /// The scripts' files, with their original names.
    scripts: BTreeMap<String, String>,
    /// The script of each model.
    models: BTreeMap<ModelName, String>,
    /// The models that their providers answer. How they are asked is in the tree file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    called: Vec<ModelName>,
    /// The tools that the tree file defines, with whole paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tools: BTreeMap<ToolName, CommandTool>,
}

/// The files that a new tree is resumed from, as its journal keeps them.
pub struct TreeSources {
    /// Their names and bytes.
    pub files: Vec<(SourceName, Vec<u8>)>,
    /// The hash of all of them.
    pub fingerprint: BlobHash,
}

impl TreeSources {
    /// The files of a tree that is about to start.
    ///
    /// # Errors
    /// If the extension of the tree file cannot be part of a name.
    pub fn new(source: &TreeSource) -> Result<Self, IdError> {
        let mut files: Vec<(SourceName, Vec<u8>)> = Vec::new();
        let mut put = |file: &str, text: &str| -> Result<(), IdError> {
            files.push((file.parse()?, text.as_bytes().to_vec()));
            Ok(())
        };
        put(&tree_file(&source.text.name), &source.text.text)?;
        let file = |place: usize| format!("script-{}.yaml", place + 1);
        let mut scripts = BTreeMap::new();
        for (place, Text { name, text }) in source.scripts.iter().enumerate() {
            put(&file(place), text)?;
            scripts.insert(file(place), name.clone());
        }
        let models = source.parts.iter().map(|(model, place)| (model.clone(), file(*place))).collect();
        let tree_file = source::plain(Path::new(&source.text.name));
        let (called, tools) = (source.called.clone(), source.file.command_tools.clone());
        let list = List { tree_file, scripts, models, called, tools };
        let list = serde_json::to_string_pretty(&list);
        put(LIST, &list.unwrap_or_else(|_| unreachable!("a list of names can be written")))?;
        let hashes = files.iter().map(|(name, bytes)| (name, BlobHash::digest(bytes)));
        let fingerprint = fingerprint_of(hashes);
        Ok(Self { files, fingerprint })
    }
}

/// The hash of source files, as `b3sum` would list them.
fn fingerprint_of<'s>(files: impl Iterator<Item = (&'s SourceName, BlobHash)>) -> BlobHash {
    let lines: String = files.map(|(name, hash)| format!("{hash}  {name}\n")).collect();
    BlobHash::digest(lines.as_bytes())
}

/// Where a tree's files are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyPlace {
    /// In its journal.
    Journal,
    /// In a folder of an older release.
    Folder(PathBuf),
}

/// Files from which a tree cannot be resumed.
#[derive(Debug, thiserror::Error)]
#[error("this tree cannot resume from {}", match place {
    CopyPlace::Journal => "the files in its journal: restore the journal from a copy".to_owned(),
    CopyPlace::Folder(folder) => format!("the files in {}: restore them", folder.display()),
})]
pub struct UnreadCopy {
    /// The home.
    pub home: PathBuf,
    /// The tree.
    pub tree: TreeId,
    /// Where they are.
    pub place: CopyPlace,
    /// What is wrong.
    #[source]
    pub why: Box<ChangedCopy>,
}

/// What is wrong with kept files.
#[derive(Debug, thiserror::Error)]
pub enum ChangedCopy {
    /// One cannot be read.
    #[error("cannot read `{file}`")]
    Unread {
        /// The file.
        file: String,
        /// The cause.
        #[source]
        why: UnreadText,
    },
    /// The list of checksums is not one.
    #[error("`checksums` was changed: `{line}` is not a checksum and a file name")]
    Checksums {
        /// Its line.
        line: String,
    },
    /// One is not as it was.
    #[error("`{file}` was changed after the tree started")]
    Changed {
        /// The file.
        file: String,
    },
    /// One is missing.
    #[error("`{file}` is not stored")]
    Missing {
        /// The file.
        file: String,
    },
    /// One is not text.
    #[error("`{file}` is not UTF-8")]
    NotText {
        /// The file.
        file: String,
    },
    /// The journal cannot be read, or its bytes are not what it names.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// The list of files is not one.
    #[error(transparent)]
    List(#[from] serde_json::Error),
    /// The tree file is wrong.
    #[error(transparent)]
    TreeFile(#[from] FileError),
    /// The scripts are wrong.
    #[error(transparent)]
    Scripts(#[from] SourceDriversError),
    /// A file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why the models of a stored tree cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum StoredDriversError {
    /// A key is missing, or the file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// Providers cannot be called from here.
    #[error(transparent)]
    Http(#[from] HttpSetupError),
}

/// What a stored tree is resumed with.
pub struct ResumeSource {
    /// Which of its models answer from scripts.
    pub scripted: Scripted,
    /// The tree file, if its providers are called.
    pub called: Option<CalledFile>,
    /// The text of the tree file.
    pub text: Text,
    /// The hash of all that was read.
    pub source: Option<BlobHash>,
    /// What starts its processes.
    pub boxed: BoxedTools,
    /// Those that answer from scripts.
    drivers: Drivers,
}

/// A tree file whose models are called.
pub struct CalledFile {
    /// The file.
    pub file: TreeFile,
    /// Its text.
    pub text: Text,
    /// The models that are called.
    pub models: Vec<ModelName>,
}

impl ResumeSource {
    /// The models and tools of the tree. A model that its provider answered needs its key again.
    pub fn drivers(self, user: &Variables) -> Result<Drivers, StoredDriversError> {
        self.drivers_beside(user, &OwnDrivers::default())
    }

    /// The same in a program that brings some of its models itself.
    pub fn drivers_beside(self, user: &Variables, own: &OwnDrivers) -> Result<Drivers, StoredDriversError> {
        let Some(CalledFile { file, models, .. }) = self.called else { return Ok(self.drivers) };
        let models: Vec<ModelName> = models.into_iter().filter(|model| !own.has_model(model)).collect();
        let (drivers, errors) = providers::with_models(self.drivers, &file, &models, user)?;
        match errors.into_iter().next() {
            Some(error) => Err(FileError::from(error).into()),
            None => Ok(drivers),
        }
    }
}

/// Every stored file of a tree, with the hash of all.
pub(super) struct SourceTexts {
    pub(super) texts: BTreeMap<String, String>,
    pub(super) source: BlobHash,
}

/// What a stored tree is resumed with. What is not as it was when the tree started is refused.
pub async fn read(home: &Path, journal: &dyn Journal, tree: TreeId) -> Result<ResumeSource, UnreadCopy> {
    let unread = |place: CopyPlace| {
        move |why: ChangedCopy| UnreadCopy { home: home.to_owned(), tree, place, why: Box::new(why) }
    };
    let files = started_sources(journal, tree).await;
    let files = files.map_err(ChangedCopy::from).map_err(unread(CopyPlace::Journal))?;
    let (place, texts) = match files.is_empty() {
        false => (CopyPlace::Journal, journal_texts(journal, tree, &files).await),
        true => (CopyPlace::Folder(pending_folders::copies(home, tree)), old_copies::read(home, tree)),
    };
    texts.and_then(|texts| kept(home, texts)).map_err(unread(place))
}

/// The hash of what a journal says that a tree is started from. None if it has no files.
pub async fn fingerprint(journal: &dyn Journal, tree: TreeId) -> Result<Option<BlobHash>, JournalFault> {
    let files = started_sources(journal, tree).await?;
    let hashes = files.iter().map(|file| (&file.name, file.blob.hash.clone()));
    Ok((!files.is_empty()).then(|| fingerprint_of(hashes)))
}

/// Which models of a stored tree answer from a file; none if that is no longer known.
pub async fn scripted(home: &Path, journal: &dyn Journal, tree: TreeId) -> Option<Scripted> {
    let files = started_sources(journal, tree).await.ok()?;
    let list = match files.iter().find(|file| file.name.as_str() == LIST) {
        Some(file) => String::from_utf8(source_bytes(journal, tree, file).await.ok()?).ok()?,
        None => old_copies::list(home, tree)?,
    };
    Some(serde_json::from_str::<List>(&list).ok()?.scripted())
}

async fn journal_texts(
    journal: &dyn Journal,
    tree: TreeId,
    files: &[SourceFile],
) -> Result<SourceTexts, ChangedCopy> {
    let mut texts = BTreeMap::new();
    for file in files {
        let bytes = source_bytes(journal, tree, file).await?;
        let name = file.name.as_str().to_owned();
        let text = String::from_utf8(bytes).map_err(|_| ChangedCopy::NotText { file: name.clone() })?;
        texts.insert(name, text);
    }
    let source = fingerprint_of(files.iter().map(|file| (&file.name, file.blob.hash.clone())));
    Ok(SourceTexts { texts, source })
}

fn kept(home: &Path, files: SourceTexts) -> Result<ResumeSource, ChangedCopy> {
    let SourceTexts { texts, source } = files;
    let text = |file: &str| texts.get(file).ok_or_else(|| ChangedCopy::Missing { file: file.to_owned() });
    let list: List = serde_json::from_str(text(LIST)?)?;
    let mut scripts = Vec::new();
    let mut places = BTreeMap::new();
    for (file, name) in &list.scripts {
        places.insert(file.as_str(), scripts.len());
        scripts.push(Text { name: name.clone(), text: text(file)?.clone() });
    }
    let part = |(model, file): (&ModelName, &String)| {
        let place = places.get(file.as_str()).copied();
        place.map(|place| (model.clone(), place)).ok_or_else(|| ChangedCopy::Missing { file: file.clone() })
    };
    let parts = list.models.iter().map(part).collect::<Result<Parts, ChangedCopy>>()?;
    // Its journal has what its agents may call.
    let (drivers, boxed) =
        source::with_tools(source::drivers(&scripts, &parts)?, home, &list.tools, |_| true);
    // Trees of scripts alone are not read again: a newer version may read tree files in a stricter way.
    let text = Text { name: list.tree_file.clone(), text: text(&tree_file(&list.tree_file))?.clone() };
    let called = match list.called.is_empty() {
        true => None,
        false => {
            let file = TreeFile::parse_with(&list.tree_file, &text.text, &Catalog::default())?;
            Some(CalledFile { file, text: text.clone(), models: list.called.clone() })
        }
    };
    Ok(ResumeSource { scripted: list.scripted(), called, text, source: Some(source), drivers, boxed })
}

impl List {
    fn scripted(&self) -> Scripted {
        Scripted::new(self.models.keys().cloned().collect(), &self.called)
    }
}

/// The file name of a tree file's copy: its extension is that of the format.
fn tree_file(name: &str) -> String {
    let ending = Path::new(name).extension().unwrap_or_default().to_string_lossy();
    format!("tree.{}", ending.to_ascii_lowercase())
}
