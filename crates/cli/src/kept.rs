//! What a home keeps beside the journal: for each tree the file and the scripts as they were when it started, so that
//! it can be taken up again by anyone, and a later edit does not change it.
//!
//! ```text
//! <home>/trees/<tree>/kept.json        which model answers from which script
//!                     tree.yaml        the tree file, in its own format
//!                     script-1.yaml …  the scripts
//!                     checksums        what each of these was, as `b3sum --check` reads it
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use spinney::Drivers;
use spinney::tree_file::FILE_BYTES_MAX;
use spinney_kernel::id::{BlobHash, ModelName, TreeId};
use spinney_testkit::scripted::SCRIPT_BYTES_MAX;

use crate::hint::command;
use crate::ids::short;
use crate::source::{self, Parts, Source, Text};

const FOLDER: &str = "trees";
const LIST: &str = "kept.json";
const CHECKSUMS: &str = "checksums";
/// Before it is whole, a tree's folder has a name that begins like this.
const UNFINISHED: &str = ".unfinished-";
/// Largest list: far more models than a tree may have.
const LIST_BYTES_MAX: usize = 1024 * 1024;
/// Largest of the files that are kept.
const KEPT_BYTES_MAX: usize = {
    let most = if SCRIPT_BYTES_MAX > FILE_BYTES_MAX { SCRIPT_BYTES_MAX } else { FILE_BYTES_MAX };
    if most > LIST_BYTES_MAX { most } else { LIST_BYTES_MAX }
};

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

/// Forgets what was kept for a tree that did not start, or is gone.
pub(crate) fn forget(home: &Path, tree: TreeId) {
    // What cannot be removed is a few kilobytes that nobody reads.
    let _ = fs::remove_dir_all(folder(home, tree));
}

/// Keeps for a branch what its origin was started from: all of it or nothing.
pub(crate) fn copy(home: &Path, from: TreeId, to: TreeId) -> Result<()> {
    let unfinished = home.join(FOLDER).join(format!("{UNFINISHED}{to}"));
    let copied = || -> Result<()> {
        sweep(&home.join(FOLDER))?;
        fs::create_dir_all(&unfinished)?;
        for (file, text) in unchanged(&folder(home, from))? {
            fs::write(unfinished.join(file), text)?;
        }
        fs::copy(folder(home, from).join(CHECKSUMS), unfinished.join(CHECKSUMS))?;
        Ok(fs::rename(&unfinished, folder(home, to))?)
    };
    copied().with_context(|| format!("cannot keep for a branch what {} keeps", folder(home, from).display()))
}

/// The models and tools of a stored tree. Answers from a script that was changed would be another tree's: what is not
/// as it was when the tree started is refused.
pub(crate) fn drivers(home: &Path, tree: TreeId) -> Result<Drivers> {
    let folder = folder(home, tree);
    let read = || -> Result<Drivers> {
        let texts = unchanged(&folder)?;
        let text = |file: &str| texts.get(file).ok_or_else(|| anyhow!("`{file}` is not kept"));
        let list: List = serde_json::from_str(text(LIST)?)?;
        let mut scripts = Vec::new();
        let mut places = BTreeMap::new();
        for (file, name) in &list.scripts {
            places.insert(file.as_str(), scripts.len());
            scripts.push(Text { name: name.clone(), text: text(file)?.clone() });
        }
        let part = |(model, file): (&ModelName, &String)| {
            let place = places.get(file.as_str()).copied();
            place.map(|place| (model.clone(), place)).ok_or_else(|| anyhow!("`{file}` is not kept"))
        };
        let parts = list.models.iter().map(part).collect::<Result<Parts>>()?;
        // What its agents may call stands in its journal.
        Ok(source::with_files(source::drivers(&scripts, &parts)?, home, |_| true))
    };
    read().with_context(|| {
        let cancel = command(home, &format!("cancel {}", short(tree)));
        let kept = folder.display();
        format!(
            "this tree cannot go on from what {kept} keeps: put it back as it was, or give up with {cancel}"
        )
    })
}

/// Every file that is kept for a tree, if each is what it was.
fn unchanged(folder: &Path) -> Result<BTreeMap<String, String>> {
    let read = |file: &str, bytes_max| {
        source::read_text(&folder.join(file), bytes_max).with_context(|| format!("cannot read `{file}`"))
    };
    let mut texts = BTreeMap::new();
    for line in read(CHECKSUMS, LIST_BYTES_MAX)?.lines() {
        let wrong = || anyhow!("`{CHECKSUMS}` was changed: `{line}` is no checksum and file name");
        let (checksum, file) = line.split_once("  ").ok_or_else(wrong)?;
        if Path::new(file).file_name().is_none_or(|plain| plain != file) {
            return Err(wrong());
        }
        let text = read(file, KEPT_BYTES_MAX)?;
        if BlobHash::of(text.as_bytes()).as_str() != checksum {
            bail!("`{file}` was changed after the tree started");
        }
        texts.insert(file.to_owned(), text);
    }
    Ok(texts)
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
    let mut checksums = String::new();
    let mut put = |file: &str, text: &str| {
        checksums += &format!("{}  {file}\n", BlobHash::of(text.as_bytes()));
        fs::write(folder.join(file), text)
    };
    let ending = Path::new(&source.text.name).extension().unwrap_or_default().to_string_lossy();
    put(&format!("tree.{}", ending.to_ascii_lowercase()), &source.text.text)?;
    let file = |place: usize| format!("script-{}.yaml", place + 1);
    let mut scripts = BTreeMap::new();
    for (place, Text { name, text }) in source.scripts.iter().enumerate() {
        put(&file(place), text)?;
        scripts.insert(file(place), name.clone());
    }
    let models = source.parts.iter().map(|(model, place)| (model.clone(), file(*place))).collect();
    let list = List { tree_file: source::plain(Path::new(&source.text.name)), scripts, models };
    put(LIST, &(serde_json::to_string_pretty(&list)? + "\n"))?;
    fs::write(folder.join(CHECKSUMS), checksums)
}
