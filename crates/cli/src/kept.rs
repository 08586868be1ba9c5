//! What a home keeps beside the journal: for each tree the file and the scripts as they were when it started, so that
//! it can be taken up again by anyone, and a later edit does not change it.
//!
//! ```text
//! <home>/trees/<tree>/kept.json        which model answers from which script
//!                     tree.yaml        the tree file, in its own format
//!                     script-1.yaml …  the scripts
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use spinney::Drivers;
use spinney_kernel::id::{ModelName, TreeId};
use spinney_testkit::scripted::SCRIPT_BYTES_MAX;

use crate::source::{self, Parts, Source, Text};

const FOLDER: &str = "trees";
const LIST: &str = "kept.json";
/// Before it is whole, a tree's folder has a name that begins like this.
const UNFINISHED: &str = ".unfinished-";
/// Largest list: far more models than a tree may have.
const LIST_BYTES_MAX: usize = 1024 * 1024;

/// What is in a tree's folder.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// The tree file's name when it was read.
    tree_file: String,
    /// The scripts in here, with the names they had.
    scripts: BTreeMap<String, String>,
    /// Which model answers from which of them.
    models: BTreeMap<ModelName, String>,
}

/// Keeps what a tree was started from: all of it or nothing. Only the process that writes in the home may.
pub(crate) fn keep(home: &Path, tree: TreeId, source: &Source) -> Result<()> {
    let folder = home.join(FOLDER);
    let unfinished = folder.join(format!("{UNFINISHED}{tree}"));
    let written = sweep(&folder).and_then(|()| {
        fs::create_dir_all(&unfinished)?;
        write(&unfinished, source)?;
        fs::rename(&unfinished, folder.join(tree.to_string()))
    });
    written.with_context(|| format!("cannot keep the tree file in {}", folder.display()))
}

/// Forgets what was kept for a tree that did not start.
pub(crate) fn forget(home: &Path, tree: TreeId) {
    // What cannot be removed is a few kilobytes that nobody reads.
    let _ = fs::remove_dir_all(folder(home, tree));
}

/// The models and tools of a stored tree.
pub(crate) fn drivers(home: &Path, tree: TreeId) -> Result<Drivers> {
    let folder = folder(home, tree);
    let read = || -> Result<Drivers> {
        let list: List = serde_json::from_str(&source::read_text(&folder.join(LIST), LIST_BYTES_MAX)?)?;
        let mut texts = Vec::new();
        let mut places = BTreeMap::new();
        for (file, name) in &list.scripts {
            let plain = Path::new(file).file_name().is_some_and(|plain| plain == file.as_str());
            let path = plain.then(|| folder.join(file)).ok_or_else(|| anyhow!("`{file}` is no file name"))?;
            places.insert(file.as_str(), texts.len());
            let text = source::read_text(&path, SCRIPT_BYTES_MAX).with_context(|| file.clone())?;
            texts.push(Text { name: name.clone(), text });
        }
        let part = |(model, file): (&ModelName, &String)| {
            let place = places.get(file.as_str()).copied();
            place.map(|place| (model.clone(), place)).ok_or_else(|| anyhow!("`{file}` is not kept"))
        };
        let parts = list.models.iter().map(part).collect::<Result<Parts>>()?;
        source::drivers(&texts, &parts)
    };
    read().with_context(|| format!("cannot read what {} keeps for this tree", folder.display()))
}

fn folder(home: &Path, tree: TreeId) -> PathBuf {
    home.join(FOLDER).join(tree.to_string())
}

/// Removes what a process left that died while it wrote.
fn sweep(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn write(folder: &Path, source: &Source) -> std::io::Result<()> {
    let ending = Path::new(&source.text.name).extension().unwrap_or_default().to_string_lossy();
    fs::write(folder.join(format!("tree.{}", ending.to_ascii_lowercase())), &source.text.text)?;
    let file = |place: usize| format!("script-{}.yaml", place + 1);
    let mut scripts = BTreeMap::new();
    for (place, Text { name, text }) in source.scripts.iter().enumerate() {
        fs::write(folder.join(file(place)), text)?;
        scripts.insert(file(place), name.clone());
    }
    let models = source.parts.iter().map(|(model, place)| (model.clone(), file(*place))).collect();
    let list = List { tree_file: source::plain(Path::new(&source.text.name)), scripts, models };
    fs::write(folder.join(LIST), serde_json::to_string_pretty(&list)? + "\n")
}
