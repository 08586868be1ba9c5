//! Ways out of a workspace, each tried with every file tool, by an agent and by a grandchild: none leads out. What is
//! outside is not read and not changed, whatever a path says and whatever was planted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use spinney_drivers::files::FileTool;
use spinney_kernel::port::tool::ToolAnswer;

use crate::files::{TREE, called};

const SECRET: &str = "SECRET";

/// Paths that an agent may think of. `{…}` is filled in.
const PATHS: [&str; 64] = [
    "..",
    "../",
    "../x",
    "../other/outputs/secret.txt",
    "../lead/outputs/secret.txt",
    "../../secret.txt",
    "../../../../../../../../etc/passwd",
    "outputs/..",
    "outputs/../..",
    "outputs/../../other/outputs/secret.txt",
    "outputs/../../../../secret.txt",
    "outputs/../history/../../other/outputs/secret.txt",
    "outputs/./../../other/outputs/secret.txt",
    "outputs/sub/../../../other/outputs/secret.txt",
    "./../other/outputs/secret.txt",
    "history/../../other/outputs/secret.txt",
    "offload/../../other/outputs/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/1/root",
    "/dev/zero",
    "/dev/stdin",
    "/dev/fd/0",
    "proc/self/cwd",
    "{home}/secret.txt",
    "outputs/{home}/secret.txt",
    "file://{home}/secret.txt",
    "~/secret.txt",
    "~root",
    "$HOME/secret.txt",
    "${HOME}/secret.txt",
    "%2e%2e/other/outputs/secret.txt",
    "outputs/%2e%2e/%2e%2e/other/outputs/secret.txt",
    "outputs/..%2fother",
    "..\\other\\outputs\\secret.txt",
    "outputs\\..\\..\\other\\outputs\\secret.txt",
    "C:\\secret.txt",
    "\\\\?\\C:\\secret.txt",
    "outputs/\u{ff0e}\u{ff0e}/\u{ff0e}\u{ff0e}/other",
    "outputs/\u{2025}/other",
    "outputs/.\u{200b}./other",
    "outputs/\u{202e}txt.terces",
    "outputs/a\u{0}/../../other/outputs/secret.txt",
    "outputs/secret.txt\u{0}.md",
    "outputs/a\nb",
    "outputs/\u{1b}[2J",
    "",
    " ",
    "/",
    ".",
    "outputs",
    "outputs//../x",
    "outputs//secret.txt",
    "outputs/ ",
    "outputs/.hidden",
    "outputs/...",
    "OUTPUTS/../../other/outputs/secret.txt",
    "Outputs/secret.txt",
    "workspace/other/outputs/secret.txt",
    "other/outputs/secret.txt",
    "{long}",
    "{deep}",
];

/// What is planted in the agent's own folder, and the path that leads through it.
type Trap = (&'static str, fn(agent: &Path, home: &Path), &'static str);

const PLANTS: [Trap; 16] = [
    ("a link to a file outside", |a, h| link(&h.join("secret.txt"), &a.join("outputs/l")), "outputs/l"),
    (
        "a link to a sibling's file",
        |a, _| link(Path::new("../../other/outputs/secret.txt"), &a.join("outputs/l")),
        "outputs/l",
    ),
    ("a link to a folder outside", |a, h| link(h, &a.join("outputs/d")), "outputs/d/secret.txt"),
    (
        "a link to the parent's folder",
        |a, _| link(Path::new("../../lead"), &a.join("outputs/d")),
        "outputs/d/outputs/secret.txt",
    ),
    ("a link to the root", |a, _| link(Path::new("/"), &a.join("outputs/d")), "outputs/d/etc/passwd"),
    (
        "a link to a link",
        |a, h| {
            link(&h.join("secret.txt"), &a.join("outputs/one"));
            link(Path::new("one"), &a.join("outputs/l"));
        },
        "outputs/l",
    ),
    ("a link to itself", |a, _| link(Path::new("l"), &a.join("outputs/l")), "outputs/l"),
    ("a link to nowhere outside", |a, h| link(&h.join("fresh.txt"), &a.join("outputs/l")), "outputs/l"),
    (
        "a magic link of a process",
        |a, _| link(Path::new("/proc/self/root"), &a.join("outputs/d")),
        "outputs/d/etc/passwd",
    ),
    ("a link to a device", |a, _| link(Path::new("/dev/zero"), &a.join("outputs/l")), "outputs/l"),
    (
        "a second name of a sibling's file",
        |a, _| done(fs::hard_link(a.join("../other/outputs/secret.txt"), a.join("outputs/l"))),
        "outputs/l",
    ),
    (
        "a second name of a file of the home",
        |a, h| done(fs::hard_link(h.join("secret.txt"), a.join("outputs/l"))),
        "outputs/l",
    ),
    ("a pipe", |a, _| pipe(&a.join("outputs/l")), "outputs/l"),
    (
        "a link instead of outputs",
        |a, _| {
            done(fs::remove_dir_all(a.join("outputs")));
            link(Path::new("../other/outputs"), &a.join("outputs"));
        },
        "outputs/secret.txt",
    ),
    (
        "a link instead of the folder for long outputs",
        |a, _| link(Path::new("../other/outputs"), &a.join("offload")),
        "offload/secret.txt",
    ),
    (
        "a link in the history",
        |a, h| link(&h.join("secret.txt"), &a.join("history/step_001.json")),
        "history/step_001.json",
    ),
];

