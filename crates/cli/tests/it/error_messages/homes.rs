//! Homes that cannot be used, and trees whose files were changed.

use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::{done, told, typed};
use crate::rewritten::into_older;
use crate::scripts::{ASKS, SAYS};
use crate::test_folder::TestFolder;

/// Where SQLite keeps the version of a schema, and whose file it is.
const VERSION: Range<usize> = 60..64;
const MARK: Range<usize> = 68..72;

fn used() -> TestFolder {
    let stage = TestFolder::new();
    done(&stage, &format!("spinney run {}", stage.tree("", SAYS)));
    stage
}

fn overwrite(file: &Path, place: Range<usize>, with: &[u8]) {
    let mut bytes = fs::read(file).unwrap();
    bytes[place].copy_from_slice(with);
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_folder_that_cannot_be_a_home_is_named_with_the_reason() {
    let stage = TestFolder::new();
    stage.tree("", SAYS);
    stage.file("a-file", "mine");
    fs::create_dir(stage.folder().join("documents")).unwrap();
    stage.file("documents/letter.txt", "mine");
    fs::create_dir(stage.folder().join("shared")).unwrap();
    fs::set_permissions(stage.folder().join("shared"), Permissions::from_mode(0o1777)).unwrap();
    fs::create_dir(stage.folder().join("empty")).unwrap();
    let lines = [
        "spinney --home a-file run tree.yaml",
        "spinney --home a-file ps",
        "spinney --home documents run tree.yaml",
        "spinney --home documents ps",
        "spinney --home shared run tree.yaml",
        "spinney --home empty ps",
        "spinney --home nowhere/below ps",
        "spinney --home a-file/below run tree.yaml",
        "spinney --home '' run tree.yaml",
        "SPINNEY_HOME=documents spinney run tree.yaml",
        "spinney --home documents exec -- true",
        "spinney --home documents --accept-loss ps",
        "spinney --home a-file doctor",
        "spinney --home documents doctor",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
}

#[test]
fn a_home_with_a_file_that_is_not_ours_is_left_alone() {
    let mut all = Vec::new();
    let mut spoiled = |what: &str, spoil: &dyn Fn(&TestFolder), lines: &[&str]| {
        let stage = used();
        spoil(&stage);
        all.push(format!("# {what}\n{}", told(&stage, lines)));
    };
    let both = ["spinney run tree.yaml", "spinney ps"];
    let write = ["spinney run tree.yaml"];
    spoiled(
        "the lock is a link",
        &|stage| {
            fs::remove_file(stage.home().join("lock")).unwrap();
            symlink(stage.file("mine", ""), stage.home().join("lock")).unwrap();
        },
        &write,
    );
    spoiled(
        "the lock is a hard link",
        &|stage| fs::hard_link(stage.home().join("lock"), stage.folder().join("lock")).unwrap(),
        &write,
    );
    spoiled(
        "the lock is a file of somebody else",
        &|stage| fs::write(stage.home().join("lock"), "a letter to mother").unwrap(),
        &write,
    );
    spoiled("the socket is a file", &|stage| fs::write(stage.home().join("control"), "").unwrap(), &write);
    spoiled(
        "the folder of exec is a file",
        &|stage| fs::write(stage.home().join("runs"), "").unwrap(),
        &["spinney exec -- true"],
    );
    let journal = |stage: &TestFolder| stage.home().join("journal.sqlite3");
    spoiled(
        "the journal is a folder",
        &|stage| {
            fs::remove_file(journal(stage)).unwrap();
            fs::create_dir(journal(stage)).unwrap();
        },
        &both,
    );
    spoiled("the journal is of another program", &|stage| overwrite(&journal(stage), MARK, b"mine"), &both);
    spoiled(
        "the journal is of a later version",
        &|stage| overwrite(&journal(stage), VERSION, &[0, 0, 0, 99]),
        &both,
    );
    spoiled("the journal is no database", &|stage| fs::write(journal(stage), "mine").unwrap(), &both);
    spoiled(
        "the journal is cut",
        &|stage| {
            let bytes = fs::read(journal(stage)).unwrap();
            fs::write(journal(stage), &bytes[..bytes.len() / 2]).unwrap();
        },
        &both,
    );
    spoiled(
        "the count of commits is not one",
        &|stage| fs::write(stage.home().join("journal.head"), "mine").unwrap(),
        &both,
    );
    spoiled("the journal is missing", &|stage| fs::remove_file(journal(stage)).unwrap(), &both);
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_tree_whose_stored_files_were_changed_is_not_resumed() {
    let stage = TestFolder::new();
    let run = typed(&stage, &format!("spinney run {}", stage.tree("ask_human", ASKS)));
    assert_eq!(run.code, Some(5), "{}", run.err);
    into_older(&stage);
    let tree = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    let kept = stage.home().join("trees").join(&tree);
    let mut all = Vec::new();
    let mut spoiled = |file: &str, text: Option<&str>| {
        let path = kept.join(file);
        let before = fs::read(&path).unwrap();
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let what = if text.is_some() { "changed" } else { "removed" };
        all.push(format!("# {file} was {what}\n{}", told(&stage, &["spinney resume"])));
        fs::write(&path, before).unwrap();
    };
    let mut names: Vec<String> =
        fs::read_dir(&kept).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    for name in &names {
        spoiled(name, Some("name: mine\n"));
        spoiled(name, None);
    }
    insta::assert_snapshot!(all.join("\n"));
}
