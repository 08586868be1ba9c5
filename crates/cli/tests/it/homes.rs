//! What counts as a home: links, foreign files, foreign databases and other users' folders are refused, and nothing
//! outside a home is written, truncated or removed. New homes are private to their owner.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use spinney_kernel::primitives::BlobHash;

use crate::scripts::{HANGS, SAYS};
use crate::test_folder::TestFolder;

/// An unprivileged user.
const SOMEBODY: u32 = 65_534;

/// A stage with a home in which one tree was run.
fn used() -> (TestFolder, String) {
    let stage = TestFolder::new();
    let tree = stage.tree("", SAYS);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    (stage, tree)
}

/// Every file and folder below a folder, with mode and hash. Links are not followed.
pub(crate) fn everything(folder: &Path) -> Vec<(PathBuf, u32, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            if about.is_dir() {
                open.push(path.clone());
            }
            let bytes = if about.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.push((path, about.mode(), BlobHash::digest(&bytes).to_string()));
        }
    }
    found.sort();
    found
}

/// Whether the tests run as root, whom permissions do not bind.
pub(crate) fn is_root(stage: &TestFolder) -> bool {
    fs::metadata(stage.folder()).unwrap().uid() == 0
}

/// Commands that write in a home.
fn writing(tree: &str) -> Vec<Vec<&str>> {
    vec![vec!["run", tree], vec!["rm", "last"], vec!["cancel", "last"]]
}

/// G14 (links): the lock of a home is a link to a user's file.
#[test]
fn a_lock_that_is_a_link_is_refused_and_its_target_left_alone() {
    let (stage, tree) = used();
    let precious = stage.file("precious.txt", "years of work\n");
    let lock = stage.home().join("lock");
    fs::remove_file(&lock).unwrap();
    symlink(&precious, &lock).unwrap();
    for args in writing(&tree) {
        let refused = stage.spinney(&args);
        assert_eq!(refused.code, Some(2), "{args:?} {}", refused.err);
        assert!(refused.err.contains("lock is a link"), "{args:?} {}", refused.err);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "years of work\n", "{args:?}");
    }
}