fn done(result: std::io::Result<()>) {
    result.unwrap_or_else(|error| panic!("{error}"));
}

fn link(target: &Path, at: &Path) {
    done(symlink(target, at));
}

fn pipe(at: &Path) {
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        at,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    );
    made.unwrap_or_else(|error| panic!("{error}"));
}

/// A home with secrets beside an agent: in the home, at its parent and at a sibling.
struct Scene {
    home: tempfile::TempDir,
    agent: &'static str,
}

impl Scene {
    fn new(agent: &'static str) -> Self {
        let home = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        for other in ["lead", "other"] {
            let outputs = folder(home.path(), other).join("outputs");
            done(fs::create_dir_all(&outputs));
            done(fs::write(outputs.join("secret.txt"), SECRET));
        }
        done(fs::write(home.path().join("secret.txt"), SECRET));
        for own in ["outputs", "history"] {
            done(fs::create_dir_all(folder(home.path(), agent).join(own)));
        }
        Self { home, agent }
    }

    fn folder(&self) -> PathBuf {
        folder(self.home.path(), self.agent)
    }

    /// Every file that is not the agent's, with its bytes.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk(self.home.path(), &self.folder(), &mut found);
        found
    }

    async fn call(&self, tool: FileTool, args: Value) -> ToolAnswer {
        called(self.home.path(), &["lead", "helper", self.agent], tool, &args).await
    }

    /// Tries a path with every tool: nothing outside is shown or changed, and what cannot be read is refused.
    async fn try_out(&self, what: &str, path: &str) {
        let before = self.outside();
        let read = self.call(FileTool::Read, json!({ "path": path })).await;
        let list = self.call(FileTool::List, json!({ "path": path })).await;
        let write = self.call(FileTool::Write, json!({ "path": path, "text": "CHANGED" })).await;
        let search = self.call(FileTool::Search, json!({ "path": path, "pattern": "." })).await;
        let names = self.call(FileTool::Search, json!({ "path": path, "glob": "*" })).await;
        let edit = json!({ "path": path, "old_text": SECRET, "new_text": "CHANGED", "replace_all": true });
        let edit = self.call(FileTool::Edit, edit).await;
        let delete = self.call(FileTool::Delete, json!({ "path": path })).await;
        assert!(read.is_error, "{what}: {path:?} was read: {}", read.text);
        assert!(edit.is_error && edit.files.is_empty(), "{what}: {path:?} was edited: {}", edit.text);
        for answer in [&read, &list, &write, &search, &names, &edit, &delete] {
            assert!(!answer.text.contains(SECRET), "{what}: {path:?} shows {}", answer.text);
            assert!(!answer.text.contains("root:"), "{what}: {path:?} shows {}", answer.text);
            let home = &*self.home.path().to_string_lossy();
            assert!(path.contains(home) || !answer.text.contains(home), "{what}: {}", answer.text);
        }
        assert_eq!(self.outside(), before, "{what}: {path:?} changed what is outside");
    }

    /// Tries to delete by a path: refused, and nothing is recorded as removed.
    async fn try_to_delete(&self, what: &str, path: &str) {
        let before = self.outside();
        let delete = self.call(FileTool::Delete, json!({ "path": path })).await;
        assert!(delete.is_error && delete.removed.is_empty(), "{what}: {path:?}: {}", delete.text);
        assert_eq!(self.outside(), before, "{what}: {path:?} changed what is outside");
    }
}

