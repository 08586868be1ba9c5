//! What an agent may plant in its workspace to lead us out of it, and what comes of it: nothing outside is written,
//! removed or even looked at.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use spinney_drivers::files::Files;
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::definition::OutputLimits;
use spinney_testkit::TestHome;

use crate::files::Author;
use crate::{Ran, files};

/// How the workspace is planted: from the agent's folder, and a folder outside that must stay as it is.
type Trap = fn(agent: &Path, outside: &Path);

/// Whether the history can be written anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It is ours, so it is made right.
    Mended,
    /// It is not ours to make right, and a fault says so.
    Fault,
}

fn instead(path: &Path, target: &Path) {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
    .and_then(|()| symlink(target, path))
    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn made(done: std::io::Result<()>) {
    done.unwrap_or_else(|error| panic!("{error}"));
}

const PLANTS: [(&str, Trap, Then); 15] = [
    (
        "history is a link to a folder",
        |agent, outside| instead(&agent.join("history"), outside),
        Then::Mended,
    ),
    (
        "history is a link to a sibling's",
        |agent, _| instead(&agent.join("history"), Path::new("../h/history")),
        Then::Mended,
    ),
    (
        "history is a link to nowhere",
        |agent, _| instead(&agent.join("history"), Path::new("/nonexistent")),
        Then::Mended,
    ),
    (
        "history is a link to itself",
        |agent, _| instead(&agent.join("history"), Path::new("history")),
        Then::Mended,
    ),
    (
        "history is a file",
        |agent, _| {
            made(fs::remove_dir_all(agent.join("history")));
            made(fs::write(agent.join("history"), "x"));
        },
        Then::Mended,
    ),
    (
        "a step is a link to a file",
        |agent, outside| instead(&agent.join("history/step_001.json"), &outside.join("precious")),
        Then::Mended,
    ),
    (
        "a step is a link to a folder",
        |agent, outside| instead(&agent.join("history/step_001.json"), outside),
        Then::Mended,
    ),
    (
        "a step is a folder with a link in it",
        |agent, outside| {
            made(fs::remove_file(agent.join("history/step_001.json")));
            made(fs::create_dir_all(agent.join("history/step_001.json/sub")));
            instead(&agent.join("history/step_001.json/sub/out"), outside);
        },
        Then::Mended,
    ),
    (
        "a step shares its file with one outside",
        |agent, outside| {
            made(fs::remove_file(agent.join("history/step_001.json")));
            made(fs::hard_link(outside.join("precious"), agent.join("history/step_001.json")));
        },
        Then::Mended,
    ),
    (
        "the unfinished file is a link",
        |agent, outside| {
            made(fs::remove_file(agent.join("history/step_001.json")));
            instead(&agent.join("history/.unfinished-step_001.json"), &outside.join("precious"));
        },
        Then::Mended,
    ),
    (
        "the unfinished file is a folder with a link in it",
        |agent, outside| {
            made(fs::remove_file(agent.join("history/step_001.json")));
            made(fs::create_dir(agent.join("history/.unfinished-step_001.json")));
            instead(&agent.join("history/.unfinished-step_001.json/out"), outside);
        },
        Then::Mended,
    ),
    (
        "a file that does not belong is a link",
        |agent, outside| instead(&agent.join("history/notes"), outside),
        Then::Mended,
    ),
    (
        "the unfinished output is a link",
        |agent, outside| instead(&agent.join("history/.unfinished-output"), &outside.join("precious")),
        Then::Mended,
    ),
    ("the agent's folder is a link", |agent, outside| instead(agent, outside), Then::Fault),
    ("the agent's folder is a link to a sibling's", |agent, _| instead(agent, Path::new("h")), Then::Fault),
];

#[tokio::test(start_paused = true)]
async fn whatever_is_planted_in_a_workspace_nothing_outside_is_touched() {
    let script = "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: h, goal: Help. } } ]
  - say: Done.
";
    let ran = Ran::play(&TestHome::new(script), "root $9.00 turns=20 / helper later turns=20").await;
    for (what, plant, then) in PLANTS {
        let ground = tempfile::tempdir().unwrap();
        let (home, outside) = (ground.path().join("home"), ground.path().join("outside"));
        fs::create_dir(&home).unwrap();
        fs::create_dir_all(outside.join("step_007.json")).unwrap();
        fs::write(outside.join("precious"), "precious").unwrap();
        ran.write(&home);
        let (before, sibling) = (files(&outside), files(&ran.agent(&home, "h")));
        plant(&ran.agent(&home, "root"), &outside);
        let mended = ran.mend(&home);
        assert_eq!(mended.is_ok(), then == Then::Mended, "{what}: {mended:?}");
        if then == Then::Mended {
            assert_eq!(files(&home), ran.files(&home), "{what}");
        }
        let limits = OutputLimits::default();
        let author = Author { home: &home, files: Files::default(), tree: ran.tree, agent: "root", limits };
        let written = author.write("outputs/page.html", "new");
        assert_eq!(written.is_ok(), then == Then::Mended, "{what}: {written:?}");
        assert_eq!(files(&outside), before, "{what}");
        assert!(outside.join("step_007.json").is_dir(), "{what}");
        assert_eq!(files(&ran.agent(&home, "h")), sibling, "{what}");
    }
}

/// `outputs/` is the agent's: what it planted there stays, and nothing is written through it.
#[test]
fn planted_outputs_make_writes_fail() {
    let plants: [(&str, Trap); 3] = [
        ("outputs is a file", |agent, _| {
            made(fs::remove_dir(agent.join("outputs")));
            made(fs::write(agent.join("outputs"), "x"));
        }),
        ("outputs is a link", |agent, outside| instead(&agent.join("outputs"), outside)),
        ("outputs is a link to a sibling's", |agent, _| {
            instead(&agent.join("outputs"), Path::new("../b/outputs"));
        }),
    ];
    for (what, plant) in plants {
        let ground = tempfile::tempdir().unwrap();
        let (home, outside) = (ground.path().join("home"), ground.path().join("outside"));
        fs::create_dir(&home).unwrap();
        fs::create_dir_all(&outside).unwrap();
        let tree = "7".repeat(32);
        let workspaces = Workspaces::open(&home, tree.parse().unwrap()).unwrap();
        workspaces.agent(&"a".parse().unwrap()).unwrap();
        workspaces.agent(&"b".parse().unwrap()).unwrap();
        plant(&home.join("workspace").join(&tree).join("a"), &outside);
        let (tree_id, limits) = (tree.parse().unwrap(), OutputLimits::default());
        let author = Author { home: &home, files: Files::default(), tree: tree_id, agent: "a", limits };
        assert!(author.write("outputs/page.html", "new").is_err(), "{what}");
        assert!(files(&outside).is_empty(), "{what}");
        assert!(files(&home.join("workspace").join(&tree).join("b")).is_empty(), "{what}");
    }
}

/// Links among the outputs are their own files: they are counted and not followed.
#[test]
fn a_link_among_the_outputs_counts_as_a_file_and_leads_nowhere() {
    let ground = tempfile::tempdir().unwrap();
    let outside = ground.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("huge"), vec![b'x'; 2_000_000]).unwrap();
    let tree = "7".repeat(32);
    let home = ground.path().join("home");
    fs::create_dir(&home).unwrap();
    let workspaces = Workspaces::open(&home, tree.parse().unwrap()).unwrap();
    workspaces.agent(&"a".parse().unwrap()).unwrap();
    let outputs = ground.path().join("home/workspace").join(&tree).join("a/outputs");
    symlink(&outside, outputs.join("folder")).unwrap();
    symlink(outside.join("huge"), outputs.join("page_001.html")).unwrap();
    symlink("..", outputs.join("loop")).unwrap();
    let (tree, limits) = (tree.parse().unwrap(), OutputLimits::default());
    let author = Author { home: &home, files: Files::default(), tree, agent: "a", limits };
    let narrow =
        Author { limits: OutputLimits { files_max: 3, ..limits }, files: author.files.clone(), ..author };
    assert!(narrow.write("outputs/page.html", "new").is_err());
    author.write("outputs/page.html", "new").unwrap();
    assert_eq!(fs::metadata(outside.join("huge")).unwrap().len(), 2_000_000);
}