/// G14 (links): a hard link to a user's file, or a file that was never a lock.
#[test]
fn a_lock_that_is_another_file_is_not_emptied() {
    let (stage, tree) = used();
    let precious = stage.file("precious.txt", "1234\n");
    let lock = stage.home().join("lock");
    fs::remove_file(&lock).unwrap();
    fs::hard_link(&precious, &lock).unwrap();
    let refused = stage.spinney(&["run", &tree]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("is a hard link"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "1234\n");
    fs::remove_file(&lock).unwrap();
    fs::write(&lock, "years of work\n").unwrap();
    let refused = stage.spinney(&["run", &tree]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("not a Spinney lock"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&lock).unwrap(), "years of work\n");
}

/// G14 (links): all other files and folders of a home.
#[test]
fn no_file_of_a_home_is_reached_through_a_link() {
    for name in [
        "journal.sqlite3",
        "journal.sqlite3-wal",
        "journal.sqlite3-shm",
        "id",
        "journal.head",
        "trees",
        "workspace",
        "control",
    ] {
        let (stage, tree) = used();
        let outside = stage.folder().join("outside");
        fs::create_dir(&outside).unwrap();
        let (from, to) = (stage.home().join(name), outside.join(name));
        if from.exists() {
            fs::rename(&from, &to).unwrap();
        } else {
            fs::write(&to, "").unwrap();
        }
        symlink(&to, &from).unwrap();
        let before = everything(&outside);
        let refused = stage.spinney(&["run", &tree]);
        assert_eq!(refused.code, Some(2), "{name}: {}", refused.err);
        assert!(refused.err.contains(&format!("{name} is a link")), "{name}: {}", refused.err);
        assert_eq!(everything(&outside), before, "{name}");
        assert!(from.is_symlink(), "{name}");
    }
}

/// The home itself may be a link, such as to another disk.
#[test]
fn a_home_may_be_a_link_to_a_folder() {
    let stage = TestFolder::new();
    let elsewhere = stage.folder().join("other disk");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, stage.home()).unwrap();
    let run = stage.spinney(&["run", &stage.tree("", SAYS)]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(elsewhere.join("journal.sqlite3").is_file());
    assert_eq!(stage.spinney(&["ps", "--json"]).json().len(), 1);
}

/// G14 (foreign files): a folder that is not a home does not become one, whatever it contains.
#[test]
fn a_folder_that_is_no_home_is_refused_and_left_alone() {
    let stage = TestFolder::new().at("debian");
    let tree = stage.tree("", SAYS);
    let files: [&[(&str, &str)]; 5] = [
        &[("control", "Source: spinney\n"), ("rules", "#!/usr/bin/make -f\n")],
        &[("control", "Source: spinney\n")],
        &[("control", ""), ("lock", "")],
        &[("lock", "years of work\n")],
        &[("notes.txt", "mine\n"), ("lock", "12\n")],
    ];
    for files in files {
        fs::create_dir(stage.home()).unwrap();
        fs::set_permissions(stage.home(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, text) in files {
            fs::write(stage.home().join(name), text).unwrap();
        }
        let before = (fs::metadata(stage.home()).unwrap().mode(), everything(stage.home()));
        for args in writing(&tree) {
            let refused = stage.spinney(&args);
            assert_eq!(refused.code, Some(2), "{args:?} {}", refused.err);
            assert!(refused.err.contains("debian"), "{args:?} {}", refused.err);
            let after = (fs::metadata(stage.home()).unwrap().mode(), everything(stage.home()));
            assert_eq!(after, before, "{args:?}");
        }
        fs::remove_dir_all(stage.home()).unwrap();
    }
}

/// The files of a process that died before it created the journal do not prevent a home.
#[test]
fn a_home_that_was_just_begun_is_taken() {
    for left in [&[][..], &["lock"], &["lock", "journal.sqlite3"]] {
        let stage = TestFolder::new();
        fs::create_dir(stage.home()).unwrap();
        for name in left {
            fs::write(stage.home().join(name), "").unwrap();
        }
        let run = stage.spinney(&["run", &stage.tree("", SAYS)]);
        assert_eq!(run.code, Some(0), "{left:?} {}", run.err);
    }
}

/// The offset of `application_id` in a database's header.
const MARK: std::ops::Range<usize> = 68..72;

/// Changes the `application_id` of a database, and returns the previous one.
fn mark(stage: &TestFolder, mark: [u8; 4]) -> [u8; 4] {
    let file = stage.home().join("journal.sqlite3");
    let mut bytes = fs::read(&file).unwrap();
    let before = bytes[MARK].try_into().unwrap();
    bytes[MARK].copy_from_slice(&mark);
    fs::write(file, bytes).unwrap();
    before
}

/// G14 (foreign database): another program's database is neither written nor read as ours.
#[test]
fn a_foreign_database_is_refused_and_left_alone() {
    let (stage, tree) = used();
    mark(&stage, *b"mine");
    let before = everything(stage.home());
    for args in writing(&tree).into_iter().chain([vec!["ps"]]) {
        let refused = stage.spinney(&args);
        assert_eq!(refused.code, Some(2), "{args:?} {}", refused.err);
        assert!(refused.err.contains("is not a Spinney journal"), "{args:?} {}", refused.err);
        assert_eq!(everything(stage.home()), before, "{args:?}");
    }
}

/// A home from an earlier version has no mark; it is recognised and marked.
#[test]
fn a_home_without_a_mark_is_known_by_its_tables_and_marked() {
    let (stage, tree) = used();
    let ours = mark(&stage, [0; 4]);
    assert_ne!(ours, [0; 4]);
    assert_eq!(stage.spinney(&["ps", "--json"]).json().len(), 1);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    assert_eq!(mark(&stage, ours), ours);
    assert_eq!(stage.spinney(&["ps", "--json"]).json().len(), 2);
}

/// G14 (private): whatever the umask, during a run and after it, also in a home with wider permissions.
#[test]
fn a_home_is_private_to_its_owner_whatever_the_umask() {
    let stage = TestFolder::new();
    let tree = stage.tree("", HANGS);
    let open = |path: &Path| -> Vec<(PathBuf, String)> {
        let all = everything(path).into_iter().map(|(path, mode, _)| (path, mode));
        all.chain([(path.to_owned(), fs::metadata(path).unwrap().mode())])
            .filter(|(_, mode)| mode & 0o077 != 0)
            .map(|(path, mode)| (path, format!("{mode:o}")))
            .collect()
    };
    for round in 0..2 {
        let mut running = stage.play_unmasked(&["run", &tree]);
        running.until("starts");
        let socket = fs::symlink_metadata(stage.home().join("control")).unwrap();
        assert!(socket.file_type().is_socket());
        assert_eq!(open(stage.home()), [], "round {round}");
        assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
        assert_eq!(running.end().code, Some(4));
        assert_eq!(open(stage.home()), [], "round {round}");
        // As an earlier version created it.
        for (path, mode, _) in everything(stage.home()) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o066)).unwrap();
        }
        fs::set_permissions(stage.home(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(stage.spinney(&["checkpoint", "clean"]).code, Some(0));
        let left = open(stage.home());
        // Inside a folder that no other user may enter, modes do not matter.
        let deep = |path: &Path| path.strip_prefix(stage.home()).unwrap().components().count() > 1;
        // And it is no secret that git ignores it.
        let is_public = |path: &Path| path.ends_with(".gitignore");
        assert!(left.iter().all(|(path, _)| deep(path) || is_public(path)), "{left:?}");
        for (path, mode, _) in everything(stage.home()) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode & !0o077)).unwrap();
        }
    }
}