fn folder(home: &Path, agent: &str) -> PathBuf {
    home.join("workspace").join(TREE.to_string()).join(agent)
}

fn walk(at: &Path, but: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    if at == but {
        return;
    }
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&path, but, found),
            Ok(_) | Err(_) => {
                let bytes = fs::read(&path).unwrap_or_default();
                found.insert(path, bytes);
            }
        }
    }
}

fn filled(path: &str, home: &Path) -> String {
    let (long, deep) = (format!("outputs/{}", "x".repeat(300)), format!("outputs{}", "/x".repeat(400)));
    path.replace("{home}", &home.to_string_lossy()).replace("{long}", &long).replace("{deep}", &deep)
}

/// L8, X6: no path leads out of a workspace, at no depth.
#[tokio::test]
async fn l8_no_path_leads_out_of_a_workspace() {
    for agent in ["lead-1", "grandchild"] {
        let scene = Scene::new(agent);
        for path in PATHS {
            scene.try_out("a path", &filled(path, scene.home.path())).await;
        }
    }
}

/// L8, X6: nothing that is planted in a workspace leads out of it, at no depth.
#[tokio::test]
async fn l8_nothing_planted_leads_out_of_a_workspace() {
    for agent in ["lead-1", "grandchild"] {
        for (what, plant, path) in PLANTS {
            let scene = Scene::new(agent);
            plant(&scene.folder(), scene.home.path());
            scene.try_out(what, path).await;
        }
    }
}

/// L8, X6: no path and nothing that is planted makes `delete_file` remove anything, at no depth.
#[tokio::test]
async fn l8_no_path_and_no_plant_deletes_what_is_not_a_plain_file_of_the_agent() {
    for agent in ["lead-1", "grandchild"] {
        let scene = Scene::new(agent);
        for path in PATHS {
            scene.try_to_delete("a path", &filled(path, scene.home.path())).await;
        }
        for (what, plant, path) in PLANTS {
            let scene = Scene::new(agent);
            plant(&scene.folder(), scene.home.path());
            scene.try_to_delete(what, path).await;
        }
    }
}

/// L8: between check and use nothing can be put in the way: a folder that is a link every other moment is never followed.
#[tokio::test]
async fn l8_a_folder_that_becomes_a_link_is_not_followed() {
    const TRIES: usize = 400;
    let scene = Scene::new("grandchild");
    let (outputs, is_over) = (scene.folder().join("outputs"), Arc::new(AtomicBool::new(false)));
    done(fs::create_dir(outputs.join("real")));
    done(fs::write(outputs.join("real/secret.txt"), "mine"));
    // The folder stays when the file in it is deleted.
    done(fs::write(outputs.join("real/other.txt"), "mine"));
    link(Path::new("../../other/outputs"), &outputs.join("planted"));
    let flipping = std::thread::spawn({
        let (outputs, is_over) = (outputs.clone(), Arc::clone(&is_over));
        move || {
            while !is_over.load(Ordering::Relaxed) {
                for name in ["real", "planted"] {
                    let _ = fs::rename(outputs.join(name), outputs.join("d"));
                    std::thread::yield_now();
                    let _ = fs::rename(outputs.join("d"), outputs.join(name));
                }
            }
        }
    });
    let before = scene.outside();
    for _ in 0..TRIES {
        let path = json!({ "path": "outputs/d/secret.txt" });
        let read = scene.call(FileTool::Read, path).await;
        assert!(read.is_error || read.text != SECRET, "{}", read.text);
        let write = json!({ "path": "outputs/d/secret.txt", "text": "mine" });
        scene.call(FileTool::Write, write).await;
        let search = scene.call(FileTool::Search, json!({ "path": "outputs/d", "pattern": "." })).await;
        assert!(!search.text.contains(SECRET), "{}", search.text);
        let edit = json!({ "path": "outputs/d/secret.txt", "old_text": "mine", "new_text": "mine!" });
        scene.call(FileTool::Edit, edit).await;
        scene.call(FileTool::Delete, json!({ "path": "outputs/d/secret.txt" })).await;
        assert_eq!(scene.outside(), before);
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(flipping.join().is_ok());
}
