//! Journals that were written again, with a valid chain: as an older release would have left them, or as an attacker would who
//! knows how they are made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use spinney_journal::ChainHash;
use spinney_kernel::primitives::{BlobHash, Seq, TreeId};

use crate::test_folder::TestFolder;

/// Changes the events of a journal, and makes its chain again.
fn rewrite(journal: &Connection, mut change: impl FnMut(TreeId, &mut Value)) {
    let sql = include_str!("../../../store/tests/rewritten/batches.sql");
    let mut rows = journal.prepare(sql).unwrap();
    type Row = (i64, [u8; 16], i64, Option<i64>, String);
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    let batches: Vec<Row> = rows.query_map([], row).unwrap().map(Result::unwrap).collect();
    let mut hashes: BTreeMap<i64, ChainHash> = BTreeMap::new();
    for (id, tree, after, before, body) in batches {
        let tree = TreeId::new(tree);
        let mut batch: Value = serde_json::from_str(&body).unwrap();
        batch["events"].as_array_mut().unwrap().iter_mut().for_each(|event| change(tree, event));
        let body = batch.to_string();
        let before = before.map_or_else(|| ChainHash::start(tree), |before| hashes[&before]);
        let hash = before.then(Seq(after.unsigned_abs()), body.as_bytes());
        let update = include_str!("../../../store/tests/rewritten/set_batch.sql");
        journal.execute(update, params![id, body, hash.bytes()]).unwrap();
        hashes.insert(id, hash);
    }
    for (id, hash) in hashes {
        journal
            .execute(include_str!("../../../store/tests/rewritten/set_head.sql"), params![id, hash.bytes()])
            .unwrap();
    }
}

fn blob(journal: &Connection, hash: &str) -> Vec<u8> {
    journal
        .query_row(include_str!("../../../store/tests/rewritten/blob.sql"), [unhex(hash)], |row| row.get(0))
        .unwrap()
}

fn unhex(hash: &str) -> Vec<u8> {
    (0..32).map(|at| u8::from_str_radix(&hash[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

/// The journal of a home and those of its runs.
fn homes(home: &Path) -> Vec<PathBuf> {
    let runs = fs::read_dir(home.join("exec")).into_iter().flatten().map(|run| run.unwrap().path());
    runs.chain([home.to_owned()]).filter(|place| place.join("journal.sqlite3").exists()).collect()
}

/// Makes a home as a release left it that kept what trees are resumed from in files beside the journal, with the marks of
/// that release.
pub(crate) fn into_older(stage: &TestFolder) {
    if stage.home().join("runs").exists() {
        fs::rename(stage.home().join("runs"), stage.home().join("exec")).unwrap();
    }
    for home in homes(stage.home()) {
        let journal = Connection::open(home.join("journal.sqlite3")).unwrap();
        let mut sources: BTreeMap<TreeId, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
        rewrite(&journal, |tree, event| {
            let kept = event.as_object_mut().unwrap().remove("sources").unwrap_or(json!([]));
            for file in kept.as_array().unwrap() {
                let bytes = blob(&journal, file["blob"]["hash"].as_str().unwrap());
                sources.entry(tree).or_default().insert(file["name"].as_str().unwrap().to_owned(), bytes);
            }
        });
        for (tree, files) in sources {
            mark(stage, tree, &write_files(&home, tree, &files));
        }
    }
}

/// Returns what a mark calls the source.
fn write_files(home: &Path, tree: TreeId, files: &BTreeMap<String, Vec<u8>>) -> BlobHash {
    if let Some(options) = files.get("exec.json") {
        fs::write(home.join("exec.json"), options).unwrap();
        return BlobHash::digest(options);
    }
    let folder = home.join("trees").join(tree.to_string());
    fs::create_dir_all(&folder).unwrap();
    let mut checksums = String::new();
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
        checksums += &format!("{}  {name}\n", BlobHash::digest(bytes));
    }
    fs::write(folder.join("checksums"), &checksums).unwrap();
    BlobHash::digest(checksums.as_bytes())
}

/// Marks a tree, if it has a mark, as one that was just started from this.
fn mark(stage: &TestFolder, tree: TreeId, source: &BlobHash) {
    let homes = stage.folder().join("user/state/spinney/homes");
    for known in fs::read_dir(homes).into_iter().flatten() {
        for path in files_below(&known.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            // A process that was killed may have left the beginning of a new mark.
            if name.starts_with(&tree.to_string()) && !name.contains(".new-") {
                let mut mark: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                mark["events"] = json!(0);
                mark["hash"] = json!("");
                mark["source"] = json!(source.as_str());
                fs::write(&path, mark.to_string()).unwrap();
            }
        }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Replaces a text in a file that the trees of a journal are resumed from.
pub(crate) fn forge_source(home: &Path, name: &str, from: &str, to: &str) {
    let journal = Connection::open(home.join("journal.sqlite3")).unwrap();
    rewrite(&journal, |_, event| {
        let Some(files) = event.get_mut("sources").and_then(Value::as_array_mut) else { return };
        for file in files.iter_mut().filter(|file| file["name"] == name) {
            let text = String::from_utf8(blob(&journal, file["blob"]["hash"].as_str().unwrap())).unwrap();
            assert!(text.contains(from), "{text}");
            let bytes = text.replacen(from, to, 1).into_bytes();
            let hash = BlobHash::digest(&bytes);
            file["blob"] = json!({ "hash": hash.as_str(), "bytes": bytes.len() });
            let insert = include_str!("../../../store/tests/rewritten/add_blob.sql");
            journal.execute(insert, params![unhex(hash.as_str()), bytes]).unwrap();
        }
    });
}

/// Changes the bytes of every source file, and nothing that names them.
pub(crate) fn damage_sources(home: &Path) {
    let journal = Connection::open(home.join("journal.sqlite3")).unwrap();
    journal.execute(include_str!("../../../store/tests/rewritten/damage_blobs.sql"), []).unwrap();
}