/// A world-writable folder cannot be a home, and keeps its mode.
#[test]
fn a_folder_that_everybody_shares_is_no_home() {
    let stage = TestFolder::new();
    fs::create_dir(stage.home()).unwrap();
    fs::set_permissions(stage.home(), fs::Permissions::from_mode(0o1777)).unwrap();
    let refused = stage.spinney(&["run", &stage.tree("", SAYS)]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert_eq!(fs::metadata(stage.home()).unwrap().mode() & 0o7777, 0o1777);
    assert_eq!(everything(stage.home()), []);
}

/// G14 (another owner): a user who could write there is refused, and the message names the owner.
#[test]
fn a_home_of_another_owner_is_not_written() {
    let (stage, tree) = used();
    let (us, is_root) = (fs::metadata(stage.folder()).unwrap().uid(), is_root(&stage));
    // Users who cannot give files away test with a folder of the system.
    let (stage, owner) = if is_root {
        for path in
            everything(stage.home()).into_iter().map(|(path, ..)| path).chain([stage.home().to_owned()])
        {
            lchown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        }
        (stage, SOMEBODY)
    } else {
        (stage.at("/usr"), 0)
    };
    let before = if is_root { everything(stage.home()) } else { Vec::new() };
    let refused = stage.spinney(&["run", &tree]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    let whose = format!("belongs to user {owner} and this process runs as user {us}");
    assert!(refused.err.contains(&whose), "{}", refused.err);
    if is_root {
        for args in writing(&tree) {
            let refused = stage.spinney(&args);
            assert_eq!(refused.code, Some(2), "{args:?} {}", refused.err);
            assert!(refused.err.contains(&whose), "{args:?} {}", refused.err);
            assert_eq!(everything(stage.home()), before, "{args:?}");
        }
    }
}

/// Damages a home; the folder is outside of it.
type Spoil<'a> = &'a dyn Fn(&TestFolder, &Path);

/// G14: a home with links, foreign files, another owner or a foreign database is refused by every command that writes;
/// nothing inside or outside changes. A new home is private. The tests above cover each case in depth.
#[test]
fn g14_nothing_outside_a_home_is_written_or_emptied_and_homes_are_private() {
    let link = |stage: &TestFolder, name: &str, to: &Path| {
        let path = stage.home().join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            let _ = fs::remove_file(&path);
        }
        symlink(to, path).unwrap();
    };
    let hostile: [(&str, Spoil<'_>); 6] = [
        ("a linked lock", &|stage, outside| link(stage, "lock", &outside.join("precious.txt"))),
        ("a linked count of commits", &|stage, outside| {
            link(stage, "journal.head", &outside.join("precious.txt"));
        }),
        ("a linked folder", &|stage, outside| link(stage, "trees", outside)),
        ("a file in the socket's place", &|stage, _| {
            fs::write(stage.home().join("control"), "mine").unwrap();
        }),
        ("a foreign database", &|stage, _| {
            mark(stage, *b"mine");
        }),
        ("another owner", &|stage, _| {
            // Only root can give files away; for other users, root's own folder has another owner.
            if is_root(stage) {
                lchown(stage.home(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
            } else {
                fs::remove_dir_all(stage.home()).unwrap();
                symlink("/usr", stage.home()).unwrap();
            }
        }),
    ];
    for (what, spoil) in hostile {
        let (stage, tree) = used();
        let open = |path: &Path| fs::metadata(path).unwrap().mode() & 0o077;
        assert_eq!((open(stage.home()), open(&stage.home().join("journal.sqlite3"))), (0, 0));
        let outside = stage.folder().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious.txt"), "years of work\n").unwrap();
        spoil(&stage, &outside);
        let is_ours = !stage.home().is_symlink();
        // Readers share an index file that SQLite creates and removes.
        let inside = || {
            let mut all = everything(stage.home());
            all.retain(|(path, ..)| !path.to_string_lossy().contains("journal.sqlite3-"));
            all
        };
        let before = (everything(&outside), is_ours.then(inside));
        for args in writing(&tree) {
            let refused = stage.spinney(&args);
            assert_eq!(refused.code, Some(2), "{what}, {args:?}: {}", refused.err);
            let after = (everything(&outside), is_ours.then(inside));
            assert!(after == before, "{what}, {args:?} changed something");
        }
    }
}
